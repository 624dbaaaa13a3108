"""Networks of a sequence: one step's network alone, its layers, and the networks between two steps.

`interpolate` is the path of Seq-to-Final's Figure 1. The reference code keeps the batch norm of the first network all
along it, and scales the weights of side modules but not their batch norm, so that neither end is the network it stands
for. Here every number is interpolated, and side modules are scaled in their outputs. Statistics of batch norm are
interpolated too or, since activations in between are those of neither end, re-estimated (`reestimate_batch_norm`), but
only where the last step moved them: frozen layers keep theirs, as they did in training.
"""

from __future__ import annotations

import copy
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from driftline.device import to_numpy
from driftline.forward_pass import as_written
from driftline.models.block_networks.base import BlockNetwork, LayeredNetwork, weight_parameters
from driftline.models.block_networks.joint import (
    JointNetwork,
    LowRankLayer,
    SeparateLayer,
    SharedLayer,
    SideModules,
    TimeIndexedLayer,
)
from driftline.models.block_networks.low_rank import LowRankAdapter, adapted_weights
from driftline.models.preprocessing import to_float_batch
from driftline.seeds import Seed
from driftline.training.batches import shuffled_batches
from driftline.training.modes import evaluating
from driftline.training.torch_model import torch_model
from driftline.types import Inputs, Network


def truncate_to_step(network: JointNetwork, step: int) -> JointNetwork:
    """Return a copy of a joint network as it is at a step, without later steps."""
    network = copy.deepcopy(network)
    for layer in _in_time(network).values():
        layer.steps = layer.steps[: step + 1]
    return network


def activations(network: LayeredNetwork, x: Inputs, batch: int = 500) -> dict[str, np.ndarray]:
    """Return each layer's outputs in evaluation mode, one row per input; of the head, the logits."""
    caught: dict[str, list[Tensor]] = {name: [] for name in network.layers}
    hooks = [
        layer.register_forward_hook(lambda _, args, out, name=name: caught[name].append(out.flatten(1)))
        for name, layer in network.layers.items()
    ]
    inputs = torch_model(network).encode(x)
    try:
        with as_written(), evaluating(network), torch.no_grad():
            for rows in torch.arange(len(inputs)).split(batch):
                network(to_float_batch(inputs[rows]))
    finally:
        for hook in hooks:
            hook.remove()
    return {name: to_numpy(torch.cat(parts)) for name, parts in caught.items()}


def layer_weights(network: LayeredNetwork) -> dict[str, np.ndarray] | None:
    """Return each layer's weights without batch norm, in one row; None if the network sums modules."""
    layers = {name: _plain(layer, -1) for name, layer in network.layers.items()}
    if any(layer is None for layer in layers.values()):
        return None
    kept = {name: weight_parameters(cast(nn.Module, layer)).values() for name, layer in layers.items()}
    return {name: to_numpy(torch.cat([w.detach().flatten() for w in parts])) for name, parts in kept.items()}


def interpolate(before: Network, after: Network, s: float) -> tuple[Network, list[nn.BatchNorm2d]]:
    """Return the network at `s` between one step's network (0) and the next one's (1), and the batch norm that moved.

    A joint network contains the step before, so `before` is not used: separate layers are interpolated with
    those one step earlier, low-rank ones in the weights they come to, and the latest side modules are scaled.
    """
    network = copy.deepcopy(after)
    if isinstance(network, BlockNetwork):
        return network, _lerp(network, before, s)
    network.side_scale = s
    moved: list[nn.BatchNorm2d] = []
    for name, layer in _in_time(network).items():
        if isinstance(layer, SideModules):
            moved += [part for part in layer.steps[-1].modules() if isinstance(part, nn.BatchNorm2d)]
        elif not isinstance(layer, SharedLayer):
            now, then = (cast(nn.Module, _plain(layer, step)) for step in (-1, -2))
            moved += _lerp(now, then, s)
            network.layers[name] = _for_all_steps(now, layer)
    return network, moved


def reestimate_batch_norm(network: nn.Module, norms: list[nn.BatchNorm2d], x: Inputs, batch: int) -> None:
    """Set batch norm to the statistics of these inputs: the mean over one pass of batches, each normalized alone."""
    if not norms:
        return
    inputs = torch_model(network).encode(x)
    with evaluating(network), torch.no_grad():
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None  # a plain mean over batches
            norm.train()
        for rows in shuffled_batches(len(inputs), batch, Seed(0)):
            network(to_float_batch(inputs[rows]))


def _lerp(network: nn.Module, start: nn.Module, s: float) -> list[nn.BatchNorm2d]:
    """Interpolate a network with its start, which it equals at 0; return the batch norm that differs."""
    first, last = start.state_dict(), network.state_dict()
    moved = [
        part
        for path, part in network.named_modules()
        if isinstance(part, nn.BatchNorm2d)
        and any(not torch.equal(first[f"{path}.{name}"], value) for name, value in part.state_dict().items())
    ]
    mixed = {name: torch.lerp(first[name], w, s) if w.is_floating_point() else w for name, w in last.items()}
    network.load_state_dict(mixed)
    return moved


def _plain(layer: nn.Module, step: int) -> nn.Module | None:
    """Return the single module of a layer at a step; None if it is a sum of several."""
    if not isinstance(layer, TimeIndexedLayer):
        return layer
    step %= len(layer.steps)
    if step == 0 or isinstance(layer, SharedLayer):
        return layer.steps[0]
    if isinstance(layer, LowRankLayer):
        adapters = cast(list[LowRankAdapter], list(layer.steps)[1 : step + 1])
        changed = adapted_weights(layer.steps[0], adapters, layer.multiply)
        module = copy.deepcopy(layer.steps[0])
        module.load_state_dict({**adapters[-1].template.state_dict(), **changed})
        return module
    return layer.steps[step] if isinstance(layer, SeparateLayer) else None


def _for_all_steps(module: nn.Module, like: TimeIndexedLayer) -> SharedLayer:
    """Return a layer that is this module at every step."""
    made = SharedLayer(module, like.family, like.name)
    while len(made.steps) < len(like.steps):
        made.add_step(Seed(0), False)
    return made.eval()


def _in_time(network: JointNetwork) -> dict[str, TimeIndexedLayer]:
    return cast(dict[str, TimeIndexedLayer], dict(network.layers.items()))
