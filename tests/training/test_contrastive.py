"""Contrastive losses against hand-computed numbers, slow loops and finite differences, and wrong versions of them."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from driftline.models.mlp import mlp
from driftline.seeds import Seed
from driftline.testing.fixtures import small_network
from driftline.training.cached_features import classifier_layer, extract_features, features_with_frozen_head
from driftline.training.contrastive import (
    MoCo,
    ema_update,
    info_nce,
    nt_xent,
    projection_head,
    push_queue,
    sinkhorn,
    swav_loss,
)
from driftline.training.features import forward_with_features
from driftline.training.mac_counter import MacCounter


def some(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def slow_nt_xent(a: Tensor, b: Tensor, temperature: float) -> float:
    z = [v / v.norm() for v in [*a, *b]]
    n, total = len(a), 0.0
    for i in range(2 * n):
        similar = [math.exp(float(z[i] @ z[k]) / temperature) for k in range(2 * n)]
        partner = i + n if i < n else i - n
        total -= math.log(similar[partner] / (sum(similar) - similar[i]))
    return total / (2 * n)


def test_nt_xent_by_hand() -> None:
    # Four unit vectors: a1 = b1 = (1, 0), a2 = (0, 1), b2 = (0.6, 0.8); T = 0.5, so similarities count double.
    a, b = torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([[2.0, 0.0], [3.0, 4.0]])
    e = math.exp
    one = -math.log(e(2) / (e(0) + e(2) + e(1.2)))  # a1, and b1 alike
    a2 = -math.log(e(1.6) / (e(0) + e(0) + e(1.6)))
    b2 = -math.log(e(1.6) / (e(1.2) + e(1.6) + e(1.2)))
    assert float(nt_xent(a, b)) == pytest.approx((2 * one + a2 + b2) / 4, abs=1e-6)
    # With a pocket calculator: 0.4603 twice, 0.3392 and 0.8504.
    assert float(nt_xent(a, b)) == pytest.approx(0.5276, abs=1e-4)


@pytest.mark.parametrize("temperature", [0.1, 0.5, 2.0])
@pytest.mark.parametrize("n", [1, 2, 7])
def test_nt_xent_is_the_slow_loop(n: int, temperature: float) -> None:
    a, b = some(n, 5), some(n, 5, seed=1)
    assert float(nt_xent(a, b, temperature)) == pytest.approx(slow_nt_xent(a, b, temperature), rel=1e-9, abs=1e-12)
    assert float(nt_xent(a, b, temperature)) == pytest.approx(float(nt_xent(b, 3 * a, temperature)))


def with_itself(a: Tensor, b: Tensor, temperature: float) -> Tensor:
    z = normalize(torch.cat([a, b]), dim=1)
    return cross_entropy(z @ z.T / temperature, torch.arange(2 * len(a)).roll(len(a)))


def without_its_own_side(a: Tensor, b: Tensor, temperature: float) -> Tensor:
    logits = normalize(a, dim=1) @ normalize(b, dim=1).T / temperature
    return (cross_entropy(logits, torch.arange(len(a))) + cross_entropy(logits.T, torch.arange(len(a)))) / 2


def not_normalised(a: Tensor, b: Tensor, temperature: float) -> Tensor:
    z = torch.cat([a, b])
    logits = (z @ z.T / temperature).masked_fill(torch.eye(len(z), dtype=torch.bool), -torch.inf)
    return cross_entropy(logits, torch.arange(2 * len(a)).roll(len(a)))


@pytest.mark.parametrize("wrong", [with_itself, without_its_own_side, not_normalised])
def test_wrong_nt_xent_would_be_noticed(wrong: object) -> None:
    a, b = some(7, 5), some(7, 5, seed=1)
    assert abs(float(wrong(a, b, 0.5)) - slow_nt_xent(a, b, 0.5)) > 0.01  # type: ignore[operator]


def test_info_nce_by_hand() -> None:
    # q.k = 0.6, q.queue = 1 and 0; T = 0.5.
    query, key, queue = torch.tensor([[2.0, 0.0]]), torch.tensor([[3.0, 4.0]]), torch.eye(2)
    expected = -math.log(math.exp(1.2) / (math.exp(1.2) + math.exp(2) + 1))
    assert float(info_nce(query, key, queue, 0.5)) == pytest.approx(expected, abs=1e-6)
    assert float(info_nce(query, key, queue[:0], 0.5)) == 0.0


def test_the_gradient_of_info_nce_is_its_slope_and_keys_have_none() -> None:
    query, key, queue = some(3, 4).requires_grad_(), some(3, 4, seed=1).requires_grad_(), some(5, 4, seed=2)
    queue = normalize(queue, dim=1).requires_grad_()
    info_nce(query, key, queue, 0.3).backward()
    assert key.grad is None
    assert queue.grad is None
    step = 1e-6
    for i in range(3):
        for j in range(4):
            nudge = torch.zeros(3, 4, dtype=torch.float64)
            nudge[i, j] = step
            up, down = (float(info_nce(query.detach() + s * nudge, key, queue, 0.3)) for s in (1, -1))
            assert query.grad is not None
            assert float(query.grad[i, j]) == pytest.approx((up - down) / (2 * step), abs=1e-7)


def test_sinkhorn_by_hand() -> None:
    # exp(scores) = [[4, 1], [1, 1]]; columns to 1: [[.8, .5], [.2, .5]]; rows to 1: [[8/13, 5/13], [2/7, 5/7]].
    found = sinkhorn(torch.tensor([[4.0, 1.0], [1.0, 1.0]]).log(), epsilon=1.0, iterations=1)
    torch.testing.assert_close(found, torch.tensor([[8 / 13, 5 / 13], [2 / 7, 5 / 7]]))
    # In the limit the odds ratio stays 4 and both marginals are one: p / (1 - p) = 2.
    limit = sinkhorn(torch.tensor([[4.0, 1.0], [1.0, 1.0]]).log(), epsilon=1.0, iterations=100)
    torch.testing.assert_close(limit, torch.tensor([[2 / 3, 1 / 3], [1 / 3, 2 / 3]]))


def test_sinkhorn_gives_each_sample_one_and_each_prototype_its_share() -> None:
    scores = normalize(some(64, 16), dim=1) @ normalize(some(8, 16, seed=1), dim=1).T
    few, many = sinkhorn(scores), sinkhorn(scores, iterations=200)
    torch.testing.assert_close(few.sum(1), torch.ones(64, dtype=torch.float64))
    torch.testing.assert_close(many.sum(0), torch.full((8,), 8.0, dtype=torch.float64), rtol=1e-4, atol=0)
    off = [float((sinkhorn(scores, iterations=n).sum(0) - 8).abs().max()) for n in (3, 10, 30, 100)]
    assert off == sorted(off, reverse=True)
    # A prototype that all samples like more gets no more of them.
    torch.testing.assert_close(sinkhorn(scores + torch.tensor([1.0, *[0.0] * 7])), few)
    assert torch.isfinite(sinkhorn(torch.full((4, 3), 50.0))).all()


def plain_sinkhorn(scores: Tensor, epsilon: float, iterations: int) -> Tensor:
    """As printed in the paper's appendix: on probabilities, transposed."""
    q = torch.exp(scores / epsilon).T
    q /= q.sum()
    k, n = q.shape
    for _ in range(iterations):
        q = q / q.sum(1, keepdim=True) / k
        q = q / q.sum(0, keepdim=True) / n
    return (q * n).T


