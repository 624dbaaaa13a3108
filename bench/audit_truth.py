"""What an audit with default settings says about tables whose truth is known.

    python bench/audit_truth.py --repeats 40 --jobs 2 --write
    python bench/audit_truth.py --repeats 0 --write

Each row of the CSV file is one table. Tables that are in the file already are skipped, so that a run can be continued.
`--write` puts the truth table into docs/audit.md. Detectors of river are not part of it.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from truth_tables import KINDS, START, Truth, make_table

from driftline import parallel
from driftline.auditing.sizes import Sizes
from driftline.auditing.verdict import Verdict
from driftline.metrics.confidence import wilson

OUT = Path(__file__).with_suffix(".csv")
PAGE = Path(__file__).parents[1] / "docs" / "audit.md"
BEGIN, END = "<!-- truth table, made by bench/audit_truth.py -->", "<!-- end of the truth table -->"
Row = dict[str, Any]
KEEPS_MODEL = ("never", "recalibrate")
FINDINGS = ("aged", "miscalibrated", "unordered", "harder", "easier")
FULL = ("no drift", "no drift, boosting", "abrupt at a boundary", "gradual", "seasonal, cycle of 4", "base rate moves")
"""Kinds whose policies are replayed; of the others only tests and sizes are computed, which costs a third."""


def run(name: str, repeat: int) -> Row:
    """Audit one table and return the findings, with the truth."""
    import driftline

    frame, truth = make_table(name, repeat)
    began = time.process_time()
    result = driftline.audit(frame, time="when", target="y", model=KINDS[name][1])
    assert result.verdict is not None
    assert result.policies is not None
    chosen = result.policies.recommended
    return {
        "kind": name,
        "repeat": repeat,
        **compare(truth, result.verdict, result.sizes[0], len(result.data.periods)),
        "recommended": chosen.policy,
        "gain": chosen.gained.value,
        "gain_low": chosen.gained.low,
        "behind": chosen.behind.value,
        "behind_low": chosen.behind.low,
        "cpu_seconds": time.process_time() - began,
    }


def run_tests(name: str, repeat: int) -> Row:
    """Return what the tests and sizes of an audit say, without replays and without comparing inputs."""
    from driftline.auditing.frame import read_frame
    from driftline.auditing.matrix import assemble, evaluate, split_halves
    from driftline.auditing.metric import choose_metrics
    from driftline.auditing.sizes import measure_sizes
    from driftline.auditing.table import Limits, prepare
    from driftline.auditing.verdict import judge

    frame, truth = make_table(name, repeat)
    began = time.process_time()
    read = read_frame(frame, time="when", target="y")
    table = prepare(read, KINDS[name][1], "auto", 0, 0, Limits())
    (metric,) = choose_metrics([], read.task, read.samples.y, table.has_probabilities, read.labels)
    halves = split_halves(table)
    losses = [evaluate(table, halves, [metric], half, t) for half in (0, 1) for t in range(len(halves.names))]
    matrix = assemble(table, halves, [metric], losses)
    sizes = measure_sizes(metric, matrix.scores[metric.name], matrix.baselines[metric.name])
    verdict = judge(matrix, metric, sizes.above.low > 0, table.seed.child("tests"))
    findings = compare(truth, verdict, sizes, len(table.names))
    policies = dict.fromkeys(("recommended", "gain", "gain_low", "behind", "behind_low"))
    return {"kind": name, "repeat": repeat, **findings, **policies, "cpu_seconds": time.process_time() - began}


def compare(truth: Truth, verdict: Verdict, sizes: Sizes, periods: int) -> Row:
    """Return verdict, shape, date and TAS."""
    shape, order, tas = verdict.shape, verdict.recalibrated.order, sizes.tas
    right = shape is not None and shape.kind == truth.shape and truth.cycle in (None, shape.cycle)
    error, covered = _date(truth, verdict.dates)
    return {
        "periods": periods,
        "metric": sizes.metric.name,
        "aged": verdict.aged,
        "miscalibrated": verdict.miscalibrated,
        "unordered": verdict.unordered,
        "harder": verdict.harder,
        "easier": verdict.changed_difficulty and not verdict.harder,
        "odd_p": verdict.odd.p,
        "order_p": None if order is None else order.p,
        "difference_p": verdict.recalibrated.difference,
        "shape": shape and shape.kind,
        "cuts": len(verdict.dates),
        "shape_right": right and (truth.change is None or len(verdict.dates) == 1),
        "further": bool(shape and shape.further),
        "date_error": error,
        "date_covered": covered,
        "tas": tas.value,
        "tas_low": tas.low,
        "tas_high": tas.high,
    }


def _date(truth: Truth, dates: Sequence[Any]) -> tuple[float | None, bool | None]:
    """Return the error of the only date in weeks, and whether its interval covers the truth."""
    if truth.change is None or len(dates) != 1:
        return None, None
    start, week = START.to_datetime64(), np.timedelta64(7, "D")
    at, low, high = ((value - start) / week for value in (dates[0].at, dates[0].low, dates[0].high))
    return abs(at - truth.change), bool(low - 0.01 <= truth.change <= high + 0.01)


def summary(found: Sequence[Row]) -> str:
    """Return the truth table as Markdown."""
    columns = (
        "truth | n | aged | miscalibrated | unordered or odd | harder | aged and harder | shape right | date error in "
        "periods: median, 95%; within 1 | date interval covers | TAS (covers 1) | retraining recommended | recommended "
        "behind the best, points: mean, largest | surely behind: largest"
    )
    lines = [f"| {columns} |", "|" + "---|" * (columns.count("|") + 1)]
    for name in KINDS:
        if rows := [row for row in found if row["kind"] == name]:
            lines.append(f"| {' | '.join([name, str(len(rows)), *_cells(rows)])} |")
    return "\n".join(lines)


def _cells(rows: Sequence[Row]) -> list[str]:
    truth = make_table(rows[0]["kind"], 0)[1]
    errors = _numbers(rows, "date_error")
    dates = "–"
    if len(errors):
        within = (errors <= 1).sum() / len(rows)
        dates = f"{np.median(errors):.3f}, {np.quantile(errors, 0.95):.2f}; {within:.2f}"
    tas, covers = _numbers(rows, "tas"), [_covers(row) for row in rows if row["tas"] != "nan"]
    ratio = f"{tas.mean():.3f}" + ("" if truth.aged or truth.unordered else f" ({np.mean(covers):.2f})")
    both = np.mean([row["aged"] == row["harder"] == "True" for row in rows])
    return [
        *(_share(rows, key) for key in ("aged", "miscalibrated", "unordered", "harder")),
        f"{both:.2f}",
        _share(rows, "shape_right") if truth.shape else "–",
        dates,
        _share([row for row in rows if row["date_covered"]], "date_covered") if len(errors) else "–",
        ratio,
        *_policy_cells([row for row in rows if row["recommended"]]),
    ]


def _policy_cells(rows: Sequence[Row]) -> list[str]:
    if not rows:
        return ["–"] * 3
    retrained = np.mean([row["recommended"] not in KEEPS_MODEL for row in rows])
    behind, surely = 100 * _numbers(rows, "behind"), 100 * _numbers(rows, "behind_low")
    return [f"{retrained:.2f}", f"{behind.mean():.2f}, {behind.max():.2f}", f"{surely.max():.2f}"]


def goals(found: Sequence[Row]) -> str:
    """Return the goals as Markdown: the tables for which each statement holds, with a 95% interval (Wilson)."""
    truths = {name: make_table(name, 0)[1] for name in KINDS}
    lines = ["| tables | what is counted | goal | measured | 95% interval |", "|" + "---|" * 5]
    for title, belongs, counted, goal, holds in GOALS:
        rows = [row for row in found if belongs(row["kind"], truths[row["kind"]])]
        if "recommend" in counted:
            rows = [row for row in rows if row["recommended"]]
        number = sum(holds(row) for row in rows)
        low, high = (f"{100 * float(end):.1f}%" for end in wilson(number, len(rows)))
        lines.append(f"| {title} | {counted} | {goal} | {number} of {len(rows)} | {low} to {high} |")
    return "\n".join(lines)


def _share(rows: Sequence[Row], key: str) -> str:
    return f"{np.mean([row[key] == 'True' for row in rows]):.2f}"


def _numbers(rows: Sequence[Row], key: str) -> np.ndarray:
    return np.array([float(row[key]) for row in rows if row[key] not in ("", "nan")])


def _covers(row: Row) -> bool:
    return float(row["tas_low"]) <= 1 <= float(row["tas_high"])


def _is(*findings: str) -> Callable[[Row], bool]:
    return lambda row: all(row[key] == "True" for key in findings)


def _still(name: str, truth: Truth) -> bool:
    return "no drift" in name


GOALS: tuple[tuple[str, Callable[[str, Truth], bool], str, str, Callable[[Row], bool]], ...] = (
    ("no drift", _still, "any finding", "≤ 5%", lambda row: any(_is(key)(row) for key in FINDINGS)),
    ("no drift", _still, "retraining recommended", "≤ 5%", lambda row: row["recommended"] not in KEEPS_MODEL),
    ("no drift", _still, "interval of TAS contains 1", "≥ 93%", _covers),
    ("the relation changes", lambda _, truth: truth.aged, "aged", "≥ 95%", _is("aged")),
    ("the relation changes", lambda _, truth: truth.aged, "right shape and cycle", "≥ 95%", _is("shape_right")),
    (
        "the relation changes",
        lambda _, truth: truth.aged,
        "recommendation surely more than 1 point behind the best",
        "0",
        lambda row: float(row["behind_low"]) > 0.01,
    ),
    (
        "abrupt change",
        lambda _, truth: truth.change is not None,
        "one date, within one period",
        "≥ 95%",
        lambda row: bool(row["date_error"]) and float(row["date_error"]) <= 1,
    ),
    ("abrupt change", lambda _, truth: truth.change is not None, "aged and harder", "≤ 5%", _is("aged", "harder")),
    (
        "inputs, base rate or noise change",
        lambda name, truth: not (_still(name, truth) or truth.aged or truth.unordered),
        "aged",
        "≤ 5%",
        _is("aged"),
    ),
    ("the base rate moves", lambda _, truth: truth.miscalibrated, "miscalibrated", "≥ 95%", _is("miscalibrated")),
    ("noise rises", lambda _, truth: truth.harder, "harder", "≥ 95%", _is("harder")),
    ("periods differ without order", lambda _, truth: truth.unordered, "unordered", "≥ 95%", _is("unordered")),
)
"""Title and choice of tables, what is counted, its goal, and whether it holds of a table."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--write", action="store_true", help="put the table into docs/audit.md")
    options = parser.parse_args()
    sys.modules["river"] = None  # type: ignore[assignment]  # its detectors are not part of this bench
    done = {(row["kind"], int(row["repeat"])) for row in read(options.out)}
    wanted = [(name, k) for k in range(options.repeats) for name in options.kinds if (name, k) not in done]
    parallel.map(lambda item: append(options.out, (run if item[0] in FULL else run_tests)(*item)), wanted, options.jobs)
    found = read(options.out)
    text = f"{goals(found)}\n\n{summary(found)}"
    print(text)
    if options.write:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


def append(path: Path, row: Row) -> None:
    """Append a row to a CSV file, with a header if the file is new."""
    rounded = {key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()}
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rounded), lineterminator="\n")
        if file.tell() == 0:
            writer.writeheader()
        writer.writerow(rounded)


def read(path: Path) -> list[Row]:
    """Return the rows of a CSV file as texts; none if there is no file."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    main()
