"""The tables of Tracking Adaptation Time and of Wild-Time: every number, mark and printed line by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from driftline.errors import UserError
from driftline.record.run import Record, Run
from driftline.report.tables.model import Table
from driftline.report.tables.papers import paper_tables
from driftline.report.tables.render import render

from ...conftest import heads, summary_rows, write_run

STREAM = {
    **{("id", "mean"): 0.9, ("ood", "mean"): 0.8, ("ood", "minimum"): 0.5},
    **{("tas", "mean"): 0.95, ("tas", "minimum"): 0.7, ("sh-paper", "mean"): 4.5, ("dh-paper", "mean"): 6.5},
    **{("sh-paper", "false-alarm"): 0.03, ("dh-paper", "false-alarm"): 0.8},
}
FIXED = {("fix-id", "mean"): 0.9, ("fix-ood", "mean"): 0.8, ("fix-worst", "mean"): 0.6}


def run(folder: Path, label: str, scores: dict[tuple[str, str], float], data: str, seed: int = 0) -> Run:
    fixed = ("fix-ood", "mean") in scores
    changes: dict[str, Any] = {
        "run__options": {"protocol": "fix" if fixed else "stream"},
        "run__data": {"name": data, "settings": {}},
        "data__name": data,
        "protocol__protocol": "Eval-Fix" if fixed else "Eval-Stream",
    }
    return write_run(folder, label, seed, summary_rows(scores), **changes)


def numbers(grid: Table) -> dict[str, list[float | None]]:
    return {line.title: [entry and round(entry.estimate.value, 6) for entry in line.cells] for line in grid.rows}


def test_table_1_has_shares_and_horizons(tmp_path: Path) -> None:
    runs = [run(tmp_path, label, STREAM, "fmow") for label in ("mine", "ft(updates=150)")]
    shares, horizons = paper_tables(Record(runs), "timeline/table-1")
    source = "ft(updates=150) in temporal-metrics Table 1"
    assert heads(shares) == ("ID", "OOD", "TAS")
    assert numbers(shares) == {
        "ft(updates=150)": [0.9, 0.8, 0.95],
        source: [0.325, 0.271, 0.759],
        "mine": [0.9, 0.8, 0.95],
    }
    assert numbers(horizons)[source] == [5.1, 6.4]
    text = render([shares, horizons], "md")
    assert "| mine | 90.0 [80.0, 100.0] | 80.0 [70.0, 100.0] | 95.0 [85.0, 100.0] |" in text
    assert "| mine | 4.5 [4.4, 4.7] | 6.5 [6.4, 6.7] |" in text  # in periods, not in percent
    assert "if nothing changed: ft(updates=150) SH 3% DH 80%, mine SH 3% DH 80%." in text


def test_table_2_has_averages_and_the_worst(tmp_path: Path) -> None:
    (grid,) = paper_tables(Record([run(tmp_path, "si", STREAM, "yearbook")]), "timeline/table-2")
    assert heads(grid) == ("ID avg", "OOD avg", "OOD min", "TAS avg", "TAS min")
    assert numbers(grid) == {
        "si": [0.9, 0.8, 0.5, 0.95, 0.7],
        "si in temporal-metrics Table 2": [0.938, 0.909, 0.733, 0.962, 0.758],
    }


def test_the_best_are_bold(tmp_path: Path) -> None:
    values = {"erm": (0.80, 0.82, 0.81), "ft": (0.80, 0.83, 0.80), "frozen": (0.50, 0.52, 0.51)}
    runs = [
        run(tmp_path, label, {("ood", "mean"): value}, "digits", seed)
        for label, by_seed in values.items()
        for seed, value in enumerate(by_seed)
    ]
    (grid,) = paper_tables(Record(runs), "timeline/table-2")
    assert {line.name: entry.highlight.bold for line in grid.rows for entry in line.cells if entry} == {
        **{"erm": True, "ft": True, "frozen": False}
    }


def test_wild_time_table_1(tmp_path: Path) -> None:
    runs = [run(tmp_path, label, FIXED, data) for data in ("fmow", "yearbook") for label in ("erm-all", "ft")]
    (grid,) = paper_tables(Record(runs), "timeline/wild-time-table-1")
    assert heads(grid) == ("ID", "OOD avg", "OOD worst")
    found = numbers(grid)
    assert list(found) == [
        *("yearbook: erm-all", "yearbook: erm-all in Wild-Time Table 1"),
        *("fmow: erm-all", "fmow: erm-all in Wild-Time Table 1"),
    ]
    assert found["yearbook: erm-all in Wild-Time Table 1"][:2] == [0.9799, 0.7950]
    with pytest.raises(UserError, match="with protocol=fix and the method erm-all"):
        paper_tables(Record([run(tmp_path, "ft", FIXED, "arxiv")]), "timeline/wild-time-table-1")


def test_wild_time_table_2(tmp_path: Path) -> None:
    runs = [run(tmp_path, "si", FIXED, "fmow"), run(tmp_path, "swa", FIXED, "yearbook")]
    (grid,) = paper_tables(Record(runs), "timeline/wild-time-table-2")
    assert heads(grid) == (
        *("yearbook: OOD avg", "yearbook: OOD worst"),
        *("fmow: OOD avg", "fmow: OOD worst"),
    )
    found = numbers(grid)
    assert found["si"] == [None, None, 0.8, 0.6]
    assert found["si in Wild-Time Table 2"][2] == 0.4425
    assert found["swa in Wild-Time Table 2"][1] == 0.6790


def test_a_protocol_without_runs_is_refused(tmp_path: Path) -> None:
    record = Record([run(tmp_path, "si", STREAM, "yearbook")])
    with pytest.raises(UserError, match="no run of timeline with protocol=fix: make one"):
        paper_tables(record, "timeline/wild-time-table-2")
    with pytest.raises(UserError, match="no run of timeline with protocol=stream: make one"):
        paper_tables(Record([]), "timeline/table-1")
