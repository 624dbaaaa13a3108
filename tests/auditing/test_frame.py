"""Frames of a record: pandas and polars hold the same."""

import builtins
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from driftline.errors import MissingExtra, UserError
from driftline.record.card import Card, RunSettings, write_card
from driftline.record.parquet import write_rows
from driftline.record.run import Record, Run

polars = pytest.importorskip("polars", reason="frames of polars need polars: pip install 'driftline[polars]'")


def recorded(folder: Path, key: str, seed: int, **tables: dict[str, list[Any]]) -> Run:
    folder = folder / key
    folder.mkdir()
    for name, columns in tables.items():
        write_rows(folder / f"{name}.parquet", [pa.table(columns)])
    write_card(folder, Card(key=key, label="ft", run=RunSettings(seed=seed)))
    return Run(folder)


@pytest.fixture
def record(tmp_path: Path) -> Record:
    one = recorded(tmp_path, "k0", 0, scores={"metric": ["ood", "id"], "value": [0.5, None]}, answers={"step": [1]})
    return Record([one, recorded(tmp_path, "k1", 3, scores={"metric": ["ood"], "value": [0.75]})])


def test_polars_holds_what_pandas_holds(record: Record) -> None:
    frame = record.polars("scores")
    assert frame.columns == ["run", "method", "seed", "metric", "value"] == list(record.scores.columns)
    assert frame.rows() == [
        ("k0", "ft", 0, "ood", 0.5),
        ("k0", "ft", 0, "id", None),
        ("k1", "ft", 3, "ood", 0.75),
    ]
    assert frame.schema["seed"] == polars.Int64
    pd.testing.assert_frame_equal(frame.to_pandas(), record.scores)


def test_runs_without_a_table_or_a_column_are_null_there(record: Record, tmp_path: Path) -> None:
    assert record.polars("answers").rows() == [("k0", "ft", 0, 1)]
    assert record.polars("diagnostics").is_empty()
    wider = recorded(tmp_path, "k2", 1, scores={"metric": ["sh"], "value": [2], "censored": [True]})
    joined = Record([*record.runs, wider]).polars("scores")
    assert joined["censored"].to_list() == [None, None, None, True]
    assert joined["value"].to_list() == [0.5, None, 0.75, 2.0]


def test_unknown_frames_and_a_missing_package(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"no frame 'score'\. Did you mean 'scores'"):
        record.polars("score")
    usual = builtins.__import__

    def without(name: str, *given: Any, **named: Any) -> Any:
        if name == "polars":
            raise ModuleNotFoundError("No module named 'polars'", name="polars")
        return usual(name, *given, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtra, match=r'pip install "driftline\[polars\]"'):
        record.polars("scores")
