"""A store at a URL: finished things are fetched and brought, whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fsspec
import pytest
from typer.testing import CliRunner

import driftline
from driftline.cli.main import app
from driftline.engine.planning.plan import plan
from driftline.engine.run import as_spec, run_plan
from driftline.errors import DiskError, UserError
from driftline.store import check
from driftline.store.remote import RemoteStore
from driftline.store.store import Store

SPEC: dict[str, Any] = {
    "benchmark": "timeline",
    "data": {"name": "digits", "periods": 4},
    "model": "linear",
    "methods": [{"name": "erm", "updates": 2}, {"name": "ft", "updates": 2}],
    "timeline": {"resamples": 10, "upstream": 1, "upstream_updates": 20},
    "seeds": 1,
}


@pytest.fixture(autouse=True)
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Go to another machine: one whose cache folder is empty."""

    def machine(name: str) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))

    machine("first")
    return machine


@pytest.fixture(params=["file", "memory"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"file://{tmp_path}/there" if request.param == "file" else f"memory://{tmp_path.name}/there"


def names(url: str) -> list[str]:
    there, root = fsspec.core.url_to_fs(url)
    return sorted(name[len(root) + 1 :] for name in there.find(root))


def test_another_machine_finds_what_was_finished(url: str, caches: Any, tmp_path: Path) -> None:
    alone = driftline.run(SPEC, runs=tmp_path / "alone")
    driftline.run(SPEC, runs=url)
    assert not [name for name in names(url) if "/." in name], "nothing half-made is left"
    caches("second")
    store, work = Store.create(url), plan(as_spec(SPEC))
    summary = run_plan(work, store)
    assert not summary.computed
    assert [run.key for run in store.record(work.run_keys).runs] == [run.key for run in alone.runs]
    for run, same in zip(store.record(work.run_keys).runs, alone.runs, strict=True):
        assert (run.folder / "answers.parquet").read_bytes() == (same.folder / "answers.parquet").read_bytes()
    assert not list((store.folder / "stages").glob("*")), "a stage that no missing run needs is not fetched"


def test_a_stage_that_a_missing_run_needs_is_fetched(url: str, caches: Any) -> None:
    driftline.run(SPEC, runs=url)
    caches("second")
    store = Store.create(url)
    more = plan(as_spec({**SPEC, "methods": [*SPEC["methods"], {"name": "ft", "updates": 3}]}))
    summary = run_plan(more, store)
    assert [stage.title for stage in summary.computed] == ["ft(updates=3) seed 0"]
    assert len([name for name in names(url) if name.endswith("card.json")]) == 3


def test_plan_knows_the_stages_that_are_there_too(url: str, caches: Any) -> None:
    driftline.run(SPEC, runs=url)
    caches("second")
    found = driftline.plan(SPEC, runs=url, seconds=1)
    assert {word: (kind.stages, kind.done) for word, kind in found.kinds.items()} == {
        "pretraining": (1, 1),
        "probes and score": (2, 2),
    }


def test_a_stage_that_failed_once_and_is_there_has_not_failed(url: str, caches: Any) -> None:
    driftline.run(SPEC, runs=url)
    store, (stage, *_) = Store.create(url), plan(as_spec(SPEC)).stages
    store.fail(stage.key, stage.job.model_dump(mode="json"), "its worker process ended by SIGKILL")
    assert store.remote is not None
    store.remote.upload(f"failed/{stage.key}.json")
    caches("second")
    assert Store.open(url).failures() == []


def test_a_run_without_its_card_is_none(url: str, caches: Any) -> None:
    driftline.run(SPEC, runs=url)
    there, root = fsspec.core.url_to_fs(url)
    card = next(name for name in names(url) if name.endswith("card.json"))
    there.rm_file(f"{root}/{card}")
    caches("second")
    assert len(Store.open(url).record().runs) == 1
    summary = run_plan(plan(as_spec(SPEC)), Store.create(url))
    assert len(summary.computed) == 1
    caches("third")
    assert len(Store.open(url).record().runs) == 2


def test_damage_over_there_is_found_and_made_again(url: str) -> None:
    driftline.run(SPEC, runs=url)
    there, root = fsspec.core.url_to_fs(url)
    scores = next(name for name in names(url) if name.endswith("scores.parquet"))
    run = scores.rpartition("/")[0]
    content = bytearray(there.cat_file(f"{root}/{scores}"))
    content[100] ^= 1
    there.pipe_file(f"{root}/{scores}", bytes(content))
    store = Store.open(url)
    assert len(store.record().runs) == 2, "the copy here is whole"
    assert check.check(store).damage == {run: "scores.parquet: its checksum differs"}
    summary = run_plan(plan(as_spec(SPEC)), Store.create(url))
    assert [f"runs/{stage.key}" for stage in summary.computed] == [run]
    assert check.check(store).damage == {}
    check.remove(store, run)
    assert not [name for name in names(url) if name.startswith(run)]
    assert len(Store.open(url).record().runs) == 1


def test_what_could_not_be_brought_is_brought_by_the_next_sweep(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(remote: RemoteStore, name: str) -> None:
        with remote._remote_errors("write to"):
            raise PermissionError("not yours")

    work = plan(as_spec(SPEC))
    with monkeypatch.context() as patch:
        patch.setattr(RemoteStore, "upload", refused)
        with pytest.raises(DiskError, match=r"cannot write to .*: not yours\. What was finished is in"):
            run_plan(work, Store.create(url))
    assert not names(url)
    assert not run_plan(work, Store.create(url)).computed
    assert len([name for name in names(url) if name.endswith("card.json")]) == 2


def test_a_failure_and_the_reading_commands_reach_the_url(url: str, caches: Any, tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from driftline.learners.supervised.ft import FineTune\nclass Mine(FineTune):\n  def learn(self, x, y): 1 / 0\n"
    )
    store = Store.create(url)
    run_plan(plan(as_spec({**SPEC, "methods": [*SPEC["methods"][:1], f"{mine}:Mine"]})), store)
    caches("second")
    shown = CliRunner().invoke(app, ["table", "--runs", url])
    assert shown.exit_code == 0, shown.output
    assert "erm" in shown.output
    assert CliRunner().invoke(app, ["table", url]).output == shown.output
    asked = CliRunner().invoke(app, ["query", "select reason from failures", "--runs", url])
    assert "division by zero" in asked.output


def test_a_place_that_cannot_be_reached_is_said() -> None:
    with pytest.raises(UserError, match="nowhere"):
        Store.open("nowhere://bucket/runs")
