"""Runs written to disk by hand, so that every number of a table or chart is known beforehand."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from driftline.benchmarks.refinement.benchmark import Options
from driftline.benchmarks.test_time.benchmark import Options as StreamOptions
from driftline.record.card import Card, write_card
from driftline.record.parquet import write_rows
from driftline.record.run import Record, Run
from driftline.report.analysis.groups import groups
from driftline.report.analysis.result_table import ResultTable, tabulate
from driftline.report.figures.base import create
from driftline.report.tables.model import Table
from driftline.report.tables.render import render
from driftline.report.tables.result import result_table

COLUMNS = ["metric", "stat", "time", "tau", "value", "low", "high", "n", "unit"]
PERIODS = ["a", "b", "c"]
ROLES = {"frozen": "baseline", "baseline": "baseline", "oracle": "upper-bound"}


def card(key: str, label: str, seed: int, changes: dict[str, Any]) -> dict[str, Any]:
    content: dict[str, Any] = {
        "key": key,
        "label": label,
        "role": ROLES.get(label.partition("(")[0], "method"),
        "run": {
            "benchmark": "timeline",
            "options": {"delta": 0.9, "horizon": None},
            "data": {"name": "digits", "settings": {"noise": 0.2}},
            "model": {"name": "mlp", "settings": {"width": 8}},
            "method": {"name": label, "settings": {"lr": 0.1}},
            "reveal": {"delay": 0, "budget": None},
            "seed": seed,
        },
        "question": "How long?",
        "paper": "A paper",
        "departures": ["One thing is done otherwise."],
        "protocol": {
            "periods": PERIODS,
            "samples_per_period": [9, 9, 9],
            "held_out_per_period": [1, 1, 1],
            "revealed": "labels",
            "label_delay_steps": 0,
            "labels_per_step": "all",
        },
        "metrics": {"sh": {"formula": "-", "delta": 0.9}, "ood": {"formula": "-", "horizon": None}},
        "data": {"name": "digits", "fingerprint": "f0", "samples": 30, "notes": []},
        "compute": {"forward_macs": 1_000_000_000, "backward_macs": 500_000_000},
        "code": {"driftline": "0.1.0", "sources": "s0"},
    }
    for path, value in changes.items():
        at = content
        *parents, last = path.split(".")
        for name in parents:
            at = at[name]
        at[last] = value
    return content


def cell_rows(metric: str, matrix: dict[tuple[str, str], float]) -> list[tuple[Any, ...]]:
    return [(metric, "each", t, tau, v, v - 0.05, v + 0.05, 10, "examples") for (t, tau), v in matrix.items()]


def summary_rows(values: dict[tuple[str, str], float]) -> list[tuple[Any, ...]]:
    return [(metric, stat, None, None, v, v - 0.1, v + 0.2, 2, "times") for (metric, stat), v in values.items()]


def write_run(folder: Path, label: str, seed: int, rows: Iterable[tuple[Any, ...]], **changes: Any) -> Run:
    """A run's folder in the format of the store; `changes` are paths into the card, with __ for the dots."""
    paths = {path.replace("__", "."): value for path, value in changes.items()}
    key = f"{len(list(folder.glob('*'))):03d}"
    run = Run(folder / key)
    run.folder.mkdir(parents=True)
    frame = pd.DataFrame(list(rows), columns=COLUMNS).astype({"time": "string", "tau": "string"})
    write_rows(run.folder / "scores.parquet", [pa.Table.from_pandas(frame, preserve_index=False)])
    write_rows(run.folder / "probes.parquet", [pa.table({"correct": [1.0] * 20})])
    write_card(run.folder, Card.model_validate(card(key, label, seed, paths)))
    return run


def add_table(run: Run, name: str, columns: Any) -> None:
    """Give a run a table, or another one, and a card that says so."""
    write_rows(run.folder / f"{name}.parquet", [pa.table(columns)])
    write_card(run.folder, run.card)
    for known in ("card", "_verified"):
        vars(run).pop(known, None)


@pytest.fixture
def make_record(tmp_path: Path) -> Callable[..., Record]:
    """A record of runs with these OOD means: {method: [one value per seed]}; further card changes by keyword."""

    def make(values: dict[str, list[float]], **changes: Any) -> Record:
        runs = []
        for label, by_seed in values.items():
            for seed, value in enumerate(by_seed):
                rows = summary_rows({("ood", "mean"): value, ("sh", "mean"): 10 * value})
                runs.append(write_run(tmp_path, label, seed, rows, **changes))
        return Record(runs)

    return make


@pytest.fixture
def full_record(tmp_path: Path) -> Record:
    return write_full_record(tmp_path)


