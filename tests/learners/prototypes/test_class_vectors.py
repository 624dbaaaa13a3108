"""Comparing samples with classes: right, and the same whatever is compared beside them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftline.learners.prototypes.class_vectors import ClassVectors


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
@pytest.mark.parametrize(("rows", "classes", "features"), [(96, 1000, 512), (95, 17, 33), (5, 100, 64)])
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


def test_an_unknown_class_is_minus_infinity_until_it_has_a_vector() -> None:
    classes = ClassVectors(3, 2, euclidean=True)
    classes.set_vector(2, np.float32([9, 9]))
    assert classes.outputs(np.float32([[8, 7]])).tolist() == [[-np.inf, -np.inf, -5]]
    classes.set_all(np.float32([[1, 0], [0, 1], [0, 0]]), np.array([True, True, False]))
    assert classes.outputs(np.float32([[2, 3]])).tolist() == [[-10, -8, -np.inf]]
    classes.set_vector(2, np.float32([2, 2]))
    assert classes.outputs(np.float32([[2, 3]])).tolist() == [[-10, -8, -1]]
