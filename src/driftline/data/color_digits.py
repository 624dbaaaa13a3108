"""Handwritten digits as small color images, for corruptions; nothing to download.

The 1,797 digits that scikit-learn carries (Alpaydin & Kaynak, "Optical Recognition of Handwritten Digits", UCI 1998),
enlarged from 8 to 32 pixels; each is written in dark ink on light paper, in colors drawn for it. They have no time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
from scipy.ndimage import zoom

from driftline.data import Dataset
from driftline.data.formats.sklearn_digits import load_digits
from driftline.errors import UserError
from driftline.registry import register
from driftline.seeds import Seed
from driftline.tasks import Classification
from driftline.types import Samples

UPSCALE = 4
INK, PAPER = (0, 100), (150, 256)  # bytes from, and up to but not including


@register("dataset", "color-digits")
def color_digits(
    folders: Sequence[Path] = (),
    *,
    test: int = 797,  # number of images in the test set
    seed: int = 0,  # seed of the random choices; the same data for every run
) -> Dataset:
    """Digits of 32 x 32 pixels in color, `test` of them kept as a test set; an id is the place in scikit-learn's file.

    >>> data = color_digits()
    >>> data.samples.x.shape, int(data.test.sum())
    ((1797, 32, 32, 3), 797)
    """
    _, labels = load_digits()
    n = len(labels)
    if not 1 <= test < n:
        raise UserError(f"color-digits: test={test}, but it must be from 1 to {n - 1}: some are needed to train on")
    root = Seed(seed).child("colour-digits")  # part of the random stream; never rename
    written = _enlarged()
    ink, paper = (
        root.child(name).numpy().integers(*span, (n, 1, 1, 3)) for name, span in (("ink", INK), ("paper", PAPER))
    )
    x = np.rint(paper + (ink - paper) * written).astype(np.uint8)
    samples = Samples(x=x, y=labels.astype(np.int64), time=np.zeros(n, np.int64))
    note = "scikit-learn's digits, enlarged, in made-up colors"
    task = Classification(tuple("0123456789"))
    held_out = root.child("test").numpy().permutation(n) < test
    return Dataset("color-digits", samples, task, (note,), model="conv-2", test=held_out)


@cache
def _enlarged() -> np.ndarray:
    """Return the digits at the size of this data set, from 0 to 1; made once, as it takes longer than to train on."""
    images, _ = load_digits()
    return np.asarray(zoom(images.reshape(-1, 8, 8) / 16, (1, UPSCALE, UPSCALE), order=1)[..., np.newaxis])
