"""The matrix of methods and benchmarks from runs whose numbers are known."""

from __future__ import annotations

import csv
import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from tests.report.conftest import summary_rows, write_run

from driftline.errors import UserError
from driftline.io.checksums import read_checked, write_checked
from driftline.record.run import Record, Run
from driftline.report.analysis.matrix import MatrixView, require_views, views
from driftline.report.page.page import page
from driftline.report.tables.matrix import matrix_table, notes
from driftline.report.tables.render import render

OOD = {"frozen": [0.5, 0.6, 0.4], "tent": [0.55, 0.65, 0.45], "ewc": [0.9, 0.8, 0.7]}
STREAM = {"frozen": [0.5, 0.5, 0.5], "tent": [0.3, 0.31, 0.29]}
WHY = "ewc needs all labels, and test-time reveals inputs only. ewc runs in: timeline"


def cell(benchmark: str, method: str, runs: list[Run], **more: str) -> dict[str, Any]:
    uses = "labels" if method == "ewc" else "inputs"
    details = {"label": method, "uses": uses, "reason": ""} | more
    return {"benchmark": benchmark, "method": method, "keys": [run.key for run in runs], **details}


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """frozen, tent and ewc in timeline; in test-time ewc cannot run, and tent is called otherwise on its cards."""
    folder, cells, runs = tmp_path / "runs", [], []
    for method, values in OOD.items():
        found = [write_run(folder, method, seed, summary_rows({("ood", "mean"): v})) for seed, v in enumerate(values)]
        cells.append(cell("timeline", method, found))
        runs += found
    for method, values in STREAM.items():
        rows = [summary_rows({("stream-accuracy", "mean"): v}) for v in values]
        label = "tent(lr=0.001)" if method == "tent" else method
        found = [write_run(folder, label, k, row, run__benchmark="test-time") for k, row in enumerate(rows)]
        cells.append(cell("test-time", method, found, label=label))
        runs += found
    cells.append(cell("test-time", "ewc", [], reason=WHY, lacks="all labels"))
    columns = [{"name": "timeline", "reveals": "labels"}, {"name": "test-time", "reveals": "inputs"}]
    content = {"methods": list(OOD), "seeds": [0, 1, 2], "benchmarks": columns, "cells": cells}
    write_checked(tmp_path / "matrices" / "m.json", content)
    return Record(runs)


@pytest.fixture
def view(record: Record) -> MatrixView:
    (found,) = views(record)
    return found


def test_numbers_ranks_and_gains_by_hand(view: MatrixView) -> None:
    cell = view.cells["ewc", "timeline"]
    assert cell.score is not None
    assert cell.gain is not None
    assert cell.score.value == pytest.approx(0.8)
    assert (cell.score.seeds, cell.score.n, cell.score.unit) == (3, 2, "times")
    # gains 0.4, 0.2 and 0.3: mean 0.3, standard error 0.1 / sqrt 3, t(2) = 4.3027
    assert cell.gain.value == pytest.approx(0.3)
    assert cell.gain.low == pytest.approx(0.3 - 4.3027 * 0.1 / 3**0.5, abs=1e-4)
    ranks = {method: view.cells[method, "timeline"].rank for method in view.methods}
    assert ranks == {"frozen": 3, "tent": 2, "ewc": 1}
    assert view.cells["frozen", "timeline"].gain is None, "it does not gain on itself"


def test_a_score_that_is_not_a_number_has_no_rank(tmp_path: Path) -> None:
    runs, cells = [], []
    for benchmark, metric in (("timeline", "ood"), ("test-time", "stream-accuracy")):
        for method, value in (("frozen", 0.5), ("tent", 0.6), ("ewc", float("nan"))):
            rows = summary_rows({(metric, "mean"): value})
            runs.append(write_run(tmp_path / "runs", method, 0, rows, run__benchmark=benchmark))
            cells.append(cell(benchmark, method, runs[-1:]))
    columns = [{"name": name, "reveals": "labels"} for name in ("timeline", "test-time")]
    content = {"methods": list(OOD), "seeds": [0], "benchmarks": columns, "cells": cells}
    write_checked(tmp_path / "matrices" / "m.json", content)
    (view,) = views(Record(runs))
    assert view.ranks == {"frozen": 2, "tent": 1}


def test_an_empty_cell_says_in_a_few_words_why(view: MatrixView) -> None:
    assert view.cells["ewc", "test-time"].brief_reason == "needs all labels"


def test_mean_ranks_are_of_methods_that_run_in_every_column(view: MatrixView) -> None:
    # among frozen and tent alone: tent first in timeline, second in test-time
    assert view.ranks == {"frozen": 1.5, "tent": 1.5}


def test_a_cell_that_cannot_run_says_why(view: MatrixView) -> None:
    cell = view.cells["ewc", "test-time"]
    assert cell.score is None
    assert cell.short_reason == "ewc needs all labels, and test-time reveals inputs only"
    text = render([matrix_table(view)], "md")
    assert "| ewc | 80.0 [55.2, 100.0] · +30.0 [5.2, 54.8], rank 1 · all labels | – (1) |" in text.replace("**", "")
    assert "1. ewc needs all labels, and test-time reveals inputs only\n" in text


