"""A user's method that breaks the contract is recorded as failed, with the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from driftline.engine.planning.plan import plan
from driftline.engine.run import as_spec, run_plan
from driftline.store.store import Store

COUNTS = """
from dataclasses import dataclass
from driftline.learners.supervised.erm import ERM

@dataclass
class Mine(ERM):
    transient = frozenset({transient})

    def prepare(self, model, task, upstream=None):
        super().prepare(model, task, upstream)
        self.asked = 0

    def predict(self, x):
        self.asked += len(x)
        return super().predict(x)
"""
ASKS_FIRST = """
from dataclasses import dataclass
import numpy as np
from driftline.learners.base import Learner
from driftline.types import Answers

@dataclass
class Mine(Learner):
    def answer_one_by_one(self, feed):
        shown = [feed.reveal_next(0) for _ in range(len(feed))]
        return Answers(np.concatenate([one.y for one in shown]))
"""
TIMELINE: dict[str, Any] = {
    "benchmark": "timeline",
    "data": {"name": "digits", "periods": 3},
    "model": "logistic-regression",
    "timeline": {"resamples": 10},
}
OPEN_WORLD: dict[str, Any] = {
    "benchmark": "open-world",
    "data": "digits",
    "model": "linear",
    "open-world": {"class_size_law": "30/(1+r)", "upstream_updates": 1, "resamples": 5},
}


def failures(tmp_path: Path, spec: dict[str, Any], source: str) -> list[str]:
    """The reasons for which the runs of a method in this file failed."""
    (tmp_path / "mine.py").write_text(source)
    store = Store.create(tmp_path / "store")
    summary = run_plan(plan(as_spec({**spec, "methods": [f"{tmp_path / 'mine.py'}:Mine"]})), store)
    assert len(summary.failed) + len(summary.computed) >= 1
    return list(summary.failed.values())


def test_asking_for_all_labels_before_answering_is_refused(tmp_path: Path) -> None:
    (reason,) = failures(tmp_path, OPEN_WORLD, ASKS_FIRST)
    assert "but gave 0 before it saw the label" in reason


@pytest.mark.parametrize(("transient", "broken"), [([], ["Mine.predict changed asked"]), (["asked"], [])])
def test_a_predict_that_changes_the_learner_is_refused(tmp_path: Path, transient: list[str], broken: list[str]) -> None:
    reasons = failures(tmp_path, TIMELINE, COUNTS.format(transient=transient))
    assert [reason.split(":")[0] for reason in reasons] == broken
