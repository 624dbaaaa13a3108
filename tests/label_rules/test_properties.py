"""Label rules on streams drawn by hypothesis: budgets, arrivals and shown labels against their definitions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from driftline import registry
from driftline.label_rules import LabelRule
from driftline.reveal import RevealPolicy
from driftline.seeds import Seed
from driftline.tasks import Classification
from driftline.types import Answers, Reveal, Samples, Step

pytest.importorskip("hypothesis")
from hypothesis import given, settings
from hypothesis import strategies as st

TASK = Classification(tuple("abcde"))
QUERIES = ("random-query", "margin-query", "uncertainty-query", "drift-query")
DELAYS = ("geometric-delay", "lognormal-delay", "weibull-delay")
SEEDS, SIZES = st.integers(0, 10_000), st.lists(st.integers(1, 40), min_size=1, max_size=20)


def rule(name: str, **given: Any) -> LabelRule:
    made: LabelRule = registry.get("label-rule", name)(**given)
    return made


def arrivals(rules: dict[str, LabelRule], sizes: list[int], seed: int, delay: int = 0) -> dict[int, tuple[int, int]]:
    """The step and the shown label of each sample whose label arrives, in steps of these sizes."""
    random, n = np.random.default_rng(seed), sum(sizes)
    scores = random.dirichlet(np.full(5, 0.5), n)
    samples, answers = Samples(np.arange(n)[:, None], random.integers(0, 5, n)), Answers(scores.argmax(axis=1), scores)
    policy, found, first = RevealPolicy(TASK, Reveal.LABELS, Seed(seed), delay=delay, rules=rules), {}, 0
    for k, size in enumerate(sizes):
        rows = slice(first, first + size)
        if (shown := policy(Step(k, str(k), samples[rows]), answers[rows])) is not None:
            assert not found.keys() & set(shown.x[:, 0].tolist())
            found |= {at: (k, y) for at, y in zip(shown.x[:, 0].tolist(), shown.y.tolist(), strict=True)}
        first += size
    return found


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(QUERIES), st.floats(0.01, 1), SIZES, SEEDS)
def test_no_prefix_of_a_stream_exceeds_the_budget(name: str, share: float, sizes: list[int], seed: int) -> None:
    asked = np.zeros(sum(sizes), int)
    asked[list(arrivals({"query": rule(name, share=share)}, sizes, seed))] = 1
    most = [math.ceil(share * n) for n in range(1, len(asked) + 1)]
    assert (np.cumsum(asked) <= most).all()
    if name == "random-query":
        assert asked.sum() >= math.floor(share * len(asked)) - 1  # and it is spent


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(DELAYS), min_size=1, max_size=3, unique=True), SIZES, SEEDS, st.integers(0, 5))
def test_labels_arrive_at_the_step_of_their_delays_and_not_after_the_end(
    names: list[str], sizes: list[int], seed: int, delay: int
) -> None:
    found = arrivals({name: rule(name) for name in names}, sizes, seed, delay)
    steps = np.repeat(np.arange(len(sizes)), sizes) + delay
    for name in names:
        alone = rule(name)
        alone.prepare(TASK, Seed(seed).child("labels", name))
        steps = steps + alone.delay(np.arange(len(steps)))
    expected = {at: step for at, step in enumerate(steps.tolist()) if step < len(sizes)}
    assert {at: step for at, (step, _) in found.items()} == expected


@settings(max_examples=25, deadline=None)
@given(st.floats(0, 0.99), SIZES, SEEDS)
def test_a_sample_has_the_same_shown_label_in_steps_of_any_size(rate: float, sizes: list[int], seed: int) -> None:
    def rules(**more: LabelRule) -> dict[str, LabelRule]:
        return {"noise": rule("symmetric-noise", rate=rate), **more}

    whole = arrivals(rules(), [sum(sizes)], seed)
    late = arrivals(rules(delay=rule("geometric-delay", mean=2)), sizes, seed)
    assert {at: y for at, (_, y) in late.items()} == {at: whole[at][1] for at in late}


@settings(max_examples=25, deadline=None)
@given(st.floats(0.2, 1), st.floats(0, 0.9), SIZES, SEEDS)
def test_every_answer_with_an_action_has_its_label(
    threshold: float, explore: float, sizes: list[int], seed: int
) -> None:
    acted = rule("acted-on", classes=("b", "d"), threshold=threshold, explore=explore)
    found = set(arrivals({"acted": acted}, sizes, seed))
    scores = np.random.default_rng(seed).dirichlet(np.full(5, 0.5), sum(sizes))
    action = np.isin(scores.argmax(axis=1), (1, 3)) & (scores.max(axis=1) >= threshold)
    assert set(np.flatnonzero(action)) <= found
    if explore == 0:
        assert found == set(np.flatnonzero(action))
