"""river's classifiers behind `Streaming` against river itself, sample by sample."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import softmax

from driftline.io import serialization
from driftline.seeds import Seed
from driftline.testing import digest

pytest.importorskip("river")

from river.forest import ARFClassifier
from river.naive_bayes import GaussianNB
from river.tree import HoeffdingAdaptiveTreeClassifier

from driftline.learners.self_supervised.river_classifier import RiverClassifier

RNG = np.random.default_rng(0)
SEED = Seed(3)
Y = [RNG.integers(0, 2, n) for n in (150, 160, 40)]
TRAINING = [(RNG.normal(3 * y[:, None] - k, 1, (len(y), 4)).astype(np.float32), y) for k, y in enumerate(Y)]
PROBE = RNG.normal(1, 2, (20, 4)).astype(np.float32)


def direct(kind: str) -> Any:
    seed = SEED.value % 2**32
    makers = {"hat": HoeffdingAdaptiveTreeClassifier, "arf": ARFClassifier}
    return GaussianNB() if kind == "nb" else makers[kind](seed=seed)


@pytest.mark.parametrize("kind", ["hat", "arf", "nb"])
def test_it_is_river_sample_by_sample(kind: Any) -> None:
    ours, theirs = RiverClassifier(kind, 3, SEED), direct(kind)
    for rows, y in TRAINING:
        ours.learn(rows, y)
        for row, label in zip(rows, y, strict=True):
            theirs.learn_one({j: float(value) for j, value in enumerate(row)}, int(label))
        ours.outputs(PROBE)  # asking changes nothing
    found = softmax(ours.outputs(PROBE), axis=1)
    for row, scores in zip(PROBE, found, strict=True):
        output = theirs.predict_proba_one({j: float(value) for j, value in enumerate(row)})
        assert scores == pytest.approx([output.get(c, 0.0) for c in range(3)], abs=1e-12)
    assert (found[:, 2] == 0).all()  # never met
    assert found.std(0)[0] > 0.1


@pytest.mark.parametrize("kind", ["hat", "arf", "nb"])
def test_saved_and_restored_it_goes_on_the_same(kind: Any, tmp_path: Any) -> None:
    whole, first, fresh = (RiverClassifier(kind, 3, SEED) for _ in range(3))
    for batch in TRAINING:
        whole.learn(*batch)
    for batch in TRAINING[:2]:
        first.learn(*batch)
    fresh.learn(*TRAINING[2])  # what was there before is forgotten
    serialization.save(first.state(), tmp_path / "state")
    fresh.restore(serialization.load(tmp_path / "state"))
    assert digest(fresh.state()) == digest(first.state())
    fresh.learn(*TRAINING[2])
    assert digest(fresh.outputs(PROBE)) == digest(whole.outputs(PROBE))


@pytest.mark.parametrize("kind", ["hat", "arf", "nb"])
def test_before_the_first_training_round_it_has_no_opinion(kind: Any) -> None:
    asked, silent = RiverClassifier(kind, 3, SEED), RiverClassifier(kind, 3, SEED)
    assert (asked.outputs(PROBE) == 0).all()
    asked.learn(*TRAINING[0])
    silent.learn(*TRAINING[0])
    assert digest(asked.outputs(PROBE)) == digest(silent.outputs(PROBE))
    assert asked.outputs(PROBE[:0]).shape == (0, 3)


def test_another_seed_is_another_forest() -> None:
    one, other = RiverClassifier("arf", 3, Seed(1)), RiverClassifier("arf", 3, Seed(2))
    one.learn(*TRAINING[0])
    other.learn(*TRAINING[0])
    assert digest(one.outputs(PROBE)) != digest(other.outputs(PROBE))
