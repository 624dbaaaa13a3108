"""Spatter: drops of water with light at their rims, or of mud."""

from __future__ import annotations

import cv2
import numpy as np

from driftline.corruptions.gaussian_blur import gaussian_weights
from driftline.corruptions.per_image_rng import ROUNDING_GUARD, standard_normals, stream_words
from driftline.corruptions.severity import Parameters
from driftline.jit import cached_njit

WATER = np.array([175, 238, 238], np.float32) / 255
MUD = np.array([63, 42, 20], np.float32) / 255
EMBOSS = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]], np.float32)


def spatter(images: np.ndarray, keys: np.ndarray, parameters: Parameters) -> np.ndarray:
    """Add water, or cover with mud, where a smooth random field is high."""
    out = np.empty_like(images)
    thick, (height, width) = parameters["thresh"], images.shape[1:3]
    is_mud = round(parameters["mud"])
    color = np.tile(MUD if is_mud else WATER, width)
    for image, key, target in zip(images, keys, out, strict=True):
        field = liquid(key, image.shape[:2], parameters)
        field = np.where(field < thick, np.float32(0), field)
        cover = mud_mask(field > thick, parameters["strength"]) if is_mud else water(field, parameters["strength"])
        cover = cv2.cvtColor(cover, cv2.COLOR_GRAY2RGB).reshape(height, -1)
        _lay_over(image.reshape(height, -1), cover, color, bool(is_mud), target.reshape(height, -1))
    return out


@cached_njit()
def _lay_over(image: np.ndarray, cover: np.ndarray, color: np.ndarray, hides: bool, out: np.ndarray) -> None:
    """Add color, or replace the image by it."""
    one, top = np.float32(1), np.float32(255)
    for y in range(len(out)):
        clean, wet, line = image[y], cover[y], out[y]
        for x in range(len(line)):
            seen = np.float32(clean[x]) / top
            seen = (seen * (one - wet[x]) if hides else seen) + wet[x] * color[x]
            line[x] = np.uint8(min(max(seen * top + ROUNDING_GUARD, np.float32(0)), top))


def liquid(key: np.uint64, shape: tuple[int, ...], parameters: Parameters) -> np.ndarray:
    """Return a blurred normal field."""
    drawn = standard_normals(shape[0] * shape[1], *stream_words(key, 0)).reshape(shape)
    return _smooth(drawn * np.float32(parameters["scale"]) + np.float32(parameters["loc"]), parameters["sigma"])


def _smooth(field: np.ndarray, sigma: float) -> np.ndarray:
    bell = gaussian_weights(sigma, 4)
    return np.asarray(cv2.sepFilter2D(field, cv2.CV_32F, bell, bell, borderType=cv2.BORDER_REPLICATE))


def water(field: np.ndarray, strength: float) -> np.ndarray:
    """Return the light that drops reflect, from a field that is 0 outside of them."""
    drops = (field * 255).clip(0, 255).astype(np.uint8)
    rims = 255 - cv2.Canny(drops, 50, 150)
    distance = np.minimum(cv2.distanceTransform(rims, cv2.DIST_L2, 5), 20)
    shade = cv2.equalizeHist(cv2.blur(distance, (3, 3)).astype(np.uint8))
    shade = cv2.blur(cv2.filter2D(shade, cv2.CV_8U, EMBOSS), (3, 3))
    light = drops.astype(np.float32) * shade
    brightest = light.max()
    return np.asarray(light / brightest * strength) if brightest else light  # without a drop there is no light


def mud_mask(wet: np.ndarray, sigma: float) -> np.ndarray:
    """Return how much of the image mud covers, with soft edges; below 0.8 it covers nothing."""
    mask = _smooth(wet.astype(np.float32), sigma)
    mask[mask < 0.8] = 0
    return mask
