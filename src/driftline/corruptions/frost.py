"""Frost: a photograph of frost laid over the image, or a synthetic texture.

The six photographs of ImageNet-C have no stated origin and are not shipped. To use them, name their folder; the
check is by name, by size in pixels, by mean color (CCC re-encodes the JPEGs among them, so that their bytes differ),
and by frost2 and frost3 being the same picture, as they are in the original. A hash of the pixels goes to the card.
Without them the textures are made up, with the colors, spread and spectra of the photographs: results with these are
not comparable with the paper, and `frost_source` says so.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np

from driftline.corruptions.per_image_rng import U64, random_bits, stream_words
from driftline.corruptions.severity import Parameters
from driftline.data import file_errors
from driftline.data.formats import images as pictures
from driftline.errors import UserError
from driftline.jit import cached_njit
from driftline.seeds import Seed


class Texture(NamedTuple):
    """A photograph: its size, and what is known of its pixels."""

    height: int
    width: int
    mean: tuple[float, float, float]
    spread: tuple[float, float, float]
    slope: float  # of the power spectrum, in a plot of logarithms


TEXTURES = {
    "frost1.png": Texture(600, 900, (78, 149, 166), (27, 17, 15), -1.2),
    "frost2.png": Texture(315, 560, (201, 205, 215), (21, 22, 23), -2.0),
    "frost3.png": Texture(315, 560, (201, 205, 215), (21, 22, 23), -2.0),
    "frost4.jpg": Texture(350, 527, (138, 153, 165), (29, 29, 30), -1.5),
    "frost5.jpg": Texture(495, 660, (112, 123, 135), (44, 43, 42), -1.8),
}
"""The sixth photograph, frost6.jpg, is never drawn; the second is drawn twice as often, since the third is the same."""
COLOR_TOLERANCE = 3  # levels by which a mean color may be off


def frost(images: np.ndarray, keys: np.ndarray, parameters: Parameters, folder: Path | None = None) -> np.ndarray:
    """Add a random part of a random texture to the image, each with its weight."""
    out = np.empty_like(images)
    shape = (images.shape[1], images.shape[2])
    textures = scaled_textures(folder, shape, parameters.get("texture", 1.0))
    for image, key, target in zip(images, keys, out, strict=True):
        chosen, row, column = random_crop_position(key, len(textures))
        texture = textures[chosen]
        top, left = (int(part * (a - b)) for part, a, b in zip((row, column), texture.shape, shape, strict=False))
        part = np.ascontiguousarray(texture[top : top + shape[0], left : left + shape[1]])
        _blend(image.reshape(-1), part.reshape(-1), target.reshape(-1), parameters["img_w"], parameters["frost_w"])
    return out


@cached_njit()
def random_crop_position(key: np.uint64, count: int) -> tuple[np.int64, float, float]:
    """Draw the texture, and how far down and across it (0 to 1, excluding 1) the part begins."""
    low, high = stream_words(key, 0)
    chosen = np.int64((U64(random_bits(0, low, high)) * U64(count)) >> U64(32))
    return chosen, random_bits(1, low, high) * 2.0**-32, random_bits(2, low, high) * 2.0**-32


@lru_cache(maxsize=16)
def scaled_textures(folder: Path | None, shape: tuple[int, int], scale: float) -> list[np.ndarray]:
    """Return all textures at a scale, or larger if they would be smaller than the image."""
    fitted = []
    for texture in synthetic_textures() if folder is None else textures_in(folder):
        factor = max(scale, *((side + 1) / have for side, have in zip(shape, texture.shape, strict=False)))
        if factor != 1:
            texture = cv2.resize(texture, (0, 0), fx=factor, fy=factor, interpolation=cv2.INTER_LINEAR)
        fitted.append(texture)
    return fitted


@lru_cache(maxsize=4)
def textures_in(folder: Path) -> list[np.ndarray]:
    """Read the photographs in a folder, in color."""
    found = []
    for name, known in TEXTURES.items():
        file = folder / name
        if not file.is_file():
            raise UserError(f"{folder} has no {name}; frost needs {', '.join(TEXTURES)} of ImageNet-C")
        with file_errors(file, "a picture"), pictures.open_image(file) as picture:
            width, height = picture.size
        if sorted((height, width)) != sorted((known.height, known.width)):
            size = f"{height} x {width}"
            raise UserError(f"{file} is {size} pixels and not {known.height} x {known.width}: another picture")
        texture = cv2.imread(str(file), cv2.IMREAD_COLOR)
        if texture is None:
            raise UserError(f"cannot read {file}: expected a whole picture")
        mean = texture.mean(axis=(0, 1))[::-1].round().astype(int)
        if np.abs(mean - known.mean).max() > COLOR_TOLERANCE:
            raise UserError(f"{file} has the mean color {tuple(mean.tolist())} and not {known.mean}: another picture")
        found.append(np.ascontiguousarray(texture[..., ::-1]))
    if not np.array_equal(found[1], found[2]):
        raise UserError(f"frost2.png and frost3.png in {folder} differ; those of ImageNet-C are the same picture")
    return found


def textures_hash(textures: list[np.ndarray]) -> str:
    """Return a hash of the pixels."""
    return hashlib.sha256(b"".join(texture.tobytes() for texture in textures)).hexdigest()[:16]


@lru_cache(maxsize=1)
def synthetic_textures() -> list[np.ndarray]:
    """Return synthetic textures; the third is the second, as among the photographs."""
    second = "frost2.png"
    return [synthesize(name if name != "frost3.png" else second, texture) for name, texture in TEXTURES.items()]


def synthesize(name: str, texture: Texture) -> np.ndarray:
    """Return ridges, like needles of ice, with the spectrum, the colors and the spread of a photograph."""
    rng = Seed(0).child("frost", name).numpy()
    shape = (texture.height, texture.width)
    frequency = np.hypot(np.fft.fftfreq(shape[0])[:, None] * 3, np.fft.rfftfreq(shape[1]))  # longer than they are wide
    frequency[0, 0] = np.inf
    smooth = np.fft.irfft2(np.fft.rfft2(rng.standard_normal(shape)) * frequency**-1.2, shape)
    ridges = np.fft.rfft2(-np.abs(smooth - smooth.mean()))
    even = np.hypot(np.fft.fftfreq(shape[0])[:, None], np.fft.rfftfreq(shape[1]))
    even[0, 0] = np.inf
    ring = (even.clip(0, 1) * 200).astype(int)
    power = np.bincount(ring.ravel(), np.abs(ridges).ravel() ** 2) / np.maximum(np.bincount(ring.ravel()), 1)
    needles = np.fft.irfft2(ridges * even ** (texture.slope / 2) / np.sqrt(power[ring]), shape)
    needles = (needles - needles.mean()) / needles.std()
    colored = np.array(texture.mean) + needles[..., None] * np.array(texture.spread)
    return np.asarray(colored.round().clip(0, 255).astype(np.uint8))


@cached_njit()
def _blend(image: np.ndarray, ice: np.ndarray, out: np.ndarray, own: float, other: float) -> None:
    for i in range(len(image)):  # in 64 bits, as in the definition: with .7 and .7 every tenth sum is nearly whole
        out[i] = np.uint8(min(own * image[i] + other * ice[i], 255.0))
