"""Published networks: the normalisation of their inputs is their first layer, their weights come from a local file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from driftline.data import data_folders, weights_file
from driftline.device import HOST
from driftline.errors import UserError
from driftline.models.preprocessing import StandardizeChannels

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


class NormalizedNetwork(nn.Module):
    """A network for colour images behind the mean and deviation that its inputs are shifted and scaled by.

    Images come with values from 0 to 1; grey ones are three equal channels. Without published weights, mean and
    deviation are measured on the first data that the network is trained on.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.standardize = StandardizeChannels(3)
        self.network = network
        self.pretrained = False
        """Whether the weights are published ones, so that nothing needs to be trained before deployment."""

    def forward(self, x: Tensor) -> Tensor:
        outputs: Tensor = self.network(self.standardize(x.expand(-1, 3, -1, -1)))
        return outputs

    def set_input_stats(self, mean: tuple[float, ...], std: tuple[float, ...]) -> NormalizedNetwork:
        """The weights are published ones that expect images normalised by these numbers."""
        self.standardize.mean.copy_(torch.tensor(mean))
        self.standardize.scale.copy_(torch.tensor(std))
        self.standardize.fitted.fill_(True)
        self.pretrained = True
        return self


def check_images(shape: tuple[int, ...], min_side: int, name: str) -> None:
    """Refuse inputs that are not gray or color images of at least `min_side` pixels a side."""
    if len(shape) != 3 or min(shape[:2]) < min_side or shape[2] not in (1, 3):
        raise UserError(
            f"{name} takes grey or colour images (height, width, 1 or 3) of at least {min_side} x {min_side} pixels; "
            f"these inputs have shape {shape}"
        )


def load_weights(network: nn.Module, weights: str, advice: str) -> None:
    """Put the weights in a file into a network; every one must have its place. `advice` says how to get the file."""
    path = find_weights(weights, advice)
    given = read_tensors(path)
    wanted = network.state_dict()
    strange = sorted(given.keys() - wanted.keys())
    lacking = sorted(key for key in wanted.keys() - given.keys() if not key.endswith("num_batches_tracked"))
    if strange or lacking:
        what = f"no {lacking[0]}" if lacking else f"a {strange[0]} that has no place in it"
        raise UserError(f"{path} is for another network: it has {what}. {advice}")
    for key, tensor in given.items():
        if tensor.shape != wanted[key].shape:
            sizes = f"{tuple(tensor.shape)}, and this network needs {tuple(wanted[key].shape)}"
            raise UserError(f"{path} is for another number of classes or another width: {key} has shape {sizes}")
    network.load_state_dict(given)


def find_weights(weights: str, advice: str) -> Path:
    """The file itself, or the one of this name in a data folder or in `weights` there."""
    if found := weights_file(weights):
        return found
    looked = ", ".join(str(folder) for folder in data_folders())
    raise UserError(f"there is no file {weights}, nor one of this name in {looked} or in 'weights' there. {advice}")


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors in a safetensors or PyTorch file by name; of a pickle nothing but tensors is ever loaded."""
    try:
        content = _content(path)
    except Exception as error:  # a broken or unsafe file makes its reader fail in many ways
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"cannot read {path} as a file of weights and nothing else: {reason}") from error
    content = content.get("state_dict", content) if isinstance(content, dict) else content
    if not isinstance(content, dict) or not all(isinstance(value, Tensor) for value in content.values()):
        raise UserError(f"{path} does not hold tensors by name: save a network's state_dict")
    # A network that was trained on several processors at once carries this in front of every name.
    return {key.removeprefix("module."): value for key, value in content.items()}


def _content(path: Path) -> Any:
    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        return load_file(path)
    return torch.load(path, map_location=HOST, weights_only=True)
