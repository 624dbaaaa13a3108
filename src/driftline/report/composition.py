"""What a stream of queries is made of: all of them, and those that the upstream model got wrong, by cluster."""

from __future__ import annotations

import numpy as np

from driftline.metrics import refinement
from driftline.report.groups import Group
from driftline.report.series import Series

FROZEN = "frozen"
COLUMNS = ["time", "part", "place", "count"]


def streams(group: Group) -> dict[str, Series]:
    """Queries per step and cluster by title, of the first stream; errors only where the upstream model was run."""
    protocol = group.card["protocol"]
    if "composition" not in protocol:
        return {}
    found = {f"queries of stream {protocol['stream']} by cluster": np.array(protocol["composition"])}
    if FROZEN in group.methods:
        run = group.runs_of(FROZEN)[0]
        steps = [frame for _, frame in run.table("answers").groupby("step")]
        groups, wrong = [s["group"] for s in steps], [s["correct"] < 1 for s in steps]
        errors = refinement.composition(groups, len(protocol["clusters"]), keep=wrong)
        found[f"errors of the upstream model in stream {run.card['protocol']['stream']} by cluster"] = errors
    return {title: _series(counts, protocol["periods"], protocol["clusters"]) for title, counts in found.items()}


def _series(counts: np.ndarray, times: list[str], parts: list[str]) -> Series:
    rows = [[times[t], parts[k], int(k), int(counts[t, k])] for t, k in np.argwhere(counts > 0)]
    return Series(COLUMNS, rows)
