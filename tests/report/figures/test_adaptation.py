"""What the report shows of adaptation without labels, with every number worked out by hand."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from driftline.errors import UserError
from driftline.record.run import Record
from driftline.report.analysis.frozen_baseline import compare_with_frozen
from driftline.report.analysis.groups import groups
from driftline.report.analysis.repeats import average_repeats
from driftline.report.analysis.result_table import tabulate
from driftline.report.analysis.summary import answer
from driftline.report.figures.base import draw
from driftline.report.figures.export import save
from driftline.report.page.page import page
from driftline.report.tables.captions import notes
from driftline.streams.test_time.calibration import AccuracyMatrices, write_matrices

from ..conftest import adapted, add_table, results, table_of

T1 = 12.706204736  # the 97.5% point of Student's t with one degree of freedom
FROZEN = [[0.5, 0.5, 0.5, 0.5], [0.4, 0.6, 0.4, 0.6]]
TENT = [[0.6, 1.0, 0.1, 0.1], [0.5, 0.7, 0.5, 0.4]]  # leads .1 .5 -.4 -.4 and .1 .1 .1 -.2
BN = [[0.6, 0.6, 0.6, 0.6], [0.5, 0.7, 0.5, 0.7]]
TITLE = "test-time · cifar10 · mlp"


def made(folder: Path, **given: Any) -> list[Any]:
    return [
        adapted(folder, label, seed, curve, **{key: dict(value) for key, value in given.items()})
        for label, curves in (("frozen", FROZEN), ("tent", TENT), ("bn", BN))
        for seed, curve in enumerate(curves)
    ]


@pytest.fixture
def record(tmp_path: Path) -> Record:
    return Record(made(tmp_path))


def test_a_standing_by_hand(record: Record) -> None:
    (group,) = groups(record)
    bn, tent = compare_with_frozen(group)
    assert (tent.method, tent.seeds, tent.collapsed, tent.worse_to_the_end) == ("tent", 2, 1, 2)
    assert tent.gain.value == pytest.approx((-0.05 + 0.025) / 2)
    assert tent.gain.low == pytest.approx(-0.0125 - T1 * 0.0375)
    assert tent.worse_since == (20 + 30) / 2  # behind from the third window on, and from the fourth
    assert tent.adapted_after == (20 + 10) / 2  # .1 is less than half of .5; .1 is all of .1
    assert tent.max_drop.value == pytest.approx((0.4 + 0.2) / 2)
    assert (bn.collapsed, bn.worse_to_the_end, bn.worse_since, bn.max_drop.value) == (0, 0, None, 0.0)
    assert bn.gain.value == pytest.approx(0.1)


def test_leads_are_paired_by_seed(record: Record) -> None:
    """With frozen's seeds swapped every lead would be another number, though all means would stay."""
    frame = table_of("collapse", record)
    tent = frame[frame["method"] == "tent"].set_index("time")
    assert tent["value"].tolist() == pytest.approx([0.1, 0.3, -0.15, -0.3])
    assert tent.loc[20, "high"] == 1  # 0.3 + 2.54, cut at what a difference of shares can be
    assert tent["worse_since"].unique().tolist() == [25.0]
    assert tent["seeds"].unique().tolist() == [2]
    assert frame["method"].unique().tolist() == ["bn", "tent"]


def test_a_seed_without_the_frozen_model_does_not_count(record: Record) -> None:
    runs = [run for run in record.runs if (run.method, run.seed) != ("frozen", 1)]
    (group,) = groups(Record(runs))
    tent = compare_with_frozen(group)[1]
    assert (tent.seeds, tent.collapsed, tent.worse_since) == (1, 1, 20)
    assert math.isnan(tent.gain.low)
    without = Record(run for run in runs if run.method != "frozen")
    assert compare_with_frozen(groups(without)[0]) == []
    with pytest.raises(UserError, match=f"no frozen and another method on a stream of corrupted images\\): {TITLE}"):
        table_of("collapse", without)


