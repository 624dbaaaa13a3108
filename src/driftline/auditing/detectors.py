"""Drift detectors, judged against significant changes only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from driftline.auditing.alarms import DETECTORS, RiverDetector
from driftline.auditing.estimate import Estimate
from driftline.auditing.recommendation import Policies
from driftline.auditing.replay import Replay
from driftline.auditing.shape import Shape
from driftline.auditing.table import AuditTable

PATIENCE = 2  # periods after a change within which an alarm is a hit


@dataclass(frozen=True)
class DetectorResult:
    """Alarms of a detector, and which significant changes they found; without a change nothing is missed."""

    detector: str
    alarms: int
    found: int
    missed: int
    false_alarms: int
    delay: float
    """Mean periods from a change to its alarm."""
    harm_prevented: Estimate
    """Gain over never retraining."""
    changes: int


def changes(shape: Shape | None, pieces: int) -> list[tuple[int, int]]:
    """Return first and last period (of the page) of each significant change: of a gradual one, its whole length."""
    if shape is None:
        return []
    if shape.kind == "gradual" and shape.start is not None and shape.end is not None:
        return [(shape.start // pieces, shape.end // pieces)]
    return [(period // pieces, period // pieces) for period in shape.boundaries]


def match_alarms(alarms: Sequence[int], changed: Sequence[tuple[int, int]]) -> tuple[list[int], int]:
    """Return the delays of found changes, and the number of false alarms.

    An alarm from the begin of a change to two periods after its end is a hit; the first one counts, later ones for the
    same change are neither hits nor false.

    >>> match_alarms([3, 6, 12], [(5, 5)])
    ([1], 2)
    """
    delays, explained = [], set()
    for start, end in changed:
        hits = [alarm for alarm in alarms if start <= alarm <= end + PATIENCE]
        explained.update(hits)
        if hits:
            delays.append(hits[0] - start)
    return delays, len([alarm for alarm in alarms if alarm not in explained])


def score_detectors(
    replays: Mapping[str, Replay], policies: Policies, changed: Sequence[tuple[int, int]], first: int
) -> tuple[DetectorResult, ...]:
    """Return how each detector's alarms match the changes from the first replayed period on."""
    known = [(start, end) for start, end in changed if end >= first]
    results = []
    for name, replay in replays.items():
        if not name.startswith("on-"):
            continue
        delays, false = match_alarms(replay.alarms, known)
        mean = float(np.mean(delays)) if delays else np.nan
        results.append(
            DetectorResult(
                detector=name.removeprefix("on-"),
                alarms=len(replay.alarms),
                found=len(delays),
                missed=len(known) - len(delays),
                false_alarms=false,
                delay=mean,
                harm_prevented=policies[name].gained,
                changes=len(known),
            )
        )
    return tuple(results)


def log_alarms(table: AuditTable, errors: Sequence[np.ndarray]) -> dict[str, tuple[str, ...]]:
    """Return the periods in which each detector would have fired on logged predictions; empty without river.

    The first known period is the baseline. A detector receives the errors of a period when it is known, so with late
    labels it fires later.
    """
    if find_spec("river") is None:
        return {}
    fired, arrivals = {}, table.arrivals
    arrived = sorted((known, k) for k, known in enumerate(arrivals.known_from) if known <= len(errors))
    parts = [(k, known, errors[k][arrivals.is_known(k, known)]) for known, k in arrived]
    for name in DETECTORS if parts else ():
        detector = RiverDetector(name, table.seed.child("detector").value % 2**32)
        detector.start(parts[0][2])
        fired[name] = tuple(table.names[part[1] - 1] for part in parts[1:] if detector.fires(*part))
    return fired
