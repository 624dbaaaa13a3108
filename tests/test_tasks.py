from __future__ import annotations

import numpy as np
import pytest
import torch

from driftline.tasks import Classification, Regression, Task, mean_loss

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


@pytest.mark.parametrize("task", [TASK, Regression(center=1.0, scale=2.0)])
@pytest.mark.parametrize("n", [1, 10, 77])
def test_the_mean_loss_is_the_mean_and_has_its_slope_to_the_bit(task: Task, n: int) -> None:
    draws = torch.Generator().manual_seed(0)
    outputs, y = torch.randn(n, task.width, generator=draws), torch.randint(3, (n,), generator=draws)
    values, slopes = [], []
    for mean in (mean_loss, lambda task, outputs, y: task.loss(outputs, y).mean()):
        leaf = outputs.clone().requires_grad_()
        values.append(mean(task, leaf, y))
        slopes.append(torch.autograd.grad(values[-1], leaf)[0])
    torch.testing.assert_close(*values)
    assert torch.equal(*slopes)


def test_the_mean_loss_of_a_derived_task_is_its_own() -> None:
    class Doubled(Classification):
        def loss(self, outputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return 2 * super().loss(outputs, y)

    outputs, y = torch.zeros(4, 3), torch.tensor([0, 1, 2, 0])
    assert mean_loss(Doubled(TASK.classes), outputs, y).item() == pytest.approx(2 * np.log(3))


def test_right_is_one_and_wrong_is_zero() -> None:
    assert TASK.correct(np.array([0, 1, 2]), np.array([0, 2, 2])).tolist() == [1.0, 0.0, 1.0]
    assert TASK.width == 3
