from __future__ import annotations

import numpy as np
import pytest
import torch

from driftline.tasks import Classification

TASK = Classification(("a", "b", "c"))


def test_scores_are_probabilities_and_ties_go_to_the_lower_index() -> None:
    answers = TASK.decode(np.log([[0.2, 0.5, 0.3], [0.4, 0.4, 0.2]]))
    assert answers.prediction.tolist() == [1, 0]
    np.testing.assert_allclose(answers.scores, [[0.2, 0.5, 0.3], [0.4, 0.4, 0.2]])


def test_a_class_that_is_out_of_the_question_scores_zero() -> None:
    assert TASK.decode(np.array([[0.0, -np.inf, 0.0]])).scores.tolist() == [[0.5, 0.0, 0.5]]


@pytest.mark.parametrize("kind", [torch.int64, torch.int32, torch.uint8])
def test_the_loss_is_minus_log_probability_per_sample(kind: torch.dtype) -> None:
    loss = TASK.loss(torch.log(torch.tensor([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])), torch.tensor([1, 0], dtype=kind))
    np.testing.assert_allclose(loss.numpy(), [-np.log(0.5), -np.log(0.1)], rtol=1e-6)


def test_right_is_one_and_wrong_is_zero() -> None:
    assert TASK.correct(np.array([0, 1, 2]), np.array([0, 2, 2])).tolist() == [1.0, 0.0, 1.0]
    assert TASK.width == 3
