"""How far each step of a sequence is from the final one, in the distances of Seq-to-Final's Tables 5 and 6."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from driftline.metrics.shift import conditional_shift, covariate_shift
from driftline.metrics.wasserstein import StepDistances, principal_components
from driftline.streams.seq_to_final.shifts import ShiftSequence


class SequenceDistances(NamedTuple):
    """Distances of the training samples of every step from the final test set, on principal components."""

    covariate: StepDistances
    """Of the inputs, whatever their labels."""
    conditional: StepDistances
    """Within each label, weighted by its share in the final test set."""
    components: int
    explained: float
    """The share of the variance that the components explain."""


def sequence_distances(steps: ShiftSequence) -> SequenceDistances:
    """Return the W2 distances of every step from the final test set."""
    train = [steps[t].samples[: len(rows.train)] for t, rows in enumerate(steps.rows)]
    small = principal_components([np.asarray(s.x) for s in train], np.asarray(steps.test.x))
    labels = [np.asarray(s.y) for s in train]
    return SequenceDistances(
        covariate_shift(small.steps, small.final, components=None),
        conditional_shift(small.steps, labels, small.final, np.asarray(steps.test.y), components=None),
        small.final.shape[1],
        small.explained,
    )
