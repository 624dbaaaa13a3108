"""Networks with one set of modules per time step, grown one step at a time.

`JointNetwork(network, kinds)` says for each layer how its steps relate:

- `separate`: every step has a module of its own;
- `shared`: all steps use the module of step 0;
- `side-1`, `side-block`: step t computes base(x) + side_1(x) + ... + side_t(x), with nothing after the sum. A side
  module of a block is one convolution with batch norm, or the block's own architecture. Those of conv1 and fc are
  always full modules: stems are summed after their pooling, heads as logits;
- `low-rank-add`, `low-rank-multiply`: step t changes the weights of step 0 by small factors, see `lowrank`.

In the authors' code the distance between adjacent steps includes batch norm; here, like weight decay, it does not.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import partial
from itertools import islice
from typing import cast

from torch import Tensor, nn
from torch.func import functional_call

from driftline.errors import UserError, unknown_name
from driftline.forward_pass import as_written
from driftline.models.block_networks.base import (
    HEAD,
    STEM,
    BlockFamily,
    BlockNetwork,
    LayeredNetwork,
    freeze,
    weight_parameters,
)
from driftline.models.block_networks.low_rank import INITS, LowRankAdapter, adapted_weights, check_rank, highest_rank
from driftline.models.preprocessing import build_seeded
from driftline.seeds import Seed

SIDE_KINDS = ("side-1", "side-block")
LOW_RANK_KINDS = ("low-rank-add", "low-rank-multiply")
KINDS = ("separate", "shared", *SIDE_KINDS, *LOW_RANK_KINDS)


class TimeIndexedLayer(nn.Module):
    """One layer at all steps. `steps[t]` is what step t added to it."""

    def __init__(self, base: nn.Module, family: BlockFamily, name: str) -> None:
        super().__init__()
        self.steps = nn.ModuleList([base])
        self.family = family
        self.name = name

    def add_step(self, seed: Seed, copy_previous: bool) -> None:
        """Add a step."""
        raise NotImplementedError

    def forward(self, x: Tensor, step: int, scale: float) -> Tensor:
        """Return the layer's outputs at a step; `scale` multiplies the latest side module."""
        raise NotImplementedError


class SeparateLayer(TimeIndexedLayer):
    """Every step has a module of its own."""

    def add_step(self, seed: Seed, copy_previous: bool) -> None:
        if copy_previous:  # the previous step may be frozen, the new one is not
            self.steps.append(copy.deepcopy(self.steps[-1]).requires_grad_(True))
        else:
            self.steps.append(build_seeded(partial(self.family.layer, self.name), seed))

    def forward(self, x: Tensor, step: int, scale: float) -> Tensor:
        y: Tensor = self.steps[step](x)
        return y


class SharedLayer(TimeIndexedLayer):
    """All steps use the same module."""

    def add_step(self, seed: Seed, copy_previous: bool) -> None:
        self.steps.append(nn.Identity())  # a step that added nothing

    def forward(self, x: Tensor, step: int, scale: float) -> Tensor:
        y: Tensor = self.steps[0](x)
        return y


class SideModules(TimeIndexedLayer):
    """Every step adds the outputs of one more module."""

    def __init__(self, base: nn.Module, family: BlockFamily, name: str, kind: str) -> None:
        super().__init__(base, family, name)
        self.kind = kind

    def add_step(self, seed: Seed, copy_previous: bool) -> None:
        self.steps.append(build_seeded(partial(self.family.side, self.name, self.kind), seed))

    def forward(self, x: Tensor, step: int, scale: float) -> Tensor:
        total: Tensor = self.steps[0](x)
        for number, side in enumerate(islice(self.steps, 1, step + 1), 1):
            last = number == len(self.steps) - 1
            total = total + (side(x) * scale if last and scale != 1 else side(x))
        return total


class LowRankLayer(TimeIndexedLayer):
    """Every step changes the weights by factors, and has batch norm and biases of its own."""

    def __init__(self, base: nn.Module, family: BlockFamily, name: str, multiply: bool, rank: int, init: str) -> None:
        super().__init__(base, family, name)
        check_rank(name, base, rank)
        self.multiply, self.rank, self.init = multiply, rank, init

    def add_step(self, seed: Seed, copy_previous: bool) -> None:
        shell = build_seeded(partial(self.family.layer, self.name), seed.child("shell"))
        if self.init == "identity":
            previous = self.steps[-1]
            before = previous.template if isinstance(previous, LowRankAdapter) else previous
            shell.load_state_dict(before.state_dict(), strict=False)  # an adapter's shell has no weights
        self.steps.append(LowRankAdapter(shell, self.rank, self.multiply, self.init, seed.child("factors")))

    def forward(self, x: Tensor, step: int, scale: float) -> Tensor:
        base, *adapters = islice(self.steps, step + 1)
        if not adapters:
            return cast(Tensor, base(x))
        changed = adapted_weights(base, cast(list[LowRankAdapter], adapters), self.multiply)
        with as_written():
            return cast(Tensor, functional_call(cast(LowRankAdapter, adapters[-1]).template, changed, (x,)))


