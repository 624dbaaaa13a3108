"""`driftline run matrix`: run methods in every benchmark that reveals enough labels for them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from driftline import recipes, registry
from driftline import spec as spec_
from driftline.cli.options import RUN_FLAGS, split_flags
from driftline.cli.printing import runs
from driftline.cli.printing.terminal import echo
from driftline.cli.progress import Progress
from driftline.data import using_data_folder
from driftline.engine.build import DatasetCache
from driftline.engine.executors.config import ExecutorConfig
from driftline.engine.executors.process import keep_freed_memory
from driftline.engine.planning import matrix
from driftline.engine.planning.plan import Plan
from driftline.engine.pool import executors
from driftline.engine.run import compute_stages
from driftline.errors import UserError, unknown_name
from driftline.spec.settings import listed
from driftline.store.store import Store
from driftline.types import JsonObject, Settings

NAME = "matrix"


def is_matrix(what: str) -> bool:
    """Return whether this names the matrix, or a recipe of one."""
    return what == NAME or (recipes.is_recipe(what) and NAME in spec_.read_yaml(what))


def content(
    what: str,
    flags: list[str],
    methods: str | None,
    seeds: int | None,
    assignments: list[str],
    budget_macs: int | None = None,
    labels: str | None = None,
) -> JsonObject:
    """Return the content of the matrix from the recipe, if there is one, and the flags; flags win."""
    recipe = {} if what == NAME else matrix.as_mapping(spec_.read_yaml(what)[NAME], NAME)
    if methods is not None:
        recipe["methods"] = methods
    if seeds is not None:
        recipe["seeds"] = seeds
    if budget_macs is not None:
        recipe["budget_macs"] = budget_macs
    if not recipe.get("methods"):
        raise UserError("driftline run matrix needs --methods, names separated by commas; see `driftline list methods`")
    columns = matrix.parse_columns(recipe.get("benchmarks"))
    if (names := _benchmarks(flags)) is not None:
        columns = {name: columns.get(name, {}) for name in names}
    return {NAME: {**recipe, **_apply_overrides(listed(recipe["methods"]), listed(labels), columns, assignments)}}


def _benchmarks(flags: list[str]) -> list[str] | None:
    """Return the names given with `--benchmarks`, if any."""
    words = split_flags(flags)
    if not words:
        return None
    if words[0] != "--benchmarks":
        raise unknown_name("flag", words[0], ["--benchmarks", *RUN_FLAGS], " (for matrix)")
    if len(words) != 2:
        raise UserError("--benchmarks takes names separated by commas, for example timeline,test-time")
    return listed(words[1])


def _apply_overrides(
    methods: list[Any], rules: list[Any], columns: Mapping[str, JsonObject], assignments: list[str]
) -> JsonObject:
    """Return methods, label rules and columns with `method.key=value` and `benchmark.key=value` applied.

    Each of the rules is a way to reveal labels of its own.
    """
    changed_columns = {}
    for name, column in columns.items():
        benchmark = matrix.benchmark_of(name, column)
        own = [one for one in assignments if one.startswith(f"{benchmark}.")]
        content = {"benchmark": benchmark, benchmark: column.get(benchmark, {})}
        options = spec_.apply_overrides(content, own)[benchmark]
        changed_columns[name] = {**column, benchmark: options} if own else column
    benchmarks = {matrix.benchmark_of(name, column) for name, column in columns.items()}
    rest = [one for one in assignments if not any(one.startswith(f"{name}.") for name in benchmarks)]
    shown = {"reveal": {"rules": rules}} if rules else {}
    changed = spec_.apply_overrides({"methods": methods, **shown}, rest)
    if rules and not changed["reveal"].keys() - {"rules"}:
        changed["labels"] = {rule["name"]: [rule] for rule in changed.pop("reveal")["rules"]}
    if extra := sorted(set(changed) - {"methods", "labels", "device"}):
        raise UserError(f"--set {extra[0]}.…: a matrix has {extra[0]} in each of its columns; set it in a recipe")
    return {**changed, "benchmarks": changed_columns}


def run(recipe: Settings, store: Store, data_dir: Path | None, config: ExecutorConfig, quiet: bool) -> int:
    """Run a matrix and print its table; return the exit code."""
    from driftline.report.tables.make import make_tables  # imports charts, which no other run needs

    keep_freed_memory()
    datasets = DatasetCache(data_dir)
    with using_data_folder(data_dir):
        planned = matrix.plan_matrix(matrix.read(recipe), datasets)
        planned.save(store)  # so that an interrupted matrix can be shown as well
        failed = run_plans(planned.plans, store, datasets, config, quiet)
    finished = planned.after(failed)
    path = finished.save(store)
    keys = [key for cell in finished.cells for key in cell.keys if key not in failed]
    if not quiet:
        if keys:
            echo(make_tables(store.record(keys), matrix=True).text("md"))
        else:
            echo("\n".join(f"{cell.method} in {cell.benchmark}: {cell.reason}" for cell in finished.cells))
        echo(f"kept in {path}. Next: driftline report --runs {shlex.quote(store.name)}")
    return 1 if failed else 0


def run_plans(
    plans: Mapping[str, Plan], store: Store, datasets: DatasetCache, config: ExecutorConfig, quiet: bool
) -> dict[str, str]:
    """Run one benchmark's plan after another with the same workers; return why stages failed, by key."""
    failed: dict[str, str] = {}
    with executors(config, store, datasets) as pool:
        for benchmark, planned in plans.items():
            if not quiet and planned.stages:
                question = registry.get("benchmark", planned.stages[0].job.benchmark).question
                echo(f"\n{benchmark}: {question}", err=True)
            with Progress(quiet) as progress:
                progress.begin(planned)
                summary = compute_stages(planned, store, pool, progress.show)
            if not quiet and planned.stages:
                echo(runs.count_text(summary), err=True)
            runs.print_failures(summary, planned.stages, store)
            failed |= summary.failed
    return failed


def to_yaml(recipe: Settings) -> str:
    """Return the matrix as a recipe with every column written out."""
    parsed = matrix.read(recipe)
    methods, seeds = [method.short() for method in parsed.methods], list(parsed.seeds)
    budget = {"budget_macs": parsed.budget_macs} if parsed.budget_macs else {}
    labels = {name: way.model_dump(exclude_defaults=True) for name, way in parsed.labels.items()}
    shown = {"labels": labels} if labels else {}
    content = {"methods": methods, "seeds": seeds, **budget, **shown, "benchmarks": parsed.benchmarks}
    return str(yaml.safe_dump({NAME: content}, sort_keys=False))
