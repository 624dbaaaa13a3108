"""Temporal metrics on the worked example of the specification, and what must hold for any input."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from driftline import registry
from driftline.metrics.horizons import drift_horizon, stability_horizon
from driftline.metrics.per_period import Horizon, PerStep
from driftline.metrics.temporal import (
    adaptation_score,
    in_distribution,
    out_of_distribution,
    transfer_ratio,
    worst_future,
)

from .accuracy_matrices import ALL, CLIPPINGS, WORKED, nan


def test_worked_transfer_ratio():
    raw = [[1, 0.96, 0.75, 0.857143], [nan, 1, 1.1, 0.9], [nan, nan, 1, 1.142857], [nan, nan, nan, 1]]
    assert_allclose(transfer_ratio(WORKED, clip=False), raw, atol=5e-7)
    assert_allclose(transfer_ratio(WORKED), np.minimum(raw, 1), atol=5e-7)


@pytest.mark.parametrize(
    ("delta", "gaps", "values", "mean"),
    [
        (0.8, "stop", [1, 2, 1, 0], 4 / 3),
        (0.8, "skip", [3, 2, 1, 0], 2),
        (0.6, "stop", [3, 2, 1, 0], 2),
        (0.6, "skip", [3, 2, 1, 0], 2),
    ],
)
def test_worked_stability_horizon(delta, gaps, values, mean):
    result = stability_horizon(WORKED, delta, gaps)
    assert_array_equal(result, values)
    assert result.mean == pytest.approx(mean)
    assert result.minimum == 1  # the last row, without a future, does not count


@pytest.mark.parametrize(
    ("direction", "values", "paper"), [("both", [2, nan, 1], [2, 4, 1]), ("drop", [2, nan, nan], [2, 4, 4])]
)
def test_worked_drift_horizon(direction, values, paper):
    result = drift_horizon(WORKED, 0.04, 0.15, horizon=3, direction=direction, partial=True)
    assert_array_equal(result, [*values, nan])
    assert_array_equal(result.paper, [*paper, nan])
    assert_array_equal(result.censored, [*np.isnan(values), False])
    assert result.sentinel == 4
    assert result.mean == pytest.approx(np.mean(paper))
    assert result.minimum == min(paper)


@pytest.mark.parametrize(
    ("clipping", "values"),
    [
        ("ratio", [0.863415, 0.992308, 1]),
        ("none", [0.863415, 0.992308, 1.142857]),
        ("transfer", [0.855714, 0.95, 1]),
        ("raw-transfer", [0.855714, 1.0, 1.142857]),
        ("elementwise", [0.863415, 0.946154, 1]),
    ],
)
def test_worked_adaptation_score(clipping, values):
    result = adaptation_score(WORKED, clipping=clipping)
    assert_allclose(result, [*values, nan], atol=5e-7)
    assert result.mean == pytest.approx(np.mean(values), abs=1e-6)
    assert result.minimum == pytest.approx(min(values), abs=1e-6)


def test_worked_adaptation_summaries_and_two_steps():
    assert adaptation_score(WORKED).mean == pytest.approx(0.951907, abs=5e-7)
    assert adaptation_score(WORKED).minimum == pytest.approx(0.863415, abs=5e-7)
    assert_allclose(adaptation_score(WORKED, horizon=2), [0.866667, 0.992308, nan, nan], atol=5e-7)


def test_worked_accuracies():
    ood = out_of_distribution(WORKED)
    assert_allclose(ood, [0.59, 0.645, 0.80, nan])
    assert (ood.mean, ood.minimum) == (pytest.approx(0.678333, abs=5e-7), pytest.approx(0.59))
    assert in_distribution(WORKED).mean == pytest.approx(0.7125)
    assert in_distribution(WORKED)[:3].mean() == pytest.approx(0.716667, abs=5e-7)
    assert_allclose(worst_future(WORKED), [0.45, 0.63, 0.80, nan])
    assert_allclose(worst_future(WORKED, horizon=1), [0.72, 0.66, 0.80, nan])


def test_a_world_that_does_not_change():
    A = np.where(np.tri(5, k=-1) > 0, nan, 0.7)
    assert_array_equal(transfer_ratio(A)[np.triu_indices(5)], 1)
    assert_array_equal(stability_horizon(A, 1.0), [4, 3, 2, 1, 0])
    assert_array_equal(drift_horizon(A, 0.0, 0.0, 2).paper, [3, 3, 3, nan, nan])
    for clipping in CLIPPINGS:
        assert_allclose(adaptation_score(A, clipping=clipping), [1, 1, 1, 1, nan])


def test_a_year_that_is_harder_for_all_is_drift_but_no_lack_of_adaptation():
    harder = WORKED.copy()
    harder[:, 1] *= 0.5
    assert_allclose(transfer_ratio(harder), transfer_ratio(WORKED))
    for clipping in CLIPPINGS:
        one, other = (adaptation_score(A, horizon=1, clipping=clipping) for A in (harder, WORKED))
        assert_allclose(one, other)
    assert drift_horizon(WORKED, 0.04, 0.15, 3)[0] == 2
    assert drift_horizon(harder, 0.04, 0.15, 3)[0] == 1


def test_aggregates_of_the_published_horizons():
    sh = np.array([4, 6, 5, 5, 5, 5, 4, 4, 6, 6, 6.0])
    assert round(float(PerStep(sh).mean), 1) == 5.1
    dh = np.array([2, 7, 7, 7, 7, 6, 7, 7, 7, 7, 7.0])
    crossed = Horizon(np.where(dh == 7, nan, dh), censored=dh == 7, counted=dh > 0, sentinel=7)
    assert crossed.mean == pytest.approx(71 / 11)  # 4 if the sentinels were left out


def test_nothing_below_the_diagonal_matters():
    filled = np.where(np.isnan(WORKED), 0.123, WORKED)
    for name, compute in ALL.items():
        assert_array_equal(compute(filled), compute(WORKED), err_msg=name)


def test_inputs_are_left_alone_and_results_are_their_own():
    A = WORKED.copy()
    for compute in ALL.values():
        np.asarray(compute(A))[...] = 0
    assert_array_equal(A, WORKED)


def test_results_behave_as_arrays():
    result = in_distribution(WORKED)
    assert len(result) == 4
    assert result[1] == 0.75
    assert list(result) == [0.80, 0.75, 0.60, 0.70]
    assert np.asarray(result, dtype=np.float32).dtype == np.float32
    copy = np.array(result)
    copy[0] = 0
    assert result[0] == 0.80


def test_every_variant_is_registered_and_runs_on_its_example():
    expected = "ttr ttr-unclipped sh sh-skip dh dh-drop tas tas-transfer tas-raw-transfer tas-elementwise"
    for name in [*expected.split(), "tas-unclipped", "id", "ood", "ood-worst"]:
        found = registry.get("metric", name)
        example = found.example(np.random.default_rng(0))
        assert np.isfinite(np.asarray(found.compute(**example))).any(), name
        assert "\n" not in found.formula
        assert found.name == name
        assert found.better == "higher"


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        ("sh-skip", {"delta": 0.8}, [3, 2, 1, 0]),
        ("dh-drop", {"epsilon": 0.04, "threshold": 0.15, "horizon": 1}, [nan] * 4),
        ("ttr-unclipped", {}, transfer_ratio(WORKED, clip=False)),
        ("tas-unclipped", {}, [0.863415, 0.992308, 1.142857, nan]),
        ("tas-transfer", {}, [0.855714, 0.95, 1, nan]),
        ("tas-raw-transfer", {}, [0.855714, 1.0, 1.142857, nan]),
        ("tas-elementwise", {}, [0.863415, 0.946154, 1, nan]),
    ],
)
def test_a_registered_variant_is_what_its_name_says(name, settings, expected):
    assert_allclose(registry.get("metric", name).compute(WORKED, **settings), expected, atol=5e-7)
