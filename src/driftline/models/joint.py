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

from driftline.errors import UserError, unknown
from driftline.models.blocks import HEAD, STEM, BlockNetwork, Family, Layered, freeze, weights
from driftline.models.inputs import initialised
from driftline.models.lowrank import STARTS, Adapter, adapted_weights, check_rank, highest_rank
from driftline.seeds import Seed

SIDES = ("side-1", "side-block")
LOW_RANKS = ("low-rank-add", "low-rank-multiply")
KINDS = ("separate", "shared", *SIDES, *LOW_RANKS)


class LayerInTime(nn.Module):
    """One layer at all steps. `steps[t]` is what step t added to it."""

    def __init__(self, base: nn.Module, family: Family, name: str) -> None:
        super().__init__()
        self.steps = nn.ModuleList([base])
        self.family = family
        self.name = name

    def grow(self, seed: Seed, copy_previous: bool) -> None:
        """Add a step."""
        raise NotImplementedError

    def forward(self, x: Tensor, step: int, scale: float) -> Tensor:
        """The layer's outputs at a step; `scale` multiplies the latest side module."""
        raise NotImplementedError


class Separate(LayerInTime):
    """Every step has a module of its own."""

    def grow(self, seed: Seed, copy_previous: bool) -> None:
        if copy_previous:  # the previous step may be frozen, the new one is not
            self.steps.append(copy.deepcopy(self.steps[-1]).requires_grad_(True))
        else:
            self.steps.append(initialised(partial(self.family.layer, self.name), seed))

    def forward(self, x: Tensor, step: int, scale: float) -> Tensor:
        y: Tensor = self.steps[step](x)
        return y


class Shared(LayerInTime):
    """All steps use the same module."""

    def grow(self, seed: Seed, copy_previous: bool) -> None:
        self.steps.append(nn.Identity())  # a step that added nothing

    def forward(self, x: Tensor, step: int, scale: float) -> Tensor:
        y: Tensor = self.steps[0](x)
        return y


class Sides(LayerInTime):
    """Every step adds the outputs of one more module."""

    def __init__(self, base: nn.Module, family: Family, name: str, kind: str) -> None:
        super().__init__(base, family, name)
        self.kind = kind

    def grow(self, seed: Seed, copy_previous: bool) -> None:
        self.steps.append(initialised(partial(self.family.side, self.name, self.kind), seed))

    def forward(self, x: Tensor, step: int, scale: float) -> Tensor:
        total: Tensor = self.steps[0](x)
        for number, side in enumerate(islice(self.steps, 1, step + 1), 1):
            last = number == len(self.steps) - 1
            total = total + (side(x) * scale if last and scale != 1 else side(x))
        return total


class LowRank(LayerInTime):
    """Every step changes the weights by factors, and has batch norm and biases of its own."""

    def __init__(self, base: nn.Module, family: Family, name: str, multiply: bool, rank: int, start: str) -> None:
        super().__init__(base, family, name)
        check_rank(name, base, rank)
        self.multiply, self.rank, self.start = multiply, rank, start

    def grow(self, seed: Seed, copy_previous: bool) -> None:
        shell = initialised(partial(self.family.layer, self.name), seed.child("shell"))
        if self.start == "identity":
            previous = self.steps[-1]
            before = previous.shell if isinstance(previous, Adapter) else previous
            shell.load_state_dict(before.state_dict(), strict=False)  # an adapter's shell has no weights
        self.steps.append(Adapter(shell, self.rank, self.multiply, self.start, seed.child("factors")))

    def forward(self, x: Tensor, step: int, scale: float) -> Tensor:
        base, *adapters = islice(self.steps, step + 1)
        if not adapters:
            return cast(Tensor, base(x))
        changed = adapted_weights(base, cast(list[Adapter], adapters), self.multiply)
        return cast(Tensor, functional_call(cast(Adapter, adapters[-1]).shell, changed, (x,)))


