"""Views of models: by hand, by other routes to the same number, and on configurations that are known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import sqrtm
from scipy.spatial.distance import cdist

from driftline.errors import UserError
from driftline.metrics.model_similarity import (
    canonical_correlations,
    classical_mds,
    disagreement,
    disagreement_map,
    leading_directions,
    project_weights,
    svcca,
)


def orthonormal(rows: int, columns: int, seed: int = 0) -> np.ndarray:
    """Orthonormal columns that sum to 0."""
    x = np.random.default_rng(seed).normal(size=(rows, columns))
    return np.linalg.qr(x - x.mean(axis=0))[0]


def related(rows: int = 400) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(1)
    shared = random.normal(size=(rows, 4))
    a = shared @ random.normal(size=(4, 12)) + random.normal(size=(rows, 12))
    b = shared @ random.normal(size=(4, 9)) + random.normal(size=(rows, 9))
    return a + 3, b - 2


def test_a_layer_is_itself() -> None:
    a, _ = related()
    assert svcca(a, a) == pytest.approx(1)
    assert svcca(a.reshape(400, 3, 2, 2), a) == pytest.approx(1)


def test_rotation_scale_and_offset_do_not_matter() -> None:
    a, b = related()
    turned = 7 * a @ np.linalg.qr(np.random.default_rng(2).normal(size=(12, 12)))[0] - 5
    assert svcca(turned, b) == pytest.approx(svcca(a, b), abs=1e-12)
    assert svcca(b, a) == pytest.approx(svcca(a, b), abs=1e-12)
    assert 0.3 < svcca(a, b) < 0.9


def test_any_invertible_map_does_not_matter_without_truncation() -> None:
    a, b = related()
    mixed = a @ np.random.default_rng(3).normal(size=(12, 12))
    assert svcca(mixed, b, share=1) == pytest.approx(svcca(a, b, share=1), abs=1e-10)


def test_noise_is_unlike_noise() -> None:
    random = np.random.default_rng(4)
    assert svcca(random.normal(size=(4000, 10)), random.normal(size=(4000, 10))) < 0.06


def test_correlations_are_those_of_qr() -> None:
    a, b = related()
    q, r = (np.linalg.qr(x - x.mean(axis=0))[0] for x in (a, b))
    np.testing.assert_allclose(canonical_correlations(a, b, 1), np.linalg.svd(q.T @ r)[1], atol=1e-10)


def test_mean_is_that_of_inverted_covariances() -> None:
    """The route of google/svcca, on the leading singular directions."""
    made = []
    for x in related():
        u, s, _ = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
        k = int((np.cumsum(s) / s.sum() <= 0.8).sum()) + 1
        made.append(u[:, :k] * s[:k])
    one, other = made
    whiten = [np.linalg.inv(np.real(sqrtm(x.T @ x))) for x in made]
    expected = np.linalg.svd(whiten[0] @ one.T @ other @ whiten[1])[1]
    assert 1 < len(expected) < 9
    assert svcca(*related(), share=0.8) == pytest.approx(expected.mean(), abs=1e-10)


@pytest.mark.parametrize(("share", "kept"), [(0.49, 1), (0.51, 2), (0.6, 2), (0.79, 2), (0.81, 3), (1, 3)])
def test_singular_values_are_summed_not_their_squares(share: float, kept: int) -> None:
    """Values 5, 3, 2 reach .5, .8, 1; their squares .66, .89, 1 would keep 1 direction at .6."""
    acts = orthonormal(50, 3) * [5, 3, 2] @ np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))[0]
    assert leading_directions(acts + 100, share).shape == (50, kept)


def test_known_angles() -> None:
    u = orthonormal(60, 4)
    cosines = np.array([0.8, 0.3])
    other = u[:, :2] * cosines + u[:, 2:] * np.sqrt(1 - cosines**2)
    np.testing.assert_allclose(canonical_correlations(u[:, :2], other, 1), cosines, atol=1e-12)
    assert svcca(u[:, :2], other, 1) == pytest.approx(0.55)


def test_what_cannot_be_compared() -> None:
    a, b = related()
    assert np.isnan(svcca(np.full((400, 3), 0.1), b))
    with pytest.raises(UserError, match="400 and of 399"):
        svcca(a, b[:-1])
    with pytest.raises(UserError, match="share"):
        svcca(a, b, share=0)


ORACLE = {"conv": np.array([[1.0, 1.0]]), "fc": np.array([0.0, 0.0])}
HISTORY = {"conv": np.array([[4.0, 5.0]]), "fc": np.array([12.0, 0.0])}  # d_H = (3, 4 | 12, 0)
BASELINE = {"conv": np.array([[1.0, 1.0]]), "fc": np.array([3.0, 4.0])}  # d_T = (0, 0 | 3, 4)


def test_projection_by_hand() -> None:
    found = project_weights(
        {"conv": [[3.0, 0.0]], "fc": [1.0, -2.0]}, ORACLE, HISTORY, BASELINE
    )  # w - w* = (2, -1 | 1, -2)
    assert found.layers["conv"].historical == pytest.approx(2 / 5)
    assert np.isnan(found.layers["conv"].final)  # the baseline's layer is the oracle's
    assert found.layers["fc"] == pytest.approx((1, -1))
    assert found.whole == pytest.approx((14 / 13, -1))  # (6 - 4 + 12) / |(3, 4, 12)|, (3 - 8) / |(3, 4)|


def test_the_models_that_span_the_axes() -> None:
    assert project_weights(ORACLE, ORACLE, HISTORY, BASELINE).whole == (0, 0)
    assert project_weights(HISTORY, ORACLE, HISTORY, BASELINE).whole == pytest.approx(
        (13, 36 / 5)
    )  # axes are not orthogonal
    assert project_weights(BASELINE, ORACLE, HISTORY, BASELINE).whole == pytest.approx((36 / 13, 5))


def test_other_layers_are_refused() -> None:
    with pytest.raises(UserError, match="layer 'fc'"):
        project_weights({"conv": [[3.0, 0.0]], "fc": [1.0]}, ORACLE, HISTORY, BASELINE)
    with pytest.raises(UserError, match="layer 'side'"):
        project_weights({**ORACLE, "side": [1.0]}, ORACLE, HISTORY, BASELINE)


def test_six_points_in_space_lose_the_short_axis() -> None:
    """Points at +-3, +-2 and +-1 on three axes: the plane holds 18 + 8 of 28."""
    x = np.array([[3, 0, 0], [-3, 0, 0], [0, -2, 0], [0, 2, 0], [0, 0, 1], [0, 0, -1]], float)
    found = classical_mds(cdist(x, x))
    assert found.explained == pytest.approx(26 / 28)
    lost = 2**2 + 4 * (np.sqrt(10) - 3) ** 2 + 4 * (np.sqrt(5) - 2) ** 2
    assert found.stress == pytest.approx(np.sqrt(lost / 168))
    expected = x[:, :2] * [1, -1]  # the first extreme point of each axis is positive
    np.testing.assert_allclose(found.points, expected, atol=1e-9)


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10_000), st.integers(3, 12))
def test_a_plane_is_found_again(seed: int, n: int) -> None:
    x = np.random.default_rng(seed).normal(size=(n, 2)) * [3, 1] + 50
    found = classical_mds(cdist(x, x))
    np.testing.assert_allclose(cdist(found.points, found.points), cdist(x, x), atol=1e-6)
    assert found.explained == pytest.approx(1)
    assert found.stress == pytest.approx(0, abs=1e-6)
    np.testing.assert_allclose(found.points, classical_mds(cdist(-x, -x)).points, atol=1e-6)


def test_distances_that_no_space_has_are_not_called_explained() -> None:
    """1 + 1 < 4: centred products have eigenvalues 8, 0 and -2."""
    found = classical_mds([[0, 1, 4], [1, 0, 1], [4, 1, 0]])
    assert found.explained == pytest.approx(0.8)


def test_models_lie_as_far_apart_as_they_disagree() -> None:
    """Another route: principal components of one-hot answers, over sqrt(2 n)."""
    answers = np.random.default_rng(6).integers(0, 3, size=(7, 200))
    answers[3:] = np.where(np.random.default_rng(7).random((4, 200)) < 0.6, answers[2], answers[3:])
    hot = np.eye(3)[answers].reshape(7, -1) / np.sqrt(2 * 200)
    np.testing.assert_allclose(disagreement(answers), cdist(hot, hot) ** 2, atol=1e-12)
    u, s, _ = np.linalg.svd(hot - hot.mean(axis=0), full_matrices=False)
    found = disagreement_map(answers)
    np.testing.assert_allclose(np.abs(found.points), np.abs(u[:, :2] * s[:2]), atol=1e-9)
    assert found.explained == pytest.approx((s[:2] ** 2).sum() / (s**2).sum())


def test_a_model_on_its_way_lies_on_the_way() -> None:
    """From one set of answers to another, a few more at each step."""
    path = np.array([[1] * k + [0] * (100 - k) for k in (0, 25, 50, 75, 100)])
    first = disagreement_map(path).points[:, 0]
    assert (np.diff(first) < 0).all()
    np.testing.assert_allclose(first, -first[::-1], atol=1e-9)
    assert first[0] > 0


def test_few_or_equal_models() -> None:
    np.testing.assert_allclose(
        disagreement_map([[0, 0, 0, 0], [0, 0, 0, 1]]).points, [[0.25, 0], [-0.25, 0]], atol=1e-12
    )
    same = disagreement_map([[0, 1], [0, 1], [0, 1]])
    assert (same.points.tolist(), same.explained, same.stress) == ([[0, 0]] * 3, 1, 0)
    assert disagreement_map([[0, 1]]).points.tolist() == [[0, 0]]


def test_what_is_no_table_of_distances() -> None:
    for table in ([[0, 1], [2, 0]], [[1, 1], [1, 0]], [[0, 1]]):
        with pytest.raises(UserError, match="symmetric"):
            classical_mds(table)
    with pytest.raises(UserError, match="shape"):
        disagreement_map([0, 1])
