"""Accuracy of `driftline plan`: real sweeps of all benchmarks, forecast and then run.

Both are compared in processor seconds, which other programs on the machine hardly change, and in seconds by the clock,
which mean something on a quiet machine only. A quasi-quiet one: chrt -f 50 python bench/plan.py

    DRIFTLINE_DATA=... python bench/plan.py [--only NAME,NAME]
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

from driftline.engine.costs.forecast import Forecast, forecast

SWEEPS: dict[str, dict[str, Any]] = {
    "timeline, yearbook": {
        "benchmark": "timeline",
        "data": "yearbook",
        "model": {"name": "yearbook-cnn", "width": 8},
        "methods": [{"name": name, "updates": 150} for name in ("erm", "ft", "si", "a-gem", "mixup", "swa")],
        "seeds": 1,
        "timeline": {"period": "decade", "horizon": 3},
    },
    "seq-to-final, digits": {
        "benchmark": "seq-to-final",
        "data": "color-digits",
        "model": {"name": "res-1", "width": 8},
        "methods": "baseline,seq-erm,seq-irm,seq-dro,seq-ft,lp-ft,st-1,sft,seq-ewc,sst-1,jm",
        "seeds": 1,
        "seq-to-final": {
            **{"shifts": "RL", "sizes": [300, 200, 200], "test": 400, "epochs": 10, "batch": 25},
            **{"lr": [1e-2, 1e-3], "weight_decay": [1e-4], "dropout": [0.0], "fisher_examples": 100},
        },
    },
    "refinement, digits": {
        "benchmark": "refinement",
        "data": "digit-clusters",
        "model": {"name": "mlp", "width": 128},
        "methods": ["frozen", "cft", "online-ewc", "er", "maxloss", "mir"],
        "seeds": 3,
        "refinement": {"episodes": 50, "streams": 4, "upstream_set": 256, "held_out": 100},
        "selection": {"grid": {"lr": [5e-4, 2e-3]}, "seeds": 2},
    },
    "test-time, digits": {
        "benchmark": "test-time",
        "data": "color-digits",
        "model": {"name": "conv-1", "width": 16},
        "methods": ["frozen", "bn", "tent", "cotta", "eta", "rdumb"],
        "seeds": 2,
        "test-time": {"order": "gradual", "images": 4608, "images_per_point": 64, "upstream_updates": 1000},
    },
    "open-world, omniglot": {
        "benchmark": "open-world",
        "data": "omniglot",
        "model": {"name": "conv-4", "width": 16},
        "methods": [
            "ncm",
            {"name": "prototypical", "pretraining": {"name": "prototypes", "query": 5}},
            *({"name": m, "every": 50} for m in ("fine-tune", "standard-training", "lwf")),
        ],
        "seeds": 1,
        "open-world": {"class_size_law": "600/(29+r)", "head": 10, "upstream_each": 12, "upstream_updates": 300},
    },
    "matrix": {"matrix": {"methods": ["frozen", "bn", "ft", "ewc", "tent"], "seeds": 1}},
}


def spent() -> float:
    """Processor seconds of this process and of those that it has waited for."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


def really(recipe: Path, runs: Path, jobs: int) -> tuple[float, float]:
    """Run a recipe; seconds by the clock and by the processor."""
    clock, before = time.perf_counter(), spent()
    command = [sys.executable, "-m", "driftline", "run", str(recipe), "--runs", str(runs), "--jobs", str(jobs), "-q"]
    subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=subprocess.DEVNULL)
    return time.perf_counter() - clock, spent() - before


def serial_seconds(found: Forecast) -> float:
    """Return the forecast CPU seconds of a serial run: all stages, planning and the start of one process."""
    return found.seconds[1] + found.start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="parts of names of sweeps, with commas between")
    parser.add_argument("--seconds", type=float, default=30.0, help="of calibration")
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    wanted = [name for name in SWEEPS if any(part in name for part in arguments.only.split(","))]
    print(
        f"{'sweep':24} {'stages':>6} {'calib.':>7} {'plan':>7} {'cpu':>7} {'wall':>7}  plan/cpu plan/wall", flush=True
    )
    for name in wanted:
        with tempfile.TemporaryDirectory() as folder:
            recipe, runs = Path(folder) / "recipe.yaml", Path(folder) / "runs"
            recipe.write_text(yaml.safe_dump(SWEEPS[name]))
            clock = time.perf_counter()
            found = forecast(recipe, runs=runs, seconds=arguments.seconds, workers=(1, arguments.jobs))
            calibration = time.perf_counter() - clock
            wall, cpu = really(recipe, runs, arguments.jobs)
            all_, lasts = (
                serial_seconds(found),
                found.seconds[arguments.jobs] + (found.start if arguments.jobs == 1 else 0),
            )
            stages = sum(tally.stages for tally in found.kinds.values())
            print(
                f"{name:24} {stages:6} {calibration:7.1f} {all_:7.1f} {cpu:7.1f} {wall:7.1f}  "
                f"{all_ / cpu:8.2f} {lasts / wall:9.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
