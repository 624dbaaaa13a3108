"""Layer rules: a notation for which layers are tuned, and in which order.

all               every layer at once
conv1,fc          these layers
fc>all            first the head, then everything (LP-FT); each stage is tuned to convergence
first-to-last     conv1, then conv1 and layer1, and so on, then all
last-to-first     fc, then fc and the last block, and so on, then all
search            every set of layers, one after another; the best one wins
rgn, snr          surgical: the best of the first 1, 2, ... layers in an order measured on the data
fc:all:fc>all     a rule for each later step of a sequence
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from driftline.errors import UserError, unknown_name

DATA_DRIVEN = ("rgn", "snr")
Layers = tuple[str, ...] | None
"""The layers that are trained; None for all of them."""


def rule_per_step(rule: str, steps: int) -> list[str]:
    """Return the rule of each later step of a sequence.

    >>> rule_per_step("fc", 2), rule_per_step("fc:all", 2)
    (['fc', 'fc'], ['fc', 'all'])
    """
    rules = rule.split(":")
    if len(rules) == 1:
        return rules * steps
    if len(rules) != steps:
        raise UserError(f"'{rule}' has layers for {len(rules)} steps, but {steps} steps are tuned")
    return rules


def tuning_stages(rule: str, names: Sequence[str]) -> list[list[Layers]]:
    """Return the stages of tuning; each is a list of candidate sets of layers.

    >>> tuning_stages("fc>all", ["conv1", "layer1", "fc"])
    [[('fc',)], [None]]
    >>> tuning_stages("last-to-first", ["conv1", "layer1", "fc"])
    [[('fc',)], [('layer1', 'fc')], [None]]
    """
    if rule == "search":
        return [[_set(found, names) for n in range(1, len(names) + 1) for found in combinations(names, n)]]
    if rule == "first-to-last":
        return [[_set(names[:n], names)] for n in range(1, len(names) + 1)]
    if rule == "last-to-first":
        return [[_set(names[-n:], names)] for n in range(1, len(names) + 1)]
    return [[None if part == "all" else _set(part.split(","), names)] for part in rule.split(">")]


def _set(chosen: Sequence[str], names: Sequence[str]) -> Layers:
    for name in chosen:
        if name not in names:
            raise unknown_name("layer", name, names)
    return None if len(set(chosen)) == len(names) else tuple(name for name in names if name in chosen)
