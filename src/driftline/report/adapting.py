"""What the figures of `test-time` show, as tables: leads over the frozen model, growth, severities, sweeps.

As in `report.courses`, every function takes a record and returns one row per thing to draw, `panel` is what may be
compared, and `frame.attrs["notes"]` says what was left out. Runs that differ in speed alone are taken together.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from driftline.errors import UserError
from driftline.record import Record, Run
from driftline.report import sweeps
from driftline.report.against_frozen import leads, standings
from driftline.report.courses import framed
from driftline.report.groups import Group, groups
from driftline.report.growth import growth as grown
from driftline.report.speeds import over_speeds
from driftline.streams import corruption_path, orders, read_matrices
from driftline.streams.matrices import LEVELS, severity

BENCHMARK = "test-time"
NUMBERS = ["value", "low", "high", "seeds"]
STREAM = "no stream of corrupted images"


def collapse(record: Record, *, where: Path | None = None) -> pd.DataFrame:
    """Each method's lead over the frozen model in each window of time, and beside it what it comes to."""
    rows: list[dict[str, Any]] = []
    left_out = []
    for group in over_speeds(groups(record)):
        found = list(_against_frozen(group))
        rows += found
        left_out += [] if found else [group.title]
    return framed(rows, "no frozen and another method on a stream of corrupted images", left_out)


def _against_frozen(group: Group) -> Iterator[dict[str, Any]]:
    curves = leads(group)
    for one in standings(group):
        means = {"gain": one.gain.value, "gain_low": one.gain.low, "gain_high": one.gain.high}
        depth = {"depth": one.depth.value, "depth_low": one.depth.low, "depth_high": one.depth.high}
        counts = {"collapsed": one.collapsed, "behind": one.behind, "since": one.since, "adapted": one.adapted}
        for row in _rows(curves[curves["method"] == one.method], ["time", *NUMBERS, "n"]):
            yield {"panel": group.title, "method": one.method, **row, **means, **counts, **depth}


def _rows(frame: pd.DataFrame, columns: list[str]) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in frame[columns].itertuples(index=False)]


def growth(record: Record, *, where: Path | None = None) -> pd.DataFrame:
    """What methods showed of their inside over time: means over seeds with intervals."""
    rows: list[dict[str, Any]] = []
    left_out = []
    for group in over_speeds(groups(record)):
        found = grown(group)
        left_out += [group.title] if found.empty else []
        kept = [] if found.empty else _rows(found, ["gauge", "method", "time", *NUMBERS, "n"])
        rows += [{"panel": group.title, **row} for row in kept]
    return framed(rows, "no method that shows anything of its inside", left_out)


def sweep(record: Record, *, where: Path | None = None, setting: str | None = None) -> pd.DataFrame:
    """Accuracy by a setting that varies between runs of one method; without a name, by all that do."""
    rows: list[dict[str, Any]] = []
    left_out = []
    for group in over_speeds(groups(record)):
        ours = group.card["run"]["benchmark"] == BENCHMARK
        names = ([setting] if setting else sweeps.settings_of(group)) if ours else []
        found = [(name, one) for name in names for one in sweeps.swept(group, name)]
        for name, one in found:
            cell = one.cell
            number = {"value": cell.value, "low": cell.low, "high": cell.high, "seeds": len(cell.by_seed), "n": cell.n}
            what = {"panel": group.title, "setting": name, "method": one.method, "at": one.at}
            rows.append({**what, **number, "interval": cell.interval})
        left_out += [] if found else [group.title]
    return framed(rows, f"no methods that differ in {setting or 'a setting'}", left_out)


def severities(
    record: Record,
    *,
    where: Path | None = None,
    calibration: Path | None = None,
    target: str = "40,20,0",
    pair: str | None = None,
) -> pd.DataFrame:
    """The accuracies of a calibration for a pair of corruptions, and the paths on which they are kept to targets."""
    if calibration is None:
        raise UserError("severities are those of a calibration: name its file with --calibration FILE")
    matrices = read_matrices(calibration)
    matrices = matrices.at(max(LEVELS, matrices.levels))
    first, second = _pair(pair) if pair else next(iter(matrices.of))
    grid, levels = matrices[first, second], [severity(k, matrices.levels) for k in range(matrices.levels)]
    panel = {"panel": f"{first} > {second}", "first": first, "second": second}
    rows: list[dict[str, Any]] = [
        {**panel, "target": None, "place": None, "s1": s1, "s2": s2, "accuracy": float(grid[i, j])}
        for i, s1 in enumerate(levels)
        for j, s2 in enumerate(levels)
    ]
    for wanted in _targets(target):
        for place, (i, j) in enumerate(corruption_path(grid, wanted)):
            here = {"s1": levels[i], "s2": levels[j], "accuracy": float(grid[i, j])}
            rows.append({**panel, "target": wanted, "place": place, **here})
    return framed(rows, "", [])


def _pair(text: str) -> tuple[str, str]:
    names = orders.subset(text)
    if len(names) != 2 or "," not in text:
        raise UserError(f"a pair is given as gaussian_noise,shot_noise (the first and the second), not as '{text}'")
    return names[0], names[1]


def _targets(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise UserError(f"targets are accuracies in percent, given as 40,20, not as '{text}'") from None


def schedule(record: Record, *, where: Path | None = None, points: int = 100) -> pd.DataFrame:
    """Severities over time in the first so many points of a stream, and how the frozen model does there.

    Of each kind of run the stream of the lowest seed.
    """
    rows: list[dict[str, Any]] = []
    left_out = []
    for group in groups(record):
        told = group.card["protocol"].get("schedule")
        if group.card["run"]["benchmark"] != BENCHMARK or not told or told["mixed"]:
            left_out.append(group.title)
            continue
        run = min(group.runs, key=lambda run: run.seed)
        frozen = [one for one in group.runs if (group.labels[one.key], one.seed) == (group.baseline, run.seed)]
        panel = {"panel": f"{group.title}, seed {run.seed}"}
        rows += [{**panel, **row} for row in [*_severities(run, points), *_frozen(frozen, points)]]
    return framed(rows, f"{STREAM} in an order", left_out)


def _severities(run: Run, points: int) -> Iterator[dict[str, Any]]:
    options = run.card["run"]["options"]
    laid = orders.Schedule.from_description(run.card["protocol"]["schedule"])
    images, speed = options["images"], options["speed"]
    for number in range(min(points, -(-images // speed))):
        point, start, end = laid.point(number), number * speed, min((number + 1) * speed, images)
        for name, value in ((point.first, point.s1), (point.second, point.s2)):
            if name:
                at = {"time": start, "until": end}
                yield {"what": "severity", "name": name, **at, "value": value, "n": end - start}


def _frozen(runs: list[Run], points: int) -> Iterator[dict[str, Any]]:
    for run in runs:
        options, answers = run.card["run"]["options"], run.table("answers")
        speed, whole = options["speed"], options["images"] // options["speed"]  # the end may cut the last point short
        found = answers[answers["group"] < min(points, whole)].groupby("group")["correct"].agg(["mean", "size"])
        for number, right, n in zip(found.index, found["mean"], found["size"], strict=True):
            at = {"time": int(number) * speed, "until": (int(number) + 1) * speed}
            yield {"what": "accuracy", "name": "frozen", **at, "value": float(right), "n": int(n)}
