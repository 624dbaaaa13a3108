"""Handwritten digits that rotate over time: a small stream that needs no download.

The 1,797 images of 8 x 8 pixels that scikit-learn carries (Alpaydin & Kaynak, "Optical Recognition of
Handwritten Digits", UCI 1998) have no time of their own; they are dealt to `periods` periods at random. What
changes is made:

- the image turns, linearly from 0 to `rotation` degrees, so that an old model meets a world it does not know;
- Gaussian noise grows linearly from 0 to `noise` (standard deviation, white being 1), so that late data are
  harder for any model.

How much more an old model loses than a fresh one is what the temporal metrics measure.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from scipy.ndimage import rotate

from driftline.data import Dataset
from driftline.data.formats.sklearn_digits import load_digits
from driftline.errors import UserError
from driftline.registry import register
from driftline.seeds import Seed
from driftline.tasks import Classification
from driftline.types import Samples


@register("dataset", "digits")
def digits(
    folders: Sequence[Path] = (),
    *,
    periods: int = 12,  # number of periods
    rotation: float = 90.0,  # rotation in the last period, in degrees
    noise: float = 0.2,  # standard deviation of the pixel noise in the last period, white being 1
    seed: int = 0,  # seed of the random choices; the same data for every run
) -> Dataset:
    """Digits whose time is a period, 0 to `periods` - 1; an id is the image's place in scikit-learn's file.

    >>> data = digits()
    >>> data.samples.x.shape, np.bincount(data.samples.time)[:3].tolist()
    ((1797, 8, 8, 1), [150, 150, 150])
    """
    _check_options(periods, rotation, noise, len(load_digits()[1]))
    x, y, order, time = (column.copy() for column in _columns(periods, rotation, noise, seed))
    samples = Samples(x=x, y=y, id=order, time=time)
    note = f"scikit-learn's digits; the drift is made: {rotation:g} degrees and noise {noise:g} at the end"
    return Dataset("digits", samples, Classification(tuple("0123456789")), (note,))


@lru_cache(maxsize=8)
def _columns(periods: int, rotation: float, noise: float, seed: int) -> tuple[np.ndarray, ...]:
    """Return images, labels, places in the file and periods; cached, because rotating images takes a while."""
    images, labels = load_digits()
    root = Seed(seed).child("digits")
    deal = np.array_split(root.child("periods").numpy().permutation(len(labels)), periods)
    deal = [np.sort(part) for part in deal]
    ages = np.arange(periods) / max(periods - 1, 1)
    x = [
        _drifted(
            images[part].reshape(-1, 8, 8) / 16,
            rotation * age,
            noise * age,
            root.child("noise", period).numpy(),
        )
        for period, (part, age) in enumerate(zip(deal, ages, strict=True))
    ]
    order, sizes = np.concatenate(deal), [len(part) for part in deal]
    return np.concatenate(x), labels[order].astype(np.int64), order, np.repeat(np.arange(periods), sizes)


def _drifted(images: np.ndarray, angle: float, noise: float, random: np.random.Generator) -> np.ndarray:
    turned = rotate(images, angle, axes=(1, 2), reshape=False, order=1)
    noisy = turned + noise * random.standard_normal(turned.shape)
    return np.asarray(np.rint(noisy.clip(0, 1) * 255), np.uint8)[..., np.newaxis]


def _check_options(periods: int, rotation: float, noise: float, n: int) -> None:
    if not 1 <= periods <= n:
        raise UserError(f"digits: periods={periods}, but it must be from 1 to {n}, the number of images")
    if not np.isfinite(rotation):
        raise UserError(f"digits: rotation={rotation}, but it must be a number of degrees")
    if not 0 <= noise < np.inf:
        raise UserError(f"digits: noise={noise}, but it must be 0 or a positive number; white is 1")
