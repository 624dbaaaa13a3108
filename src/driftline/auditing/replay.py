"""Counterfactual replay: what each retraining policy would have scored and cost on this very table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np

from driftline import loop
from driftline.auditing.baseline import constant_answers
from driftline.auditing.matrix import DRAWS, Kept, measured, number
from driftline.auditing.setting import Setting
from driftline.errors import UserError
from driftline.learners.policies import AllHistory, EveryK, Never, OnOnlineTas, Policy, Window
from driftline.metrics.detection import change_points, harm_prevented, judge
from driftline.metrics.intervals import percentile_interval, resample_mean
from driftline.reveal import Revealing
from driftline.types import Probe, Reveal, Step

UNITS = 10  # pieces of a period that the bootstrap moves about; a block is one period long
TOLERANCE = 0.005  # half a point is not worth a training
TRIVIAL = "trivial"  # the baseline: no model, a constant answer
DETECTED = ("adwin", "page-hinkley", "kswin", "ddm")


@dataclass(frozen=True, eq=False)
class Replay:
    """What happened under one policy."""

    answers: list[np.ndarray]
    retrained: list[int]
    """The periods after which it trained a new model."""
    rows: int
    seconds: float
    alarms: list[int] = field(default_factory=list)
    estimates: list[float] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class NoProbes:
    """A policy is judged by its answers alone."""

    def due(self, step: Step | None) -> Sequence[Probe]:
        return ()


def policies(periods: int) -> dict[str, Policy]:
    """The policies that are compared, by the names that tables give them."""
    k, w = (4, 3) if periods >= 9 else (2, 2)
    made: dict[str, Policy] = {
        "all-history": AllHistory(),
        f"window-{w}": Window(window=w),
        "on-online-tas": OnOnlineTas(window=w),
        f"every-{k}": EveryK(k=k),
        "never": Never(),
    }
    if find_spec("river") is not None:
        from driftline.learners.detectors import OnDetector

        for name in DETECTED:
            signals = 200 if name == "kswin" else 500  # it takes a millisecond each
            made[f"on-{name}"] = OnDetector(detector=name, window=w, signals=signals)  # type: ignore[arg-type]
    return made


def replay(setting: Setting, policy: Policy) -> Replay:
    """Take a policy through all periods, once."""
    task = setting.frame.task
    policy.most, policy.seed = setting.limits.trained, setting.seed.child("learner")
    policy.prepare(setting.new_model(), task)
    record = Kept(task.correct)
    reveal = Revealing(task, Reveal.LABELS, setting.seed, setting.delay)
    loop.run(setting.stream, policy, reveal, NoProbes(), record)
    more = {name: list(getattr(policy, name, [])) for name in ("alarms", "estimates", "ratios")}
    return Replay(record.answers, list(policy.retrained), policy.rows, policy._seconds, **more)


def correctness(setting: Setting, answers: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Per period in use, the score of each answer: right or wrong, or for numbers what averages to R^2."""
    made = []
    for k in range(setting.first, len(setting.cut)):
        y = setting.stream[k].samples.y
        if setting.classifies:
            made.append(setting.frame.task.correct(answers[k], y))
        else:
            spread = float(np.var(y))
            made.append(1 - (answers[k] - y) ** 2 / spread if spread else np.full(len(y), np.nan))
    return made


