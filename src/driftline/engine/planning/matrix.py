"""Methods by benchmarks: each method is run wherever a benchmark reveals enough.

    matrix:
      methods: [frozen, tent, ewc, {name: periodic-reset, method: ewc}]
      seeds: 3
      benchmarks: [timeline, open-world]

A benchmark may also have a column of its own: a spec without methods and seeds, as in
`benchmarks: {timeline: {timeline: {upstream: 2}}}`. Its defaults are the benchmark's `matrix_column`; one that names
its data has none. A column of another name says its benchmark, so that one benchmark can have several data:
`noise: {benchmark: timeline, data: ...}`. `settings` are by method, `quick` by the keys of `Learner.quick`; both hold
in that column alone.

`labels` are further ways to reveal labels, by name: a list of label rules, or a mapping as under `reveal`.

A cell that cannot be run has a reason instead of runs, and does not affect the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pydantic import Field, model_validator

from driftline import registry
from driftline.device import DeviceSettings
from driftline.engine.build import DatasetCache
from driftline.engine.planning.plan import Plan, merged, plan
from driftline.errors import RequirementError, UserError, shorten, unknown_name
from driftline.io.checksums import write_checked
from driftline.io.user_code import CodeNotAllowed
from driftline.seeds import first_seeds
from driftline.spec import Spec, parse
from driftline.spec.job import BudgetMacs, LabelPolicy
from driftline.spec.keys import stable_hash
from driftline.spec.methods import method_facts, required_reveal
from driftline.spec.settings import (
    Choice,
    FrozenModel,
    display_name,
    listed,
    validate,
    with_defaults,
)
from driftline.store.store import Store
from driftline.types import JsonObject, Reveal, Settings

FOLDER = "matrices"
COLUMN_KEYS = ("benchmark", "data", "model", "reveal", "settings", "quick", "budget_macs")
"""What a column may say besides its benchmark's own options."""


class Matrix(FrozenModel):
    """Methods, and the benchmarks to run them in."""

    methods: tuple[Choice, ...] = Field(min_length=1)
    seeds: tuple[int, ...] = Field(default=(0, 1, 2), min_length=1)
    device: DeviceSettings = DeviceSettings()
    budget_macs: BudgetMacs | None = None
    """The multiply-accumulates that each run may spend."""
    labels: dict[str, LabelPolicy] = Field(default={})
    """Ways in which labels are revealed, by name; each method that sees labels has one more row for each."""
    benchmarks: dict[str, JsonObject] = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _expand_short_forms(cls, content: object) -> object:
        given = as_mapping(content, "matrix")
        columns, seeds = parse_columns(given.get("benchmarks")), given.get("seeds", 3)
        ways = as_mapping(given.get("labels"), "labels")
        return {
            **given,
            "methods": listed(given.get("methods")),
            "labels": {name: one if isinstance(one, dict) else {"rules": one} for name, one in ways.items()},
            "seeds": first_seeds(seeds) if isinstance(seeds, int) else seeds,
            "benchmarks": {name: column_with_defaults(name, column) for name, column in columns.items()},
        }

    @property
    def rows(self) -> list[MatrixRow]:
        """The rows of the table: each method and, if it sees labels, the method with each way to reveal them."""
        found = []
        for method in self.methods:
            found.append(MatrixRow(method))
            if self.labels and required_reveal(method.name, method.settings) is not Reveal.INPUTS:
                found += [MatrixRow(method, name, way) for name, way in self.labels.items()]
        return found

    def spec(self, benchmark: str, row: MatrixRow) -> Spec:
        """Return the spec of a cell."""
        column, method = self.benchmarks[benchmark], row.method
        suited = with_column_settings(method, column.get("settings", {}), column.get("quick", {}))
        content = {name: value for name, value in column.items() if name not in ("settings", "quick")}
        budget = column.get("budget_macs") or self.budget_macs
        shared = {"seeds": list(self.seeds), "device": self.device.model_dump(), "budget_macs": budget}
        reveal = {**(column.get("reveal") or {}), **(row.way.model_dump(exclude_defaults=True) if row.way else {})}
        shown = {"reveal": reveal} if reveal else {}
        named = {"benchmark": benchmark_of(benchmark, column), "methods": [suited.short()]}
        return parse({**content, **shared, **shown, **named})

    def check(self) -> None:
        """Refuse names and settings that do not exist, before anything is planned."""
        labels = [display_name(method) for method in self.methods]
        for method in self.methods:
            with_defaults("method", method)
        for way in self.labels.values():
            way.with_defaults()
        if len(set(labels)) < len(labels):
            raise UserError(f"methods named twice: {', '.join(labels)}")
        for name, column in self.benchmarks.items():
            benchmark = benchmark_of(name, column)
            options = registry.get("benchmark", benchmark).options
            validate(options, column.get(benchmark, {}), benchmark)
            for name in column.get("settings", {}):
                registry.get("method", name)

    @property
    def name(self) -> str:
        unused = {"device", *([] if self.labels else ["labels"])}
        return stable_hash({**self.model_dump(mode="json", exclude=unused), "device": self.device.decisive()})


