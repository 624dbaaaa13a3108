"""A sweep whose driver and workers are killed a hundred times, at random moments, must equal one left in peace.

Everything goes through the command line, `driftline run RECIPE --jobs 2`. A sweep that comes to its end before there
were enough kills is checked, and begun again in an empty store.

    python bench/chaos.py [--kills 100] [--seed 0]
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

RECIPE = """
benchmark: timeline
data: {name: digits, periods: 8}
model: linear
methods: [{name: erm, updates: 100}, {name: ft, updates: 100}, {name: ewc, updates: 100}]
seeds: 4
reveal: {delay: 1, budget: 60}
timeline: {resamples: 50, upstream: 1}
"""
EVERY_STEP = {**os.environ, "DRIFTLINE_CHECKPOINT_SECONDS": "0"}


def results(store: Path) -> dict[str, bytes]:
    found = [path for path in store.glob("runs/*/*") if path.name != "runtime.json"]
    return {str(path.relative_to(store)): path.read_bytes() for path in sorted(found)}


def finished(store: Path) -> dict[str, int]:
    """Where on the disk each finished result lies: one that is written again has another place."""
    found = [*store.glob("stages/[!.]*"), *store.glob("runs/*/card.json")]
    return {str(path): path.stat().st_ino for path in found}


def traces(store: Path) -> int:
    parts = (*store.glob("work/*"), *store.glob("stages"), *store.glob("runs"))
    return sum(len(os.listdir(part)) for part in parts if part.exists())


def workers(driver: int) -> list[int]:
    children = subprocess.run(["pgrep", "-P", str(driver)], capture_output=True, text=True).stdout
    return [int(line) for line in children.split()]


def start(recipe: Path, store: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "driftline", "run", str(recipe), "--jobs", "2", "--runs", str(store), "--quiet"]
    return subprocess.Popen(command, env=EVERY_STEP, stderr=subprocess.DEVNULL)


def wait(driver: subprocess.Popen[bytes], store: Path, moments: random.Random) -> None:
    """Most of the times until something new was written, and then a moment."""
    before, patience = traces(store), time.monotonic() + (300 if moments.random() < 0.8 else 0)
    pause = moments.uniform(0, 0.5)
    while driver.poll() is None and traces(store) == before and time.monotonic() < patience:
        time.sleep(0.005)
    time.sleep(pause)


def torment(recipe: Path, store: Path, moments: random.Random, most: int) -> Counter[str]:
    """Kill until the sweep is done, or there were enough; then let it finish."""
    kills: Counter[str] = Counter()
    known: dict[str, int] = {}
    driver = start(recipe, store)
    while driver.returncode != 0:
        if kills.total() < most:
            wait(driver, store, moments)
        else:
            driver.wait()
        now = finished(store)
        assert known.items() <= now.items(), "a finished stage was lost or made again"
        known = now
        if driver.poll() is None:
            hands = workers(driver.pid)
            if hands and moments.random() < 0.5:
                os.kill(moments.choice(hands), signal.SIGKILL)
                kills["workers"] += 1
                continue
            driver.kill()
            driver.wait()
            kills["drivers"] += 1
        if driver.returncode != 0:
            driver = start(recipe, store)
    return kills


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    moments, kills, sweeps, began = random.Random(given.seed), Counter[str](), 0, time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        recipe, peace = Path(folder, "recipe.yaml"), Path(folder, "peace")
        recipe.write_text(RECIPE, encoding="utf-8")
        subprocess.run([sys.executable, "-m", "driftline", "run", recipe, "--runs", peace, "--quiet"], check=True)
        while kills.total() < given.kills:
            store = Path(folder, f"chaos-{sweeps}")
            kills += torment(recipe, store, moments, given.kills - kills.total())
            assert results(store) == results(peace), "the records differ from those of a sweep left in peace"
            assert not list(store.glob("work/*")), "something half-made is left"
            sweeps += 1
            print(f"survived {kills.total()} kills ({dict(kills)}), {time.monotonic() - began:.0f} s", flush=True)
    print(f"{sweeps} sweep(s), every byte as in peace")


if __name__ == "__main__":
    main()
