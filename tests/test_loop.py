from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from driftline import loop
from driftline.types import Answers, Probe, Samples, Step

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

    def learn(self, x: Any, y: Any) -> None:
        self.pages.append(("learn", int(x[0, 0])))

    def gauges(self) -> dict[str, float]:
        return {"size": 0.5}

    def finish(self) -> None:
        self.pages.append("finish")

    def __call__(self, step: Step, answers: Answers) -> Samples | None:
        self.pages.append(("reveal", step.index))
        return step.samples if step.index in self.reveals else None

    def due(self, step: Step | None) -> list[Probe]:
        self.pages.append(("due", None if step is None else step.index))
        return [PROBE] if step is not None or self.final else []

    def answered(self, step: Step, answers: Answers) -> None:
        self.pages.append(("answered", step.index))

    def gauged(self, step: Step, gauges: dict[str, float]) -> None:
        self.pages.append(("gauged", step.index, gauges["size"]))

    def probed(self, step: Step, probe: Probe, answers: Answers) -> None:
        self.pages.append(("probed", step.index, probe.name))

    def done(self, steps: int) -> None:
        self.pages.append(("done", steps))


def pages(diary: Diary, **settings: Any) -> list[Any]:
    loop.run(STREAM, diary, diary, diary, diary, after_step=diary.done, **settings)
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
