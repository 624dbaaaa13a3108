"""Selected settings of methods: the rule, the result, and its cost."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from driftline.record.card import Card
from driftline.record.run import Run
from driftline.report.analysis.groups import Group
from driftline.report.format import format_amount
from driftline.spec.settings import format_settings
from driftline.types import JsonObject

HEADER = (
    *("method", "rule", "selected", "runner-up", "margin", "SE", "choice"),
    *("candidates", "search runs", "skipped", "GMAC to select"),
)

PHASES = "validation-split"
SETTINGS = ("lr", "weight_decay", "dropout", "strength", "top")
"""Settings in which the fits of a phase may differ, as cards name them."""


@dataclass(frozen=True)
class SelectedSettings:
    """The selection of one method; a search is the same for all seeds, unless each seed repeats it."""

    method: str
    rule: str
    settings: JsonObject
    """The selected values."""
    candidates: int
    """Number of candidate settings, or of fits in a run."""
    failed: int
    """Candidates excluded because a run failed or had no score."""
    runs: int
    skipped: int
    """Runs that were not needed to decide."""
    gmac: float | None
    runner_up: JsonObject = field(default_factory=dict)
    """The values of the second best candidate."""
    margin: float = math.nan
    """Score of the selected candidate minus that of the runner-up; the mean over repeated selections."""
    margin_se: float = math.nan
    """The standard error of the margin over validation runs; the mean over repeated selections."""
    noisy: tuple[bool, ...] = ()
    """Whether the margin is within noise, for each selection."""
    tie_break: str = ""

    @property
    def within_noise(self) -> bool:
        """Whether a selection was within noise."""
        return any(self.noisy)

    @property
    def certainty(self) -> str:
        """Whether the margin is within noise, which is one standard error."""
        if not self.noisy:
            return "–"
        if math.isnan(self.margin_se) and not self.within_noise:
            return "one run: noise unknown"
        count = f" in {sum(self.noisy)} of {len(self.noisy)}" if len(self.noisy) > 1 and self.within_noise else ""
        return f"within noise{count}" if self.within_noise else "beyond 1 SE"

    @property
    def cells(self) -> tuple[str, ...]:
        """The texts of a table row under `HEADER`."""
        rule = f"{self.rule.upper()} (the test itself)" if self.rule == "oracle" else self.rule
        candidates = f"{self.candidates}{f' ({self.failed} failed)' if self.failed else ''}"
        counts = (candidates, str(self.runs), str(self.skipped), format_amount(self.gmac))
        margin = (_signed(self.margin), _signed(self.margin_se).lstrip("+"), self.certainty)
        settings = (format_settings(self.settings), format_settings(self.runner_up) or "–")
        return (self.method, rule, *settings, *margin, *counts)

    @property
    def numbers(self) -> JsonObject:
        """The same as numbers."""
        selected = {f"selected {name}": value for name, value in self.settings.items()}
        second = {f"runner-up {name}": value for name, value in self.runner_up.items()}
        known = {"margin": self.margin, "margin SE": self.margin_se}
        noise = {name: value for name, value in known.items() if not math.isnan(value)}
        noise |= {"within noise": sum(self.noisy)} if self.noisy else {}
        counts = {"candidates": self.candidates, "search runs": self.runs, "skipped": self.skipped, "gmac": self.gmac}
        return {**selected, **second, **noise, **counts}


def selected_settings(group: Group) -> list[SelectedSettings]:
    """Return the selection of each method that had candidates, made before its runs or within them."""
    found = {one.method: one for one in (*from_search(group), *from_validation(group))}
    return [found[method] for method in group.methods if method in found]


def from_validation(group: Group) -> list[SelectedSettings]:
    """Return the selections that methods made between fits in each run; their cost is part of the run."""
    found = []
    for method in group.methods:
        protocols = [run.protocol for run in group.runs_of(method)]
        last = [protocol["chosen"][-1] for protocol in protocols if protocol.get("chosen")]
        selection, first = protocols[0].get("selection") or "", group.runs_of(method)[0].common
        if len(last) < len(protocols) or first.run.search or not selection.startswith(PHASES):
            continue
        fits = [protocol["trials"] for protocol in protocols]
        if max(fits) < 2:
            continue  # one fit: there was nothing to select
        settings = {name: _by_seeds([fit.get(name, 0) for fit in last]) for name in _searched(first, last)}
        found.append(SelectedSettings(method, PHASES, settings, max(fits), 0, sum(fits), 0, None))
    return found


def _searched(card: Card, fits: list[JsonObject]) -> list[str]:
    """Return the settings with several candidates; a card omits those that are 0."""
    options = card.run.options
    return [
        name
        for name in SETTINGS
        if len(options.get(name) or ()) > 1 or (name not in options and any(name in fit for fit in fits))
    ]


def _by_seeds(values: list[Hashable]) -> object:
    """Return the value that all seeds selected, or each value with its number of seeds.

    >>> _by_seeds([0.01, 0.01]), _by_seeds([0.01, 0.1, 0.01])
    (0.01, '0.01 (2 seeds) or 0.1 (1)')
    """
    counts = Counter(values).most_common()
    if len(counts) == 1:
        return values[0]
    (first, most), *others = counts
    return " or ".join([f"{first} ({most} seed{'s' * (most > 1)})", *(f"{value} ({n})" for value, n in others)])


def from_search(group: Group) -> list[SelectedSettings]:
    """Return the selections made by a hyper-parameter search before the runs."""
    found = []
    for method in group.methods:
        runs = group.runs_of(method)
        selections = {tuple(search["seeds"]): run for run in runs if (search := run.common.run.search) is not None}
        if selections and runs[0].protocol.get("chosen"):
            found.append(_from_runs(method, list(selections.values()), runs))
    return found


def _from_runs(method: str, selections: Sequence[Run], runs: Sequence[Run]) -> SelectedSettings:
    """Return the selection of a method: `selections` has one run for each, `runs` one for each seed."""
    search, protocols = selections[0].common.run.search, [run.protocol for run in selections]
    assert search is not None
    macs = [run.compute.search_macs for run in selections]
    names, known = search["candidates"][0], [value for value in macs if value is not None]
    failed = [point for point in protocols[0]["tried"] if point.get("out", "").startswith(("failed", "a run has"))]
    second = [protocol for protocol in protocols if "runner_up" in protocol]
    return SelectedSettings(
        method=method,
        rule=search["rule"],
        settings={name: _by_seeds([run.protocol["chosen"][0][name] for run in runs]) for name in names},
        candidates=len(search["candidates"]),
        failed=len(failed),
        runs=sum(protocol["trials"] for protocol in protocols),
        skipped=sum(protocol.get("skipped_runs", 0) for protocol in protocols),
        gmac=sum(known) / 1e9 if len(known) == len(macs) else None,
        runner_up={name: _by_selections([one["runner_up"][name] for one in second]) for name in names if second},
        margin=_mean([one["margin"] for one in second]),
        margin_se=_mean([one["margin_se"] for one in second]),
        noisy=tuple(one["within_noise"] for one in second),
        tie_break=search.get("tie_break", "best"),
    )


def _by_selections(values: Sequence[Hashable]) -> object:
    """Return the value of all selections, or the different ones."""
    different = list(dict.fromkeys(values))
    return different[0] if len(different) == 1 else " or ".join(map(str, different))


def _mean(values: Sequence[float | None]) -> float:
    """Return the mean of the known numbers; NaN if there are none."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else math.nan


def _signed(value: float) -> str:
    """Return a difference of scores as text.

    >>> _signed(-0.004), _signed(0.0163), _signed(math.nan)
    ('-0.004', '+0.016', '–')
    """
    return "–" if math.isnan(value) else f"{value:+.3f}"
