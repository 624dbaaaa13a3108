"""Exact match and token F1 by hand, and every consequence of the order in which answers are normalised."""

import numpy as np
import pytest

from driftline.metrics.text import exact_match, token_f1
from driftline.text_answers import SEPARATOR, join_answers, matches, normalize_answer, split_answers


@pytest.mark.parametrize(
    ("answer", "compared"),
    [
        ("Eiffel-Tower", "eiffeltower"),  # punctuation is deleted, not made a space
        ("U.S.", "us"),
        ("the", ""),
        ("A", ""),
        ("The  cat\tand an\nowl", "cat and owl"),
        ("theatre banana", "theatre banana"),  # whole words alone
        ("“Quoted” – ‘so’", "“quoted” – ‘so’"),  # typographic marks are no ASCII
        ("a.b", "ab"),  # punctuation before articles: the other order would leave "b"
        ("  ", ""),
    ],
)
def test_normalised(answer, compared):
    assert normalize_answer(answer) == compared


@pytest.mark.parametrize(
    ("prediction", "truths", "right"),
    [
        ("Eiffel-Tower", ["eiffel tower"], 0),
        ("U.S.", ["us"], 1),
        ("the", ["a"], 1),
        ("“us”", ["us"], 0),
        ("us", ["America", "U.S."], 1),
        (" us ", ["America"], 0),
        ("new york city", ["new york"], 0),
        ("york new", ["new york"], 0),
        ("", [], 0),  # without answers nothing is right
        ("anything", [], 0),
    ],
)
def test_exact_match_with_any_accepted_answer(prediction, truths, right):
    assert exact_match([prediction], [join_answers(truths)]).tolist() == [right]
    assert matches(prediction, join_answers(truths)) == bool(right)


@pytest.mark.parametrize(
    ("prediction", "truths", "f1"),
    [
        ("new york city", ["new york"], 0.8),  # P 2/3, R 1
        ("york new", ["new york"], 1.0),
        ("york york", ["new york"], 0.5),  # a bag: the second york has no partner
        ("the", ["a"], 0.0),  # no word is left of either: 0 in SQuAD's script, though an exact match
        ("", ["york"], 0.0),
        ("york", ["the"], 0.0),
        ("new york city", ["boston", "city", "city of new york"], 6 / 7),  # the best: P 1, R 3/4
        ("york", [], 0.0),
    ],
)
def test_token_f1_is_the_best_over_accepted_answers(prediction, truths, f1):
    assert token_f1([prediction], [join_answers(truths)])[0] == pytest.approx(f1, abs=1e-12)


def test_f1_is_symmetric_and_1_wherever_answers_with_words_match():
    random = np.random.default_rng(0)
    texts = [" ".join(["e", *random.choice(["a", "B", "c.", "the", "d"], random.integers(4))]) for _ in range(200)]
    np.testing.assert_allclose(token_f1(texts[:100], texts[100:]), token_f1(texts[100:], texts[:100]))
    assert (token_f1(texts[:100], texts[100:]) >= exact_match(texts[:100], texts[100:])).all()
    assert token_f1(texts, texts).tolist() == [1.0] * 200


def test_several_answers_are_one_text_and_come_back():
    assert split_answers(join_answers(["Rome", "the city, Rome", "Rome"])) == ("Rome", "the city, Rome")
    assert split_answers(join_answers([f"a{SEPARATOR}b"])) == ("a b",)
    assert split_answers(join_answers([])) == split_answers("") == ()


def test_as_many_answers_as_predictions():
    for metric in (exact_match, token_f1):
        with pytest.raises(ValueError, match="zip"):
            metric(["a"], ["a", "b"])
