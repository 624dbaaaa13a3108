"""What is replayed and when, counted by hand; whom MIR chooses; and refining of texts."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import nn

from driftline import models
from driftline.io import serialization
from driftline.learners.replay.cft import CFT
from driftline.learners.replay.er import ER
from driftline.learners.replay.mir import MIR
from driftline.seeds import Seed
from driftline.tasks import TextToText
from driftline.testing import digest
from driftline.testing.fixtures import TASK, samples, small_network
from driftline.text_answers import join_answers
from driftline.training.mac_counter import MacCounter
from driftline.types import Samples

from ..unit import Unit, column, prepared, slopes, weights

LR = 0.3


class Notes:
    """Notes what it would be trained on."""

    def prepare(self, *args: Any) -> None:
        super().prepare(*args)  # type: ignore[misc]
        self._noted: list[np.ndarray] = []

    def train_epochs(self, x: Any, y: Any, seed: Seed) -> None:
        self._noted.append(np.asarray(x)[:, 0].astype(int))


class Noted(Notes, MIR):
    pass


class NotedER(Notes, ER):
    pass


UPSTREAM = Samples(-column([*range(1, 41)]), np.zeros(40, int))  # upstream inputs are negative, errors positive


def replayed(training_rounds: int, upstream: Samples | None = UPSTREAM, **how: Any) -> list[tuple[int, int, int]]:
    """How many errors, upstream samples and old errors each training round trains on; rounds of five errors."""
    learner = prepared((Noted if "ranking" in how else NotedER)(**how), Unit(0.1), upstream)
    for k in range(training_rounds):
        learner.learn(column([*range(100 * k + 1, 100 * k + 6)]), np.ones(5, int))
    found = []
    for k, x in enumerate(learner._noted):
        assert len(set(x)) == len(x)
        now = (x > 100 * k) & (x < 100 * (k + 1))
        found.append((int(now.sum()), int((x < 0).sum()), int(((x > 0) & ~now).sum())))
    return found


def test_the_schedule_and_the_quotas() -> None:
    assert replayed(6) == [(5, 0, 0), (5, 16, 5), (5, 16, 10), (5, 16, 15), (5, 16, 16), (5, 16, 16)]
    assert replayed(8, replay_every=3) == [(5, 0, 0)] * 3 + [(5, 16, 15)] + [(5, 0, 0)] * 2 + [(5, 16, 16), (5, 0, 0)]
    assert replayed(3, upstream=None) == [(5, 0, 0), (5, 0, 5), (5, 0, 10)]
    assert replayed(9, upstream_fraction=0.0)[-2:] == [(5, 0, 32), (5, 0, 32)]
    assert replayed(3, upstream_fraction=1.0)[-1] == (5, 32, 0)
    assert replayed(3, replay_size=8, upstream_fraction=0.25)[-1] == (5, 2, 6)
    assert replayed(3, upstream=UPSTREAM[:3])[-1] == (5, 3, 10)


@pytest.mark.parametrize("ranking", ["mir", "maxloss", "reverse", "before-loss"])
def test_rankings_choose_among_candidates(ranking: str) -> None:
    assert replayed(5, ranking=ranking)[-2:] == [(5, 16, 15), (5, 16, 16)]
    assert replayed(5, ranking=ranking, n_candidates=7)[-1] == (5, 7, 7)


def test_every_replay_draws_anew() -> None:
    learner = prepared(NotedER(replay_size=6, upstream_fraction=1.0), Unit(0.1), UPSTREAM)
    for k in range(3):
        learner.learn(column([k + 1.0]), np.ones(1, int))
    assert set(learner._noted[1]) != set(learner._noted[2])


def test_an_error_that_comes_again_is_remembered_once() -> None:
    learner = prepared(NotedER(), Unit(0.1))
    for y in (0, 1):
        learner.learn(column([3.0, 4.0]), np.array([y, y]))
    assert learner.memory.errors.x[:, 0].tolist() == [3, 4]
    assert learner.memory.errors.y.tolist() == [1, 1]


def test_two_stages_repeat_first_and_mixed_tuning_repeats_at_once() -> None:
    def order(tuning: Any) -> list[list[int]]:
        learner = prepared(NotedER(upstream_fraction=0.0, replay_mode=tuning), Unit(0.1))
        learner.learn(column([1.0]), np.ones(1, int))
        learner.learn(column([2.0]), np.ones(1, int))
        return [x.tolist() for x in learner._noted]

    assert order("two-stage") == [[1], [1], [2]]
    assert order("mixed") == [[1], [2, 1]]


def test_two_stages_by_hand() -> None:
    learner = prepared(ER(replay_mode="two-stage", lr=LR, epochs=1, optimizer="sgd"), Unit(0.2))
    w = 0.2
    for x, y in ((1.5, 1), (2.0, 0)):
        learner.learn(column([x]), np.array([y]))
    for x, y in ((1.5, 1), (1.5, 1), (2.0, 0)):
        w -= LR * slopes(w, np.array(x), np.array(y)).item()
    assert learner.model.w.item() == pytest.approx(w, rel=1e-5)


# A, B and C are the first training round. The second pushes the first weight down, which harms A; the first, once
# more, would push the second weight down, which harms B.
FIRST = np.array([[1, 0], [0, 1], [0, 3]], np.float32), np.array([1, 1, 0])
SECOND = np.array([[2, 0]], np.float32), np.array([0])


def check_interference(kind: Any) -> None:
    learner = prepared(kind(lr=0.1, epochs=1, optimizer="sgd", replay_size=1, upstream_fraction=0.0), Unit(0.3, 0.3))
    learner.learn(*FIRST)
    before = weights(learner)
    ((x, _),) = learner.replayed(*SECOND, Seed(0))
    assert weights(learner) == before
    assert x.tolist() == [[1, 0]]


class Lagged(MIR):
    """As the reference code: the virtual model is trained on the training round before."""

    def virtual_update(self, x: Any, y: Any, seed: Seed) -> nn.Module:
        return super().virtual_update(*FIRST, seed)


class Upside(MIR):
    def top_ranked(self, *args: Any) -> np.ndarray:
        self.ranking = "reverse"
        return super().top_ranked(*args)


def test_mir_repeats_what_the_present_errors_would_harm() -> None:
    check_interference(MIR)
    for wrong in (Lagged, Upside):
        with pytest.raises(AssertionError):
            check_interference(wrong)


def test_the_virtual_model_by_hand() -> None:
    learner = prepared(MIR(lr=0.1, optimizer="sgd", virtual_epochs=2), Unit(0.3))
    x, y = np.array([1.5, -0.5]), np.array([0, 1])
    for lr in (None, 0.4):
        learner.virtual_lr, w = lr, 0.3
        for _ in range(2):
            w -= (lr or 0.1) * slopes(w, x, y).mean()
        virtual = learner.virtual_update(x[:, None].astype(np.float32), y, Seed(0))
        assert virtual.w.item() == pytest.approx(w, rel=1e-5)
    assert learner.model.w.item() == pytest.approx(0.3)


def test_the_present_loss_needs_no_virtual_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MIR, "virtual_update", lambda *args: pytest.fail("not needed"))
    for make in (ER, partial(MIR, ranking="before-loss")):
        learner = prepared(make(epochs=1), small_network((8, 8, 1), 3, Seed(5)), task=TASK)
        for k in range(2):
            learner.learn(samples(k).x, samples(k).y)


def test_all_compute_is_counted() -> None:
    upstream = Samples(np.ones((20, 4), np.float32), np.zeros(20, int))
    learner = MIR(epochs=2, virtual_epochs=1, replay_size=16, n_candidates=10)
    network, meter = nn.Linear(4, 3, bias=False), MacCounter()
    meter.attach(network)
    prepared(learner, network, upstream)
    rng = np.random.default_rng(0)
    for _ in range(2):
        meter.forward = meter.backward = 0
        learner.learn(rng.random((8, 4)).astype(np.float32), rng.integers(0, 2, 8))
    trained, scored = 8 + 2 * (8 + 8 + 8), 2 * (10 + 8)  # samples that passed: virtual and two epochs; two models
    assert meter.forward == 12 * (trained + scored)
    assert meter.backward == 12 * trained


TEXTS = [
    f"Question : where is {name} ? Context : {name} is in {place} ."
    for name, place in (
        ("Ann", "Rome"),
        ("Bob", "Oslo"),
        ("Cleo", "Lima"),
        ("Dan", "Bern"),
        ("Eva", "Cairo"),
        ("Finn", "Quito"),
    )
]
PLACES = np.array([join_answers([text.split()[-2], f"in {text.split()[-2]}"]) for text in TEXTS], dtype=object)


def writer(make: Any = CFT, **how: Any) -> Any:
    model = models.build("small-bart", (), 0, Seed(0), width=32, layers=1, vocab_size=300)
    upstream = Samples(TEXTS[:2], PLACES[:2])
    model.build_vocabulary(upstream.x, TextToText().targets(upstream.y))
    return prepared(make(**{"lr": 3e-3, "epochs": 2, **how}), model, upstream, TextToText())


def test_texts_are_refined_and_survive_a_checkpoint(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    how: dict[str, Any] = {"penalty": "ewc", "n_neighbors": 1}
    whole, resumed = writer(MIR, **how), writer(MIR, **how)
    whole.learn(TEXTS[2:4], PLACES[2:4])
    serialization.save(whole.state(), tmp_path / "state")
    resumed.restore(serialization.load(tmp_path / "state"))
    for learner in (whole, resumed):
        learner.learn(TEXTS[3:], PLACES[3:])
    assert whole.memory.errors.x == TEXTS[2:]
    assert digest(whole.state()) == digest(resumed.state())


def test_errors_in_texts_are_mended() -> None:
    pytest.importorskip("transformers")
    learner = writer(epochs=80)
    learner.learn(TEXTS[2:], PLACES[2:])
    output = learner.predict(TEXTS[2:]).prediction
    assert learner._task.correct(output, PLACES[2:]).tolist() == [1, 1, 1, 1]