class JointNetwork(LayeredNetwork):
    """A network at several time steps. Step 0 is the given network: its modules themselves, not copies.

    `rank` is that of low-rank blocks. As in the authors' code, a low-rank conv1 then has rank 1, and fc no more than
    fits it; a mapping from names of layers to ranks decides for each.
    """

    def __init__(
        self,
        network: BlockNetwork,
        kinds: Mapping[str, str],
        *,
        rank: int | Mapping[str, int] = 1,
        init: str = "identity",
    ) -> None:
        super().__init__(network.family, network.standardize)
        if init not in INITS:
            raise unknown_name("start of low-rank adapters", init, INITS)
        self.kinds = _checked(kinds, network.family)
        self.dropout = network.dropout
        self.side_scale = 1.0
        """Multiplies the outputs of the latest step's side modules: from 0 to 1, the path that training took."""
        self.layers = nn.ModuleDict()
        for name, kind in self.kinds.items():
            base = network.layers[name]
            of_layer = _rank_of(name, base, rank) if isinstance(rank, int) else rank.get(name, 1)
            self.layers[name] = _time_indexed_layer(base, network.family, name, kind, of_layer, init)
        self.train(network.training)

    @property
    def steps(self) -> int:
        return len(self._time_indexed[0].steps)

    def add_step(self, seed: Seed, copy_previous: bool = False) -> None:
        """Add a step. Separate layers may start as copies of the step before; side modules are always new."""
        for layer in self._time_indexed:
            layer.add_step(seed.child(layer.name), copy_previous)
        self.train(self.training)

    def forward(self, x: Tensor, step: int | None = None) -> Tensor:
        step = self.steps - 1 if step is None else step
        if not 0 <= step < self.steps:
            raise ValueError(f"there is no step {step}: this network has steps 0 to {self.steps - 1}")
        return self.forward_layers(x, step, self.side_scale)

    def parameters_of(self, step: int) -> list[nn.Parameter]:
        """Return the parameters that a step added."""
        return [parameter for layer in self._time_indexed for parameter in layer.steps[step].parameters()]

    def freeze(self, before: int, *, moving_statistics: bool = False) -> None:
        """Stop training everything that came in steps before this one; shared layers came in step 0."""
        parts = (part for layer in self._time_indexed for part in islice(layer.steps, before))
        freeze(self, parts, moving_statistics=moving_statistics)

    def adjacent_pairs(self, step: int) -> list[tuple[nn.Parameter, nn.Parameter]]:
        """Return each weight of the separate layers at a step with the same weight one step before; none at step 0."""
        if step == 0:
            return []
        pairs = []
        for layer in self._time_indexed:
            if isinstance(layer, SeparateLayer):
                now, before = weight_parameters(layer.steps[step]), weight_parameters(layer.steps[step - 1])
                pairs += [(weight, before[name]) for name, weight in now.items()]
        return pairs

    @property
    def _time_indexed(self) -> list[TimeIndexedLayer]:
        return cast(list[TimeIndexedLayer], list(self.layers.values()))


def _checked(kinds: Mapping[str, str], family: BlockFamily) -> dict[str, str]:
    """Return the kind of each layer, in the order of the layers."""
    for name, kind in kinds.items():
        if name not in family.layer_names:
            raise unknown_name("layer", name, family.layer_names)
        if kind not in KINDS:
            raise unknown_name("kind of layer", kind, KINDS)
        if kind == "side-block" and family.no_side_block_reason:
            raise UserError(family.no_side_block_reason)
    if missing := [name for name in family.layer_names if name not in kinds]:
        raise UserError(f"no kind is given for {', '.join(missing)}: each layer needs one of {', '.join(KINDS)}")
    return {name: kinds[name] for name in family.layer_names}


def _rank_of(name: str, base: nn.Module, rank: int) -> int:
    """Return the rank of a layer, given that of blocks."""
    if name == STEM:
        return 1
    return max(1, min(rank, highest_rank(base))) if name == HEAD else rank


def _time_indexed_layer(
    base: nn.Module, family: BlockFamily, name: str, kind: str, rank: int, init: str
) -> TimeIndexedLayer:
    if kind == "separate":
        return SeparateLayer(base, family, name)
    if kind == "shared":
        return SharedLayer(base, family, name)
    if kind in SIDE_KINDS:
        return SideModules(base, family, name, kind)
    return LowRankLayer(base, family, name, kind == "low-rank-multiply", rank, init)