def write_full_record(folder: Path) -> Record:
    """Two methods, two seeds, with cells and values per time; one label is hostile."""
    runs = []
    for label, bonus in (("erm", 0.0), ("<script>alert(1)</script>", 0.1)):
        for seed in (0, 1):
            v = 0.5 + bonus + 0.02 * seed
            accuracy = {
                ("a", "a"): v + 0.2,
                ("a", "b"): v,
                ("a", "c"): v - 0.1,
                ("b", "b"): v + 0.2,
                ("b", "c"): v,
                ("c", "c"): 0.8,
            }
            transfer = {("a", "a"): 1.0, ("a", "b"): v, ("b", "b"): 1.0}
            means = {(name, "mean"): v for name in ("id", "ood", "tas", "sh", "dh")}
            each = [
                (name, "each", t, None, v, v - 0.1, v + 0.1, 10, "examples")
                for name in ("id", "ood", "tas")
                for t in "ab"
            ]
            alarm = ("dh", "false-alarm", None, None, 0.03, float("nan"), float("nan"), 2, "times")
            rows = [*cell_rows("accuracy", accuracy), *cell_rows("ttr", transfer), *each, *summary_rows(means), alarm]
            runs.append(write_run(folder, label, seed, rows))
    return Record(runs)


def refined(
    folder: Path, label: str, seed: int, scores: Iterable[tuple[Any, ...]], answers: list[list[Any]], **given: Any
) -> Run:
    """A run of refinement in two clusters: its scores, and its answer to each query of each step; "x" is right."""
    options = Options(episodes=max(1, len(answers)), queries_per_episode=2, **given.pop("options", {}))
    dynamics = f"alpha={options.alpha:g}, beta={options.beta:g}, gamma={options.gamma:g}"
    name = given.pop("data", "digit-clusters")
    settings = given.pop("settings", {})
    changes = {
        "run__benchmark": "refinement",
        "run__options": options.model_dump(mode="json"),
        "run__data": {"name": name, "settings": {}},
        "run__method": {"name": label.partition("(")[0], "settings": settings},
        "data__name": name,
        "metrics": {},
        "protocol__protocol": dynamics,
        "protocol__periods": [str(t + 1) for t in range(len(answers))],
        "protocol__stream": options.number(seed),
        "protocol__clusters": ["upstream", "odd"],
        "protocol__composition": [[row.count("x"), len(row) - row.count("x")] for row in given.pop("asked", answers)],
    }
    run = write_run(folder, label, seed, scores, **{**changes, **given})
    rows = [(t, k % 2, answer) for t, row in enumerate(answers) for k, answer in enumerate(row)]
    if rows:
        step, group, prediction = zip(*rows, strict=True)
        right = [float(answer == "x") for answer in prediction]
        table = {"step": step, "group": group, "prediction": prediction, "correct": right}
        add_table(run, "answers", {name: list(values) for name, values in table.items()})
    return run


def adapted(folder: Path, label: str, seed: int, curve: list[float], **given: Any) -> Run:
    """A run of test-time with ten images in each window: its accuracy there, and what it showed of its inside."""
    options = StreamOptions(images=10 * len(curve), batch=10, **given.pop("options", {}))
    scores = [*at("stream-accuracy", **{f"t{10 * k}": value for k, value in enumerate(curve, 1)})]
    scores += [final(metric, sum(curve) / len(curve), "mean") for metric in ("stream-accuracy", "batch-accuracy")]
    changes = {
        "run__benchmark": "test-time",
        "run__options": options.model_dump(mode="json"),
        "run__data": {"name": "cifar10", "settings": {}},
        "run__method": {"name": label.partition("(")[0], "settings": given.pop("settings", {})},
        "data__name": "cifar10",
        "metrics": {},
        "protocol": {
            "protocol": options.order,
            "schedule": given.pop("schedule", {"order": ["fog"], "paths": {"fog": [[5.0, 0.0]]}, "mixed": False}),
            **{"revealed": "inputs", "label_delay_steps": 0, "labels_per_step": "all"},
        },
    }
    diagnostics = given.pop("diagnostics", [])
    run = write_run(folder, label, seed, scores, **{**changes, **given})
    if diagnostics:
        rows = [(step, name, value) for step, shown in enumerate(diagnostics) for name, value in shown.items()]
        steps, names, values = (list(column) for column in zip(*rows, strict=True))
        add_table(run, "diagnostics", {"step": steps, "gauge": names, "value": values})
    return run


def final(metric: str, value: float, stat: str = "final") -> tuple[Any, ...]:
    return (metric, stat, None, None, value, value - 0.1, value + 0.1, 64, "examples")


def at(metric: str, **by_time: float) -> list[tuple[Any, ...]]:
    """A metric over time: at("oec", t1=0.5)."""
    rows = ((time[1:], value) for time, value in by_time.items())
    return [(metric, "each", time, None, v, v - 0.1, v + 0.1, 64, "examples") for time, v in rows]


def table_of(name: str, record: Record, **options: Any) -> pd.DataFrame:
    """The table of a figure."""
    return create(name, options).table(record)


def results(record: Record) -> tuple[ResultTable, ...]:
    """The results of each group."""
    return tuple(tabulate(group) for group in groups(record))


def render_results(found: Iterable[ResultTable], format: str) -> str:
    return render([result_table(one) for one in found], format)


def heads(table: Table) -> tuple[str, ...]:
    return tuple(column.name for column in table.columns)
