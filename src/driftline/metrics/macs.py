"""What answering and training cost, in multiply-accumulates, in each of the ways in which it is counted.

One forward pass costs 1, the backward pass of trained layers 2, so that training a layer costs 3; frozen layers cost
their forward pass, or nothing if their features were kept (cached). NED (Wallingford et al. 2020) counts 2 for the
training of a ResNet-18, 3 for that of a ResNet-50, and no backward pass where only the last layer is trained. What
pretraining cost is in none of the numbers.
"""

from __future__ import annotations

from typing import Literal, get_args

from driftline.errors import UserError, unknown
from driftline.metrics import metric
from driftline.metrics.steps import positive
from driftline.metrics.unseen import NED

Trained = Literal["network", "head"]


def sample_passes(samples: int, every: int, epochs: int) -> int:
    """How many samples pass in training: so many epochs over all so far, every so many samples.

    >>> sample_passes(89_921, every=5000, epochs=4)
    3060000
    """
    positive("every", every)
    lessons = samples // every
    return epochs * every * lessons * (lessons + 1) // 2


def macs(
    samples: int,
    backbone: float,
    head: float = 0,
    *,
    trained: Trained = "network",
    passes: int = 0,
    backward: float = 2,
    cached: bool = False,
) -> float:
    """Multiply-accumulates of answering and training, from what one forward pass of backbone and head takes.

    `backward`: what the backward pass of a trained layer costs in forward passes: 2 here, 1 for a ResNet-18 in NED, 0
    where it counts none at all. `cached`: features of a frozen backbone are kept. Lower is better.

    >>> macs(8, 10, 1, passes=24), macs(8, 10, 1, trained="head", passes=24, cached=True)
    (880, 160)
    """
    if trained not in get_args(Trained):
        raise unknown("trained", trained, get_args(Trained))
    if cached and trained == "network":
        raise UserError("features can be kept only of a backbone that is not trained: say trained='head'")
    learning = (1 + backward) * (backbone + head if trained == "network" else head)
    frozen = backbone if trained == "head" and not cached else 0
    return samples * (backbone + head) + passes * (learning + frozen)


def spent(forward: int, backward: int, spared: int = 0) -> int:
    """The bill of a run: what happened; with `spared`, as if no features had been kept. Lower is better."""
    return forward + backward + spared


for _name, _formula in (("macs", "forward + backward"), ("macs-uncached", "forward + backward + spared")):
    metric(
        _name,
        formula=f"{_formula} multiply-accumulates of answering and training; training a layer costs 3 forward passes",
        better="lower",
        unit="macs",
        paper=NED,
        example=lambda rng: {"forward": 10, "backward": 4},
    )(spent)
