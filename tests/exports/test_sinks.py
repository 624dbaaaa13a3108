"""Every exporter, read back with the tool's own means: the same numbers, once, however often they are exported."""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pandas as pd
import pytest

from driftline import registry
from driftline.errors import UserError
from driftline.exports import create, export
from driftline.exports.rows import run_rows
from driftline.record.run import Run

Make = Callable[..., Run]
CURVES = {"answers/correct": [(0, 0.5), (1, 2 / 3)], "scores/acc": [(1930, 0.5), (1940, 0.75)]}


def close(found: list[tuple[int, float]]) -> list[tuple[int, Any]]:
    return [(step, pytest.approx(value)) for step, value in found]


def test_sinks_are_found_by_name() -> None:
    assert {"csv", "parquet", "tensorboard", "mlflow", "wandb"} <= set(registry.names("exporter"))


@pytest.mark.parametrize("name", ["csv", "parquet"])
def test_files_hold_the_rows_and_are_the_same_the_second_time(make_run: Make, tmp_path: Path, name: str) -> None:
    runs = [make_run("00aa"), make_run("00bb")]
    sink = create(name, tmp_path / "out")
    assert export([*runs, runs[0]], sink) == (2, 0), "a run that is named twice counts once"
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert sorted(before) == [f"00aa.{name}", f"00bb.{name}"]
    export(runs, sink)
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
    read = pd.read_csv if name == "csv" else pd.read_parquet
    frame = read(tmp_path / "out" / f"00aa.{name}")
    assert frame["value"].tolist() == pytest.approx(run_rows(runs[0])["value"].tolist(), abs=0, rel=1e-15)
    about = frame[["run", "benchmark", "data", "model", "method", "seed"]].drop_duplicates()
    assert about.astype(str).to_numpy().tolist() == [["00aa", "timeline", "digits", "linear", "ft(lr=0.1)", "3"]]


def test_the_sink_in_the_documents_works(make_run: Make, tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "exports.md").read_text()
    (source,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    file = tmp_path / "lines.py"
    file.write_text(source.replace('@register("exporter", "lines")\n', ""))
    export([make_run()], create(f"{file}:Lines", tmp_path / "out"))
    assert "scores/acc 1940 0.75" in (tmp_path / "out" / "00aa.txt").read_text().splitlines()


def test_files_cannot_be_sent(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="csv has no server, it only writes files: omit --online"):
        create("csv", tmp_path, online=True)


@pytest.mark.parametrize("name", ["tensorboard", "mlflow", "wandb"])
def test_without_its_package_a_sink_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    imported = [module for module in sys.modules if module.startswith(f"{name}.")]  # other tests may have used it
    for module in [name, *imported]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UserError, match=rf'pip install "driftline\[{name}\]"'):
        create(name, tmp_path)


