"""Resets, as RDumb makes them and around any method."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from driftline.errors import UserError
from driftline.learners.periodic_reset import PeriodicReset
from driftline.learners.test_time.eta import ETA
from driftline.learners.test_time.rdumb import RDumb
from driftline.spec.methods import required_reveal
from driftline.testing import check_learner, digest
from driftline.types import Reveal

from .test_time.test_eta import LR, MARGIN, SHARE, ETALoss
from .tiny import BATCHES, adapted_by_hand, far, must_agree, ready, scores, sgd, tiny, weights_of

SETTINGS: dict[str, Any] = {"lr": LR, "entropy_fraction": SHARE, "similarity_margin": MARGIN}


def test_rdumb_is_eta_from_the_start_at_0_n_and_2n() -> None:
    learner = ready(RDumb(reset_every=2, **SETTINGS))
    for k in (0, 2, 4):  # a fresh mean answer, fresh momentum and fresh weights each time
        output, weights = adapted_by_hand(ETALoss(), sgd(LR), BATCHES[k : k + 2])
        must_agree(learner, BATCHES[k : k + 2], output, weights)


def test_at_step_n_minus_1_it_has_not_been_reset_yet() -> None:
    learner, eta = ready(RDumb(reset_every=3, **SETTINGS)), ready(ETA(**SETTINGS))
    for images in BATCHES[:3]:
        np.testing.assert_array_equal(learner.answer(images).scores, eta.answer(images).scores)
    assert far(weights_of(learner.model), weights_of(tiny())) > 0.01  # the reset waits for the next inputs
    assert np.abs(learner.predict(BATCHES[3]).scores - ready(ETA(**SETTINGS)).predict(BATCHES[3]).scores).max() > 1e-3


def test_the_optimiser_and_the_mean_are_as_before_the_first_step() -> None:
    learner = ready(RDumb(reset_every=2, **SETTINGS))
    start = digest({k: v for k, v in learner.state().items() if k != "steps"})
    scores(learner, BATCHES[:2])
    assert learner.optim.state_dict()["state"]
    learner._snapshot.restore_into(learner)
    assert digest({k: v for k, v in learner.state().items() if k != "steps"}) == start
    assert learner.optim.state_dict()["state"] == {}
    assert learner.selection.mean is None


def test_momentum_that_survived_a_reset_would_be_seen() -> None:
    right, wrong = ready(RDumb(reset_every=2, **SETTINGS)), ready(ETA(**SETTINGS))
    scores(right, BATCHES[:2])
    scores(wrong, BATCHES[:2])
    wrong.model.load_state_dict(tiny().state_dict(), strict=False)
    wrong.selection.mean = None
    np.testing.assert_allclose(*(learner.answer(BATCHES[2]).scores for learner in (right, wrong)), rtol=1e-6)
    assert far(weights_of(right.model), weights_of(wrong.model)) > 0.01


def test_steps_without_an_update_count_as_well() -> None:
    learner = ready(RDumb(reset_every=2, entropy_fraction=1e-6))
    scores(learner, BATCHES[:3])
    assert learner.steps == 3


def test_rdumb_is_resetting_around_eta() -> None:
    one, other = (
        ready(RDumb(reset_every=2, **SETTINGS)),
        ready(PeriodicReset(method="eta", reset_every=2, options=SETTINGS)),
    )
    for a, b in zip(scores(one, BATCHES), scores(other, BATCHES), strict=True):
        np.testing.assert_array_equal(a, b)
    assert far(weights_of(one.model), weights_of(other.model)) == 0
    assert RDumb().reset_every == PeriodicReset().reset_every == 1000


def test_a_method_that_learns_from_labels_is_reset_too() -> None:
    learner = ready(PeriodicReset(method="ft", reset_every=2, options={"updates": 2, "lr": 0.1}))
    start = digest(dict(tiny().state_dict()))
    seen = []
    for images in BATCHES[:3]:
        learner.answer(images)
        seen.append(digest(dict(learner.model.state_dict())))
        learner.learn(images, np.arange(9) % 5)
    assert seen[0] == seen[2] == start
    assert seen[1] != start
    assert learner.wrapped.training_rounds == 1  # two before the reset, one after


def test_what_the_method_came_to_hold_is_forgotten() -> None:
    learner = ready(PeriodicReset(method="tent", reset_every=1))
    learner.wrapped.gathered = torch.ones(3)
    learner.answer(BATCHES[0])
    assert not hasattr(learner.wrapped, "gathered")


@pytest.mark.parametrize(
    "settings",
    [
        {
            "method": "cotta",
            "options": {"confidence_threshold": 0.99, "n_augmentations": 2, "restore_probability": 0.2},
        },
        {"method": "eata", "options": {"fisher_from": "stream", "fisher_images": 20}},
        {"method": "ewc", "options": {"updates": 2}},
        {"method": "ft", "options": {"updates": 2}},
    ],
    ids=lambda settings: str(settings["method"]),
)
def test_any_method_keeps_the_contract_inside(settings: dict[str, Any]) -> None:
    check_learner(partial(PeriodicReset, reset_every=2, **settings))


def test_it_needs_to_see_what_the_method_inside_does() -> None:
    assert required_reveal("periodic-reset", {"method": "tent"}) is Reveal.INPUTS
    assert required_reveal("periodic-reset", {}) is Reveal.INPUTS
    assert required_reveal("periodic-reset", {"method": "ewc"}) is Reveal.LABELS


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(UserError, match="RDumb: reset_every=0"):
        ready(RDumb(reset_every=0))
    with pytest.raises(UserError, match="PeriodicReset: reset_every=0"):
        ready(PeriodicReset(reset_every=0))
    with pytest.raises(UserError, match=r"not settings of tent: .*speed"):
        ready(PeriodicReset(options={"speed": 3}))
    with pytest.raises(UserError, match="tent"):
        ready(PeriodicReset(method="tnet"))
