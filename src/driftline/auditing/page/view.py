"""What charts and titles of an audit's page share: names of periods in words, and numbers on the metric's axis."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from driftline.auditing.estimate import Estimate
from driftline.auditing.findings import interval
from driftline.auditing.metric import Metric
from driftline.auditing.wording import PeriodNames, plain_number, policy_done, singular, typeset
from driftline.report.page.look import time_ticks

if TYPE_CHECKING:
    from driftline.auditing.result import AuditResult


@dataclass(frozen=True)
class View:
    """A result, as the page shows it."""

    result: AuditResult

    @property
    def metric(self) -> Metric:
        return self.result.metric

    @property
    def unit(self) -> str:
        return self.result.data.unit

    @property
    def one(self) -> str:
        """One period."""
        return singular(self.unit)

    @property
    def factor(self) -> float:
        """Shares are shown in percent."""
        return 100.0 if self.metric.unit == "share" else 1.0

    @property
    def axis(self) -> str:
        """Name and unit of the metric, as the line under a title."""
        name = self.metric.title[:1].upper() + self.metric.title[1:]
        if self.metric.unit == "share":
            return f"{name} by {self.one}, %"
        unit = f" in units of {self.result.data.target}" if self.metric.unit == "target" else ""
        return f"{name} by {self.one}{unit}, {'higher' if self.metric.higher_is_better else 'lower'} is better"

    @property
    def names(self) -> PeriodNames:
        return self.result.data.names

    @property
    def words(self) -> tuple[str, ...]:
        """Periods in words."""
        return self.names.words

    def word(self, name: str) -> str:
        """Return a period of the table or of the matrix in words."""
        return self.names.text(name)

    @property
    def ticks(self) -> dict[int, str]:
        return time_ticks(self.result.data.periods, [word.removeprefix("period ") for word in self.words])

    @property
    def time_title(self) -> str | None:
        """Title of the axis of time, where the names of periods do not say it."""
        return f"period of {self.result.data.period}" if self.words[0].startswith("period ") else None

    def number(self, value: float) -> float | None:
        """Return a value on the axis of the metric."""
        return round(self.factor * value, 4) if math.isfinite(value) else None

    def plain(self, value: float) -> str:
        """Return a score or a difference without its unit, which the head of a table has."""
        if not math.isfinite(value):
            return "–"
        return f"{100 * value:.1f}" if self.factor == 100 else plain_number(value)

    def score(self, estimate: Estimate) -> str:
        """Return a score with its interval, for tooltips."""
        return typeset(f"{self.metric.text(estimate.value)} {interval(self.metric, estimate)}")

    def done(self, policy: str) -> str:
        """Return the label of a policy's line."""
        return policy_done(policy, self.unit)
