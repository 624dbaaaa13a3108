"""Results that are counted, on small data whose counts are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from driftline.data import Dataset
from driftline.errors import UserError
from driftline.ledger.counts import (
    COUNTS,
    ccc_paths,
    cmr_composition,
    count,
    ned_compute,
    ned_sequences,
    seq_to_final_sizes,
)
from driftline.published.numbers import from_source
from driftline.report.analysis.composition import Composition
from driftline.streams import AccuracyMatrices, write_matrices
from driftline.tasks import Classification
from driftline.types import Samples


def value(scores: pd.DataFrame, **where: object) -> float:
    for column, wanted in where.items():
        scores = scores[scores[column] == wanted]
    assert len(scores) == 1
    return float(scores["value"].iloc[0])


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    """Classes 0 and 1 are known, 2 and 3 are novel; one sequence has both at once, the others one at the end."""
    early, late = [2, 3, 0, 0, 1, 1, 1, 0], [0, 0, 1, 1, 1, 0, 2, 2]
    (tmp_path / "ned").mkdir()
    arrays = {f"S{k}_labels": np.array(early if k == 5 else late) for k in (3, 4, 5)}
    novel = {f"S{k}_novel": np.array([False, False, True, True]) for k in (3, 4, 5)}
    np.savez(tmp_path / "ned" / "label_sequences.npz", **arrays, **novel)
    return tmp_path


def test_sequences_are_counted_and_time_is_a_detector(labels: Path) -> None:
    scores, note = count("open-world/sequences", labels)
    assert note == ned_sequences.NOTE
    three = {"setting": "sequence 3", "seed": 0}
    assert value(scores, **three, metric="samples") == 8
    assert value(scores, **three, metric="classes") == 3, "a class without a sample is none"
    sizes = [value(scores, **three, metric="class-samples", stat=stat) for stat in ("min", "median", "max")]
    assert sizes == [2, 3, 3]
    clock = {"setting": "sequences 3 to 5", "metric": "clock-auroc"}
    assert value(scores, **clock, seed=5) == 1, "both new classes come first"
    assert value(scores, **clock, seed=3) == pytest.approx(1 / 7), "one sample of seven is later"


def test_a_damaged_file_of_labels_is_a_sentence(labels: Path) -> None:
    (labels / "ned" / "label_sequences.npz").write_bytes(b"PK")
    with pytest.raises(UserError, match=r"label_sequences\.npz: expected an npz with the labels"):
        count("open-world/sequences", labels)


def test_compute_of_a_method_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ned_compute, "labels", lambda number, data_dir: (np.zeros(12_000),))
    scores, _ = count("open-world/compute")
    forward, head = 1.8141e9, 512_000  # of ResNet-18
    passes = 4 * (5_000 + 10_000)
    eighteen = {"setting": "resnet18"}
    assert value(scores, **eighteen, method="ncm") == pytest.approx(12_000 * forward, rel=1e-3)
    trained = value(scores, **eighteen, method="standard-training")
    assert trained == pytest.approx((12_000 + 3 * passes) * forward, rel=1e-3)
    tuned = [value(scores, **eighteen, method="fine-tune", metric=metric) for metric in ("macs", "macs-uncached")]
    assert tuned[0] == pytest.approx(12_000 * forward + passes * 3 * head, rel=1e-3)
    assert tuned[1] - tuned[0] == pytest.approx(passes * (forward - head), rel=1e-3)
    assert value(scores, setting="resnet50", method="ncm") == pytest.approx(12_000 * 4.089e9, rel=1e-3)


def test_parameters_round_to_those_that_are_printed() -> None:
    printed = {number.method: number.value for number in from_source("Seq-to-Final Table 7")}
    found = {(name, metric): millions for name, metric, millions in seq_to_final_sizes._networks()}
    paper, whole = "parameters in millions, as the paper counts", "all parameters in millions"
    assert {name: round(found[name, paper], 1) for name in printed} == printed
    assert (found["conv-1", paper], found["conv-1", whole]) == (0.309450, 0.310602)


def test_sizes_of_sequences_are_those_of_their_rows() -> None:
    y = np.arange(26_000) % 10
    x = np.zeros((26_000, 2, 2, 3), np.uint8)
    classes = Classification(tuple("abcdefghij"))
    images = Dataset("images", Samples(x, y, time=np.zeros(26_000, int)), classes, test=np.arange(26_000) >= 20_000)
    found = {name: n for name, _, n in seq_to_final_sizes._rotations(images)}
    assert [found[f"rot3, step {t}"] for t in range(3)] == [10_000, 6_000, 4_000]
    assert len(found) == 2 + 3 + 4 + 5 + 6 + 7 + 8


def test_decades_have_all_their_portraits() -> None:
    time = np.repeat([1925, 1931, 1990, 2003, 2011], [6, 20, 30, 24, 16])
    samples = Samples(np.zeros((96, 2, 2, 1), np.uint8), np.arange(96) % 2, time=time)
    portraits = Dataset("portraits", samples, Classification(("a", "b")))
    found = list(seq_to_final_sizes._decades(portraits))
    assert found == [("1930s", "samples", 20), ("1990s", "samples", 30), ("2000s", "samples", 40)]


def test_composition_of_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    queries, errors = np.array([[3, 1], [1, 3]]), np.array([[1, 0], [0, 3]])
    stream = Composition("stream", ["1", "2"], ["upstream", "other"], queries, errors)
    monkeypatch.setattr(cmr_composition, "of_file", lambda path, data_dir: stream)
    scores, _ = count("refinement/composition")
    other = {"method": "other", "metric": "queries"}
    assert [value(scores, **other, stat=stat) for stat in ("first step", "last step", "sum")] == [1, 3, 4]
    assert value(scores, method="upstream", metric="errors of the upstream model", stat="sum") == 1
    assert value(scores, metric="csr") == 0.5


def test_paths_of_a_calibration(tmp_path: Path) -> None:
    """Accuracy falls from 100 by 10 points per severity of either corruption."""
    severity = np.linspace(0, 5, 6)
    matrix = 100 - 10 * (severity[:, None] + severity[None, :])
    names = ("contrast", "gaussian_noise", "zoom_blur", "snow")
    pairs = {(a, b): matrix for a in names for b in names if a != b}
    write_matrices(AccuracyMatrices(pairs), tmp_path / ccc_paths.FILE)
    scores, _ = count("test-time/paths", tmp_path)
    assert value(scores, method="zoom_blur at 2.5, snow", stat="then at 5") == 0.25
    easy = {"method": "zoom_blur to snow, easy"}
    assert value(scores, **easy, metric="severity of zoom_blur", stat="end") == 0
    assert value(scores, **easy, metric="severity of snow", stat="start") == 0
    assert value(scores, **easy, metric="stream-accuracy", stat="middle") == pytest.approx(0.53, abs=0.03)
    lengths = scores[(scores["method"] == "ccc easy") & (scores["metric"] == "path-length")]
    assert lengths["n"].unique().tolist() == [12], "four corruptions in both directions"
    assert lengths["value"].nunique() == 1, "all matrices are equal"
    with pytest.raises(UserError, match="driftline calibrate"):
        count("test-time/paths", tmp_path / "none")


def test_an_unknown_count_is_refused() -> None:
    assert "seq-to-final/sizes" in COUNTS
    with pytest.raises(UserError, match="no result that is counted 'seq-to-final/size'"):
        count("seq-to-final/size")