def units(parts: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Sums and counts of consecutive rows, up to ten pieces a period."""
    pieces = [piece for part in parts for piece in np.array_split(part, min(UNITS, len(part)))]
    return np.array([np.nansum(piece) for piece in pieces]), np.array([np.isfinite(piece).sum() for piece in pieces])


def block_draws(count: int, draws: int, random: np.random.Generator) -> np.ndarray:
    """Circular moving blocks: draws x count indices, in runs one period long that may begin anywhere."""
    runs = -(-count // UNITS)
    starts = random.integers(count, size=(draws, runs, 1))
    return ((starts + np.arange(UNITS)) % count).reshape(draws, -1)[:, :count]


def compared(setting: Setting, replays: Mapping[str, Replay]) -> list[dict[str, Any]]:
    """One row per policy: quality, what it lost to the best, what it cost and when it retrained; best first.

    The last row is the trivial baseline, which is no candidate.
    """
    replays = {**replays, TRIVIAL: Replay(constant_answers(setting), [0], 0, 0.0)}
    scores = {name: correctness(setting, done.answers) for name, done in replays.items()}
    parts = {name: units(found) for name, found in scores.items()}
    counts = next(iter(parts.values()))[1]
    at = block_draws(len(counts), DRAWS, setting.seed.child("blocks").numpy())
    if not counts.any():
        raise UserError("the target is the same throughout each period in which a model is in use: there is no R²")
    n = counts[at].sum(axis=1)
    drawn = {name: sums[at].sum(axis=1) / np.where(n, n, np.nan) for name, (sums, _) in parts.items()}
    quality = {name: float(sums.sum() / counts.sum()) for name, (sums, _) in parts.items()}
    order = sorted(quality, key=lambda name: (name == TRIVIAL, -quality[name], replays[name].rows, name))
    courses, rows = _courses(setting, scores), []
    for name in order:
        row = {
            "policy": name,
            "quality": measured(quality[name], drawn[name], int(counts.sum()), "answers"),
            "behind": _difference(quality, drawn, order[0], name),
            **({"gained": _difference(quality, drawn, name, "never")} if "never" in quality else {}),
            "above_trivial": _difference(quality, drawn, name, TRIVIAL),
        }
        rows.append(row | _conduct(setting, replays[name]) | courses[name])
    return rows


def _difference(
    quality: Mapping[str, float], drawn: Mapping[str, np.ndarray], one: str, other: str
) -> dict[str, float | None]:
    """How much better one policy is than another, with a paired interval."""
    low, high = percentile_interval(drawn[one] - drawn[other])
    return {"value": quality[one] - quality[other], "low": number(low), "high": number(high)}


def _conduct(setting: Setting, done: Replay) -> dict[str, Any]:
    """What a policy did, and what that took."""
    made: dict[str, Any] = {
        "retrainings": len(done.retrained) - 1,
        "retrained_after": [setting.names[k + setting.delay] for k in done.retrained],
        "rows": done.rows,
        "seconds": round(done.seconds, 3),
    }
    if not setting.classifies:
        made["mae"] = _mae(setting, done)
    if done.estimates:  # where no challenger has any skill there is no ratio
        made["online_tas"], made["online_ttr"] = ([number(v) for v in kept] for kept in (done.estimates, done.ratios))
    return made


def _courses(setting: Setting, scores: Mapping[str, Sequence[np.ndarray]]) -> dict[str, dict[str, list[Any]]]:
    """The quality of each policy period by period, with intervals over the period's rows, drawn once for all."""
    random = setting.seed.child("course").numpy()
    periods = [np.stack(parts, axis=1) for parts in zip(*scores.values(), strict=True)]
    ends = [percentile_interval(resample_mean(part, DRAWS, random)) for part in periods]
    return {
        name: {
            "by_period": [number(part.mean()) for part in scores[name]],
            "by_period_low": [number(low[k]) for low, _ in ends],
            "by_period_high": [number(high[k]) for _, high in ends],
            "by_period_n": [len(part) for part in periods],
        }
        for k, name in enumerate(scores)
    }


def _mae(setting: Setting, done: Replay) -> float:
    used = range(setting.first, len(setting.cut))
    return float(np.mean(np.concatenate([np.abs(done.answers[k] - setting.stream[k].samples.y) for k in used])))


def recommended(rows: Sequence[Mapping[str, Any]], tolerance: float = TOLERANCE) -> dict[str, Any]:
    """The cheapest policy that is not certainly worse than the best by more than a little.

    Candidates are the best and every policy whose 95 % interval of what it lost to the best reaches down to
    `tolerance`. Of these the one that trained on the fewest rows is recommended; a tie goes to fewer retrainings, then
    to the name.
    """
    rows = [row for row in rows if row["policy"] != TRIVIAL]
    candidates = [row for row in rows if row is rows[0] or row["behind"]["low"] <= tolerance]
    chosen = min(candidates, key=lambda row: (row["rows"], row["retrainings"], row["policy"]))
    return {
        "policy": chosen["policy"],
        "best": rows[0]["policy"],
        "candidates": [row["policy"] for row in candidates],
        "tolerance": tolerance,
        "rule": "fewest rows trained on, among the policies whose loss to the best (paired 95% block-bootstrap "
        f"interval) is not certainly above {100 * tolerance:g} points",
    }


def judged(setting: Setting, replays: Mapping[str, Replay], rows: Sequence[Mapping[str, Any]], ttr: Any) -> list[Any]:
    """The detectors: delay and false alarms against the periods in which last period's model failed, and harm."""
    changes = change_points(np.array(ttr, float))
    by_name = {row["policy"]: row for row in rows}
    counts = [len(setting.stream[k].samples) for k in range(setting.first, len(setting.cut))]
    made = []
    for name in (f"on-{detector}" for detector in DETECTED):
        if name not in replays:
            continue
        verdict = judge([k + setting.delay for k in replays[name].alarms], changes)
        harm = number(harm_prevented(by_name["never"]["by_period"], by_name[name]["by_period"], counts))
        ends = {f"harm_prevented_{end}": by_name[name]["gained"][end] for end in ("low", "high")}
        delay = verdict.delay if np.isfinite(verdict.delay) else None
        row = {"alarms": len(replays[name].alarms), "found": verdict.found, "missed": verdict.missed}
        made.append({"detector": name.removeprefix("on-"), **row, "false_alarms": verdict.false_alarms, "delay": delay})
        made[-1] |= {"harm_prevented": harm, **ends, "changes": len(changes)}
    return made