def test_markdown_says_what_is_shown_and_marks_the_best_by_test(view: MatrixView) -> None:
    (line,) = [line for line in render([matrix_table(view)], "md").splitlines() if line.startswith("| tent")]
    timeline, stream = line.split(" | ")[1:]
    assert "all labels, needs inputs only" in timeline
    assert "+5.0 [5.0, 5.0], rank 2" in timeline
    assert stream.startswith("30.0 [")
    assert "-20.0 [-22.5, -17.5], rank 2 · inputs only" in stream
    assert "**80.0**" in render([matrix_table(view)], "md"), "tent is worse than ewc by 0.35, 0.15 and 0.25"


def test_settings_of_a_column_are_said(view: MatrixView) -> None:
    assert "Settings in test-time: tent(lr=0.001)." in notes(view)


@pytest.mark.parametrize("budget", [None, 10**9])
def test_equal_and_unequal_compute_are_noted(tmp_path: Path, budget: int | None) -> None:
    cells = []
    for method, macs in (("frozen", 0), ("tent", 10**8), ("ewc", 9 * 10**8)):
        more = {"compute": {"forward_macs": 2 * 10**8, "backward_macs": macs}, "run__budget_macs": budget}
        run = write_run(tmp_path / "runs", method, 0, summary_rows({("ood", "mean"): 0.5}), **more)
        cells.append(cell("timeline", method, [run]))
    columns = [{"name": "timeline", "reveals": "labels"}]
    content = {"methods": ["frozen", "tent", "ewc"], "seeds": [0], "benchmarks": columns, "cells": cells}
    write_checked(tmp_path / "matrices" / "m.json", content)
    (found,) = views(Record(Run(folder) for folder in (tmp_path / "runs").iterdir()))
    text = " ".join(notes(found))
    assert "timeline: Caution, unequal compute: ewc has 3.67 times the median" in text, "1.1 of 0.3"
    assert ("Equal compute: training was stopped where a run had spent its budget of 1 GMAC" in text) is bool(budget)
    assert "spent 1.1 times" not in text, "not more than a tenth over"


def test_csv_has_a_row_for_every_cell(view: MatrixView) -> None:
    rows = list(csv.DictReader(StringIO(render([matrix_table(view)], "csv"))))
    assert len(rows) == 6
    found = {(row["method"], row["benchmark"]): row for row in rows}
    assert float(found["tent", "test-time"]["gain"]) == pytest.approx(-0.2)
    assert found["tent", "timeline"]["uses"] == "inputs only"
    assert found["ewc", "test-time"]["reason"] == WHY, "the whole of it"
    assert found["ewc", "test-time"]["value"] == ""


def test_latex_escapes_and_closes(view: MatrixView) -> None:
    text = render([matrix_table(view)], "latex")
    assert r"{}tent & " in text
    assert text.count(r"\begin{") == text.count(r"\end{")
    rows = text.split(r"\midrule")[1].split(r"\bottomrule")[0].strip().splitlines()
    assert {row.count(" & ") for row in rows} == {2}
    with pytest.raises(UserError, match="no format 'mdd'"):
        render([matrix_table(view)], "mdd")


def test_the_page_shows_the_matrix_and_no_markup_from_names(record: Record, tmp_path: Path) -> None:
    file = tmp_path / "matrices" / "m.json"
    write_checked(file, json.loads(json.dumps(read_checked(file)).replace(WHY, "<script>alert(1)</script>")))
    text = page(record)
    assert 'class="matrix"' in text
    assert "3 methods in 2 benchmarks" in text
    assert "<script>alert(1)" not in text
    assert '<td class="up"' in text


def test_half_a_matrix_says_what_is_missing(record: Record) -> None:
    (found,) = views(Record(run for run in record.runs if run.method != "ewc"))
    assert found.cells["ewc", "timeline"].short_reason == "not finished, or without a score"
    assert found.cells["tent", "timeline"].rank == 1


def test_a_method_that_lost_a_seed_has_a_number_and_no_rank(record: Record) -> None:
    (found,) = views(Record(run for run in record.runs if (run.method, run.seed) != ("ewc", 2)))
    cell = found.cells["ewc", "timeline"]
    assert cell.score is not None
    assert cell.score.value == pytest.approx(0.85)
    assert cell.rank is None
    assert found.cells["tent", "timeline"].rank == 1


def test_runs_without_a_matrix(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    alone = Record([write_run(tmp_path / "runs", "ft", 0, summary_rows({("ood", "mean"): 0.5}))])
    assert views(alone) == []
    with pytest.raises(UserError, match="driftline run matrix"):
        require_views(alone)
    (tmp_path / "matrices").mkdir()
    (tmp_path / "matrices" / "m.json").write_text("{")
    assert views(alone) == []
    assert "a matrix is left out" in caplog.text
