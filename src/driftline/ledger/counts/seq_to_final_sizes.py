"""Seq-to-Final's Tables 3, 4 and 7: samples of each step, portraits of each decade, parameters of each network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from driftline import data, models
from driftline.benchmarks.seq_to_final.benchmark import ROTATIONS, SIZES
from driftline.models.block_networks.base import weight_parameters
from driftline.streams import period_sequence, sequence
from driftline.types import JsonObject

NOTE = "sequences of the real CIFAR-10, 27,149 of 37,189 portraits, networks at full width"
FAMILIES = ("conv", "dense", "res")
TEST = 5000
FIRST, FINAL = "1930", "2000"


def scores(data_dir: Path | None) -> list[JsonObject]:
    """Return the counts; each of the three tables has names of its own."""
    folders = data.data_folders(data_dir)
    rows = [*_rotations(data.load("cifar10", {}, folders)), *_decades(data.load("yearbook", {}, folders)), *_networks()]
    return [{"method": name, "seed": 0, "metric": metric, "stat": "sum", "value": n} for name, metric, n in rows]


def _rotations(cifar10: data.Dataset) -> Iterator[tuple[str, str, float]]:
    for name, shifts in ROTATIONS.items():
        made = sequence(cifar10, shifts, SIZES[len(shifts) + 1], TEST, row_order="reference")
        for step, rows in enumerate(made.rows):
            yield f"{name}, step {step}", "samples", len(np.unique(rows.all))


def _decades(portraits: data.Dataset) -> Iterator[tuple[str, str, float]]:
    made = period_sequence(portraits, "decade", first=FIRST, final=FINAL)
    for step, (name, rows) in enumerate(zip(made.names, made.rows, strict=True)):
        tested = len(made.test_rows) if step == len(made.rows) - 1 else 0
        yield name.partition(" ")[0], "samples", len(rows.all) + tested


def _networks() -> Iterator[tuple[str, str, float]]:
    for name in (f"{family}-{blocks}" for family in FAMILIES for blocks in range(1, 5)):
        with torch.device("meta"):  # sizes alone
            network = models.build(name)
        counted = (weight.numel() for part, weight in weight_parameters(network).items() if "shortcut" not in part)
        yield name, "parameters in millions, as the paper counts", sum(counted) / 1e6
        yield name, "all parameters in millions", sum(weight.numel() for weight in network.parameters()) / 1e6