def test_speeds_are_averaged_within_a_seed(tmp_path: Path) -> None:
    quick = made(tmp_path)
    slow = [adapted(tmp_path, "tent", seed, [0.9] * 4, options={"images_per_point": 2000}) for seed in (0, 1)]
    slow += [adapted(tmp_path, "frozen", seed, [0.1] * 4, options={"images_per_point": 2000}) for seed in (0, 1)]
    found = groups(Record([*quick, *slow]))
    assert len(found) == 2
    (group,) = average_repeats(found)
    assert group.title == f"{TITLE} · images_per_point 1000, 2000"
    tent = next(one for one in compare_with_frozen(group) if one.method == "tent")
    assert tent.seeds == 2  # and not four: runs of one seed are no replicates
    assert tent.gain.value == pytest.approx(((-0.05 + 0.8) / 2 + (0.025 + 0.8) / 2) / 2)
    frame = table_of("curves", Record([*quick, *slow]))
    first = frame[(frame["method"] == "tent") & (frame["time"] == "10")]
    assert first["value"].tolist() == pytest.approx([(0.6 + 0.9 + 0.5 + 0.9) / 4], abs=1e-4)
    assert first["n"].tolist() == [128]


def test_the_page_has_one_section_for_all_speeds(tmp_path: Path) -> None:
    options = {"images_per_point": 2000}
    slow = [adapted(tmp_path, "tent", seed, [0.9] * 4, options=options) for seed in (0, 1)]
    slow += [adapted(tmp_path, "frozen", seed, [0.1] * 4, options=options) for seed in (0, 1)]
    runs = [*made(tmp_path), *slow]
    text = page(Record(runs))
    assert re.findall(r"<h2[^>]*>(test-time.*?)</h2>", text) == [
        "test-time <span>on cifar10 · mlp · images_per_point 1000, 2000</span>"
    ]
    assert "mean over 2 values of images_per_point" in text
    assert "with every seed: bn." in text  # it was not run at 2000
    (group,) = average_repeats(groups(Record(runs)))
    table = tabulate(group)
    assert [row.seeds for row in table.rows] == [2, 2, 2]  # and not four: runs of one seed are no replicates
    assert table.cell("tent", "stream-accuracy", "mean").value == pytest.approx((0.45 + 0.9 + 0.525 + 0.9) / 4)


def test_one_seed_at_several_speeds_has_no_interval(tmp_path: Path) -> None:
    runs = [
        adapted(tmp_path, "tent", 0, TENT[0], options={"images_per_point": images_per_point})
        for images_per_point in (1000, 2000)
    ]
    table = tabulate(*average_repeats(groups(Record(runs))))
    cell = table.cell("tent", "stream-accuracy", "mean")
    assert math.isnan(cell.low)
    assert math.isnan(cell.high)
    assert "no interval" in notes(table)[0]


def test_growth_is_of_images_seen(tmp_path: Path) -> None:
    shown = [[{"size": 1.0 + k + 2 * seed, "far": 0.5 * k} for k in range(4)] for seed in (0, 1)]
    runs = [adapted(tmp_path, "tent", seed, TENT[seed], diagnostics=shown[seed]) for seed in (0, 1)]
    frame = table_of("internals", Record([*runs, adapted(tmp_path, "frozen", 0, FROZEN[0])]))
    size = frame[frame["gauge"] == "size"]
    assert size["time"].tolist() == [10, 20, 30, 40]
    assert size["value"].tolist() == [2.0, 3.0, 4.0, 5.0]
    assert frame["gauge"].unique().tolist() == ["size", "far"]
    assert size["high"].iloc[0] == pytest.approx(2 + T1)


def test_a_long_growth_keeps_the_last_of_each_stretch(tmp_path: Path) -> None:
    run = adapted(tmp_path, "tent", 0, [0.5] * 400, diagnostics=[{"size": float(k)} for k in range(400)])
    frame = table_of("internals", Record([run]))
    assert len(frame) == 100
    assert frame["value"].tolist()[:2] == [3.0, 7.0]
    assert frame["time"].tolist()[-1] == 4000


