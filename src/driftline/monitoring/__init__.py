"""Monitors of deployed models: fit once on a reference, then check each new batch, with labels now or later."""

from __future__ import annotations

from driftline.monitoring.monitor import Monitor, locked
from driftline.monitoring.result import Alarm, BatchResult

__all__ = ["Alarm", "BatchResult", "Monitor", "locked"]
