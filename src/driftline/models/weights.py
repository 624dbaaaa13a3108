"""Published weights: load them by name into a network, with the head of the file or a new one.

The head is the last linear layer. The card of a run says what was loaded, left out and initialized.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from driftline.errors import UserError
from driftline.models.checkpoints import find_weights, read_checkpoint
from driftline.models.preprocessing import StandardizeChannels
from driftline.types import Head, Network

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)

Convert = Callable[[dict[str, Tensor]], dict[str, Tensor]]
"""From the tensors of a file to those that a network expects."""
UNUSED = re.compile(
    r"(.*\.)?num_batches_tracked|queue\w*|mask_token|mu|sigma|(encoder_k|prototypes|projection_head|normalize)\..*"
)
"""Tensors of a file that a network need not have a place for: parts of the training, and counters."""

POSITIONS = re.compile(r"pos(itional)?_embed")


@dataclass(frozen=True)
class LoadedWeights:
    """Where a network's weights come from."""

    source: str
    head: Head
    loaded: int
    """The number of tensors that were loaded."""
    entry: str
    """The entry of the file that held them; empty if the file itself did."""
    prefix: str
    """The prefix that was stripped from their names."""
    left_out: dict[str, int]
    """The tensors of the file that were not loaded: the start of their names, and how many there are."""
    initialized: list[str]
    """The tensors of the network that start at random."""


class NormalizedNetwork(nn.Module):
    """A network for color images behind the mean and deviation that its inputs are shifted and scaled by.

    Images come with values from 0 to 1; gray ones are three equal channels. Without published weights, mean and
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

    def with_weights(
        self, loaded: LoadedWeights, mean: Iterable[float] = IMAGENET_MEAN, std: Iterable[float] = IMAGENET_STD
    ) -> NormalizedNetwork:
        """Return this network, whose weights were loaded and expect images normalized by these numbers."""
        with torch.no_grad():
            self.standardize.mean.copy_(torch.tensor(tuple(mean)))
            self.standardize.scale.copy_(torch.tensor(tuple(std)))
            self.standardize.fitted.fill_(True)
        set_loaded(self, loaded)
        return self


def check_images(shape: tuple[int, ...], min_side: int, name: str) -> None:
    """Refuse inputs that are not gray or color images of at least `min_side` pixels a side."""
    if len(shape) != 3 or min(shape[:2]) < min_side or shape[2] not in (1, 3):
        raise UserError(
            f"{name} takes gray or color images (height, width, 1 or 3) of at least {min_side} x {min_side} pixels; "
            f"these inputs have shape {shape}"
        )


def pretrained_network(network: nn.Module, weights: str | None, head: Head, advice: str) -> NormalizedNetwork:
    """Return the network behind its normalization; with weights, which expect ImageNet's, if there are any."""
    check_head(weights, head)
    normalized = NormalizedNetwork(network)
    return normalized if weights is None else normalized.with_weights(load_weights(network, weights, head, advice))


def check_head(weights: str | None, head: Head) -> None:
    """Refuse a new head for a network without loaded weights."""
    if head == "new" and weights is None:
        raise UserError("model.head=new replaces the head of given weights: add --set model.weights=FILE")


def set_loaded(network: Network, loaded: LoadedWeights) -> None:
    """Record the origin of a network's weights; with a new head, it needs training."""
    network.loaded_weights = loaded
    network.pretrained = loaded.head == "keep"


def load_weights(
    network: nn.Module, weights: str, head: Head, advice: str, convert: Convert | None = None
) -> LoadedWeights:
    """Load the weights in a file into a network by name. `advice` says how to get the file.

    Every tensor of the network must be in the file, except those of a new head, and every tensor of the file must have
    its place in the network, except those of an old head and of known parts of the training.
    """
    file = read_checkpoint(find_weights(weights, advice)).renamed_for(set(network.state_dict()))
    given = file.tensors if convert is None else convert(dict(file.tensors))
    used, initialized = _match(network, given, head, file.path, advice)
    network.load_state_dict(used, strict=False)
    unused = [*_dropped(file.tensors, given), *(given.keys() - used.keys())]
    left_out = [*file.others, *(file.prefix + name for name in unused)]
    return LoadedWeights(weights, head, len(used), file.entry, file.prefix, count_by_start(left_out), initialized)


