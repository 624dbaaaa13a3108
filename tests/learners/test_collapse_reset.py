"""Resets when answers collapse: the gap by hand, when it fires, and when it must not."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from torch import nn

from driftline.errors import RequirementError, UserError
from driftline.learners.base import Learner
from driftline.learners.collapse_reset import CollapseReset
from driftline.learners.test_time.tent import Tent
from driftline.spec.methods import required_reveal
from driftline.tasks import Classification, Regression
from driftline.testing import check_learner
from driftline.training.mac_counter import MacCounter
from driftline.types import Answers, Reveal

from .tiny import BATCHES, far, ready, scores, tiny, weights_of


class Says(Learner):
    """Predicts what is written in the inputs' first column, until `collapsed`: then always class 0."""

    def __init__(self) -> None:
        self.collapsed = False

    def predict(self, x: Any) -> Answers:
        return Answers(np.zeros(len(x), int) if self.collapsed else x[:, 0])


def watched(monkeypatch: pytest.MonkeyPatch, **settings: Any) -> CollapseReset:
    monkeypatch.setattr("driftline.registry.get", lambda kind, name: Says)
    return ready(CollapseReset(**settings), nn.Linear(1, 1))


def inputs(*labels: int) -> np.ndarray:
    return np.array(labels)[:, None]


EVEN = inputs(0, 1, 2, 3, 4)


def test_the_gap_is_that_done_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = watched(monkeypatch, window=20, max_gap=1.0)
    learner.answer(EVEN)
    assert learner.gap == pytest.approx(0)
    learner.wrapped.collapsed = True
    method, frozen = np.full(5, 0.2), np.full(5, 0.2)
    for rate in (1 / 2, 1 / 3, 1 / 4):  # five inputs of the ten, fifteen and twenty so far, then of the window
        learner.answer(EVEN)
        method = (1 - rate) * method + rate * np.array([1, 0, 0, 0, 0])
        gap = -(frozen * np.log(frozen)).sum() + (method * np.log(method)).sum()
        assert learner.gap == pytest.approx(gap if gap <= 1 else 0)
        assert learner.diagnostics()["entropy below the frozen model's"] == learner.gap
    assert learner.n_resets == learner.diagnostics()["resets"] == 0


def test_a_collapse_is_followed_by_a_reset_and_a_fresh_start(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = watched(monkeypatch, window=20)
    learner.answer(EVEN)
    learner.wrapped.collapsed = True
    assert learner.answer(EVEN).prediction.tolist() == [0] * 5  # these answers are given already
    assert (learner.n_resets, learner.wrapped.collapsed) == (1, False)  # half the answers are 0: a gap of .41
    assert learner.gap == 0
    for _ in range(5):
        assert learner.answer(EVEN).prediction.tolist() == [0, 1, 2, 3, 4]
    assert learner.n_resets == 1


def test_after_a_reset_the_methods_shares_are_the_frozen_models(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = watched(monkeypatch, window=20)
    learner.answer(inputs(0, 0, 0, 1, 2))
    learner.wrapped.collapsed = True
    learner.answer(inputs(3, 3, 4, 4, 4))
    assert learner.n_resets == 1
    np.testing.assert_allclose(learner.shares, [[0.3, 0.1, 0.1, 0.2, 0.3]] * 2)


def test_a_gap_as_large_as_the_largest_is_none_and_the_window_has_20_inputs_per_class(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    learner = watched(monkeypatch, max_gap=0.0)
    learner.answer(EVEN)
    assert (learner.gap, learner.n_resets) == (0, 0)
    for classes, window in ((5, 200), (30, 600)):
        learner.prepare(nn.Linear(1, 1), Classification(tuple(map(str, range(classes)))))
        learner.n_inputs = 10_000
        learner.answer(inputs(0))
        assert learner.shares[0, 0] == pytest.approx(1 / window)


def test_labels_that_are_all_alike_are_no_collapse(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule on the method's entropy alone would reset at every step here."""
    learner = watched(monkeypatch, window=5, max_gap=0.01)
    for label in (0, 0, 0, 3, 3, 3):
        learner.answer(inputs(*[label] * 5))
        assert learner.n_resets == 0
    assert -sum(share * math.log(share) for share in learner.shares[0] if share > 0) < 0.1


def test_small_batches_are_judged_by_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Single inputs have no entropy of their own."""
    learner = watched(monkeypatch, window=40, max_gap=0.5)
    for k in range(40):
        learner.answer(inputs(k % 5))
    learner.wrapped.collapsed = True
    steps = 0
    while learner.n_resets == 0:
        learner.answer(inputs(steps % 5))
        steps += 1
    assert 15 < steps < 40
    assert ready(CollapseReset()).window is None
    assert (CollapseReset().method, CollapseReset().max_gap) == ("tent", 0.3)


def test_tent_that_collapses_starts_again_and_the_frozen_network_never_moves() -> None:
    learner = ready(CollapseReset(options={"lr": 30.0}, window=20))
    frozen = scores(ready(Tent(lr=0.0)), BATCHES)
    moved = []
    for images in BATCHES:
        learner.answer(images)
        moved.append(far(weights_of(learner.model), weights_of(tiny())))
    assert learner.n_resets > 0
    assert min(moved) == 0 < max(moved)
    for images, expected in zip(BATCHES, frozen, strict=True):
        np.testing.assert_allclose(learner._frozen.predict(images).scores, expected, rtol=1e-6)
    assert learner.wrapped.optim.state_dict()["state"] == {} or moved[-1] > 0


def test_without_a_gap_it_is_the_method_itself() -> None:
    one, other = ready(CollapseReset(max_gap=10.0, options={"lr": 0.3})), ready(Tent(lr=0.3))
    for a, b in zip(scores(one, BATCHES), scores(other, BATCHES), strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_frozen_networks_passes_are_counted() -> None:
    counts = []
    for learner in (Tent(), CollapseReset()):
        model, meter = tiny(), MacCounter()
        meter.attach(model)
        ready(learner, model).answer(BATCHES[0])
        counts.append((meter.forward, meter.backward))
    assert counts[1] == (2 * counts[0][0], counts[0][1])


@pytest.mark.parametrize("settings", [{"options": {"lr": 1.0}}, {"method": "ft", "options": {"updates": 2}}])
def test_it_keeps_the_contract_while_it_resets(settings: dict[str, Any]) -> None:
    check_learner(partial(CollapseReset, max_gap=0.01, window=30, **settings))


def test_it_needs_what_the_method_inside_needs_and_classes() -> None:
    assert required_reveal("collapse-reset", {}) is Reveal.INPUTS
    assert required_reveal("collapse-reset", {"method": "ewc"}) is Reveal.LABELS
    with pytest.raises(RequirementError, match="needs a classification task"):
        CollapseReset().prepare(tiny(), Regression())
    with pytest.raises(UserError, match="CollapseReset: max_gap=-1"):
        ready(CollapseReset(max_gap=-1))
    with pytest.raises(UserError, match="options are not settings of tent"):
        ready(CollapseReset(options={"speed": 3}))
