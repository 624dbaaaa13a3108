"""Validation data of a timeline: what settings are selected on, which no test score uses.

Eval-Stream, `validation=3`: the first three periods. A test run trains on them and is not tested on them.
Eval-Stream, `validation=0.1`: a tenth of what is revealed in each period. Then a period has three parts: to train on,
to select on and to test on, and models are tested on that last part of their own and of each later period. No model is
trained on what another is tested on, as it would be with whole later periods.
Eval-Fix: the last periods up to the split, a third of them or `validation`. Candidates train on those before, and only
on samples that a test run trains on as well.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from driftline.errors import UserError
from driftline.seeds import Seed
from driftline.streams import Periods
from driftline.types import Samples

FIX_SHARE = 3  # one in this many periods up to the split is for validation


def three_parts(timeline: Periods, share: float, role: str, seed: Seed) -> Periods:
    """Return each period with a part to train on and the part to select or to test on, by role."""
    revealed, selected = _split_revealed(timeline, share, seed)
    tested = selected if role == "validation" else timeline.held_out
    return replace(timeline, revealed=revealed, held_out=tested, later=tested)


def before_split(timeline: Periods, first: int, end: int, count: int | float | None, seed: Seed) -> tuple[Periods, str]:
    """Return the periods up to the split, which is before `end`, and the last of them that candidates train on.

    They have only what a test run trains on, and of that a part is held out. The `first` periods, which pretrain the
    model, stay as they are.
    """
    n, early = end - first, timeline.first(end)
    last = max(1, n // FIX_SHARE) if count is None else int(count)
    if last >= n:
        fewer = " or a smaller validation" if count else ""
        raise UserError(
            f"If the last {last} of the {n} period(s) up to the split select settings, none is left to train on: use a "
            f"later split{fewer}"
        )
    held_out = sum(map(len, early.held_out))
    share = held_out / (held_out + sum(map(len, early.revealed)))
    revealed, tested = _split_revealed(early, share, seed)
    revealed = (*early.revealed[:first], *revealed[first:])
    return replace(early, revealed=revealed, held_out=tested), early.names[end - last - 1]


def _split_revealed(timeline: Periods, share: float, seed: Seed) -> tuple[tuple[Samples, ...], tuple[Samples, ...]]:
    """Divide what each period reveals at random; both parts have at least one sample."""
    rest, taken = [], []
    for name, samples in zip(timeline.names, timeline.revealed, strict=True):
        n = len(samples)
        if n < 2:
            raise UserError(f"period {name} has one sample to train on, and none is left to select settings by")
        mixed = seed.child("validation", name).numpy().permutation(n)
        cut = min(max(round(share * n), 1), n - 1)
        taken.append(samples[np.sort(mixed[:cut])])
        rest.append(samples[np.sort(mixed[cut:])])
    return tuple(rest), tuple(taken)
