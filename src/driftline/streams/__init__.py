"""How samples are laid out in time."""

from driftline.streams.in_time import sequence_in_time
from driftline.streams.periods import Deployment, Periods, periods
from driftline.streams.queries import Pools, Queries, Sources, pools, queries
from driftline.streams.sequence import Sequence, sequence

__all__ = [
    "Deployment",
    "Periods",
    "Pools",
    "Queries",
    "Sequence",
    "Sources",
    "periods",
    "pools",
    "queries",
    "sequence",
    "sequence_in_time",
]
