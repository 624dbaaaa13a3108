"""Protocol cards of a group without repetition: the part shared by all runs, by a method, and the rest of each run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from driftline.record.card import Card
from driftline.report.analysis.groups import Group
from driftline.types import JsonObject, Settings

Content = JsonObject


@dataclass(frozen=True)
class MethodCards:
    """Cards of a method without the part that all methods share: the common part, and each run by seed and key."""

    method: str
    common: str
    runs: tuple[tuple[int, str, str], ...]


def cards(group: Group) -> tuple[str, list[MethodCards]]:
    """Return the part that all cards of a group share, and the rest by method, as YAML."""
    everywhere = shared([_without_files(run.card) for run in group.runs])
    found = []
    for method in group.methods:
        runs = group.runs_of(method)
        rests = [beyond(_without_files(run.card), everywhere) for run in runs]
        common = shared(rests)
        own = ((run.seed, run.key, to_yaml(beyond(rest, common))) for run, rest in zip(runs, rests, strict=True))
        found.append(MethodCards(method, to_yaml(common), tuple(own)))
    return to_yaml(everywhere), found


def _without_files(card: Card) -> Content:
    """Return a card without the hashes of its files."""
    return {key: value for key, value in card.to_dict().items() if key != "files"}


def shared(contents: Sequence[Settings]) -> Content:
    """Return what is the same in all mappings, at any depth.

    >>> shared([{"run": {"seed": 0, "lr": 1}, "key": "a"}, {"run": {"seed": 1, "lr": 1}, "key": "b"}])
    {'run': {'lr': 1}}
    """
    first, *others = contents
    found: Content = {}
    for key, value in first.items():
        rest = [other.get(key, shared) for other in others]  # a function marks a missing key: no card holds one
        if all(one == value and type(one) is type(value) for one in rest):
            found[key] = value
        elif isinstance(value, dict) and all(isinstance(one, dict) for one in rest):
            found |= _unless_empty(key, shared([value, *rest]))
    return found


def beyond(content: Settings, known: Settings) -> Content:
    """Return the part of a card that is not in `known`.

    >>> beyond({"run": {"seed": 1, "lr": 1}, "key": "b"}, {"run": {"lr": 1}})
    {'run': {'seed': 1}, 'key': 'b'}
    """
    found: Content = {}
    for key, value in content.items():
        if key not in known:
            found[key] = value
        elif isinstance(value, dict):
            found |= _unless_empty(key, beyond(value, known[key]))
    return found


def to_yaml(content: Content) -> str:
    """Return a card as YAML; nothing if it is empty."""
    import yaml

    fast = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # ten times faster, if libyaml is installed
    options: JsonObject = {"sort_keys": False, "allow_unicode": True, "default_flow_style": None, "width": 100}
    return str(yaml.dump(content, Dumper=fast, **options)) if content else ""


def departures(group: Group) -> list[str]:
    """Return the departures from the paper of all runs, each once."""
    return _each_once(note for run in group.runs for note in run.card.departures)


def data_notes(group: Group) -> list[str]:
    """Return the notes about the data of all runs, each once."""
    return _each_once(note for run in group.runs for note in run.card.data.notes)


def _each_once(notes: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(notes))


def _unless_empty(key: str, content: Content) -> Content:
    return {key: content} if content else {}
