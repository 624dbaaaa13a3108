"""The paper's tables with our numbers: every mean, mark and printed line by hand."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from driftline import registry
from driftline.benchmarks.seq_to_final.benchmark import Options
from driftline.errors import UserError
from driftline.record.run import Record, Run
from driftline.report.analysis import curves
from driftline.report.analysis.highlights import Highlight, highlights, highlights_of_means
from driftline.report.analysis.summary import answer
from driftline.report.page.page import page
from driftline.report.tables.captions import notes
from driftline.report.tables.model import Table, TableCell
from driftline.report.tables.papers import paper_tables
from driftline.report.tables.render import render

from ...conftest import heads, results, write_run

BOTH, BOLD, PLAIN = Highlight(bold=True, italic=True), Highlight(bold=True), Highlight()
SMALL = {"sizes": [1500, 1000, 1500, 1000], "test": 2000, "oracle": 5000, "epochs": 15}
Make = Callable[..., list[Run]]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Runs of one sequence and network: {label: [final accuracy of each seed]}."""

    def made(
        values: dict[str, list[float]], shifts: str = "RCL", model: str = "conv-2", data: str = "cifar10", **given: Any
    ) -> list[Run]:
        width = given.pop("width", 64)
        options = Options(shifts=shifts, **given).model_dump(mode="json")
        changes = {
            "run__benchmark": "seq-to-final",
            "run__options": options,
            "run__data": {"name": data, "settings": {}},
            "run__model": {"name": model, "settings": {"width": width}},
            "data__name": data,
            "protocol__protocol": shifts,
            "metrics": {"final-accuracy": {"formula": "-"}},
        }
        return [
            write_run(tmp_path, label, seed, [_score(value)], **changes)
            for label, by_seed in values.items()
            for seed, value in enumerate(by_seed)
        ]

    return made


def _score(value: float) -> tuple[Any, ...]:
    return ("final-accuracy", "mean", None, None, value, value - 0.01, value + 0.01, 5000, "examples")


def entries(grid: Table, title: str) -> dict[str, TableCell]:
    (line,) = [line for line in grid.rows if line.title == title]
    return {column: cell for column, cell in zip(heads(grid), line.cells, strict=True) if cell}


def values(grid: Table, title: str) -> dict[str, float]:
    return {column: round(entry.estimate.value, 6) for column, entry in entries(grid, title).items()}


def test_marks_at_exactly_two_points() -> None:
    line = {"oracle": 0.62, "lp-ft": 0.60, "seq-ft": 0.58, "baseline": 0.5799}
    assert highlights(line) == {"lp-ft": BOTH, "seq-ft": BOLD, "baseline": PLAIN}


def test_what_is_like_the_oracle_is_bold_even_far_from_the_best() -> None:
    assert highlights({"oracle": 0.50, "sft": 0.60, "jm": 0.49}) == {"sft": BOTH, "jm": BOTH}


def test_without_an_oracle_nothing_is_italic() -> None:
    assert highlights({"sft": 0.96, "jm": 0.94, "seq-erm": 0.93}) == {"sft": BOLD, "jm": BOLD, "seq-erm": PLAIN}


def test_a_mean_is_marked_by_its_differences_and_not_by_its_size() -> None:
    """steady loses .03 each time, so its deviation is 0; wild loses .10 once: .05 on average, .05 of deviation."""
    lines = [
        {"oracle": 0.90, "best": 0.60, "steady": 0.57, "wild": 0.60, "wilder": 0.60, "part": 0.60},
        {"oracle": 0.90, "best": 0.60, "steady": 0.57, "wild": 0.50, "wilder": 0.60},
        {"oracle": 0.90, "best": 0.60, "steady": 0.57, "wild": 0.50, "wilder": 0.30},
    ]
    assert highlights_of_means(lines[:2])["wild"] == PLAIN  # exactly one deviation below
    assert highlights_of_means(lines) == {"best": BOLD, "steady": PLAIN, "wild": PLAIN, "wilder": BOLD, "part": BOLD}


