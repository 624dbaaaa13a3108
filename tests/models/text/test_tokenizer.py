"""Tokenizers: the number of tokens of texts."""

from __future__ import annotations

import pytest

from driftline.models.text import tokenizer
from driftline.models.text.tokenizer import train_bpe

pytest.importorskip("tokenizers")
TEXTS = ["the sun", "", "the sea and the sun", "the sun"]


def test_tokens_of_a_text_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    one = train_bpe(TEXTS, 300)
    expected, asked = [len(row) for row in one.encode(TEXTS)], list[str]()
    encode = one.encode
    monkeypatch.setattr(one, "encode", lambda texts: asked.extend(texts) or encode(texts))
    assert one.lengths(TEXTS) == expected
    assert [one.lengths(["the sea", *TEXTS])[1:], one.lengths([])] == [expected, []]
    assert asked == ["the sun", "", "the sea and the sun", "the sea"]


def test_counts_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer, "MAX_CACHED_LENGTHS", 1)
    one = train_bpe(TEXTS, 300)
    assert one.lengths(TEXTS) == one.lengths(TEXTS)
    one.lengths(["the sea"])
    assert len(one._lengths) == 1
