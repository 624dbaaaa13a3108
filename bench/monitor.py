"""False alarms and delays of `driftline monitor` on batches with known truth.

Batches of 200 rows, 6 inputs, a logistic regression fitted on 2,000 rows. The relation between inputs and target is
replaced (turned by 90 degrees) or changed mildly (34 degrees) at batch 20, or never.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pandas as pd

from driftline.monitoring import Monitor

REFERENCE, BATCH = 2_000, 200
KINDS = {
    "no change": (0, 2.0, 0.0),
    "replaced": (90, 2.0, 0.0),
    "mild": (34, 2.0, 0.0),
    "rare, replaced": (90, 6.0, -9.0),
}


def make_table(kind: str, seed: int, batches: int, at: int) -> pd.DataFrame:
    """Return rows with columns when, x0 to x5 and y."""
    degrees, scale, offset = KINDS[kind]
    random, rows = np.random.default_rng([seed, 20261118]), REFERENCE + BATCH * batches
    one, other = np.linalg.qr(random.normal(size=(6, 2)))[0].T
    turned = np.cos(np.deg2rad(degrees)) * one + np.sin(np.deg2rad(degrees)) * other
    x = random.normal(size=(rows, 6))
    score = scale * np.where(np.arange(rows) < REFERENCE + at * BATCH, x @ one, x @ turned) + offset
    frame = pd.DataFrame(x, columns=[f"x{k}" for k in range(6)])
    when = pd.date_range("2024-01-01", periods=rows, freq="10min")
    return frame.assign(when=when, y=(random.random(rows) < 1 / (1 + np.exp(-score))).astype(int))


def run(kind: str, seed: int, batches: int, at: int) -> tuple[int, dict[str, int | None], float]:
    """Return batches with a false alarm, the delay of each alarm after the change, and CPU seconds per check."""
    table = make_table(kind, seed, batches, at)
    monitor = Monitor.fit(table[:REFERENCE], time="when", target="y", model="logistic-regression")
    false, delays, began, quiet = 0, {"quality": None, "staleness": None}, time.process_time(), 0
    for k in range(batches):
        start = REFERENCE + k * BATCH
        result = monitor.check(table[start : start + BATCH])
        kinds = {alarm.kind for alarm in result.alarms}
        if k < at or kind == "no change":
            false, quiet = false + bool(kinds), k + 1
            cpu = time.process_time() - began
            continue
        for name in kinds & set(delays):
            delays[name] = k - at if delays[name] is None else delays[name]
        if None not in delays.values():
            break
    return false, delays, cpu / quiet


def main() -> None:
    """Print a line per kind of change."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=12)
    parser.add_argument("--batches", type=int, default=40)
    parser.add_argument("--at", type=int, default=20)
    options = parser.parse_args()
    print("| truth | batches with a false alarm | found: quality, staleness | median delay, batches | s per check |")
    print("|---|---|---|---|---|")
    for kind in KINDS:
        found = [run(kind, seed, options.batches, options.at) for seed in range(options.runs)]
        false = sum(one[0] for one in found)
        total = options.runs * (options.batches if kind == "no change" else options.at)
        delays = {
            name: [one[1][name] for one in found if one[1][name] is not None] for name in ("quality", "staleness")
        }
        hits = ", ".join(f"{len(values)} of {options.runs}" for values in delays.values())
        medians = ", ".join(f"{np.median(values):g}" if values else "–" for values in delays.values())
        cost = np.median([one[2] for one in found])
        print(f"| {kind} | {false} of {total} | {hits} | {medians} | {cost:.2f} |", flush=True)


if __name__ == "__main__":
    main()
