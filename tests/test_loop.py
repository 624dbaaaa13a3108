from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from driftline import loop, registry
from driftline.engine.stages.compute_budget import BudgetedLearner
from driftline.learners.base import Learner, is_built_in
from driftline.reveal import RevealPolicy
from driftline.seeds import Seed
from driftline.tasks import Classification
from driftline.training.mac_counter import MacCounter
from driftline.types import Answers, Probe, Reveal, Samples, Step

STREAM = [Step(k, f"t{k}", Samples(np.full((2, 1), k), np.array([0, 1]))) for k in range(3)]
PROBE = Probe("p", Samples(np.full((1, 1), 9), np.array([0])))


class Diary:
    """Plays every part, and writes down what it was asked."""

    def __init__(self, reveals: tuple[int, ...] = (0, 1, 2), final: bool = True) -> None:
        self.pages: list[Any] = []
        self.reveals, self.final = reveals, final

    def answer(self, x: Any) -> Answers:
        self.pages.append(("answer", int(x[0, 0])))
        return Answers(np.zeros(len(x), int))

    def predict(self, x: Any) -> Answers:
        self.pages.append(("predict", int(x[0, 0])))
        return Answers(np.zeros(len(x), int))

    def receive(self, shown: Any) -> None:
        self.pages.append(("learn", int(shown.x[0, 0])))

    def diagnostics(self) -> dict[str, float]:
        return {"size": 0.5}

    def finish(self) -> None:
        self.pages.append("finish")

    def __call__(self, step: Step, answers: Answers) -> Samples | None:
        self.pages.append(("reveal", step.index))
        return step.samples if step.index in self.reveals else None

    def due(self, step: Step | None) -> list[Probe]:
        self.pages.append(("due", None if step is None else step.index))
        return [PROBE] if step is not None or self.final else []

    def add_answers(self, step: Step, answers: Answers) -> None:
        self.pages.append(("answered", step.index))

    def add_diagnostics(self, step: Step, diagnostics: dict[str, float]) -> None:
        self.pages.append(("gauged", step.index, diagnostics["size"]))

    def add_probe(self, step: Step, probe: Probe, answers: Answers) -> None:
        self.pages.append(("probed", step.index, probe.name))

    def done(self, steps: int) -> None:
        self.pages.append(("done", steps))


def pages(diary: Diary, **settings: Any) -> list[Any]:
    loop.run(STREAM, diary, diary, diary, diary, on_step=diary.done, **settings)
    return diary.pages


def one_step(k: int, learns: bool = True) -> list[Any]:
    return [
        ("answer", k),
        ("answered", k),
        ("reveal", k),
        *([("learn", k)] if learns else []),
        ("gauged", k, 0.5),
        ("due", k),
        ("predict", 9),
        ("probed", k, "p"),
        ("done", k + 1),
    ]


END = ["finish", ("due", None), ("predict", 9), ("probed", 2, "p")]


def test_answer_then_reveal_then_learn_then_probe() -> None:
    assert pages(Diary()) == [*one_step(0), *one_step(1), *one_step(2), *END]


def test_no_labels_no_lesson() -> None:
    assert pages(Diary(reveals=(1,))) == [*one_step(0, False), *one_step(1), *one_step(2, False), *END]


@pytest.mark.parametrize("start", [1, 2, 3])
def test_a_run_goes_on_where_it_was_stopped(start: int) -> None:
    assert pages(Diary(), start=start) == [page for k in range(start, 3) for page in one_step(k)] + END


def test_no_probes_at_the_end_unless_due() -> None:
    assert pages(Diary(final=False))[-2:] == ["finish", ("due", None)]


