from __future__ import annotations

import io

import pytest
from rich.console import Console

from driftline.cli.printing.draw_table import draw
from driftline.report.analysis.estimates import Estimate
from driftline.report.analysis.highlights import Highlight
from driftline.report.tables.model import Table, TableCell, TableColumn, TableRow

NAMES = ("accuracy now (ID)", "accuracy later (OOD)", "relative to fresh (TAS)", "periods valid (SH)", "GMAC")


def results(title: str = "timeline", method: str = "er(lr=0.1)") -> Table:
    best = Highlight(bold=True)
    number = Estimate(0.125, 0.1, 0.15, seeds=3, n=10, unit="samples")
    cells = tuple(TableCell(number, best if k == 1 else Highlight(), "FA 6%" if k == 3 else "") for k in range(5))
    columns = tuple(TableColumn(name, "mean, %") for name in NAMES)
    note = "Mean over seeds and 95% t-interval over seeds, clipped to possible values, which is a long sentence."
    return Table(title, "method", columns, (TableRow(method, cells), TableRow("ft", cells)), notes=(note,))


def drawn(table: Table, width: int, color: bool = False) -> str:
    file = io.StringIO()
    draw([table], Console(file=file, width=width, force_terminal=color, color_system="standard" if color else None))
    return file.getvalue()


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_no_line_is_wider_than_the_window_and_no_number_is_cut(width: int) -> None:
    text = drawn(results(), width)
    assert max(map(len, text.splitlines())) <= width
    assert text.count("12.5") == 2 * len(NAMES)
    assert text.count("[10.0, 15.0]") == 2 * len(NAMES), "an interval stays on one line"
    parts = text.count("method")
    assert parts == {40: 4, 60: 2, 80: 2, 120: 1, 200: 1}[width], "each part names the rows again"
    assert text.count("er(lr=0.1)") == parts


def test_only_the_number_is_bold_and_notes_are_dim() -> None:
    text = drawn(results(), 200, color=True)
    assert text.count("\x1b[1m12.5\x1b[0m") + text.count("\x1b[1m        12.5\x1b[0m") <= 2
    assert "\x1b[2m[10.0, 15.0]\x1b[0m" in text
    assert "\x1b[1m12.5" in text


def test_names_cannot_control_the_terminal_or_be_taken_for_markup() -> None:
    text = drawn(results("[red]x\x1b[2J", "[bold]\x07er"), 200)
    assert "[red]x" in text
    assert "[bold]" in text
    assert "\x1b" not in text
    assert "\x07" not in text


def test_a_name_wider_than_the_window_is_folded() -> None:
    text = drawn(results(method="m" * 90), 60)
    assert max(map(len, text.splitlines())) <= 60
    assert text.count("m" * 20) >= 4
