"""Glass blur: pixels that change places with neighbors, between two Gaussian blurs.

They were meant to change places. In the original the exchange is written on views of one array, so that the neighbor
is copied and stays where it is; offsets lie in [-d, d), so that the image creeps by half a pixel. Both are kept.
"""

from __future__ import annotations

import numpy as np

from driftline.corruptions.gaussian_blur import blur
from driftline.corruptions.per_image_rng import U32, random_bits, stream_words
from driftline.corruptions.severity import Parameters
from driftline.jit import cached_njit


def glass_blur(images: np.ndarray, keys: np.ndarray, parameters: Parameters) -> np.ndarray:
    """Blur, move pixels `iters` times by less than `max_delta`, and blur again."""
    reach, passes = rounded_parameters(parameters)
    soft = blur(images, parameters["sigma"])
    _shuffle_neighbors(soft, keys, reach, passes)
    return blur(soft, parameters["sigma"])


def rounded_parameters(parameters: Parameters) -> tuple[int, int]:
    """Return how far pixels move and how often; halves are rounded to the even number.

    >>> rounded_parameters({"max_delta": 2.5, "iters": 2.5})
    (2, 2)
    """
    return round(max(parameters["max_delta"], 1)), round(parameters["iters"])


@cached_njit()
def _shuffle_neighbors(images: np.ndarray, keys: np.ndarray, reach: int, passes: int) -> None:
    count, height, width, _ = images.shape
    pixels = np.empty(height * width, np.uint32)  # a pixel in one word moves at once
    choices, places = np.empty(width, np.uint32), np.empty(4 * reach * reach, np.int64)
    for place in range(len(places)):
        places[place] = (place // (2 * reach) - reach) * width + place % (2 * reach) - reach
    for n in range(count):
        flat = images[n].reshape(height * width, 3)
        for i in range(height * width):
            pixels[i] = U32(flat[i, 0]) | (U32(flat[i, 1]) << U32(8)) | (U32(flat[i, 2]) << U32(16))
        for turn in range(passes):
            low, high = stream_words(keys[n], turn)
            for y in range(height - reach, reach, -1):
                for x in range(width):
                    choices[x] = U32((random_bits(y * width + x, low, high) >> U32(8)) * U32(len(places))) >> U32(24)
                row = y * width
                for x in range(width - reach, reach, -1):
                    pixels[row + x] = pixels[row + x + places[choices[x]]]
        for i in range(height * width):
            flat[i, 0] = pixels[i] & U32(255)
            flat[i, 1] = (pixels[i] >> U32(8)) & U32(255)
            flat[i, 2] = (pixels[i] >> U32(16)) & U32(255)
