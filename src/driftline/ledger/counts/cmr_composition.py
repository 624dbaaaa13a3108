"""CMR's Figure 3: the released stream of queries, and the errors of its upstream model, by cluster."""

from __future__ import annotations

from pathlib import Path

from driftline.report.analysis.composition import of_file
from driftline.types import JsonObject

NOTE = "the released NLI stream of 100 steps with its upstream model's answers; the figure has 50 steps of questions"
STREAM = "nli/cmr_nli_submission_stream.T=100,b=64,alpha=0.9,beta=0.5,gamma=0.8.json.gz"


def scores(data_dir: Path | None) -> list[JsonObject]:
    """Return queries and errors by cluster, in all and at both ends of the stream, with the first cluster upstream."""
    found = of_file(Path(STREAM), data_dir)
    assert found.errors is not None
    rows = []
    for k, cluster in enumerate(found.clusters):
        for metric, counts in (("queries", found.queries[:, k]), ("errors of the upstream model", found.errors[:, k])):
            ends = (("sum", counts.sum()), ("first step", counts[0]), ("last step", counts[-1]))
            rows += [
                {"method": cluster, "seed": 0, "metric": metric, "stat": stat, "value": int(value)}
                for stat, value in ends
            ]
    right, asked = float(found.satisfaction[-1]), int(found.queries.sum())
    end = {"metric": "csr", "stat": "final", "value": right, "n": asked, "unit": "examples"}
    return [*rows, {"method": "frozen", "seed": 0, **end}]
