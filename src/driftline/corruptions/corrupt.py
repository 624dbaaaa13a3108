"""Corrupt images: check the arguments and call the corruption's function."""

from __future__ import annotations

import importlib
from functools import partial
from pathlib import Path
from types import ModuleType

import numpy as np

from driftline.corruptions.severity import MAX_SEVERITY, MIN_SIDE, Table, parameters
from driftline.errors import MissingExtra, UserError, unknown_name
from driftline.io.user_files import resolve

_MODULES = {
    "gaussian_noise": "noise",
    "shot_noise": "noise",
    "impulse_noise": "noise",
    "defocus_blur": "defocus_blur",
    "glass_blur": "glass_blur",
    "motion_blur": "motion_blur",
    "zoom_blur": "zoom_blur",
    "snow": "snow",
    "frost": "frost",
    "fog": "fog",
    "brightness": "color",
    "contrast": "color",
    "elastic": "elastic",
    "pixelate": "pixelate_jpeg",
    "jpeg": "pixelate_jpeg",
    "speckle_noise": "noise",
    "gaussian_blur": "gaussian_blur",
    "spatter": "spatter",
    "saturate": "color",
}
NAMES = tuple(_MODULES)[:15]
"""The corruptions of the benchmark, in the order of ImageNet-C."""
HOLDOUT = tuple(_MODULES)[15:]
"""The corruptions reserved for hyper-parameter search."""
ALIASES = {"elastic_transform": "elastic", "jpeg_compression": "jpeg"}  # as the folders of ImageNet-C are called


def corrupt(
    images: np.ndarray,
    name: str,
    severity: float,
    rng: np.random.Generator | np.ndarray,
    *,
    table: Table = "auto",
    frost: Path | str | None = None,
) -> np.ndarray:
    """Return images under one corruption, at any severity from 0 (unchanged) to 5.

    Images are bytes of shape (n, height, width, 3), with sides of 32 pixels or more. `rng` draws a key for every image,
    or is an array of such keys (uint64): an image and its key give the same result alone, in any batch and in any
    order. The parameters are those of ImageNet-C, and below 64 pixels those of CIFAR-C, unless `table` names one.
    `frost` is a folder with the photographs of ImageNet-C; without it, frost is synthetic.

    >>> images = np.full((2, 64, 64, 3), 200, np.uint8)
    >>> corrupt(images, "contrast", 3, np.random.default_rng(0))[0, 0, 0].tolist()
    [200, 200, 200]
    >>> corrupt(images, "brightness", 1, np.random.default_rng(0))[0, 0, 0].tolist()
    [225, 225, 225]
    """
    name = ALIASES.get(name, name)
    if name not in _MODULES:
        raise unknown_name("corruption", name, _MODULES)
    _check(images, severity)
    keys = _keys(rng, len(images))
    found = parameters(name, float(severity), min(images.shape[1:3]), table)
    if severity == 0 or len(images) == 0:
        return images.copy()
    function = getattr(compiled(_MODULES[name]), name)
    if name == "frost" and frost is not None:
        function = partial(function, folder=resolve(frost))
    own_keys = compiled("per_image_rng").keys_for(keys, name)
    return np.asarray(function(np.ascontiguousarray(images), own_keys, found))


def _check(images: np.ndarray, severity: float) -> None:
    if not isinstance(images, np.ndarray) or images.dtype != np.uint8:
        kind = images.dtype if isinstance(images, np.ndarray) else type(images).__name__
        raise UserError(f"corruptions are defined on bytes from 0 to 255: give a numpy array of uint8, not {kind}")
    if images.ndim != 4 or images.shape[3] != 3:
        hint = "; repeat a gray channel three times" if images.ndim == 3 or images.shape[-1:] == (1,) else ""
        raise UserError(f"images have the shape (n, height, width, 3), and these are {images.shape}{hint}")
    if min(images.shape[1:3]) < MIN_SIDE:
        raise UserError(
            f"images have sides of {MIN_SIDE} pixels or more, and these are {images.shape[1:3]}: enlarge them"
        )
    if not 0 <= severity <= MAX_SEVERITY:
        raise UserError(f"a severity is a number from 0 to {MAX_SEVERITY}, not {severity}")


def _keys(rng: np.random.Generator | np.ndarray, count: int) -> np.ndarray:
    if isinstance(rng, np.random.Generator):
        return rng.integers(0, 2**64, count, dtype=np.uint64)
    if isinstance(rng, np.ndarray) and rng.dtype == np.uint64 and rng.shape == (count,):
        return rng
    raise UserError(f"rng is a numpy Generator, or an array of {count} keys of type uint64, one for every image")


def compiled(module: str) -> ModuleType:
    """Return a module of this package that is imported late, since compilers and image libraries are heavy."""
    try:
        import cv2

        found = importlib.import_module(f"driftline.corruptions.{module}")
    except ModuleNotFoundError as error:
        if error.name in ("numba", "cv2", "PIL"):
            raise MissingExtra("the corruptions", "corruptions") from error
        raise
    cv2.setNumThreads(1)  # a run has one thread: others are for other runs
    return found
