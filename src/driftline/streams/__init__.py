"""How samples are laid out in time."""

from driftline.streams.ahead import Ahead, ahead
from driftline.streams.corrupted import Corrupted, corrupted
from driftline.streams.heavy_tails import Law
from driftline.streams.image_files import ImageFiles, image_files
from driftline.streams.in_time import sequence_in_time
from driftline.streams.matrices import Matrices, read_matrices, write_matrices
from driftline.streams.open_world import OpenWorld, open_world
from driftline.streams.paths import corruption_path
from driftline.streams.periods import Deployment, LaterPeriodProbes, Periods, periods
from driftline.streams.queries import Pools, Queries, Sources, pools, queries
from driftline.streams.sequence import Sequence, sequence
from driftline.streams.shards import Shards, shards, write_shards

__all__ = [
    "Ahead",
    "Corrupted",
    "Deployment",
    "ImageFiles",
    "LaterPeriodProbes",
    "Law",
    "Matrices",
    "OpenWorld",
    "Periods",
    "Pools",
    "Queries",
    "Sequence",
    "Shards",
    "Sources",
    "ahead",
    "corrupted",
    "corruption_path",
    "image_files",
    "open_world",
    "periods",
    "pools",
    "queries",
    "read_matrices",
    "sequence",
    "sequence_in_time",
    "shards",
    "write_matrices",
    "write_shards",
]
