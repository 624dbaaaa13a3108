"""The tables of continual model refinement: every number, mark and printed line by hand, and the whole text."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from driftline.errors import UserError
from driftline.record.run import Record, Run
from driftline.report.tables.model import bold_note
from driftline.report.tables.papers import paper_tables
from driftline.report.tables.papers.refinement import GAINS, INTERVALS, PUBLISHED
from driftline.report.tables.render import render

from ...conftest import final, heads, refined


def runs(folder: Path, oec: dict[str, list[float]], **given: Any) -> list[Run]:
    """Runs with these final OECs, an EFR of .9 and nothing else."""
    return [
        refined(folder, label, seed, [final("oec", value), final("efr", 0.9, "mean")], [["x", "b"]], **given)
        for label, values in oec.items()
        for seed, value in enumerate(values)
    ]


def test_table_1_in_markdown(tmp_path: Path) -> None:
    found = runs(tmp_path, {"er(lr=0.002, replay_every=3)": [0.60], "frozen": [0.40], "mine": [0.50]}, data="qa")
    grids = paper_tables(Record(found), "refinement/table-1")
    dash = " | –" * 9
    assert render(grids, "md").splitlines() == [
        "### Table 1: refinement · qa · mlp",
        "",
        "| method | EFR | UKR | OKR | CSR | KG | OEC | UKR(T) | OKR(T) | CSR(T) | KG(T) | OEC(T) |",
        "| :-- |" + " --: |" * 11,
        f"| frozen | 90.0 [80.0, 100.0]{dash} | 40.0 [30.0, 50.0] |",
        "| frozen in CMR Table 1 (full scale) "
        "| 0.0 | 80.3 | 43.7 | 45.0 | 31.2 | 50.0 | 80.3 | 36.1 | 35.4 | 31.2 | 45.8 |",
        f"| er(lr=0.002, replay_every=3) | 90.0 [80.0, 100.0]{dash} | 60.0 [50.0, 70.0] |",
        "| er(lr=0.002, replay_every=3) in CMR Table 1 (full scale) "
        "| 97.1 | 75.3 | 87.3 | 56.0 | 47.6 | 66.5 | 72.5 | 87.3 | 54.1 | 52.7 | 66.6 |",
        f"| mine | 90.0 [80.0, 100.0]{dash} | 50.0 [40.0, 60.0] |",
        "",
        "Seeds of our numbers: 1. n of each seed: 64 examples.",
        INTERVALS,
        bold_note(),
        f"{PUBLISHED}.",
    ]


def test_table_1_in_latex(tmp_path: Path) -> None:
    record = Record(runs(tmp_path, {"frozen": [0.40, 0.41, 0.42], "cft": [0.50, 0.51, 0.52]}))
    lines = render(paper_tables(record, "refinement/table-1"), "latex").splitlines()
    empty = r" & \textendash{}" * 9
    assert lines[lines.index(r"\begin{tabular}{lrrrrrrrrrrr}") :] == [
        r"\begin{tabular}{lrrrrrrrrrrr}",
        r"\toprule",
        r"{}method & EFR & UKR & OKR & CSR & KG & OEC & UKR(T) & OKR(T) & CSR(T) & KG(T) & OEC(T) \\",
        r"\midrule",
        rf"{{}}frozen & \textbf{{90.0}}{empty} & 41.0 \\",
        r" & \scriptsize [90.0, 90.0]" + " & " * 10 + r"\scriptsize [38.5, 43.5] \\",
        rf"{{}}cft & \textbf{{90.0}}{empty} & \textbf{{51.0}} \\",
        r" & \scriptsize [90.0, 90.0]" + " & " * 10 + r"\scriptsize [48.5, 53.5] \\",
        r"\bottomrule",
        r"\end{tabular}}",
        r"\end{table}",
    ]
    assert "CMR" not in lines[5]  # nothing was printed for these data


def test_offline_rows_and_full_scale_say_so(tmp_path: Path) -> None:
    record = Record(runs(tmp_path, {"offline": [0.8]}, data="qa"))
    (grid,) = paper_tables(record, "refinement/table-1")
    assert "selected by KG" in grid.notes[-1]
    for run in record.runs:
        run.card.run.options.update(episodes=100, queries_per_episode=64)
    (grid,) = paper_tables(record, "refinement/table-1")
    assert [line.title for line in grid.rows] == ["offline", "offline in CMR Table 1"]
    printed = dict(zip(heads(grid), grid.rows[1].cells, strict=True))
    assert printed["UKR"] is None
    assert printed["UKR(T)"] is not None
    assert printed["UKR(T)"].estimate.value == 0.8378


def test_variants_stand_under_the_same_columns(tmp_path: Path) -> None:
    options = {"indexing": "before", "csr": "strict"}
    scores = [final("ukr-before", 0.7), final("csr-strict", 0.6, "mean"), final("ukr", 0.1)]
    (grid,) = paper_tables(
        Record([refined(tmp_path, "cft", 0, scores, [["x"]], options=options)]), "refinement/table-1"
    )
    found = {name: entry.estimate.value for name, entry in zip(heads(grid), grid.rows[0].cells, strict=True) if entry}
    assert found == {"UKR(T)": 0.7, "CSR": 0.6}


def test_table_2_in_markdown(tmp_path: Path) -> None:
    found = [
        *runs(tmp_path, {"frozen": [0.40, 0.50], "cft": [0.50, 0.62], "mir(replay_every=3)": [0.60]}, data="qa"),
        *runs(tmp_path, {"frozen": [0.30], "cft": [0.25]}, data="qa", options={"alpha": 0.5}),
        *runs(tmp_path, {"frozen": [0.30], "er(replay_every=3)": [0.35]}, data="qa", options={"beta": 0.1}),
        *runs(tmp_path, {"cft": [0.25]}, data="qa", options={"beta": 0.9}),
    ]
    assert render(paper_tables(Record(found), "refinement/table-2"), "md").splitlines() == [
        "### Table 2: gain in OEC(T)",
        "",
        "| stream | cft | er(replay_every=3) | mir(replay_every=3) |",
        "| :-- | --: | --: | --: |",
        "| alpha=0.9, beta=0.5, gamma=0.8 | 11.0 [-1.7, 23.7] | – | 20.0 |",
        "| alpha=0.9, beta=0.5, gamma=0.8 in CMR Table 2 (full scale) | 15.8 | 20.9 | 21.6 |",
        "| alpha=0.9, beta=0.1, gamma=0.8 | – | 5.0 | – |",
        "| alpha=0.9, beta=0.1, gamma=0.8 in CMR Table 2 (full scale) | 23.4 | 26.3 | 26.0 |",
        "| alpha=0.5, beta=0.5, gamma=0.8 | -5.0 | – | – |",
        "",
        "Seeds of our numbers: 1–2. n of each seed: 64 examples.",
        GAINS,
        bold_note("row"),
        f"{PUBLISHED}; its replay methods have k = 3.",
    ]


def test_table_2_as_csv_and_its_marks(tmp_path: Path) -> None:
    values = {"frozen": [0.40, 0.50, 0.45], "cft": [0.50, 0.60, 0.56], "er": [0.70, 0.81, 0.75]}
    text = render(paper_tables(Record(runs(tmp_path, values)), "refinement/table-2"), "csv")
    rows = {row["column"]: row for row in csv.DictReader(io.StringIO(text))}
    assert {name: (row["bold"], row["seeds"]) for name, row in rows.items()} == {"cft": ("0", "3"), "er": ("1", "3")}
    assert float(rows["er"]["value"]) == pytest.approx((0.30 + 0.31 + 0.30) / 3)


def test_table_2_in_latex(tmp_path: Path) -> None:
    lines = render(
        paper_tables(Record(runs(tmp_path, {"frozen": [0.40], "er": [0.35]})), "refinement/table-2"), "latex"
    )
    assert lines.splitlines()[8:] == [
        r"\begin{tabular}{lr}",
        r"\toprule",
        r"{}stream & er \\",
        r"\midrule",
        r"{}alpha=0.9, beta=0.5, gamma=0.8 & -5.0 \\",
        r"\bottomrule",
        r"\end{tabular}}",
        r"\end{table}",
    ]


def test_what_cannot_be_laid_out(tmp_path: Path, full_record: Record) -> None:
    for name in ("refinement/table-1", "refinement/table-2"):
        with pytest.raises(UserError, match="no run of refinement: make one"):
            paper_tables(full_record, name)
    with pytest.raises(UserError, match=r"no run of refinement has frozen and another method.*--methods frozen"):
        paper_tables(Record(runs(tmp_path, {"cft": [0.5], "er": [0.6]})), "refinement/table-2")
    with pytest.raises(UserError, match=r"no paper-table 'refinement/table-3'\. Did you mean"):
        paper_tables(full_record, "refinement/table-3")