def test_a_mean_on_par_with_the_oracle() -> None:
    lines = [{"oracle": 0.60, "sft": 0.64, "jm": 0.50}, {"oracle": 0.60, "sft": 0.56, "jm": 0.50}]
    assert highlights_of_means(lines) == {"sft": BOTH, "jm": PLAIN}


def test_networks_by_methods_with_means_over_the_cells_that_are_there(make: Make) -> None:
    runs = [
        *make({"oracle": [0.70], "baseline": [0.50], "st-1": [0.52]}, model="conv-2"),
        *make({"oracle": [0.72], "baseline": [0.60], "st-1": [0.64], "st-b": [0.70]}, model="res-1"),
    ]
    first, second = paper_tables(Record(runs), "seq-to-final/table-9")
    assert [line.title for line in first.rows] == [
        "conv-2",
        "conv-2 in Seq-to-Final Table 9",
        "res-1",
        "res-1 in Seq-to-Final Table 9",
        "Mean",
        "Mean in Seq-to-Final Table 9",
        "Std",
        "Std in Seq-to-Final Table 9",
    ]
    assert values(first, "Mean") == {"baseline": 0.55, "st-1": 0.58, "st-b": 0.70}
    assert values(first, "Std") == {"baseline": 0.05, "st-1": 0.06, "st-b": 0.0}
    assert entries(first, "Mean")["st-b"].estimate.cells == 1
    assert values(second, "Mean") == {"oracle": 0.71}
    # Printed: ST-1 .58 and .65, ST-B a dash and .64; the oracle .61 and .70.
    assert values(first, "Mean in Seq-to-Final Table 9")["st-1"] == pytest.approx(0.615)
    assert values(first, "Mean in Seq-to-Final Table 9")["st-b"] == 0.64
    assert "st-b" not in values(first, "conv-2 in Seq-to-Final Table 9")
    assert values(second, "Mean in Seq-to-Final Table 9")["oracle"] == pytest.approx(0.655)
    assert {name: entry.highlight for name, entry in entries(first, "res-1").items()} == {
        "baseline": PLAIN,
        "st-1": PLAIN,
        "st-b": BOTH,
    }
    assert not first.notes
    assert "A mean is bold" in " ".join(second.notes)


def test_columns_are_those_of_the_paper_and_settings_find_theirs(make: Make) -> None:
    runs = make({"sft(decay=chosen)": [0.6], "seq-ft(penalty=l2)": [0.6], "baseline": [0.5]})
    first, second = paper_tables(Record(runs), "seq-to-final/table-9")
    assert len(heads(first)) == 10
    assert heads(second)[0] == "sft(decay=chosen)"
    assert values(second, "conv-2 in Seq-to-Final Table 9")["sft(decay=chosen)"] == 0.58
    assert "seq-ft" not in values(first, "conv-2")  # another method, which this table does not have
    assert "Mean" not in [line.name for line in first.rows]  # one network has no mean


def test_intervals_are_over_seeds(make: Make) -> None:
    runs = [*make({"jm": [0.50, 0.60]}, model="conv-1"), *make({"jm": [0.56, 0.62]}, model="conv-2")]
    _, second = paper_tables(Record(runs), "seq-to-final/table-9")
    cell, mean = entries(second, "conv-1")["jm"].estimate, entries(second, "Mean")["jm"].estimate
    t = 12.706204736  # one degree of freedom
    assert (cell.low, cell.high, cell.seeds) == (0.0, 1.0, 2)  # .55 +- .635, cut at what is possible
    assert (mean.value, mean.seeds, mean.cells) == (pytest.approx(0.57), 2, 2)
    assert mean.low == pytest.approx(0.57 - t * 0.04)  # .53 and .61


def test_small_runs_are_told_from_the_paper(make: Make) -> None:
    runs = [*make({"jm": [0.5]}), *make({"jm": [0.4]}, **SMALL), *make({"jm": [0.3]}, width=16)]
    grids = paper_tables(Record(runs), "seq-to-final/table-9")
    titles = {line.title for grid in grids for line in grid.rows if line.source}
    assert titles == {"conv-2 in Seq-to-Final Table 9", "conv-2 in Seq-to-Final Table 9 (full scale)"}
    assert len(grids) == 6
    assert any("model.width=16" in grid.title for grid in grids)


