"""The iterations of training and evaluation: batches, epochs and updates.

Long loops over items of about equal cost take their items from here, so that a sampler can run a part of them (see
`loops`). Without a sampler nothing is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import torch
from torch import Tensor

from driftline.seeds import Seed
from driftline.training import loops


def iterations(n: int) -> Iterable[int]:
    """Return the numbers of n epochs, updates or other iterations, from 0."""
    return loops.sample(range(n))


def shuffled_batches(rows: int, batch: int, seed: Seed, limit: int | None = None) -> Iterable[Tensor]:
    """Return all rows in random order, in batches; at most `limit` batches.

    A row left over joins the last batch; one row alone is doubled. Batch norm cannot normalize a single sample.
    """
    return loops.sample(_shuffle(rows, batch, seed)[:limit])


def infinite_batches(rows: int, batch: int, seed: Seed) -> Iterator[Tensor]:
    """Yield batches without end; each pass over all rows has a new random order."""
    passed = 0
    while True:
        yield from _shuffle(rows, batch, seed.child(passed))
        passed += 1


def count_batches(rows: int, batch: int) -> int:
    """Return the number of batches of `shuffled_batches`.

    >>> [count_batches(rows, 100) for rows in (1, 100, 101, 102)]
    [1, 1, 1, 2]
    """
    full, left_over = divmod(rows - 1, batch)  # the last row alone makes no batch
    return max(full + (left_over > 0), 1)


def map_batches(function: Callable[[Tensor], Tensor], inputs: Tensor, batch: int) -> Tensor:
    """Return the outputs of a function of rows, computed batch by batch."""
    starts = range(0, max(len(inputs), 1), batch)
    outputs = torch.cat([function(inputs[start : start + batch]) for start in loops.sample(starts)])
    return fill_rows(outputs, len(inputs))


def fill_rows(rows: Tensor, n: int) -> Tensor:
    """Return the rows, repeated to be n if some were skipped."""
    return rows if len(rows) == n or not len(rows) else rows[torch.arange(n) % len(rows)]


def _shuffle(rows: int, batch: int, seed: Seed) -> list[Tensor]:
    if rows == 1:
        return [torch.zeros(2, dtype=torch.long)]
    parts = list(torch.randperm(rows, generator=seed.torch()).split(batch))
    if len(parts) > 1 and len(parts[-1]) == 1:
        parts[-2:] = [torch.cat(parts[-2:])]
    return parts
