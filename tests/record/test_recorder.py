from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftline.errors import UserError
from driftline.io.checksums import write_checked
from driftline.record import parquet
from driftline.record import recorder as record
from driftline.record.card import Card, RunSettings, write_card
from driftline.record.parquet import read_rows, write_rows
from driftline.record.recorder import FileRecorder
from driftline.record.run import RUNTIME, load
from driftline.tasks import Classification
from driftline.types import Answers, Probe, Samples, Step

TASK = Classification(tuple("abcdefg"))


def step(k: int, n: int = 5) -> Step:
    return Step(k, f"t{k}", Samples(np.zeros((n, 1)), np.arange(n) % 7, id=100 * k + np.arange(n)))


def answers(k: int, n: int = 5) -> Answers:
    return TASK.decode(np.random.default_rng(k).normal(size=(n, 7)))


def play(recorder: FileRecorder, k: int) -> None:
    recorder.add_answers(step(k), answers(k))
    for tau in range(k % 3):
        recorder.add_probe(step(k), Probe(f"p{tau}", step(k + tau + 1).samples), answers(50 + k + tau))
    recorder.add_diagnostics(step(k), {"size": k / 2, "distance": 0.25} if k % 2 else {})


def recorder(folder: Path) -> FileRecorder:
    return FileRecorder(TASK, folder / "parts", lambda: (7, 8))


def hashes(folder: Path) -> list[str]:
    return [hashlib.sha256((folder / f"{table}.parquet").read_bytes()).hexdigest() for table in record.TABLES]


@settings(max_examples=25, deadline=None)
@given(flushes=st.lists(st.booleans(), min_size=12, max_size=12), group=st.sampled_from([4, 7, 25, 1 << 17]))
def test_files_are_the_same_bytes_wherever_a_run_was_cut(flushes: list[bool], group: int) -> None:
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "ROW_GROUP_SIZE", group)
        found = []
        for kind, cuts in (("never", [False] * 12), ("sometimes", flushes)):
            folder = Path(name) / kind
            one = recorder(folder)
            for k, cut in enumerate(cuts):
                play(one, k)
                if cut:  # as a run that is killed and resumed
                    one.flush()
                    saved, one = one.state(), recorder(folder)
                    one.restore(saved)
            one.finish(folder)
            found.append(hashes(folder))
        assert found[0] == found[1]


def test_row_groups_have_a_fixed_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "ROW_GROUP_SIZE", 8)
    table = pa.table({"a": np.arange(30)})
    write_rows(tmp_path / "x.parquet", (table.slice(at, 3) for at in range(0, 30, 3)))
    file = pq.ParquetFile(tmp_path / "x.parquet").metadata
    assert [file.row_group(k).num_rows for k in range(file.num_row_groups)] == [8, 8, 8, 6]
    assert pq.read_table(tmp_path / "x.parquet").equals(table)
    write_rows(tmp_path / "none.parquet", [])
    assert not (tmp_path / "none.parquet").exists()


def test_a_row_says_what_was_asked_and_answered(tmp_path: Path) -> None:
    one = recorder(tmp_path)
    scores = np.array([[0.1, 0.3, 0.05, 0.05, 0.2, 0.16, 0.14], [0.9, 0.1, 0, 0, 0, 0, 0]])
    one.add_answers(step(4, 2), Answers(np.array([1, 0]), scores))
    one.add_probe(step(4, 2), Probe("later", step(9, 2).samples), Answers(np.array([0, 0])))
    one.finish(tmp_path)
    first, second = pq.read_table(tmp_path / "answers.parquet").to_pylist()
    assert first | {"top_scores": None, "confidence": None} == {
        "step": 4,
        "time": "t4",
        "id": 400,
        "truth": 0,
        "prediction": 1,
        "correct": 0.0,
        "confidence": None,
        "forward_macs": 7,
        "backward_macs": 8,
        "top": [1, 4, 5, 6, 0],
        "top_scores": None,
    }
    np.testing.assert_allclose(first["top_scores"], [0.3, 0.2, 0.16, 0.14, 0.1], rtol=1e-6)
    assert (second["id"], second["correct"], second["top"][:3]) == (401, 0.0, [0, 1, 2])
    probes = pq.read_table(tmp_path / "probes.parquet").to_pylist()
    assert [(row["id"], row["step"], row["probe"], row["correct"]) for row in probes] == [
        (900, 4, "later", 1.0),
        (901, 4, "later", 0.0),
    ]
    assert all(np.isnan(row["confidence"]) for row in probes)


