"""Episodes at the end of an open-world run: which classes they are of, and what is counted as right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import driftline
from driftline import data
from driftline.benchmarks.base import Scenario
from driftline.benchmarks.open_world import few_shot
from driftline.benchmarks.open_world.benchmark import OpenWorldBenchmark, Options
from driftline.errors import UserError
from driftline.report.tables.papers import paper_tables
from driftline.seeds import Seed


def laid_out(**given: Any) -> Scenario:
    options = Options(class_size_law="400/(9+r)", episodes=5, **given)
    return OpenWorldBenchmark().build_scenario(data.load("digit-symmetries"), options, Seed(0))


def test_no_class_of_an_episode_is_upstream_or_in_the_stream() -> None:
    found = laid_out()
    (samples,) = found.embedding_samples.values()
    met = {*found.protocol["upstream_classes"], *found.protocol["novel_classes"], *found.protocol["pretrain_classes"]}
    assert not met & set(samples.y.tolist())
    assert len(set(samples.y.tolist())) == 80 - 24 - 24
    assert np.bincount(samples.y).max() == few_shot.MAX_PER_CLASS
    assert (
        not OpenWorldBenchmark()
        .build_scenario(data.load("digit-symmetries"), Options(class_size_law="400/(9+r)"), Seed(0))
        .embedding_samples
    )


def test_too_few_classes_are_refused_in_words() -> None:
    with pytest.raises(UserError, match=r"33-way episodes need 33 classes .* and there are 32"):
        laid_out(way=33)
    with pytest.raises(UserError, match="and there are 0"):
        laid_out(shot=500)


def test_the_nearest_mean_is_right() -> None:
    """Class 0 lies at (0, 0), class 1 at (4, 0); every fourth sample of class 1 lies among class 0."""
    place = [[0.0, 0.0]] * 40 + [[0.0, 0.0] if k % 4 == 0 else [4.0, 0.0] for k in range(40)]
    seen = pd.DataFrame({"features": list(np.array(place, np.float32)), "truth": np.repeat([0, 1], 40)})
    right = few_shot.episode_correctness(seen, way=2, shot=5, n=200, seed=Seed(0))
    assert right.shape == (200, 2 * few_shot.N_QUERY)
    assert right.mean() == pytest.approx(1 - 0.25 / 2, abs=0.03)


def test_table_6_from_a_run(tmp_path: Path) -> None:
    spec: dict[str, Any] = {
        "benchmark": "open-world",
        "data": "digit-symmetries",
        "model": {"name": "mlp", "width": 16, "depth": 1},
        "methods": ["ncm", "prototypical"],
        "seeds": 1,
        "open-world": {
            **{"class_size_law": "100/(9+r)", "classes": 8, "pretrain": 2, "upstream_updates": 60},
            **{"resamples": 20, "episodes": 40},
        },
    }
    record = driftline.run(spec, runs=tmp_path)
    scores = record.scores.query("metric == 'episodic'").set_index("method")
    assert scores["n"].tolist() == [40, 40]
    assert (scores["value"] > 0.3).all(), "a guess is right in one of five"
    (grid,) = paper_tables(record, "open-world/table-6")
    assert [column.name for column in grid.columns] == ["5-shot 5-way", "overall"]
