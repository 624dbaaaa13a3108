"""What an audit says about tables whose truth is known.

    python bench/audit_truth.py --repeats 40 --jobs 2 --out audit_truth.jsonl
    python bench/audit_truth.py --out audit_truth.jsonl --print

Each line of the file is one audit with default settings of one table; tables that are in the file already are skipped,
so that a run can be continued. Detectors of river are not part of it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from driftline import parallel
from driftline.auditing.sizes import Sizes
from driftline.auditing.verdict import Verdict

PERIODS, ROWS, WIDTH = 16, 300, 6
FIRST_SEED = 20_000
DAYS = 360  # a table spans so many days


@dataclass(frozen=True)
class Truth:
    """What is true of a table."""

    aged: bool = False
    miscalibrated: bool = False
    harder: bool = False
    shape: str = ""
    change: float | None = None
    """Time of the change as a share of the whole."""
    cycle: int | None = None


Make = Callable[[np.random.Generator], tuple[pd.DataFrame, Truth]]
KINDS: dict[str, tuple[Make, str]] = {}
"""By name: what makes a table, and the model."""


def kind(name: str, model: str = "logistic-regression") -> Callable[[Make], Make]:
    def add(make: Make) -> Make:
        KINDS[name] = (make, model)
        return make

    return add


def table(x: np.ndarray, y: np.ndarray) -> pd.DataFrame:
    when = pd.Timestamp("2023-01-01") + pd.to_timedelta(np.arange(len(y)) * (DAYS / len(y)), unit="D")
    return pd.DataFrame({"when": when, **{f"x{k}": x[:, k] for k in range(x.shape[1])}, "y": y})


def inputs(random: np.random.Generator, rows: int = ROWS, periods: int = PERIODS) -> tuple[np.ndarray, np.ndarray]:
    n = rows * periods
    return random.normal(size=(n, WIDTH)), np.arange(n) / n


def turned(angle: np.ndarray | float, n: int, length: float = 2.0) -> np.ndarray:
    """Coefficients of each row: of the first two inputs, turned by an angle in degrees."""
    radians = np.deg2rad(np.broadcast_to(angle, n))
    beta = np.zeros((n, WIDTH))
    beta[:, 0], beta[:, 1] = length * np.cos(radians), length * np.sin(radians)
    return beta


def draw(random: np.random.Generator, logit: np.ndarray) -> np.ndarray:
    return np.where(random.random(len(logit)) < 1 / (1 + np.exp(-logit)), "yes", "no")


def scored(x: np.ndarray, angle: np.ndarray | float) -> np.ndarray:
    return np.asarray((x * turned(angle, len(x))).sum(axis=1))


def plain(random: np.random.Generator) -> tuple[pd.DataFrame, Truth]:
    x, _ = inputs(random)
    return table(x, draw(random, scored(x, 0))), Truth()


@kind("no drift")
def no_drift(random: np.random.Generator) -> tuple[pd.DataFrame, Truth]:
    return plain(random)


@kind("no drift, boosting", "hist-gradient-boosting")
def no_drift_boosting(random: np.random.Generator) -> tuple[pd.DataFrame, Truth]:
    return plain(random)


def changed(random: np.random.Generator, at: float, degrees: float) -> tuple[pd.DataFrame, Truth]:
    x, t = inputs(random)
    y = draw(random, scored(x, np.where(t >= at, degrees, 0.0)))
    return table(x, y), Truth(aged=True, shape="abrupt", change=at)


@kind("abrupt at a boundary")
def abrupt(random: np.random.Generator) -> tuple[pd.DataFrame, Truth]:
    return changed(random, random.integers(4, 13) / PERIODS, 90)


@kind("abrupt inside a period")
def inside(random: np.random.Generator) -> tuple[pd.DataFrame, Truth]:
    return changed(random, (random.integers(4, 12) + random.uniform(0.2, 0.8)) / PERIODS, 90)


@kind("abrupt, mild")
def mild(random: np.random.Generator) -> tuple[pd.DataFrame, Truth]:
    return changed(random, random.integers(4, 13) / PERIODS, 34)


@kind("abrupt, boosting", "hist-gradient-boosting")
def abrupt_boosting(random: np.random.Generator) -> tuple[pd.DataFrame, Truth]:
    return changed(random, random.integers(4, 13) / PERIODS, 90)


@kind("gradual")
def gradual(random: np.random.Generator) -> tuple[pd.DataFrame, Truth]:
    x, t = inputs(random)
    return table(x, draw(random, scored(x, 90 * t))), Truth(aged=True, shape="gradual")


@kind("seasonal, cycle of 4")
def seasonal(random: np.random.Generator) -> tuple[pd.DataFrame, Truth]:
    x, t = inputs(random)
    season = 45 * np.sin(2 * np.pi * np.floor(t * PERIODS) / 4)
    return table(x, draw(random, scored(x, season))), Truth(aged=True, shape="recurring", cycle=4)


@kind("inputs move")
def covariate(random: np.random.Generator) -> tuple[pd.DataFrame, Truth]:
    x, t = inputs(random)
    x[:, 1:3] += 1.5 * t[:, None]
    return table(x, draw(random, scored(x, 0))), Truth()


@kind("base rate moves")
def prior(random: np.random.Generator) -> tuple[pd.DataFrame, Truth]:
    """The share of "yes" goes from 30 to 70 %, the inputs of each class stay."""
    x, t = inputs(random)
    y = np.where(random.random(len(t)) < 0.3 + 0.4 * t, "yes", "no")
    x[:, 0] += np.where(y == "yes", 0.8, -0.8)
    return table(x, y), Truth(miscalibrated=True)


@kind("noise rises")
def noise(random: np.random.Generator) -> tuple[pd.DataFrame, Truth]:
    x, t = inputs(random)
    y = draw(random, scored(x, 0))
    y = np.where(random.random(len(y)) < 0.55 * t, random.choice(["yes", "no"], len(y)), y)
    return table(x, y), Truth(harder=True)


def rare_table(random: np.random.Generator, at: float | None) -> tuple[pd.DataFrame, Truth]:
    x, t = inputs(random, 1000, 12)
    angle = 0.0 if at is None else np.where(t >= at, 90.0, 0.0)
    y = draw(random, 3 * scored(x, angle) - 13)
    return table(x, y), Truth() if at is None else Truth(aged=True, shape="abrupt", change=at)


@kind("rare positives, no drift")
def rare_none(random: np.random.Generator) -> tuple[pd.DataFrame, Truth]:
    return rare_table(random, None)


@kind("rare positives, replaced")
def rare(random: np.random.Generator) -> tuple[pd.DataFrame, Truth]:
    return rare_table(random, 0.5)


def number_table(random: np.random.Generator, degrees: float, rise: float = 0.0) -> tuple[pd.DataFrame, Truth]:
    x, t = inputs(random)
    at = random.integers(4, 13) / PERIODS
    angle = np.where(t >= at, degrees, 0.0)
    y = scored(x, angle) + (1 + rise * t) * random.normal(size=len(t))
    if degrees:
        return table(x, y), Truth(aged=True, shape="abrupt", change=at)
    return table(x, y), Truth(harder=rise > 0)


@kind("regression, no drift")
def number_none(random: np.random.Generator) -> tuple[pd.DataFrame, Truth]:
    return number_table(random, 0)


@kind("regression, abrupt")
def number_abrupt(random: np.random.Generator) -> tuple[pd.DataFrame, Truth]:
    return number_table(random, 90)


@kind("regression, noise rises")
def number_noise(random: np.random.Generator) -> tuple[pd.DataFrame, Truth]:
    return number_table(random, 0, rise=1.0)


def mixed_table(random: np.random.Generator, at: float | None) -> tuple[pd.DataFrame, Truth]:
    """Numbers, a category and missing values."""
    x, t = inputs(random)
    color = random.choice(["red", "green", "blue"], len(t))
    angle = 0.0 if at is None else np.where(t >= at, 90.0, 0.0)
    y = draw(random, scored(x, angle) + np.where(color == "red", 1.0, -0.5))
    frame = table(x, y).assign(color=color)
    frame = frame.mask(random.random(frame.shape) < np.where(frame.columns.isin(["when", "y"]), 0.0, 0.1))
    return frame, Truth() if at is None else Truth(aged=True, shape="abrupt", change=at)


@kind("mixed types, no drift")
def mixed_none(random: np.random.Generator) -> tuple[pd.DataFrame, Truth]:
    return mixed_table(random, None)


@kind("mixed types, abrupt")
def mixed(random: np.random.Generator) -> tuple[pd.DataFrame, Truth]:
    return mixed_table(random, random.integers(4, 13) / PERIODS)


def make_table(name: str, repeat: int) -> tuple[pd.DataFrame, Truth, str, str]:
    """Return a table, its truth, the model and the period."""
    make, model = KINDS[name]
    frame, truth = make(np.random.default_rng([FIRST_SEED + repeat, *name.encode()]))
    rows = len(frame) // (12 if name.startswith("rare") else PERIODS)
    return frame, truth, model, f"{rows} rows"


def run(name: str, repeat: int) -> dict[str, Any]:
    """Audit one table and return what was said, with the truth."""
    import driftline

    frame, truth, model, period = make_table(name, repeat)
    began = time.process_time()
    result = driftline.audit(frame, time="when", target="y", model=model, period=period)
    assert result.verdict is not None
    assert result.policies is not None
    assert result.ageing is not None
    chosen = result.policies.recommended
    return {
        "kind": name,
        "repeat": repeat,
        **said(frame, truth, result.verdict, result.sizes[0], len(result.data.periods)),
        "cause_z": result.ageing.cause_z,
        "horizon": result.horizons.curve.horizon if result.horizons else None,
        "recommended": chosen.policy,
        "behind": chosen.behind.value,
        "behind_low": chosen.behind.low,
        "behind_high": chosen.behind.high,
        "label_shift": result.label_shift.labels.significant,
        "seconds": time.process_time() - began,
    }


def run_tests(name: str, repeat: int) -> dict[str, Any]:
    """Return what the tests and sizes of an audit say, without replays and without comparing inputs."""
    from driftline.auditing.frame import read_frame
    from driftline.auditing.matrix import assemble, evaluate, split_halves
    from driftline.auditing.metric import choose_metrics
    from driftline.auditing.sizes import measure_sizes
    from driftline.auditing.table import Limits, prepare
    from driftline.auditing.verdict import judge

    frame, truth, model, period = make_table(name, repeat)
    began = time.process_time()
    read = read_frame(frame, time="when", target="y")
    table = prepare(read, model, period, 0, 0, Limits())
    metrics = choose_metrics([], read.task, read.samples.y, table.has_probabilities, read.labels)
    halves = split_halves(table)
    losses = [evaluate(table, halves, metrics, half, t) for half in (0, 1) for t in range(len(halves.names))]
    matrix = assemble(table, halves, metrics, losses)
    metric = metrics[0]
    sizes = measure_sizes(metric, matrix.scores[metric.name], matrix.baselines[metric.name])
    verdict = judge(matrix, metric, sizes.above.low > 0, table.seed.child("tests"))
    heard = said(frame, truth, verdict, sizes, len(table.names))
    return {"kind": name, "repeat": repeat, **heard, "seconds": time.process_time() - began}


def said(frame: pd.DataFrame, truth: Truth, verdict: Verdict, sizes: Sizes, periods: int) -> dict[str, Any]:
    """Return verdict, shape, date and TAS beside the truth."""
    shape, tas = verdict.shape, sizes.tas
    start, span = frame["when"].iloc[0].to_datetime64(), np.timedelta64(DAYS, "D")
    dates = [[float((at - start) / span) for at in (date.at, date.low, date.high)] for date in verdict.dates]
    error = covered = None
    if truth.change is not None and len(dates) == 1:
        at, low, high = dates[0]
        error, covered = abs(at - truth.change) * periods, low - 1e-4 <= truth.change <= high + 1e-4
    right = shape is not None and shape.kind == truth.shape and (truth.cycle is None or shape.cycle == truth.cycle)
    return {
        "truth": vars(truth),
        "metric": sizes.metric.name,
        "aged": verdict.aged,
        "miscalibrated": verdict.miscalibrated,
        "unordered": verdict.unordered,
        "harder": verdict.harder,
        "easier": verdict.easier,
        "order_p": verdict.recalibrated.order.p if verdict.recalibrated.order else None,
        "difference_p": verdict.recalibrated.difference,
        "shape": shape and shape.kind,
        "shape_right": right and (truth.change is None or len(dates) == 1),
        "further": bool(shape and shape.further),
        "date_error": error,
        "date_covered": covered,
        "tas": tas.value if tas.is_known else None,
        "tas_covers_1": tas.low <= 1 <= tas.high if tas.is_known else None,
    }


def summary(found: list[dict[str, Any]]) -> str:
    """Return the truth table as Markdown."""
    lines = [
        "| truth | n | aged | miscalibrated | unordered | harder | shape right | date error in periods: median, 95%; "
        "within 1 | TAS (covers 1) | retraining recommended | behind the best: mean, largest |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in KINDS:
        rows = [row for row in found if row["kind"] == name]
        if rows:
            lines.append(_line(name, rows))
    return "\n".join(lines)


def _line(name: str, rows: list[dict[str, Any]]) -> str:
    n = len(rows)

    def share(key: str) -> str:
        return f"{sum(bool(row[key]) for row in rows) / n:.2f}"

    truth = rows[0]["truth"]
    errors = [row["date_error"] for row in rows if row["date_error"] is not None]
    within = sum(error <= 1 for error in errors) / n
    dates = f"{np.median(errors):.3f}, {np.quantile(errors, 0.95):.2f}; {within:.2f}" if errors else "–"
    tas = [row["tas"] for row in rows if row["tas"] is not None]
    covers = [row["tas_covers_1"] for row in rows if row["tas_covers_1"] is not None]
    ratio = f"{np.mean(tas):.3f}" + ("" if truth["aged"] else f" ({np.mean(covers):.2f})") if tas else "–"
    policies = _policy_cells([row for row in rows if "recommended" in row])
    shape = share("shape_right") if truth["shape"] else "–"
    cells = [name, str(n), share("aged"), share("miscalibrated"), share("unordered"), share("harder"), shape, dates]
    return f"| {' | '.join([*cells, ratio, *policies])} |"


def _policy_cells(rows: list[dict[str, Any]]) -> list[str]:
    if not rows:
        return ["–", "–"]
    retrained = sum(row["recommended"] not in ("never", "recalibrate") for row in rows) / len(rows)
    behind = np.array([row["behind"] for row in rows]) * (1 if rows[0]["metric"] == "rmse" else 100)
    return [f"{retrained:.2f} (n = {len(rows)})", f"{behind.mean():.2f}, {behind.max():.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--out", type=Path, default=Path("audit_truth.jsonl"))
    parser.add_argument("--tests-only", action="store_true", help="neither replay policies nor compare inputs")
    parser.add_argument("--print", action="store_true", help="only print the table of what is in the file")
    options = parser.parse_args()
    sys.modules["river"] = None  # type: ignore[assignment]  # its detectors are not part of this bench
    known = _read(options.out)
    done = {(row["kind"], row["repeat"]) for row in known}
    wanted = [(name, k) for k in range(options.repeats) for name in options.kinds if (name, k) not in done]
    if not options.print:
        compute = run_tests if options.tests_only else run
        parallel.map(lambda item: _append(options.out, compute(*item)), wanted, options.jobs)
    print(summary(_read(options.out)))


def _append(path: Path, row: dict[str, Any]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row, default=float) + "\n")


def _read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


if __name__ == "__main__":
    main()
