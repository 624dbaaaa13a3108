"""Sums over samples from one pass of a batch, against passes of one sample at a time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from driftline import models
from driftline.seeds import Seed
from driftline.training import per_sample_gradients
from driftline.training.mac_counter import MacCounter
from driftline.training.per_sample_gradients import sum_over_samples

N = 70  # more than one batch
ROWS = torch.arange(N)
Y = torch.randint(3, (N,), generator=torch.Generator().manual_seed(1))


def images(channels: int = 2) -> Tensor:
    return torch.rand((N, channels, 6, 6), generator=torch.Generator().manual_seed(0))


FIRST_OF_TWO = float(images()[:2, 0, 0, 0].mean())
"""A threshold between the first two samples, so that both experts pass for them."""


def loss(outputs: Tensor, y: Tensor) -> Tensor:
    return nn.functional.cross_entropy(outputs.flatten(1)[:, :3], y, reduction="sum")


def one_by_one(model: nn.Module, x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
    """The definition."""
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    total = torch.zeros(sum(weight.numel() for weight in weights))
    for k in range(N):
        grads = torch.autograd.grad(loss(model(x[k : k + 1]), Y[k : k + 1]), weights, materialize_grads=True)
        total += function(torch.cat([grad.reshape(-1) for grad in grads]))
    return total


def seeded(*layers: nn.Module) -> nn.Module:
    """These layers in evaluation mode, with statistics and weights that are nothing special."""
    model, random = nn.Sequential(*layers), torch.Generator().manual_seed(2)
    for name, values in model.state_dict().items():
        if values.is_floating_point():
            values.copy_(torch.rand(values.shape, generator=random) + (0.5 if "running_var" in name else -0.4))
    return model.eval()


class Twice(nn.Module):
    """A layer that is used twice in a pass."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(72, 72)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(torch.tanh(self.layer(x.flatten(1))))  # type: ignore[no-any-return]


class Mixing(nn.Module):
    """Samples of a batch affect each other."""

    def forward(self, x: Tensor) -> Tensor:
        return x - x.mean(0) / 2


class MixingFaintly(nn.Module):
    """Samples of a batch affect each other's features, whose layer has small gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.features, self.head = nn.Linear(72, 8), nn.Linear(72, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = x.flatten(1)
        faint = self.features(x - x.mean(0) / 2).sum(1, keepdim=True)
        return self.head(x) + faint / 1000  # type: ignore[no-any-return]


class Constant(nn.Module):
    """A layer passes without gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.constant = nn.Linear(72, 3), nn.Linear(72, 3)

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            shift = self.constant(x.flatten(1))
        return self.layer(x.flatten(1)) + shift  # type: ignore[no-any-return]


