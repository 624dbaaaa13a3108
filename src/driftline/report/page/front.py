"""The front page: the question of each benchmark, and the answer of the runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from driftline.report.analysis.groups import Group
from driftline.report.format import count_of
from driftline.report.page.section import Section

VISIBLE = 4  # answers of a benchmark; the rest are collapsed


@dataclass(frozen=True)
class FrontEntry:
    """A group of runs on the front page: the anchor of its section, its title, its answer and its size."""

    anchor: str
    title: str
    answer: str
    size: str


@dataclass(frozen=True)
class BenchmarkAnswers:
    """A benchmark with its question and the groups that answer it."""

    benchmark: str
    question: str
    entries: tuple[FrontEntry, ...]

    @property
    def visible(self) -> Sequence[FrontEntry]:
        return self.entries[:VISIBLE]

    @property
    def collapsed(self) -> Sequence[FrontEntry]:
        return self.entries[VISIBLE:]


def answers_by_benchmark(sections: Iterable[Section]) -> list[BenchmarkAnswers]:
    """Return the answers of the sections by benchmark, in the order of the page."""
    found: dict[tuple[str, str], list[FrontEntry]] = {}
    for section in sections:
        entry = FrontEntry(section.anchor, section.title, section.answer, size(section.table.group))
        found.setdefault((section.table.group.benchmark, section.question), []).append(entry)
    return [BenchmarkAnswers(benchmark, question, tuple(entries)) for (benchmark, question), entries in found.items()]


def size(group: Group) -> str:
    """Return the number of methods, seeds and runs of a group."""
    seeds = max(len(group.runs_of(method)) for method in group.methods)
    parts = ((len(group.methods), "method"), (seeds, "seed"), (len(group.runs), "run"))
    return ", ".join(count_of(count, noun) for count, noun in parts)