def test_the_usual_table_has_the_printed_cell_of_its_network_only(make: Make) -> None:
    (table,) = results(Record(make({"lp-ft": [0.6], "seq-ft(penalty=l2)": [0.6]}, model="res-4", **SMALL)))
    assert table.group.title == "seq-to-final · cifar10 · res-4 · RCL"
    printed = {row.method: row.cells[0].value for rows in table.published.values() for row in rows if row.cells[0]}
    assert printed == {
        "lp-ft in Seq-to-Final Table 9 (full scale)": 0.67,
        "seq-ft(penalty=l2) in Seq-to-Final Table 15 (full scale)": 0.6726,
    }


def test_methods_by_sequences(make: Make) -> None:
    runs = [
        *make({"oracle": [0.70], "jst-1": [0.60], "jm": [0.61]}, model="conv-2"),
        *make({"oracle": [0.74], "jst-1": [0.68]}, model="res-1"),
        *make({"jm": [0.9]}, shifts="time", data="yearbook"),
    ]
    (grid,) = paper_tables(Record(runs), "seq-to-final/table-2")
    rcl, portraits = "RCL on cifar10", "time on yearbook"
    assert heads(grid) == (rcl, portraits)
    assert values(grid, "oracle") == {rcl: 0.72}
    assert values(grid, "jst-1") == {rcl: 0.64}
    assert entries(grid, "jst-1")[rcl].highlight == BOLD  # .03 more than jm, .08 less than the oracle
    assert entries(grid, "jm")[rcl].highlight == PLAIN
    assert (entries(grid, "jst-1")[rcl].estimate.cells, entries(grid, "jm")[rcl].estimate.cells) == (2, 1)
    assert values(grid, "jst-1 in Seq-to-Final") == {rcl: 0.605}  # .56 and .65 are printed for these two
    assert values(grid, "jm in Seq-to-Final") == {rcl: 0.55, portraits: 0.51}
    assert "almost constant" in " ".join(grid.notes)
    assert [line.name for line in grid.rows if not line.source][:3] == ["oracle", "baseline", "seq-erm"]


def test_lengths(make: Make) -> None:
    runs = [run for n in (8, 2) for run in make({"jm": [0.5 + n / 100]}, shifts=f"rot{n}", model="res-4")]
    _, second = paper_tables(Record(runs), "seq-to-final/table-14")
    assert [line.title for line in second.rows][:3] == ["rot2", "rot2 in Seq-to-Final Table 14", "rot8"]
    assert values(second, "Mean") == {"jm": 0.55}
    assert values(second, "rot8 in Seq-to-Final Table 14")["jst-b"] == 0.41


def test_initialisation(make: Make) -> None:
    labels = ["baseline", "seq-ft", "seq-ft(structure=separate, ends=random)", "lp-ft"]
    runs = make({label: [0.6] for label in labels}, model="res-4")
    (grid,) = paper_tables(Record(runs), "seq-to-final/table-15")
    assert [(line.title, line.cells[0].estimate.value) for line in grid.rows if line.source and line.cells[0]] == [
        ("Final step alone in Seq-to-Final Table 15", 0.547),
        ("Fine-tuning in Seq-to-Final Table 15", 0.6766),
        ("Frozen joint, initial weights, pulled to previous in Seq-to-Final Table 15", 0.6564),
    ]
    assert len(grid.rows) == 6


