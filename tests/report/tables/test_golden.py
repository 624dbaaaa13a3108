"""Tables of one fixed record in all formats, letter by letter: `golden/` holds what they should be.

The record is written by hand. Of its four methods `near` differs from the best one by a paired t test alone (p = .04)
but not after Holm's correction for three comparisons, and the oracle does not compete. Names try to break every format.
"""

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from scipy import stats

from driftline.record.run import Record
from driftline.report.analysis.estimates import Estimate
from driftline.report.analysis.highlights import Highlight
from driftline.report.analysis.result_table import ResultTable
from driftline.report.tables.comparison import comparison_tables
from driftline.report.tables.model import Table, TableCell, TableColumn, TableRow
from driftline.report.tables.ranking import ranking_tables
from driftline.report.tables.render import render
from driftline.report.tables.result import result_tables

from ..conftest import results

GOLDEN = Path(__file__).parents[1] / "golden"
ENDINGS = {"md": "md", "latex": "tex", "csv": "csv"}
KINDS = ("results", "grid", "comparisons", "ranks")
VALUES = {
    "a|b_[50%]&{}": [0.70, 0.72, 0.74, 0.80],
    "near": [0.69, 0.69, 0.71, 0.79],
    "<far>$^~#\\": [0.50, 0.51, 0.55, 0.58],
    "level": [0.70, 0.71, 0.75, 0.79],
    "oracle": [0.90, 0.92, 0.94, 0.99],
}


@pytest.fixture
def record(make_record: Callable[..., Record], monkeypatch: pytest.MonkeyPatch) -> Record:
    from driftline.benchmarks.timeline.benchmark import Timeline

    monkeypatch.setattr(Timeline, "headline_metrics", (("ood", "mean"), ("sh", "mean"), ("dh", "mean")))
    one = make_record(VALUES, protocol__protocol="walk & see")
    changes = {"data__name": "clouds", "run__data": {"name": "clouds", "settings": {}}}
    elsewhere = {"near": [0.6, 0.7], "level": [0.5, 0.6], "a|b_[50%]&{}": [0.7, 0.6], "late": [0.1, 0.2]}
    other = make_record(elsewhere, **changes)
    return Record([*one.runs, *other.runs])


def grid() -> Table:
    """A paper's table: ours in bold and italic by its rule, printed numbers beside, means over several networks."""
    ours = (
        TableCell(Estimate(0.5, 0.4, 0.6, seeds=3, n=64, unit="examples"), Highlight(bold=True)),
        TableCell(Estimate(0.25, seeds=1, n=2000, unit="examples"), Highlight(italic=True)),
        TableCell(Estimate(0.75, 0.7, 0.8, seeds=3, n=64, unit="examples", cells=2), Highlight(bold=True, italic=True)),
    )
    rows = (TableRow("er_[k=3]", ours), TableRow("er_[k=3]", (TableCell(Estimate(0.625)), None, None), "A & B Table 1"))
    columns = tuple(map(TableColumn, ("CLR", "R&L", "mean")))
    return Table("Table 1: 100% of x_1", "method", columns, rows, ("Bold: best.",))


def rendered(kind: str, record: Record, format: str) -> str:
    make = {"results": result_tables, "comparisons": comparison_tables, "ranks": ranking_tables}
    return render([grid()] if kind == "grid" else make[kind](record), format)


def parted(text: str) -> tuple[list[str], list[float]]:
    """The words of a CSV and its numbers, whose last digits machines may differ in."""
    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
    number = re.compile(r"nan|-?\d[\d.e-]*")
    return (
        ["#" if number.fullmatch(cell) else cell for cell in cells],
        [float(cell) for cell in cells if number.fullmatch(cell)],
    )


@pytest.mark.parametrize("format", ENDINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_as_it_was(kind: str, format: str, record: Record) -> None:
    found, expected = rendered(kind, record, format), (GOLDEN / f"{kind}.{ENDINGS[format]}").read_text()
    if format == "csv":
        words, numbers = parted(found)
        expected_words, expected_numbers = parted(expected)
        assert words == expected_words
        assert numbers == pytest.approx(expected_numbers, rel=1e-9, abs=1e-12, nan_ok=True)
    else:
        assert found == expected


def test_the_golden_numbers_are_right(record: Record) -> None:
    """Computed here from the values above, so that the files are not merely old output of the code."""
    best, near, far, level = (VALUES[name] for name in ("a|b_[50%]&{}", "near", "<far>$^~#\\", "level"))
    p_near, p_far, p_level = (stats.ttest_rel(best, other).pvalue for other in (near, far, level))
    assert p_near < 0.05 < 2 * p_near
    assert 3 * p_far < 0.05 < p_level
    table: ResultTable = next(t for t in results(record) if "digits" in t.group.title)
    bold = {row.method for row in table.rows if row.cells[0] and row.cells[0].best}
    assert bold == {"a|b_[50%]&{}", "near", "level"}
    rows = {
        (row["first"], row["second"]): row
        for row in csv.DictReader(io.StringIO((GOLDEN / "comparisons.csv").read_text()))
        if (row["metric"], row["group"].split(" · ")[1]) == ("ood", "digits")
    }
    every = {pair: stats.ttest_rel(VALUES[pair[0]], VALUES[pair[1]]).pvalue for pair in rows}
    assert len(every) == 10
    ordered = sorted(every, key=lambda pair: every[pair])
    least = 0.0
    for k, pair in enumerate(ordered):
        least = max(least, min(1.0, every[pair] * (10 - k)))
        assert float(rows[pair]["p"]) == pytest.approx(least)


def test_latex_is_well_formed(record: Record) -> None:
    """As many cells in every row as columns, braces that match, and nothing special left bare."""
    for kind in KINDS:
        text = rendered(kind, record, "latex")
        bare = re.sub(r"\\[\\{}&%$#_]", "", text)
        assert bare.count("{") == bare.count("}")
        bodies = re.findall(r"\\begin{tabular}{(l r*.*?)\\end{tabular}".replace(" ", ""), text, flags=re.S)
        assert bodies
        for body in bodies:
            width = len(body[: body.index("}")])
            rows = [row for row in body.splitlines()[1:] if row.endswith(r"\\")]
            assert rows
            assert {len(re.findall(r"(?<!\\)&", row)) + 1 for row in rows} == {width}
        labels = re.findall(r"\\label{(.*?)}", text)
        assert len(labels) == len(set(labels)) == text.count(r"\caption{")
