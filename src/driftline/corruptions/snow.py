"""Snow: motion-blurred flakes on a brightened image."""

from __future__ import annotations

import numpy as np

from driftline.corruptions.motion_blur import blur_along_line, directions, tap_weights
from driftline.corruptions.per_image_rng import ROUNDING_GUARD, standard_normals, stream_words
from driftline.corruptions.severity import Parameters
from driftline.corruptions.zoom_blur import lattice, visible
from driftline.jit import cached_njit


def snow(images: np.ndarray, keys: np.ndarray, parameters: Parameters) -> np.ndarray:
    """Blend with a paler image, and add a layer of snow and the same layer turned by 180 degrees."""
    out = np.empty_like(images)
    height, width = images.shape[1:3]
    layer, smeared = np.empty((2, height, width), np.uint8)
    lattices = (*lattice(height, parameters["zoom"]), *lattice(width, parameters["zoom"]))
    weights = tap_weights(parameters["mb_radius"], parameters["mb_sigma"])
    for n, angle in enumerate(directions(keys, -135.0, -45.0)):
        field = flakes(keys[n], (height, width), parameters)
        _enlarge(field, layer, *lattices, np.float32(parameters["thresh"]))
        blur_along_line(layer, smeared, weights, angle)
        _add_snow(images[n], smeared, out[n], np.float32(parameters["blend"]))
    return out


def flakes(key: np.uint64, shape: tuple[int, int], parameters: Parameters) -> np.ndarray:
    """Return the normal field that is enlarged to the whole image; only its visible center is drawn."""
    seen = [visible(side, parameters["zoom"]) for side in shape]
    drawn = standard_normals(seen[0] * seen[1], *stream_words(key, 1))
    field = np.zeros(shape, np.float32)
    top, left = ((side - part) // 2 for side, part in zip(shape, seen, strict=True))
    center = drawn.reshape(seen) * np.float32(parameters["scale"]) + np.float32(parameters["loc"])
    field[top : top + seen[0], left : left + seen[1]] = center
    return field


@cached_njit(fastmath=True)
def _enlarge(
    field: np.ndarray,
    layer: np.ndarray,
    rows: np.ndarray,
    downs: np.ndarray,
    columns: np.ndarray,
    rights: np.ndarray,
    threshold: np.float32,
) -> None:
    height, width = layer.shape
    line = np.empty(width, np.float32)
    shown = np.empty(width, np.float32)
    for y in range(height):
        top, bottom, down = field[rows[y]], field[rows[y] + 1], downs[y]
        for x in range(width):
            line[x] = top[x] + down * (bottom[x] - top[x])
        for x in range(width):
            left = line[columns[x]]
            shown[x] = left + rights[x] * (line[columns[x] + 1] - left)
        target = layer[y]
        for x in range(width):
            value = min(max(shown[x], np.float32(0)), np.float32(1)) * np.float32(255)
            target[x] = np.uint8(value if shown[x] >= threshold else np.float32(0))  # cut before it is smeared


@cached_njit(fastmath=True)
def _add_snow(image: np.ndarray, layer: np.ndarray, out: np.ndarray, blend: np.float32) -> None:
    height, width, _ = image.shape
    rest, white = np.float32(1) - blend, np.float32(255)
    for y in range(height):
        line, target, above, below = image[y], out[y], layer[y], layer[height - 1 - y]
        for x in range(width):
            red, green, blue = np.float32(line[x, 0]), np.float32(line[x, 1]), np.float32(line[x, 2])
            gray = np.float32(0.299) * red + np.float32(0.587) * green + np.float32(0.114) * blue
            pale = np.float32(1.5) * gray + np.float32(127.5)
            fallen = np.float32(above[x]) + np.float32(below[width - 1 - x]) + ROUNDING_GUARD
            target[x, 0] = np.uint8(min(blend * red + rest * max(red, pale) + fallen, white))
            target[x, 1] = np.uint8(min(blend * green + rest * max(green, pale) + fallen, white))
            target[x, 2] = np.uint8(min(blend * blue + rest * max(blue, pale) + fallen, white))
