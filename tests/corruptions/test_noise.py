"""Noise: exact probabilities in the tables, and frequencies in the images."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from driftline.corruptions import corrupt, noise
from driftline.corruptions.per_image_rng import keys_for, random_bits, standard_normals, stream_words

pytestmark = pytest.mark.xdist_group("corruptions")  # a loop is compiled by one process only


def flat(level: int, count: int = 8) -> np.ndarray:
    return np.full((count, 224, 224, 3), level, np.uint8)


def probabilities(table: np.ndarray, low: int) -> np.ndarray:
    """What an alias table gives to every outcome, from its words."""
    columns = len(table)
    kept = (table >> np.uint32(low)).astype(float) / 2 ** (32 - low)
    given = kept / columns
    np.add.at(given, (table & np.uint32(2**low - 1)).astype(int), (1 - kept) / columns)
    return given


def frequencies_fit(image: np.ndarray, expected: np.ndarray) -> bool:
    """A chi-square test with a fixed seed; classes that are too rare are put together."""
    seen = np.bincount(image.ravel(), minlength=256)
    wanted = expected * image.size
    rare = wanted < 10
    seen, wanted = np.append(seen[~rare], seen[rare].sum()), np.append(wanted[~rare], wanted[rare].sum())
    used = wanted > 0
    assert seen[~used].sum() == 0
    return bool(stats.chisquare(seen[used], wanted[used] * seen.sum() / wanted.sum()).pvalue > 0.001)


def cut_normal(level: float, sigma: float) -> np.ndarray:
    """The probability of every byte: a normal number, clipped to 0 .. 255 and cut to a whole number."""
    below = stats.norm.cdf(np.arange(1, 257), level, sigma)
    below[-1] = 1
    return np.diff(below, prepend=0)


@pytest.mark.parametrize("sigma", [0.02, 0.18, 0.38])
def test_the_table_of_gaussian_noise_is_exact(sigma: float) -> None:
    given = probabilities(noise._offsets(sigma), 9)
    offsets = np.arange(512) - 256
    exact = stats.norm.cdf(offsets + 1, 0, 255 * sigma) - stats.norm.cdf(offsets, 0, 255 * sigma)
    np.testing.assert_allclose(given[2:-1], exact[2:-1], atol=1e-8)
    assert given[0] == 0
    assert given[-1] == pytest.approx(stats.norm.sf(255, 0, 255 * sigma), abs=1e-8), "everything above is white"


@pytest.mark.parametrize(
    ("level", "severity", "sigma"), [(128, 0.25, 0.02), (100, 3, 0.18), (250, 5, 0.38), (0, 3, 0.18)]
)
def test_gaussian_noise_is_cut_not_rounded(level: int, severity: float, sigma: float, keys: np.ndarray) -> None:
    noisy = corrupt(flat(level), "gaussian_noise", severity, keys[:8])
    assert frequencies_fit(noisy, cut_normal(level, 255 * sigma))
    if level == 128:
        assert noisy.mean() == pytest.approx(127.5, abs=0.03), "a version that rounds has a mean of 128"
        assert not frequencies_fit(noisy, cut_normal(level + 0.5, 255 * sigma))


@pytest.mark.parametrize("severity", [0.25, 1, 3, 5])
def test_shot_noise_is_poisson_for_every_level(severity: float, keys: np.ndarray) -> None:
    rate = {0.25: 240, 1: 60, 3: 12, 5: 3}[severity]
    values, tables = noise._shot_tables(1 / (1 / rate))
    for level in (0, 1, 17, 128, 255):
        counts = np.arange(3 * rate + 50)
        shown = (np.clip(counts / float(rate), 0, 1) * 255).astype(np.uint8)
        exact = np.bincount(shown, stats.poisson.pmf(counts, rate * level / 255), minlength=256)
        given = np.zeros(256)
        np.add.at(given, values[: tables.shape[1]], probabilities(tables[level], 8))
        np.testing.assert_allclose(given, exact, atol=2e-7)
    noisy = corrupt(flat(128, 4), "shot_noise", severity, keys[:4])
    counts = np.arange(3 * rate + 50)
    shown = (np.clip(counts / float(rate), 0, 1) * 255).astype(np.uint8)
    assert frequencies_fit(noisy, np.bincount(shown, stats.poisson.pmf(counts, rate * 128 / 255), minlength=256))


def test_shot_noise_that_is_next_to_none_still_works(keys: np.ndarray) -> None:
    noisy = corrupt(flat(128, 1), "shot_noise", 1e-9, keys[:1])
    assert set(np.unique(noisy)) <= {127, 128}


def test_speckle_noise_grows_with_the_level_and_leaves_black(keys: np.ndarray) -> None:
    assert not corrupt(flat(0, 1), "speckle_noise", 5, keys[:1]).any()
    for level in (20, 128, 255):
        noisy = corrupt(flat(level, 4), "speckle_noise", 3, keys[:4])
        assert frequencies_fit(noisy, cut_normal(level, 0.35 * level))


def test_impulses_hit_channels_and_not_pixels(keys: np.ndarray) -> None:
    image = flat(100)
    noisy = corrupt(image, "impulse_noise", 5, keys[:8])
    hit = noisy != 100
    assert set(np.unique(noisy)) == {0, 100, 255}
    n = image.size
    assert hit.mean() == pytest.approx(0.27, abs=4 * np.sqrt(0.27 * 0.73 / n))
    assert (noisy == 255).sum() / hit.sum() == pytest.approx(0.5, abs=0.005)
    together = (hit[..., 0] & hit[..., 1]).mean()
    assert together == pytest.approx(0.27**2, abs=0.003), "of whole pixels it would be .27"
    assert hit.all(axis=-1).mean() == pytest.approx(0.27**3, abs=0.002)


def test_random_bits_are_even_and_unrelated() -> None:
    """Within a stream, between neighbouring positions, and between streams of neighbouring keys."""
    count = 200_000
    table = np.empty((4, count), np.uint32)
    for row, key in enumerate((0, 1, 2, 2**63)):
        low, high = stream_words(np.uint64(key), 0)
        table[row] = [random_bits(i, low, high) for i in range(count)]
    for words in table:
        for shift in (0, 8, 16, 24):
            seen = np.bincount((words >> np.uint32(shift)) & np.uint32(255), minlength=256)
            assert stats.chisquare(seen).pvalue > 1e-4
    x = table / 2**32 - 0.5
    within = 4 / np.sqrt(count)
    for lag in (1, 2, 3, 672):
        assert all(abs(np.corrcoef(row[lag:], row[:-lag])[0, 1]) < within for row in x)
    across = np.corrcoef(x) - np.eye(4)
    assert np.abs(across).max() < within


def test_normal_numbers() -> None:
    drawn = standard_normals(50_001, *stream_words(np.uint64(5), 0))
    assert drawn.shape == (50_001,)
    assert stats.kstest(drawn, "norm").pvalue > 0.001
    assert not np.array_equal(drawn, standard_normals(50_001, *stream_words(np.uint64(5), 1))), (
        "another purpose, other numbers"
    )


def test_two_corruptions_of_one_key_have_numbers_of_their_own(keys: np.ndarray) -> None:
    assert not np.intersect1d(keys_for(keys, "gaussian_noise"), keys_for(keys, "shot_noise")).size
    one = corrupt(flat(128, 1), "gaussian_noise", 3, keys[:1]).astype(float)
    other = corrupt(flat(128, 1), "speckle_noise", 3, keys[:1]).astype(float)
    assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 0.02


def test_normal_numbers_are_those_of_box_and_muller() -> None:
    low, high = stream_words(np.uint64(11), 3)
    u = (np.array([random_bits(i, low, high) for i in range(5_000)], np.float64) + 0.5) * 2.0**-32
    radius, angle = np.sqrt(-2 * np.log(u[::2])), 2 * np.pi * u[1::2]
    expected = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).ravel().astype(np.float32)
    np.testing.assert_array_equal(standard_normals(5_000, low, high), expected)
    np.testing.assert_array_equal(standard_normals(4_999, low, high), expected[:4_999])
