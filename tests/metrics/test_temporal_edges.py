"""The edge cases of the temporal metrics, numbered as in the specification."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from driftline.errors import UserError
from driftline.metrics.horizons import drift_horizon, stability_horizon
from driftline.metrics.temporal import (
    adaptation_score,
    out_of_distribution,
    transfer_ratio,
    worst_future,
)

from .accuracy_matrices import ALL, CLIPPINGS, WORKED, nan


def one_row(accuracies, diagonal=None):
    """A matrix whose row 0 is given; the others have only their diagonal."""
    A = np.diag(np.array(diagonal or accuracies, dtype=float))
    A[np.tri(len(A), k=-1) > 0] = nan
    A[1:][np.triu(np.ones((len(A), len(A))), k=1)[1:] > 0] = nan
    A[0] = accuracies
    return A


def rows_of_ratios(ratios):
    """A matrix with oracles of one half, the given ratios to them in row 0 and no loss in later rows."""
    A = np.where(np.tri(len(ratios) + 1, k=-1) > 0, nan, 0.5)
    A[0, 1:] = 0.5 * np.array(ratios)
    return A


def test_1_a_dip_ends_the_stability_horizon_unless_gaps_are_skipped():
    A = rows_of_ratios([0.9, 0.5, 0.9, 0.9])
    assert stability_horizon(A, 0.8)[0] == 1
    assert stability_horizon(A, 0.8, gaps="skip")[0] == 4


def test_2_a_row_that_never_drops_is_censored():
    result = stability_horizon(WORKED, 0.8)
    assert_array_equal(result.censored, [False, True, True, True])
    assert_array_equal(stability_horizon(WORKED, 0.8, "skip").censored, [True] * 4)
    assert_array_equal(stability_horizon(rows_of_ratios([0.9, 0.5]), 0.8, "skip").censored, [False, True, True])
    assert result.sentinel is None
    assert_array_equal(result.paper, result.values)


def test_3_rows_without_the_whole_horizon_are_left_out_even_if_they_cross():
    strict = drift_horizon(WORKED, 0.04, 0.15, horizon=3)
    assert_array_equal(strict, [2, nan, nan, nan])
    assert_array_equal(strict.censored, [False] * 4)
    assert_array_equal(strict.counted, [True, False, False, False])
    assert strict.mean == 2
    far = drift_horizon(WORKED, 0.04, 0.15, horizon=6, partial=True)
    assert_array_equal(far.paper, [2, 7, 1, nan])  # the sentinel is that of the horizon asked for, not of the row


def test_3_the_alarm_must_ring_within_the_horizon():
    result = drift_horizon(WORKED, 0.04, 0.15, horizon=1)
    assert_array_equal(result.paper, [2, 2, 1, nan])
    assert_array_equal(result.censored, [True, True, False, False])


def test_4_improvements_are_drift_only_in_both_directions():
    A = np.triu(np.full((3, 3), 0.5)) + np.diag([0.4, 0.4], k=1)
    assert drift_horizon(A, 0.0, 0.3, 1)[0] == 1
    assert math.isnan(drift_horizon(A, 0.0, 0.3, 1, direction="drop")[0])


def test_4_a_gain_pays_back_earlier_losses():
    A = one_row([0.5, 0.4, 0.6, 0.35])  # losses of .1, -.1, .15
    assert math.isnan(drift_horizon(A, 0.0, 0.2, 3, direction="drop")[0])
    assert drift_horizon(A, 0.0, 0.2, 3)[0] == 3


def test_5_epsilon_has_no_default_and_the_sum_resets_at_zero():
    with pytest.raises(TypeError):
        drift_horizon(WORKED, threshold=0.15, horizon=1)
    A = one_row([0.5, 0.5, 0.5, 0.3])
    assert drift_horizon(A, 0.1, 0.09, 3)[0] == 3  # without the reset two quiet steps would have built up credit


def test_6_readings_of_the_clipping_differ():
    results = [adaptation_score(WORKED, clipping=c).values for c in CLIPPINGS]
    assert len({tuple(r[:3].round(6)) for r in results}) == len(CLIPPINGS)
    assert_array_equal(adaptation_score(WORKED), adaptation_score(WORKED, clipping="ratio"))


def test_7_too_short_a_future():
    assert_allclose(adaptation_score(WORKED, 2, partial=True), [0.866667, 0.992308, 1, nan], atol=5e-7)
    assert_allclose(out_of_distribution(WORKED, 2), [0.585, 0.645, nan, nan])
    assert_allclose(out_of_distribution(WORKED, 2, partial=True), [0.585, 0.645, 0.8, nan])
    assert_array_equal(worst_future(WORKED, 3), [0.45, nan, nan, nan])
    assert np.isnan(adaptation_score(WORKED, 4)).all()
    assert math.isnan(adaptation_score(WORKED, 4).mean)
    assert math.isnan(adaptation_score(WORKED, 4).minimum)


def test_7_a_single_period_has_no_future():
    for name, compute in ALL.items():
        if name not in ("ttr", "id", "sh", "sh-skip"):
            assert_array_equal(compute([[0.7]]), [nan], err_msg=name)
    assert_array_equal(stability_horizon([[0.7]], 0.8), [0])
    assert math.isnan(stability_horizon([[0.7]], 0.8).mean)


def test_8_an_oracle_of_zero_is_undefined_never_infinite():
    A = WORKED.copy()
    A[2, 2] = 0
    assert_array_equal(np.isnan(transfer_ratio(A))[:, 2], True)
    assert_array_equal(transfer_ratio(A)[:, 3], transfer_ratio(WORKED)[:, 3])
    assert_array_equal(np.isnan(adaptation_score(A, clipping="transfer")), [True, True, False, True])
    assert_array_equal(np.isnan(adaptation_score(A, clipping="transfer", partial=True)), [True, True, False, True])
    assert adaptation_score(A, clipping="none")[0] == pytest.approx((0.72 + 0.45 + 0.6) / (0.75 + 0 + 0.7))
    alone = adaptation_score([[0.5, 0.5], [nan, 0.0]])
    assert math.isnan(alone[0])


def test_8_a_missing_cell_concerns_its_row_only():
    A = WORKED.copy()
    A[0, 2] = nan
    for clipping in CLIPPINGS:
        full, holed = (adaptation_score(x, clipping=clipping).values for x in (WORKED, A))
        assert_array_equal(holed, [nan, *full[1:]])
    assert_array_equal(drift_horizon(A, 0.04, 0.15, 2), [nan, *drift_horizon(WORKED, 0.04, 0.15, 2)[1:]])
    assert not drift_horizon(A, 0.04, 0.15, 2).censored[0]
    assert_allclose(out_of_distribution(A), [nan, 0.645, 0.8, nan])
    assert_allclose(worst_future(A), [nan, 0.63, 0.8, nan])


def test_8_partial_uses_the_steps_around_a_gap():
    A = WORKED.copy()
    A[0, 2] = nan
    assert adaptation_score(A, partial=True)[0] == pytest.approx(min(1, (0.72 + 0.60) / (0.75 + 0.70)))
    assert out_of_distribution(A, partial=True)[0] == pytest.approx(0.66)
    assert worst_future(A, partial=True)[0] == pytest.approx(0.60)
    # S = .04, (unchanged), .04 + .20 - .04 = .20
    assert drift_horizon(A, 0.04, 0.15, 3, partial=True)[0] == 3


def test_8_a_gap_stops_or_is_skipped_by_the_stability_horizon():
    A = rows_of_ratios([0.9, nan, 0.9, 0.5])
    stop, skip = stability_horizon(A, 0.8), stability_horizon(A, 0.8, gaps="skip")
    assert (stop[0], stop.censored[0], stop.counted[0]) == (1, True, True)
    assert (skip[0], skip.censored[0], skip.counted[0]) == (3, False, True)
    first = rows_of_ratios([nan, 0.9])
    assert_array_equal(stability_horizon(first, 0.8).counted, [False, True, False])
    assert_array_equal(stability_horizon(first, 0.8, "skip").counted, [True, True, False])
    dip_first = stability_horizon(rows_of_ratios([0.5, nan, 0.9]), 0.8)
    assert (dip_first[0], dip_first.censored[0]) == (0, False)


def test_8_the_end_of_evaluation_is_not_a_gap():
    A = WORKED.copy()
    A[0, 3] = A[1, 3] = nan  # only the next period or two were evaluated
    assert_allclose(out_of_distribution(A), [0.585, 0.66, 0.8, nan])
    assert adaptation_score(A)[1] == 1
    assert_array_equal(stability_horizon(A, 0.8), [1, 1, 1, 0])
    assert_array_equal(stability_horizon(A, 0.6).censored, [True] * 4)


def test_8_an_unevaluated_model_has_no_numbers():
    A = WORKED.copy()
    A[1] = nan
    for name, compute in ALL.items():
        assert np.isnan(np.asarray(compute(A))[1]).all(), name
    assert not stability_horizon(A, 0.8).censored[1]


@pytest.mark.parametrize("compute", ALL.values(), ids=ALL)
def test_9_percentages_and_other_nonsense_are_refused(compute):
    for bad, hint in [
        (WORKED * 100, "divide percentages by 100"),
        (np.where(WORKED == 0.45, np.inf, WORKED), "fractions"),
        (np.where(WORKED == 0.45, -0.1, WORKED), "fractions"),
        (WORKED[:3], "square"),
        (WORKED[0], "square"),
        (np.zeros((0, 0)), "square"),
        (np.zeros((0, 3, 3)), "square"),
        ([["a", "b"], ["c", "d"]], "numbers"),
        ([[0.1], [0.1, 0.2]], "numbers"),
    ]:
        with pytest.raises(UserError, match=hint):
            compute(bad)


@pytest.mark.parametrize(
    "call",
    [
        lambda: stability_horizon(WORKED, 60),
        lambda: stability_horizon(WORKED, nan),
        lambda: stability_horizon(WORKED, 0.6, gaps="jump"),
        lambda: drift_horizon(WORKED, 4, 0.15, 3),
        lambda: drift_horizon(WORKED, 0.04, 15, 3),
        lambda: drift_horizon(WORKED, 0.04, 0.15, 0),
        lambda: drift_horizon(WORKED, 0.04, 0.15, 3, direction="up"),
        lambda: adaptation_score(WORKED, clipping="tranfer"),
        lambda: adaptation_score(WORKED, horizon=0),
        lambda: out_of_distribution(WORKED, horizon=1.5),
    ],
)
def test_9_settings_off_scale_are_refused(call):
    with pytest.raises(UserError):
        call()


def test_10_clipping_is_needed_because_the_oracle_is_no_upper_bound():
    assert transfer_ratio(WORKED, clip=False)[2, 3] > 1
    assert transfer_ratio(WORKED)[2, 3] == 1


def test_11_ties_are_kept_by_the_stability_horizon_and_not_by_the_alarm():
    A = one_row([0.9, 0.36, 0.4], diagonal=[0.9, 0.4, 0.4])
    assert A[0, 1] / A[1, 1] < 0.9  # by one unit in the last place, which must not matter
    assert stability_horizon(A, 0.9)[0] == 2
    assert stability_horizon(A, 0.9 + 1e-9)[0] == 0
    fall = one_row([0.9, 0.6])
    assert fall[0, 0] - fall[0, 1] > 0.3  # again by floating point only
    assert math.isnan(drift_horizon(fall, 0.0, 0.3, 1)[0])
    assert drift_horizon(fall, 0.0, 0.3 - 1e-9, 1)[0] == 1
