"""scikit-learn's handwritten digits, read from its file, because importing the package takes a second or two."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np


@cache
def load_digits() -> tuple[np.ndarray, np.ndarray]:
    """Return images of 64 pixels from 0 to 16, and their labels, like scikit-learn's function of this name.

    >>> images, labels = load_digits()
    >>> images.shape, labels[:3].tolist()
    ((1797, 64), [0, 1, 2])
    """
    package = find_spec("sklearn")
    assert package is not None
    assert package.submodule_search_locations is not None
    table = np.loadtxt(Path(package.submodule_search_locations[0]) / "datasets/data/digits.csv.gz", delimiter=",")
    return table[:, :-1], table[:, -1].astype(int)
