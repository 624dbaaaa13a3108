"""Text-to-text networks: BART and T5 through Hugging Face, and a small BART from scratch.

Lewis et al., "BART: Denoising Sequence-to-Sequence Pre-training", ACL 2020; Raffel et al., "Exploring the Limits of
Transfer Learning with a Unified Text-to-Text Transformer", JMLR 2020. Weights are read from safetensors alone: a
pickle can run code.

The adapter is a `driftline.tasks.TextGenerator`. Rows of tokens travel as floats, as all inputs of networks do; floats
hold them exactly. Before each pass they are cut to the longest row in the batch, rounded up, so that little work is
spent on padding and the MAC counter, which counts once per shape, meets few shapes. To write, texts are sorted by
length first.
Attention is computed in plain products because torch's counter does not see its fused form on a CPU.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from driftline.device import to_device
from driftline.errors import UserError
from driftline.models.preprocessing import build_seeded
from driftline.models.text.huggingface import load_pretrained
from driftline.models.text.tfidf import check_texts
from driftline.models.text.tokenizer import Tokenizer, optional_import, train_bpe
from driftline.models.weights import set_loaded
from driftline.registry import register
from driftline.seeds import Seed
from driftline.tasks import IGNORE_INDEX
from driftline.types import Inputs, JsonObject, Network, Targets

INPUT_STEP, ANSWER_STEP = 16, 4  # inputs and targets are as long as a multiple of these


@dataclass(unsafe_hash=True)
class AnswerLength:
    """The number of steps of an answer: set by the first pass, and used by a pass that repeats it.

    The MAC counter looks up work by the arguments of a pass, which do not contain the length of an answer otherwise.
    """

    steps: int | None = None


class Seq2Seq(nn.Module):
    """A Hugging Face encoder and decoder with the interface of `tasks.TextGenerator`."""

    def __init__(
        self,
        network: Network,
        words: Tokenizer | None,
        *,
        max_input_tokens: int,
        max_answer_tokens: int,
        num_beams: int = 1,
        vocab_size: int = 0,
        micro_batch: int | None = None,
    ) -> None:
        super().__init__()
        for name, value in {
            "max_input_tokens": max_input_tokens,
            "max_answer_tokens": max_answer_tokens,
            "num_beams": num_beams,
            "micro_batch": micro_batch or 1,
        }.items():
            if value < 1:
                raise UserError(f"{name}={value}: must be 1 or greater")
        self.network, self.tokenizer = network, words
        self.max_input_tokens, self.max_answer_tokens, self.num_beams = max_input_tokens, max_answer_tokens, num_beams
        self.micro_batch = micro_batch
        self._vocab_size = vocab_size  # of the vocabulary that it learns if it came without one
        self._learns_vocabulary = words is None

    def build_vocabulary(self, x: Inputs, y: Targets) -> None:
        """Learn a vocabulary from the first texts and answers, unless there is one."""
        if self.tokenizer is None and not isinstance(x, Tensor):
            self.tokenizer = train_bpe([*map(str, x), *map(str, y)], self._vocab_size)

    def encode(self, x: Inputs) -> Tensor:
        """Return rows of tokens; a text that is too long is truncated, except for its end mark."""
        if isinstance(x, Tensor):
            return x
        return _pad_rows(self._truncate(x, self.max_input_tokens), self._has_vocabulary.pad)

    def targets(self, y: Targets) -> Tensor:
        if isinstance(y, Tensor):
            return y
        return _pad_rows(self._truncate(y, self.max_answer_tokens), IGNORE_INDEX).long()

    def count_truncated(self, x: Sequence[str]) -> int:
        """Return how many of these texts are truncated."""
        lengths = self._has_vocabulary.lengths(x) if self.tokenizer else []
        return sum(length > self.max_input_tokens for length in lengths)

    def teacher_forced(self, x: Tensor, y: Tensor) -> Tensor:
        outputs: Tensor = self(
            _trim_padding(x, self._has_vocabulary.pad, INPUT_STEP), _trim_padding(y, IGNORE_INDEX, ANSWER_STEP)
        )
        return outputs

    def generate(self, x: Inputs, batch: int = 64) -> np.ndarray:
        """Return an answer for each text, by greedy or beam search; empty answers without a vocabulary."""
        answers = np.full(len(x), "", dtype=object)
        if self.tokenizer is None or not len(x):
            return answers
        tokens = self.encode(x)
        order = (tokens != self.tokenizer.pad).sum(1).argsort(stable=True)
        for rows in order.split(batch):
            inputs = to_device(_trim_padding(tokens[rows], self.tokenizer.pad, INPUT_STEP))
            written = self(inputs, length=AnswerLength())
            answers[rows.numpy()] = self.tokenizer.decode(written.tolist())
        return answers

    def forward(self, x: Tensor, y: Tensor | None = None, *, length: AnswerLength | None = None) -> Tensor:
        """Return the logits of the tokens `y`, each given those before it; with a `length`, generate tokens."""
        tokens = x.long()
        if (tokens != x).any():
            raise UserError("a model that reads texts cannot take inputs that were mixed: use another method")
        given = {"input_ids": tokens, "attention_mask": (tokens != self._has_vocabulary.pad).long()}
        if length is not None:
            return self._generate(given, length)
        if y is None:
            raise UserError("a model that generates texts trains by teacher forcing, which this method does not use")
        before = self.network.prepare_decoder_input_ids_from_labels(labels=y)
        logits: Tensor = self.network(**given, decoder_input_ids=before, use_cache=False).logits
        return logits.float()

    def get_extra_state(self) -> str:
        """Return the trained vocabulary, which is part of the state."""
        return self.tokenizer.content if self._learns_vocabulary and self.tokenizer else ""

    def set_extra_state(self, state: str) -> None:
        if self._learns_vocabulary:
            self.tokenizer = Tokenizer(state) if state else None

    @property
    def _has_vocabulary(self) -> Tokenizer:
        if self.tokenizer is None:
            raise UserError("this model takes its vocabulary from its training texts, and it was not trained yet")
        return self.tokenizer

    def _truncate(self, texts: Sequence[str], most: int) -> list[list[int]]:
        end = self._has_vocabulary.end
        rows = self._has_vocabulary.encode([str(text) for text in texts])
        return [row if len(row) <= most else [*row[: most - 1], end] for row in rows]

    def _generate(self, given: dict[str, Tensor], length: AnswerLength) -> Tensor:
        """Search for the most likely answer; record the number of steps, or use the recorded one."""
        fixed = {} if length.steps is None else {"min_new_tokens": length.steps}
        steps = 0

        def count(tokens: Tensor, scores: object, **_: Any) -> Tensor:
            nonlocal steps
            steps = max(steps, tokens.shape[1] - 1)  # the first one is given
            return torch.zeros(len(tokens), dtype=torch.bool, device=tokens.device)

        written: Tensor = self.network.generate(
            **given,
            **fixed,
            max_new_tokens=length.steps or self.max_answer_tokens,
            num_beams=self.num_beams,
            do_sample=False,
            stopping_criteria=[count],
        )
        length.steps = length.steps or steps
        return written


@register("model", "seq2seq")
def seq2seq(
    shape: tuple[int, ...],
    outputs: int,
    seed: Seed,
    *,
    weights: str = "facebook/bart-base",  # folder, or name on the Hugging Face hub
    max_input_tokens: int = 888,  # maximum number of tokens of an input
    max_answer_tokens: int = 50,  # maximum number of tokens of an answer
    num_beams: int = 3,  # width of the beam search
    micro_batch: int | None = None,  # samples of a mini-batch in memory at a time; None: all
) -> nn.Module:
    """A BART or T5 with its own weights and words, from a folder or by its name on the Hugging Face hub."""
    _check_text_task("seq2seq", shape, outputs)
    network, words = load_pretrained(weights)
    room = getattr(network.config, "max_position_embeddings", None)
    options: JsonObject = {"num_beams": num_beams, "micro_batch": micro_batch}
    max_input_tokens, max_answer_tokens = (
        min(max_input_tokens, room or max_input_tokens),
        min(max_answer_tokens, room or max_answer_tokens),
    )
    model = build_seeded(
        lambda: Seq2Seq(
            network, words, max_input_tokens=max_input_tokens, max_answer_tokens=max_answer_tokens, **options
        ),
        seed,
    )
    set_loaded(model, network.loaded_weights)
    return model


@register("model", "small-bart")
def small_bart(
    shape: tuple[int, ...],
    outputs: int,
    seed: Seed,
    *,
    width: int = 96,  # size of an embedding
    layers: int = 2,  # layers of the encoder, and of the decoder
    heads: int = 4,  # attention heads
    vocab_size: int = 1024,  # number of word pieces
    max_input_tokens: int = 256,  # maximum number of tokens of an input
    max_answer_tokens: int = 16,  # maximum number of tokens of an answer
    num_beams: int = 1,  # width of the beam search
    dropout: float = 0.1,  # dropout rate
    micro_batch: int | None = None,  # samples of a mini-batch in memory at a time; None: all
) -> nn.Module:
    """A small BART from random weights; its `vocab_size` word pieces come from its first training batch."""
    _check_text_task("small-bart", shape, outputs)
    if width % heads:
        raise UserError(f"width={width} and heads={heads}: small-bart's width is a multiple of its heads")
    transformers = optional_import("transformers", "model 'small-bart'")
    half = {"layers": layers, "attention_heads": heads, "ffn_dim": 2 * width}
    config = transformers.BartConfig(
        vocab_size=vocab_size,
        d_model=width,
        max_position_embeddings=max(max_input_tokens, max_answer_tokens + 1),
        dropout=dropout,
        init_std=1 / math.sqrt(width),  # BART's .02 is made for widths of 768 and more
        forced_eos_token_id=None,  # an answer may be cut short
        attn_implementation="eager",
        **{f"{part}_{name}": value for part in ("encoder", "decoder") for name, value in half.items()},
    )
    make = transformers.BartForConditionalGeneration
    options: JsonObject = {"num_beams": num_beams, "vocab_size": vocab_size, "micro_batch": micro_batch}
    return build_seeded(
        lambda: Seq2Seq(
            make(config), None, max_input_tokens=max_input_tokens, max_answer_tokens=max_answer_tokens, **options
        ),
        seed,
    )


def _check_text_task(model: str, shape: tuple[int, ...], outputs: int) -> None:
    check_texts(model, shape)
    if outputs:
        raise UserError(f"{model} generates texts, and this task has {outputs} classes: use tfidf, for example")


def _pad_rows(rows: list[list[int]], pad: int) -> Tensor:
    """Return one row of tokens per text, padded to the longest."""
    table = np.full((len(rows), max(map(len, rows), default=1)), pad, np.int32)
    for line, row in zip(table, rows, strict=True):
        line[: len(row)] = row
    return torch.from_numpy(table)


def _trim_padding(rows: Tensor, pad: int, step: int) -> Tensor:
    """Remove padding columns; the length is rounded up to a multiple of `step` where the rows are long enough."""
    used = int((rows != pad).sum(1).max()) if len(rows) else 0
    return rows[:, : max(math.ceil(used / step), 1) * step]