def test_samples_that_come_one_by_one_are_answered_before_their_label_is_told() -> None:
    class Echo(Learner):
        """Answers with the label that was revealed last."""

        latest = 7

        def predict(self, x: Any) -> Answers:
            return Answers(np.full(len(x), self.latest))

        def learn(self, x: Any, y: Any) -> None:
            self.latest = int(y[-1])

    task = Classification(tuple("abcdefgh"))
    add_answers: list[list[int]] = []
    record = SimpleNamespace(
        add_answers=lambda step, answers: add_answers.append(answers.prediction.tolist()),
        add_diagnostics=lambda step, gauges: None,
    )
    steps = [
        Step(0, "0", Samples(np.zeros((3, 1)), np.array([1, 2, 3])), one_by_one=True),
        Step(1, "1", Samples(np.zeros((2, 1)), np.array([4, 5])), one_by_one=True),
        Step(2, "2", Samples(np.zeros((2, 1)), np.array([6, 7]))),
    ]
    reveal = RevealPolicy(task, Reveal.LABELS, Seed(0))
    loop.run(steps, Echo(), reveal, SimpleNamespace(due=lambda step: ()), record)
    assert add_answers == [[7, 1, 2], [3, 4], [5, 5]]


class Boaster(Learner):
    """Claims to be one of the package's methods, and improves its scores once it knows the labels."""

    __module__ = "driftline.learners.frozen"

    def is_built_in(self) -> bool:
        return True

    def answer_one_by_one(self, feed: Any) -> Answers:
        labels = [int(feed.reveal_next(0).y[0]) for _ in feed.x]
        return Answers(np.zeros(len(labels), int), scores=np.eye(2)[labels])


@pytest.mark.parametrize("wrap", [lambda learner: learner, lambda learner: BudgetedLearner(learner, MacCounter())])
def test_only_methods_of_the_package_are_trusted_for_scores(wrap: Any) -> None:
    kept: list[Answers] = []
    record = SimpleNamespace(add_answers=lambda step, answers: kept.append(answers), add_diagnostics=lambda *_: None)
    steps = [Step(0, "0", Samples(np.zeros((2, 1)), np.array([0, 1])), one_by_one=True)]
    reveal = RevealPolicy(Classification(("a", "b")), Reveal.LABELS, Seed(0))
    loop.run(steps, wrap(Boaster()), reveal, SimpleNamespace(due=lambda step: ()), record)
    assert kept[0].prediction.tolist() == [0, 0]
    assert kept[0].scores is None


def test_every_registered_method_is_known_as_such() -> None:
    methods = [registry.get("method", name) for name in registry.names("method")]
    assert len(methods) > 50
    assert [one for one in methods if not is_built_in(getattr(one, "func", one))] == []


@pytest.mark.parametrize(("batch_dependent", "asked"), [(False, [[1], []]), (True, [[0, 1], [0, 1]])])
def test_of_a_probe_about_errors_the_right_answers_are_left_out(batch_dependent: bool, asked: list[list[int]]) -> None:
    class Zero(Learner):
        """Answers 0."""

        @property
        def batch_dependent(self) -> bool:
            return batch_dependent

        def predict(self, x: Any) -> Answers:
            seen.append(x.tolist())
            return Answers(np.zeros(len(x), int))

    steps = [Step(k, str(k), Samples(np.array([0, 1]), np.array([0, 1 - k]))) for k in range(2)]  # then both are right
    probes = SimpleNamespace(due=lambda step: [Probe("now", step.samples, errors_only=True)] if step else [])
    seen: list[list[int]] = []
    recorded: list[int] = []
    recorder: Any = SimpleNamespace(
        add_answers=lambda *_: None,
        add_probe=lambda step, probe, answers: recorded.append(len(probe.samples)),
        add_diagnostics=lambda *_: None,
    )
    loop.run(steps, Zero(), RevealPolicy(Classification(("a", "b")), Reveal.INPUTS, Seed(0)), probes, recorder)
    assert recorded == [len(rows) for rows in asked if rows]
    assert seen == [rows for first, again in zip([[0, 1]] * 2, asked, strict=True) for rows in (first, again) if rows]