def test_sinkhorn_is_the_published_algorithm() -> None:
    scores = normalize(some(20, 6), dim=1) @ normalize(some(5, 6, seed=1), dim=1).T
    torch.testing.assert_close(sinkhorn(scores), plain_sinkhorn(scores, 0.05, 3))


def test_swapped_prediction_is_swapped_and_its_targets_are_constants() -> None:
    a, b, c = some(6, 4), some(6, 4, seed=1), normalize(some(3, 4, seed=2), dim=1)
    p, q = normalize(a, dim=1) @ c.T, normalize(b, dim=1) @ c.T
    expected = cross_entropy(p / 0.1, plain_sinkhorn(q, 0.05, 3)) + cross_entropy(q / 0.1, plain_sinkhorn(p, 0.05, 3))
    unswapped = cross_entropy(p / 0.1, plain_sinkhorn(p, 0.05, 3)) + cross_entropy(q / 0.1, plain_sinkhorn(q, 0.05, 3))
    torch.testing.assert_close(swav_loss(a, b, c), expected / 2)
    assert abs(float(swav_loss(a, b, c) - unswapped / 2)) > 0.01
    assert not sinkhorn(p.requires_grad_()).requires_grad


def test_momentum_update_by_hand() -> None:
    slow, fast = nn.Linear(1, 1), nn.Linear(1, 1)
    for layer, value in ((slow, 1.0), (fast, 3.0)):
        for weight in layer.parameters():
            nn.init.constant_(weight, value)
    ema_update(slow, fast, 0.75)
    assert [weight.item() for weight in slow.parameters()] == [1.5, 1.5]
    ema_update(slow, fast, 0.75)
    assert slow.weight.item() == 1.875
    assert fast.weight.item() == 3.0


