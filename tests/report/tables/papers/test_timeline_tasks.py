"""The table of sequences of tasks: our scores, and the printed average accuracies of the same sequence beside them."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from driftline.errors import UserError
from driftline.record.run import Record, Run
from driftline.report.tables.papers import paper_tables

from ...conftest import heads, summary_rows, write_run
from .test_test_time import numbers

SCORES = {"average-accuracy": 0.3, "forgetting": 0.6, "backward-transfer": -0.6, "average-incremental-accuracy": 0.4}
PRINTED = pd.read_csv(str(files("driftline.published") / "timeline-tasks.csv"))


def run(folder: Path, label: str, data: dict[str, Any], protocol: str = "tasks", seed: int = 0, more: float = 0) -> Run:
    scores = {(name, "mean"): value + more for name, value in SCORES.items()}
    changes = {
        "run__options": {"protocol": protocol},
        "run__data": {"name": "task-sequence", "settings": data},
        "data__name": "task-sequence",
    }
    return write_run(folder, label, seed, summary_rows(scores), **changes)


def split(base: str, tasks: int) -> dict[str, Any]:
    return {"base": base, "kind": "split", "tasks": tasks}


def test_every_printed_number_is_beside_the_same_sequence(tmp_path: Path) -> None:
    for data, rows in PRINTED.groupby("data"):
        of, tasks = data.removeprefix("split ").removesuffix(" tasks").split(", ")
        folder = tmp_path / of
        runs = [run(folder, method, split(of, int(tasks))) for method in set(rows["method"])]
        (table,) = paper_tables(Record(runs), "timeline/tasks")
        assert heads(table) == tuple(
            ["average accuracy", "forgetting", "backward transfer", "average incremental accuracy"]
        )
        shown = {(row.name, row.source): numbers(table)[row.title] for row in table.rows}
        for method in set(rows["method"]):
            assert shown.pop((method, "")) == [0.3, 0.6, -0.6, 0.4]
        assert shown == {(row.method, row.source): [row.value, None, None, None] for row in rows.itertuples()}
        assert "not comparable" in table.notes[-1]


@pytest.mark.parametrize(
    "data", [split("cifar10", 10), split("fashion-mnist", 5), {**split("cifar10", 5), "kind": "permuted"}]
)
def test_other_sequences_have_no_printed_numbers(tmp_path: Path, data: dict[str, Any]) -> None:
    (table,) = paper_tables(Record([run(tmp_path, "der++", data)]), "timeline/tasks")
    assert [row.source for row in table.rows] == [""]


def test_the_best_has_the_least_forgetting_and_the_most_accuracy(tmp_path: Path) -> None:
    data = split("color-digits", 5)
    runs = [run(tmp_path, "a", data, seed=k, more=0.01 * k) for k in range(3)]
    runs += [run(tmp_path, "b(lr=0.1)", data, seed=k, more=0.1 + 0.01 * k) for k in range(3)]
    (table,) = paper_tables(Record(runs), "timeline/tasks")
    bold = {row.name: [entry.highlight.bold for entry in row.cells if entry] for row in table.rows}
    assert bold == {"a": [False, True, False, False], "b(lr=0.1)": [True, False, True, True]}


def test_other_protocols_have_no_such_table(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="protocol=tasks"):
        paper_tables(Record([run(tmp_path, "a", split("cifar10", 5), protocol="stream")]), "timeline/tasks")
