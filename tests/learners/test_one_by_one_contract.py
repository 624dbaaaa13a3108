"""Answering several samples together must not use labels that come later."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from driftline import loop, registry
from driftline.errors import UserError
from driftline.learners.frozen import Frozen
from driftline.learners.prototypes.ncm import NearestClassMean
from driftline.reveal import LabelFeed
from driftline.testing import check_learner
from driftline.types import Answers

from .one_by_one import labels, prepared, stream


@dataclass
class Peeking(NearestClassMean):
    """Hears a block's labels before it answers it."""

    def answer_one_by_one(self, feed: LabelFeed) -> Answers:
        for _ in range(len(feed)):
            if (shown := feed.reveal_next(0)) is not None:
                self.learn(shown.x, shown.y)
        return self.predict(feed.x)


@dataclass
class Slow(NearestClassMean):
    """Answers a whole block with what it knew at its start."""

    def answer_one_by_one(self, feed: LabelFeed) -> Answers:
        answers = self.predict(feed.x)
        for prediction in answers.prediction:
            if (shown := feed.reveal_next(prediction)) is not None:
                self.learn(shown.x, shown.y)
        return answers


@dataclass
class Deaf(Frozen):
    """Does not ask for labels."""

    def answer_one_by_one(self, feed: LabelFeed) -> Answers:
        return self.predict(feed.x)


@pytest.mark.parametrize("wrong", [Peeking, Slow, Deaf])
def test_the_contract_catches(wrong: type) -> None:
    with pytest.raises(AssertionError, match="answer_one_by_one"):
        check_learner(wrong)


@pytest.mark.parametrize(("wrong", "reason"), [(Peeking, "but gave 0 before"), (Deaf, "gave 0 predictions before")])
def test_the_loop_refuses(wrong: type, reason: str) -> None:
    record: list[Answers] = []
    steps, reveal = stream(200, 5, 50), labels(5)
    recorder = SimpleNamespace(
        add_answers=lambda step, answers: record.append(answers), add_diagnostics=lambda step, gauges: None
    )
    with pytest.raises(UserError, match=reason):
        loop.run(steps, prepared(wrong(), 5), reveal, SimpleNamespace(due=lambda step: ()), recorder)  # type: ignore[arg-type]
    assert record == []


@dataclass
class Rewriting(NearestClassMean):
    """Rewrites its scores once it knows the labels."""

    def answer_one_by_one(self, feed: LabelFeed) -> Answers:
        answers = super().answer_one_by_one(feed)
        return replace(answers, scores=np.ones_like(answers.scores), distance=np.zeros(len(answers)))


def test_scores_rewritten_after_the_labels_are_not_recorded() -> None:
    def recorded(learner: NearestClassMean) -> Answers:
        record: list[Answers] = []
        recorder = SimpleNamespace(
            add_answers=lambda step, answers: record.append(answers), add_diagnostics=lambda *given: None
        )
        nothing = SimpleNamespace(due=lambda step: ())
        loop.run(stream(200, 5, 50), prepared(learner, 5), labels(5), nothing, recorder)  # type: ignore[arg-type]
        return Answers.concat(record)

    honest, rewritten = recorded(NearestClassMean()), recorded(Rewriting())
    assert honest.prediction.tolist() == rewritten.prediction.tolist()
    np.testing.assert_allclose(rewritten.scores, honest.scores, rtol=1e-5)
    np.testing.assert_allclose(rewritten.distance, honest.distance, rtol=1e-5)


LESSONS = {"train_every": 7, "epochs": 1, "batch": 4, "lr": 0.01}


@pytest.mark.parametrize("name", ["fine-tune", "standard-training", "lwf", "exemplar-tuning", "weight-imprinting"])
def test_the_contract_holds_with_training_rounds_in_the_middle_of_a_block(name: str) -> None:
    more = {"imprint_only_labels": 9} if name == "weight-imprinting" else {}
    check_learner(partial(registry.get("method", name), **LESSONS, **more))


def test_a_frozen_model_hears_every_label() -> None:
    revealed = []
    frozen = Frozen()
    frozen.predict = lambda x: Answers(np.zeros(len(x), int))  # type: ignore[method-assign]
    frozen.answer_one_by_one(LabelFeed(np.zeros((3, 1)), 0, lambda row: revealed.append(row.prediction.tolist())))
    assert revealed == [[0], [0], [0]]
