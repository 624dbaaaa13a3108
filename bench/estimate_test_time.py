"""Estimate what the full recipes of test-time cost: images × passes × multiply-accumulates of the network.

python bench/estimate_test_time.py [--write]

`full_scale.py` profiles the loop on blank images, where ETA, EATA and RDumb came out at one pass per image: without
their backward passes. Here every image counts as selected: an upper bound for these three.
`--write` stores the estimates with the recipes as rough forecasts.
"""

from __future__ import annotations

import argparse
import json

import torch
import transformers
from torch.utils.flop_counter import FlopCounterMode

from driftline import models, recipes
from driftline.cli.printing.forecast import format_amount
from driftline.io import atomic
from driftline.spec import Spec, read

SIDE, CLASSES = 224, 1000
PASSES = {"frozen": 1, "bn": 1, "cotta": 26}
"""Passes per image; all other methods make a forward pass and a backward pass, which counts as two.

CoTTA's number was not measured: it is what an earlier forecast of all ten methods leaves after the other nine. It
depends on how often the teacher is unsure and averages over augmentations.
"""
ADAPTING = 3
RATE = 19e9
"""Multiply-accumulates per second of one core, from an earlier forecast of ResNet-50, assumed for all."""


def forward_macs(model: str) -> int:
    """Return the multiply-accumulates of one image."""
    with torch.device("meta"):
        if model.startswith("timm:vit_base_patch16"):
            network = transformers.ViTForImageClassification(
                transformers.ViTConfig(num_labels=CLASSES, attn_implementation="eager")
            )
        else:
            network = models.build(model, (SIDE, SIDE, 3), CLASSES)
        with FlopCounterMode(display=False) as counted, torch.no_grad():
            network.eval()(torch.zeros(1, 3, SIDE, SIDE))
    return counted.get_total_flops() // 2


def estimate(spec: Spec) -> tuple[int, int]:
    """Return the runs and multiply-accumulates of a recipe."""
    passes = sum(PASSES.get(method.name, ADAPTING) for method in spec.methods)
    images = spec.jobs(default_model="")[0].options["images"]
    return len(spec.methods) * len(spec.seeds), images * len(spec.seeds) * passes * forward_macs(spec.model.name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    path = recipes.FOLDER / recipes.COSTS
    stored = json.loads(path.read_text(encoding="utf-8"))
    for name in recipes.names():
        if name.startswith("test-time/") and name.endswith(".full"):
            runs, macs = estimate(read(recipes.path_of(f"{recipes.PREFIX}{name}")))
            hours = float(f"{macs / RATE / 3600:.2g}")
            stored["recipes"][name] = {"runs": runs, "macs": macs, "core_hours": hours, "rough": True}
            print(f"{name}: {runs} runs, {format_amount(macs)}MACs, {hours:,.0f} core hours")
    if given.write:
        atomic.write_json(path, {**stored, "recipes": dict(sorted(stored["recipes"].items()))})


if __name__ == "__main__":
    main()
