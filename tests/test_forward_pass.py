"""Activation checkpointing gives the same gradients to the bit; compilation the same outputs up to rounding."""

from __future__ import annotations

import copy
import threading
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn

from driftline import device, forward_pass, models
from driftline.device import DeviceSettings, place
from driftline.errors import UserError
from driftline.forward_pass import as_written, blocks
from driftline.seeds import Seed
from driftline.spec import parse
from driftline.spec.keys import run_key
from driftline.training.features import forward_with_features
from driftline.training.mac_counter import MacCounter, count_macs

CHECKPOINTED = DeviceSettings(name="cpu", checkpoint_activations=True)
COMPILED = DeviceSettings(name="cpu", compile=True)
X = torch.rand(6, 3, 32, 32, generator=torch.Generator().manual_seed(0))


class Residual(nn.Module):
    """A block with batch norm and dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm, self.dropout = nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.dropout(self.norm(self.linear(x)).relu())


def residual_network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), Residual(), Residual(), nn.Linear(4, 2))


def placed(network: nn.Module, settings: DeviceSettings) -> nn.Module:
    with device.use(settings):
        return place(copy.deepcopy(network))


def trained(network: nn.Module, x: Tensor) -> tuple[dict[str, Tensor], int]:
    """Return gradients, buffers and the random state after a training step, and the bytes it keeps."""
    kept = 0

    def pack(tensor: Tensor) -> Tensor:
        nonlocal kept
        kept += tensor.nbytes
        return tensor

    torch.manual_seed(1)
    network.train()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = network(x).square().sum()
    network.eval()  # what comes after the pass does not change its repetition
    network.requires_grad_(False)
    thread = threading.Thread(target=loss.backward)  # accelerators have a thread of their own for it
    thread.start()
    thread.join()
    network.requires_grad_(True)
    gradients = {name: weight.grad for name, weight in network.named_parameters() if weight.grad is not None}
    return {**gradients, **dict(network.named_buffers()), "random": torch.get_rng_state()}, kept


@pytest.mark.parametrize(
    ("name", "width", "n_blocks", "share"),
    [("resnet20", 4, 9, 0.4), ("dense-1", 8, 18, 0.6), ("conv-2", 4, 4, 0.8)],
)
def test_checkpointed_gradients_are_equal_to_the_bit_in_less_memory(
    name: str, width: int, n_blocks: int, share: float
) -> None:
    network = models.build(name, (32, 32, 3), 10, Seed(0), width=width)
    checkpointed = placed(network, CHECKPOINTED)
    assert len(blocks(checkpointed)) == n_blocks
    (expected, all_kept), (found, kept) = trained(network, X), trained(checkpointed, X)
    assert expected.keys() == found.keys()
    for key, value in expected.items():
        assert torch.equal(value, found[key]), key
    assert kept < share * all_kept


def test_dropout_is_drawn_once_and_running_statistics_move_once() -> None:
    network, x = residual_network(), torch.randn(8, 3, generator=torch.Generator().manual_seed(0))
    checkpointed = copy.deepcopy(placed(network, CHECKPOINTED))  # a copy recomputes its own blocks
    expected, found = trained(network, x)[0], trained(checkpointed, x)[0]
    assert found["1.norm.num_batches_tracked"] == 1
    for key, value in expected.items():
        assert torch.equal(value, found[key]), key


def test_checkpointing_changes_neither_names_nor_counts_nor_keys() -> None:
    network = residual_network()
    checkpointed, x = placed(network, CHECKPOINTED), torch.ones(8, 3)
    assert list(network.state_dict()) == list(checkpointed.state_dict())
    assert count_macs(network, (x,), {}, True) == count_macs(checkpointed, (x,), {}, True)

    def key(**settings: Any) -> str:
        spec = {"benchmark": "timeline", "data": "digits", "model": "mlp", "methods": "ft", "device": settings}
        return run_key(parse(spec).jobs("mlp")[0], "f")

    assert key() == key(checkpoint_activations=True) == key(workers=3)
    assert key() != key(compile=True)


def test_compiled_networks_answer_as_written_with_one_graph_for_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs: list[int] = []

    def backend(graph: torch.fx.GraphModule, inputs: object) -> Any:
        graphs.append(len(graph.graph.nodes))
        return graph.forward

    monkeypatch.setattr(forward_pass, "BACKEND", backend)
    network = residual_network().eval()
    compiled, counter = placed(network, COMPILED), MacCounter()
    counter.attach(compiled)
    assert list(compiled.state_dict()) == list(network.state_dict())
    twin = copy.deepcopy(compiled)
    for n in (8, 5, 3):
        x = torch.randn(n, 3)
        torch.testing.assert_close(compiled(x), network(x))
        torch.testing.assert_close(twin(x), network(x))
    assert len(graphs) == 1
    nn.init.zeros_(twin[3].weight)
    torch.testing.assert_close(twin(x), network[3].bias.expand(3, 2))
    assert (
        counter.forward == 2 * sum(count_macs(network, (torch.ones(n, 3),), {}, False)[0] for n in (8, 5, 3)) + 3 * 52
    )
    outputs, features = forward_with_features(compiled, x)  # by a hook, which a compiled network would not call
    torch.testing.assert_close(outputs, compiled[3](features))
    with as_written():
        compiled(torch.randn(4, 4)[:, :3])
    assert len(graphs) == 1


def test_what_cannot_be_compiled_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_compiler(graph: object, inputs: object) -> Any:
        raise RuntimeError("No working C++ compiler found")

    monkeypatch.setattr(forward_pass, "BACKEND", without_compiler)
    network = placed(nn.Linear(3, 1), COMPILED)
    with pytest.raises(UserError, match=r"^device.compile: torch.compile does not work .* No working C\+\+ compiler"):
        network(torch.ones(2, 3))
    network.generate = None  # type: ignore[assignment]
    with pytest.raises(UserError, match="networks that generate text cannot be compiled"):
        placed(network, COMPILED)
    with pytest.raises(ValidationError, match="compile and checkpoint_activations exclude each other"):
        DeviceSettings(compile=True, checkpoint_activations=True)
