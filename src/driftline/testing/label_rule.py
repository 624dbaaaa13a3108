"""The contract of a label rule."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path

import numpy as np

from driftline.io import serialization
from driftline.io.serialization import digest
from driftline.label_rules import LabelRule, Query
from driftline.reveal import RevealedLabels, RevealPolicy
from driftline.seeds import Seed
from driftline.testing.fixtures import TASK
from driftline.testing.inspect import can_reach, no_global_randomness
from driftline.types import Answers, Reveal, Samples, Step

Make = Callable[[], LabelRule]
Arrivals = list[list[tuple[int, int]]]
"""For each sample that was answered, the positions and labels that arrived then."""

SIZE, BLOCK, SEED = 240, 12, Seed(917_201)


def check_label_rule(make: Make) -> None:
    """Check the contract of the label rule that `make()` returns, on a stream of 240 samples of three classes.

    - Which labels arrive, and when, depends on the seed, the answers and the labels that arrived before; a label that
      never arrives can be any other one without effect. Global random generators are not used.
    - No label arrives before its sample was answered, none arrives twice, and a shown label is one of the classes.
    - What is revealed are copies, and the true labels stay as they are, so that scores never see a wrong one.
    - A query never asks for more labels than its budget allows, at any moment.
    - Saved after any step and restored, it continues as if never interrupted.
    - Steps of one sample give the same as samples one by one. Unless the rule learns from labels or makes them late,
      larger steps give the same labels.
    """
    name = type(make()).__name__
    singly = _one_by_one(make)
    again = _one_by_one(make)
    assert singly == again, f"{name}: the same seed and answers do not give the same labels"
    _check_times(name, singly)
    _check_hidden_labels(name, make, singly)
    _check_budget(name, make, singly)
    _check_resumed(name, make)
    steps, labels = _in_steps(make, 1)
    assert steps == singly, f"{name}: steps of one sample do not give the same labels as samples one by one"
    if type(make()).observe is LabelRule.observe and not make().delays:
        blocks, _ = _in_steps(make, BLOCK)
        found = sorted(pair for pairs in blocks for pair in pairs)
        assert found == sorted(pair for pairs in singly for pair in pairs), (
            f"{name}: labels depend on the size of steps"
        )
    _check_copies(name, labels)


def _samples() -> tuple[Samples, Answers]:
    """Return samples whose input is their position, and answers of which six in ten are right."""
    random = np.random.default_rng(5)
    y = random.integers(0, TASK.width, SIZE)
    scores = random.dirichlet(np.ones(TASK.width), SIZE)
    lifted = scores + 0.6 * np.eye(TASK.width)[y] * random.random((SIZE, 1))
    scores = lifted / lifted.sum(axis=1, keepdims=True)
    return Samples(np.arange(SIZE)[:, None], y), Answers(scores.argmax(axis=1), scores)


def _policy(make: Make) -> RevealPolicy:
    rule = make()
    with no_global_randomness(f"{type(rule).__name__}: prepare"):
        return RevealPolicy(TASK, Reveal.LABELS, SEED, rules={"rule": rule})


def _one_by_one(make: Make, y: np.ndarray | None = None) -> Arrivals:
    """Return the labels that arrive after each sample, one by one, with the true or with other labels."""
    samples, answers = _samples()
    samples = samples if y is None else Samples(samples.x, y)
    with no_global_randomness(type(make()).__name__):
        feed = _policy(make).feed(Step(0, "0", samples, one_by_one=True))
        return [_pairs(feed.reveal_next(row)) for row in answers.rows()]


def _in_steps(make: Make, size: int) -> tuple[Arrivals, list[tuple[RevealedLabels, Samples]]]:
    """Return the labels that arrive after each step of this size, and what was revealed beside the samples."""
    samples, answers = _samples()
    policy, found, revealed = _policy(make), [], []
    for k, first in enumerate(range(0, SIZE, size)):
        rows = slice(first, first + size)
        step = Step(k, str(k), samples[rows])
        before = digest([step.samples.x, step.samples.y])
        shown = policy(step, answers[rows])
        after = digest([step.samples.x, step.samples.y])
        assert before == after, f"{type(make()).__name__}: the true labels of a step are changed"
        found.append(_pairs(shown))
        revealed += [(shown, step.samples)] if shown is not None else []
    return found, revealed


def _pairs(shown: RevealedLabels | None) -> list[tuple[int, int]]:
    return [] if shown is None else list(zip(shown.x[:, 0].tolist(), shown.y.tolist(), strict=True))


def _check_times(name: str, arrivals: Arrivals) -> None:
    seen: set[int] = set()
    for turn, pairs in enumerate(arrivals):
        for position, label in pairs:
            assert position <= turn, f"{name}: the label of sample {position} arrives after only {turn + 1} answers"
            assert position not in seen, f"{name}: the label of sample {position} arrives twice"
            assert 0 <= label < TASK.width, f"{name}: {label} is not a class"
            seen.add(position)


def _check_hidden_labels(name: str, make: Make, arrivals: Arrivals) -> None:
    arrived = {position for pairs in arrivals for position, _ in pairs}
    truth = _samples()[0].y
    hidden = np.array([position not in arrived for position in range(SIZE)])
    other = np.where(hidden, (truth + 1) % TASK.width, truth)
    assert _one_by_one(make, other) == arrivals, f"{name}: labels that never arrive decide which labels do"


def _check_budget(name: str, make: Make, arrivals: Arrivals) -> None:
    rule = make()
    if not isinstance(rule, Query):
        return
    asked = accumulate(len(pairs) for pairs in arrivals)
    for turn, n in enumerate(asked):
        most = math.ceil(rule.share * (turn + 1) - 1e-9)
        assert n <= most, f"{name}: {n} labels of {turn + 1} samples, with a budget of {rule.share:.0%}"


def _check_resumed(name: str, make: Make) -> None:
    samples, answers = _samples()
    expected, _ = _in_steps(make, BLOCK)
    policy = _policy(make)
    for k in range(SIZE // BLOCK):
        rows = slice(k * BLOCK, (k + 1) * BLOCK)
        with tempfile.TemporaryDirectory() as folder:
            serialization.save(policy.state(), Path(folder) / "state")
            policy = _policy(make)
            policy.restore(serialization.load(Path(folder) / "state"))
        found = _pairs(policy(Step(k, str(k), samples[rows]), answers[rows]))
        assert found == expected[k], f"{name}: interrupted before step {k}, it does not continue in the same way"


def _check_copies(name: str, revealed: list[tuple[RevealedLabels, Samples]]) -> None:
    for shown, samples in revealed:
        reached = can_reach([shown.x, shown.y], [samples.y])
        assert not reached, f"{name}: what is revealed shares memory with the labels of the stream"
