"""What figures show, against the record and against numbers worked out another way."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import driftline
from driftline.engine.reload import ReloadedRun, reload_run
from driftline.errors import UserError
from driftline.metrics.model_similarity import svcca
from driftline.record.run import Record
from driftline.report.figures.examples import Examples, png
from driftline.shifts import apply
from driftline.training.interpolation import layer_weights
from driftline.training.torch_model import torch_model

from ..conftest import table_of

pytestmark = pytest.mark.xdist_group("reloaded")  # what all its tests use is made once

METHODS = ["baseline", "oracle", "seq-erm", "seq-ft", "st-1", "sft", "jm"]
OPTIONS = {"shifts": "RL", "sizes": [60, 60, 60], "test": 60, "oracle": 120, "epochs": 3, "batch": 8, "lr": [0.02]}
GRID = {"weight_decay": [1e-4], "dropout": [0.0], "adjacent": [0.0, 0.1, 10.0], "budget": "paper"}


def images(n: int = 360) -> tuple[np.ndarray, np.ndarray]:
    """Bright bands on noise: where the band is decides the class."""
    y = np.arange(n) % 3
    x = np.random.default_rng(0).integers(0, 120, (n, 16, 16, 1), dtype=np.uint8)
    for i, label in enumerate(y):
        x[i, 4 * label + 1 : 4 * label + 4] += np.uint8(80)
    return x, y


def ran(folder: Path, methods: list[Any], **options: Any) -> Record:
    x, y = images()
    np.savez(folder / "bands.npz", x=x, y=y, classes=np.array(["top", "middle", "bottom"]))
    spec = {
        "benchmark": "seq-to-final",
        "data": {"name": "npz", "path": str(folder / "bands.npz")},
        "model": {"name": "conv-1", "width": 2},
        "methods": methods,
        "seq-to-final": {**OPTIONS, **GRID, **options},
    }
    return driftline.run(spec, runs=folder / "runs")


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    return ran(tmp_path_factory.mktemp("reloaded"), METHODS)


def visits(record: Record) -> dict[str, ReloadedRun]:
    return {run.method: reload_run(run) for run in record.runs}


def of(record: Record, *methods: str) -> Record:
    return Record(run for run in record.runs if run.method in methods)


def scores(record: Record) -> dict[str, float]:
    return record.scores.set_index("method")["value"].to_dict()


@pytest.fixture(scope="module")
def interpolated(record: Record) -> pd.DataFrame:
    return table_of("weight-path", record, points=3, batch_norm="interpolated")


def test_a_path_starts_and_ends_at_the_accuracies_of_the_models_themselves(
    record: Record, interpolated: pd.DataFrame
) -> None:
    recorded, opened = scores(record), visits(record)
    assert len(interpolated)
    for method, rows in interpolated.groupby("method"):
        along = rows[rows["statistics"] == "interpolated"].set_index("s")["accuracy"]
        own = rows[rows["statistics"] == "own"].set_index("s")["accuracy"]
        assert along.index.tolist() == [0.0, 0.5, 1.0]
        assert along[1.0] == own[1.0] == recorded[str(method)]
        before = opened[str(method)].snapshots[-2].network
        assert along[0.0] == own[0.0] == opened[str(method)].accuracy(before)
        assert along[0.0] != along[1.0]  # else this shows nothing


def test_only_models_with_a_step_before_have_a_path(interpolated: pd.DataFrame) -> None:
    assert set(interpolated["method"]) == {"seq-ft", "st-1", "sft", "jm"}
    assert interpolated.attrs["notes"] == ["left out (no model before the last step): baseline, oracle, seq-erm"]


def test_statistics_of_batch_norm_are_re_estimated_unless_asked_otherwise(
    record: Record, interpolated: pd.DataFrame
) -> None:
    frame = table_of("weight-path", of(record, "sft"), points=3)
    along = frame[frame["statistics"] == "re-estimated"].set_index("s")["accuracy"]
    assert along.index.tolist() == [0.0, 0.5, 1.0]
    mixed = interpolated[(interpolated["method"] == "sft") & (interpolated["statistics"] == "interpolated")]
    assert along.tolist() != mixed["accuracy"].tolist()


def test_paths_that_cannot_be(record: Record) -> None:
    with pytest.raises(UserError, match="greater than or equal to 2"):
        table_of("weight-path", record, points=1)
    with pytest.raises(UserError, match="should be 're-estimated' or 'interpolated'"):
        table_of("weight-path", record, batch_norm="kept")
    with pytest.raises(UserError, match=r"no model before the last step\): baseline"):
        table_of("weight-path", of(record, "baseline"))


def test_the_oracle_is_the_origin_and_the_axes_are_as_long_as_the_differences(record: Record) -> None:
    frame = table_of("weight-projection", record)
    assert "st-1" in frame.attrs["notes"][0]
    oracle = frame[frame["method"] == "oracle"]
    assert oracle[["historical", "final"]].to_numpy().tolist() == [[0.0, 0.0]] * 4
    opened = visits(record)
    start = layer_weights(opened["oracle"].final)
    past, last = layer_weights(opened["seq-ft"].snapshots[0].network), layer_weights(opened["baseline"].final)
    assert start is not None
    assert past is not None
    assert last is not None
    for method, step, column, model in (("seq-ft", 1, "historical", past), ("baseline", 2, "final", last)):
        found = frame[(frame["method"] == method) & (frame["step"] == step)].set_index("layer")[column]
        lengths = {name: np.linalg.norm(model[name] - start[name]) for name in start}
        assert found.drop("all layers").to_dict() == pytest.approx(lengths, rel=1e-4)
        assert found["all layers"] == pytest.approx(np.sqrt(sum(d**2 for d in lengths.values())), rel=1e-4)
    assert frame[frame["method"] == "jm"]["step"].unique().tolist() == [0, 1, 2]


def test_an_oracle_that_was_not_run_is_asked_for(tmp_path: Path) -> None:
    record = ran(tmp_path, ["baseline"], shifts="L", sizes=[30, 30], test=30, epochs=1)
    with pytest.raises(UserError, match=r"fits of oracle, seed 0, are not in .*--methods oracle"):
        table_of("svcca", record)


def test_a_sequence_without_an_oracle_has_no_projection(tmp_path: Path) -> None:
    record = ran(tmp_path, ["baseline"], shifts="L", sizes=[30, 30], test=30, epochs=1, oracle=0)
    for name in ("weight-projection", "svcca"):
        with pytest.raises(UserError, match="this sequence has no oracle; model-map needs none"):
            table_of(name, record)


def test_similarity_to_the_oracle(record: Record) -> None:
    frame = table_of("svcca", of(record, "oracle", "baseline", "sft", "st-1")).set_index(["method", "step", "layer"])
    assert frame.loc["oracle"][["half", "most"]].to_numpy() == pytest.approx(np.ones((4, 2)), abs=1e-6)
    opened = visits(record)
    x = opened["oracle"].test.x
    for method in ("baseline", "st-1"):
        logits = torch_model(opened[method].final).predict(x), torch_model(opened["oracle"].final).predict(x)
        found = frame.loc[(method, 2, "fc")]
        assert found["half"] == pytest.approx(svcca(*logits, 0.5), abs=1e-5)
        assert found["most"] == pytest.approx(svcca(*logits, 0.9), abs=1e-5)
        assert found["half"] < 0.999
    layers = frame.loc[("sft", 0)]
    assert layers.loc["all layers", "half"] == pytest.approx(layers.drop("all layers")["half"].mean())


def test_strengths_are_those_of_the_trials(record: Record) -> None:
    frame = table_of("adjacent-strength", record)
    trials = next(run for run in record.runs if run.method == "jm").table("trials")
    tied = frame[frame["method"] == "jm"]
    assert tied["strength"].tolist() == trials["strength"].tolist() == [0.0, 0.1, 10.0]
    assert tied["score"].tolist() == trials["score"].tolist()
    assert set(frame[frame["strength"].isna()]["method"]) == {"baseline", "seq-erm"}
    with pytest.raises(UserError, match="run method jm"):
        table_of("adjacent-strength", of(record, "sft", "baseline"))


def test_three_models_lie_as_far_apart_as_they_disagree(record: Record) -> None:
    names = ["baseline", "oracle", "seq-erm"]
    frame = table_of("model-map", of(record, *names)).set_index("method")
    given = {run.method: run.table("probes")["prediction"].to_numpy() for run in record.runs}
    for one, other in (names[:2], names[1:], names[::2]):
        apart = np.hypot(*(frame.loc[one, ["x", "y"]] - frame.loc[other, ["x", "y"]]).astype(float))
        assert apart == pytest.approx(np.sqrt((given[one] != given[other]).mean()))
    assert frame["stress"].to_numpy() == pytest.approx(0, abs=1e-6)
    assert frame["accuracy"].to_dict() == {name: scores(record)[name] for name in names}


def test_the_map_has_every_step_and_shared_models_once_in_the_same_place(record: Record) -> None:
    frame = table_of("model-map", record)
    assert frame[frame["method"] == "sft"]["step"].tolist() == [0, 1, 2]
    past = frame[(frame["step"] == 1) & frame["method"].isin(["seq-ft", "st-1"])]
    assert len(past) == 2
    assert np.ptp(past[["x", "y"]].to_numpy(), axis=0) == pytest.approx([0, 0], abs=1e-9)


def decoded(uri: str) -> np.ndarray:
    image = pytest.importorskip("PIL.Image").open(io.BytesIO(base64.b64decode(uri.partition(",")[2])))
    return np.asarray(image)


def test_examples_are_the_same_originals_under_each_steps_shifts(record: Record) -> None:
    frame = table_of("examples", record).set_index(["step", "column"])
    assert frame["label"].unstack().to_numpy().tolist() == [
        ["top", "middle", "bottom"],
        ["top", "middle", "bottom"],
        ["bottom", "middle", "top"],
    ]
    x, y = images()
    for label in range(3):
        source = decoded(frame.loc[(0, label), "picture"])
        assert source.shape == (64, 64)
        small = source[::4, ::4, np.newaxis]
        assert (source == small[..., 0].repeat(4, 0).repeat(4, 1)).all()
        assert any((small == original).all() for original in x[y == label])
        turned, _ = apply(small[np.newaxis], np.array([label]), "R", 0, classes=3)
        for step in (1, 2):
            np.testing.assert_array_equal(decoded(frame.loc[(step, label), "picture"])[::4, ::4], turned[0, ..., 0])


def test_where_steps_differ_in_what_is_drawn_each_shows_its_own_samples(tmp_path: Path) -> None:
    record = ran(tmp_path, ["baseline"], shifts="l", sizes=[30, 30], test=30, epochs=1)
    frame = table_of("examples", record).set_index(["step", "column"])
    stream = reload_run(record.runs[0]).scenario.stream
    for step in (0, 1):
        samples = stream[step].samples
        for label in range(3):
            first = samples.x[np.flatnonzero(samples.y == label)[0], ..., 0]
            np.testing.assert_array_equal(decoded(frame.loc[(step, label), "picture"])[::4, ::4], first)


def test_rows_are_in_the_order_of_steps_in_every_panel() -> None:
    steps = {"RT": ["0 source", "1 rotation", "2 tint"], "TT": ["0 source", "1 tint", "2 tint"]}
    rows = [
        {"panel": panel, "step": step, "time": name, "column": 0, "label": "a", "picture": ""}
        for panel, steps_of in steps.items()
        for step, name in enumerate(steps_of)
    ]
    chart = json.dumps(Examples().chart(pd.DataFrame(rows)).to_dict())
    order = ["0 source", "1 rotation", "1 tint", "2 tint"]
    assert f'"sort": {json.dumps(order)}' in chart


def test_a_colour_picture_survives() -> None:
    image = np.random.default_rng(0).random((70, 80, 3))
    found = decoded("," + base64.b64encode(png(image, 1.0)).decode())
    np.testing.assert_array_equal(found, np.rint(image * 255))


def test_runs_without_networks_are_left_out(tmp_path: Path) -> None:
    spec = {
        "benchmark": "timeline",
        "data": {"name": "digits", "periods": 3},
        "model": "logistic-regression",
        "methods": ["erm"],
    }
    record = driftline.run({**spec, "timeline": {"resamples": 5}}, runs=tmp_path)
    with pytest.raises(UserError, match=r"nothing to draw. left out \(no networks are kept\): erm"):
        table_of("weight-path", record)
