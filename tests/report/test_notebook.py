"""What a notebook shows of a record: tables as HTML, figures as Altair charts."""

from __future__ import annotations

import re

import pytest

import driftline
from driftline.errors import UserError
from driftline.record.run import MAX_SHOWN, Record


def test_a_record_shows_its_results_and_escapes_names(full_record: Record) -> None:
    html = full_record._repr_html_()
    assert "Record of 4 run(s)" in html
    cells = re.sub(r"<[^>]+>", " ", html).split()
    assert cells.count("61.0") >= 3, "id, ood and tas of the second method"
    assert "&lt;script&gt;alert(1)" in html
    assert "<script" not in html
    assert html.index("<details>") > html.rindex("</table>"), "definitions fold away below the numbers"


def test_no_run_and_many_runs_show_only_their_names(full_record: Record) -> None:
    assert "<table" not in Record(())._repr_html_()
    many = Record(full_record.runs[:1] * (MAX_SHOWN + 1))._repr_html_()
    assert "<table" not in many
    assert f"{MAX_SHOWN + 1} run(s): erm" in many


def test_a_table_takes_the_options_of_the_command_and_writes_every_format(full_record: Record) -> None:
    table = full_record.table(metrics=["ood"], methods=["erm"])
    assert str(table) == driftline.table(full_record, metrics=["ood"], methods=["erm"])
    assert table.text("latex") == driftline.table(full_record, "latex", metrics=["ood"], methods=["erm"])
    assert "TAS" not in table._repr_html_().partition("<details>")[0]
    with pytest.raises(UserError, match="csv has one line for each number"):
        full_record.table(precision=0).text("csv")


def test_a_plot_is_a_figure_or_a_metric_over_time(full_record: Record) -> None:
    chart = full_record.plot("tas", methods=["erm"], title="Mine").to_dict()
    assert chart == full_record.plot("curves", metric="tas", methods=["erm"], title="Mine").to_dict()
    assert "Mine" in str(chart["title"])
    assert "alert(1)" not in str(chart)
    assert chart != full_record.plot("ood", methods=["erm"], title="Mine").to_dict()
    with pytest.raises(UserError, match="no figure or metric 'tass'"):
        full_record.plot("tass")
