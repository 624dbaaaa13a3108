"""The trivial baseline of an audit: a constant answer, the most frequent class or the mean of the labels so far.

Ratios and horizons compare a model with itself or with its successors, so a model that knows nothing scores best in
them. The baseline shows this: it is scored on the same rows as the models and the policies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from driftline.auditing import matrix
from driftline.auditing.setting import Setting
from driftline.benchmarks.timeline import scored
from driftline.metrics.intervals import resample_mean

SHOWN = ("fresh", "first_own", "first_later", "tas", "sh", "dh")


def constant(setting: Setting, labels: Sequence[np.ndarray]) -> Any:
    """Return the answer that suits these labels best: their most frequent class, or their mean."""
    y = np.concatenate(labels)
    return np.bincount(y).argmax() if setting.classifies else float(y.mean())


def constant_probes(setting: Setting, probes: pd.DataFrame) -> pd.DataFrame:
    """Return the probes as if each model had answered with the constant of its own training rows."""
    answers = {step: constant(setting, [setting.cut.shown[step].y]) for step in probes["step"].unique()}
    said = probes["step"].map(answers).to_numpy()
    return probes.assign(prediction=said, correct=setting.frame.task.correct(said, probes["truth"].to_numpy()))


def constant_answers(setting: Setting) -> list[np.ndarray]:
    """Return the answers by period of a policy that knows nothing but the labels that have come."""
    labels = [setting.stream[k].samples.y for k in range(len(setting.cut))]
    known = [constant(setting, labels[: max(1, k - setting.delay)]) for k in range(len(labels))]
    return [np.full(len(y), answer) for y, answer in zip(labels, known, strict=True)]


def baseline(setting: Setting, probes: pd.DataFrame, delta: float) -> dict[str, Any]:
    """Return the decay of the baseline, and how far models are above it on the held-out rows of their own period."""
    other = constant_probes(setting, probes)
    log = setting.frame.logged is not None
    found = matrix.log_decay(setting, other) if log else matrix.decay(setting, other, delta)
    kind = "most frequent class" if setting.classifies else "mean"
    rows = "the first period" if log else "the training rows of each model"
    return {
        "protocol": f"the {kind} of {rows}, on the same rows",
        **{name: found[name] for name in SHOWN if name in found},
        "above": _above(setting, probes, other, log),
    }


def _above(setting: Setting, probes: pd.DataFrame, other: pd.DataFrame, log: bool) -> dict[str, Any]:
    """Return the mean over periods of how much more a model gets right than the constant, paired by row."""
    kind = "Classification" if setting.classifies else "Regression"
    more = scored(probes, kind)["correct"] - scored(other, kind)["correct"]
    own = np.full(len(probes), True) if log else probes["probe"] == probes["step"].map(dict(enumerate(setting.names)))
    parts = [part.to_numpy() for _, part in more[own].groupby(probes["probe"][own]) if np.isfinite(part).all()]
    random = setting.seed.child("baseline").numpy()
    drawn = [resample_mean(part, matrix.DRAWS, random) for part in parts] or [np.full(matrix.DRAWS, np.nan)]
    value = np.mean([part.mean() for part in parts]) if parts else None
    return matrix.measured(value, np.mean(drawn, axis=0), sum(map(len, parts)), "answers")
