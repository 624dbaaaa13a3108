"""Tokenizers: with a model's own vocabulary, or one learned from the first training texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any

from driftline.errors import MissingExtra, UserError
from driftline.io.packages import import_package

START_TOKEN, PAD_TOKEN, END_TOKEN, UNKNOWN_TOKEN, MASK_TOKEN = SPECIAL_TOKENS = (
    "<s>",
    "<pad>",
    "</s>",
    "<unk>",
    "<mask>",
)  # numbered as in BART
N_BYTES = 256
MAX_CACHED_LENGTHS = 1 << 20


def optional_import(name: str, feature: str) -> ModuleType:
    """Import a package of the extra `text` when it is first needed; that takes seconds."""
    try:
        return import_package(name, feature)
    except ModuleNotFoundError as error:
        raise MissingExtra(feature, "text") from error


class Tokenizer:
    """Texts to rows of token numbers with the special ones around them, and back. It never changes."""

    def __init__(
        self, content: str, pad: int = SPECIAL_TOKENS.index(PAD_TOKEN), end: int = SPECIAL_TOKENS.index(END_TOKEN)
    ) -> None:
        self.content = content
        """A vocabulary as the JSON text of the tokenizers library."""
        self.pad, self.end = pad, end
        self._tokenizer = optional_import("tokenizers", "a model that writes texts").Tokenizer.from_str(content)
        self._tokenizer.no_truncation()  # what is cut off is counted, so it is not cut off here
        self._tokenizer.no_padding()
        self._lengths: dict[str, int] = {}

    def __deepcopy__(self, memo: dict[int, object]) -> Tokenizer:
        return self

    def __len__(self) -> int:
        return int(self._tokenizer.get_vocab_size())

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [list(row.ids) for row in self._tokenizer.encode_batch(list(texts))]

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text. A process counts those of a text once: every run asks for all."""
        if len(self._lengths) > MAX_CACHED_LENGTHS:
            self._lengths.clear()
        new = [text for text in dict.fromkeys(texts) if text not in self._lengths]
        self._lengths |= zip(new, map(len, self.encode(new)), strict=True)
        return [self._lengths[text] for text in texts]

    def decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """Return the text of tokens, without special tokens and numbers beyond the vocabulary."""
        known = [[token for token in row if 0 <= token < len(self)] for row in rows]
        return list(self._tokenizer.decode_batch(known, skip_special_tokens=True))


def train_bpe(texts: Iterable[str], size: int) -> Tokenizer:
    """Return a byte-pair encoding of at most `size` tokens, trained on these texts; it can encode any text.

    Sennrich et al., "Neural Machine Translation of Rare Words with Subword Units", ACL 2016, on bytes as in BART. Each
    text is read as if after a space, so that a word is the same token at the start of an answer and inside a text.
    """
    if size < N_BYTES + len(SPECIAL_TOKENS):
        least = N_BYTES + len(SPECIAL_TOKENS)
        raise UserError(
            f"a vocabulary of {size} tokens: {least} or more are needed, one for each byte and special token"
        )
    tokenizers = optional_import("tokenizers", "a vocabulary learned from texts")
    bytewise = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = bytewise
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    marks = [(mark, SPECIAL_TOKENS.index(mark)) for mark in (START_TOKEN, END_TOKEN)]
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        f"{START_TOKEN} $A {END_TOKEN}", special_tokens=marks
    )
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=sorted(bytewise.alphabet()),  # a set has no order to rely on
        show_progress=False,
    )
    tokenizer.train_from_iterator((text.replace(END_TOKEN, " ") for text in texts), trainer)  # a mark is not a word
    return Tokenizer(tokenizer.to_str())


def from_huggingface(tokenizer: Any) -> Tokenizer:
    """Return the vocabulary of a Hugging Face model."""
    if getattr(tokenizer, "backend_tokenizer", None) is None or None in (
        tokenizer.pad_token_id,
        tokenizer.eos_token_id,
    ):
        kind = type(tokenizer).__name__
        raise UserError(f"{kind} of {tokenizer.name_or_path} has no tokenizer.json with padding and end tokens")
    return Tokenizer(tokenizer.backend_tokenizer.to_str(), tokenizer.pad_token_id, tokenizer.eos_token_id)
