"""Growth of a network: layers for the next steps of a sequence."""

from __future__ import annotations

import copy

from torch import nn

from driftline.device import place
from driftline.errors import UserError
from driftline.learners.fit_plan import Expansion
from driftline.models.block_networks.base import BlockNetwork
from driftline.models.block_networks.joint import JointNetwork
from driftline.seeds import Seed
from driftline.training.torch_model import torch_model


def expand(network: nn.Module, growth: Expansion, seed: Seed) -> JointNetwork:
    """Return the network with layers for all steps of the expansion; the given network does not change."""
    network = copy.deepcopy(network)
    if isinstance(network, BlockNetwork):
        plain, network = (
            network,
            JointNetwork(network, layer_kinds(network, growth), rank=growth.rank, init=growth.start),
        )
        if (counter := torch_model(plain).mac_counter) is not None:
            counter.attach(network)
    if not isinstance(network, JointNetwork):
        raise UserError("side modules and joint models need a network of named blocks: conv-1 to res-4")
    while network.steps < growth.steps:
        network.add_step(seed.child(network.steps), copy_previous=growth.copy)
    return place(network)


def layer_kinds(network: BlockNetwork, growth: Expansion) -> dict[str, str]:
    """Return the kind of each layer."""
    first, *blocks, last = network.layers
    found = {first: growth.ends, **dict.fromkeys(blocks, growth.blocks), last: growth.ends}
    return {**found, **dict.fromkeys(growth.shared, "shared")}
