"""SimCLR and what it shares with SwaV: two stages, written out by hand."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from driftline.learners.self_supervised.simclr import SimCLR
from driftline.learners.self_supervised.swav import SwaV
from driftline.learners.supervised.ft import FineTune
from driftline.models.mlp import mlp
from driftline.seeds import Seed
from driftline.tasks import Classification
from driftline.testing import check_learner, digest
from driftline.testing.fixtures import small_network
from driftline.training.contrastive import nt_xent, projection_head
from driftline.training.contrastive_views import SimCLRAugmentation
from driftline.training.fit import fit
from driftline.training.mac_counter import MacCounter

TASK = Classification(("a", "b", "c"))
RNG = np.random.default_rng(0)
PERIODS = [(RNG.integers(0, 256, (20 + k, 8, 8, 1), dtype=np.uint8), RNG.integers(0, 3, 20 + k)) for k in range(3)]


def network() -> nn.Module:
    return small_network((8, 8, 1), 3, Seed(5))


def trained(learner: Any, periods: list[Any], *, evaluated_at_end: bool = False, model: Any = None) -> Any:
    learner.seed, learner.evaluated_at_end = Seed(1), evaluated_at_end
    learner.prepare(network() if model is None else model, TASK)
    for x, y in periods:
        learner.learn(x, y)
    learner.finish()
    return learner


def weights(learner: Any) -> str:
    return digest(dict(learner.model.state_dict()))


def by_hand(on: str = "features") -> str:
    """Ten updates a period, nine of them on views; `on` says what is contrasted after the first period."""
    model, head = network(), projection_head(64, Seed(1).child("head"))
    optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=1e-3)

    def contrast(draws: Any, k: int, x: Tensor, y: Tensor) -> None:
        a, b = SimCLRAugmentation().two_views(x, draws)
        body = model if on == "logits" and k else model[:-1]  # type: ignore[index]
        through = nn.Identity() if on == "logits" and k else head
        step(nt_xent(through(body(a)), through(body(b)), 0.5))

    def supervise(x: Tensor, y: Tensor) -> None:
        step(nn.functional.cross_entropy(model(x), y))

    def step(loss: Tensor) -> None:
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    for k, (x, y) in enumerate(PERIODS):
        seed = Seed(1).child("lesson", k)
        first = partial(contrast, seed.child("views").torch(), k)
        fit(model, x, y, first, updates=9, batch=32, seed=seed.child("contrast"))
        fit(model, x, y, supervise, updates=1, batch=32, seed=seed)
    return digest(dict(model.state_dict()))


def test_simclr_is_two_stages_in_every_period() -> None:
    assert weights(trained(SimCLR(updates=10), PERIODS)) == by_hand()


def test_contrasting_logits_after_the_first_period_would_be_noticed() -> None:
    assert weights(trained(SimCLR(updates=10), PERIODS)) != by_hand(on="logits")


@pytest.mark.parametrize("method", [SimCLR, SwaV])
def test_without_its_first_stage_it_is_fine_tuning(method: type[SimCLR | SwaV]) -> None:
    assert weights(trained(method(updates=4, unlabeled_fraction=0.0), PERIODS)) == weights(
        trained(FineTune(updates=4), PERIODS)
    )


@pytest.mark.parametrize("method", [SimCLR, SwaV])
def test_the_first_stage_leaves_the_last_layer_alone_and_needs_no_labels(method: type[SimCLR | SwaV]) -> None:
    model, before = network(), network()
    learner = trained(method(updates=4, unlabeled_fraction=1.0), PERIODS, model=model)
    assert torch.equal(model[-1].weight, before[-1].weight)  # type: ignore[index]
    assert not torch.equal(model[0].weight, before[0].weight)  # type: ignore[index]
    others = [(x, (y + 1) % 3) for x, y in PERIODS]
    assert weights(learner) == weights(trained(method(updates=4, unlabeled_fraction=1.0), others))


@pytest.mark.parametrize(("updates", "first"), [(3000, 2700), (300, 270), (10, 9)])
def test_the_share_of_updates(updates: int, first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    for module in ("learners.self_supervised.contrastive_stage", "training.fit"):
        monkeypatch.setattr(f"driftline.{module}.fit", lambda *_, updates, **__: calls.append(updates))
    trained(SimCLR(updates=updates), PERIODS[:1])
    assert calls == [first, updates - first]


@pytest.mark.parametrize("method", [SimCLR, SwaV])
def test_where_the_protocol_waits_all_periods_are_one_training_round(method: type[SimCLR | SwaV]) -> None:
    x, y = (np.concatenate(parts) for parts in zip(*PERIODS, strict=True))
    pooled = trained(method(updates=4), PERIODS, evaluated_at_end=True)
    assert pooled.training_rounds == 1
    assert weights(pooled) == weights(trained(method(updates=4), [(x, y)]))


@pytest.mark.parametrize("method", [SimCLR, SwaV])
def test_a_fresh_start_depends_on_the_latest_period_alone(method: type[SimCLR | SwaV]) -> None:
    long, short = (trained(method(updates=4, start="fresh"), periods) for periods in (PERIODS, PERIODS[-1:]))
    assert weights(long) == weights(short)
    assert digest(dict(long.contrastive.head.state_dict())) == digest(dict(short.contrastive.head.state_dict()))


def test_both_views_are_counted() -> None:
    counts = []
    for learner in (SimCLR(updates=10), FineTune(updates=10)):
        model, meter = network(), MacCounter()
        meter.attach(model)
        trained(learner, PERIODS[:1], model=model)
        counts.append((meter.forward, meter.backward))
    (forward, backward), (forward_ft, backward_ft) = counts
    assert forward / forward_ft == pytest.approx(1.9)
    assert 1.7 < backward / backward_ft <= 1.9  # the last layer's weights have no gradient in the first stage


@pytest.mark.parametrize("method", [SimCLR, SwaV])
def test_tables_will_do(method: type[SimCLR | SwaV]) -> None:
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 200)
    x = rng.normal(y[:, None], 0.3, (200, 5)) * 100
    learner = trained(method(updates=300, lr=0.01), [(x, y)], model=mlp((5,), 3, seed=Seed(1), width=16))
    assert (learner.predict(x).prediction == y).mean() > 0.8


@pytest.mark.parametrize(("method", "chance"), [(SimCLR, np.log(63)), (SwaV, np.log(32))])
def test_contrast_becomes_better_than_chance(method: type[SimCLR | SwaV], chance: float) -> None:
    digits = load_digits()
    learner, losses = method(updates=100, unlabeled_fraction=1.0), []
    learner.seed = Seed(1)
    learner.prepare(mlp((64,), 10, seed=Seed(1), width=64, depth=1), Classification(tuple("0123456789")))
    loss = learner.contrastive.loss

    def noted(a: Tensor, b: Tensor) -> Tensor:
        losses.append(loss(a, b))
        return losses[-1]

    learner.contrastive.loss = noted
    learner.train(digits.data[:500], digits.target[:500])
    final = torch.stack(losses[-10:]).mean().item()
    assert final < losses[0].item() - 0.3
    assert final < chance - 0.5


def test_it_keeps_the_contract_where_it_starts_afresh() -> None:
    check_learner(partial(SimCLR, updates=2, start="fresh"), models=[small_network])
