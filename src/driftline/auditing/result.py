"""The result of an audit: typed numbers, answers in words, a page and a JSON file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from driftline.auditing import gate
from driftline.auditing.answers import Answer, decay_answer, horizon_answer, policy_answer, shift_answer
from driftline.auditing.baseline import Baseline
from driftline.auditing.data import DataSummary
from driftline.auditing.decay import Decay, LogDecay
from driftline.auditing.detectors import DetectorResult
from driftline.auditing.estimate import Estimate
from driftline.auditing.policies import NEVER, Policies
from driftline.auditing.shift import Shift
from driftline.io.atomic import write_bytes, write_json
from driftline.types import JsonObject

FORMAT = 1  # of audit.json; raised when its layout changes


@dataclass(frozen=True)
class Provenance:
    """Where a result comes from."""

    driftline: str
    date: str
    command: str
    fingerprint: str
    """Hash of the audited table."""


@dataclass(frozen=True, eq=False)
class AuditResult:
    """Everything an audit found. `print` shows the answers; docs/audit.md describes `to_dict`."""

    provenance: Provenance
    data: DataSummary = field(repr=False)
    decay: Decay | LogDecay = field(repr=False)
    baseline: Baseline = field(repr=False)
    shift: Shift | None = field(repr=False, default=None)
    """None if there are no feature columns."""
    policies: Policies | None = field(repr=False, default=None)
    """None if predictions are logged."""
    detectors: tuple[DetectorResult, ...] = field(repr=False, default=())
    log_alarms: dict[str, tuple[str, ...]] = field(repr=False, default_factory=dict)
    """Periods in which detectors would have fired on logged predictions, by detector."""
    skipped: tuple[str, ...] = field(repr=False, default=())
    """What could not be computed, and why."""

    def __str__(self) -> str:
        return "\n\n".join(f"{answer.question}\n{answer.text}" for answer in self.answers)

    @property
    def answers(self) -> tuple[Answer, ...]:
        """The answers in words."""
        return (
            decay_answer(self.decay, self.baseline, self.data.metric),
            horizon_answer(self.decay, self.data, self.data.metric),
            shift_answer(self.shift, self.decay, self.data),
            policy_answer(self.policies, self.log_alarms, self.skipped, self.data.metric),
        )

    @property
    def gate_values(self) -> dict[str, float | None]:
        """The numbers that a gate can name; `_low` and `_high` are the ends of a 95 % interval. None: not known."""
        values: dict[str, float] = {"rows": self.data.rows, "periods": len(self.data.periods)}
        estimates = {f.name: getattr(self.decay, f.name) for f in fields(self.decay)}
        if self.shift is not None:
            estimates["covariate_gap"] = self.shift.overall.covariate
            estimates["conditional_gap"] = self.shift.overall.conditional
            values["domain_auc"] = max(loss.auc.value for loss in self.shift.periods.values())
            values["changed_features"] = len(self.shift.changed_features)
        for name, estimate in estimates.items():
            if isinstance(estimate, Estimate):
                values |= {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
        if self.policies is not None:
            chosen, best, never = self.policies.recommended, self.policies.best, self.policies[NEVER]
            values |= {"never": never.quality.value, "best": best.quality.value, "recommended": chosen.quality.value}
            values |= {"retrainings": chosen.retrainings, "gain": chosen.gained.value}
        return {name: value if math.isfinite(value) else None for name, value in values.items()}

    def fails(self, condition: str) -> bool:
        """Return whether a condition such as "tas<0.9" holds."""
        return gate.fails(condition, self.gate_values)

    def describe(self, condition: str) -> str:
        """Return the numbers that a condition compares."""
        return gate.describe(condition, self.gate_values)

    def to_dict(self) -> JsonObject:
        """Return all numbers as audit.json has them."""
        parts = {f.name: _plain(getattr(self, f.name)) for f in fields(self)}
        return {"format": FORMAT, "gate_values": self.gate_values, **parts}

    def html(self) -> str:
        """Return the report as one self-contained page."""
        from driftline.auditing.page import render

        return render(self.answers, self.data, self.decay, self.shift, self.policies, self.detectors, self._card())

    def write(self, html: str | Path | None = None, json: str | Path | None = None) -> None:
        """Write the page, the numbers, or both; existing files are replaced atomically."""
        if html is not None:
            write_bytes(Path(html), self.html().encode())
        if json is not None:
            write_json(Path(json), self.to_dict())

    def _card(self) -> JsonObject:
        return {"provenance": _plain(self.provenance), "data": _plain(self.data), "gate_values": self.gate_values}


def _plain(value: object) -> Any:
    """Return dataclasses as dicts, sequences and arrays as lists, and numbers that are not finite as None."""
    if is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
