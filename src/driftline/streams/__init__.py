"""How samples are laid out in time."""

from driftline.streams.periods import Deployment, Periods, periods

__all__ = ["Deployment", "Periods", "periods"]
