"""Features of texts that a frozen encoder has computed, kept on disk from run to run.

They are kept in the user's cache folder under `features`, in one folder for each encoder: its name is a hash of the
encoder's files, of how texts are cut, and of all else that could change a bit. Features from disk and newly computed
ones are therefore the same. A file holds the features of some texts, each under the hash of its content, and its name
is the hash of what it holds: a damaged file is noticed, removed, and its texts are computed again. Files are never
changed, so that any number of processes may add some at once. With DRIFTLINE_FEATURES=off nothing is read or written.

Features are written in lots. What is left over when a process ends, less than one lot, is computed again in the next.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load, save
from torch import Tensor

from driftline.errors import DiskError
from driftline.io.atomic import write_bytes

ENV_SWITCH = "DRIFTLINE_FEATURES"
WRITE_BATCH = 128  # fewer features wait for others: a file for each text would be too many
SUFFIXES = (".safetensors", ".json", ".txt")
BYTES = 32  # of a hash


class FeatureCache:
    """The features that one encoder has computed, in this run or an earlier one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file_index: dict[bytes, Path] | None = None  # the file that has the features of a text; found when needed
        self._read: dict[bytes, Tensor] = {}
        self._pending: dict[bytes, Tensor] = {}

    def load(self, texts: Iterable[str]) -> dict[str, Tensor]:
        """Return the features of the texts that are on disk."""
        found = ((text, self._row(_digest(text))) for text in texts)
        return {text: row for text, row in found if row is not None}

    def add(self, features: Mapping[str, Tensor]) -> None:
        """Keep these, together with later ones if they are few."""
        self._pending |= {_digest(text): row for text, row in features.items()}
        if len(self._pending) >= WRITE_BATCH:
            with contextlib.suppress(DiskError, OSError):  # a run goes on without, as if nothing had been kept
                _write(self.folder, self._pending)
            self._pending = {}

    def clear_memory(self) -> None:
        """Free the memory; features on disk stay."""
        self._read, self._file_index = {}, None

    def _row(self, key: bytes) -> Tensor | None:
        if self._file_index is None:
            self._file_index = _file_index(self.folder)
        if key not in self._read and key in self._file_index:
            self._read |= _content(self._file_index[key])
            if key not in self._read:  # the file was damaged
                del self._file_index[key]
        return self._read.get(key)


def feature_cache(encoder: Path, config: str) -> FeatureCache | None:
    """Return the cache of the encoder in this folder with these settings; None if nothing is cached."""
    if os.environ.get(ENV_SWITCH, "").lower() == "off":
        return None
    from platformdirs import user_cache_path

    where = [torch.__version__, version("transformers"), platform.machine(), torch.backends.cpu.get_cpu_capability()]
    digest = hashlib.sha256("/".join([config, f"{torch.get_num_threads()} threads", *where]).encode())
    for file in sorted(path for path in encoder.iterdir() if path.suffix in SUFFIXES):
        with file.open("rb") as content:
            digest.update(file.name.encode() + hashlib.file_digest(content, "sha256").digest())
    return FeatureCache(user_cache_path("driftline") / "features" / digest.hexdigest()[:32])


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _write(folder: Path, features: Mapping[bytes, Tensor]) -> None:
    keys = sorted(features)
    texts = torch.frombuffer(bytearray(b"".join(keys)), dtype=torch.uint8).reshape(-1, BYTES)
    content = save({"texts": texts, "features": torch.stack([features[key] for key in keys])})
    write_bytes(folder / f"{hashlib.sha256(content).hexdigest()}.safetensors", content)


def _file_index(folder: Path) -> dict[bytes, Path]:
    """Return the file of each text; remove unreadable files."""
    homes: dict[bytes, Path] = {}
    for path in sorted(folder.glob("*.safetensors")):
        try:
            with safe_open(path, framework="pt") as file:
                keys = file.get_tensor("texts").numpy()
        except (OSError, SafetensorError):
            _remove(path)
        else:
            homes |= {row.tobytes(): path for row in keys}
    return homes


def _content(path: Path) -> dict[bytes, Tensor]:
    """Return the content of a file; remove it and return nothing if it does not match its name."""
    try:
        content = path.read_bytes()
    except OSError:  # another process has removed it
        return {}
    if hashlib.sha256(content).hexdigest() != path.stem:
        _remove(path)
        return {}
    found = load(content)
    return dict(zip((row.tobytes() for row in found["texts"].numpy()), found["features"], strict=True))


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
