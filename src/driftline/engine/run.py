"""From a spec to a record."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from driftline.data import looking_in
from driftline.engine.execute import Executor, Here, Summary, Watch, execute
from driftline.engine.local import Worker
from driftline.engine.plan import Plan, plan
from driftline.errors import UserError
from driftline.record import Record
from driftline.spec import Spec, parse, read
from driftline.store import Store


def run(
    spec: Spec | Mapping[str, Any] | str | Path,
    *,
    runs: str | Path | None = None,
    data_dir: str | Path | None = None,
    jobs: int = 1,
) -> Record:
    """Run what a spec asks for, reusing what is there, and return the record of its runs.

    `spec`: a Spec, a mapping, or the path of a YAML file. With `jobs` above 1 the runs are computed in so many worker
    processes; the record is the same, bit for bit.
    """
    store, where = Store.create(runs), Path(data_dir) if data_dir else None
    with looking_in(where):
        planned = plan(as_spec(spec), where)
        summary = carry_out(planned, store, where, jobs)
    if summary.failed:
        raise UserError(f"{len(summary.failed)} run(s) failed: {next(iter(summary.failed.values()))}")
    return store.record(planned.run_keys)


def as_spec(spec: Spec | Mapping[str, Any] | str | Path) -> Spec:
    """A spec from any of the forms that `run` takes."""
    if isinstance(spec, Spec):
        return spec
    return parse(dict(spec)) if isinstance(spec, Mapping) else read(Path(spec))


def carry_out(planned: Plan, store: Store, where: Path | None, jobs: int, watch: Watch = lambda event: None) -> Summary:
    """Compute a plan's missing stages, in this process or in `jobs` worker processes."""
    if jobs == 1:
        return execute(planned.stages, store, [Here(store, where)], watch)
    workers = [Worker(store, where) for _ in range(jobs)]
    executors: list[Executor] = list(workers)
    try:
        return execute(planned.stages, store, executors, watch)
    finally:
        for worker in workers:
            worker.close()