class ByKeyword(nn.Module):
    """A layer is called with a keyword."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(72, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(input=x.flatten(1))  # type: ignore[no-any-return]


class Experts(nn.Module):
    """Two layers, each of which passes only if a sample of the batch is its own."""

    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList([nn.Linear(72, 3), nn.Linear(72, 3)])

    def forward(self, x: Tensor) -> Tensor:
        x, outputs = x.flatten(1), torch.zeros(len(x), 3)
        second = (x[:, 0] > FIRST_OF_TWO).long()
        for k, expert in enumerate(self.experts):
            if (own := second == k).any():
                outputs = outputs.index_put((own.nonzero()[:, 0],), expert(x[own]))
        return outputs


def tied() -> nn.Module:
    model = seeded(nn.Flatten(), nn.Linear(72, 72), nn.Tanh(), nn.Linear(72, 72))
    model[3].weight = model[1].weight  # type: ignore[index]
    return model


def partly_frozen() -> nn.Module:
    model = seeded(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.Flatten(), nn.Linear(16, 3))
    model[0].requires_grad_(False)  # type: ignore[index]
    model[4].bias.requires_grad_(False)  # type: ignore[index]
    return model


FAST = {
    "perceptron": lambda: seeded(nn.Flatten(), nn.Linear(72, 8, bias=False), nn.ReLU(), nn.Linear(8, 3)),
    "convolutions": lambda: seeded(
        nn.Conv2d(2, 4, 3, padding=1, stride=2),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Conv2d(4, 5, (2, 1), dilation=(1, 2), bias=False),
        nn.Flatten(),
        nn.BatchNorm1d(30),
        nn.Linear(30, 3),
    ),
    "partly frozen": partly_frozen,
    "an activation in place": lambda: seeded(nn.Conv2d(2, 4, 3), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(64, 3)),
}
SLOW = {
    "a layer without a formula": lambda: seeded(nn.GroupNorm(1, 2), nn.Flatten(), nn.Linear(72, 3)),
    "groups": lambda: seeded(nn.Conv2d(2, 4, 3, groups=2), nn.Flatten(), nn.Linear(64, 3)),
    "a layer that is used twice": lambda: seeded(Twice()),
    "tied weights": tied,
    "rows of positions": lambda: seeded(nn.Flatten(0, 2), nn.Linear(6, 3), nn.Unflatten(0, (-1, 12))),
    "matrices": lambda: seeded(nn.Linear(6, 3), nn.Flatten()),
    "small gradients of samples that affect each other": MixingFaintly,
    "a layer without gradients": Constant,
    "a layer called with a keyword": ByKeyword,
    "samples that affect each other": lambda: seeded(Mixing(), nn.Flatten(), nn.Linear(72, 3)),
}


@pytest.mark.parametrize("function", [torch.square, torch.abs])
@pytest.mark.parametrize("name", [*FAST, *SLOW])
def test_a_batch_has_the_sum_of_its_samples(name: str, function: Callable[[Tensor], Tensor]) -> None:
    model, x = (FAST | SLOW)[name](), images()
    found = sum_over_samples(model, x, Y, ROWS, loss, function)
    expected = one_by_one(model, x, function)
    assert expected.abs().max() > 0
    torch.testing.assert_close(found, expected, rtol=2e-4, atol=float(expected.max()) * 1e-6)


@pytest.mark.parametrize("name", [*FAST, *SLOW])
def test_passes_are_of_batches_where_that_is_right(name: str) -> None:
    sizes: list[int] = []
    model = (FAST | SLOW)[name]()
    model.register_forward_pre_hook(lambda _, given: sizes.append(len(given[0])))
    sum_over_samples(model, images(), Y, ROWS, loss, torch.square)
    assert sizes[-2:] == ([64, 6] if name in FAST else [1, 1])


def test_a_batch_in_which_a_layer_does_not_pass_is_summed_one_by_one() -> None:
    model, x = Experts().eval(), images()
    x[64:, 0, 0, 0] = 1.0 if x[0, 0, 0, 0] > x[1, 0, 0, 0] else 0.0
    found = sum_over_samples(model, x, Y, ROWS, loss, torch.square)
    torch.testing.assert_close(found, one_by_one(model, x, torch.square), rtol=2e-4, atol=1e-5)


def test_one_at_a_time_squares_are_rounded_as_in_committed_results() -> None:
    model, x = FAST["perceptron"](), images()
    weights = list(model.parameters())
    total = torch.zeros(sum(weight.numel() for weight in weights))
    for k in range(N):
        grads = torch.autograd.grad(loss(model(x[k : k + 1]), Y[k : k + 1]), weights)
        grad = torch.cat([grad.reshape(-1) for grad in grads])
        total.addcmul_(grad, grad)
    assert torch.equal(sum_over_samples(model, x, Y, ROWS, loss, torch.square, batches=False), total)


def test_a_square_of_the_sum_would_be_noticed() -> None:
    model, x = FAST["perceptron"](), images()
    weights = list(model.parameters())
    wrong = torch.cat([grad.reshape(-1) for grad in torch.autograd.grad(loss(model(x), Y), weights)]).square()
    assert (wrong - one_by_one(model, x, torch.square)).norm() > 0.1 * wrong.norm()


def test_large_layers_pass_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = FAST["convolutions"](), images()
    whole = sum_over_samples(model, x, Y, ROWS, loss, torch.square)
    monkeypatch.setattr(per_sample_gradients, "MAX_VALUES", 500)
    torch.testing.assert_close(sum_over_samples(model, x, Y, ROWS, loss, torch.square), whole)


def test_both_ways_count_the_same_compute() -> None:
    counts = []
    for batches in (True, False):
        model, meter = models.build("conv-2", (8, 8, 3), 3, Seed(0)), MacCounter()
        meter.attach(model)  # type: ignore[arg-type]
        x = torch.rand((N, 3, 8, 8))
        sum_over_samples(model, x, Y, ROWS, loss, torch.square, batches=batches)  # type: ignore[arg-type]
        counts.append((meter.forward, meter.backward))
    assert counts[0] == counts[1]
    assert min(counts[0]) > 0
