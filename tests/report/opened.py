"""Runs of open-world written to disk by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from driftline.record.run import Run

from .conftest import add_table, final, write_run

TRUTH = [0, 1, 0, 1, 2, 1, 0, 2]
RIGHT = [1.0, 0, 1, 1, 0, 0, 1, 1]
STRANGE = [0.1, 0.7, 0.2, 0.6, 0.4, 0.5, 0.1, 0.3]


def opened(folder: Path, label: str, seed: int, shares: dict[str, float], **given: Any) -> Run:
    """A run with these shares, this compute (forward, backward, saved) and the worked example as its answers."""
    forward, backward, saved = given.pop("compute", (112, 48, 240))
    costs = {"macs": forward + backward, "macs-uncached": forward + backward + saved}
    rows = [final(metric, value, "mean") for metric, value in shares.items()]
    rows += [(name, "final", None, None, float(v), v, v, 8, "examples") for name, v in costs.items()]
    rows += given.pop("rows", [])
    changes = {
        "run__benchmark": "open-world",
        "run__options": {"window": 4},
        "run__data": {"name": "digit-symmetries", "settings": {}},
        "run__model": {"name": given.pop("model", "mlp"), "settings": {}},
        "run__method": {"name": label.partition("(")[0], "settings": given.pop("settings", {})},
        "data__name": given.pop("data", "digit-symmetries"),
        "metrics": {},
        "protocol": {"protocol": "sequence 3", "pretrain_classes": [0], "novel_classes": [1, 2], "head": 2},
        "compute": {"forward_macs": forward, "backward_macs": backward, "cached_macs": saved},
    }
    table = {"truth": TRUTH, "correct": RIGHT, "confidence": [1 - s for s in STRANGE], "distance": STRANGE}
    run = write_run(folder, label, seed, rows, **changes)
    add_table(run, "answers", {**table, **given.pop("answers", {})})
    return run
