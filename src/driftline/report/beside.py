"""What papers printed for the cell that a run fills, and whether the run was as large as theirs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from driftline import published, registry

Numbers = dict[tuple[str, str], float]
"""By metric and statistic."""


def printed(card: Mapping[str, Any], label: str) -> dict[str, Numbers]:
    """What stands in papers for this method on the data, protocol and model of a card, by source."""
    benchmark, protocol = card["run"]["benchmark"], card["protocol"].get("protocol", "")
    method = published.printed_as(benchmark, label)
    found: dict[str, Numbers] = defaultdict(dict)
    for number in numbers(card, card["data"]["name"], protocol, card["run"]["model"]["name"]):
        if number.method == method:
            found[number.source][number.metric, number.stat] = number.value
    return found


def numbers(card: Mapping[str, Any], data: str, protocol: str, model: str | None = None) -> list[published.Published]:
    """What was printed for data under a protocol, to stand beside a run; nothing beside a user's own data."""
    return [] if is_private(card) else published.numbers(card["run"]["benchmark"], data, protocol, model)


def is_private(card: Mapping[str, Any]) -> bool:
    """Whether a run's data are a user's own files: no paper's numbers belong beside them.

    Class folders in a run of a paper's full size are taken for that paper's images, which have no dataset of their own.
    """
    name, settings = card["run"]["data"]["name"], card["run"]["data"]["settings"]
    if name in published.ANY_FILES or ":" in name:
        return name != "image-folders" or not full_scale(card)
    given = settings.get("files") or []
    files = [given] if isinstance(given, str) else given
    return any(PurePath(file).name not in published.FILES.get(name, ()) for file in files)


def cited(card: Mapping[str, Any], source: str) -> str:
    """How a source is named beside a run: with a warning if the run is not of its size."""
    return source if full_scale(card) else f"{source} (full scale)"


def full_scale(card: Mapping[str, Any]) -> bool:
    """Return whether a run has the sizes, network and grid of what was printed."""
    return bool(registry.get("benchmark", card["run"]["benchmark"]).is_full_scale(card))
