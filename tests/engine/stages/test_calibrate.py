"""A run of constant difficulty without a calibration file makes it: shared, resumed, and equal to the command's."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import driftline
from driftline import registry
from driftline.benchmarks.test_time import accuracy_grid
from driftline.calibration.run import calibrate_model
from driftline.corruptions import corrupt
from driftline.data import Dataset
from driftline.engine.planning.plan import plan
from driftline.engine.run import run_plan
from driftline.engine.stages import Calibrate, CalibrationPart, Pretrain, Stage, StreamRun
from driftline.errors import UserError
from driftline.spec import parse
from driftline.store.store import Store
from driftline.streams import read_matrices
from driftline.tasks import Classification
from driftline.types import Samples

CORRUPTIONS = ("contrast", "brightness", "gaussian_noise")
OPTIONS: dict[str, Any] = {
    **{
        "order": "ccc",
        "corruptions": ",".join(CORRUPTIONS),
        "target": 60,
        "images": 96,
        "batch": 32,
        "images_per_point": 8,
    },
    **{"calibration_images": 60, "calibration_levels": 3, "upstream_updates": 40},
}


@pytest.fixture(autouse=True)
def squares(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Register colored squares as a dataset; return how often each corruption of the calibration was applied."""
    rng, y = np.random.default_rng(0), np.arange(240) % 3
    x = rng.integers(0, 90, (240, 32, 32, 3), dtype=np.uint8)
    x[np.arange(240), :, :, y] += 4
    samples, test = Samples(x, y, time=np.zeros(240, int)), np.arange(240) >= 120
    dataset = Dataset("squares", samples, Classification(tuple("rgb")), test=test)
    registry.names("dataset")
    monkeypatch.setitem(registry._things["dataset"], "squares", lambda where: dataset)
    calls: Counter[str] = Counter()

    def counted(images: np.ndarray, name: str, severity: float, keys: np.ndarray) -> np.ndarray:
        calls[name] += 1
        if calls["stop at"] and calls.total() - calls["stop at"] >= calls["stop at"]:
            raise KeyboardInterrupt
        return corrupt(images, name, severity, keys)

    monkeypatch.setattr(accuracy_grid, "builtin_corruptions", lambda frost=None: counted)
    return calls


def spec(**changes: Any) -> dict[str, Any]:
    parts = {"benchmark": "test-time", "data": "squares", "model": "linear", "methods": "frozen"}
    return {**parts, "seeds": [0, 1], "test-time": OPTIONS, **changes}


def of(kind: type[Stage], content: dict[str, Any]) -> list[Stage]:
    return [stage for stage in plan(parse(content)).stages if type(stage) is kind]


def test_one_calibration_serves_all_methods_and_seeds() -> None:
    two = spec(methods=["frozen", "lame"], seeds=[3, 4])
    (whole,), parts, runs = of(Calibrate, two), of(CalibrationPart, two), of(StreamRun, two)
    assert [part.title for part in parts] == [f"calibration: {name}" for name in CORRUPTIONS]
    assert whole.needs == tuple(part.key for part in parts)
    assert [run.needs[-1] for run in runs] == [whole.key] * 4
    assert [stage.job.seed for stage in of(Pretrain, two)] == [0, 3, 4], "calibrated is the network of seed 0"
    easier = {**OPTIONS, "target": 70, "path": "least-squares", "images_per_point": 16, "images": 64}
    assert of(Calibrate, spec(**{"test-time": easier}))[0].key == whole.key, "the path does not matter"
    for name, value in {"calibration_images": 59, "calibration_levels": 4, "upstream_updates": 41}.items():
        assert of(Calibrate, spec(**{"test-time": {**OPTIONS, name: value}}))[0].key != whole.key
    assert of(Calibrate, spec(data={"name": "squares"}, model="mlp"))[0].key != whole.key


