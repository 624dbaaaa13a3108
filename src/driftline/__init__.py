"""Driftline measures learners in a world that changes over time.

>>> import driftline
>>> spec = {"benchmark": "timeline", "data": "digits", "model": "logistic", "methods": ["erm"], "seeds": 1}
>>> record = driftline.run(spec, runs="my-runs")  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from driftline.version import __version__

__all__ = ["__version__", "audit", "load", "plan", "run"]

if TYPE_CHECKING:
    from driftline.auditing import audit
    from driftline.engine.costs.forecast import forecast as plan
    from driftline.engine.run import run
    from driftline.record import load


def __getattr__(name: str) -> Any:
    # Importing the package must stay fast, so what is heavy is imported when it is first used.
    if name == "audit":
        from driftline.auditing import audit

        return audit
    if name == "run":
        from driftline.engine.run import run

        return run
    if name == "plan":
        from driftline.engine.costs.forecast import forecast

        return forecast
    if name == "load":
        from driftline.record import load

        return load
    raise AttributeError(f"module 'driftline' has no attribute '{name}'")
