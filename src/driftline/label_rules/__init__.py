"""Rules on labels: which are asked for, how late they arrive, and whether they are right. One file per rule."""

from driftline.label_rules.base import LabelRule, Query
from driftline.label_rules.chain import RuleChain
from driftline.label_rules.tally import Tally
from driftline.label_rules.waiting import Waiting

__all__ = ["LabelRule", "Query", "RuleChain", "Tally", "Waiting"]
