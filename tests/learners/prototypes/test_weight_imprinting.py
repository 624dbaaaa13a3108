"""Weight imprinting: means by cosine before the switch, trained weights after it, and classes that come late."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import softmax
from torch.nn.functional import cross_entropy

from driftline.errors import UserError
from driftline.learners.prototypes.weight_imprinting import WeightImprinting

from ..one_by_one import after_labels, labels, prepared, stream, walk


def imprinted(classes: int = 3, width: int = 2, **settings: Any) -> Any:
    return prepared(WeightImprinting(**settings), classes, width=width)


def test_before_the_switch_it_is_the_nearest_mean_by_cosine() -> None:
    """Class 0 is (.5, .5), class 1 (0, 1): cosines of (1, 0) are .707107 and 0, times 4."""
    answers = after_labels(imprinted(), [[1, 0], [0, 3], [0, 2]], [0, 0, 1]).predict(np.float32([[5, 0]]))
    np.testing.assert_allclose(answers.scores[0], [*softmax([4 / np.sqrt(2), 0]), 0], rtol=1e-6)
    assert answers.distance[0] == pytest.approx(-4 / np.sqrt(2))


def test_training_rounds_begin_at_the_switch_and_go_on_in_their_rhythm() -> None:
    learner, begun = imprinted(3, 6, imprint_only_labels=25, train_every=10, epochs=1), []
    for step in stream(60, 3, 1):
        walk(learner, [step], labels(3))
        begun.append(learner.training_rounds)
    assert np.flatnonzero(np.diff([0, *begun])).tolist() == [24, 34, 44, 54]  # after 25, 35, 45 and 55 labels


def test_with_no_training_rounds_the_switch_changes_nothing() -> None:
    learner = imprinted(3, 6, imprint_only_labels=5, train_every=0)
    walk(learner, stream(40, 3, 8), labels(3))
    assert learner.training_rounds == 0


def test_a_class_moves_with_its_labels_until_its_first_training_round_and_then_only_in_training_rounds() -> None:
    learner = imprinted(imprint_only_labels=4, train_every=4, epochs=1)
    after_labels(learner, [[1, 0], [2, 1], [0, 3], [1, 4]], [0, 0, 1, 1])
    assert learner.tuned_classes.tolist() == [True, True, False]
    before = learner.class_vectors(slice(None))
    after_labels(learner, [[-1, 0], [-1, -1]], [0, 2])
    np.testing.assert_array_equal(learner.class_vectors(slice(0, 2)), before[:2])  # a label does not move class 0
    np.testing.assert_allclose(
        learner.class_vectors(slice(2, 3)), [[-(0.5**0.5)] * 2], rtol=1e-6
    )  # class 2 is imprinted
    after_labels(learner, [[0, -5]], [2])
    both = np.array([-(0.5**0.5), -(0.5**0.5) - 1]) / 2
    np.testing.assert_allclose(learner.class_vectors(slice(2, 3))[0], both / np.linalg.norm(both), rtol=1e-6)
    assert learner.predict(np.float32([[-1, -3]])).prediction[0] == 2


def test_two_training_rounds_equal_plain_torch() -> None:
    """Weights start from the means at the first training that has the class; scale and momentum go on."""
    every, epochs, batch, classes = 12, 2, 5, 3
    learner = imprinted(classes, 4, imprint_only_labels=every, train_every=every, epochs=epochs, batch=batch)
    samples = stream(24, classes, 24, seed=2, width=4)[0].samples
    y = samples.y.copy()
    y[:12] %= 2  # class 2 comes after the first training
    after_labels(learner, samples.x, y)
    x, targets = torch.from_numpy(samples.x).double(), torch.from_numpy(y)
    units = x / x.norm(dim=1, keepdim=True)
    weight = torch.zeros(classes, 4, dtype=torch.float64, requires_grad=True)
    scale = torch.tensor(4.0, dtype=torch.float64, requires_grad=True)
    speeds = [torch.zeros_like(weight), torch.zeros_like(scale)]
    for training_round in range(2):
        n, new = every * (training_round + 1), [[0, 1], [2]][training_round]
        with torch.no_grad():
            for k in new:
                weight[k] = units[:n][targets[:n] == k].mean(dim=0)
        for epoch in range(epochs):
            draws = learner.seed.child("lesson", training_round, epoch).torch()
            for rows in torch.randperm(n, generator=draws).split(batch):
                known = 2 if training_round == 0 else 3
                logits = scale * units[rows] @ (weight[:known] / weight[:known].norm(dim=1, keepdim=True)).T
                slopes = torch.autograd.grad(cross_entropy(logits, targets[rows]), [weight, scale])
                with torch.no_grad():
                    for k, (value, slope) in enumerate(zip([weight, scale], slopes, strict=True)):
                        speeds[k] = 0.9 * speeds[k] + slope + 1e-4 * value
                        value -= 0.1 * speeds[k]
    np.testing.assert_allclose(learner.head["weight"].detach(), weight.detach(), rtol=1e-4, atol=1e-5)
    assert learner.head["scale"].item() == pytest.approx(scale.item(), rel=1e-5)
    assert abs(scale.item() - 4) > 0.05


def test_a_scale_of_zero_is_refused() -> None:
    with pytest.raises(UserError, match="scale=0"):
        prepared(WeightImprinting(scale=0.0), 2)
