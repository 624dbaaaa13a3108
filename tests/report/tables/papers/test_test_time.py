"""The tables of RDumb: every number, mark and printed line by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from driftline.errors import UserError
from driftline.record.run import Record, Run
from driftline.report.analysis.published import full_scale
from driftline.report.tables.model import Table
from driftline.report.tables.papers import paper_tables
from driftline.report.tables.render import render

from ...conftest import adapted, heads

SOURCE = "RDumb Table 1 (ImageNet, ResNet-50)"


def runs(folder: Path, accuracy: dict[str, list[float]], **given: Any) -> list[Run]:
    return [
        adapted(folder, label, seed, [value], **given)
        for label, values in accuracy.items()
        for seed, value in enumerate(values)
    ]


def numbers(grid: Table) -> dict[str, list[float | None]]:
    return {line.title: [entry and round(entry.estimate.value, 6) for entry in line.cells] for line in grid.rows}


def test_table_1_in_markdown(tmp_path: Path) -> None:
    found = [
        *runs(tmp_path, {"frozen": [0.40], "tent(lr=0.001)": [0.30]}, options={"order": "cin-c"}),
        *runs(tmp_path, {"tent(lr=0.001)": [0.50], "frozen": [0.20], "mine": [0.1]}, options={"difficulty": "medium"}),
    ]
    lines = render(paper_tables(Record(found), "test-time/table-1"), "md").splitlines()
    assert lines[:10] == [
        "### Table 1: accuracy",
        "",
        "| method | cin-c | ccc medium | mean |",
        "| :-- | --: | --: | --: |",
        "| frozen | 40.0 [30.0, 50.0] | 20.0 [10.0, 30.0] | 30.0 |",
        f"| frozen in {SOURCE} | 18.0 | 17.3 | 17.6 |",
        "| tent(lr=0.001) | *30.0* [20.0, 40.0] | 50.0 [40.0, 60.0] | 40.0 |",
        f"| tent(lr=0.001) in {SOURCE} | *15.6* | *1.4* | 8.5 |",
        "| mine | – | *10.0* [0.0, 20.0] | – |",
        "",
    ]
    assert "not comparable" in lines[-1]


def test_table_1_over_speeds_and_its_marks(tmp_path: Path) -> None:
    found = []
    for images_per_point, more in ((1000, 0.0), (2000, 0.1)):
        values = {"frozen": [0.40, 0.42, 0.38], "eta": [0.30, 0.35, 0.34], "rdumb": [0.50, 0.55, 0.51]}
        values = {label: [value + more for value in row] for label, row in values.items()}
        found += runs(tmp_path, values, options={"images_per_point": images_per_point, "difficulty": "easy"})
    (grid,) = paper_tables(Record(found), "test-time/table-1")
    ours = {line.name: line.cells[0] for line in grid.rows if not line.source}
    assert {name: round(entry.estimate.value, 6) for name, entry in ours.items() if entry} == {
        **{"frozen": 0.45, "eta": 0.38, "rdumb": 0.57}
    }
    assert {
        name: (entry.highlight.bold, entry.highlight.italic, entry.estimate.seeds)
        for name, entry in ours.items()
        if entry
    } == {**{"frozen": (False, False, 3), "eta": (False, True, 3), "rdumb": (True, False, 3)}}
    assert numbers(grid)[f"rdumb in {SOURCE}"] == [0.493]
    latex = render([grid], "latex")
    assert r"{}eta & \textit{38.0}" in latex
    assert r"\textbf{57.0}" in latex


def test_another_reset_interval_is_not_the_printed_method(tmp_path: Path) -> None:
    found = runs(
        tmp_path, {"rdumb(reset_every=10)": [0.5], "eata(penalty_weight=100)": [0.4]}, options={"difficulty": "hard"}
    )
    (grid,) = paper_tables(Record(found), "test-time/table-1")
    assert list(numbers(grid)) == ["eata(penalty_weight=100)", "rdumb(reset_every=10)"]


def test_columns_say_what_is_unusual(tmp_path: Path) -> None:
    found = [
        *runs(tmp_path, {"bn": [0.5]}, options={"target": 60}),
        *runs(tmp_path, {"bn": [0.5]}, options={"order": "mixed", "severity": 3}),
        *runs(tmp_path, {"bn": [0.5]}, options={"order": "gradual", "corruptions": "fog,snow"}),
    ]
    (grid,) = paper_tables(Record(found), "test-time/table-1")
    assert heads(grid) == ("ccc medium, 60%", "gradual, fog,snow", "mixed, severity 3", "mean")
    again = runs(tmp_path, {"bn": [0.5]}, options={"target": 60, "calibration": "another"})
    with pytest.raises(UserError, match="two kinds of runs for ccc medium, 60%: name the runs"):
        paper_tables(Record([*found, *again]), "test-time/table-1")


def test_streams_with_targets_of_their_own_stand_beside_the_printed_ones(tmp_path: Path) -> None:
    found = runs(tmp_path, {"frozen": [0.2]}, options={"difficulty": "hard", "target": 53})
    found += runs(tmp_path, {"frozen": [0.5]}, options={"difficulty": "medium", "target": 53})
    other = runs(tmp_path, {"frozen": [0.5]}, options={"corruptions": "fog,snow", "target": 53})
    (grid,) = paper_tables(Record([*found, *other]), "test-time/table-1")
    assert heads(grid) == ("ccc medium, 53%", "ccc hard, 53%", "ccc, 53%, fog,snow", "mean")
    assert [entry and entry.estimate.value for entry in grid.rows[1].cells] == [0.173, 0.015, None, None]


def test_table_1_at_full_scale(tmp_path: Path) -> None:
    found = runs(tmp_path, {"bn": [0.5]}, options={"order": "cin-c"})
    found[0].card.data.name = "imagenet-val"
    found[0].card.run.model.name = "resnet50"
    (grid,) = paper_tables(Record(found), "test-time/table-1")
    assert grid.rows[1].source == "RDumb Table 1 (full scale)"
    found[0].card.run.options.update(images=750_000, batch=64)
    (grid,) = paper_tables(Record(found), "test-time/table-1")
    assert grid.rows[1].source == "RDumb Table 1"


def every(folder: Path, number: int, value: float, order: str = "holdout") -> Run:
    label = "rdumb(lr=0.001)" if number == 1000 else f"rdumb(lr=0.001, reset_every={number})"
    return adapted(folder, label, 0, [value], settings={"reset_every": number}, options={"order": order})


def test_table_4(tmp_path: Path) -> None:
    found = [every(tmp_path, 1000, 0.5), every(tmp_path, 125, 0.4), every(tmp_path, 60, 0.3)]
    (grid,) = paper_tables(Record(found), "test-time/table-4")
    assert heads(grid) == ("reset_every=60", "reset_every=125", "reset_every=1000")
    assert numbers(grid) == {
        "rdumb(lr=0.001)": [0.3, 0.4, 0.5],
        "rdumb(lr=0.001) in RDumb Table 4 (ImageNet, ResNet-50)": [None, 0.421, 0.467],
    }
    with pytest.raises(UserError, match="of rdumb with several settings of `reset_every`"):
        paper_tables(Record(found[:1]), "test-time/table-4")
    with pytest.raises(UserError, match="no run of test-time with order=holdout"):
        paper_tables(Record([every(tmp_path, 10, 0.5, "cin-c")]), "test-time/table-4")


def test_table_5_is_a_mean_over_difficulties(tmp_path: Path) -> None:
    found = []
    for difficulty, more in (("easy", 0.0), ("hard", -0.3)):
        for share, label in ((0.4, "eata"), (0.3, "eata(entropy_fraction=0.3)")):
            options, settings = {"difficulty": difficulty}, {"entropy_fraction": share}
            found += runs(tmp_path, {label: [share + 0.2 + more]}, options=options, settings=settings)
    (grid,) = paper_tables(Record(found), "test-time/table-5")
    assert "mean over ccc easy, ccc hard" in grid.title
    assert heads(grid) == ("entropy_fraction=0.3", "entropy_fraction=0.4")
    assert numbers(grid) == {
        "eata": [0.35, 0.45],
        "eata in RDumb Tables 5 and 8 (ImageNet, ResNet-50)": [0.299, 0.308],
    }


def test_table_6(tmp_path: Path) -> None:
    paths = {"a > b": [[1, 0], [0, 0]], "b > c": [[1, 0], [1, 1], [1, 2], [0, 2]], "c > a": [[2, 0], [1, 0]]}
    long = {"order": ["a > b", "b > c", "b > c", "c > a"], "paths": paths, "mixed": False}
    short = {**long, "order": ["a > b"]}
    found = [
        adapted(tmp_path, "bn", 0, [0.5], schedule=long, options={"difficulty": "easy"}),
        adapted(tmp_path, "tent", 0, [0.5], schedule=long, options={"difficulty": "easy"}),
        adapted(tmp_path, "bn", 0, [0.5], schedule=short, options={"difficulty": "easy", "images_per_point": 5000}),
        adapted(tmp_path, "bn", 1, [0.5], schedule=short, options={"difficulty": "easy"}),
    ]
    (grid,) = paper_tables(Record(found), "test-time/table-6")
    assert numbers(grid) == {
        "ccc easy": [2.0, 4.0, 3.0, 3.0],  # 2, 4 and 4 of seed 0 for any method, and 2 of seed 1; one was cut short
        "ccc easy in RDumb Table 6 (ImageNet, ResNet-50)": [11.0, 36.0, 22.8, 23.0],
    }
    assert "| ccc easy | 2 | 4 | 3 | 3 |" in render([grid], "md")


def test_table_7(tmp_path: Path) -> None:
    found = [
        adapted(
            tmp_path,
            f"eata(penalty_weight={at:g})",
            0,
            [v],
            settings={"penalty_weight": at},
            options={"order": "holdout"},
        )
        for at, v in ((2000.0, 0.4), (100.0, 0.5), (7.0, 0.3))
    ]
    usual = adapted(tmp_path, "eata", 0, [0.6], settings={"penalty_weight": None}, options={"order": "holdout"})
    (grid,) = paper_tables(Record([*found, usual]), "test-time/table-7")
    assert heads(grid) == ("penalty_weight=7", "penalty_weight=100", "penalty_weight=2000")
    assert numbers(grid) == {
        "eata": [0.3, 0.5, 0.4],  # a weight that was not given is not a number
        "eata in RDumb Table 7 (ImageNet, ResNet-50)": [None, 0.471, 0.44],
    }
    with pytest.raises(UserError, match="of eata with several settings of `penalty_weight`"):
        paper_tables(Record([usual]), "test-time/table-7")


def test_table_8(tmp_path: Path) -> None:
    found = []
    values = {"eata": 0.3, "eata(penalty_weight=100)": 0.2, "rdumb": 0.4, "tent": 0.1}
    for k, difficulty in enumerate(("easy", "medium", "hard")):
        cells = {label: [value - k / 10] for label, value in values.items()}
        found += runs(tmp_path, cells, options={"difficulty": difficulty})
    found += runs(tmp_path, {"rdumb": [0.7]}, options={"order": "cin-c"})
    (grid,) = paper_tables(Record(found), "test-time/table-8")
    assert heads(grid) == ("cin-c", "ccc easy", "ccc medium", "ccc hard", "mean of ccc")
    source = "RDumb Table 8 (ImageNet, ResNet-50)"
    assert numbers(grid) == {
        "eata": [None, 0.3, 0.2, 0.1, 0.2],
        f"eata in {source}": [0.418, 0.482, 0.354, 0.087, 0.308],
        "eata(penalty_weight=100)": [None, 0.2, 0.1, 0.0, 0.1],
        f"eata(penalty_weight=100) in {source}": [0.467, 0.477, 0.365, 0.038, None],
        "rdumb": [0.7, 0.4, 0.3, 0.2, 0.3],
        f"rdumb in {source}": [0.465, 0.493, 0.389, 0.096, 0.326],
    }
    with pytest.raises(UserError, match="no run of test-time of eata or rdumb"):
        paper_tables(Record(runs(tmp_path, {"tent": [0.5]})), "test-time/table-8")


def test_what_cannot_be_laid_out(full_record: Record) -> None:
    with pytest.raises(UserError, match="no run of test-time: make one"):
        paper_tables(full_record, "test-time/table-1")
    for number in (5, 6):
        with pytest.raises(UserError, match="no run of test-time with order=ccc"):
            paper_tables(full_record, f"test-time/table-{number}")


def test_cin_3dcc_stands_beside_its_printed_column(tmp_path: Path) -> None:
    found = runs(tmp_path, {"frozen": [0.40], "rdumb": [0.30]}, options={"order": "cin-3dcc"})
    (grid,) = paper_tables(Record(found), "test-time/table-1")
    assert heads(grid) == ("cin-3dcc",)
    assert numbers(grid)[f"frozen in {SOURCE}"] == [0.315]


@pytest.mark.parametrize(
    ("data", "settings", "printed"),
    [
        ("cifar10", {}, True),
        ("npz", {"path": "patients.npz"}, False),
        ("image-folders", {"path": "patients"}, False),
        ("mine.py:Patients", {}, False),
    ],
)
def test_printed_rows_do_not_stand_under_data_of_a_users_own(
    tmp_path: Path, data: str, settings: dict[str, Any], printed: bool
) -> None:
    own = {"run__data": {"name": data, "settings": settings}, "data__name": data}
    found = runs(tmp_path, {"frozen": [0.40], "tent": [0.30]}, options={"order": "cin-c"}, **own)
    (grid,) = paper_tables(Record(found), "test-time/table-1")
    assert any(line.source for line in grid.rows) == printed
    assert any("as published" in note for note in grid.notes) == printed


@pytest.mark.parametrize(("order", "images"), [("cin-c", 750_000), ("cin-3dcc", 600_000), ("ccc", 7_500_000)])
def test_each_stream_has_its_own_full_length(tmp_path: Path, order: str, images: int) -> None:
    card = runs(tmp_path, {"frozen": [0.4]}, options={"order": order})[0].card
    card.run.options |= {"images": images, "batch": 64}
    assert full_scale(card)
    card.run.options["images"] = images - 64
    assert not full_scale(card)


def test_a_given_order_is_never_at_full_scale(tmp_path: Path) -> None:
    card = runs(tmp_path, {"frozen": [0.4]}, options={"order": "given"})[0].card
    card.run.options |= {"images": 7_500_000, "batch": 64}
    assert not full_scale(card)
