"""Transport distances: by hand, by an assignment solved elsewhere, and by what every distance must satisfy."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from driftline.errors import MissingExtra, UserError
from driftline.metrics.shift import conditional_shift, covariate_shift, wasserstein2
from driftline.metrics.wasserstein import principal_components

pytest.importorskip("ot")


def assigned(a: np.ndarray, b: np.ndarray) -> float:
    """Another route: rows repeated until both sides have as many, then the best assignment."""
    many = np.lcm(len(a), len(b))
    cost = cdist(np.repeat(a, many // len(a), axis=0), np.repeat(b, many // len(b), axis=0)) ** 2
    return float(np.sqrt(cost[linear_sum_assignment(cost)].mean()))


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([0.0], [0.0, 2.0], np.sqrt(2)),  # half the mass moves by 2; the formula that the paper prints gives 1
        ([0.0, 1.0], [0.0, 1.0, 1.0], np.sqrt(1 / 6)),  # a sixth of the mass moves by 1
        ([0.0, 1.0], [1.0, 2.0], 1.0),  # both move by 1, and not one of them by 2
        ([[0.0, 0.0], [4.0, 0.0]], [[0.0, 3.0], [4.0, 3.0]], 3.0),
    ],
)
def test_by_hand(a: list, b: list, expected: float) -> None:
    assert wasserstein2(a, b) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("n", "m"), [(80, 80), (30, 45), (7, 100)])
def test_is_the_best_assignment(n: int, m: int) -> None:
    random = np.random.default_rng(n)
    a, b = random.normal(size=(n, 5)), random.normal(0.5, 2, size=(m, 5))
    assert wasserstein2(a, b) == pytest.approx(assigned(a, b), rel=1e-9)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_scale_does_not_matter(scale: float) -> None:
    random = np.random.default_rng(0)
    a, b = random.normal(size=(60, 3)), random.normal(size=(45, 3))
    assert wasserstein2(scale * a, scale * b) == pytest.approx(scale * assigned(a, b), rel=1e-9)


points = arrays(np.int64, st.tuples(st.integers(1, 8), st.just(2)), elements=st.integers(-50, 50))


@settings(deadline=None, max_examples=60)
@given(points, points, points)
def test_a_distance(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    ab, bc, ac = wasserstein2(a, b), wasserstein2(b, c), wasserstein2(a, c)
    assert ab == pytest.approx(wasserstein2(b, a), abs=1e-6)
    assert ac <= ab + bc + 1e-6
    assert ab == pytest.approx(assigned(a, b), abs=1e-6)
    # Equal shares of equal rows, and only these, are at distance 0.
    same = all((a == row).all(axis=1).mean() == (b == row).all(axis=1).mean() for row in np.concatenate([a, b]))
    assert (ab < 1e-6) == same


@settings(deadline=None, max_examples=60)
@given(points, arrays(np.int64, 2, elements=st.integers(-50, 50)), st.randoms(use_true_random=False))
def test_moving_all_rows(a: np.ndarray, move: np.ndarray, random: object) -> None:
    order = list(range(len(a)))
    random.shuffle(order)  # type: ignore[attr-defined]
    assert wasserstein2(a, a[order]) == pytest.approx(0, abs=1e-6)
    assert wasserstein2(a, a[order] + move) == pytest.approx(np.linalg.norm(move), abs=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_an_unsolved_problem_is_an_error() -> None:
    random = np.random.default_rng(0)
    a, b = random.normal(size=(50, 3)), random.normal(size=(57, 3))
    with pytest.raises(UserError, match=r"50 to 57 rows was not solved within 5 iterations.*higher max_iterations"):
        wasserstein2(a, b, max_iterations=5)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ([[1.0, 2.0]], [[1.0]], "rows of 2 and of 1"),
        ([], [1.0], "at least one row"),
        ([np.nan], [1.0], "finite"),
    ],
)
def test_what_has_no_distance(a: list, b: list, message: str) -> None:
    with pytest.raises(UserError, match=message):
        wasserstein2(a, b)


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ot", None)
    with pytest.raises(MissingExtra, match=r"driftline\[transport\]"):
        wasserstein2([0.0], [1.0])


def pictures(n: int, seed: int, tint: float = 0.0, side: int = 8) -> np.ndarray:
    """Smooth colour pictures, 0 to 255, with red added."""
    coarse = np.random.default_rng(seed).uniform(0, 200, size=(n, 3, side // 4, side // 4))
    images = np.kron(coarse, np.ones((4, 4))) + np.random.default_rng(seed + 1).normal(0, 9, (n, 3, side, side))
    images[:, 0] += tint
    return np.clip(images, 0, 255).astype(np.float32)


@pytest.mark.parametrize("side", [8, 16])  # more rows than pixels, and fewer: two solvers
def test_tinted_pictures_by_another_route(side: int) -> None:
    """TTT in small: 4 steps, each with 30 more red. Principal components by SVD, transport by assignment."""
    steps = [pictures(100, 10 * t, 30.0 * t, side) for t in range(4)]
    final = pictures(100, 99, 90.0, side)
    flat = np.concatenate([x.reshape(len(x), -1) for x in steps]).astype(float)
    _, s, v = np.linalg.svd(flat - flat.mean(axis=0), full_matrices=False)
    kept = min(100, int((np.cumsum(s**2) / (s**2).sum() < 0.95).sum()) + 1)
    put = [(x.reshape(len(x), -1) - flat.mean(axis=0)) @ v[:kept].T for x in (*steps, final)]
    distance = [assigned(x, put[-1]) for x in put[:-1]]
    found = covariate_shift(steps, final)
    np.testing.assert_allclose(found.distance, distance, rtol=1e-6)
    np.testing.assert_allclose(found.ratio, np.array(distance) / distance[-1], rtol=1e-6)
    assert found.ratio[0] > found.ratio[1] > found.ratio[2] > found.ratio[3] == 1
    assert found.n.tolist() == [100] * 4
    assert 5 < kept < 100


def test_which_components_are_kept() -> None:
    """Columns that are orthogonal, with .80 .10 .06 .04 of the variance."""
    signs = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]])
    x = np.concatenate([signs, -signs]) * np.sqrt([0.80, 0.10, 0.06, 0.04]) + 1000
    final = np.array([[1001.0, 1000.0, 1000.0, 1005.0]])
    whole = principal_components([x[:3], x[3:]], final)
    assert whole.explained == pytest.approx(0.96)
    np.testing.assert_allclose(np.abs(whole.final), [[1, 0, 0]], atol=1e-9)  # centred by the train images, not scaled
    assert [part.shape for part in whole.steps] == [(3, 3), (5, 3)]
    np.testing.assert_allclose(np.abs(whole.steps[0]), np.sqrt([[0.80, 0.10, 0.06]] * 3), atol=1e-9)
    assert principal_components([x], final, components=2).explained == pytest.approx(0.90)
    assert principal_components([x], final, variance=0.85).final.shape == (1, 2)


# Four final test images with label 0 at 0 (three of them) and label 1 at 10.
FINAL = (np.array([0.0, 0.0, 0.0, 10.0]), np.array([0, 0, 0, 1]))
LAST = (np.array([1.0, 12.0]), np.array([0, 1]))


def conditional(*steps: tuple[np.ndarray, np.ndarray]):
    return conditional_shift([x for x, _ in steps], [y for _, y in steps], *FINAL, components=None)


def test_conditional_by_hand() -> None:
    """Distances 2 and 5, then 1 and 2, weighted .75 and .25 by the final test set, not by the step itself."""
    found = conditional((np.array([2.0, 15.0]), np.array([0, 1])), LAST)
    np.testing.assert_allclose(found.distance, [2.75, 1.25])
    np.testing.assert_allclose(found.ratio, [2.2, 1])
    assert found.covered.tolist() == [1, 1]


def test_a_label_that_a_step_lacks_is_left_out_above_and_below() -> None:
    found = conditional((np.array([2.0, 2.0, 77.0]), np.array([0, 0, 5])), LAST)
    np.testing.assert_allclose(found.distance, [2, 1.25])
    np.testing.assert_allclose(found.ratio, [2, 1])  # 2 over the final step's 1 for label 0; 2 / 1.25 would be unfair
    assert (found.covered.tolist(), found.n.tolist()) == ([0.75, 1], [2, 2])


def test_a_label_that_the_final_train_set_lacks_is_left_out_everywhere() -> None:
    found = conditional((np.array([2.0, 15.0]), np.array([0, 1])), (np.array([1.0]), np.array([0])))
    np.testing.assert_allclose(found.ratio, [2, 1])
    assert found.covered.tolist() == [0.75, 0.75]


def test_no_common_label_is_no_number() -> None:
    found = conditional((np.array([2.0]), np.array([7])), LAST)
    assert np.isnan(found.ratio[0])
    assert (found.covered[0], found.n[0], found.ratio[1]) == (0, 0, 1)


def test_flipped_labels_are_conditional_shift_alone() -> None:
    x, y = np.array([0.0, 0.1, 9.0, 9.2]), np.array([0, 0, 1, 1])
    test, wanted = x + 0.5, y
    covariate = covariate_shift([x, x], test, components=None)
    found = conditional_shift([x, x], [1 - y, y], test, wanted, components=None)
    np.testing.assert_allclose(covariate.ratio, [1, 1])
    assert found.ratio[0] > 10
    assert found.ratio[1] == 1


def test_labels_and_images_must_pair() -> None:
    with pytest.raises(UserError, match="one label"):
        conditional((np.array([2.0, 3.0]), np.array([0])), LAST)
    with pytest.raises(UserError, match="at least one step"):
        covariate_shift([], [1.0])
