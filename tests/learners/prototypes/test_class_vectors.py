"""Comparing samples with classes: right, and the same whatever is compared beside them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftline.learners.prototypes.class_vectors import CHUNK, ClassVectors, add_to_sum


def drawn(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def classes_with(vectors: np.ndarray, euclidean: bool, known: np.ndarray | None = None) -> ClassVectors:
    made = ClassVectors(*vectors.shape, euclidean)
    made.set_all(vectors, np.ones(len(vectors), bool) if known is None else known)
    return made


def feature_by_feature(rows: np.ndarray, vectors: np.ndarray, euclidean: bool, fused: bool) -> np.ndarray:
    """Sums in float32; fused, a product is not rounded before it is added. (Of two float32, float64 holds it whole.)"""
    total = np.zeros((len(rows), len(vectors)), np.float32)
    for k in range(rows.shape[1]):
        a, b = np.broadcast_arrays(rows[:, k, None], vectors[:, k])
        if euclidean:
            a, b = b - a, a - b
        product = a.astype(float) * b
        total = (total + (product if fused else product.astype(np.float32))).astype(np.float32)
    return total


@pytest.mark.parametrize("euclidean", [False, True])
@settings(max_examples=30, deadline=None)
@given(rows=st.integers(1, 9), classes=st.integers(1, 37), features=st.integers(1, 23), seed=st.integers(0, 99))
def test_sums_are_made_feature_by_feature(euclidean: bool, rows: int, classes: int, features: int, seed: int) -> None:
    x, vectors = drawn(seed, rows, features), drawn(seed + 1, classes, features)
    found = classes_with(vectors, euclidean).outputs(x)
    exact = [
        feature_by_feature(x, vectors, euclidean, fused) for fused in (True, False)
    ]  # by what the processor can do
    assert any(np.array_equal(found, one) for one in exact)


@pytest.mark.parametrize("euclidean", [False, True])
@pytest.mark.parametrize(("rows", "classes", "features"), [(CHUNK, 1000, 512), (CHUNK - 1, 17, 33), (5, 100, 64)])
def test_a_row_is_compared_alike_alone_and_in_a_block(euclidean: bool, rows: int, classes: int, features: int) -> None:
    x, found = drawn(3, rows, features), classes_with(drawn(4, classes, features), euclidean)
    together = found.outputs(x)
    np.testing.assert_array_equal(np.concatenate([found.outputs(x[k : k + 1]) for k in range(rows)]), together)
    np.testing.assert_array_equal(found.outputs(np.ascontiguousarray(x[::-1])), together[::-1])


def test_blas_would_not_do() -> None:
    """Why sums are made here: a library's digits depend on how many rows are asked about at once."""
    x, vectors = drawn(5, 32, 512), drawn(6, 1000, 512)
    alone = np.concatenate([x[k : k + 1] @ vectors.T for k in range(32)])
    assert not np.array_equal(alone, x @ vectors.T)


@pytest.mark.parametrize("euclidean", [False, True])
@settings(max_examples=30, deadline=None)
@given(
    rows=st.integers(1, CHUNK),
    changes=st.lists(st.tuples(st.integers(0, CHUNK), st.integers(0, 19)), max_size=30),
    seed=st.integers(0, 99),
)
def test_a_block_is_up_to_date_where_it_was_not_answered(
    euclidean: bool, rows: int, changes: list[tuple[int, int]], seed: int
) -> None:
    block, vectors, later = drawn(seed, rows, 7), drawn(seed + 1, 20, 7), drawn(seed + 2, 30, 7)
    known = np.arange(20) < 10
    classes = classes_with(vectors, euclidean, known)
    outputs = classes.start_chunk(block)
    expected = outputs.copy()
    assert np.isneginf(outputs[:, ~known]).all()
    for (answered, label), vector in zip(sorted(changes), later, strict=False):
        classes.n_answered = answered
        classes.set_vector(label, vector)
        vectors[label], known[label] = vector, True
        expected[answered:] = classes_with(vectors, euclidean, known).outputs(block)[answered:]
    np.testing.assert_array_equal(outputs, expected)
    np.testing.assert_array_equal(classes.outputs(block), classes_with(vectors, euclidean, known).outputs(block))


def test_setting_all_forgets_single_changes_and_ends_the_block() -> None:
    classes = ClassVectors(3, 2, euclidean=False)
    classes.set_vector(2, np.float32([9, 9]))
    block = classes.start_chunk(np.float32([[2, 3]]))
    classes.set_all(np.float32([[1, 0], [0, 1], [0, 0]]), np.array([True, True, False]))
    classes.set_vector(0, np.float32([4, 4]))
    assert block.tolist() == [[-np.inf, -np.inf, 45]]
    assert classes.outputs(np.float32([[2, 3]])).tolist() == [[20, 3, -np.inf]]


def test_a_mean_is_its_sum_by_its_count_not_a_moving_one() -> None:
    """0.1, 0.2 and 0.4 as float32: their sum in float64 by 3, rounded once."""
    rows, sums, counts, means = np.float32([[0.1], [0.2], [0.4]]), np.zeros((2, 1)), np.zeros(2, int), drawn(0, 2, 1)
    first = means[0, 0]
    for row in rows:
        add_to_sum(row, 1, sums, counts, means)
    assert (counts.tolist(), sums[1, 0]) == ([0, 3], rows.astype(float).sum())
    assert means.tolist() == [[first], [np.float32(rows.astype(float).sum() / 3)]]


@pytest.mark.parametrize("euclidean", [False, True])
def test_a_mean_that_moves_is_a_mean_and_then_its_vector(euclidean: bool) -> None:
    block, rows, sums, counts = drawn(7, CHUNK, 40), drawn(8, 50, 40), np.zeros((9, 40)), np.zeros(9, int)
    by_one_call, by_two = ClassVectors(9, 40, euclidean), ClassVectors(9, 40, euclidean)
    outputs, expected = by_one_call.start_chunk(block), by_two.start_chunk(block)
    again, told, means = sums.copy(), counts.copy(), np.zeros((9, 40), np.float32)
    for k, row in enumerate(rows):
        label = k * k % 9
        by_one_call.n_answered = by_two.n_answered = k
        by_one_call.add_to_mean(label, row, sums, counts)
        add_to_sum(row, label, again, told, means)
        by_two.set_vector(label, means[label])
    np.testing.assert_array_equal(outputs, expected)
    np.testing.assert_array_equal(by_one_call.outputs(block), by_two.outputs(block))
    np.testing.assert_array_equal(counts, told)
