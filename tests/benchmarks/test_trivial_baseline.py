"""The constant answer of each kind of task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from driftline.benchmarks.trivial_baseline import ConstantRun
from driftline.record.card import Card, DataCard, write_card
from driftline.record.parquet import write_rows


def constant(folder: Path, kind: str, task: str, truth: list[Any]) -> ConstantRun:
    folder.mkdir()
    rows = pa.table({"id": np.arange(len(truth)), "truth": truth, "prediction": truth, "distance": [0.5] * len(truth)})
    write_rows(folder / "answers.parquet", [rows])
    write_card(folder, Card(data=DataCard(kind=kind, task=task)))
    return ConstantRun(folder)


def test_constants_of_every_task(tmp_path: Path) -> None:
    classes = constant(tmp_path / "a", "Classification", "-", [2, 0, 2, 1, 1, 1])
    assert classes.table("answers")["prediction"].tolist() == [1] * 6
    assert classes.table("answers")["correct"].tolist() == [0, 0, 0, 1, 1, 1]
    assert classes.table("answers")["distance"].tolist() == [0] * 6
    numbers = constant(tmp_path / "b", "Regression", "Regression(center=0.0, scale=2.0)", [1.0, 3.0, 5.0])
    assert numbers.table("answers")["prediction"].tolist() == [3.0] * 3
    assert numbers.table("answers")["correct"].tolist() == [0.0, 1.0, 0.0]  # an error of one scale is wholly wrong
    texts = constant(tmp_path / "c", "TextToText", "-", ["Rome", "Paris", "Rome"])
    assert texts.table("answers")["correct"].tolist() == [1, 0, 1]
    assert texts.table("features").empty


def test_a_record_without_labels_has_no_baseline(tmp_path: Path) -> None:
    write_rows(tmp_path / "probes.parquet", [pa.table({"correct": [1.0]})])
    write_card(tmp_path, Card())
    assert ConstantRun(tmp_path).labels.empty
