"""The front page: the question that each benchmark asks, and what the runs answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from driftline.report.analysis.groups import Group

OPEN = 4  # so many answers of a benchmark are seen at once; the rest are folded


@dataclass(frozen=True)
class Entry:
    """A group of runs on the front page: where its section is, what it is called and what it answers."""

    anchor: str
    title: str
    answer: str
    size: str


@dataclass(frozen=True)
class Chapter:
    """A benchmark with its question and the groups that answer it."""

    benchmark: str
    question: str
    entries: tuple[Entry, ...]

    @property
    def seen(self) -> Sequence[Entry]:
        return self.entries[:OPEN]

    @property
    def folded(self) -> Sequence[Entry]:
        return self.entries[OPEN:]


def chapters(sections: Iterable[Mapping[str, Any]]) -> list[Chapter]:
    """The sections by benchmark, in the order of the page."""
    found: dict[tuple[str, str], list[Entry]] = {}
    for section in sections:
        entry = Entry(section["anchor"], section["title"], section["answer"], size(section["table"].group))
        found.setdefault((section["benchmark"], section["question"]), []).append(entry)
    return [Chapter(benchmark, question, tuple(entries)) for (benchmark, question), entries in found.items()]


def size(group: Group) -> str:
    """How much a group holds, in few words."""
    seeds = max(len(group.runs_of(method)) for method in group.methods)
    parts = ((len(group.methods), "method"), (seeds, "seed"), (len(group.runs), "run"))
    return ", ".join(f"{count} {name}{'' if count == 1 else 's'}" for count, name in parts)
