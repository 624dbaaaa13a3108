"""How samples are laid out in time."""

from driftline.streams.periods import Periods, periods

__all__ = ["Periods", "periods"]
