"""A tiny network with batch norm, its forward pass written out, and plain optimisers: what methods are checked against.

Nothing here uses the library's own layers, losses or optimisers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from driftline.learners.base import Learner
from driftline.seeds import Seed
from driftline.tasks import Classification
from driftline.types import Samples

TASK = Classification(("a", "b", "c", "d", "e"))
RNG = np.random.default_rng(7)
BATCHES = [
    (RNG.integers(0, 200, (9, 1, 1, 3)) + RNG.integers(0, 56, (9, 6, 6, 3))).astype(np.uint8) for _ in range(6)
]  # images of different colours, so that answers differ
NORM = ["layer1.1.weight", "layer1.1.bias", "layer2.1.weight", "layer2.1.bias"]

Loss = Callable[[Tensor], Tensor | None]
Move = Callable[[int, Tensor, Tensor], Tensor]
"""From the number of a weight, the weight and its gradient to the weight after a step."""


class Tiny(nn.Module):
    """Two convolutions with batch norm and a linear layer that is sure of itself; running statistics are far off."""

    def __init__(self) -> None:
        super().__init__()
        self.layer1 = nn.Sequential(nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4))
        self.layer2 = nn.Sequential(nn.Conv2d(4, 4, 3, bias=False), nn.BatchNorm2d(4), nn.Dropout(0.5))
        self.fc = nn.Linear(4, 5)
        with torch.no_grad():
            for weight in self.parameters():
                weight.add_(0.3 * torch.randn(weight.shape))
            self.fc.weight.mul_(6)
            self.fc.bias.copy_(-0.4 * self.fc.weight.sum(dim=1))
            for _, buffer in self.named_buffers():
                buffer.add_(1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.layer2(self.layer1(x).relu()).relu()
        outputs: Tensor = self.fc(x.mean(dim=(2, 3)))
        return outputs


def tiny(seed: int = 3) -> Tiny:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return Tiny().eval()


def settled() -> Tiny:
    """The tiny network with running statistics that fit its images."""
    model = tiny()
    for layer in (model.layer1[1], model.layer2[1]):
        layer.momentum = 1.0
        layer.train()
    with torch.no_grad():
        model(pixels(np.concatenate(BATCHES)))
    return model.eval()


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}


def pixels(images: np.ndarray) -> Tensor:
    return torch.tensor(images.transpose(0, 3, 1, 2) / 255, dtype=torch.float32)


def forward(weights: dict[str, Tensor], x: Tensor) -> Tensor:
    """The network with the statistics of the batch, by definition."""
    for layer in ("layer1", "layer2"):
        x = nn.functional.conv2d(x, weights[f"{layer}.0.weight"])
        mean = x.mean(dim=(0, 2, 3), keepdim=True)
        variance = ((x - mean) ** 2).mean(dim=(0, 2, 3), keepdim=True)
        scale, shift = (weights[f"{layer}.1.{name}"].view(1, -1, 1, 1) for name in ("weight", "bias"))
        x = torch.clamp((x - mean) / torch.sqrt(variance + 1e-5) * scale + shift, min=0)
    return x.mean(dim=(2, 3)) @ weights["fc.weight"].T + weights["fc.bias"]


def sgd(lr: float, momentum: float = 0.9, nesterov: bool = False) -> Move:
    speed: dict[int, Tensor] = {}

    def move(number: int, weight: Tensor, slope: Tensor) -> Tensor:
        speed[number] = momentum * speed.get(number, torch.zeros_like(slope)) + slope
        return weight - lr * (slope + momentum * speed[number] if nesterov else speed[number])

    return move


def adam(lr: float) -> Move:
    seen: dict[int, tuple[int, Tensor, Tensor]] = {}

    def move(number: int, weight: Tensor, slope: Tensor) -> Tensor:
        steps, first, second = seen.get(number, (0, torch.zeros_like(slope), torch.zeros_like(slope)))
        steps, first, second = steps + 1, 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
        seen[number] = (steps, first, second)
        return weight - lr * (first / (1 - 0.9**steps)) / (torch.sqrt(second / (1 - 0.999**steps)) + 1e-8)

    return move


def step(weights: dict[str, Tensor], loss: Tensor, leaves: dict[str, Tensor], move: Move) -> dict[str, Tensor]:
    """The weights after one step down the gradient of a loss over `leaves`."""
    slopes = torch.autograd.grad(loss, list(leaves.values()))
    moved = {
        name: move(k, leaf.detach(), slope)
        for k, ((name, leaf), slope) in enumerate(zip(leaves.items(), slopes, strict=True))
    }
    return {**weights, **moved}


def adapted_by_hand(
    loss: Loss, move: Move, batches: Iterable[np.ndarray], names: list[str] = NORM
) -> tuple[list[Tensor], dict[str, Tensor]]:
    """The outputs before each update, and the weights after the last."""
    weights, output = weights_of(tiny()), []
    for images in batches:
        leaves = {name: weights[name].clone().requires_grad_() for name in names}
        outputs = forward({**weights, **leaves}, pixels(images))
        output.append(outputs.detach())
        if (value := loss(outputs)) is not None:
            weights = step(weights, value, leaves, move)
    return output, weights


def ready(learner: Any, model: nn.Module | None = None, upstream: Samples | None = None) -> Any:
    learner.seed = Seed(3)
    learner.prepare(tiny() if model is None else model, TASK, upstream)
    return learner


def scores(learner: Learner, batches: Iterable[np.ndarray]) -> list[np.ndarray]:
    answers = [learner.answer(images).scores for images in batches]
    return [score for score in answers if score is not None]


def must_agree(learner: Any, batches: list[np.ndarray], output: list[Tensor], weights: dict[str, Tensor]) -> None:
    """The learner's answers and final weights are these."""
    for score, outputs in zip(scores(learner, batches), output, strict=True):
        np.testing.assert_allclose(score, outputs.softmax(dim=1).numpy(), rtol=1e-3, atol=2e-5)
    for name, weight in learner.model.named_parameters():
        torch.testing.assert_close(
            weight.detach(), weights[name], rtol=1e-3, atol=2e-5, msg=lambda m, n=name: f"{n}: {m}"
        )


def far(one: dict[str, Tensor], other: dict[str, Tensor], names: list[str] = NORM) -> float:
    """The largest difference between two sets of weights."""
    return max(float((one[name] - other[name]).abs().max()) for name in names)
