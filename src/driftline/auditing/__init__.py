"""Audit of a user's own table and model: how long it stays good, and when to retrain it."""

from driftline.auditing.recommendation import Costs
from driftline.auditing.result import AuditResult
from driftline.auditing.run import audit
from driftline.auditing.table import Limits

__all__ = ["AuditResult", "Costs", "Limits", "audit"]
