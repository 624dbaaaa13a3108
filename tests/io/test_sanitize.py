"""Names from records stay texts on a terminal, in a spreadsheet and in Markdown."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pandas as pd
import pytest

import driftline.cli
from driftline.cli.printing.console import SafeConsole
from driftline.cli.printing.terminal import echo
from driftline.io.sanitize import CsvWriter, escape_control, escape_formula, frame_to_csv
from driftline.report.tables.markdown import escape

ODD = "er\x1b]0;title\x07\x9b31m\u202egnp.exe\u2066\r"
SHOWN = r"er\x1b]0;title\x07\x9b31m\u202egnp.exe\u2066\r"


def test_what_a_terminal_would_obey_is_written_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert escape_control(ODD) == SHOWN
    assert escape_control("plain \tünïcode 中文 ↑\n") == "plain \tünïcode 中文 ↑\n"
    echo(ODD)
    SafeConsole().print(ODD, markup=False, soft_wrap=True)
    assert capsys.readouterr().out == f"{SHOWN}\n{SHOWN}\n"


def test_the_command_line_prints_nowhere_else() -> None:
    allowed = ("terminal", "console", "calibrate", "new")  # the last two count rows, and write a file that prints
    files = [path for path in Path(driftline.cli.__file__).parent.rglob("*.py") if path.stem not in allowed]
    assert len(files) > 15
    past = re.compile(r"typer\.echo\(|(?<![\w.])print\(|sys\.stdout\.write|\bConsole\(")
    lines = [f"{path.name}: {line}" for path in files for line in path.read_text(encoding="utf-8").splitlines()]
    assert [line for line in lines if past.search(line)] == []


@pytest.mark.parametrize("text", ["=cmd|'/c calc'!A0", "+1+1", "-2+3", "@SUM(1)", " =1", "\t=1"])
def test_a_formula_in_a_cell_is_a_text(text: str) -> None:
    assert escape_formula(text) == f"'{text}"


@pytest.mark.parametrize("value", ["-0.5", "+3", "-inf", "-1e-05", "er", "", -3, 0.5, None, "a=b"])
def test_numbers_and_other_texts_stay(value: object) -> None:
    assert escape_formula(value) == value


def test_both_ways_to_csv() -> None:
    frame = pd.DataFrame({"method": ["=1", "er"], "value": [-1.5, 2.0], "@odd": pd.Categorical(["+a", "b"])})
    rows = [["method", "value", "'@odd"], ["'=1", "-1.5", "'+a"], ["er", "2.0", "b"]]
    assert list(csv.reader(io.StringIO(frame_to_csv(frame)))) == rows
    text = CsvWriter()
    for row in (list(frame), *frame.itertuples(index=False)):
        text.writerow(row)
    assert list(csv.reader(io.StringIO(str(text)))) == rows


def test_markdown_has_no_html_and_no_link() -> None:
    assert escape("<img src=x> ![a](http://x) a|b A[t,t]") == r"\<img src=x> ![a]\(http://x) a\|b A[t,t]"
