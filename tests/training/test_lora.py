"""LoRA: the change of each layer by hand, what moves, and what does not."""

from __future__ import annotations

import copy
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import linear

import driftline
from driftline import registry
from driftline.errors import UserError
from driftline.learners.supervised.ewc import EWC
from driftline.learners.supervised.ft import FineTune
from driftline.report.analysis.run_command import run_command
from driftline.seeds import Seed
from driftline.spec import parse
from driftline.spec.methods import method_facts
from driftline.spec.settings import MethodChoice
from driftline.testing import check_learner
from driftline.testing.fixtures import SHAPE, TASK, samples
from driftline.training.lora import LowRank, add_adapters
from driftline.training.mac_counter import MacCounter
from driftline.training.regularization import trainable_parameters
from driftline.types import Network

RANK, ALPHA = 2, 6.0
X = torch.rand((7, 1, 8, 8), generator=torch.Generator().manual_seed(0))
METHODS = (
    *("ft", "erm", "ewc", "si", "swa", "a-gem", "gem", "mas", "der++", "er-ace", "gdumb", "icarl", "er+ewc", "mir"),
    *("irm-t", "coral-t", "standard-training", "lwf", "oltr", "simclr", "moco-nb", "retrain-all", "offline"),
)
"""Methods of each family that trains a network."""
SPEC = {
    "benchmark": "timeline",
    "data": {"name": "digits", "periods": 3},
    "model": "mlp",
    "methods": [{"name": "ft", "updates": 20}, {"name": "ft", "updates": 20, "lora": 2}],
    "timeline": {"resamples": 10, "upstream": 1, "upstream_updates": 50},
}


def plain(seed: Seed = Seed(1)) -> nn.Sequential:
    with seed.as_torch_default():
        block = [nn.Conv2d(1, 4, 3, 2, padding=2, dilation=2), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.3)]
        return nn.Sequential(*block, nn.Flatten(), nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 3)).eval()


def adapted(shape: tuple[int, ...] = SHAPE, outputs: int = 3, seed: Seed = Seed(1)) -> Network:
    model = plain(seed)
    add_adapters(model, RANK, ALPHA, Seed(5))
    return model


def merged(model: nn.Module) -> nn.Module:
    """A network without adapters, whose weights have their changes."""
    twin, weights = plain(), dict(model.named_parameters())
    with torch.no_grad():
        for name, weight in twin.named_parameters():
            weight.copy_(weights[name])
            if f"{name.removesuffix('weight')}lora.a" in weights and name.endswith("weight"):
                a, b = (weights[f"{name.removesuffix('weight')}lora.{factor}"] for factor in "ab")
                weight += ALPHA / RANK * (b @ a.flatten(1)).view(weight.shape)
        for name, buffer in twin.named_buffers():
            buffer.copy_(dict(model.named_buffers())[name])
    return twin


def test_the_worked_example() -> None:
    change = LowRank(torch.zeros(2, 3), 1, 2.0, Seed(0))
    with torch.no_grad():
        change.a.copy_(torch.tensor([[1.0, 2, 3]]))
        change.b.copy_(torch.tensor([[1.0], [0]]))
    total = torch.stack([change.scale * linear(linear(x, change.a), change.b) for x in torch.eye(3)], dim=1)
    assert total.tolist() == [[2, 4, 6], [0, 0, 0]]


def test_at_first_the_network_is_the_same_and_half_of_the_factors_are_not_zero() -> None:
    model = adapted()
    assert torch.equal(model(X), plain()(X))
    weights = dict(model.named_parameters())
    assert weights["5.lora.a"].shape == (2, 64)
    assert weights["0.lora.a"].shape == (2, 1, 3, 3)
    assert weights["0.lora.b"].shape == (4, 2)
    assert 0.9 / 8 < float(weights["5.lora.a"].detach().abs().max()) <= 1 / 8  # uniform in +-1/sqrt(inputs)
    assert not weights["5.lora.b"].any()
    model(X).square().sum().backward()
    assert not weights["5.lora.a"].grad.any()
    assert weights["5.lora.b"].grad.any()  # with both factors zero it would never learn
    assert weights["5.weight"].grad is None


def test_only_factors_and_head_are_trained() -> None:
    trained = {name: weight.numel() for name, weight in adapted().named_parameters() if weight.requires_grad}
    factors = {"0.lora.a": 2 * 9, "0.lora.b": 2 * 4, "5.lora.a": 2 * 64, "5.lora.b": 2 * 8}
    assert trained == {**factors, "7.weight": 24, "7.bias": 3}
    assert sum(weight.numel() for weight in trainable_parameters(adapted())) == sum(trained.values())


def rounds(learner: Any, model: nn.Module) -> dict[str, Tensor]:
    """The tensors of a learner's network after two deliveries."""
    learner.updates = min(getattr(learner, "updates", 3), 3)
    learner.train_every = learner.warmup_every = 10
    learner.seed = Seed(0)
    learner.prepare(model, TASK, samples(0))
    for k in (1, 2):
        learner.learn(samples(k).x, samples(k).y)
    learner.finish()
    found: dict[str, Tensor] = learner.model.state_dict()
    return found


