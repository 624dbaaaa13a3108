"""The table of error per corruption, by hand, and the printed rows beside it."""

from __future__ import annotations

import math
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from driftline.errors import UserError
from driftline.record.run import Record, Run
from driftline.report.tables.papers import paper_tables
from driftline.report.tables.papers.test_time_corruptions import STANDARD

from ...conftest import adapted, add_table, heads
from .test_test_time import numbers

SOURCE = "VCoTTA Tables 1-3, WRN-28-10"
MEANS = "benchmark page of ROID's authors, WRN-28-10"
KINDS = {
    "continual, severity 5": {"order": "standard"},
    "continual sorted by class, severity 5": {"label_order": "chain", "class_correlation": 1.0},
    "mixed, severity 5": {"order": "mixed"},
    "reset at each corruption, severity 5": {"reset": "domain"},
    "reset at each corruption sorted by class, severity 5": {
        **{"reset": "domain", "label_order": "chain", "class_correlation": 1.0}
    },
}


def run(folder: Path, label: str, seed: int, order: list[str], correct: str, **given: Any) -> Run:
    """A run with two answers per visit of a corruption; after the last one the first comes again."""
    paths = {name: [[5.0, 0.0]] for name in order}
    schedule = {"order": order, "paths": paths, "mixed": False}
    options = {"order": "cin-c", **given.pop("options", {})}
    found = adapted(folder, label, seed, [0.5], options=options, schedule=schedule, **given)
    groups = [k // 2 for k in range(len(correct))]
    add_table(found, "answers", {"group": groups, "correct": [letter == "y" for letter in correct]})
    return found


def test_errors_and_printed_rows(tmp_path: Path) -> None:
    found = [
        run(tmp_path, "bn", 0, ["snow", "fog"], "yyynnn"),  # snow: 2 of 4 wrong, in two visits; fog: 1 of 2
        run(tmp_path, "bn", 1, ["fog", "snow"], "yynnyn"),  # fog: 1 of 4; snow: 2 of 2
        run(tmp_path, "mine", 0, ["snow", "fog"], "yyynyy"),
    ]
    (table,) = paper_tables(Record(found), "test-time/corruptions")
    assert heads(table) == ("snow", "fog", "mean")  # the usual order, not that of the stream
    assert numbers(table) == {
        "bn": [0.75, 0.375, 0.5625],
        f"bn in {SOURCE}": [0.173, 0.153, 0.204],
        f"bn in {MEANS}": [None, None, 0.204],
        "mine": [0.0, 0.5, 0.25],
    }
    assert "not comparable" in table.notes[-1]


def test_other_orders_have_no_such_table(tmp_path: Path) -> None:
    found = adapted(tmp_path, "bn", 0, [0.5], options={"order": "gradual"})
    with pytest.raises(UserError, match="with order=standard, cin-c or mixed"):
        paper_tables(Record([found]), "test-time/corruptions")


@pytest.mark.parametrize("other", [{"severity": 3.0}, {"label_order": "practical"}, {"label_order": "chain"}])
def test_other_streams_have_no_printed_rows(tmp_path: Path, other: dict[str, Any]) -> None:
    (table,) = paper_tables(Record([run(tmp_path, "bn", 0, ["fog"], "yn", options=other)]), "test-time/corruptions")
    assert [row.source for row in table.rows] == [""]


def test_a_method_has_its_printed_row_at_other_settings_too(tmp_path: Path) -> None:
    given = {"options": {"reset": "domain"}}
    found = [run(tmp_path, label, 0, ["fog"], "yn", **given) for label in ("note", "lame(n_neighbors=3)")]
    (table,) = paper_tables(Record(found), "test-time/corruptions")
    assert numbers(table)["note in NOTE README, ResNet-18"] == [None, 0.201]
    assert numbers(table)["lame(n_neighbors=3) in NOTE README, ResNet-18"] == [None, 0.441]


def printed() -> pd.DataFrame:
    return pd.read_csv(str(files("driftline.published") / "test-time-corruptions.csv"))


def test_printed_means_are_those_of_their_rows() -> None:
    for _, row in printed().groupby(["data", "protocol", "method", "source"]):
        values = row.set_index("stat")["value"]
        assert set(values.index) in ({*STANDARD, "mean"}, {"mean"})
        if len(values) > 1:
            assert values[list(STANDARD)].mean() == pytest.approx(values["mean"], abs=0.0011)


def test_every_printed_number_is_shown(tmp_path: Path) -> None:
    for (data, kind), rows in printed().groupby(["data", "protocol"]):
        given = {"run__data": {"name": data, "settings": {}}, "data__name": data}
        found = [
            run(tmp_path / data / kind, method, 0, list(STANDARD), "y" * 30, options=KINDS[kind], **given)
            for method in set(rows["method"])
        ]
        (table,) = paper_tables(Record(found), "test-time/corruptions")
        shown = {(row.name, row.source): numbers(table)[row.title] for row in table.rows if row.source}
        theirs = rows.set_index(["method", "source", "stat"])["value"].unstack().reindex(columns=[*STANDARD, "mean"])
        assert shown == {
            key: [None if math.isnan(v) else v for v in row] for key, row in theirs.T.to_dict("list").items()
        }
