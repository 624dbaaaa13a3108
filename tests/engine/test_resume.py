"""A run killed at any moment resumes and ends bit-identical to one that was never killed."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import driftline
from driftline.engine.executors.base import Event
from driftline.engine.planning.plan import plan
from driftline.engine.run import as_spec, run_plan
from driftline.engine.stages import StageContext, checkpoint
from driftline.store.store import Store

pytestmark = pytest.mark.xdist_group("resume")  # what all its tests use is made once

SPEC = {
    "benchmark": "timeline",
    "data": {"name": "digits", "periods": 8},
    "model": "linear",
    "methods": [{"name": "erm", "updates": 40}, {"name": "erm-all", "updates": 40}, {"name": "ft", "updates": 40}],
    "seeds": 2,
    "reveal": {"delay": 1, "budget": 60},
    "timeline": {"resamples": 10, "upstream": 1, "upstream_updates": 400},
}
ONE = {**SPEC, "methods": SPEC["methods"][:1], "seeds": 1}  # type: ignore[index]
FILES = ("answers.parquet", "probes.parquet", "scores.parquet", "card.json")


def contents(folder: Path) -> dict[str, bytes]:
    """The bytes of every run in a store."""
    return {
        f"{path.parent.name}/{path.name}": path.read_bytes()
        for path in sorted((folder / "runs").glob("*/*"))
        if path.name in FILES
    }


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of an undisturbed run; tests copy it."""
    folder = tmp_path_factory.mktemp("plain")
    assert len(driftline.run(SPEC, runs=folder)) == 6
    return folder


@pytest.fixture(scope="module")
def plain(made: Path) -> dict[str, bytes]:
    """What an undisturbed run leaves."""
    return contents(made)


@pytest.fixture
def finished(made: Path, tmp_path: Path) -> Path:
    """A store with everything in it."""
    return shutil.copytree(made, tmp_path, dirs_exist_ok=True)


@pytest.fixture
def upstream(made: Path, tmp_path: Path) -> Path:
    """A store with nothing but the upstream models."""
    store = Store.create(tmp_path)
    shutil.copytree(made / "stages", store.folder / "stages", dirs_exist_ok=True)
    return tmp_path


def test_killed_many_times_equals_never_killed(
    plain: dict[str, bytes], upstream: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Upstream models are there: they take too long for such short lives, and have no checkpoints of their own."""
    monkeypatch.setattr(checkpoint, "CHECKPOINT_SECONDS", 0.0)
    moments = random.Random(7)
    planned, store, tmp_path = plan(as_spec(SPEC)), Store.open(upstream), upstream
    kills, resumed, window = 0, 0, 0.3
    while kills < 20 and resumed < 8:
        child = os.fork()
        if child == 0:  # a child with everything loaded starts at once, so that a kill hits real work
            try:
                run_plan(planned, store)
            finally:
                os._exit(0)
        time.sleep(moments.uniform(0.0, window))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        met = any((tmp_path / "work").glob("*/checkpoint.safetensors"))
        resumed += met
        window *= 1.0 if met else 1.3  # on a busy machine a child needs longer to come to its first checkpoint
        if os.WIFEXITED(status):
            break
        kills += 1
    driftline.run(SPEC, runs=tmp_path)
    print(f"survived {kills} kills, {resumed} of them with a checkpoint to resume from")
    assert resumed > 3, "the kills never met a run that had a checkpoint, so resuming was not tried"
    assert contents(tmp_path) == plain
    assert not list((tmp_path / "work").glob("*/*")), "nothing half-made is left behind"


def test_shared_stage_is_computed_once(finished: Path) -> None:
    assert len(list((finished / "stages").glob("*.safetensors"))) == 2, (
        "one upstream model per seed serves three methods"
    )
    made = {path: path.stat().st_mtime_ns for path in finished.rglob("*.parquet")}
    driftline.run(SPEC, runs=finished)
    assert {path: path.stat().st_mtime_ns for path in finished.rglob("*.parquet")} == made, (
        "a second run reuses everything"
    )


def test_methods_start_from_the_same_upstream_model(made: Path) -> None:
    record = driftline.load(made)
    first = record.answers.query("step == 0").pivot_table(index=["seed", "id"], columns="method", values="confidence")
    assert (first.nunique(axis=1) == 1).all(), "before any learning all methods answer with the upstream model"
    assert first["ft(updates=40)"].mean() > 0.4, "and that model has been trained"


@pytest.mark.parametrize("harm", ["truncated checkpoint", "empty checkpoint", "missing part", "truncated part"])
def test_what_is_damaged_is_made_again(
    plain: dict[str, bytes], upstream: Path, monkeypatch: pytest.MonkeyPatch, harm: str
) -> None:
    planned, store = plan(as_spec(ONE)), Store.open(upstream)
    monkeypatch.setattr(checkpoint, "CHECKPOINT_SECONDS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        run_plan(planned, store, on_event=_stop_after(4))
    (work,) = (upstream / "work").iterdir()
    victim = work / ("checkpoint.safetensors" if "checkpoint" in harm else "probes-000001.parquet")
    if harm == "missing part":
        victim.unlink()
    else:
        victim.write_bytes(b"" if "empty" in harm else victim.read_bytes()[:60])
    driftline.run(ONE, runs=upstream)
    assert len(contents(upstream)) == len(FILES)
    assert contents(upstream).items() <= plain.items()


def test_a_damaged_shared_stage_is_computed_again(plain: dict[str, bytes], upstream: Path) -> None:
    path = Store.open(upstream).stage_path(plan(as_spec(ONE)).stages[0].key)
    path.write_bytes(path.read_bytes()[:60])
    driftline.run(ONE, runs=upstream)
    assert len(contents(upstream)) == len(FILES)
    assert contents(upstream).items() <= plain.items()


def test_a_run_whose_card_is_lost_is_made_again(plain: dict[str, bytes], finished: Path) -> None:
    (driftline.load(finished).runs[0].folder / "card.json").unlink()
    driftline.run(SPEC, runs=finished)
    assert contents(finished) == plain


@pytest.mark.parametrize("met_by", ["a new run", "a worker that waited for it"])
def test_workings_left_by_a_death_within_commit_are_forgotten(
    plain: dict[str, bytes], finished: Path, met_by: str
) -> None:
    planned, store = plan(as_spec(SPEC)), Store.open(finished)
    stage = next(stage for stage in planned.stages if stage.is_result)
    left = store.work_folder(stage.key)
    left.mkdir(parents=True)
    (left / "checkpoint.safetensors").write_bytes(b"the run was moved into place, and then its maker was killed")
    if met_by == "a new run":
        driftline.run(SPEC, runs=finished)
    else:
        stage.run(StageContext(store))
    assert not left.exists()
    assert contents(finished) == plain


def _stop_after(steps: int) -> Callable[[Event], None]:
    def watch(event: Event) -> None:
        if event.kind == "advanced" and event.done >= steps:
            raise KeyboardInterrupt

    return watch


def test_two_processes_on_one_store_lose_nothing(plain: dict[str, bytes], tmp_path: Path) -> None:
    children = []
    for _ in range(3):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                computed = run_plan(plan(as_spec(SPEC)), Store.create(tmp_path)).computed
                (tmp_path / f"computed-by-{os.getpid()}").write_text(" ".join(stage.key for stage in computed))
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0, 0]
    assert contents(tmp_path) == plain
    assert len(Store(tmp_path).record()) == 6
    computed = [key for path in tmp_path.glob("computed-by-*") for key in path.read_text().split()]
    assert sorted(computed) == sorted(stage.key for stage in plan(as_spec(SPEC)).stages), "each by one of them"
