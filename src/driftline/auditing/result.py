"""The result of an audit: typed numbers, answers in words, a page and a JSON file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from driftline.auditing import gate
from driftline.auditing.aging import Aging
from driftline.auditing.answers import (
    Answer,
    Horizons,
    aging_answer,
    headline,
    horizon_answer,
    policy_answer,
    shift_answer,
)
from driftline.auditing.calibration_over_time import Calibration, calibration_sentences
from driftline.auditing.data import DataSummary
from driftline.auditing.detectors import DetectorResult
from driftline.auditing.estimate import Estimate
from driftline.auditing.label_shift import LabelShift
from driftline.auditing.log_quality import LogQuality
from driftline.auditing.log_summary import summarize_log
from driftline.auditing.matrix import LossMatrix
from driftline.auditing.metric import Metric
from driftline.auditing.recommendation import Policies
from driftline.auditing.replay import NEVER
from driftline.auditing.shift import Shift
from driftline.auditing.sizes import Sizes
from driftline.auditing.slices import Slices, slice_sentences
from driftline.auditing.summary import Summary, summarize_model
from driftline.auditing.text import result_text
from driftline.auditing.unlabeled import EstimatedQuality, estimate_sentences
from driftline.auditing.verdict import Verdict
from driftline.errors import MissingExtra
from driftline.io.atomic import write_bytes, write_json
from driftline.types import JsonObject

FORMAT = 3  # of audit.json; raised when its layout changes


@dataclass(frozen=True)
class Provenance:
    """Where a result comes from."""

    driftline: str
    date: str
    command: str
    fingerprint: str
    """Hash of the audited table."""


@dataclass(frozen=True, eq=False)
class Matrix:
    """A(t, tau): the deciding metric of the model of each period in every period."""

    periods: tuple[str, ...]
    score: np.ndarray
    error: np.ndarray
    """Standard error over test rows."""
    n: np.ndarray
    """Test rows of each period."""
    training_rows: int

    @classmethod
    def of(cls, matrix: LossMatrix, metric: Metric) -> Matrix:
        """Return the matrix of one metric."""
        scores = matrix.scores[metric.name]
        variances = [
            [[float(x[t, period == tau].var()) for tau in range(matrix.size)] for t in range(matrix.size)]
            for x, period in zip(scores.rows, scores.periods, strict=True)
        ]
        error = np.sqrt(np.mean(variances, axis=0) / scores.counts)
        return cls(matrix.halves.names, scores.mean, error, scores.counts, matrix.halves.training_rows)


@dataclass(frozen=True, eq=False)
class AuditResult:
    """Everything an audit found. `print` shows verdict and main numbers; docs/audit.md describes `to_dict`."""

    provenance: Provenance
    data: DataSummary = field(repr=False)
    label_shift: LabelShift = field(repr=False)
    aging: Aging | None = field(repr=False, default=None)
    """None if predictions are logged."""
    sizes: tuple[Sizes, ...] = field(repr=False, default=())
    """By metric; the first one decides."""
    matrix: Matrix | None = field(repr=False, default=None)
    horizons: Horizons | None = field(repr=False, default=None)
    slices: Slices | None = field(repr=False, default=None)
    """Which segments decay; None for a log, for few periods and for models without skill."""
    calibration: Calibration | None = field(repr=False, default=None)
    """Of the deployed model, by period; None without class probabilities."""
    estimated_quality: EstimatedQuality | None = field(repr=False, default=None)
    """Before labels come; None if nothing can be estimated."""
    log: LogQuality | None = field(repr=False, default=None)
    shift: Shift | None = field(repr=False, default=None)
    """None if there are no feature columns."""
    policies: Policies | None = field(repr=False, default=None)
    detectors: tuple[DetectorResult, ...] = field(repr=False, default=())
    log_alarms: dict[str, tuple[str, ...]] = field(repr=False, default_factory=dict)
    """Periods in which detectors would have fired on logged predictions, by detector."""
    skipped: tuple[str, ...] = field(repr=False, default=())
    """What could not be computed, and why."""

    def __str__(self) -> str:
        return result_text(self)

    def _repr_html_(self) -> str | None:
        """Return verdict and chart for a notebook; None, for plain text, without the extra `figures`."""
        try:
            from driftline.auditing.page.notebook import notebook_html
        except MissingExtra:
            return None
        return notebook_html(self)

    @property
    def verdict(self) -> Verdict | None:
        """What the tests say; None if predictions are logged."""
        return None if self.aging is None else self.aging.verdict

    @property
    def metric(self) -> Metric:
        """The metric that decides."""
        source = self.log or self.sizes[0]
        return source.metric

    @property
    def headline(self) -> str:
        """The recommendation in a few words."""
        if self.policies is not None:
            return headline(self.policies)
        assert self.log is not None
        return "The logged predictions got worse" if self.log.worse else "The logged predictions did not get worse"

    @cached_property
    def summary(self) -> Summary:
        """The verdict in one word, two sentences and four rows."""
        if self.log is not None:
            return summarize_log(self.log, self.log_alarms, self.data)
        assert self.aging is not None
        assert self.policies is not None
        return summarize_model(self.aging, self.policies, self.data)

    @property
    def answers(self) -> tuple[Answer, ...]:
        """The answers in words."""
        verdict = self.verdict
        harmless = verdict is not None and verdict.has_skill and not (verdict.aged or verdict.miscalibrated)
        return (
            aging_answer(self.aging, self.log, self.data.names),
            horizon_answer(self.horizons, self.aging, self.data.length),
            shift_answer(self.shift, self.label_shift, self.data, harmless),
            policy_answer(self.policies, self.aging, self.log_alarms, self.skipped, self.data.names),
            *self._segment_answer(),
            self._label_free_answer(),
        )

    def _segment_answer(self) -> list[Answer]:
        if self.slices is None or self.aging is None:
            return []
        return [Answer("Which segments decay?", " ".join(slice_sentences(self.slices, self.aging.age)))]

    def _label_free_answer(self) -> Answer:
        sentences = estimate_sentences(self.estimated_quality, self.data.target, self.data.names)
        if self.calibration is not None:
            sentences += calibration_sentences(self.calibration, self.data.names)
        return Answer("How good is it before labels come?", " ".join(sentences))

    @property
    def gate_values(self) -> dict[str, float | None]:
        """The numbers that a gate can name; `_low` and `_high` are the ends of a 95 % interval. None: not known."""
        values: dict[str, float] = {"rows": self.data.rows, "periods": len(self.data.periods)}
        values["label_shift"] = float(self.label_shift.labels.significant)
        if self.label_shift.predictions is not None:
            values["prediction_shift"] = float(self.label_shift.predictions.significant)
        values |= self._verdict_values()
        for name, estimate in self._estimates().items():
            values |= {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
        if self.shift is not None:
            values["domain_auc"] = max(loss.auc.value for loss in self.shift.periods.values())
            values["changed_features"] = len(self.shift.changed_features)
        if self.policies is not None:
            chosen, best, never = self.policies.recommended, self.policies.best, self.policies[NEVER]
            values |= {"never": never.quality.value, "best": best.quality.value, "recommended": chosen.quality.value}
            values |= {"retrainings": chosen.retrainings, "behind": chosen.behind.value}
            values |= {} if chosen.cost is None else {"cost": chosen.cost}
        return {name: value if math.isfinite(value) else None for name, value in values.items()}

    def _verdict_values(self) -> dict[str, float]:
        verdict = self.verdict
        if verdict is None:
            return {}
        order = verdict.recalibrated.order
        return {
            "aged": float(verdict.aged),
            "miscalibrated": float(verdict.miscalibrated),
            "unordered": float(verdict.unordered),
            "harder": (-1 if verdict.higher_is_better else 1) * verdict.course.change,
            "harder_p": verdict.course.p,
            "order_p": math.nan if order is None else order.p,
            "difference_p": verdict.recalibrated.difference,
        }

    def _estimates(self) -> dict[str, Estimate]:
        found: dict[str, Estimate] = {}
        source = self.log or self.sizes[0]
        found |= {f.name: getattr(source, f.name) for f in fields(source) if f.name in gate.ESTIMATES}
        if self.horizons is not None:
            found |= {"sh": self.horizons.sh, "dh": self.horizons.dh}
        if self.shift is not None:
            found["covariate_gap"] = self.shift.overall.covariate
            found["conditional_gap"] = self.shift.overall.conditional
        if self.policies is not None:
            made = self.policies.recommendation
            found |= {"gain": self.policies.recommended.gained, "newer_rows": made.newer_rows}
            found["more_rows"] = made.more_rows
        return found

    def fails(self, condition: str) -> bool:
        """Return whether a condition such as "tas<0.9" holds."""
        return gate.fails(condition, self.gate_values)

    def describe(self, condition: str) -> str:
        """Return the numbers that a condition compares."""
        return gate.describe(condition, self.gate_values)

    def to_dict(self) -> JsonObject:
        """Return all numbers as audit.json has them."""
        parts = {f.name: _plain(getattr(self, f.name)) for f in fields(self)}
        answers = {answer.question: answer.text for answer in self.answers}
        first = {"format": FORMAT, "headline": self.headline, "summary": _plain(self.summary), "answers": answers}
        return {**first, "gate_values": self.gate_values, **parts}

    def html(self) -> str:
        """Return the report as one self-contained page."""
        from driftline.auditing.page.render import render

        return render(self)

    def write(self, html: str | Path | None = None, json: str | Path | None = None) -> None:
        """Write the page, the numbers, or both; existing files are replaced atomically."""
        if html is not None:
            write_bytes(Path(html), self.html().encode())
        if json is not None:
            write_json(Path(json), self.to_dict())


def _plain(value: object) -> Any:
    """Return dataclasses as dicts, sequences and arrays as lists, and numbers that are not finite as None."""
    if is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value) if not callable(getattr(value, f.name))}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, np.datetime64):
        return str(value)
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