def test_a_sweep_by_a_setting(tmp_path: Path) -> None:
    runs = []
    for every, label in ((1000, "rdumb"), (10, "rdumb(reset_every=10)"), (125, "rdumb(reset_every=125)")):
        given = {"settings": {"reset_every": every, "lr": 0.1, "similarity_margin": None}}
        runs.append(adapted(tmp_path, label, 0, [0.5, every / 2000], **given))
    for setting in (None, "rdumb.reset_every"):
        frame = table_of("setting-sweep", Record(runs), setting=setting)
        assert frame["setting"].unique().tolist() == ["rdumb.reset_every"]
        assert frame["method"].unique().tolist() == ["rdumb"]
        assert frame["at"].tolist() == [10, 125, 1000]
        assert frame["value"].tolist() == pytest.approx([0.2525, 0.28125, 0.5])
    with pytest.raises(UserError, match=r"named with its method, as rdumb\.reset_every, not 'reset_every'"):
        table_of("setting-sweep", Record(runs), setting="reset_every")
    with pytest.raises(UserError, match=r"no methods that differ in tent\.lr"):
        table_of("setting-sweep", Record(runs), setting="tent.lr")


def test_severities_and_the_path_between_them(tmp_path: Path) -> None:
    levels = np.arange(21)
    grid = 80.0 - 3 * levels[:, None] - 2 * levels[None, :]
    write_matrices(AccuracyMatrices({("fog", "snow"): grid, ("snow", "fog"): grid.T}), tmp_path / "made.safetensors")
    frame = table_of(
        "severity-grid", Record([]), calibration=tmp_path / "made.safetensors", target="50", pair="fog,snow"
    )
    cells, path = frame[frame["target"].isna()], frame[frame["target"].notna()]
    assert len(cells) == 441
    assert cells[(cells["s1"] == 0.25) & (cells["s2"] == 0.5)]["accuracy"].tolist() == [73.0]
    assert path["accuracy"].mean() == pytest.approx(50, abs=1)
    assert path["s2"].iloc[0] == 0
    assert path["s1"].iloc[-1] == 0
    assert path["place"].tolist() == list(range(len(path)))
    swapped = table_of("severity-grid", Record([]), calibration=tmp_path / "made.safetensors", pair="snow,fog")
    assert swapped["accuracy"].iloc[1] == 77.0  # fog is now the second
    wrong: dict[str, Any]
    for wrong in ({"pair": "fog"}, {"pair": "hard"}, {"target": "forty"}):
        with pytest.raises(UserError, match="given as"):
            table_of("severity-grid", Record([]), calibration=tmp_path / "made.safetensors", **wrong)


def test_a_schedule_over_time(tmp_path: Path) -> None:
    schedule = {
        "order": ["fog > snow", "snow > frost"],
        "paths": {"fog > snow": [[1.0, 0.0], [0.0, 2.0]], "snow > frost": [[2.0, 0.25]]},
        "mixed": False,
    }
    run = adapted(tmp_path, "frozen", 0, [0.5] * 4, schedule=schedule, options={"images_per_point": 10})
    answers = {"group": [0, 0, 1, 1, 2, 3], "correct": [1.0, 0.0, 1.0, 1.0, 0.0, 1.0]}
    add_table(run, "answers", answers)
    frame = table_of("severity-schedule", Record([run]), points=4)
    severity = frame[frame["what"] == "severity"][["time", "name", "value", "until"]].to_numpy().tolist()
    assert severity == [
        *([0, "fog", 1.0, 10], [0, "snow", 0.0, 10], [10, "fog", 0.0, 20], [10, "snow", 2.0, 20]),
        *([20, "snow", 2.0, 30], [20, "frost", 0.25, 30], [30, "fog", 1.0, 40], [30, "snow", 0.0, 40]),  # anew
    ]
    assert frame[frame["what"] == "accuracy"]["value"].tolist() == [0.5, 1.0, 0.0, 1.0]
    assert len(table_of("severity-schedule", Record([run]), points=2)) == 6
    run.card.run.options["images"] = 33
    short = table_of("severity-schedule", Record([run]), points=4)
    assert short["until"].max() == 33
    assert short[short["what"] == "accuracy"]["value"].tolist() == [0.5, 1.0, 0.0]  # the last point has 3 of 10 images


