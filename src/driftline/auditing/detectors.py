"""Drift detectors: when they fire on this table, and what their alarms are worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec

import numpy as np
import pandas as pd

from driftline.auditing.estimate import Estimate
from driftline.auditing.policies import DETECTORS, NEVER, Policies, Replay
from driftline.auditing.table import AuditTable
from driftline.metrics.drift_detection import estimate_changes, match_alarms, quality_gained


@dataclass(frozen=True)
class DetectorResult:
    """Alarms of a drift detector against the periods in which the previous period's model failed."""

    detector: str
    alarms: int
    found: int
    missed: int
    false_alarms: int
    delay: float
    """Mean periods from a change to its alarm."""
    harm_prevented: Estimate
    """Quality gained over never retraining."""
    changes: int


def score_detectors(
    table: AuditTable, replays: Mapping[str, Replay], policies: Policies, ttr: np.ndarray
) -> tuple[DetectorResult, ...]:
    """Return how each detector's alarms match the changes in the transfer ratios `ttr`, and the harm it prevented."""
    changes = estimate_changes(ttr)
    counts = [len(table.rows(k)) for k in range(table.first_deployed, len(table.periods))]
    never = [estimate.value for estimate in policies[NEVER].by_period]
    detectors = []
    for detector in DETECTORS:
        if (name := f"on-{detector}") not in replays:
            continue
        alarms, result = replays[name].log.alarms, policies[name]
        judged = match_alarms([table.deliveries[k] for k in alarms], changes)
        harm = float(quality_gained(never, [estimate.value for estimate in result.by_period], counts))
        detectors.append(
            DetectorResult(
                detector=detector,
                alarms=len(alarms),
                found=judged.found,
                missed=judged.missed,
                false_alarms=judged.false_alarms,
                delay=judged.delay,
                harm_prevented=replace(result.gained, value=harm),
                changes=len(changes),
            )
        )
    return tuple(detectors)


def log_alarms(table: AuditTable, probes: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """Return the periods in which each detector would have fired on logged predictions; empty without river.

    A detector receives an error when its label is revealed, so with late labels it fires later.
    """
    if find_spec("river") is None:
        return {}
    from driftline.learners.retraining.drift_detector import detector_alarms

    every = -(-len(probes) // 10_000)
    errors = 1 - probes["correct"].to_numpy()[::every]
    revealed = probes["probe"].map({name: k + table.delay for k, name in enumerate(table.names)}).to_numpy()[::every]
    fired = {name: dict.fromkeys(revealed[detector_alarms(name, errors)].tolist()) for name in DETECTORS}
    return {name: tuple(table.names[k] for k in at if k < len(table.names)) for name, at in fired.items()}
