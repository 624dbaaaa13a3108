"""Selected settings of methods: the rule, the result, and its cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass

from driftline.record.card import Card
from driftline.report.analysis.groups import Group
from driftline.report.format import format_amount
from driftline.spec.settings import format_settings
from driftline.types import JsonObject

HEADER = ("method", "rule", "selected", "candidates", "trials", "skipped", "GMAC to select")

PHASES = "validation-split"
SETTINGS = ("lr", "weight_decay", "dropout", "strength", "top")
"""Settings in which the fits of a phase may differ, as cards name them."""


@dataclass(frozen=True)
class SelectedSettings:
    """The selection of one method; a search is the same for all seeds."""

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

    @property
    def cells(self) -> tuple[str, ...]:
        """The texts of a table row under `HEADER`."""
        rule = f"{self.rule.upper()} (the test itself)" if self.rule == "oracle" else self.rule
        candidates = f"{self.candidates}{f' ({self.failed} failed)' if self.failed else ''}"
        counts = (candidates, str(self.runs), str(self.skipped), format_amount(self.gmac))
        return (self.method, rule, format_settings(self.settings), *counts)

    @property
    def numbers(self) -> JsonObject:
        """The same as numbers."""
        selected = {f"selected {name}": value for name, value in self.settings.items()}
        counts = {"candidates": self.candidates, "trials": self.runs, "skipped": self.skipped, "gmac": self.gmac}
        return {**selected, **counts}


def selected_settings(group: Group) -> list[SelectedSettings]:
    """Return the selection of each method that had candidates, made before its runs or within them."""
    found = {one.method: one for one in (*from_search(group), *from_validation(group))}
    return [found[method] for method in group.methods if method in found]


def from_validation(group: Group) -> list[SelectedSettings]:
    """Return the selections that methods made between fits in each run; their cost is part of the run."""
    found = []
    for method in group.methods:
        cards = [run.card for run in group.runs_of(method)]
        last = [card.protocol["chosen"][-1] for card in cards if card.protocol.get("chosen")]
        selection = cards[0].protocol.get("selection") or ""
        if len(last) < len(cards) or cards[0].run.search or not selection.startswith(PHASES):
            continue
        fits = [card.protocol["trials"] for card in cards]
        if max(fits) < 2:
            continue  # one fit: there was nothing to select
        settings = {name: _by_seeds([fit.get(name, 0) for fit in last]) for name in _searched(cards[0], last)}
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
        card = group.runs_of(method)[0].card
        search, protocol = card.run.search, card.protocol
        if search is None or not protocol.get("chosen"):
            continue
        names, selected = search["candidates"][0], protocol["chosen"][0]
        macs = card.compute.search_macs
        found.append(
            SelectedSettings(
                method=method,
                rule=search["rule"],
                settings={name: selected[name] for name in names},
                candidates=len(search["candidates"]),
                failed=sum(point.get("out", "").startswith(("failed", "a run has")) for point in protocol["tried"]),
                runs=protocol["trials"],
                skipped=protocol.get("skipped_runs", 0),
                gmac=None if macs is None else macs / 1e9,
            )
        )
    return found
