"""test-time: numbers that agree with a direct loop, streams that do not depend on batches, and refusals in words."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import driftline
from driftline.benchmarks.test_time.accuracy_grid import AccuracyGrid
from driftline.benchmarks.test_time.benchmark import Options, TestTime
from driftline.benchmarks.test_time.streams import build_schedule
from driftline.corruptions import corrupt
from driftline.data import load
from driftline.engine.build import DatasetCache, build_model, load_pretrained
from driftline.engine.executors.base import Event
from driftline.engine.planning.plan import plan
from driftline.engine.run import as_spec, run_plan
from driftline.engine.stages import Pretrain, checkpoint
from driftline.errors import UserError
from driftline.learners.frozen import Frozen
from driftline.learners.test_time.tent import Tent
from driftline.metrics.test_time import split_windows
from driftline.record.run import Record, Run
from driftline.seeds import Seed
from driftline.store.store import Store
from driftline.streams import corruption_path, write_shards
from driftline.streams.test_time.calibration import AccuracyMatrices, write_matrices
from driftline.streams.test_time.stream import builtin_corruptions, image_keys

pytestmark = pytest.mark.xdist_group("test-time")  # what all its tests use is made once

NAMES = ("gaussian_noise", "contrast", "brightness")
OPTIONS: dict[str, Any] = {
    **{"order": "cin-c", "corruptions": ",".join(NAMES), "images": 230, "batch": 16, "images_per_point": 20},
    **{"upstream_updates": 60, "upstream_lr": 0.01, "resamples": 20},
}
METHODS: list[Any] = ["frozen", "bn", {"name": "tent", "lr": 0.05}, {"name": "rdumb", "lr": 0.05, "reset_every": 4}]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Colour images of 32 pixels in four classes: which quarter is bright."""
    path = tmp_path_factory.mktemp("data") / "quarters.npz"
    y = np.arange(240) % 4
    x = np.random.default_rng(0).integers(0, 130, (240, 32, 32, 3), dtype=np.uint8)
    for image, label in zip(x, y, strict=True):
        top, left = 16 * (label // 2), 16 * (label % 2)
        image[top : top + 16, left : left + 16] += np.uint8(60)
    np.savez(path, x=x, y=y, test=np.arange(240) >= 160)
    return path


def spec(file: Path, methods: list[Any] | None = None, **options: Any) -> dict[str, Any]:
    return {
        "benchmark": "test-time",
        "data": {"name": "npz", "path": str(file)},
        "model": {"name": "conv-1", "width": 4},
        "methods": methods or METHODS,
        "test-time": {**OPTIONS, **options},
    }


@pytest.fixture(scope="module")
def small(file: Path, tmp_path_factory: pytest.TempPathFactory) -> Record:
    return driftline.run(spec(file), runs=tmp_path_factory.mktemp("runs"))


def by_method(record: Record) -> dict[str, Run]:
    return {run.method.partition("(")[0]: run for run in record.runs}


def layout(file: Path, seed: int = 0, **options: Any) -> Any:
    return TestTime().build_scenario(load("npz", {"path": str(file)}), Options(**{**OPTIONS, **options}), Seed(seed))


def upstream(small: Record, file: Path) -> Any:
    """The model that all methods of these runs started from."""
    stage = next(stage for stage in plan(as_spec(spec(file))).stages if isinstance(stage, Pretrain))
    model = build_model(stage.job, DatasetCache().load(stage.job.data))
    load_pretrained(model, Store.open(small.runs[0].folder.parents[1]).stage_path(stage.key))
    return model


def value(run: Run, metric: str) -> float:
    scores = run.table("scores")
    found = scores[(scores["metric"] == metric) & (scores["stat"] == "mean")]["value"]
    return float(found.item())


def test_images_made_by_processes_and_activations_made_twice_give_the_same_run(
    small: Record, file: Path, tmp_path: Path
) -> None:
    settings = {"name": "cpu", "workers": 2, "checkpoint_activations": True}
    record = driftline.run({**spec(file, METHODS[2:3]), "device": settings}, runs=tmp_path)
    (found,), expected = record.runs, by_method(small)["tent"]
    assert found.key == expected.key
    for name in ("answers.parquet", "diagnostics.parquet", "card.json"):
        assert (found.folder / name).read_bytes() == (expected.folder / name).read_bytes()
    runtime = json.loads((found.folder / "runtime.json").read_bytes())
    assert 0 < runtime["waited_for_data"] < runtime["seconds"]


def test_scores_agree_with_a_direct_count(small: Record) -> None:
    assert small.runs
    for run in small.runs:
        answers, scores = run.table("answers"), run.table("scores")
        correct = (answers["prediction"] == answers["truth"]).to_numpy(float)
        assert len(correct) == 230
        assert value(run, "stream-accuracy") == pytest.approx(correct.mean())
        batches = [correct[k : k + 16].mean() for k in range(0, 230, 16)]
        assert value(run, "batch-accuracy") == pytest.approx(np.mean(batches))
        assert value(run, "last-tenth") == pytest.approx(correct[-23:].mean())
        each = scores[scores["stat"] == "each"]
        assert each["time"].astype(int).tolist() == np.cumsum([len(part) for part in split_windows(correct)]).tolist()
        assert each["value"].tolist() == pytest.approx([part.mean() for part in split_windows(correct)])
        assert (each["low"] <= each["value"] + 1e-9).all()


def test_the_frozen_model_by_hand(small: Record, file: Path) -> None:
    model, stream = upstream(small, file), layout(file).stream
    learner = Frozen()
    learner.prepare(model, load("npz", {"path": str(file)}).task)
    predictions = [learner.predict(stream[k].samples.x).prediction for k in range(len(stream))]
    answers = by_method(small)["frozen"].table("answers")
    assert answers["prediction"].tolist() == np.concatenate(predictions).tolist()
    assert value(by_method(small)["frozen"], "stream-accuracy") > 0.3, "the network has been trained"


def test_tent_by_hand_and_what_it_shows_of_its_inside(small: Record, file: Path) -> None:
    run, model, stream = by_method(small)["tent"], upstream(small, file), layout(file).stream
    learner = Tent(lr=0.05)
    learner.prepare(model, load("npz", {"path": str(file)}).task)
    first = copy.deepcopy(model.state_dict())
    predictions = [learner.answer(stream[k].samples.x).prediction for k in range(len(stream))]
    assert run.table("answers")["prediction"].tolist() == np.concatenate(predictions).tolist()
    moved = [(weight - first[name]).flatten() for name, weight in model.named_parameters()]
    distance = torch.cat(moved).norm().item()
    diagnostics = run.table("diagnostics")
    assert diagnostics["gauge"].nunique() > 1
    far = diagnostics[diagnostics["gauge"] == "distance from the start"]["value"].to_numpy()
    assert far[-1] == pytest.approx(distance)
    assert len(far) == len(stream)
    assert far[0] > 0, "it is shown after the update"


def test_a_reset_takes_the_weights_back(small: Record) -> None:
    diagnostics = by_method(small)["rdumb"].table("diagnostics")
    far = diagnostics[diagnostics["gauge"] == "distance from the start"]["value"].to_numpy()
    assert far[3] > far[0]
    assert far[4] < far[3], "the fifth step starts again"


def test_the_stream_follows_its_schedule(file: Path) -> None:
    """Each image by hand: its source, its corruption, its noise."""
    made, options = layout(file), Options(**OPTIONS)
    schedule, _ = build_schedule(options, 0)
    assert sorted(point.first for point in schedule.points) == sorted(NAMES)
    stream, where = made.stream.stream, Seed(0).child("test-time")
    step = made.stream[1]  # positions 16 to 31: four of the first point, then twelve of the second
    rows, noise = stream.rows(np.arange(16, 32)), image_keys(where.child("noise"), np.arange(16, 32))
    for k, (row, key) in enumerate(zip(rows, noise, strict=True)):
        point = schedule.points[0 if k < 4 else 1]
        source = load("npz", {"path": str(file)}).samples.x[160 + row][None]
        expected = corrupt(source, point.first, 5.0, np.array([key]))
        assert np.array_equal(step.samples.x[k], expected[0])
    assert step.samples.id.tolist() == list(range(16, 32))
    assert step.samples.group.tolist() == [0] * 4 + [1] * 12


def images(made: Any) -> np.ndarray:
    return np.concatenate([made.stream[k].samples.x for k in range(len(made.stream))])


@pytest.mark.parametrize("order", ["cin-c", "standard", "gradual", "mixed", "holdout", "ccc"])
def test_images_do_not_depend_on_batches(file: Path, tmp_path: Path, order: str) -> None:
    given: dict[str, Any] = {"order": order, "images": 60, "images_per_point": 7}
    if order == "holdout":
        given["corruptions"] = "speckle_noise,saturate"
    if order == "ccc":
        given |= {"calibration": str(calibrated(tmp_path)), "target": 50}
    small, large = layout(file, batch=7, **given), layout(file, batch=32, **given)
    assert (len(small.stream), len(large.stream)) == (9, 2)
    assert np.array_equal(images(small), images(large))
    backwards = [small.stream[k].samples.x for k in reversed(range(9))]
    assert np.array_equal(np.concatenate(backwards[::-1]), images(large)), "made ahead or not, in whatever order"
    assert not np.array_equal(images(layout(file, seed=1, batch=32, **given)), images(large))


def calibrated(folder: Path) -> Path:
    """Accuracies that fall by 2 percent a level of either corruption."""
    fall = 2.0 * (np.arange(21)[:, None] + np.arange(21)[None, :])
    of = {(one, other): 90.0 - fall for one in NAMES for other in NAMES if one != other}
    write_matrices(AccuracyMatrices(of, {"model": "made up"}), folder / "made.safetensors")
    return folder / "made.safetensors"


def test_ccc_keeps_to_its_paths(file: Path, tmp_path: Path) -> None:
    made = layout(file, order="ccc", calibration=str(calibrated(tmp_path)), target=50, images=1000, images_per_point=20)
    schedule = made.protocol["schedule"]
    first, second = schedule["order"][:2]
    path = corruption_path(90.0 - 2.0 * (np.arange(21)[:, None] + np.arange(21)[None, :]), 50)
    assert schedule["paths"][first] == [[i / 4, j / 4] for i, j in path]
    assert first.split(" > ")[1] == second.split(" > ")[0], "the second corruption is the next one's first"
    assert made.protocol["difficulty"] == "50 percent for the calibrated model"
    assert made.protocol["calibration"]["model"] == "made up"


def test_a_calibrated_stream_is_as_hard_as_asked(small: Record, file: Path, tmp_path: Path) -> None:
    """The network of these runs, calibrated on its own test images, comes near the target on the stream."""
    dataset, learner = load("npz", {"path": str(file)}), Frozen()
    learner.prepare(upstream(small, file), dataset.task)
    test = dataset.samples[dataset.test]
    grid = AccuracyGrid(test, NAMES[:2], 5, Seed(0), builtin_corruptions())
    matrices = grid.matrices([grid.measure(part, lambda x: learner.predict(x).prediction, None) for part in grid.parts])
    clean = next(iter(matrices.by_pair.values()))[0, 0]
    hardest = max(matrix[-1, 0] for matrix in matrices.by_pair.values())
    target = (clean + hardest) / 2
    write_matrices(matrices, tmp_path / "own.safetensors")
    given = {"order": "ccc", "calibration": str(tmp_path / "own.safetensors"), "target": target, "images": 600}
    given |= {"corruptions": ",".join(NAMES[:2]), "batch": 100}
    stream = layout(file, **given).stream
    steps = [stream[k].samples for k in range(len(stream))]
    right = np.concatenate([learner.predict(step.x).prediction == step.y for step in steps]).mean()
    assert abs(100 * right - target) < 15


def test_the_standard_order_is_that_of_imagenet_c_or_as_named_for_every_seed() -> None:
    usual = ("gaussian_noise", "shot_noise", "impulse_noise", "defocus_blur", "glass_blur", "motion_blur", "zoom_blur")
    for seed in range(3):
        points = build_schedule(Options(order="standard"), seed)[0].points
        assert tuple(point.first for point in points[:7]) == usual
        assert {(point.s1, point.second) for point in points} == {(5.0, "")}
        named = build_schedule(Options(order="standard", corruptions="fog,contrast,snow", severity=3), seed)[0].points
        assert [(point.first, point.s1) for point in named] == [("fog", 3), ("contrast", 3), ("snow", 3)]


def test_gradual_and_holdout_schedules() -> None:
    gradual, about = build_schedule(Options(**{**OPTIONS, "order": "gradual"}), 0)
    assert [point.s1 for point in gradual.points[:9]] == [1, 2, 3, 4, 5, 4, 3, 2, 1]
    assert about["difficulty"] == "severity 1 to 5 and back"
    given = {**OPTIONS, "order": "holdout", "corruptions": None}
    holdout = [tuple(point.first for point in build_schedule(Options(**given), seed)[0].points) for seed in range(25)]
    assert len(set(holdout[:24])) == 24, "each seed another of the 24 orders"
    assert holdout[24] == holdout[0]
    mixed, _ = build_schedule(Options(**{**OPTIONS, "order": "mixed", "severity": 2}), 0)
    assert mixed.mixed
    assert {point.s1 for point in mixed.points} == {2.0}


def test_a_run_that_was_stopped_half_way_ends_as_if_it_had_not(
    small: Record, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "CHECKPOINT_SECONDS", 0.0)
    given = spec(file, METHODS[3:])
    with pytest.raises(KeyboardInterrupt):
        run_plan(plan(as_spec(given)), Store.create(tmp_path), on_event=stop_after(6))
    assert list((tmp_path / "work").glob("*/checkpoint.safetensors"))
    (resumed,), never = driftline.run(given, runs=tmp_path).runs, by_method(small)["rdumb"]
    for name in ("answers.parquet", "diagnostics.parquet", "scores.parquet", "card.json"):
        assert (resumed.folder / name).read_bytes() == (never.folder / name).read_bytes()


def stop_after(steps: int) -> Callable[[Event], None]:
    def watch(event: Event) -> None:
        if event.kind == "advanced" and event.done >= steps:
            raise KeyboardInterrupt

    return watch


def test_all_methods_see_the_same_images_and_the_training_images_stay_out(small: Record, file: Path) -> None:
    first, *others = (run.table("answers")[["step", "time", "id", "group", "truth"]] for run in small.runs)
    assert all(first.equals(other) for other in others)
    made = layout(file)
    assert len(made.upstream) == 160
    assert len(made.stream.stream.source) == 80
    assert small.runs[0].card.protocol["last_batch"] == 230 % 16


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": "ccc", "calibration": "nowhere"}, "there is no file nowhere with a calibration"),
        ({"images": 33}, "leaves one image for the last batch of 16"),
        ({"corruptions": "fogg"}, r"no corruption 'fogg'\. Did you mean 'fog'"),
    ],
)
def test_refusals_of_options(file: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        layout(file, **options)


def test_refusals_of_data(tmp_path: Path, file: Path) -> None:
    with np.load(file) as content:
        x, y = content["x"], content["y"]
    np.savez(tmp_path / "grey.npz", x=x[..., :1], y=y, test=np.arange(240) >= 160)
    with pytest.raises(UserError, match="corruptions are made for color images in bytes"):
        layout(tmp_path / "grey.npz")
    np.savez(tmp_path / "all.npz", x=x, y=y)
    with pytest.raises(UserError, match=r"'npz' has no images to train on.*--upstream-updates 0"):
        layout(tmp_path / "all.npz")
    assert layout(tmp_path / "all.npz", upstream_updates=0).upstream is None  # test images are for the stream alone


def test_nothing_is_ever_fitted_to_the_images_of_the_stream(tmp_path: Path, file: Path) -> None:
    with np.load(file) as content:
        np.savez(tmp_path / "all.npz", x=content["x"], y=content["y"])
    untaught = spec(tmp_path / "all.npz", ["frozen"], upstream_updates=0)
    with pytest.raises(UserError, match=r"needs a pretrained model: give weights \(--set model\.weights"):
        driftline.run({**untaught, "model": "logistic-regression"}, runs=tmp_path / "runs")
    with pytest.raises(UserError, match=r"needs a pretrained model.*data with images to train on$"):
        driftline.run(untaught, runs=tmp_path / "runs")


def test_a_network_that_is_known_to_be_random_is_refused(tmp_path: Path, file: Path) -> None:
    random = {**spec(file, ["bn"], upstream_updates=0), "model": {"name": "resnet20", "width": 4}}
    with pytest.raises(UserError, match="needs a pretrained model"):
        driftline.run(random, runs=tmp_path)


def test_shards_show_the_very_stream_that_was_kept_in_them(small: Record, file: Path, tmp_path: Path) -> None:
    write_shards(layout(file).stream.stream, tmp_path / "kept", per_shard=100, format="png")
    methods = ["frozen", {"name": "tent", "lr": 0.05}]
    kept = driftline.run(
        spec(file, methods, order="shards", shards=str(tmp_path / "kept"), images=5000), runs=tmp_path / "runs"
    )
    for label, run in by_method(kept).items():
        ours, theirs = run.table("answers"), by_method(small)[label].table("answers")
        assert len(ours) == OPTIONS["images"]  # all there are
        pd.testing.assert_series_equal(ours["prediction"], theirs["prediction"])
        assert run.card.protocol["shards"] == 3
        assert "schedule" not in run.card.protocol
    assert len(layout(file, order="shards", shards=str(tmp_path / "kept"), images=48).stream) == 3
    with pytest.raises(UserError, match="give their folder with --shards FOLDER"):
        layout(file, order="shards")
    with pytest.raises(UserError, match="images=49 leaves one image"):
        layout(file, order="shards", shards=str(tmp_path / "kept"), images=49)


def test_single_images_are_refused_by_batch_norm_alone(file: Path, tmp_path: Path) -> None:
    (run,) = driftline.run(spec(file, ["frozen"], batch=1, images=5), runs=tmp_path).runs
    assert pd.unique(run.table("answers")["step"]).tolist() == [0, 1, 2, 3, 4]
    for method in ("bn", "periodic-reset"):
        with pytest.raises(UserError, match=rf"{method} needs at least 2 inputs per batch with conv-1, and a batch of"):
            driftline.run(spec(file, ["frozen", method], batch=1, images=6), runs=tmp_path / "none")
    assert not list((tmp_path / "none").glob("runs/*")), "refused before any run starts"


def test_a_given_order_needs_no_other_option(tmp_path: Path) -> None:
    dataset = load("color-digits")
    assert dataset.test is not None
    rows = np.flatnonzero(dataset.test)[[3, 1, 2, 0]]
    pd.DataFrame({"row": rows, "corruption": "contrast"}).to_csv(tmp_path / "order.csv", index=False)
    options = Options(stream=str(tmp_path / "order.csv"), batch=2)
    assert (options.order, Options(**options.model_dump()) == options) == ("given", True)
    scenario = TestTime().build_scenario(dataset, options, Seed(0))
    shown = np.concatenate([scenario.stream[k].samples.y for k in range(2)])
    assert shown.tolist() == dataset.samples.y[rows].tolist()
    assert scenario.protocol["protocol"] == "given, 4 images in batches of 2"
    chosen_by = options.validation_options()
    assert chosen_by is not None
    assert (chosen_by.order, chosen_by.stream) == ("holdout", None)
    for refused, message in (
        (Options(order="given"), "give it with --stream FILE"),
        (Options(order="cin-c", stream="order.csv"), "leave out order=cin-c"),
    ):
        with pytest.raises(UserError, match=message):
            TestTime().build_scenario(dataset, refused, Seed(0))