class JointNetwork(Layered):
    """A network at several time steps. Step 0 is the given network: its very modules, not copies of them.

    `rank` is that of low-rank blocks. As in the authors' code, a low-rank conv1 then has rank 1, and fc no more than
    fits it; a mapping from names of layers to ranks decides for each.
    """

    def __init__(
        self,
        network: BlockNetwork,
        kinds: Mapping[str, str],
        *,
        rank: int | Mapping[str, int] = 1,
        start: str = "identity",
    ) -> None:
        super().__init__(network.family, network.standardise)
        if start not in STARTS:
            raise unknown("start of low-rank adapters", start, STARTS)
        self.kinds = _checked(kinds, network.family)
        self.dropout = network.dropout
        self.scale_of_last = 1.0
        """Multiplies the outputs of the latest step's side modules: from 0 to 1, the path that training took."""
        self.layers = nn.ModuleDict()
        for name, kind in self.kinds.items():
            base = network.layers[name]
            of_layer = _rank_of(name, base, rank) if isinstance(rank, int) else rank.get(name, 1)
            self.layers[name] = _in_time(base, network.family, name, kind, of_layer, start)
        self.train(network.training)

    @property
    def steps(self) -> int:
        return len(self._in_time[0].steps)

    def grow(self, seed: Seed, copy_previous: bool = False) -> None:
        """Add a step. Separate layers start as copies of the step before if asked; side modules are always new."""
        for layer in self._in_time:
            layer.grow(seed.child(layer.name), copy_previous)
        self.train(self.training)

    def forward(self, x: Tensor, step: int | None = None) -> Tensor:
        step = self.steps - 1 if step is None else step
        if not 0 <= step < self.steps:
            raise ValueError(f"there is no step {step}: this network has steps 0 to {self.steps - 1}")
        return self.pass_through(x, step, self.scale_of_last)

    def parameters_of(self, step: int) -> list[nn.Parameter]:
        """The parameters that a step added."""
        return [parameter for layer in self._in_time for parameter in layer.steps[step].parameters()]

    def freeze(self, before: int, *, moving_statistics: bool = False) -> None:
        """Stop training everything that came in steps before this one; shared layers came in step 0."""
        parts = (part for layer in self._in_time for part in islice(layer.steps, before))
        freeze(self, parts, moving_statistics=moving_statistics)

    def adjacent(self, step: int) -> list[tuple[nn.Parameter, nn.Parameter]]:
        """Each weight of the separate layers at a step, with the same weight one step before; none at step 0."""
        if step == 0:
            return []
        pairs = []
        for layer in self._in_time:
            if isinstance(layer, Separate):
                now, before = weights(layer.steps[step]), weights(layer.steps[step - 1])
                pairs += [(weight, before[name]) for name, weight in now.items()]
        return pairs

    @property
    def _in_time(self) -> list[LayerInTime]:
        return cast(list[LayerInTime], list(self.layers.values()))


def _checked(kinds: Mapping[str, str], family: Family) -> dict[str, str]:
    """A kind for each layer, in the order of the layers."""
    for name, kind in kinds.items():
        if name not in family.layer_names:
            raise unknown("layer", name, family.layer_names)
        if kind not in KINDS:
            raise unknown("kind of layer", kind, KINDS)
        if kind == "side-block" and family.no_side_block:
            raise UserError(family.no_side_block)
    if missing := [name for name in family.layer_names if name not in kinds]:
        raise UserError(f"no kind is given for {', '.join(missing)}: each layer needs one of {', '.join(KINDS)}")
    return {name: kinds[name] for name in family.layer_names}


def _rank_of(name: str, base: nn.Module, rank: int) -> int:
    """The rank of one layer, where that of blocks is given."""
    if name == STEM:
        return 1
    return max(1, min(rank, highest_rank(base))) if name == HEAD else rank


def _in_time(base: nn.Module, family: Family, name: str, kind: str, rank: int, start: str) -> LayerInTime:
    if kind == "separate":
        return Separate(base, family, name)
    if kind == "shared":
        return Shared(base, family, name)
    if kind in SIDES:
        return Sides(base, family, name, kind)
    return LowRank(base, family, name, kind == "low-rank-multiply", rank, start)
