"""Published numbers that correspond to a run, and whether the run has the scale of the paper."""

from __future__ import annotations

from collections import defaultdict
from pathlib import PurePath

from driftline import registry
from driftline.io.user_objects import is_object
from driftline.published.numbers import ANY_FILES, FILES, Published, lookup, published_name
from driftline.record.card import Card

Numbers = dict[tuple[str, str], float]
"""By metric and statistic."""


def published_values(card: Card, label: str) -> dict[str, Numbers]:
    """Return the published values of a method on the data, protocol and model of a card, by source."""
    benchmark, protocol = card.run.benchmark, card.protocol.get("protocol", "")
    method = published_name(benchmark, label)
    values: dict[str, Numbers] = defaultdict(dict)
    for number in numbers(card, card.data.name, protocol, card.run.model.name):
        if number.method == method:
            values[number.source][number.metric, number.stat] = number.value
    return values


def numbers(card: Card, data: str, protocol: str, model: str | None = None) -> list[Published]:
    """Return the numbers published for data under a protocol; none if the run used private data."""
    return [] if is_private(card) else lookup(card.run.benchmark, data, protocol, model)


def is_private(card: Card) -> bool:
    """Return whether the data of a run are a user's own files, which no published number is about.

    Class folders in a full-scale run are assumed to be the images of the paper, which have no dataset of their own.
    """
    name, settings = card.run.data.name, card.run.data.settings
    if name in ANY_FILES or ":" in name or is_object(name):
        return name != "image-folders" or not full_scale(card)
    given = settings.get("files") or []
    files = [given] if isinstance(given, str) else given
    return any(PurePath(file).name not in FILES.get(name, ()) for file in files)


def source_note(card: Card, source: str) -> str:
    """Return the name of a source, marked if the run is smaller than the paper's."""
    return source if full_scale(card) else f"{source} (full scale)"


def full_scale(card: Card) -> bool:
    """Return whether a run has the sizes, network and grid of the paper."""
    return bool(registry.get("benchmark", card.run.benchmark).is_full_scale(card))
