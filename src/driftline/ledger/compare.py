"""Printed numbers and ours, and findings decided by paired tests."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from driftline import registry
from driftline.errors import UserError, unknown_name
from driftline.ledger.catalog import Comparison, Finding, Item
from driftline.ledger.results import Result
from driftline.metrics import title
from driftline.metrics.significance import Difference, holm, paired_t_test
from driftline.published.numbers import Published, from_source, published_name
from driftline.report.analysis.aggregate import ALPHA, ANY, paired_differences
from driftline.report.analysis.estimates import Estimate, bounds, estimates_by_method, is_share

Results = Mapping[str, Result]
Decision = Literal["holds", "does not hold", "undecided"]
MIN_SEEDS = 3  # for a paired t-test
TEST = re.compile(r"^(.+) ([<>=]) (.+)$")
SIGN = {">": 1.0, "<": -1.0, "=": 0.0}


@dataclass(frozen=True)
class Pair:
    """A number of ours, and the printed one if there is one."""

    method: str
    metric: str
    stat: str
    ours: Estimate
    printed: float | None

    @property
    def difference(self) -> float | None:
        return None if self.printed is None else self.ours.value - self.printed

    @property
    def share(self) -> bool:
        return is_known_share(self.metric)

    @property
    def name(self) -> str:
        """The title of the metric, and its statistic unless it is the mean."""
        word = title(self.metric) if self.metric in registry.names("metric") else self.metric
        return word if self.stat == "mean" else f"{word}, {self.stat}"


@dataclass(frozen=True)
class Tested:
    """A test of a finding: its difference, and the decision after the correction for all tests of the item."""

    text: str
    difference: Difference
    share: bool
    decision: Decision


@dataclass(frozen=True)
class Decided:
    """A finding with its tests and the decision that follows: it holds if all tests do."""

    finding: Finding
    tests: tuple[Tested, ...]

    @property
    def decision(self) -> Decision:
        found = {test.decision for test in self.tests}
        if "does not hold" in found:
            return "does not hold"
        return "holds" if found == {"holds"} else "undecided"


def is_known_share(metric: str) -> bool:
    """Return whether a metric is registered as a share."""
    return metric in registry.names("metric") and is_share(metric)


def pairs(comparison: Comparison, results: Results) -> list[Pair]:
    """Return our numbers of a comparison with the printed ones; none if the result was not added yet."""
    if comparison.result not in results:
        return []
    result = results[comparison.result]
    scores = _scores(result, comparison.setting)
    printed = _printed(comparison)
    found = []
    for label in comparison.metrics:
        ours = _estimates(scores, *_split(comparison.instead.get(label, label)))
        for name in comparison.methods or (printed if comparison.source else ours):
            method = _find(comparison.counterparts.get(name, name), ours, result)
            value = printed.get(name, {}).get(label)
            if method in ours and (value is not None or not comparison.source):
                found.append(Pair(method, *_split(label), ours[method], value))
    return found


def decide(item: Item, results: Results) -> list[Decided]:
    """Return the findings of an item whose methods were run; p-values are Holm-corrected for all tests of the item."""
    ready = [one for one in item.findings if one.result in results and _was_run(one, results[one.result])]
    differences = [(finding, test, *_difference(finding, test, results)) for finding in ready for test in finding.tests]
    corrected = holm([difference.p for _, _, difference, _ in differences])
    decided = []
    for finding in ready:
        tests = [
            Tested(test, difference, share, _decision(test, difference, float(p), finding.margin))
            for (owner, test, difference, share), p in zip(differences, corrected, strict=True)
            if owner is finding
        ]
        decided.append(Decided(finding, tuple(tests)))
    return decided


def _was_run(finding: Finding, result: Result) -> bool:
    """Return whether an unfinished result has at least one run of each method of a finding."""
    missing = {run.rpartition(" seed ")[0] for run in result.header.missing} - set(result.scores["method"])
    short = {published_name(result.benchmark, label) for label in missing} if result.benchmark else set()
    sides = {side for test in finding.tests for side in _parse(test)[::2]}
    return not {side.partition("@")[0] for side in sides} & (missing | short)


def _decision(test: str, difference: Difference, p: float, margin: float) -> Decision:
    sign = SIGN[_parse(test)[1]]
    if difference.n < MIN_SEEDS or math.isnan(difference.low):
        return "undecided"
    if sign == 0:
        if -margin <= difference.low and difference.high <= margin:
            return "holds"
        return "does not hold" if difference.low > margin or difference.high < -margin else "undecided"
    if p > ALPHA:
        return "undecided"
    return "holds" if sign * difference.value > margin else "does not hold"


def _difference(finding: Finding, test: str, results: Results) -> tuple[Difference, bool]:
    """Return the difference of the two sides of a test, and whether it is one of shares.

    The difference of `=` is tested for equality, that of `>` and `<` for the margin on the paper's side of 0.
    """
    left, relation, right = _parse(test)
    result = results[finding.result]
    a, share = _by_seed(finding, result, left, finding.setting)
    try:
        level = float(right)
    except ValueError:
        b, _ = _by_seed(finding, result, right, finding.other_setting or finding.setting)
    else:
        b = dict.fromkeys(a, level)
    differences = np.array(paired_differences(a, b))
    shift = SIGN[relation] * finding.margin
    found = paired_t_test(differences - shift)
    return found._replace(value=found.value + shift, low=found.low + shift, high=found.high + shift), share


def _by_seed(finding: Finding, result: Result, side: str, setting: str) -> tuple[Mapping[int, float], bool]:
    name, _, label = side.partition("@")
    metric, stat = _split(label or finding.metric)
    ours = _estimates(_scores(result, setting), metric, stat)
    method = _find(name, ours, result)
    if method not in ours:
        raise unknown_name(f"method with {metric}:{stat} in {finding.result}", name, ours)
    return ours[method].by_seed, is_known_share(metric)


def _find(name: str, ours: Mapping[str, Estimate], result: Result) -> str:
    """Return the label of a method in a result from its published name; the name itself if there is none."""
    benchmark = result.benchmark
    found = [label for label in ours if benchmark and published_name(benchmark, label) == name]
    if name in ours or not found:
        return name
    if len(found) > 1:
        raise UserError(f"{result.name} has several methods that are published as {name}: {', '.join(found)}")
    return found[0]


def _parse(test: str) -> tuple[str, str, str]:
    match = TEST.match(test)
    if match is None:
        raise UserError(f"{test!r} is not a test: write A > B, A < B or A = B")
    return match[1], match[2], match[3]


def _scores(result: Result, setting: str) -> pd.DataFrame:
    scores = result.scores
    scores = scores[scores["setting"].str.contains(setting, regex=False)]
    if scores["setting"].nunique() != 1:
        raise UserError(f"{result.name} has {scores['setting'].nunique()} settings with {setting!r}: select one")
    return scores


def _estimates(scores: pd.DataFrame, metric: str, stat: str) -> dict[str, Estimate]:
    rows = scores[(scores["metric"] == metric) & (scores["stat"] == stat)]
    within = bounds(metric) if metric in registry.names("metric") else ANY
    return estimates_by_method(rows, within) if len(rows) else {}


def _split(label: str) -> tuple[str, str]:
    metric, _, stat = label.partition(":")
    return metric, stat or "mean"


def _printed(comparison: Comparison) -> dict[str, dict[str, float]]:
    """Return the printed numbers of a comparison, by method and METRIC:STAT."""
    found: dict[str, dict[str, float]] = {}
    for number in from_source(comparison.source) if comparison.source else []:
        if _selected(number, comparison):
            found.setdefault(number.method, {})[f"{number.metric}:{number.stat}"] = number.value
    return found


def _selected(number: Published, comparison: Comparison) -> bool:
    wanted = {"data": comparison.data, "protocol": comparison.protocol, "model": comparison.model}
    return all(value in ("", getattr(number, name)) for name, value in wanted.items())