@pytest.mark.parametrize("name", METHODS)
def test_nothing_else_moves_in_any_method(name: str) -> None:
    assert method_facts(name).trains_network
    model = adapted()
    before = copy.deepcopy(model.state_dict())
    after = rounds(registry.get("method", name)(), model)
    moved = {name for name, value in before.items() if not torch.equal(value, after[name])}
    assert {"0.lora.b", "5.lora.b"} <= moved <= {*(f"{k}.lora.{f}" for k in (0, 5) for f in "ab"), "7.weight", "7.bias"}


def test_merged_weights_answer_the_same() -> None:
    learner = FineTune(lr=0.01)
    rounds(learner, adapted())
    torch.testing.assert_close(merged(learner.model)(X), learner.model(X), rtol=1e-5, atol=1e-5)
    assert float((learner.model(X) - plain()(X)).detach().abs().max()) > 0.02
    doubled = copy.deepcopy(learner.model)
    for layer in doubled.modules():
        if isinstance(layer, LowRank):
            layer.scale *= 2
    assert float((merged(learner.model)(X) - doubled(X)).detach().abs().max()) > 0.002


def test_its_compute_is_that_of_the_factors_too() -> None:
    meter, model = MacCounter(), adapted()
    meter.attach(model)
    model(X).sum().backward()
    conv, hidden, head = 16 * 4 * 9, 64 * 8, 8 * 3
    factors = 16 * RANK * (9 + 4) + RANK * (64 + 8)
    assert meter.forward == 7 * (conv + hidden + head + factors)
    into_conv = 16 * RANK * (9 + 4) + 16 * RANK * 4  # both factors' gradients, and the one that passes through b
    assert meter.backward == 7 * (2 * head + hidden + 2 * RANK * (64 + 8) + into_conv)


def test_layers_that_take_none_are_frozen_and_a_network_without_others_is_refused() -> None:
    grouped = nn.Sequential(nn.Conv2d(2, 2, 3, groups=2), nn.Flatten(), nn.Linear(72, 3))
    with pytest.raises(UserError, match="this network has none that is trained"):
        add_adapters(grouped, 2, 2.0, Seed(0))
    attention = nn.Sequential(nn.Linear(8, 8), nn.TransformerEncoderLayer(8, 2, 16), nn.Linear(8, 3))
    add_adapters(attention, 2, 2.0, Seed(0))
    assert {name.rpartition(".lora")[0] for name, _ in attention.named_parameters() if ".lora." in name} == {
        *("0", "1.linear1", "1.linear2")
    }
    assert not attention[1].self_attn.in_proj_weight.requires_grad


@pytest.mark.parametrize("method", [FineTune, EWC])
def test_a_method_with_adapters_keeps_the_contract(method: Any) -> None:
    check_learner(partial(method, lr=0.05), models=[adapted])


def test_a_run_trains_adapters_and_says_so(tmp_path: Path) -> None:
    record = driftline.run(SPEC, runs=tmp_path)
    whole, low = sorted(record.runs, key=lambda run: run.method)
    assert [whole.method, low.method] == ["ft(updates=20)", "ft(updates=20, lora=2)"]
    assert low.card.run.lora == {"rank": 2, "alpha": 8.0}
    assert whole.card.run.lora is None
    assert whole.card.compute.upstream_macs == low.card.compute.upstream_macs
    assert low.card.compute.backward_macs < whole.card.compute.backward_macs
    assert """--set 'ft.lora={"alpha": 8.0, "rank": 2}'""" in run_command(low)


def test_a_key_counts_it_only_if_it_is_given() -> None:
    first, second = parse(SPEC).jobs("mlp")
    assert "lora" not in first.content()
    assert second.content()["lora"] == {"rank": 2, "alpha": 8.0}
    assert [job.label for job in parse({**SPEC, "methods": [{"name": "ft", "lora": {"alpha": 4}}]}).jobs("mlp")] == [
        'ft(lora={"rank": 8, "alpha": 4.0})'
    ]
    assert parse(SPEC).to_yaml().count("rank: 2") == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"methods": [{"name": "tent", "lora": 2}], "model": "conv-1"}, "tent does not train a network's weights"),
        ({"model": "linear"}, "this network has none that is trained"),
        ({"model": "sklearn.linear_model.SGDClassifier"}, "is not a network"),
        ({"timeline": {}}, "adapters change a trained network, and this one starts at random"),
        ({"methods": [{"name": "ft", "lora": 0}]}, "greater than or equal to 1"),
    ],
)
def test_where_it_makes_no_sense_it_is_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        driftline.run({**SPEC, "methods": [{"name": "ft", "lora": 2}], **changes}, runs=tmp_path)


@pytest.mark.parametrize("given", ["abc", True, 2.5])
def test_what_is_no_rank_is_told_in_a_sentence(given: object) -> None:
    with pytest.raises(UserError, match="give a rank, such as 8"):
        MethodChoice.model_validate({"name": "ft", "lora": given})
