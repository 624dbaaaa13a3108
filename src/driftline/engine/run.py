"""From a spec to a record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from driftline.data import looking_in
from driftline.engine import receipts
from driftline.engine.engines import Engine, Name, executors
from driftline.engine.execute import Executor, Summary, Watch, execute
from driftline.engine.mirroring import mirrored
from driftline.engine.plan import Plan, plan, read_anew
from driftline.errors import UserError
from driftline.record import Record
from driftline.spec import Spec, parse, read
from driftline.store import Store


def run(
    spec: Spec | Mapping[str, Any] | str | Path,
    *,
    runs: str | Path | None = None,
    data_dir: str | Path | None = None,
    jobs: int | None = None,
    engine: Engine | Name | None = None,
    address: str | None = None,
) -> Record:
    """Run what a spec asks for, reusing what is there, and return the record of its runs.

    `spec`: a Spec, a mapping, or the path of a YAML file. `runs`: a folder, or the URL of one, such as s3://bucket/runs.
    With `jobs` above 1 the runs are computed in so many worker processes, and with `engine="ray"` on a Ray cluster, the
    one at `address` if there is one; the record is the same, bit for bit. An `Engine` says more, such as a timeout.
    """
    store, where = Store.create(runs), Path(data_dir) if data_dir else None
    how = engine if isinstance(engine, Engine) else Engine(engine, jobs, address)
    with looking_in(where):
        said = as_spec(spec)
        dataset = read_anew(said, where)
        if receipt := receipts.find(said, dataset, store):
            return store.record(receipt.runs)
        planned = plan(said, where, store.finished, dataset)
        summary = carry_out(planned, store, where, engine=how)
        receipts.keep(said, dataset, store, planned, summary)
    if summary.failed:
        raise UserError(f"{len(summary.failed)} run(s) failed: {next(iter(summary.failed.values()))}")
    return store.record(planned.run_keys)


def as_spec(spec: Spec | Mapping[str, Any] | str | Path) -> Spec:
    """A spec from any of the forms that `run` takes."""
    if isinstance(spec, Spec):
        return spec
    return parse(dict(spec)) if isinstance(spec, Mapping) else read(Path(spec))


def carry_out(
    planned: Plan,
    store: Store,
    where: Path | None,
    jobs: int | None = None,
    watch: Watch = lambda event: None,
    engine: Engine | None = None,
) -> Summary:
    """Compute a plan's missing stages with `jobs` at once, or as an engine says."""
    how = engine or Engine(jobs=jobs)
    if how.jobs is not None:
        how = replace(how, jobs=max(1, min(how.jobs, len(planned.stages))))
    with executors(how, store, where) as hands:
        return pursue(planned, store, hands, watch)


def pursue(planned: Plan, store: Store, hands: list[Executor], watch: Watch = lambda event: None) -> Summary:
    """Compute a plan's missing stages; if the store is a copy of one elsewhere, fetch from there and bring there."""
    with mirrored(planned, store, watch) as watching:
        return execute(planned.stages, store, hands, watching)
