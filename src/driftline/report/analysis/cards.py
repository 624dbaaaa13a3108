"""The protocol cards of a group without repetition: what all runs share, then what a method adds, then each run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from driftline.report.analysis.groups import Group

Content = dict[str, Any]


@dataclass(frozen=True)
class MethodCards:
    """What the cards of a method's runs have beyond the shared part: in common, and each run by seed and key."""

    method: str
    common: str
    runs: tuple[tuple[int, str, str], ...]


def cards(group: Group) -> tuple[str, list[MethodCards]]:
    """The part that all cards of a group share, and the rest by method, as YAML."""
    everywhere = shared([_said(run.card) for run in group.runs])
    found = []
    for method in group.methods:
        runs = group.runs_of(method)
        rests = [beyond(_said(run.card), everywhere) for run in runs]
        common = shared(rests)
        own = ((run.seed, run.key, to_yaml(beyond(rest, common))) for run, rest in zip(runs, rests, strict=True))
        found.append(MethodCards(method, to_yaml(common), tuple(own)))
    return to_yaml(everywhere), found


def _said(card: Mapping[str, Any]) -> Content:
    """A card without the hashes of the files beside it, which say nothing of the protocol."""
    return {key: value for key, value in card.items() if key != "files"}


def shared(contents: Sequence[Mapping[str, Any]]) -> Content:
    """What is the same in all of them, at any depth.

    >>> shared([{"run": {"seed": 0, "lr": 1}, "key": "a"}, {"run": {"seed": 1, "lr": 1}, "key": "b"}])
    {'run': {'lr': 1}}
    """
    first, *others = contents
    found: Content = {}
    for key, value in first.items():
        rest = [other.get(key, shared) for other in others]  # a function stands for what is missing: no card has one
        if all(one == value and type(one) is type(value) for one in rest):
            found[key] = value
        elif isinstance(value, dict) and all(isinstance(one, dict) for one in rest):
            found |= _unless_empty(key, shared([value, *rest]))
    return found


def beyond(content: Mapping[str, Any], known: Mapping[str, Any]) -> Content:
    """What a card says that is not known already.

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
    """A card as YAML; nothing if it is empty."""
    import yaml

    fast = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # ten times faster, where libyaml is there
    options: dict[str, Any] = {"sort_keys": False, "allow_unicode": True, "default_flow_style": None, "width": 100}
    return str(yaml.dump(content, Dumper=fast, **options)) if content else ""


def departures(group: Group) -> list[str]:
    """What any run does otherwise than the paper, each once."""
    return _each_once(note for run in group.runs for note in run.card["departures"])


def data_notes(group: Group) -> list[str]:
    """What is to be said of the data, each once."""
    return _each_once(note for run in group.runs for note in run.card["data"]["notes"])


def _each_once(notes: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(notes))


def _unless_empty(key: str, content: Content) -> Content:
    return {key: content} if content else {}
