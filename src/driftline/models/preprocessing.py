"""Convert stored samples to the tensors that networks take. Normalization is part of the network."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
import torch
from torch import Tensor, nn

from driftline.device import HOST, to_device
from driftline.errors import UserError
from driftline.lazy_rows import LazyRows
from driftline.registry import register
from driftline.seeds import Seed
from driftline.types import Inputs

T = TypeVar("T")


def register_network(name: str) -> Callable[[Callable[..., nn.Module]], Callable[..., nn.Module]]:
    """Register a function `(shape, outputs, *, options)` as a network whose initial weights come from a seed."""

    def keep(make: Callable[..., nn.Module]) -> Callable[..., nn.Module]:
        @functools.wraps(make)
        def build(shape: tuple[int, ...], outputs: int, seed: Seed, **options: Any) -> nn.Module:
            return build_seeded(lambda: make(shape, outputs, **options), seed)

        taken = inspect.signature(make)
        first, *rest = taken.parameters.values()
        seed = inspect.Parameter("seed", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        build.__signature__ = taken.replace(parameters=[first, rest[0], seed, *rest[1:]])  # type: ignore[attr-defined]
        return register("model", name)(build)

    return keep


def build_seeded(make: Callable[[], nn.Module], seed: Seed) -> nn.Module:
    """Return the network that `make` builds, with initial weights from this seed alone, in evaluation mode."""
    return to_eval_mode(call_seeded(make, seed))


def call_seeded(make: Callable[[], T], seed: Seed) -> T:
    """Return what `make` returns if torch draws from this seed meanwhile."""
    with seed.as_torch_default():
        return make()


def to_eval_mode(made: nn.Module) -> nn.Module:
    """Return the network in evaluation mode, its weights laid out for speed."""
    made.eval()
    # Convolutions run up to twice as fast on a CPU with channels last; other layers do not notice.
    made.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return made


def to_tensor(x: Inputs) -> Tensor:
    """Return the same numbers in a tensor, without a copy where possible.

    Lazy rows stay as they are: they are indexed like a tensor, and `to_float_batch` converts each batch.
    """
    if isinstance(x, list):
        raise UserError("this network takes numbers, and these inputs are texts: use tfidf or hashed-ngrams")
    if isinstance(x, LazyRows):
        return cast(Tensor, x)
    return x if isinstance(x, Tensor) else torch.from_numpy(np.ascontiguousarray(x))


def to_float_batch(batch: Tensor | np.ndarray) -> Tensor:
    """Copy a batch to the device as floats.

    Byte images (n, height, width, channels) become numbers in [0, 1] with channels first; other numbers, float32.
    """
    if isinstance(batch, Tensor) and batch.dtype == torch.float32:
        return to_device(batch)
    batch = batch if isinstance(batch, Tensor) else torch.from_numpy(np.ascontiguousarray(batch))
    batch = to_device(batch.float() if batch.dtype == torch.float64 else batch)
    if batch.dtype == torch.uint8 and batch.ndim == 4:
        return batch.permute(0, 3, 1, 2).float().div_(255)
    return batch.float()


class Standardize(nn.Module):
    """Shift and scale features by the mean and deviation of the first data the network is trained on.

    Networks start without these numbers; `training.fit` fills them in once, from training data alone, so that
    nothing of a later period leaks into an earlier model.
    """

    mean: Tensor
    scale: Tensor
    fitted: Tensor

    def __init__(self, features: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("scale", torch.ones(features))
        self.register_buffer("fitted", torch.tensor(False))

    def fit(self, x: Tensor | LazyRows) -> None:
        """Take mean and deviation from these inputs, unless that was done before; lazy rows are read block by block."""
        if self.fitted:
            return
        n, mean, squares = 0, torch.zeros(1, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)
        for block in x.blocks() if isinstance(x, LazyRows) else [x]:
            rows = self._rows(to_float_batch(block))
            shift = rows.mean(0).to(HOST).double() - mean
            total = n + len(rows)
            squares = squares + len(rows) * rows.std(0, correction=0).to(HOST).double() ** 2
            squares += shift**2 * n * len(rows) / total
            mean, n = mean + shift * len(rows) / total, total
        deviation = (squares / n).sqrt().float()
        self.mean.copy_(mean)
        # A feature that never varied in training carries no information yet: leave its scale alone.
        self.scale.copy_(torch.where(deviation > 1e-6, deviation, torch.ones_like(deviation)))
        self.fitted.fill_(True)

    def forward(self, x: Tensor) -> Tensor:
        return (x.flatten(1) - self.mean) / self.scale

    def _rows(self, x: Tensor) -> Tensor:
        """Return one column for each value that is standardized on its own."""
        return x.flatten(1)


class StandardizeChannels(Standardize):
    """The same for images (n, channels, height, width): one mean and one deviation per channel."""

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean[:, None, None]) / self.scale[:, None, None]

    def _rows(self, x: Tensor) -> Tensor:
        return x.movedim(1, -1).flatten(0, -2)
