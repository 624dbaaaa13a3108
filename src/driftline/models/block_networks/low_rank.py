"""Low-rank adapters: a layer's weights at a later step, made from its first weights and a few small factors.

For every convolution and linear layer, step j brings factors A_o (outputs x rank) and A_i (rank x inputs), one pair for
each kernel position. With W the weights of step 0, those of step t are

    add:       W + sum over j <= t of A_o,j A_i,j
    multiply:  W * product over j <= t of A_o,j A_i,j     (element by element)

Each step has batch norm and biases of its own. Start "identity" makes a new step equal to the one before it: A_o is 0
for add; for multiply A_o A_i is 1 everywhere. Start "reference" is that of the authors' code: both factors uniform in
[-1.5, 1.5], batch norm and biases fresh.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from driftline.errors import UserError
from driftline.seeds import Seed

INITS = ("identity", "reference")


class LowRankAdapter(nn.Module):
    """What one step adds to a layer: factors for its weights, and a shell with batch norm and biases of its own."""

    def __init__(self, shell: nn.Module, rank: int, multiply: bool, init: str, seed: Seed) -> None:
        super().__init__()
        self.template = shell
        self.outer = nn.ParameterList()
        self.inner = nn.ParameterList()
        random = seed.torch()
        for module in adaptable_layers(shell).values():
            outer, inner = _factors(module.weight.shape, rank, multiply, init, random)
            self.outer.append(nn.Parameter(outer))
            self.inner.append(nn.Parameter(inner))
            module.register_parameter("weight", None)  # computed at every pass

    def products(self) -> list[Tensor]:
        """Return A_o A_i for each weight, in the weight's shape."""
        pairs = zip(self.outer, self.inner, strict=True)
        return [(outer @ inner).movedim((-2, -1), (0, 1)) for outer, inner in pairs]


def adapted_weights(base: nn.Module, adapters: Iterable[LowRankAdapter], multiply: bool) -> dict[str, Tensor]:
    """Return the weights of a layer after these adapters, by name."""
    names = list(adaptable_layers(base))
    current: list[Tensor] = [module.weight for module in adaptable_layers(base).values()]
    for adapter in adapters:
        pairs = zip(current, adapter.products(), strict=True)
        current = [weight * change if multiply else weight + change for weight, change in pairs]
    return {f"{name}.weight": weight for name, weight in zip(names, current, strict=True)}


def adaptable_layers(module: nn.Module) -> dict[str, nn.Conv2d | nn.Linear]:
    """Return the convolutions and linear layers within a layer, by name."""
    return {name: part for name, part in module.named_modules() if isinstance(part, nn.Conv2d | nn.Linear)}


def highest_rank(module: nn.Module) -> int:
    """Return the highest rank at which factors are smaller than each weight that they change; 0 if there is none."""
    shapes = [part.weight.shape[:2] for part in adaptable_layers(module).values()]
    return min((inputs * outputs - 1) // (inputs + outputs) for outputs, inputs in shapes)


def check_rank(name: str, module: nn.Module, rank: int) -> None:
    """Refuse a rank whose factors would be no smaller than the weights that they change."""
    highest = highest_rank(module)
    if not 1 <= rank <= highest:
        raise UserError(
            f"rank {rank} does not fit {name}: factors of rank r are smaller than weights only if r * (inputs + "
            f"outputs) < inputs * outputs, " + (f"here from 1 to {highest}" if highest else "which no rank is here")
        )


def _factors(shape: torch.Size, rank: int, multiply: bool, init: str, random: torch.Generator) -> tuple[Tensor, Tensor]:
    (outputs, inputs), kernel = shape[:2], shape[2:]
    outer, inner = torch.zeros(*kernel, outputs, rank), torch.empty(*kernel, rank, inputs)
    if init == "reference":
        return outer.uniform_(-1.5, 1.5, generator=random), inner.uniform_(-1.5, 1.5, generator=random)
    inner.uniform_(-(inputs**-0.5), inputs**-0.5, generator=random)
    if multiply:  # the first component is 1 everywhere, the others nothing yet
        outer[..., 0] = 1
        inner[..., 0, :] = 1
    return outer, inner
