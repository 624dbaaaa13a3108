"""Damage is never read back silently: flipped bits, missing files; readers go on without it and a run repairs it."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import driftline
from driftline.cli.main import app
from driftline.engine.planning.plan import plan
from driftline.engine.run import as_spec, run_plan
from driftline.errors import DamagedFile
from driftline.io import serialization
from driftline.record.run import Run, load
from driftline.store import check
from driftline.store.store import Store

pytestmark = pytest.mark.xdist_group("damage")  # what all its tests use is made once

SPEC: dict[str, Any] = {
    "benchmark": "timeline",
    "data": {"name": "digits", "periods": 3},
    "model": "logistic-regression",
    "methods": ["erm", "frozen"],
    "timeline": {"resamples": 2, "upstream": 1},
}
FLIPS = 4  # per file


@pytest.fixture(scope="module")
def finished_at(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    driftline.run(SPEC, runs=folder)
    return folder


@pytest.fixture
def store(finished_at: Path, tmp_path: Path) -> Store:
    return Store.open(shutil.copytree(finished_at, tmp_path / "store"))


def run_of(store: Store, method: str) -> Run:
    (found,) = (run for run in store.runs() if run.method == method)
    return Run(found.folder)


def flip(path: Path, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def silently_wrong(path: Path, read: Callable[[], Any], rng: np.random.Generator) -> list[int]:
    """The bits of a file which, flipped, change what is read without an error."""
    whole, right = path.read_bytes(), json.dumps(read(), default=str)
    wrong = []
    for bit in rng.integers(0, 8 * len(whole), FLIPS).tolist():
        flip(path, bit)
        try:
            if json.dumps(read(), default=str) != right:
                wrong.append(bit)
        except DamagedFile:
            pass
        path.write_bytes(whole)
    return wrong


def content_of(path: Path) -> list[Any]:
    """What a file of a run says."""
    run = Run(path.parent)
    return [run.table(path.stem).to_csv()] if path.suffix == ".parquet" else [run.card, str(run.finished_at)]


def test_no_flipped_bit_of_a_run_is_read_back_silently(store: Store) -> None:
    folder, rng = run_of(store, "erm").folder, np.random.default_rng(0)
    files = sorted(folder.iterdir())
    assert {"card.json", "probes.parquet", "runtime.json", "scores.parquet"} <= {path.name for path in files}
    assert {path.name: silently_wrong(path, lambda path=path: content_of(path), rng) for path in files} == {
        path.name: [] for path in files
    }


def test_no_flipped_bit_of_a_stage_is_read_back_silently(store: Store) -> None:
    (path,) = (store.folder / "stages").iterdir()
    rng = np.random.default_rng(0)
    for read in (serialization.load, serialization.load_metadata):
        assert silently_wrong(path, lambda read=read: str(read(path)), rng) == []
    flip(path, 8 * path.stat().st_size - 1)
    assert not serialization.is_complete(path)


def test_pages_carry_their_crc(store: Store) -> None:
    import pyarrow.parquet as pq

    path = run_of(store, "erm").folder / "probes.parquet"
    start = pq.ParquetFile(path).metadata.row_group(0).column(0).data_page_offset
    flip(path, 8 * (start + 30))
    with pytest.raises(OSError, match=r"CRC|checksum|corrupt"):
        pq.read_table(path, page_checksum_verification=True)


@pytest.mark.parametrize("harm", ["nothing", "run", "scores missing", "stage and run", "stage"])
def test_a_run_redoes_exactly_what_is_damaged(store: Store, finished_at: Path, harm: str) -> None:
    run, (stage,) = run_of(store, "frozen"), (store.folder / "stages").iterdir()
    if harm in ("run", "stage and run"):
        flip(run.folder / "probes.parquet", 1000)
    if harm == "scores missing":
        (run.folder / "scores.parquet").unlink()
    if "stage" in harm:
        flip(stage, 8 * stage.stat().st_size - 9)
    planned = plan(as_spec(SPEC), is_finished=store.finished)
    assert bool(check.check(store).damage) == (harm != "nothing")
    computed = {one.kind: one.job.label for one in run_plan(planned, store).computed}
    expected: dict[str, dict[str, str]] = {"stage and run": {"pretrain": "erm", "run": "frozen"}}
    assert computed == expected.get(harm, {"run": "frozen"} if harm in ("run", "scores missing") else {})
    driftline.run(SPEC, runs=store.folder)
    for path in finished_at.glob("runs/*/*"):
        if path.name != "runtime.json":
            assert (store.folder / path.relative_to(finished_at)).read_bytes() == path.read_bytes()


def test_a_damaged_run_is_made_again(store: Store) -> None:
    run = run_of(store, "erm")
    flip(run.folder / "scores.parquet", 999)
    assert not store.intact(run.key)
    record = driftline.run(SPEC, runs=store.folder)
    assert not record.scores.empty
    assert store.intact(run.key)


def test_a_stage_with_whole_tensors_and_a_broken_tree_is_made_again(store: Store) -> None:
    (path,) = (store.folder / "stages").iterdir()
    shutil.rmtree(store.folder / "runs")
    path.write_bytes(path.read_bytes().replace(b"$dict", b"$dixt"))
    driftline.run(SPEC, runs=store.folder)
    assert len(store.record()) == 2
    assert serialization.is_complete(path)


@pytest.mark.parametrize(
    "harm",
    [
        "card",
        "card missing",
        "card is a list",
        "scores",
        "scores missing",
        "probes missing",
        "runtime",
        "runtime missing",
    ],
)
def test_readers_leave_a_damaged_run_out_with_a_note(store: Store, harm: str, caplog: pytest.LogCaptureFixture) -> None:
    folder, name = run_of(store, "frozen").folder, harm.split()[0]
    path = folder / f"{name}.{'json' if name in ('card', 'runtime') else 'parquet'}"
    if "missing" in harm:
        path.unlink()
    elif "list" in harm:
        path.write_text("[]")
    else:
        flip(path, 4 * path.stat().st_size)
    sql = "select distinct method from runs join probes using (run) join scores using (run)"
    for command in (["table"], ["query", sql], ["list", "runs"]):
        caplog.clear()
        result = CliRunner().invoke(app, [*command, "--runs", str(store.folder)])
        assert result.exit_code == 0, result.output
        reads = name in ("card", "runtime") or command[0] == "query" or (command[0] == "table" and name == "scores")
        assert ("frozen" not in result.stdout) == reads
        assert (folder.name in caplog.text) == reads
    assert [run.method for run in load(store.folder).runs] == ["erm"]
    assert "1 damaged run(s) left out" in caplog.text


def test_damaged_failure_files_are_ignored(store: Store) -> None:
    store.fail("k", {"label": "erm", "seed": 0, "benchmark": "timeline"}, "it broke")
    assert [one["reason"] for one in store.failures()] == ["it broke"]
    (store.folder / "failed" / "k.json").write_text('{"key": "k"}')
    assert store.failures() == []
    assert store.failure("k") is None
    assert check.check(store).damage == {"failed/k.json": "it is not JSON with a checksum"}


def test_check_says_what_is_damaged_and_repairs_it(store: Store) -> None:
    arguments = ["check", "--runs", str(store.folder)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0
    assert "3 runs, stages and notes verified, 0 damaged" in result.stdout
    run, (stage,) = run_of(store, "erm"), (store.folder / "stages").iterdir()
    flip(stage, 8 * stage.stat().st_size - 1)
    driftline.run(SPEC, runs=store.folder)
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert "1 damaged" in result.stdout, "no run needs the stage"
    assert "computes the runs again, and the stages that they need" in result.stdout
    (run.folder / "probes.parquet").unlink()
    result = CliRunner().invoke(app, arguments)
    assert f"damaged: runs/{run.key}: probes.parquet: it is missing" in result.stdout
    assert f"damaged: stages/{stage.name}: its checksum differs" in result.stdout
    assert CliRunner().invoke(app, [*arguments, "--repair"]).exit_code == 0
    assert [path.name for path in (store.folder / "runs").iterdir()] == [run_of(store, "frozen").key]
    assert not stage.exists()
    assert CliRunner().invoke(app, arguments).exit_code == 0
    computed = run_plan(plan(as_spec(SPEC)), store).computed
    assert [(one.kind, one.job.label) for one in computed] == [("pretrain", "erm"), ("run", "erm")]


def test_a_note_names_a_few_damaged_runs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for k in range(7):
        (tmp_path / "runs" / f"k{k}").mkdir(parents=True)
        (tmp_path / "runs" / f"k{k}" / "card.json").write_text("{}")
    with caplog.at_level(logging.WARNING):
        assert len(Store.open(tmp_path).record()) == 0
    assert "7 damaged run(s) left out: k0 (card.json: it is not JSON with a checksum);" in caplog.text
    assert "and 2 more" in caplog.text
