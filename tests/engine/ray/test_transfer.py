"""A stage can be computed with nothing but what it needs, and its result travels whole."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driftline.engine.planning.plan import Plan, plan
from driftline.engine.ray import transfer
from driftline.engine.run import as_spec, run_plan
from driftline.engine.stages import Fit, Stage, StageContext
from driftline.errors import UserError
from driftline.io import user_files
from driftline.spec.files import named_files
from driftline.spec.job import Job, LabelPolicy
from driftline.spec.settings import Choice
from driftline.store.store import Store


@pytest.fixture
def work(tmp_path: Path) -> Plan:
    """Fits that start from fits that start from fits, and the run that needs them all."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 255, (200, 16, 16, 1), dtype=np.uint8), np.tile(np.arange(4), 50)
    np.savez(tmp_path / "noise.npz", x=x, y=y, test=np.arange(200) >= 150)
    settings = {"shifts": "R", "sizes": "60,40", "test": 40, "oracle": 0, "epochs": 1, "batch": 20, "resamples": 20}
    spec = {
        "benchmark": "seq-to-final",
        "data": {"name": "npz", "path": str(tmp_path / "noise.npz")},
        "model": {"name": "conv-1", "width": 2},
        "methods": ["lp-ft"],
        "seeds": 1,
        "seq-to-final": {**settings, "lr": "3e-3,1e-3", "weight_decay": "1e-4", "dropout": 0},
    }
    return plan(as_spec(spec))


def apart(stage: Stage, store: Store, scratch: Store) -> None:
    """Compute a stage in a store that has what it needs and no more, and take the result back."""
    for key in stage.needs:
        scratch.stage_path(key).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(store.stage_path(key), scratch.stage_path(key))
    stage.run(StageContext(scratch))
    arrival = transfer.IncomingResult(stage, store)
    for piece in transfer.iter_chunks(stage.result_files(scratch)):
        assert not stage.is_done(store), "nothing is in the store before all of it has come"
        arrival.add(piece)
    arrival.commit("elsewhere")


def test_a_stage_needs_no_more_than_it_says(work: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "CHUNK", 100)  # many pieces of each file
    alone, store = Store.create(tmp_path / "serial"), Store.create(tmp_path / "apart")
    run_plan(work, alone)
    assert max(len(stage.needs) for stage in work.stages if isinstance(stage, Fit)) > 2, (
        "fits need those before their own"
    )
    for stage in work.stages:
        apart(stage, store, Store(tmp_path / f"scratch-{stage.key}"))
    (key,) = work.run_keys
    for path in alone.run_folder(key).iterdir():
        if path.name != "runtime.json":
            assert (store.run_folder(key) / path.name).read_bytes() == path.read_bytes(), path.name
    assert '"node": "elsewhere"' in (store.run_folder(key) / "runtime.json").read_text()
    assert not list(store.folder.glob("work/*"))


def test_half_a_result_leaves_nothing(work: Plan, tmp_path: Path) -> None:
    store, stage = Store.create(tmp_path / "store"), work.stages[-1]
    arrival = transfer.IncomingResult(stage, store)
    arrival.add(("card.json", b"{"))
    arrival.discard()
    assert not stage.is_done(store)
    assert not list(store.work_folder(stage.key).glob("*"))


def job(**settings: Any) -> Job:
    return Job(
        benchmark="test-time",
        options={"shifts": "C+blur.py:Blur=2,R", "order": "gradual", "frost": "textures"},
        data=Choice(name="npz", settings={"path": "data.npz"}),
        model=Choice(name="resnet18", settings=settings),
        method=Choice(name="mine.py:Mine", settings={"options": {"weights": "inner/w.safetensors"}}),
        label="",
        seed=0,
        reveal=LabelPolicy(),
    )


def test_files_that_a_job_names_travel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DRIFTLINE_DATA", str(tmp_path / "data"))
    for name in ("mine.py", "blur.py", "data.npz", "inner/w.safetensors", "data/weights/bare.pth", "hub/config.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "gradual").mkdir()  # a folder that happens to be called as a setting is none that was named
    found = named_files(job(weights="bare.pth", folder="./hub"))
    assert set(found) == {"mine.py", "blur.py", "inner/w.safetensors", "bare.pth", "./hub"}
    there = tmp_path / "there"
    for name, path in found.items():
        files = transfer.read_tree(path)
        assert files is not None
        transfer.write_tree(files, there / name.replace("/", "-"))
    assert (there / ".-hub" / "hub" / "config.json").read_text() == "hub/config.json"
    assert (there / "bare.pth" / "bare.pth").read_text() == "data/weights/bare.pth"


def test_what_is_too_heavy_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "w").write_bytes(b"12345")
    monkeypatch.setattr(transfer, "MAX_TREE", 4)
    assert transfer.read_tree(tmp_path / "w") is None


def test_no_file_is_written_outside_of_its_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="outside of"):
        transfer.write_tree({"../out": b""}, tmp_path / "in")
    assert not (tmp_path / "out").exists()


def test_a_copy_goes_before_the_place_that_a_name_says(tmp_path: Path) -> None:
    with user_files.use_copies({"w.pth": tmp_path / "copy"}):
        assert user_files.resolve("w.pth") == tmp_path / "copy"
        assert user_files.resolve("v.pth") == Path("v.pth")
    assert user_files.resolve("w.pth") == Path("w.pth")