@dataclass(frozen=True)
class MatrixRow:
    """A method, and how labels are revealed to it where that is not the benchmark's own way."""

    method: Choice
    way_name: str = ""
    way: LabelPolicy | None = None

    def label(self, method: Choice | None = None) -> str:
        """Return how the table calls it; `method`: with the settings of a column."""
        name = display_name(method or self.method)
        return f"{name} · {self.way_name}" if self.way_name else name


@dataclass(frozen=True)
class MatrixCell:
    """A method in a benchmark: its runs, or why there are none."""

    benchmark: str
    method: str
    """As the table calls it, whatever settings the column gives it."""
    keys: tuple[str, ...] = ()
    reason: str = ""
    label: str = ""
    """The method with the settings it has in this column."""
    uses: str = ""
    """What must be revealed to the method: inputs, errors or labels."""
    lacks: str = ""
    """What the method needs and does not have here, in a few words, if that is the reason."""


@dataclass(frozen=True)
class PlannedMatrix:
    """A matrix with its cells, and a plan for each benchmark."""

    matrix: Matrix
    cells: tuple[MatrixCell, ...]
    plans: dict[str, Plan]

    def after(self, failed: Mapping[str, str]) -> PlannedMatrix:
        """Return the matrix after its runs; a cell with a failed run has the reason."""
        cells = tuple(
            replace(cell, reason=next((failed[key] for key in cell.keys if key in failed), cell.reason))
            for cell in self.cells
        )
        return replace(self, cells=cells)

    def save(self, store: Store) -> Path:
        """Write the cells to the store, from which reports read them."""
        header = {"methods": [row.label() for row in self.matrix.rows], "seeds": list(self.matrix.seeds)}
        path = store.folder / FOLDER / f"{self.matrix.name}.json"
        columns = [
            {"name": name, "benchmark": benchmark, "reveals": registry.get("benchmark", benchmark).reveals.name.lower()}
            for name, column in self.matrix.benchmarks.items()
            for benchmark in [benchmark_of(name, column)]
        ]
        write_checked(path, {**header, "benchmarks": columns, "cells": [asdict(cell) for cell in self.cells]})
        if store.remote is not None:
            store.remote.upload(f"{FOLDER}/{path.name}")
        return path


def read(content: Settings) -> Matrix:
    """Return the matrix in a mapping with the key `matrix`; refuse an invalid one."""
    extra = sorted(set(content) - {"matrix"})
    if extra:
        raise unknown_name("key", extra[0], ["matrix"], " (a recipe of a matrix has no other key)")
    matrix: Matrix = validate(Matrix, content["matrix"], "the matrix", keys=list(Matrix.model_fields))
    with suppress(CodeNotAllowed):
        matrix.check()
    return matrix


def as_mapping(content: object, name: str) -> JsonObject:
    """Return a mapping from a recipe, empty where it has nothing; refuse anything else."""
    if not isinstance(content or {}, dict):
        raise UserError(f"{name}: expected a mapping, got {shorten(repr(content))}")
    return {str(key): value for key, value in content.items()} if isinstance(content, dict) else {}