def test_a_prediction_cannot_be_changed_after_it_was_recorded(tmp_path: Path) -> None:
    output, one = answers(0), recorder(tmp_path)
    before = output.prediction.tolist()
    one.add_answers(step(0), output)
    output.prediction[:] = step(0).samples.y
    one.flush()
    assert read_rows(tmp_path / "parts" / "answers-000000.parquet")["prediction"].to_pylist() == before
    assert output.prediction.tolist() != before


def test_parts_of_an_attempt_that_was_killed_do_not_come_back(tmp_path: Path) -> None:
    killed = recorder(tmp_path)
    play(killed, 1)
    killed.flush()  # and killed before its checkpoint was written
    again = recorder(tmp_path)
    again.add_answers(step(1), answers(1))
    again.flush()
    play(again, 2)
    again.finish(tmp_path)
    assert pq.read_table(tmp_path / "probes.parquet")["step"].unique().to_pylist() == [2]


def test_a_part_whose_crc_differs_does_not_get_into_the_result(tmp_path: Path) -> None:
    one, path = recorder(tmp_path), tmp_path / "parts" / "answers-000000.parquet"
    one.add_answers(step(0), answers(0))
    one.flush()
    column = pq.read_metadata(path).row_group(0).column(0)
    content = bytearray(path.read_bytes())
    content[column.data_page_offset + column.total_compressed_size - 1] ^= 1
    path.write_bytes(content)
    with pytest.raises(OSError, match="CRC"):
        one.finish(tmp_path)


def test_a_record_is_loaded_from_a_run_or_a_store(tmp_path: Path) -> None:
    for seed in (0, 1):
        folder = tmp_path / "runs" / f"k{seed}"
        one = recorder(folder)
        play(one, seed + 1)
        one.finish(folder)
        write_card(folder, Card(key=f"k{seed}", label="ft", run=RunSettings(seed=seed)))
        write_checked(folder / RUNTIME, {"finished": "2026-01-01T00:00:00+00:00"})
    both = load(tmp_path)
    assert len(both) == 2
    assert both.answers.groupby("seed").size().tolist() == [5, 5]
    assert set(both.probes["method"]) == {"ft"}
    assert both.scores.empty
    assert len(load(tmp_path / "runs" / "k0").answers) == 5
    with pytest.raises(UserError, match="no finished run"):
        load(tmp_path / "runs")


def test_gauges_are_kept_by_step_and_name(tmp_path: Path) -> None:
    one = recorder(tmp_path)
    for k in range(4):
        play(one, k)
    one.finish(tmp_path)
    found = pq.read_table(tmp_path / "diagnostics.parquet").to_pylist()
    assert [tuple(row.values()) for row in found] == [
        (1, "t1", "size", 0.5),
        (1, "t1", "distance", 0.25),
        (3, "t3", "size", 1.5),
        (3, "t3", "distance", 0.25),
    ]


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.sampled_from([1, 6, 64, 65, 130]),
    width=st.integers(1, 40),
    levels=st.integers(1, 9),
)
def test_the_best_scores_are_those_that_sorting_finds(seed: int, n: int, width: int, levels: int) -> None:
    scores = np.random.default_rng(seed).integers(0, levels, (n, width)) / levels  # ties are common
    sorted_ = np.argsort(-scores, axis=1, kind="stable")[:, : record.TOP_K]
    assert parquet.top_k(scores, record.TOP_K).tolist() == sorted_.tolist()


def test_how_far_an_input_is_from_all_classes_is_kept(tmp_path: Path) -> None:
    kept = recorder(tmp_path)
    logits = np.array([[1.0, -2.0, 0.5, 0, 0, 0, 0], [-3.0, -1.5, -2, -4, -5, -6, -7]])
    kept.add_answers(step(0, 2), TASK.decode(logits))
    kept.finish(tmp_path)
    assert pq.read_table(tmp_path / "answers.parquet")["distance"].to_pylist() == [-1.0, 1.5]
