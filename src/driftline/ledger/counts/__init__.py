"""Results that need no runs: what is counted in published files, sequences and networks.

One file per result. Its `scores(data_dir)` returns the rows of `scores.csv`, its `NOTE` says at which scale.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pandas as pd

from driftline.errors import unknown_name

COUNTS = {
    "open-world/sequences": "ned_sequences",
    "open-world/compute": "ned_compute",
    "refinement/composition": "cmr_composition",
    "seq-to-final/sizes": "seq_to_final_sizes",
    "test-time/paths": "ccc_paths",
}
"""The file of each result."""


def count(name: str, data_dir: Path | None = None) -> tuple[pd.DataFrame, str]:
    """Return the scores of a result, and its note."""
    if name not in COUNTS:
        raise unknown_name("result that is counted", name, COUNTS)
    module = import_module(f"driftline.ledger.counts.{COUNTS[name]}")
    return pd.DataFrame(module.scores(data_dir)), module.NOTE
