"""The benchmark: its options, what it lays out, and its one number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import driftline
from driftline.benchmarks.seq_to_final.benchmark import ROTATIONS, SIZES, Options, SeqToFinal
from driftline.data import Dataset, data_folders, load
from driftline.errors import UserError
from driftline.learners.fit_plan import SearchSpace
from driftline.seeds import Seed
from driftline.spec.settings import validate
from driftline.tasks import Classification
from driftline.types import Samples


def pictures(per_class: int = 60, classes: int = 4, test: int = 30) -> Dataset:
    rng = np.random.default_rng(0)
    n = per_class * classes
    samples = Samples(
        rng.integers(0, 256, (n, 16, 16, 3), dtype=np.uint8), np.arange(n) % classes, time=np.zeros(n, int)
    )
    names = tuple(map(str, range(classes)))
    return Dataset("pictures", samples, Classification(names), test=np.arange(n) >= n - test * classes)


def lay_out(dataset: Dataset, **options: Any) -> Any:
    return SeqToFinal().build_scenario(dataset, validate(Options, options, "seq-to-final"), Seed(0))


def test_lists_may_be_written_with_commas() -> None:
    written = Options(sizes="60, 40,40", lr="1e-3,1e-4", dropout=0)  # type: ignore[arg-type]
    assert written.sizes == (60, 40, 40)
    assert written.selection() == SearchSpace(dropout=(0.0,))


def test_the_papers_sizes_add_up() -> None:
    assert {sum(sizes) for sizes in SIZES.values()} == {20000}
    assert {sizes[-1] for sizes in SIZES.values()} == {4000}
    assert {name: len(shifts) + 1 for name, shifts in ROTATIONS.items()} == {f"rot{n}": n for n in range(2, 9)}


def test_without_sizes_a_sequence_has_the_papers() -> None:
    with pytest.raises(UserError, match=r"16,000|4,000|1,600"):
        lay_out(pictures(), shifts="rot2")  # and these pictures are far too few for them
    with pytest.raises(UserError, match="no sizes for 10 steps"):
        lay_out(pictures(), shifts="R" * 9)


def test_what_is_laid_out() -> None:
    layout = lay_out(pictures(), shifts="RC", sizes="40,32,24", test=48, oracle=60)
    assert layout.protocol["samples_per_step"] == [40, 32, 24]
    assert layout.protocol["steps"] == ["0 source", "1 rotation", "2 uniform noise"]
    assert (layout.protocol["test"], layout.protocol["oracle"]) == (48, 60)
    assert layout.evaluated_at_end
    assert len(layout.stream[2].samples) == 24
    assert len(layout.oracle_stream[2].samples) == 60
    assert len(layout.oracle_stream[1].samples) == 32
    (probe,) = layout.probes.due(None)
    assert len(probe.samples) == 48
    assert not list(layout.probes.due(layout.stream[2]))


def test_the_oracle_has_five_times_the_final_step_or_is_left_out() -> None:
    data = pictures(per_class=60, test=30)  # thirty of each class to draw from
    assert lay_out(data, shifts="R", sizes="40,20", test=48).protocol["oracle"] == 100
    assert lay_out(data, shifts="R", sizes="40,28", test=48).protocol["oracle"] is None
    assert lay_out(data, shifts="R", sizes="40,20", test=48, oracle=0).oracle_stream is None
    with pytest.raises(UserError, match="the oracle asks for"):
        lay_out(data, shifts="R", sizes="40,20", test=48, oracle=400)


def test_no_sample_is_tested_that_was_shown() -> None:
    layout = lay_out(pictures(), shifts="RC", sizes="40,32,24", test=48, oracle=60)
    (probe,) = layout.probes.due(None)
    tested = set(probe.samples.id.tolist())
    for stream in (layout.stream, layout.oracle_stream):
        for t in range(3):
            assert not tested & set(stream[t].samples.id.tolist())


def test_sequences_with_the_same_last_shifts_share_their_final_step() -> None:
    one, other = (lay_out(pictures(), shifts=shifts, sizes="40,32,24", test=48, oracle=60) for shifts in ("RL", "LR"))
    assert np.array_equal(one.stream[2].samples.x, other.stream[2].samples.x)
    assert np.array_equal(one.stream[2].samples.y, other.stream[2].samples.y)


def test_the_score_is_the_share_of_right_answers_at_the_end(tmp_path: Path) -> None:
    data = pictures()
    file = tmp_path / "pictures.npz"
    np.savez(file, x=data.samples.x, y=data.samples.y, test=data.test)
    grid = {"lr": 1e-2, "weight_decay": 0, "dropout": 0, "epochs": 1, "batch": 10}
    record = driftline.run(
        {
            "benchmark": "seq-to-final",
            "data": {"name": "npz", "path": str(file)},
            "model": {"name": "conv-1", "width": 2},
            "methods": ["baseline"],
            "seq-to-final": {"shifts": "R", "sizes": "40,40", "test": 80, "oracle": 0, **grid},
        },
        runs=tmp_path / "runs",
    )
    (run,) = record.runs
    probes, scores = run.table("probes"), run.table("scores")
    right = (probes["prediction"] == probes["truth"]).mean()
    assert scores["value"].tolist() == [right]
    assert scores["n"].tolist() == [80]
    assert scores["low"].iloc[0] <= right <= scores["high"].iloc[0]
    spread = np.sqrt(right * (1 - right) / 80)
    assert scores["high"].iloc[0] - scores["low"].iloc[0] == pytest.approx(2 * 1.96 * spread, rel=0.35)


def test_portraits_by_decade() -> None:
    try:
        portraits = load("yearbook", {}, data_folders())
    except UserError as error:
        pytest.skip(f"no Yearbook portraits: {error}")
    layout = lay_out(portraits, shifts="time", first=1930, final="2000")
    steps = layout.protocol["steps"]
    assert len(steps) == 8
    assert steps[0].startswith("1930")
    assert layout.oracle_stream is None
    final, tested = layout.protocol["samples_per_step"][-1], layout.protocol["test"]
    assert abs(final - tested) <= 2
    assert {int(year) for year in np.unique(layout.stream[0].samples.time)} <= set(range(1930, 1940))
