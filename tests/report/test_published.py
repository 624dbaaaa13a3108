"""Published numbers stand beside ours, are never mistaken for ours, and agree with the papers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from driftline import published
from driftline.record import Record
from driftline.report.notes import answer
from driftline.report.tables import render, result_table


@pytest.mark.parametrize(
    ("data", "protocol", "method", "metric", "stat", "value"),
    [
        ("yearbook", "Eval-Fix", "erm-all", "fix-id", "mean", 0.9799),
        ("yearbook", "Eval-Fix", "erm-all", "fix-ood", "mean", 0.7950),
        ("yearbook", "Eval-Fix", "swa", "fix-worst", "mean", 0.6790),
        ("fmow", "Eval-Fix", "si", "fix-ood", "mean", 0.4425),
        ("yearbook", "Eval-Stream", "moco-hat", "tas", "minimum", 0.893),
        ("yearbook", "Eval-Stream", "a-gem", "ood", "minimum", 0.565),
    ],
)
def test_numbers_are_those_of_the_papers(
    data: str, protocol: str, method: str, metric: str, stat: str, value: float
) -> None:
    found = published.numbers("timeline", data, protocol)
    assert [n.value for n in found if (n.method, n.metric, n.stat) == (method, metric, stat)] == [value]


def test_printed_rows_follow_our_own_and_never_win(make_record: Callable[..., Record]) -> None:
    record = make_record({"ft": [0.50, 0.60, 0.70]})
    for run in record.runs:
        run.card["data"]["name"] = "yearbook"
        run.card["protocol"]["protocol"] = "Eval-Stream"
    (table,) = result_table(record)
    lines = render([table], "md").splitlines()
    ours = next(k for k, line in enumerate(lines) if line.startswith("| ft |"))
    assert lines[ours + 1].startswith("| ft in temporal-metrics Table 2 | 92.4 |")
    assert "as printed in that paper" in render([table], "md")
    assert "92.4" not in answer(table)
    assert "60.0" in answer(table)
    assert "temporal-metrics Table 2" in render([table], "latex")
    assert "not printed" in render([table], "csv")
