"""Images to corrupt: smooth, coloured and with edges, as photographs are."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter


def photographs(count: int, height: int, width: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    images = np.empty((count, height, width, 3), np.uint8)
    for image in images:
        coarse = gaussian_filter(rng.standard_normal((height, width, 3)), (height / 16, width / 16, 0))
        fine = gaussian_filter(rng.standard_normal((height, width, 3)), (1, 1, 0))
        mixed = 128 + 70 * coarse / coarse.std() + 15 * fine / fine.std() + 40 * (coarse[..., :1] > 0)
        image[:] = mixed.clip(0, 255)
    return images


@pytest.fixture(scope="session")
def photos() -> np.ndarray:
    return photographs(3, 224, 224)


@pytest.fixture(scope="session")
def small() -> np.ndarray:
    return photographs(5, 40, 36, seed=1)


@pytest.fixture(scope="session")
def keys() -> np.ndarray:
    return np.random.default_rng(7).integers(0, 2**64, 64, dtype=np.uint64)
