"""Every number that a paper printed and that is stored here is shown by some layout or by the ledger."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from driftline import registry
from driftline.benchmarks.refinement import benchmark as refinement
from driftline.benchmarks.seq_to_final import benchmark as seq_to_final
from driftline.benchmarks.test_time import benchmark as test_time
from driftline.ledger.catalog import papers
from driftline.published import numbers as published
from driftline.published.numbers import Published
from driftline.record.card import Card
from driftline.record.run import Record, Run
from driftline.report.analysis.groups import Group, groups

from ...conftest import COLUMNS, card

CCC = ("ccc easy", "ccc medium", "ccc hard")
SETTINGS = {
    "eata": {"entropy_fraction": 0.4, "penalty_weight": 2000.0},
    "rdumb": {"entropy_fraction": 0.4, "reset_every": 1000},
}
PATHS = {"order": ["fog"], "paths": {"fog": [[1.0, 0.0], [0.0, 0.0]]}, "mixed": False}
TESTED_ELSEWHERE = (", severity 5", "tasks")  # in test_test_time_corruptions.py and test_timeline_tasks.py
SEQUENCE = {"pretrain_classes": [0], "novel_classes": [1], "head": 2, "counts": [5, 3], "samples": 8, "sequence": 5}


def options(benchmark: str, protocol: str) -> dict[str, Any]:
    if benchmark == "timeline":
        return {"protocol": "fix" if protocol == "Eval-Fix" else "stream"}
    if benchmark == "seq-to-final":
        return seq_to_final.Options(shifts=protocol).model_dump(mode="json")
    if benchmark == "refinement":
        dynamics = dict(part.split("=") for part in protocol.split(", "))
        return refinement.Options(**dynamics).model_dump(mode="json")
    if benchmark == "test-time":
        order, _, difficulty = protocol.partition(" ")
        return {**test_time.Options().model_dump(mode="json"), "order": order, "difficulty": difficulty or "medium"}
    return {}


def settings(label: str) -> dict[str, Any]:
    """The settings in a label, as numbers where they are, and those that sweeps start from."""
    name, _, inside = label.partition("(")
    given = dict(one.split("=") for one in inside.rstrip(")").split(", ") if one)
    numbers = {key: float(value) for key, value in given.items() if value.replace(".", "").isdigit()}
    return {**SETTINGS.get(name, {}), **given, **numbers}


def filled(number: Published) -> Iterator[tuple[str, str, str, str]]:
    """The runs whose layouts have a place for a printed number: data, protocol, model and method."""
    if number.benchmark == "test-time":
        protocols = CCC if number.protocol == "ccc" else (number.protocol,)
        yield from ((number.data, name, number.model, number.method or "frozen") for name in protocols)
    elif number.benchmark == "open-world":  # one order of one sequence stands for all
        yield "imagenet-22k", "sequence 5", number.model or "resnet18", number.method or "ncm"
    else:
        yield number.data, number.protocol, number.model or "mlp", number.method


def made(benchmark: str) -> list[Group]:
    """Groups in memory with a run for every printed method in every place, and a score for every printed number."""
    rows: dict[tuple[str, str, str, str], dict[Any, tuple[Any, ...]]] = defaultdict(dict)
    for number in published._all():
        if number.benchmark == benchmark and not number.protocol.endswith(TESTED_ELSEWHERE):
            time = "5-shot 5-way" if number.metric == "episodic" else None
            for place in filled(number):
                score = (number.metric, number.stat, time, None, 0.5, 0.4, 0.6, 10, "examples")
                rows[place][number.metric, number.stat] = score
            if benchmark == "refinement":  # gains are over the model that never changes
                for method in ("frozen", number.method):
                    score = ("oec", "final", None, None, 0.5, 0.4, 0.6, 10, "examples")
                    rows[number.data, number.protocol, "mlp", method]["oec", "final"] = score
    runs = [run(benchmark, str(k), *place) for k, place in enumerate(rows)]
    scores = pd.DataFrame(
        [(str(k), *score) for k, by_metric in enumerate(rows.values()) for score in by_metric.values()],
        columns=["run", *COLUMNS],
    ).assign(seed=0)
    found = groups(Record(runs))
    for group in found:
        ours = scores[scores["run"].isin(group.labels)]
        vars(group)["scores"] = ours.assign(method=ours["run"].map(dict(group.labels)))
        vars(group)["summary"] = group.scores[group.scores["stat"] != "each"]
    return list(found)


def run(benchmark: str, key: str, data: str, protocol: str, model: str, method: str) -> Run:
    changes = {
        "run.benchmark": benchmark,
        "run.options": options(benchmark, protocol),
        "run.data": {"name": data, "settings": {}},
        "run.model": {"name": model, "settings": {}},
        "run.method": {"name": method.partition("(")[0], "settings": settings(method)},
        "data.name": data,
        "protocol": {"protocol": protocol, "schedule": PATHS, "composition": [], **SEQUENCE},
    }
    made = Run(Path(key))
    vars(made)["card"] = Card.model_validate(card(key, method, 0, changes))
    return made


def table(source: str) -> str:
    """A source without what is said of its size or network; Table 5 of RDumb is filled up from its Table 8."""
    for more in (" (full scale)", *(f" (ImageNet, {name})" for name in ("ResNet-18", "ResNet-50", "Conv-4"))):
        source = source.removesuffix(more)
    return source.replace("RDumb Tables 5 and 8", "RDumb Table 5")


@pytest.mark.parametrize("benchmark", ["timeline", "seq-to-final", "refinement", "test-time", "open-world"])
def test_no_printed_number_is_shown_nowhere(benchmark: str) -> None:
    stored = [number for number in published._all() if number.benchmark == benchmark]
    stored = [number for number in stored if not number.protocol.endswith(TESTED_ELSEWHERE)]
    assert stored
    found, shown = made(benchmark), defaultdict(Counter)
    for name in [name for name in registry.names("paper-table") if name.startswith(f"{benchmark}/")]:
        if name in ("test-time/corruptions", "timeline/tasks"):
            continue
        for grid in registry.get("paper-table", name)(found):
            for line in grid.rows:
                if line.source:
                    values = (entry.estimate.value for entry in line.cells if entry)
                    shown[table(line.source)].update(round(value, 8) for value in values)
    wanted: dict[str, Counter[float]] = defaultdict(Counter)
    for number in stored:
        unit = 1e9 if number.metric.startswith("macs") else 1
        wanted[number.source][round(number.value / unit, 8)] += 1
    for paper in papers():  # sizes, distances and values read off a figure have no layout, only the ledger
        for item in paper.items:
            for comparison in item.comparisons:
                for number in published.from_source(comparison.source):
                    counted = number.protocol.endswith(("sizes", "distances", "in 1970"))
                    if counted and f"{number.metric}:{number.stat}" in comparison.metrics:
                        shown[number.source][round(number.value, 8)] += 1
    missing = {source: counts - shown[source] for source, counts in wanted.items() if counts - shown[source]}
    assert not missing
