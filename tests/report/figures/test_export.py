"""Figures in print: their width, their letters, and what stands beside them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from driftline.record.run import Record
from driftline.report.figures.base import draw
from driftline.report.figures.export import COLUMN, MIN_FONT, PAGE, save, svg_size

from ..conftest import at, refined, write_run


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """Curves of three metrics, which stand side by side, and a stream of queries of its own."""
    each = [row for name in ("id", "ood", "tas") for row in at(name, ta=0.5, tb=0.4)]
    runs = [write_run(tmp_path, label, seed, each) for label in ("erm", "ft") for seed in (0, 1)]
    answers = [["x", "b"], ["b", "b"], ["x", "x"]]
    return Record([*runs, *(refined(tmp_path, label, 0, [], answers) for label in ("frozen", "er"))])


def test_a_wide_figure_is_as_wide_as_the_page_and_can_be_read(record: Record, tmp_path: Path) -> None:
    frame, chart = draw("curves", Record(record.runs[:4]))
    save(frame, chart, tmp_path / "f.svg")
    text = (tmp_path / "f.svg").read_text()
    assert re.search(rf'<svg [^>]*width="{PAGE:g}pt"', text)
    drawn = float(re.findall(r'viewBox="0 0 ([\d.]+)', text)[0])
    letters = min(float(size) for size in re.findall(r'font-size="([\d.]+)px"', text))
    assert letters * PAGE / drawn > 0.85 * MIN_FONT
    save(frame, chart, tmp_path / "f.pdf")
    assert f"/MediaBox [0 0 {PAGE:g} ".encode() in (tmp_path / "f.pdf").read_bytes().replace(b"[ ", b"[")


def test_a_single_panel_is_as_wide_as_a_column(make_record: Callable[..., Record], tmp_path: Path) -> None:
    frame, chart = draw("pareto", make_record({"erm": [0.5, 0.6], "ft": [0.4, 0.5]}), metric="ood")
    save(frame, chart.properties(width=200), tmp_path / "f.svg")
    text = (tmp_path / "f.svg").read_text()
    assert re.search(rf'<svg [^>]*width="({COLUMN:g}|{PAGE:g})pt"', text)
    assert {"n", "unit", "seeds", "interval"} <= set(pd.read_csv(tmp_path / "f.csv").columns)


def test_differences_say_how_many_queries_they_rest_on(record: Record) -> None:
    frame, _ = draw("disagreement", record)
    assert dict(zip(frame["steps"], frame["n"], strict=True)) == {"t = 1 to 1": 2, "t = 2 to 3": 4}


def test_what_was_left_out_is_one_note_in_short_lines(record: Record) -> None:
    frame, chart = draw("disagreement", record)
    (note,) = frame.attrs["notes"]
    assert "timeline" in note
    assert max(map(len, [chart.title.text, *chart.title.subtitle])) <= 90


def test_svg_size_needs_a_size() -> None:
    assert svg_size('<svg class="marks" width="316" height="62.5" viewBox="0 0 316 62.5">') == (316.0, 62.5)
