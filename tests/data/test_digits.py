"""Digits that turn and grow noisy: the same stream from the same seed, and a drift that shows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import rotate
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from driftline.data import load, validate
from driftline.data.digits import digits
from driftline.errors import UserError


def test_every_image_once_in_periods_of_equal_size():
    s = digits().samples
    assert sorted(s.id) == list(range(1797))
    assert s.y.tolist() == load_digits().target[s.id].tolist()
    assert sorted(np.bincount(s.time)) == [149] * 3 + [150] * 9
    assert s.x.dtype == np.uint8
    assert s.x.shape == (1797, 8, 8, 1)


def test_the_first_period_is_untouched_and_the_last_is_turned():
    s = digits(noise=0.0).samples
    raw = load_digits().images / 16
    first, last = s[s.time == 0], s[s.time == 11]
    np.testing.assert_array_equal(first.x[..., 0], np.rint(raw[first.id] * 255))
    for image, number in zip(last.x[:5, ..., 0], last.id, strict=False):
        turned = rotate(raw[number], 90, reshape=False, order=1).clip(0, 1)
        np.testing.assert_array_equal(image, np.rint(turned * 255))
        assert np.abs(image - np.rot90(raw[number]) * 255.0).max() <= 1


def test_noise_grows_linearly():
    clean, noisy = digits(rotation=0.0, noise=0.0).samples, digits(rotation=0.0, noise=0.1).samples
    gray = (clean.x > 100) & (clean.x < 155)  # far from black and white, so that nothing is clipped
    change = (noisy.x / 255.0 - clean.x / 255.0) * gray
    spread = [np.sqrt((change[clean.time == t] ** 2).sum() / gray[clean.time == t].sum()) for t in range(12)]
    np.testing.assert_allclose(spread, 0.1 * np.arange(12) / 11, atol=0.008)


def test_a_seed_names_a_stream():
    assert digits().fingerprint == digits().fingerprint
    assert len({digits().fingerprint, digits(seed=1).fingerprint, digits(noise=0.1).fingerprint}) == 3
    one, other = digits(noise=0.1).samples, digits(noise=0.3).samples
    np.testing.assert_array_equal(one.id, other.id)


def test_an_old_model_decays_and_a_fresh_one_hardly():
    s = digits().samples
    parts = [(s.x[s.time == t].reshape(-1, 64) / 255, s.y[s.time == t]) for t in range(12)]

    def fit(x, y):
        return LogisticRegression(max_iter=500).fit(x, y)

    def fresh(x, y):  # trained and tested within one period
        test = np.arange(len(y)) % 3 == 0
        return fit(x[~test], y[~test]).score(x[test], y[test])

    early, late = (np.mean([fresh(*parts[t]) for t in periods]) for periods in ([0, 1, 2], [9, 10, 11]))
    assert early > 0.82
    assert 0.72 < late < early - 0.01
    old = fit(*parts[0])
    assert old.score(*parts[3]) < 0.65
    assert old.score(*parts[6]) < 0.4
    assert old.score(*parts[11]) < 0.25


@settings(max_examples=8, deadline=None)
@given(periods=st.integers(1, 1797), seed=st.integers(0, 2**32))
def test_any_number_of_periods(periods, seed):
    data = digits(periods=periods, seed=seed)
    validate(data)
    sizes = np.bincount(data.samples.time)
    assert len(sizes) == periods
    assert sizes.max() - sizes.min() <= 1


@pytest.mark.parametrize(
    "options", [{"periods": 0}, {"periods": 1798}, {"noise": -0.1}, {"noise": np.nan}, {"rotation": np.inf}]
)
def test_impossible_options(options):
    with pytest.raises(UserError, match=f"digits: {next(iter(options))}="):
        load("digits", options)


def test_unknown_option():
    with pytest.raises(UserError, match=r"no option of dataset 'digits' 'period'. Did you mean 'periods'"):
        load("digits", {"period": 3})


def test_unknown_dataset():
    with pytest.raises(UserError, match="Did you mean 'digits'"):
        load("digit")