def test_the_queue_is_first_in_first_out() -> None:
    queue = torch.empty(0, 1)
    seen: list[float] = []
    for k in range(5):
        keys = torch.tensor([[3.0 * k], [3.0 * k + 1], [3.0 * k + 2]])
        seen += keys[:, 0].tolist()
        queue = push_queue(queue, keys, size=7)
        assert queue[:, 0].tolist() == seen[-7:]


def contrast(momentum: float = 0.9) -> tuple[nn.Module, MoCo]:
    model = mlp((6,), 3, seed=Seed(1), width=4, depth=1)
    return model, MoCo(model, Seed(2), momentum=momentum, size=10, temperature=0.07)


def test_momentum_contrast_step_by_step() -> None:
    model, pairs = contrast()
    before = [weight.clone() for weight in pairs.key_network.parameters()]
    with torch.no_grad():
        classifier_layer(model).bias += 1.0
        model[1].weight += 1.0  # type: ignore[index, operator]
    a, b = some(4, 6).float(), some(4, 6, seed=1).float()
    assert pairs.loss(a, b).item() == 0.0  # nothing in the queue yet
    fast = [*model.parameters(), *pairs.projector.parameters()]
    for slow, old, new in zip(pairs.key_network.parameters(), before, fast, strict=True):
        torch.testing.assert_close(slow, 0.9 * old + 0.1 * new.detach())
    encoder, projector = pairs.key_network
    key = normalize(projector(forward_with_features(encoder, b)[1]), dim=1)
    torch.testing.assert_close(pairs.queue, key)
    assert pairs.loss(a, b).item() > 0
    pairs.loss(a, b)
    assert pairs.queue.shape == (10, 128)
    torch.testing.assert_close(pairs.queue.norm(dim=1), torch.ones(10))


def test_the_slow_network_never_receives_a_gradient() -> None:
    model, pairs = contrast()
    a, b = some(4, 6).float(), some(4, 6, seed=1).float()
    pairs.loss(a, b)
    pairs.loss(a, b).backward()
    assert all(weight.grad is None and not weight.requires_grad for weight in pairs.key_network.parameters())
    assert all(weight.grad is not None for weight in pairs.projector.parameters())
    # Were keys part of the graph, the network's weights would get another gradient.
    encoder = model[1]  # type: ignore[index]
    right = encoder.weight.grad.clone()  # type: ignore[union-attr, operator]
    model.zero_grad()
    query, key = (pairs.projector(features_with_frozen_head(model, view)) for view in (a, b))
    logits = torch.cat([(normalize(query) * normalize(key)).sum(1, keepdim=True), normalize(query) @ pairs.queue.T], 1)
    cross_entropy(logits / 0.07, torch.zeros(4, dtype=torch.long)).backward()
    assert not torch.allclose(encoder.weight.grad, right)  # type: ignore[union-attr, arg-type]


def test_features_are_what_the_last_layer_sees_and_it_gets_no_gradient() -> None:
    model, _ = contrast()
    x = some(4, 6).float()
    features = features_with_frozen_head(model, x)
    torch.testing.assert_close(classifier_layer(model)(features), model(x))
    features.square().sum().backward()
    assert all(weight.grad is None and weight.requires_grad for weight in classifier_layer(model).parameters())
    expected = model[1].weight.grad.clone()  # type: ignore[index, union-attr, operator]
    model.zero_grad()
    model[:-1](x).square().sum().backward()  # type: ignore[index]
    torch.testing.assert_close(model[1].weight.grad, expected)  # type: ignore[index]


def test_embedding_is_in_evaluation_mode_and_in_parts() -> None:
    model = small_network((8, 8, 1), 3, Seed(5)).train()
    x = torch.randint(256, (9, 8, 8, 1), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    found = extract_features(model, x.numpy(), batch=4)
    assert found.shape == (9, 64)
    assert model.training
    torch.testing.assert_close(found, extract_features(model, x.numpy()))


def test_a_pass_for_features_is_counted_forward_and_backward() -> None:
    model, _ = contrast()
    meter = MacCounter()
    meter.attach(model)
    features = features_with_frozen_head(model, some(4, 6).float())
    assert features.shape == (4, 4)
    assert meter.forward == 4 * (6 * 4 + 4 * 3)
    assert meter.backward == 0
    features.sum().backward()
    assert meter.backward == 4 * (6 * 4 + 4 * 3)  # gradients of the first layer's weights and of the last one's input


def test_a_projection_depends_on_its_seed_alone() -> None:
    state = torch.random.get_rng_state()
    one, same, other = (projection_head(4, Seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.equal(one[0].weight, same[0].weight)
    assert not torch.equal(one[0].weight, other[0].weight)
    assert [tuple(weight.shape) for weight in projection_head(32, Seed(0)).parameters()] == [
        (32, 32),
        (32,),
        (128, 32),
        (128,),
    ]