def test_tensorboard_reads_the_same_numbers_once(make_run: Make, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed: pip install driftline[tensorboard]")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    runs = [make_run("00aa"), make_run("00bb")]
    export(runs, create("tensorboard", tmp_path / "out"))
    export(runs, create("tensorboard", tmp_path / "out"))
    folders = sorted((tmp_path / "out" / "timeline").iterdir())
    assert [folder.name for folder in folders] == ["ft-lr=0.1-seed-3-00aa", "ft-lr=0.1-seed-3-00bb"]
    assert len(list(folders[0].iterdir())) == 1, "exported twice, written once"
    events = EventAccumulator(str(folders[0]))
    events.Reload()
    for name, curve in CURVES.items():
        assert [(event.step, event.value) for event in events.Scalars(name)] == close(curve)
    assert [event.value for event in events.Scalars("final/acc mean")] == [0.625]
    assert b'"key": "00aa"' in events.Tensors("card")[0].tensor_proto.string_val[0]
    assert b"method.settings.lr: 0.1" in events.Tensors("settings")[0].tensor_proto.string_val[0]


def test_mlflow_reads_the_same_numbers_once(make_run: Make, tmp_path: Path) -> None:
    pytest.importorskip("mlflow", reason="mlflow is not installed: pip install driftline[mlflow]")
    pytest.importorskip("alembic", reason="alembic is not installed: pip install driftline[mlflow]")
    run, sink = make_run(), create("mlflow", tmp_path / "out")
    sink.begin(run)  # and is stopped here
    assert export([run], sink) == (1, 0), "one that was not finished is written anew"
    assert export([run], sink) == (0, 1)

    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/out/mlflow.db")
    (kept,) = client.search_runs([client.get_experiment_by_name("driftline timeline").experiment_id])
    for name, curve in CURVES.items():
        history = client.get_metric_history(kept.info.run_id, name)
        assert sorted((metric.step, metric.value) for metric in history) == close(curve)
    assert kept.data.metrics["final/acc mean"] == 0.625
    assert kept.data.metrics["diagnostics/drift _a_1_"] == 0.5, "a name in letters that MLflow takes"
    assert kept.data.params["method.settings.lr"] == "0.1"
    assert kept.data.tags["driftline.key"] == "00aa"
    names = [file.path for file in client.list_artifacts(kept.info.run_id)]
    assert names == ["card.json", "scores.parquet"]
    assert list((tmp_path / "out" / "artifacts").rglob("card.json")), "beside the database, not where the user stands"


def test_mlflow_online_needs_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mlflow", reason="mlflow is not installed: pip install driftline[mlflow]")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    with pytest.raises(UserError, match="set MLFLOW_TRACKING_URI"):
        create("mlflow", tmp_path, online=True)


def test_wandb_writes_the_same_numbers_once_and_offline(make_run: Make, tmp_path: Path) -> None:
    wandb = pytest.importorskip("wandb", reason="wandb is not installed: pip install driftline[wandb]")
    run = make_run()
    for _ in range(2):
        export([run], create("wandb", tmp_path / "out"))
        wandb.teardown()  # its service writes the last records after `finish`; a process that ends waits for them
    (file,) = (tmp_path / "out" / "wandb").glob("offline-run-*-00aa/run-00aa.wandb")
    curves: dict[str, list[tuple[int, float]]] = {}
    summary: dict[str, float] = {}
    for record in wandb_records(file.read_bytes()):
        values = {item.key or item.nested_key[0]: float(item.value_json) for item in record.history.item}
        for name, value in values.items():
            curves.setdefault(name, []).append((int(values["step"]), value))
        summary |= {item.key or item.nested_key[0]: item.value_json for item in record.summary.update}
    for name, curve in CURVES.items():
        assert curves[name] == close(curve)
    assert float(summary["final/acc mean"]) == 0.625


def test_wandb_is_told_to_stay_offline_unless_asked(
    make_run: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wandb = MagicMock()
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    monkeypatch.setenv("WANDB_MODE", "online")
    export([make_run()], create("wandb", tmp_path))
    export([make_run()], create("wandb", tmp_path, online=True))
    first, second = (call.kwargs for call in wandb.init.call_args_list)
    assert (first["mode"], second["mode"]) == ("offline", "online")
    assert first["id"] == second["id"] == "00aa"
    steps = [call.args[0] for call in wandb.init.return_value.log.call_args_list][:4]
    assert [step["step"] for step in steps] == [0, 1, 1930, 1940], "W&B takes steps in order only"
    assert steps[0] == {"step": 0, "answers/correct": 0.5, "diagnostics/drift (a=1)": 0.5, "diagnostics/norm": 2.0}


def test_mlflow_is_told_everything_before_a_run_is_finished(
    make_run: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake, entities = MagicMock(), MagicMock(Metric=lambda *values: values, Param=lambda *values: values)
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    monkeypatch.setitem(sys.modules, "mlflow.entities", entities)
    client = fake.MlflowClient.return_value
    client.search_runs.return_value = []
    many = [(step, 1.0) for step in range(700)]
    assert export([make_run(answers=many, diagnostics=[])], create("mlflow", tmp_path)) == (1, 0)
    batches = [call.kwargs["metrics"] for call in client.log_batch.call_args_list if "metrics" in call.kwargs]
    assert [len(batch) for batch in batches] == [500, 204], "700 answers, 2 scores, 1 final score, 1 cost"
    assert [call[0] for call in client.method_calls][-1] == "set_terminated"
    client.search_runs.return_value = [MagicMock(info=MagicMock(status="FINISHED"))]
    assert export([make_run()], create("mlflow", tmp_path)) == (0, 1)


def wandb_records(content: bytes) -> Iterator[Any]:
    """The records of W&B's file, which is a log of LevelDB with a header of 7 bytes."""
    from wandb.proto.wandb_internal_pb2 import Record

    at, whole = 7, b""
    while at + 7 <= len(content):
        if 32768 - at % 32768 < 7:  # too little is left of the block for a header
            at += 32768 - at % 32768
            continue
        size, kind = struct.unpack("<HB", content[at + 4 : at + 7])
        whole += content[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # a whole one, or the last part of one
            yield Record.FromString(whole)
            whole = b""
