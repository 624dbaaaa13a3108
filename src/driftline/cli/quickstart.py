"""What a newcomer runs first: all benchmarks and an audit in miniature, offline on embedded data, then the report."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from driftline.auditing import audit
from driftline.auditing.examples import table
from driftline.cli.matrix import run_plans
from driftline.cli.progress import Pieces
from driftline.cli.terminal import echo
from driftline.engine.build import DatasetCache
from driftline.engine.executors.config import ExecutorConfig
from driftline.engine.executors.process import keep_memory
from driftline.engine.planning.plan import Plan, plan
from driftline.errors import UserError
from driftline.report.groups import groups
from driftline.report.notes import answer
from driftline.report.page import write_report
from driftline.report.results import tabulate
from driftline.spec import parse
from driftline.store import Store

NETWORK = {"name": "conv-1", "width": 16}
SPECS: dict[str, dict[str, Any]] = {
    "timeline": {
        "data": "digits",
        "model": "linear",
        "methods": ["erm", "erm-all", {"name": "ft", "updates": 100}],
    },
    "seq-to-final": {
        "data": "colour-digits",
        "model": {"name": "conv-1", "width": 8},
        "methods": ["baseline", "seq-erm", "seq-ft"],
        "seq-to-final": {
            **{"shifts": "RL", "sizes": [300, 200, 200], "test": 400, "oracle": 0, "epochs": 12, "batch": 16},
            **{"lr": [1e-2, 1e-3], "weight_decay": [0.0], "dropout": [0.0]},
        },
    },
    "refinement": {
        "data": "digit-clusters",
        "model": {"name": "mlp", "width": 128},
        "methods": ["frozen", "cft", "er"],
        "refinement": {"episodes": 20, "upstream_set": 256, "held_out": 64, "upstream_updates": 500},
    },
    "test-time": {
        "data": "colour-digits",
        "model": NETWORK,
        "methods": ["frozen", "bn", {"name": "tent", "lr": 1e-3}],
        "test-time": {
            **{"order": "gradual", "corruptions": "gaussian_noise,contrast,defocus_blur,saturate"},
            **{"images": 2304, "speed": 64, "upstream_updates": 600},
        },
    },
    "open-world": {
        "data": "digit-turns",
        "model": NETWORK,
        "methods": ["frozen", "ncm", {"name": "fine-tune", "every": 100}],
        "open-world": {"law": "300/(4+r)", "upstream_updates": 600, "head": 20},
    },
}
WITHOUT_NETWORKS: dict[str, dict[str, Any]] = {
    "timeline": {"data": "digits", "model": "logistic", "methods": "erm,erm-all"},
}
SEEDS = 3  # with fewer the report marks nothing best
AUDITED = {"drift": "concept", "rows": 2000}


def quickstart(output: Path, runs: str | None, jobs: int) -> int:
    """Run everything that this install allows, draw the report and the audit's page; the exit code."""
    store = Store.create(runs or os.environ.get("DRIFTLINE_RUNS") or "quickstart-runs")
    keep_memory()
    datasets = DatasetCache()
    plans, lost = planned(SPECS if find_spec("torch") else WITHOUT_NETWORKS, datasets)
    failed = run_plans(plans, store, datasets, ExecutorConfig(jobs=jobs), quiet=False)
    for benchmark, one in plans.items():
        reasons = [failed[key] for key in one.run_keys if key in failed]
        lost |= {benchmark: reasons[0]} if reasons else {}
    keys = [key for one in plans.values() for key in one.run_keys if key not in failed]
    page = audited(output, jobs, lost)
    if keys:
        record = store.record(keys)
        write_report(record, output)
        for group in groups(record):
            echo(f"{group.card['run']['benchmark']}: {answer(tabulate(group))}")
    for benchmark, reason in lost.items():
        echo(f"{benchmark} failed: {reason}", err=True)
    sign_off(output if keys else None, page, store)
    return 1 if lost else 0


def planned(specs: dict[str, dict[str, Any]], datasets: DatasetCache) -> tuple[dict[str, Plan], dict[str, str]]:
    """A plan for each benchmark, and why some have none: one that cannot be run does not stop the others."""
    plans, lost = {}, {}
    for benchmark, content in specs.items():
        try:
            plans[benchmark] = plan(parse({**content, "benchmark": benchmark, "seeds": SEEDS}), datasets)
        except UserError as error:
            lost[benchmark] = str(error)
    return plans, lost


def audited(output: Path, jobs: int, lost: dict[str, str]) -> Path | None:
    """Audit a table whose rule turns around half-way; where its page is."""
    echo("\naudit: When did a model of this table stop being good, and when should it be retrained?", err=True)
    page = output.with_name(f"{output.stem}-audit.html")
    made = table(**AUDITED)  # type: ignore[arg-type]
    try:
        with Pieces() as pieces:
            audit(made, time="when", target="y", model="logistic", jobs=jobs, told=pieces.told).write(page)
    except UserError as error:
        lost["audit"] = str(error)
        return None
    return page


def sign_off(report: Path | None, page: Path | None, store: Store) -> None:
    """Where to look, and what to try next."""
    echo("")
    if report:
        echo(f"report: {report.resolve()}")
    if page:
        echo(f"audit:  {page.resolve()}")
    echo(f"runs:   {store.folder.resolve()}")
    echo("next:   driftline audit YOURS.csv --time DATE --target LABEL    # your own table and model")
    echo("        driftline run matrix --methods frozen,tent,er,ncm       # methods by benchmarks")
    echo("        driftline list methods                                  # what else there is")
