"""Image files, resized to one size."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from driftline.data import file_errors
from driftline.errors import MissingExtra, UserError
from driftline.io import bounded_files

if TYPE_CHECKING:
    from PIL.Image import Image

MIN_SIDE = 8
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
"""What a picture may be. Pillow would also hand PostScript, which is a program, to Ghostscript."""
MAX_PIXELS = 80_000_000  # a quarter of a gigabyte in color


def check_size(size: int) -> None:
    """Refuse a size that is not a number of pixels."""
    if not isinstance(size, int) or isinstance(size, bool) or size < MIN_SIDE:
        raise UserError(f"size={size!r} is not a size of a picture: give a whole number of pixels from {MIN_SIDE}")


def check_resize(size: int, resize: int | None) -> None:
    """Refuse a short side that is smaller than the part to cut out."""
    if resize is not None and resize < size:
        raise UserError(f"resize={resize!r}: the short side must be at least size={size}")


def allocate(n: int, size: int, channels: int) -> np.ndarray:
    """Return an empty array for pictures, or raise an error with the memory that they would take."""
    check_size(size)
    needed, there = n * size * size * channels, _available_memory()
    if needed > there:
        raise UserError(
            f"{n:,} pictures of {size} x {size} pixels take {needed / 1e9:.0f} GB, and this machine has "
            f"{there / 1e9:.0f} GB of memory: choose a smaller size with --set data.size=..."
        )
    return np.empty((n, size, size, channels), np.uint8)


@contextmanager
def open_image(source: Path | str | bytes) -> Iterator[Image]:
    """Open a picture, or the bytes of one, as a Pillow image of at most 80 million pixels; nothing is decoded yet.

    A broken picture raises any kind of exception; use it inside `io.locate.file_errors`.
    """
    image = pil_image_module()
    if not isinstance(source, bytes):
        bounded_files.max_unpacked_bytes(Path(source))  # a pipe would wait for ever
    try:
        picture = image.open(io.BytesIO(source) if isinstance(source, bytes) else source, formats=FORMATS)
    except image.UnidentifiedImageError:
        raise ValueError(f"neither of {', '.join(FORMATS)}") from None
    with picture:
        width, height = picture.size
        if width * height > MAX_PIXELS:
            raise ValueError(f"{width} x {height} pixels, more than {MAX_PIXELS:,}")
        yield picture


def read_image(file: Path, size: int | None, gray: bool = False) -> np.ndarray:
    """Read a picture as bytes of shape (size, size, channels), upright, and squeezed if it is not square.

    With None as `size` it has the size of the file.
    """
    with file_errors(file, "a picture"), open_image(file) as image:
        return to_square(image, size, gray)


def to_square(image: Image, size: int | None, gray: bool = False) -> np.ndarray:
    """Return a Pillow image as bytes of shape (size, size, channels), upright, and squeezed if it is not square."""
    from PIL import ImageOps

    if image.mode[0] in "IF":
        raise ValueError(f"pixels of more than eight bits (mode {image.mode})")
    return _resize(ImageOps.exif_transpose(image).convert("L" if gray else "RGB"), size)


def read_center(file: Path, size: int | None, resize: int | None = None, gray: bool = False) -> np.ndarray:
    """Read the center of a picture whose short side is first resized to `resize` pixels, by default `size`.

    As torchvision does for evaluation, EXIF rotation left alone. With None as `size`, read the whole picture.
    """
    with file_errors(file, "a picture"), open_image(file) as image:
        return to_center(image, size, resize, gray)


def to_center(image: Image, size: int | None, resize: int | None = None, gray: bool = False) -> np.ndarray:
    """Return the center of a Pillow image as `read_center` does."""
    sized = image.convert("L" if gray else "RGB")
    if size is None:
        return _resize(sized, size)
    short, to = min(image.size), resize or size
    width, height = (int(to * side / short) for side in image.size)
    if short != to:
        sized = sized.resize((width, height), pil_image_module().Resampling.BILINEAR)
    left, top = round((width - size) / 2), round((height - size) / 2)
    return _resize(sized.crop((left, top, left + size, top + size)), size)


def resize(pixels: np.ndarray, size: int) -> np.ndarray:
    """Return a picture in memory at another size, as `read_image` does."""
    if pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.dtype != np.uint8:
        raise ValueError(f"a picture of shape {pixels.shape} and type {pixels.dtype}, not bytes in three colors")
    return pixels if pixels.shape[:2] == (size, size) else _resize(pil_image_module().fromarray(pixels), size)


def _resize(image: Image, size: int | None) -> np.ndarray:
    if size is not None and image.size != (size, size):
        image = image.resize((size, size), pil_image_module().Resampling.BILINEAR)
    return np.asarray(image).reshape(image.height, image.width, -1)


def pil_image_module() -> ModuleType:
    """Return the module PIL.Image; call `open_image` instead of its `open`."""
    try:
        from PIL import Image
    except ImportError:
        raise MissingExtra("reading pictures", "vision") from None
    return Image


def _available_memory() -> float:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not every system tells
        return float("inf")
