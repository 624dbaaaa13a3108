"""Image classifiers of Hugging Face: ViT, ResNet, Swin, ConvNeXT, DINOv2 and others, from a folder.

A folder holds what `save_pretrained` or `hf download` writes: `config.json`, `model.safetensors` and, if inputs are
normalized, `preprocessor_config.json`. Weights are read from safetensors alone: a pickle can run code.
"""

from __future__ import annotations

import json
from pathlib import Path

from torch import Tensor, nn

from driftline.data import weights_folder
from driftline.errors import UserError
from driftline.io.user_files import resolve
from driftline.models.preprocessing import register_network
from driftline.models.text.huggingface import (
    LOAD_OPTIONS,
    WEIGHT_FILES,
    download_hint,
    loaded_from,
    short_message,
    silenced,
)
from driftline.models.text.tokenizer import optional_import
from driftline.models.weights import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    NormalizedNetwork,
    check_images,
    head_name,
    new_head,
)
from driftline.types import Head, JsonObject, Network

NAME = "huggingface-images"


class ImageLogits(nn.Module):
    """A Hugging Face image classifier that returns its logits."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.network(pixel_values=x).logits
        return logits


@register_network(NAME)
def huggingface_images(
    shape: tuple[int, ...],
    outputs: int,
    *,
    weights: str,  # folder of the network
    head: Head = "keep",  # keep the head of the weights, or start a new one for the classes of the data
) -> nn.Module:
    """An image classifier of Hugging Face from a folder, such as a ViT or a Swin; inputs as its configuration says."""
    check_images(shape, 8, NAME)
    folder = weights_folder(weights) or resolve(weights)
    way = download_hint("NAME", str(folder))
    if not any((folder / name).is_file() for name in WEIGHT_FILES):
        raise UserError(f"model '{NAME}': there is no {WEIGHT_FILES[0]} in {folder}. {way}")
    transformers = optional_import("transformers", f"model '{NAME}'")
    try:
        with silenced(transformers.utils.logging):
            network, report = transformers.AutoModelForImageClassification.from_pretrained(
                str(folder), num_labels=outputs, **LOAD_OPTIONS
            )
        processor = _json(folder / "preprocessor_config.json")
    except Exception as error:  # a broken file makes its parser fail in any way there is
        raise UserError(f"model '{NAME}' cannot load {folder}: {short_message(error)}. {way}") from error
    _check_size(shape, network)
    _check_complete(network, report, head, folder, outputs)
    loaded = loaded_from(weights, network, report, head, new_head(network) if head == "new" else [])
    mean, std = processor.get("image_mean", IMAGENET_MEAN), processor.get("image_std", IMAGENET_STD)
    return NormalizedNetwork(ImageLogits(network.float())).with_weights(loaded, mean, std)


def _json(path: Path) -> JsonObject:
    content: JsonObject = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return content


def _check_size(shape: tuple[int, ...], network: Network) -> None:
    """Refuse images of another size than a network with one size takes."""
    size = getattr(network.config, "image_size", None)
    if isinstance(size, int) and shape[:2] != (size, size):
        raise UserError(f"model '{NAME}': this network takes images of {size} x {size} pixels, and these are {shape}")


def _check_complete(network: Network, report: JsonObject, head: Head, folder: Path, outputs: int) -> None:
    """Refuse weights that lack a tensor; those of the head may be missing if it is new."""
    of_head = head_name(network) + "."
    unlike = [key if isinstance(key, str) else key[0] for key in report["mismatched_keys"]]
    lacking = sorted({*report["missing_keys"], *unlike})
    if rest := [name for name in lacking if not name.startswith(of_head)]:
        raise UserError(f"model '{NAME}': the weights in {folder} lack {rest[0]}, and {len(rest)} in all")
    if lacking and head == "keep":
        raise UserError(
            f"{folder} has no head with {outputs} outputs, as these data need: --set model.head=new loads the rest and "
            "starts with a new head"
        )