def test_accuracy_stands_under_the_severities_it_was_reached_with(tmp_path: Path) -> None:
    run = adapted(
        tmp_path, "frozen", 0, [0.5] * 4, options={"images_per_point": 15}
    )  # of 40 images, 10 for the last point
    add_table(run, "answers", {"group": [0, 1, 2], "correct": [1.0, 0.0, 1.0]})
    _, chart = draw("severity-schedule", Record([run]))
    above, below = (part["encoding"] for part in chart.to_dict()["vconcat"])
    assert above["x"]["scale"]["domain"] == below["x"]["scale"]["domain"] == [0, 40]
    assert above["x2"] == below["x2"] == {"field": "until"}


@pytest.mark.parametrize("name", ["curves", "collapse", "internals", "severity-schedule", "setting-sweep"])
def test_every_figure_can_be_drawn(tmp_path: Path, name: str) -> None:
    runs = made(tmp_path / "runs")
    for every in (10, 20):
        given: dict[str, Any] = {"settings": {"reset_every": every}, "diagnostics": [{"size": 1.0}, {"size": 2.0}]}
        runs.append(adapted(tmp_path / "runs", f"rdumb(reset_every={every})", 0, [0.5, 0.6, 0.5, 0.6], **given))
    runs += made(tmp_path / "runs", options={"order": "cin-c"}) if name != "internals" else []
    for run in runs:
        add_table(run, "answers", {"group": [0, 0], "correct": [1.0, 0.0]})
    frame, chart = draw(name, Record(runs))
    save(frame, chart, tmp_path / f"{name}.svg")
    drawn = (tmp_path / f"{name}.svg").read_text()
    assert "NaN" not in drawn
    assert TITLE in drawn
    assert pd.read_csv(tmp_path / f"{name}.csv").shape == frame.shape
    if name == "collapse":
        assert "1 of 2 seeds" in drawn
        assert "+10.0 [+10.0, +10.0]" in drawn


def test_severities_can_be_drawn(tmp_path: Path) -> None:
    grid = np.linspace(90, 10, 36).reshape(6, 6)
    write_matrices(AccuracyMatrices({("fog", "snow"): grid}), tmp_path / "made.safetensors")
    frame, chart = draw("severity-grid", Record([]), calibration=tmp_path / "made.safetensors", target="40")
    save(frame, chart, tmp_path / "severities.svg")
    assert "severity of snow" in (tmp_path / "severities.svg").read_text()


def test_the_answer_names_the_best_and_the_collapsed(record: Record) -> None:
    (table,) = results(record)
    assert answer(table) == (
        "bn is best: 60.0% [60.0, 60.0] accuracy (2 seeds, n = 64 examples; 95% intervals). Best gain over the frozen "
        "model: bn (10.0 points [10.0, 10.0]). Collapsed, below the frozen model: tent (-1.2 points [-48.9, 46.4])."
    )
    (table,) = results(Record(run for run in record.runs if run.method == "frozen"))
    assert answer(table).startswith("frozen: 50.0%")
    (table,) = results(Record(run for run in record.runs if run.method == "tent"))
    assert "Gains need a run of the frozen model and of another method." in answer(table)
    (table,) = results(Record(run for run in record.runs if run.method != "tent"))
    assert "No method collapsed" in answer(table)
    (table,) = results(Record(run for run in record.runs if run.method != "bn"))
    assert answer(table).startswith("frozen is best: 50.0%")
    assert "Best gain" not in answer(table)


def test_the_page_has_the_table_and_the_growth(tmp_path: Path) -> None:
    runs = [*made(tmp_path), adapted(tmp_path, "eta", 0, FROZEN[0], diagnostics=[{"size": 1.0}, {"size": 2.0}])]
    text = page(Record(runs))
    assert "Comparison with the frozen model" in text
    assert "<td>1 of 2</td><td>2 <small>25 images</small></td><td>30.0 points [0.0, 100.0]" in text
    assert "Diagnostics" in text
    assert "images seen" in text
    assert "<figcaption>size</figcaption>" in text
    assert "Diagnostics" not in page(Record(made(tmp_path / "more")))
