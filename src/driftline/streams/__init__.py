"""How samples are laid out in time."""

from driftline.streams.in_time import sequence_in_time
from driftline.streams.periods import Deployment, Periods, periods
from driftline.streams.sequence import Sequence, sequence

__all__ = ["Deployment", "Periods", "Sequence", "periods", "sequence", "sequence_in_time"]
