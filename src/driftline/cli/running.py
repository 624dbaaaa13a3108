"""Carrying out a spec from the command line: progress, the result table, and what went wrong."""

from __future__ import annotations

from pathlib import Path

from driftline.cli import show
from driftline.cli.announced import announced
from driftline.cli.progress import Progress
from driftline.data import looking_in
from driftline.engine import receipts
from driftline.engine.engines import Engine
from driftline.engine.plan import Plan, plan, read_anew
from driftline.engine.run import carry_out
from driftline.engine.sharing import saved_by_sharing
from driftline.engine.worker import keep_memory
from driftline.record import Record
from driftline.spec import Spec
from driftline.store import Store


def carry_out_spec(spec: Spec, store: Store, where: Path | None, engine: Engine, quiet: bool) -> tuple[Record, int]:
    """Run what a spec asks for; the record of what finished, and the exit code."""
    keep_memory()
    with looking_in(where):
        with announced(f"planning {len(spec.methods):,} method(s) with {len(spec.seeds):,} seed(s)", quiet):
            dataset = read_anew(spec, where)
            receipt = receipts.find(spec, dataset, store)
            planned = Plan(()) if receipt else plan(spec, where, store.finished, dataset)
        if receipt:
            if not quiet:
                show.receipt(receipt, store)
            return store.record(receipt.runs), 0
        with Progress(planned, quiet=quiet) as progress:
            summary = carry_out(planned, store, where, watch=progress.watch, engine=engine)
        receipts.keep(spec, dataset, store, planned, summary)
    record = store.record([key for key in planned.run_keys if key not in summary.failed])
    if not quiet:
        show.summary(record, store, summary)
        show.logs(store, summary)
        show.sharing(saved_by_sharing(planned, store))
    show.failures(summary, planned.stages, store)
    return record, 1 if summary.failed else 0
