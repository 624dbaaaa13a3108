"""The quickstart: all benchmarks and an audit in miniature, offline on embedded data, then the report."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from driftline import registry
from driftline.auditing import AuditResult, audit
from driftline.auditing.examples import table
from driftline.cli.commands.run_matrix import run_plans
from driftline.cli.printing.terminal import echo
from driftline.cli.progress import TaskProgress
from driftline.engine.build import DatasetCache
from driftline.engine.executors.config import ExecutorConfig
from driftline.engine.executors.process import keep_freed_memory
from driftline.engine.planning.plan import Plan, plan
from driftline.errors import MissingExtra, UserError
from driftline.record.run import Record
from driftline.report.analysis.groups import groups
from driftline.report.analysis.result_table import tabulate
from driftline.report.analysis.summary import answer
from driftline.spec import parse
from driftline.store.store import Store
from driftline.types import Settings

SEEDS = 3  # with fewer the report marks nothing best
AUDIT_TABLE = {"drift": "concept", "rows": 2000}


def run_quickstart(output: Path, runs: str | None, jobs: int) -> int:
    """Run all benchmarks that this installation can run and an audit, and write their pages; return the exit code."""
    store = Store.create(runs or os.environ.get("DRIFTLINE_RUNS") or "quickstart-runs")
    keep_freed_memory()
    datasets = DatasetCache()
    plans, failures = plan_all(examples(torch=find_spec("torch") is not None), datasets)
    failed = run_plans(plans, store, datasets, ExecutorConfig(jobs=jobs), quiet=False)
    for benchmark, one in plans.items():
        reasons = [failed[key] for key in one.run_keys if key in failed]
        failures |= {benchmark: reasons[0]} if reasons else {}
    keys = [key for one in plans.values() for key in one.run_keys if key not in failed]
    result = run_audit(jobs, failures)
    record = store.record(keys) if keys else None
    pages = write_pages(record, result, output)
    for group in groups(record) if record else ():
        echo(f"{group.card.run.benchmark}: {answer(tabulate(group))}")
    if result:
        echo(f"audit: {result.summary.word}. {' '.join(result.summary.sentences)}")
    for benchmark, reason in failures.items():
        echo(f"{benchmark} failed: {reason}", err=True)
    print_next_steps(pages, store)
    return 1 if failures else 0


def examples(torch: bool) -> dict[str, Settings]:
    """Return the example of each benchmark that has one for an installation with or without torch."""
    benchmarks = {name: registry.get("benchmark", name) for name in registry.names("benchmark")}
    specs = {name: one.example if torch else one.example_without_torch for name, one in benchmarks.items()}
    return {name: spec for name, spec in specs.items() if spec}


def plan_all(specs: Mapping[str, Settings], datasets: DatasetCache) -> tuple[dict[str, Plan], dict[str, str]]:
    """Return a plan for each benchmark, and the reasons why some have none."""
    plans, failures = {}, {}
    for benchmark, content in specs.items():
        try:
            plans[benchmark] = plan(parse({**content, "benchmark": benchmark, "seeds": SEEDS}), datasets)
        except UserError as error:
            failures[benchmark] = str(error)
    return plans, failures


def run_audit(jobs: int, failures: dict[str, str]) -> AuditResult | None:
    """Audit a table with concept drift half-way."""
    echo("\naudit: When did a model of this table stop being good, and when should it be retrained?", err=True)
    frame = table(**AUDIT_TABLE)  # type: ignore[arg-type]
    try:
        with TaskProgress() as progress:
            return audit(
                frame, time="when", target="y", model="logistic-regression", jobs=jobs, on_progress=progress.show
            )
    except UserError as error:
        failures["audit"] = str(error)
        return None


def write_pages(record: Record | None, result: AuditResult | None, output: Path) -> list[str]:
    """Write the report of the runs and the page of the audit; return a line about each."""
    audit_page = output.with_name(f"{output.stem}-audit.html")
    lines = []
    try:
        if record:
            from driftline.report.page.page import write_report

            write_report(record, output)
            lines.append(f"report: {output.resolve()}")
        if result:
            result.write(audit_page)
            lines.append(f"audit:  {audit_page.resolve()}")
    except MissingExtra as error:
        lines.append(f"no report: {error}")
    return lines


def print_next_steps(pages: list[str], store: Store) -> None:
    """Print where the results are, and what to try next."""
    echo("")
    for line in pages:
        echo(line)
    echo(f"runs:   {store.folder.resolve()}")
    echo("next:   driftline audit YOURS.csv --time DATE --target LABEL    # your own table and model")
    echo("        driftline run matrix --methods frozen,tent,er,ncm       # methods by benchmarks")
    echo("        driftline list methods                                  # what else there is")