def _dropped(before: dict[str, Tensor], after: dict[str, Tensor]) -> list[str]:
    """Return the names of tensors that a conversion left out: it has neither their names nor their memory.

    Position embeddings are never left out, but have new memory if they are resized.
    """
    memory = {tensor.untyped_storage().data_ptr() for tensor in after.values()}
    gone = (name for name, tensor in before.items() if tensor.untyped_storage().data_ptr() not in memory)
    return [name for name in gone if name not in after and not POSITIONS.search(name)]


def head_name(network: nn.Module) -> str:
    """Return the name of a network's head, its last linear layer; empty if it has none.

    >>> head_name(nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)))
    '2'
    """
    return next((name for name, part in reversed(list(network.named_modules())) if isinstance(part, nn.Linear)), "")


def new_head(network: Network, outputs: int | None = None) -> list[str]:
    """Initialize a network's head again, with another number of outputs if given; return the names of its tensors."""
    name = head_name(network)
    if not name:
        raise UserError(f"model.head=new: {type(network).__name__} has no linear layer, which would be its head")
    head = network.get_submodule(name)
    if outputs is not None:
        parent, _, last = name.rpartition(".")
        head = nn.Linear(head.in_features, outputs, bias=head.bias is not None)
        setattr(network.get_submodule(parent), last, head)
    head.reset_parameters()
    return [key for key in network.state_dict() if key.startswith(f"{name}.")]


def count_by_start(names: Iterable[str]) -> dict[str, int]:
    """Return how many names begin with the same two parts.

    >>> count_by_start(["module.queue", "module.encoder_k.conv1.weight", "module.encoder_k.bn1.bias"])
    {'module.encoder_k': 2, 'module.queue': 1}
    """
    return dict(sorted(Counter(".".join(name.split(".")[:2]) for name in names).items()))


def _match(
    network: nn.Module, given: dict[str, Tensor], head: Head, path: Path, advice: str
) -> tuple[dict[str, Tensor], list[str]]:
    """Return the tensors to load and the names of those that start at random; refuse weights of another network."""
    wanted, of_head = dict(network.state_dict()), head_name(network) + "."
    if head == "new" and of_head == ".":
        raise UserError(f"model.head=new: {type(network).__name__} has no linear layer, which would be its head")
    in_head = {name for name in (*given, *wanted) if name.startswith(of_head)}
    used = {name: given[name] for name in wanted if name in given and not (head == "new" and name in in_head)}
    missing = sorted(name for name in wanted.keys() - used.keys() if not name.endswith("num_batches_tracked"))
    strange = sorted(name for name in given.keys() - wanted.keys() - in_head if not UNUSED.fullmatch(name))
    unlike = [name for name, tensor in used.items() if tensor.shape != wanted[name].shape]
    if wrong := [name for name in missing if name not in in_head] or strange:
        what = f"a {wrong[0]} that has no place in it" if wrong is strange else f"no {wrong[0]}"
        more = f" ({len(wrong)} such tensors)" if len(wrong) > 1 else ""
        raise UserError(f"{path} is for another network: it has {what}{more}. {advice}")
    if wrong := [name for name in unlike if name not in in_head]:
        sizes = f"{tuple(used[wrong[0]].shape)}, and this network needs {tuple(wanted[wrong[0]].shape)}"
        raise UserError(f"{path} is for a network of another width: {wrong[0]} has shape {sizes}")
    if head == "keep" and (missing or unlike):
        has = f"a head with {len(used[unlike[0]])} outputs" if unlike else f"no head {of_head}weight"
        raise UserError(
            f"{path} has {has}, and these data need {len(wanted[(missing or unlike)[0]])} outputs: --set "
            "model.head=new loads the rest and starts with a new head"
        )
    return used, missing