def parse_columns(content: object) -> dict[str, JsonObject]:
    """Return the columns as a recipe has them: a mapping, or names of benchmarks; by default all of them."""
    if not isinstance(content, dict):
        names = registry.names("benchmark") if content is None else listed(content)
        if not all(isinstance(name, str) for name in names):
            raise UserError(f"benchmarks: expected a mapping or names, got {shorten(repr(content))}")
        content = dict.fromkeys(names)
    return {str(name): _parse_column(str(name), column) for name, column in content.items()}


def benchmark_of(name: str, column: Settings) -> str:
    """Return the benchmark of a column: its name, unless it says otherwise."""
    return str(column.get("benchmark", name))


def _parse_column(name: str, content: object) -> JsonObject:
    column = as_mapping(content, f"the column {name}")
    for key in {benchmark_of(name, column), "settings", "quick"} & column.keys():
        column[key] = as_mapping(column[key], f"{key} in the column {name}")
    for method, settings in column.get("settings", {}).items():
        column["settings"][method] = as_mapping(settings, f"the settings of {method} in the column {name}")
    return column


def column_with_defaults(name: str, column: Settings) -> JsonObject:
    """Return a column merged with its defaults by key; one that names its data gets none."""
    benchmark = benchmark_of(name, column)
    usual: Settings = {}
    with suppress(CodeNotAllowed):
        default = registry.get("benchmark", benchmark)
        usual = {**default.matrix_column, "quick": default.quick} if default.matrix_column else {}
    for key in column:
        if key not in (*COLUMN_KEYS, benchmark):
            raise unknown_name("setting", key, [*COLUMN_KEYS, benchmark], f" (in the column {name})")
    if "data" in column:
        return dict(column)
    if not usual:
        raise UserError(f"the column {name} has no default data: give them, as `{name}: {{data: NAME}}`")
    options = {**usual["options"], **column.get(benchmark, {})}
    quick = {**usual["quick"], **column.get("quick", {})}
    return {"data": usual["data"], "model": usual["model"], **column, benchmark: options, "quick": quick}


def with_column_settings(method: Choice, settings: Mapping[str, Settings], quick: Mapping[str, float]) -> Choice:
    """Return a method with a column's settings where it has none of its own; a wrapped method gets them too."""
    facts = method_facts(method.name)
    common = {setting: quick[key] for setting, key in facts.quick.items() if key in quick}
    merged = {**common, **settings.get(method.name, {}), **method.settings}
    if (name := facts.wrapped(merged)) is not None:
        inner = with_column_settings(Choice(name=name, settings=merged.get("options") or {}), settings, quick)
        merged = {**merged, "options": inner.settings} if inner.settings else merged
    return Choice(name=method.name, settings=merged)


def plan_matrix(matrix: Matrix, datasets: DatasetCache) -> PlannedMatrix:
    """Plan every cell separately; one that cannot be planned has a reason instead of runs."""
    cells, plans = [], {}
    for benchmark in matrix.benchmarks:
        parts = []
        for row in matrix.rows:
            cell, planned = _plan_cell(matrix, benchmark, row, datasets)
            cells.append(cell)
            parts += [planned] if planned else []
        plans[benchmark] = merged(parts)
    return PlannedMatrix(matrix, tuple(cells), plans)


def _plan_cell(
    matrix: Matrix, benchmark: str, row: MatrixRow, datasets: DatasetCache
) -> tuple[MatrixCell, Plan | None]:
    spec = matrix.spec(benchmark, row)
    suited = spec.methods[0]
    needs = required_reveal(suited.name, suited.settings)
    cell = MatrixCell(benchmark, row.label(), label=row.label(suited), uses=str(needs.name).lower())
    try:
        planned = plan(spec, datasets)
    except UserError as error:
        lacks = error.needs if isinstance(error, RequirementError) else ""
        return replace(cell, reason=str(error), lacks=lacks), None
    except Exception as error:  # a method that breaks here must not take the others down
        return replace(cell, reason=f"{type(error).__name__}: {error}"), None
    return replace(cell, keys=tuple(planned.run_keys)), planned
