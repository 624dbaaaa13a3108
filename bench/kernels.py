"""Variants of what a network computes on a CPU, against the package's: dropout, batch norm and evaluation batches.

    python bench/kernels.py [--model conv-2] [--rounds 3] [--save]

One thread, allocator fixed, all variants in each round. `--save`: write to the table of docs/performance.md.

None is in the package. A mask of random bits or bytes makes a step with dropout 1.16 to 1.18 times as fast, but half of
the fits of a search have no dropout, and every published number of Seq-to-Final would change. Batch norm in the
weights makes answers 1.03 times as fast; batches of 100 and of 2000 are slower than those of 500.
"""

from __future__ import annotations

import argparse
import copy
import ctypes
import time
from collections.abc import Callable
from itertools import pairwise

import performance
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.fusion import fuse_conv_bn_eval

from driftline import registry
from driftline.models.block_networks import base
from driftline.seeds import Seed

BATCH, IMAGES = 100, 2000


def dropout_by_bits(x: Tensor, p: float) -> Tensor:
    """Drop half of the numbers by one random bit for each."""
    words = torch.randint(-(2**63), 2**63 - 1, (-(-x.numel() // 64),), dtype=torch.int64).view(torch.uint8)
    bits = (words.unsqueeze(1) >> torch.arange(8, dtype=torch.uint8) & 1).view(-1)[: x.numel()]
    return x * bits.to(x.dtype).mul_(2).as_strided(x.shape, x.stride())


def dropout_by_bytes(x: Tensor, p: float) -> Tensor:
    """Drop numbers by one random byte for each."""
    words = torch.randint(-(2**63), 2**63 - 1, (-(-x.numel() // 8),), dtype=torch.int64).view(torch.int8)
    kept = words[: x.numel()] >= int(256 * p) - 128
    return x * kept.as_strided(x.shape, x.stride()) * (1 / (1 - p))


def training_step(model: nn.Module, dropout: Callable[..., Tensor], share: float) -> Callable[[], None]:
    network = copy.deepcopy(model).train()
    optimizer = torch.optim.Adam(network.parameters())
    x, y = torch.rand(BATCH, 3, 32, 32), torch.randint(0, 10, (BATCH,))

    def step() -> None:
        base.dropout, network.dropout = dropout, share  # type: ignore[assignment]
        optimizer.zero_grad()
        functional.cross_entropy(network(x), y).backward()
        optimizer.step()
        base.dropout = functional.dropout

    return step


def evaluation(network: nn.Module, batch: int) -> Callable[[], None]:
    x = torch.rand(IMAGES, 3, 32, 32)

    def answer() -> None:
        with torch.inference_mode():
            for part in x.split(batch):
                network(part)

    return answer


def folded(network: nn.Module) -> nn.Module:
    """Return the network with each batch norm in the weights of the convolution before it."""
    made = copy.deepcopy(network)
    for module in made.modules():
        names = list(module._modules)
        for name, behind in pairwise(names):
            convolution, norm = module._modules[name], module._modules[behind]
            if isinstance(convolution, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d):
                module._modules[name] = fuse_conv_bn_eval(convolution, norm)
                module._modules[behind] = nn.Identity()
    return made.to(memory_format=torch.channels_last)


def milliseconds(function: Callable[[], None]) -> float:
    began = time.process_time()
    function()
    return (time.process_time() - began) * 1e3


def compared(title: str, variants: dict[str, Callable[[], None]], rounds: int) -> list[performance.Measure]:
    """Return rows of all variants, against the first, which is the package's."""
    for function in variants.values():
        function()
    taken = [{name: milliseconds(function) for name, function in variants.items()} for _ in range(rounds)]
    first, *others = variants
    usual = sorted(one[first] for one in taken)[rounds // 2]
    found = [
        performance.measured(f"{title}: {name}", "ms", [usual * one[name] / one[first] for one in taken], usual,
                             "kernels.py", first)
        for name in others
    ]  # fmt: skip
    print(*found, sep="\n", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="conv-2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args()
    for setting, value in ((-1, 1 << 30), (-3, 1 << 25)):
        ctypes.CDLL(None).mallopt(setting, value)
    torch.set_num_threads(1)
    network = registry.get("model", given.model)((32, 32, 3), 10, Seed(0))
    steps = {"PyTorch's": training_step(network, functional.dropout, 0.5)}
    steps |= {
        "by bits": training_step(network, dropout_by_bits, 0.5),
        "by bytes": training_step(network, dropout_by_bytes, 0.5),
        "none": training_step(network, functional.dropout, 0.0),
    }
    answers = {"batches of 500": evaluation(network, 500)}
    answers |= {f"batches of {batch}": evaluation(network, batch) for batch in (100, 2000)}
    answers["batch norm in weights"] = evaluation(folded(network), 500)
    found = compared(f"step of {given.model} with dropout", steps, given.rounds)
    found += compared(f"answers of {given.model}", answers, given.rounds)
    if given.save:
        performance.add(found)


if __name__ == "__main__":
    main()
