"""Time domains: sliding windows of periods, and training on mini-batches grouped by window.

The methods that Wild-Time marks "-T" need domains and take them from time: with T periods and windows of length L
there are T - L + 1 domains, and window k covers the periods k .. k + L - 1. Fewer periods than L make one domain.

This is the definition in Wild-Time's paper. Its code does something else: windows that all end at the present, and an
example that generally does not belong to the period that was drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import torch
from torch import Tensor

from driftline.models.preprocessing import to_float_batch
from driftline.seeds import Seed
from driftline.training.augmentations import augmented
from driftline.training.fit import training_tensors
from driftline.training.mac_counter import is_spent
from driftline.training.modes import training
from driftline.training.objectives import Group
from driftline.types import Inputs


def sliding_windows(lengths: Sequence[int], window: int) -> list[range]:
    """Return the rows of each window, given the number of rows of each of the consecutive periods.

    >>> sliding_windows([10, 5, 5, 20], window=3)
    [range(0, 20), range(10, 40)]
    >>> sliding_windows([10, 5], window=3)
    [range(0, 15)]
    """
    edges = [0, *accumulate(lengths)]
    span = min(window, len(lengths))
    return [range(edges[k], edges[k + span]) for k in range(len(lengths) - span + 1)]


def even_split(batch: int, groups: int) -> list[int]:
    """Return group sizes that divide a batch as evenly as possible.

    >>> even_split(32, 10)
    [4, 4, 3, 3, 3, 3, 3, 3, 3, 3]
    """
    return [batch // groups + (k < batch % groups) for k in range(groups)]


@dataclass(frozen=True, eq=False)
class GroupedBatch:
    """A mini-batch in groups: the rows of the first window drawn, then those of the second, and so on."""

    x: Tensor
    y: Tensor
    windows: Tensor
    """The windows drawn, each at most once."""
    sizes: list[int]
    """The number of rows of each window."""

    def split(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Split a tensor with one entry per row of the batch into groups."""
        parts: tuple[Tensor, ...] = rows.split(self.sizes)
        return parts

    def groups(self, outputs: Tensor) -> list[Group]:
        """Return outputs and targets, one group per window."""
        return [Group(*pair) for pair in zip(self.split(outputs), self.split(self.y), strict=True)]


def draw_grouped(
    windows: Sequence[range], shares: Sequence[int], updates: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Draw, for each update, `len(shares)` different windows, and from each its share of rows.

    Windows are drawn uniformly without replacement, rows uniformly with replacement. Return two tensors with one row
    per update: the windows, and the rows of samples in the same order.
    """
    chosen = torch.rand(updates, len(windows), generator=generator).argsort(1)[:, : len(shares)]
    first, length = (torch.tensor(numbers) for numbers in zip(*((w.start, len(w)) for w in windows), strict=True))
    of_row = chosen.repeat_interleave(torch.tensor(shares), dim=1)
    place = torch.rand(of_row.shape, generator=generator, dtype=torch.float64)
    return chosen, first[of_row] + (place * length[of_row]).long()


def grouped_batches(
    model: torch.nn.Module,
    x: Inputs,
    y: np.ndarray,
    windows: Sequence[range],
    groups: int,
    updates: int,
    batch: int,
    seed: Seed,
    augment: str,
) -> Iterator[GroupedBatch]:
    """Yield `updates` mini-batches of `batch` rows from `groups` windows, or from all if there are fewer.

    A mini-batch never has a window twice: two samples of one domain do not show how domains differ. One window only,
    as in the first periods, leaves nothing to compare. The network is in training mode meanwhile.
    """
    inputs, targets = training_tensors(model, x, y)
    inputs = augmented(inputs, augment, seed)
    shares = even_split(batch, min(groups, batch, len(windows)))
    drawn = draw_grouped(windows, shares, updates, seed.child("batches").torch())
    with training(model, seed.child("noise")):
        for chosen, rows in zip(*drawn, strict=True):
            if is_spent(model):
                break
            yield GroupedBatch(to_float_batch(inputs[rows]), targets[rows], chosen, shares)