def test_as_text(make: Make) -> None:
    runs = make({"oracle": [0.62], "lp-ft": [0.60], "baseline": [0.58]}, shifts="TTT", data="fashion")
    grids = paper_tables(Record(runs), "seq-to-final/table-11")
    markdown, latex = render(grids, "md").splitlines(), render(grids, "latex")
    dash = " | –"
    assert markdown[4] == f"| conv-2 | **58.0** [57.0, 59.0]{dash * 4} | ***60.0*** [59.0, 61.0]{dash * 4} |"
    assert r"\textbf{58.0}" in latex
    assert r"\textbf{\textit{60.0}}" in latex
    assert "Seq-to-Final" not in latex  # it printed nothing for these data
    rows = {row["column"]: row for row in csv.DictReader(io.StringIO(render(grids, "csv")))}
    assert (rows["lp-ft"]["value"], rows["lp-ft"]["bold"], rows["lp-ft"]["italic"]) == ("0.6", "1", "1")
    assert (rows["baseline"]["bold"], rows["baseline"]["italic"], rows["baseline"]["seeds"]) == ("1", "0", "1")


def test_what_cannot_be_laid_out(make: Make) -> None:
    record = Record(make({"jm": [0.5]}))
    with pytest.raises(UserError, match=r"no paper-table 'seq-to-final/table-3'.*Known: .*seq-to-final/table-2"):
        paper_tables(record, "seq-to-final/table-3")
    with pytest.raises(UserError, match="no run of seq-to-final with shifts=CLR"):
        paper_tables(record, "seq-to-final/table-8")
    with pytest.raises(UserError, match="no run of seq-to-final of two methods or more"):
        paper_tables(record, "seq-to-final/table-15")
    with pytest.raises(UserError, match="no format"):
        render(paper_tables(record, "seq-to-final/table-9"), "html")
    clash = Record([*make({"jm": [0.5]}, shifts="rot2"), *make({"jm": [0.5]}, shifts="rot2", sizes=[100, 100])])
    with pytest.raises(UserError, match="two kinds of runs for rot2"):
        paper_tables(clash, "seq-to-final/table-14")
    assert sum(name.startswith("seq-to-final/") for name in registry.names("paper-table")) == 9


def test_the_page_shows_the_end_between_oracle_and_baseline(make: Make) -> None:
    runs = make({"oracle": [0.70], "baseline": [0.50], "lp-ft": [0.60], "jm": [0.40]})
    for run in runs:
        chosen = [{"train": "0,1,2", "objective": "erm", "layers": "all", "lr": 0.001, "epoch": 3, "score": 0.61}]
        steps = {"steps": ["0 source", "1 rotation"], "samples_per_step": [600, 400], "test": 50}
        revealed = {name: run.card.protocol[name] for name in ("revealed", "label_delay_steps", "labels_per_step")}
        run.card.protocol = {**revealed, **steps, "protocol": "RCL", "trials": 8, "chosen": chosen}
    (table,) = results(Record(runs))
    assert answer(table) == (
        "lp-ft is best: 60.0% [59.0, 61.0] final accuracy (1 seed, n = 5,000 examples; 95% intervals). For comparison: "
        "50.0% [49.0, 51.0] with the final step alone, 70.0% [69.0, 71.0] with many more of its samples."
    )
    scores = table.scores(table.columns[0])
    assert {name: tuple(round(v, 4) for v in (s.value, s.low, s.high)) for name, s in scores.items()} == {
        "jm": (0.4, 0.39, 0.41),
        "baseline": (0.5, 0.49, 0.51),
        "lp-ft": (0.6, 0.59, 0.61),
        "oracle": (0.7, 0.69, 0.71),
    }
    counts = curves.sample_counts(table.group).rows
    assert counts == [["0 source", "shown", 600], ["1 rotation", "shown", 400], ["1 rotation", "held out", 50]]
    text = page(Record(runs))
    assert "<td>8</td><td>0,1,2</td><td>erm</td><td>all</td><td>0.001</td><td>0</td><td>0</td><td>0</td>" in text
    assert '"oneOf":["oracle"]' in text, "upper bounds are hollow"


def test_the_oracle_does_not_lead(make: Make) -> None:
    (table,) = results(Record(make({"oracle": [0.9, 0.9, 0.91], "jm": [0.5, 0.5, 0.51], "sft": [0.4, 0.4, 0.41]})))
    assert [row.method for row in table.rows if row.cells[0] and row.cells[0].best] == ["jm"]
    assert "The oracle is not ranked" in " ".join(notes(table))
