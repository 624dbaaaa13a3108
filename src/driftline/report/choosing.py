"""How the settings of methods were chosen before they were run: the rule, the winner, and what the choice took."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from driftline.jobs import told
from driftline.report.groups import Group

HEADER = ("method", "rule", "chosen", "settings", "trials", "spared", "GMAC to choose")


@dataclass(frozen=True)
class Chosen:
    """The contest of one method; all its seeds have the same."""

    method: str
    rule: str
    settings: dict[str, Any]
    """Those that won."""
    competed: int
    """How many settings there were."""
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
        return (self.method, rule, told(self.settings), settings, str(self.trials), str(self.spared), cost)

    @property
    def numbers(self) -> dict[str, Any]:
        """The same to compute with."""
        won = {f"chosen {name}": value for name, value in self.settings.items()}
        return {**won, "settings": self.competed, "trials": self.trials, "spared": self.spared, "gmac": self.gmac}


def chosen(group: Group) -> list[Chosen]:
    """What each method of a group that had a choice has chosen; nothing if none had."""
    found = []
    for method in group.methods:
        card = group.runs_of(method)[0].card
        contest, protocol = card["run"].get("contest"), card["protocol"]
        if contest is None or not protocol.get("chosen"):
            continue
        names, winner = contest["points"][0], protocol["chosen"][0]
        macs = card["compute"].get("selection_macs")
        found.append(
            Chosen(
                method=method,
                rule=contest["rule"],
                settings={name: winner[name] for name in names},
                competed=len(contest["points"]),
                failed=sum(point.get("out", "").startswith(("failed", "a trial has")) for point in protocol["tried"]),
                trials=protocol["trials"],
                spared=protocol.get("spared_trials", 0),
                gmac=None if macs is None else macs / 1e9,
            )
        )
    return found
