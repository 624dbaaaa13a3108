"""A user's own table and model: how long does it stay good, when must it be retrained, what would it have cost?"""

from driftline.auditing.conduct import Audit, audit

__all__ = ["Audit", "audit"]
