"""Selection in every benchmark: no sample by which a setting is selected is one on which it is tested."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import driftline
from driftline import data, registry
from driftline.learners import Learner
from driftline.seeds import Seed
from driftline.types import Answers, Reveal, Samples

CASES: dict[str, dict[str, Any]] = {
    "open-world": {"data": "digit-symmetries", "class_size_law": "400/(9+r)"},
    "refinement": {"data": "digit-clusters", "episodes": 4, "upstream_set": 64, "held_out": 32},
    "seq-to-final": {"data": "color-digits", "shifts": "R", "sizes": [100, 100], "test": 100, "oracle": 0},
}  # timeline has its own test; in test-time the corruptions differ, not the images


def parts_of(scenario: Any) -> tuple[list[Samples], list[Samples]]:
    """Return the samples of the stream's steps, and those of its probes."""
    steps = [scenario.stream[k] for k in range(len(scenario.stream))]
    probes = [*scenario.initial_probes, *(probe for step in [*steps, None] for probe in scenario.probes.due(step))]
    return [step.samples for step in steps], [probe.samples for probe in probes]


def used(scenario: Any) -> tuple[set[int], set[int]]:
    """Return the ids of the samples in the stream and of those in its probes."""
    return tuple({int(one) for part in parts for one in part.id} for parts in parts_of(scenario))  # type: ignore


@pytest.mark.parametrize("name", CASES)
def test_no_sample_to_select_by_is_tested_on(name: str) -> None:
    given = dict(CASES[name])
    dataset, benchmark = data.load(given.pop("data")), registry.get("benchmark", name)
    options = benchmark.options(**given)
    row = {int(one): k for k, one in enumerate(dataset.samples.id)}
    originals = range(len(row)) if dataset.base is None else dataset.base.tolist()
    for seed in (0, 1):
        stream, probes = used(benchmark().build_scenario(dataset, options, Seed(seed)))
        tested = probes if name == "seq-to-final" else stream | probes  # there, only the final probe is scored
        selected_by = set.union(*used(benchmark().build_scenario(dataset, options.validation_options(), Seed(seed))))
        assert tested
        assert selected_by
        assert not {originals[row[one]] for one in selected_by} & {originals[row[one]] for one in tested}


@pytest.mark.parametrize(("corruptions", "selects"), [(None, True), ("contrast", True), ("contrast,saturate", False)])
def test_corruptions_that_are_tested_are_not_selected_by(corruptions: str | None, selects: bool) -> None:
    options = registry.get("benchmark", "test-time").options(order="gradual", corruptions=corruptions)
    assert (options.validation_options() is not None) is selects


ANSWERS: dict[str, dict[bytes, int]] = {}
"""The labels by input of the samples to select by and of those to test on."""


@dataclass
class Memorized(Learner):
    """Right on one part of the data and wrong on all others."""

    part: str = "validation"

    min_reveal = Reveal.INPUTS

    def predict(self, x: Any) -> Answers:
        known = ANSWERS[self.part]
        right = np.array([known.get(np.asarray(one).tobytes(), -1) for one in np.asarray(x)])
        return Answers(np.maximum(right, 0))


@dataclass
class Labeled(Memorized):
    """The same, for a benchmark that refuses methods without labels unless their model is pretrained."""

    min_reveal = Reveal.LABELS


GRADUAL = {"order": "gradual", "corruptions": "contrast", "images": 64, "images_per_point": 32}
TEST_TIME = {"data": "color-digits", **GRADUAL}


@pytest.mark.parametrize("name", [*CASES, "test-time"])
def test_a_candidate_that_only_the_test_labels_favor_is_not_selected(name: str) -> None:
    """The oracle takes the candidate that knows all test labels; honest selection has no use for it."""
    given = {**CASES.get(name, TEST_TIME), **({} if name == "seq-to-final" else {"upstream_updates": 1})}
    data_name, given = given.pop("data"), {**given, "resamples": 5}
    dataset, benchmark = data.load(data_name), registry.get("benchmark", name)
    options = benchmark.options(**given)
    for part, asked in (("test", options), ("validation", options.validation_options())):
        steps, probes = parts_of(benchmark().build_scenario(dataset, asked, Seed(0)))
        scored = probes if name == "seq-to-final" else [*steps, *probes]
        pairs = [pair for samples in scored for pair in zip(np.asarray(samples.x), samples.y, strict=True)]
        ANSWERS[part] = {x.tobytes(): int(y) for x, y in pairs}
    chosen = {}
    for rule in ("validation-streams", "oracle"):
        record = driftline.run(
            benchmark=name,
            data=data_name,
            model={"name": "mlp", "width": 4},
            methods=[Labeled if name == "seq-to-final" else Memorized],
            cache=False,
            selection={"grid": {"part": ["validation", "test"]}, "rule": rule, "seeds": 1},
            **{name: given},
        )
        chosen[rule] = record.runs[0].card.protocol["chosen"][0]["part"]
    assert chosen == {"validation-streams": "validation", "oracle": "test"}
