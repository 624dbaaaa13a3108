"""What it saves that methods share their fits: all methods in one store, against each method in a store of its own.

Both sides are really run, in one process, on generated images and a small residual network, and end with the same
accuracies. What a run costs beside its fits (reading, answering, recording) is part of the seconds.

    python bench/sharing.py [--width 4] [--size 300]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from driftline.engine.costs.sharing import sharing_savings
from driftline.engine.executors.process import keep_freed_memory
from driftline.engine.planning.plan import plan
from driftline.engine.run import as_spec, run_plan
from driftline.store.store import Store

GROUPS = {
    "history (FT, LP-FT, ST-1, ST-B)": ["seq-ft", "lp-ft", "st-1", "st-b"],
    "first step (SFT, EWC, SST-1, SST-B)": ["sft", "seq-ewc", "sst-1", "sst-b"],
    "all eighteen": [
        *("oracle", "baseline", "seq-erm", "seq-irm", "seq-dro", "seq-ft", "lp-ft", "i-ft", "d-ft", "st-1", "st-b"),
        *("sft", "seq-ewc", "sst-1", "sst-b", "jm", "jst-1", "jst-b"),
    ],
}


def make_images(folder: Path, size: int) -> Path:
    rng = np.random.default_rng(0)
    y = np.tile(np.arange(10), size)
    x = rng.integers(0, 150, (len(y), 32, 32, 3), dtype=np.uint8)
    for i, label in enumerate(y):
        x[i, 3 * label : 3 * label + 4] += np.uint8(80)
    path = folder / "images.npz"
    np.savez(path, x=x, y=y)
    return path


def spec(images: Path, methods: list[str], width: int, size: int) -> dict[str, Any]:
    sizes = [3 * size, 2 * size, 3 * size, 2 * size]
    grid = {"lr": [1e-3, 3e-4], "weight_decay": [1e-4], "dropout": [0.0], "fisher": [10], "fisher_examples": 100}
    return {
        "benchmark": "seq-to-final",
        "data": {"name": "npz", "path": str(images)},
        "model": {"name": "res-1", "width": width},
        "methods": methods,
        "seq-to-final": {"shifts": "RCL", "sizes": sizes, "test": size, "oracle": 4 * size, "epochs": 4, **grid},
    }


def run(methods: list[str], images: Path, width: int, size: int) -> tuple[float, int, int, dict[str, float]]:
    """Seconds, multiply-accumulates of the fits, how many there were, and the accuracies."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store.create(folder)
        planned = plan(as_spec(spec(images, methods, width, size)))
        started = time.perf_counter()
        run_plan(planned, store)
        seconds = time.perf_counter() - started
        cost = sharing_savings(planned, store)
        assert cost is not None
        record = store.record(planned.run_keys)
        scores = {run.card.label: float(run.table("scores")["value"].iloc[0]) for run in record.runs}
        return seconds, cost.macs, cost.fits, scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--width", type=int, default=4)
    parser.add_argument("--size", type=int, default=100, help="a tenth of what ten classes have to draw from")
    arguments = parser.parse_args()
    keep_freed_memory()
    with tempfile.TemporaryDirectory() as folder:
        images = make_images(Path(folder), arguments.size)
        alone = {m: run([m], images, arguments.width, arguments.size) for m in GROUPS["all eighteen"]}
        for name, methods in GROUPS.items():
            seconds, macs, fits, scores = run(methods, images, arguments.width, arguments.size)
            assert all(scores[m] == alone[m][3][m] for m in methods), "sharing must not change a result"
            parts = [alone[m] for m in methods]
            print(
                f"{name}: {fits} fits instead of {sum(p[2] for p in parts)}, "
                f"{macs / sum(p[1] for p in parts):.2f} of the multiply-accumulates, "
                f"{seconds / sum(p[0] for p in parts):.2f} of the seconds ({seconds:.0f} s)",
                flush=True,
            )


if __name__ == "__main__":
    main()
