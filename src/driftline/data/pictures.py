"""Pictures in files, brought to one size. They are held in memory as bytes, all of them at once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from driftline.data import reading
from driftline.errors import MissingExtra, UserError

SMALLEST = 8


def space(n: int, size: int, channels: int) -> np.ndarray:
    """Room for this many pictures, or an error that says how much memory they would take."""
    if not isinstance(size, int) or isinstance(size, bool) or size < SMALLEST:
        raise UserError(f"size={size!r} is no size of a picture: give a whole number of pixels from {SMALLEST}")
    needed, there = n * size * size * channels, _memory()
    if needed > there:
        raise UserError(
            f"{n:,} pictures of {size} x {size} pixels take {needed / 1e9:.0f} GB, and this machine has "
            f"{there / 1e9:.0f} GB of memory: choose a smaller size with --set data.size=..."
        )
    return np.empty((n, size, size, channels), np.uint8)


def read(file: Path, size: int, gray: bool = False) -> np.ndarray:
    """A picture as bytes of shape (size, size, channels), the right way up, squeezed if it was not square."""
    with reading(file, "a picture"), _pillow().open(file) as image:
        from PIL import ImageOps

        if image.mode[0] in "IF":
            raise ValueError(f"pixels of more than eight bits (mode {image.mode})")
        return _sized(ImageOps.exif_transpose(image).convert("L" if gray else "RGB"), size)


def shrink(pixels: np.ndarray, size: int) -> np.ndarray:
    """A picture that is in memory already, in the same way."""
    if pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.dtype != np.uint8:
        raise ValueError(f"a picture of shape {pixels.shape} and type {pixels.dtype}, not bytes in three colours")
    return pixels if pixels.shape[:2] == (size, size) else _sized(_pillow().fromarray(pixels), size)


def _sized(image: Any, size: int) -> np.ndarray:
    if image.size != (size, size):
        image = image.resize((size, size), _pillow().Resampling.BILINEAR)
    return np.asarray(image).reshape(size, size, -1)


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise MissingExtra("reading pictures", "vision") from None
    return Image


def _memory() -> float:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not every system tells
        return float("inf")
