"""What a check of one batch found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from driftline.auditing.estimate import Estimate
from driftline.auditing.findings import interval
from driftline.auditing.metric import Metric
from driftline.metrics.per_period import TOLERANCE
from driftline.monitoring.bins import Moved

Z95 = 1.96
WINDOW = 3  # latest batches with labels that the online TAS covers


@dataclass(frozen=True)
class PairedScores:
    """Accuracy of the deployed model and of the challenger on the same rows, with what their ratio's interval needs."""

    n: int
    deployed: float
    challenger: float
    deployed_variance: float
    challenger_variance: float
    covariance: float

    @staticmethod
    def measure(deployed: np.ndarray, challenger: np.ndarray) -> PairedScores:
        """Return the scores of two models on the same rows."""
        table = np.cov(np.stack([deployed, challenger]), ddof=0)
        means = float(deployed.mean()), float(challenger.mean())
        return PairedScores(len(deployed), *means, float(table[0, 0]), float(table[1, 1]), float(table[0, 1]))


@dataclass(frozen=True)
class EstimatedQuality:
    """A score estimated without labels."""

    value: float
    n: int
    error: float | None
    """Mean absolute error of such estimates in earlier batches whose labels came with them; None if there are none."""
    carried_error: float | None
    """The same of the last known score, carried forward."""

    @property
    def is_useful(self) -> bool:
        """Whether nothing shows that carrying the last score forward is better."""
        return self.error is None or self.carried_error is None or self.error <= self.carried_error


@dataclass(frozen=True)
class Alarm:
    """Something that needs attention."""

    kind: str
    """staleness, quality, inputs, predictions or labels."""
    at: str
    """The time of the row, or of the batch's first row, at which it was raised."""
    text: str


@dataclass(frozen=True)
class BatchResult:
    """What a check of one batch found: one line of the history."""

    number: int
    name: str
    checked: str
    fingerprint: str
    rows: int
    first: str
    last: str
    """Times of the first and last row."""
    labeled: int
    """Labels that came with this batch, those of earlier batches included."""
    quality: Estimate | None = None
    """Score of the deployed model on these labels."""
    challenger: Estimate | None = None
    """Score of a model trained on the latest labels, on the same rows."""
    estimated: EstimatedQuality | None = None
    """Score of the deployed model on the rows of this batch, estimated without labels."""
    tas: Estimate | None = None
    """Online TAS over the last batches with labels: accuracy of the deployed model, relative to the challenger."""
    paired: PairedScores | None = None
    inputs: tuple[Moved, ...] = ()
    predictions: Moved | None = None
    labels: Moved | None = None
    evidence: Mapping[str, float] = field(default_factory=dict)
    """By question; an alarm is raised at 1,000."""
    alarms: tuple[Alarm, ...] = ()
    diagnosis: str | None = None
    notes: tuple[str, ...] = ()
    seen_before: bool = False
    """Whether the same rows were checked before, so that nothing changed."""

    @property
    def moved_inputs(self) -> tuple[Moved, ...]:
        """The features that moved, the farthest first."""
        return tuple(sorted((one for one in self.inputs if one.moved), key=lambda one: -one.distance))

    def describe(self, metric: Metric) -> str:
        """Return the result in words."""
        lines = [f"{self.name}: {self.rows:,} rows, {self.first} to {self.last}; {self.labeled:,} labels"]
        if self.seen_before:
            lines.append("These rows were checked before: nothing changed.")
        if self.quality is not None:
            against = f"; a new model {score_text(metric, self.challenger)}" if self.challenger is not None else ""
            lines.append(f"{metric.title} {score_text(metric, self.quality)}{against}")
        if self.estimated is not None and self.estimated.is_useful:
            lines.append(f"{metric.title} estimated without labels: {estimate_text(metric, self.estimated)}")
        if self.tas is not None:
            lines.append(f"online TAS {self.tas.value:.3f} [{self.tas.low:.3f}, {self.tas.high:.3f}]")
        moved = [f"{one.name} ({one.distance:.2f})" for one in self.moved_inputs]
        if self.inputs:
            lines.append(f"{len(moved)} of {len(self.inputs)} inputs moved{': ' + ', '.join(moved) if moved else ''}")
        lines += [f"alarm, {alarm.kind}: {alarm.text}" for alarm in self.alarms] or ["no alarm"]
        return "\n".join([*lines, *([self.diagnosis] if self.diagnosis else []), *self.notes])


def windowed_tas(scores: list[PairedScores]) -> Estimate | None:
    """Return the ratio of accuracies over the last batches; None if the challenger has no skill."""
    latest = scores[-WINDOW:]
    n = np.array([one.n for one in latest])
    reachable = float((n * [one.challenger for one in latest]).sum())
    if not latest or reachable <= TOLERANCE * n.sum():
        return None
    ratio = float((n * [one.deployed for one in latest]).sum()) / reachable
    spread = [
        one.n * (one.deployed_variance + ratio**2 * one.challenger_variance - 2 * ratio * one.covariance)
        for one in latest
    ]
    error = Z95 * float(np.sqrt(max(0.0, sum(spread)))) / reachable
    return Estimate(ratio, ratio - error, ratio + error, int(n.sum()), "answers")


def mean_estimate(values: np.ndarray) -> Estimate:
    """Return the mean of rows with its interval."""
    value, error = float(values.mean()), Z95 * float(values.std() / np.sqrt(len(values)))
    return Estimate(value, value - error, value + error, len(values), "answers")


def score_text(metric: Metric, estimate: Estimate) -> str:
    """Return a score with its interval."""
    return f"{metric.text(estimate.value)} {interval(metric, estimate)}"


def estimate_text(metric: Metric, estimate: EstimatedQuality) -> str:
    """Return an estimate without labels, with its error where it could be checked."""
    checked = "" if estimate.error is None else f" (off by {metric.difference(estimate.error)} on average)"
    return f"{metric.text(estimate.value)}{checked}"
