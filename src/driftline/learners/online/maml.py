"""MAML: fine-tuning of a network that was meta-trained for it.

Finn et al., "Model-Agnostic Meta-Learning for Fast Adaptation of Deep Networks", ICML 2017; in a stream: Wallingford
et al., 2020 (NED), whose cost for it (the cached and uncached cells of its Table 1) is that of fine-tuning the last
layer. How the network is meta-trained: `pretraining.maml`.
"""

from __future__ import annotations

from dataclasses import dataclass

from driftline.learners.online.fine_tune import FineTuneLastLayers
from driftline.registry import register
from driftline.types import JsonObject


@register("method", "maml")
@dataclass
class MAML(FineTuneLastLayers):
    """MAML: fine-tuning of the last layers of a meta-trained network."""

    pretraining: str | JsonObject = "maml"
