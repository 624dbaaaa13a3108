"""Audit of a user's own table and model: how long it stays good, and when to retrain it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftline import lazy

if TYPE_CHECKING:
    from driftline.auditing.recommendation import Costs
    from driftline.auditing.result import AuditResult
    from driftline.auditing.run import audit

__all__ = ["AuditResult", "Costs", "audit"]

__getattr__, __dir__ = lazy.exports(
    __name__,
    {
        "AuditResult": "driftline.auditing.result:AuditResult",
        "Costs": "driftline.auditing.recommendation:Costs",
        "audit": "driftline.auditing.run:audit",
    },
)
