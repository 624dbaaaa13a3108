"""Compute of answering and training in multiply-accumulates, by several conventions.

One forward pass costs 1, the backward pass of trained layers 2, so that training a layer costs 3; frozen layers cost
their forward pass, or nothing if their features were kept (cached). NED (Wallingford et al. 2020) counts 2 for the
training of a ResNet-18, 3 for that of a ResNet-50, and no backward pass where only the last layer is trained. What
pretraining cost is in none of the numbers.
"""

from __future__ import annotations

from typing import Literal, get_args

from driftline.errors import UserError, unknown_name
from driftline.metrics import metric
from driftline.metrics.novelty import NED
from driftline.metrics.per_period import check_positive

TrainedPart = Literal["network", "head"]


def training_passes(samples: int, train_every: int, epochs: int) -> int:
    """Return the number of samples passed in training: `epochs` over all so far, every `train_every` samples.

    >>> training_passes(89_921, train_every=5000, epochs=4)
    3060000
    """
    check_positive("train_every", train_every)
    rounds = samples // train_every
    return epochs * train_every * rounds * (rounds + 1) // 2


def macs(
    samples: int,
    backbone: float,
    head: float = 0,
    *,
    trained_part: TrainedPart = "network",
    passes: int = 0,
    backward: float = 2,
    cached: bool = False,
) -> float:
    """Return the multiply-accumulates of answering and training, from those of one forward pass.

    `backward`: what the backward pass of a trained layer costs in forward passes: 2 here, 1 for a ResNet-18 in NED, 0
    where it counts none at all. `cached`: features of a frozen backbone are kept. Lower is better.

    >>> macs(8, 10, 1, passes=24), macs(8, 10, 1, trained_part="head", passes=24, cached=True)
    (880, 160)
    """
    if trained_part not in get_args(TrainedPart):
        raise unknown_name("trained_part", trained_part, get_args(TrainedPart))
    if cached and trained_part == "network":
        raise UserError("features can be cached only if the backbone is frozen: use trained_part='head'")
    learning = (1 + backward) * (backbone + head if trained_part == "network" else head)
    frozen = backbone if trained_part == "head" and not cached else 0
    return samples * (backbone + head) + passes * (learning + frozen)


def total_macs(forward: int, backward: int, saved: int = 0) -> int:
    """Return the cost of a run; with `saved`, as if no features had been cached. Lower is better."""
    return forward + backward + saved


for _name, _formula in (("macs", "forward + backward"), ("macs-uncached", "forward + backward + saved")):
    metric(
        _name,
        formula=f"{_formula} multiply-accumulates of answering and training; training a layer costs 3 forward passes",
        better="lower",
        unit="macs",
        paper=NED,
        example=lambda rng: {"forward": 10, "backward": 4},
    )(total_macs)