def test_a_run_calibrates_itself_as_the_command_does(squares: Counter[str], tmp_path: Path) -> None:
    """The stream is that of a run that is given the command's file."""
    record = driftline.run(spec(), runs=tmp_path / "a")
    assert sum(squares.values()) == 3 * 2 * (1 + 2 * 2)
    (job, *_) = parse(spec()).jobs(default_model="")
    output, store = tmp_path / "file.safetensors", Store.create(tmp_path / "b")
    made = calibrate_model(job, CORRUPTIONS, output, images=60, levels=3, store=store)
    (whole,) = of(Calibrate, spec())
    assert output.read_bytes() == (tmp_path / "a" / "stages" / f"{whole.key}.safetensors").read_bytes()
    clean, lowest = made["contrast", "brightness"][0, 0], min(matrix.min() for matrix in made.by_pair.values())
    assert clean > 60, "the network was trained"
    assert lowest < clean - 10
    assert made.metadata["images"] == 60
    assert read_matrices(output).metadata["corruptions"] == list(CORRUPTIONS)
    given = driftline.run(spec(**{"test-time": {**OPTIONS, "calibration": str(output)}}), runs=tmp_path / "b")
    for own, other in zip(record.runs, given.runs, strict=True):
        assert own.card.protocol["calibration"] == other.card.protocol["calibration"]
        assert own.card.protocol["schedule"] == other.card.protocol["schedule"]
        assert (own.folder / "answers.parquet").read_bytes() == (other.folder / "answers.parquet").read_bytes()


def test_a_killed_calibration_resumes(squares: Counter[str], tmp_path: Path) -> None:
    whole, calm, shaken = plan(parse(spec())), Store.create(tmp_path / "calm"), Store.create(tmp_path / "shaken")
    run_plan(whole, calm)
    needed = squares.total()
    squares.clear()
    squares["stop at"] = 8  # in the second row of the first part
    with pytest.raises(KeyboardInterrupt):
        run_plan(whole, shaken)
    (part, *_), (stage,) = of(CalibrationPart, spec()), of(Calibrate, spec())
    assert [path.name for path in shaken.work_folder(part.key).rglob("*.safetensors")] == ["contrast-01.safetensors"]
    squares.clear()
    run_plan(whole, shaken)
    assert squares.total() == needed - 5, "the finished row is not measured again"
    assert shaken.stage_path(stage.key).read_bytes() == calm.stage_path(stage.key).read_bytes()
    assert not shaken.work_folder(part.key).exists()
    squares.clear()
    assert len(run_plan(whole, shaken).computed) == 0
    assert squares.total() == 0


def test_its_cost_is_told_before(tmp_path: Path) -> None:
    (note,) = plan(parse(spec())).notes
    assert "6 pairs of corruptions at 3 severities with 60 images" in note
    assert f"{60 * 3 * (1 + 2 * (1 + 2 * 2)):,} images to corrupt and classify" in note
    (key,) = (stage.key for stage in of(Calibrate, spec()))
    assert plan(parse(spec()), is_finished=lambda found: found == key).notes == ()


def test_an_existing_file_is_read_and_another_is_not_overwritten(squares: Counter[str], tmp_path: Path) -> None:
    (job, *_) = parse(spec()).jobs(default_model="")
    store, output = Store.create(tmp_path / "runs"), tmp_path / "small.safetensors"
    calibrate_model(job, CORRUPTIONS[:2], output, images=20, levels=2, store=store)
    squares.clear()
    calibrate_model(job, CORRUPTIONS[:2], output, images=20, levels=2, store=store)
    assert squares.total() == 0
    with pytest.raises(UserError, match="another model, data or setting"):
        calibrate_model(job, CORRUPTIONS[:2], output, images=21, levels=2, store=store)
    other = job.model_copy(update={"seed": 1})
    with pytest.raises(UserError, match="another model, data or setting"):
        calibrate_model(other, CORRUPTIONS[:2], output, images=20, levels=2, store=store)
