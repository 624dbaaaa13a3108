"""NED's compute: multiply-accumulates of each method on its sequence 5, from the counted cost of a forward pass."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch

from driftline import models
from driftline.ledger.counts.ned_sequences import labels
from driftline.metrics.compute import macs, training_passes
from driftline.training.cached_features import macs_per_sample
from driftline.types import JsonObject

NOTE = "sequence 5 as published, 224 pixels, training a layer counts as three forward passes"
SEQUENCE, CLASSES, SIDE = 5, 1000, 224
TRAIN_EVERY, EPOCHS = 5000, 4
ANSWERS_ONLY = ("meta-baseline", "ncm")
HEAD_ONLY = ("fine-tune", "weight-imprinting", "exemplar-tuning")
FEATURES = {"resnet18": 512, "resnet50": 2048}
"""Inputs of the last layer. The paper's conv-4 is another network than ours."""


def scores(data_dir: Path | None) -> list[JsonObject]:
    """Return the multiply-accumulates by network and method, with and without cached features."""
    samples = len(labels(SEQUENCE, data_dir)[0])
    return [row for model in FEATURES for row in _rows(model, samples)]


def forward_macs(model: str) -> int:
    """Return the multiply-accumulates of a forward pass of one image."""
    network = models.build(model, (SIDE, SIDE, 3), CLASSES)
    return macs_per_sample(network, torch.zeros(1, 3, SIDE, SIDE))


def _rows(model: str, samples: int) -> Iterator[JsonObject]:
    forward, passes = forward_macs(model), training_passes(samples, TRAIN_EVERY, EPOCHS)
    head = FEATURES[model] * CLASSES
    costs = [(name, "macs", macs(samples, forward)) for name in ANSWERS_ONLY]
    costs.append(("standard-training", "macs", macs(samples, forward, passes=passes)))
    for metric, cached in (("macs", True), ("macs-uncached", False)):
        cost = macs(samples, forward - head, head, trained_part="head", passes=passes, cached=cached)
        costs += [(name, metric, cost) for name in HEAD_ONLY]
    for name, metric, value in costs:
        row = {"setting": model, "method": name, "seed": 0, "metric": metric, "stat": "final"}
        yield {**row, "value": float(value), "n": samples, "unit": "examples"}
