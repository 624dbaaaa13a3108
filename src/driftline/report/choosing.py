"""How the settings of methods were chosen before they were run: the rule, the winner, and what the choice took."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from driftline.report.groups import Group
from driftline.spec.settings import format_settings

HEADER = ("method", "rule", "chosen", "settings", "trials", "spared", "GMAC to choose")

PHASES = "final-valid"
SETTINGS = ("lr", "weight_decay", "dropout", "strength", "top")
"""What fits of a phase may differ in, as cards call it."""


@dataclass(frozen=True)
class Chosen:
    """The choice of one method; a contest is the same for all seeds."""

    method: str
    rule: str
    settings: dict[str, Any]
    """Those that won."""
    competed: int
    """How many settings there were, or fits in a run."""
    failed: int
    """How many of them dropped out because a trial failed or had no score."""
    trials: int
    spared: int
    """Trials that were not needed because the winner was settled without them."""
    gmac: float | None

    @property
    def cells(self) -> tuple[str, ...]:
        """As a table has it, under `HEADER`."""
        rule = f"{self.rule.upper()} (the test itself)" if self.rule == "oracle" else self.rule
        settings = f"{self.competed}{f' ({self.failed} failed)' if self.failed else ''}"
        cost = "–" if self.gmac is None else f"{self.gmac:.3g}" if self.gmac < 100 else f"{self.gmac:,.0f}"
        return (self.method, rule, format_settings(self.settings), settings, str(self.trials), str(self.spared), cost)

    @property
    def numbers(self) -> dict[str, Any]:
        """The same to compute with."""
        won = {f"chosen {name}": value for name, value in self.settings.items()}
        return {**won, "settings": self.competed, "trials": self.trials, "spared": self.spared, "gmac": self.gmac}


def chosen(group: Group) -> list[Chosen]:
    """What each method of a group that had a choice has chosen, before its runs or in them; nothing if none had."""
    found = {one.method: one for one in (*contests(group), *phases(group))}
    return [found[method] for method in group.methods if method in found]


def phases(group: Group) -> list[Chosen]:
    """Methods that chose between fits of their own, in every run anew; a run's own bill has what that took."""
    found = []
    for method in group.methods:
        cards = [run.card for run in group.runs_of(method)]
        picks = [card["protocol"]["chosen"][-1] for card in cards if card["protocol"].get("chosen")]  # in the last
        said = cards[0]["protocol"].get("selection") or ""
        if len(picks) < len(cards) or cards[0]["run"].get("search") or not said.startswith(PHASES):
            continue
        tried = [card["protocol"]["trials"] for card in cards]
        if max(tried) < 2:
            continue  # there was one fit, and nothing to choose
        settings = {name: _by_seeds([pick.get(name, 0) for pick in picks]) for name in _searched(cards[0], picks)}
        found.append(Chosen(method, PHASES, settings, max(tried), 0, sum(tried), 0, None))
    return found


def _searched(card: dict[str, Any], picks: list[dict[str, Any]]) -> list[str]:
    """Settings of which several were tried; a card leaves out what is 0."""
    options = card["run"]["options"]
    return [
        name
        for name in SETTINGS
        if len(options.get(name) or ()) > 1 or (name not in options and any(name in pick for pick in picks))
    ]


def _by_seeds(values: list[Any]) -> Any:
    """A value that all seeds chose, or each with how many did.

    >>> _by_seeds([0.01, 0.01]), _by_seeds([0.01, 0.1, 0.01])
    (0.01, '0.01 (2 seeds) or 0.1 (1)')
    """
    counts = Counter(values).most_common()
    if len(counts) == 1:
        return values[0]
    (first, most), *others = counts
    return " or ".join([f"{first} ({most} seed{'s' * (most > 1)})", *(f"{value} ({n})" for value, n in others)])


def contests(group: Group) -> list[Chosen]:
    """What each method chose in a contest before its runs."""
    found = []
    for method in group.methods:
        card = group.runs_of(method)[0].card
        contest, protocol = card["run"].get("search"), card["protocol"]
        if contest is None or not protocol.get("chosen"):
            continue
        names, winner = contest["candidates"][0], protocol["chosen"][0]
        macs = card["compute"].get("selection_macs")
        found.append(
            Chosen(
                method=method,
                rule=contest["rule"],
                settings={name: winner[name] for name in names},
                competed=len(contest["candidates"]),
                failed=sum(point.get("out", "").startswith(("failed", "a run has")) for point in protocol["tried"]),
                trials=protocol["trials"],
                spared=protocol.get("spared_trials", 0),
                gmac=None if macs is None else macs / 1e9,
            )
        )
    return found
