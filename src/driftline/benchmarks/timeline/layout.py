"""The parts of a timeline: what its role may see, what trains the first model, and what pictures show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from driftline.benchmarks.timeline import eval_fix, validation
from driftline.data import Dataset
from driftline.errors import UserError
from driftline.reveal import delivery_steps, known_by
from driftline.seeds import Seed
from driftline.streams import Periods
from driftline.types import JsonObject, Samples, Stream

if TYPE_CHECKING:
    from driftline.benchmarks.timeline.benchmark import Options

MAX_EMBEDDED = 500  # samples whose features are recorded for the figure of how classes move


def known_upstream(timeline: Periods, n: int) -> Samples:
    """Return the samples of the first periods whose labels are known when they end."""
    upstream = Samples.concat(timeline.revealed[:n])
    known = known_by(upstream, np.max(np.asarray(timeline.revealed[n - 1].time)))
    if not known.any():
        raise UserError(f"no label of the first {n} period(s) is known when they end: choose a larger upstream")
    return upstream if known.all() else upstream[np.flatnonzero(known)]


def first_labels(stream: Stream) -> int:
    """Return the first step at whose end labels are known."""
    steps = delivery_steps(stream)
    if not steps:
        raise UserError("no label is known before the data end: check the column data.known")
    return steps[0]


def shuffled(timeline: Periods, samples: Samples, seed: Seed) -> Periods:
    """Return the periods in a random order."""
    if samples.known is not None:
        raise UserError("order=shuffled: labels become known at times of their own; leave out the column data.known")
    return timeline.shuffled(seed)


def for_role(timeline: Periods, options: Options, seed: Seed) -> tuple[Periods, str]:
    """Return the periods that the role may see, and the split of Eval-Fix."""
    if options.protocol == "fix" and options.role == "validation":
        end = eval_fix.split_end(timeline, options.split, options.upstream)
        return validation.before_split(timeline, options.upstream, end, options.validation, seed)
    if isinstance(options.validation, float):
        timeline = validation.three_parts(timeline, options.validation, options.role, seed)
    elif options.protocol != "fix" and options.role == "validation":
        timeline = timeline.first(options.upstream + int(options.validation or 0))
    return timeline, options.split


def test_set(dataset: Dataset) -> np.ndarray:
    """Return which samples are of the test set that the data bring."""
    if dataset.test is None:
        raise UserError(
            f"holdout=given: dataset '{dataset.name}' has no test set; Wild-Time's data have one with "
            "--set data.published_split=true. Or hold out a share, such as --holdout 0.1"
        )
    return dataset.test


def describe(timeline: Periods, options: Options) -> JsonObject:
    """Return the description of a timeline for the card."""
    return {
        "protocol": {"stream": "Eval-Stream", "fix": "Eval-Fix", "tasks": "task sequence"}[options.protocol],
        **({} if options.order == "time" else {"order": options.order}),
        "periods": list(timeline.names[options.upstream :]),
        "upstream_periods": list(timeline.names[: options.upstream]),
        "left_out_periods": timeline.skipped,
        "samples_per_period": [len(part) for part in timeline.revealed[options.upstream :]],
        "held_out_per_period": [len(part) for part in timeline.held_out[options.upstream :]],
        "diagonal": f"held-out {'part' if options.holdout == 'given' else 'share'} of the period",
        "off_diagonal": f"{'all' if timeline.later is None else 'held-out'} samples of the later period",
        "role": options.role,
        "untested_periods": list(timeline.names[options.upstream :][: options.untested]),
    }


def embedding_samples(timeline: Periods, first: int, seed: Seed) -> dict[str, Samples]:
    """Return held-out samples of every period, at most MAX_EMBEDDED in total."""
    chosen = {}
    for t in range(first, len(timeline)):
        n, limit = len(timeline.held_out[t]), max(1, MAX_EMBEDDED // (len(timeline) - first))
        rows = np.sort(seed.child(timeline.names[t]).numpy().permutation(n)[:limit])
        chosen[timeline.names[t]] = timeline.held_out[t][rows]
    return chosen
