"""Files of weights: find one, read its tensors, and rename them for a network.

Read are safetensors and PyTorch files (`.pth`, `.pt`, `.th`, `.bin`, `.pth.tar`), the latter without running any code:
nothing but tensors, plain values and `argparse.Namespace` is ever loaded.
"""

from __future__ import annotations

import argparse
import functools
import logging
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from driftline.data import data_folders, weights_file
from driftline.device import HOST
from driftline.errors import UserError
from driftline.io.checksums import file_hash

log = logging.getLogger("driftline")

ENTRIES = ("state_dict_ema", "model_ema", "state_dict", "model", "teacher", "resnet")
"""Entries of a training checkpoint that may hold the weights; the first one that does is used."""
PICKLED = re.compile(r"GLOBAL (\S+) was not an allowed global")
"""How torch names a class in a file that is not only tensors."""
WRAPPER = re.compile(r"(?:module|_orig_mod|encoder_q|backbone|model|network|visual\.trunk|_feature_blocks)\.")
"""Prefixes that wrappers and training code put in front of a network's own names."""
NAMED_HASH = re.compile(r"-([0-9a-f]{8})\.[a-z]+")
"""The start of a file's SHA-256, with which the names of published files of torchvision and others end."""
OLD_DENSENET_NAME = re.compile(r"(.*denselayer\d+\.(?:norm|conv))\.([12]\.\w+)")


@dataclass(frozen=True)
class Checkpoint:
    """The tensors of a file by name."""

    path: Path
    tensors: dict[str, Tensor]
    entry: str = ""
    """The entry of the file that holds them; empty if the file itself does."""
    prefix: str = ""
    """The prefix that was stripped from all names."""
    others: tuple[str, ...] = ()
    """Names of the file without this prefix: other parts of what was trained."""

    def renamed_for(self, names: set[str]) -> Checkpoint:
        """Return the checkpoint without the prefix that hides the most of a network's names."""
        prefix = max(_prefixes(self.tensors), key=lambda prefix: sum(prefix + name in self.tensors for name in names))
        tensors = {key.removeprefix(prefix): value for key, value in self.tensors.items() if key.startswith(prefix)}
        others = tuple(key for key in self.tensors if not key.startswith(prefix))
        return replace(self, tensors=tensors, prefix=prefix, others=others)


def _prefixes(names: dict[str, Tensor]) -> list[str]:
    """Return all prefixes made of known wrappers, the shortest first."""
    found = {""}
    for name in names:
        end = 0
        while match := WRAPPER.match(name, end):
            end = match.end()
            found.add(name[:end])
    return sorted(found, key=len)


def find_weights(weights: str, advice: str) -> Path:
    """Return the file itself, or the one of this name in a data folder or in `weights` there."""
    if found := weights_file(weights):
        return found
    looked = ", ".join(str(folder) for folder in data_folders())
    raise UserError(f"there is no file {weights}, nor one of this name in {looked} or in 'weights' there. {advice}")


def read_checkpoint(path: Path) -> Checkpoint:
    """Return the tensors in a safetensors or PyTorch file; no code in it is ever run."""
    try:
        content = _content(path)
    except Exception as error:  # a broken or unsafe file makes its reader fail in many ways
        reason = " ".join(str(error).split())[:200]
        if found := PICKLED.search(str(error)):
            reason = f"it holds an object of the class {found[1]}; save its state_dict() instead"
        elif " " not in reason or "weights_only" in reason:  # torch fails with a bare number, or advises to run code
            reason = "it is damaged, or no file of torch.save or safetensors"
        raise UserError(f"cannot read {path} as a file of weights and nothing else: {reason}") from error
    _check_name(path, path.stat().st_mtime_ns)
    entries = {"": content}
    if isinstance(content, dict):
        entries |= {name: content[name] for name in ENTRIES if name in content}
    for entry, tensors in entries.items():
        if isinstance(tensors, dict) and tensors and all(isinstance(value, Tensor) for value in tensors.values()):
            # torchvision's file of DenseNet-121 has names of an older version.
            renamed = {OLD_DENSENET_NAME.sub(r"\1\2", name): value for name, value in tensors.items()}
            return Checkpoint(path, renamed, entry)
    named = f", but {', '.join(map(str, [*content][:5]))}" if isinstance(content, dict) and content else ""
    raise UserError(f"{path} does not hold tensors by name{named}: save a network's state_dict")


@functools.cache
def _check_name(path: Path, changed: int) -> None:
    """Log a note, once, if a file is not the one that its name says: another one of the same shapes fits as well."""
    named = NAMED_HASH.search(path.name)
    if named and not (found := file_hash(path)).startswith(named[1]):
        log.warning(f"note: {path.name} is not the published file: its SHA-256 begins with {found[:8]}, not {named[1]}")


def _content(path: Path) -> Any:
    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        return load_file(path)
    with torch.serialization.safe_globals([argparse.Namespace]):  # the arguments that training code saves
        return torch.load(path, map_location=HOST, weights_only=True)
