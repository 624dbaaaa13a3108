"""Networks for texts made of a pretrained encoder and a head, on frozen features or trained together.

A run that is resumed meets texts in other company than before, and must end the same. Features are therefore computed
in batches of one size, each text padded to a length that depends on it alone: its place and its neighbors in the batch
then change no bit, which a test checks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from driftline.device import HOST, place, to_device
from driftline.errors import UserError
from driftline.models.text.feature_cache import FeatureCache
from driftline.models.text.tokenizer import Tokenizer
from driftline.types import Inputs, Network

BATCH = 8  # texts in a batch; more are no faster on a CPU
LENGTH_STEP = 8  # lengths are multiples of this, so that the meter, which counts once per shape, meets few
MAX_CACHED_TEXTS = 1 << 18  # number of texts whose features are cached; 400 MB with MiniLM
Pooling = Literal["mean", "first"]


class FrozenEncoder:
    """A frozen encoder with the features of all texts so far; it never changes, so copies share it."""

    def __init__(
        self,
        network: Network,
        tokenizer: Tokenizer,
        max_tokens: int,
        pooling: Pooling = "mean",
        kept: FeatureCache | None = None,
    ) -> None:
        self.network, self.tokenizer, self.max_tokens = network.requires_grad_(False).eval(), tokenizer, max_tokens
        self.pooling = pooling
        self.features_by_text: dict[str, Tensor] = {}
        self.cache = kept

    def __deepcopy__(self, memo: dict[int, object]) -> FrozenEncoder:
        return self

    @property
    def width(self) -> int:
        return int(self.network.config.hidden_size)

    def features(self, texts: Sequence[str]) -> Tensor:
        """Return one row of features per text."""
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
        """Return the texts whose features are neither in memory nor on disk, each once."""
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
            rows = pool(place(self.network), to_device(tokens), self.tokenizer.pad, self.pooling).to(HOST).float()
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
        """Return the features of texts; a tensor does not change."""
        return x if isinstance(x, Tensor) else self._encoder.features([str(text) for text in x])

    def count_truncated(self, x: Sequence[str]) -> int:
        """Return how many of these texts are truncated."""
        return _count_truncated(self._encoder.tokenizer, x, self._encoder.max_tokens)

    def forward(self, x: Tensor) -> Tensor:
        outputs: Tensor = self.head(x)
        return outputs


class FineTunedEncoder(nn.Module):
    """An encoder and its head, trained together."""

    def __init__(
        self,
        network: nn.Module,
        tokenizer: Tokenizer,
        max_tokens: int,
        pooling: Pooling,
        outputs: int,
        width: int | None,
    ) -> None:
        super().__init__()
        config: Any = network.config
        self.pooling = pooling
        self.network, self.tokenizer, self.max_tokens = network.requires_grad_(True), tokenizer, max_tokens
        self.head = _head(config.hidden_size, width, outputs)

    def encode(self, x: Inputs) -> Tensor:
        """Return rows of tokens, padded to the longest; a tensor does not change."""
        if isinstance(x, Tensor):
            return x
        rows = tokenize_truncated(self.tokenizer, [str(text) for text in x], self.max_tokens) or [[]]
        filled = pad_sequence([torch.tensor(row, dtype=torch.int32) for row in rows], True, self.tokenizer.pad)
        return filled[: len(x)]

    def count_truncated(self, x: Sequence[str]) -> int:
        """Return how many of these texts are truncated."""
        return _count_truncated(self.tokenizer, x, self.max_tokens)

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.long()
        if (tokens != x).any():
            raise UserError("minilm with trainable=all cannot take inputs that were mixed: use trainable=head")
        outputs: Tensor = self.head(self._features(tokens))
        return outputs

    def _features(self, tokens: Tensor) -> Tensor:
        if not len(tokens):  # attention cannot do with nothing
            config: Any = self.network.config
            return torch.zeros(0, config.hidden_size, device=tokens.device)
        used = int((tokens != self.tokenizer.pad).sum(1).max())
        tokens = tokens[:, : _round_up_length(used, self.max_tokens)]
        return pool(self.network, tokens, self.tokenizer.pad, self.pooling)


def pool(network: nn.Module, tokens: Tensor, pad: int, pooling: Pooling) -> Tensor:
    """Return the last layer at the first token, or its mean over the tokens of a text, of length root(width)."""
    mask = (tokens != pad).long()
    last: Tensor = network(input_ids=tokens, attention_mask=mask).last_hidden_state
    if pooling == "first":
        return last[:, 0]
    mean = (last * mask[..., None]).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)
    return nn.functional.normalize(mean, dim=1) * math.sqrt(mean.shape[1])


def tokenize_truncated(tokenizer: Tokenizer, texts: Sequence[str], max_tokens: int) -> list[list[int]]:
    """Return the tokens of texts; a text that is too long is truncated, except for its end mark."""
    rows = tokenizer.encode(texts)
    return [row if len(row) <= max_tokens else [*row[: max_tokens - 1], row[-1]] for row in rows]


def _count_truncated(tokenizer: Tokenizer, texts: Sequence[str], max_tokens: int) -> int:
    return sum(length > max_tokens for length in tokenizer.lengths([str(text) for text in texts]))


def _round_up_length(length: int, max_tokens: int) -> int:
    return min(max(math.ceil(length / LENGTH_STEP), 1) * LENGTH_STEP, max_tokens)  # an encoder has no place for more


def _head(features: int, width: int | None, outputs: int) -> nn.Module:
    if width is None:
        return nn.Linear(features, outputs)
    return nn.Sequential(nn.Linear(features, width), nn.ReLU(), nn.Linear(width, outputs))
