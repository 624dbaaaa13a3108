"""Printing of what an upgrade makes out of date."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from driftline.engine.upgrade import Action, Outdated

ACTIONS: dict[Action, str] = {"keep": "kept", "score": "scored again from their records", "run": "computed"}


def upgrade_text(runs: Iterable[Outdated]) -> str:
    """Return how many runs are kept, scored again and computed, then the reasons, each with its runs."""
    runs = list(runs)
    counts = Counter(run.action for run in runs)
    lines = [", ".join(f"{counts[action]} run(s) {text}" for action, text in ACTIONS.items() if counts[action])]
    by_reason: dict[tuple[Action, str], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        if run.action != "keep":
            by_reason[run.action, run.why][run.label].append(run.seed)
    for (action, why), labels in by_reason.items():
        lines.append(f"{ACTIONS[action]} ({why}):")
        lines += [f"  {label}, seed {', '.join(map(str, seeds))}" for label, seeds in labels.items()]
    return "\n".join(lines)
