"""The corruptions and the pipeline as existing generators compute them, to compare ours with.

Written after descriptions of how the generators of ImageNet-C and CCC work: an image at a time, float64, filters of
scipy, legacy random numbers, a texture decoded for every image, Pillow for pixelate, JPEG and files.
Motion blur and snow go through PNG files and ImageMagick in CCC, which is not called here: ours are compared with a
loop over shifted arrays, the fastest that exists.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import cv2
import numba
import numpy as np
from PIL import Image
from scipy.ndimage import gaussian_filter, map_coordinates, zoom

from driftline.corruptions import motion_blur as motion
from driftline.corruptions.cropping import random_box

Slow = Callable[[np.ndarray, dict[str, float]], np.ndarray]


def scaled(x: np.ndarray) -> np.ndarray:
    return np.uint8(np.clip(x, 0, 1) * 255)


def gaussian_noise(image: np.ndarray, p: dict[str, float]) -> np.ndarray:
    return scaled(image / 255.0 + np.random.normal(size=image.shape, scale=p["sigma"]))


def shot_noise(image: np.ndarray, p: dict[str, float]) -> np.ndarray:
    return scaled(np.random.poisson(image / 255.0 / p["inv_lambda"]) * p["inv_lambda"])


def impulse_noise(image: np.ndarray, p: dict[str, float]) -> np.ndarray:
    x, rng = image / 255.0, np.random.default_rng()
    hit, salt = rng.random(x.shape) <= p["amount"], rng.random(x.shape) <= 0.5
    x[hit & salt], x[hit & ~salt] = 1, 0
    return scaled(x)


def defocus_blur(image: np.ndarray, p: dict[str, float]) -> np.ndarray:
    radius, wide = p["radius"], p["radius"] > 8
    line = np.arange(-radius, radius + 1) if wide else np.arange(-8, 9)
    disk = (line[:, None] ** 2 + line**2 <= radius**2).astype(float)
    side = 5 if wide else 3
    kernel, x = cv2.GaussianBlur(disk / disk.sum(), (side, side), sigmaX=p["alias_sigma"]), image / 255.0
    return scaled(np.stack([cv2.filter2D(x[..., c], -1, kernel) for c in range(3)], axis=-1))


@numba.njit
def copy_neighbours(x: np.ndarray, reach: int, passes: int) -> None:
    for _ in range(passes):
        for h in range(x.shape[0] - reach, reach, -1):
            for w in range(x.shape[1] - reach, reach, -1):
                dx, dy = np.random.randint(-reach, reach, size=(2,))
                x[h, w] = x[h + dy, w + dx]


def glass_blur(image: np.ndarray, p: dict[str, float]) -> np.ndarray:
    sigmas = (p["sigma"], p["sigma"], 0)
    x = np.uint8(gaussian_filter(image / 255.0, sigmas, mode="nearest") * 255)
    copy_neighbours(x, round(max(p["max_delta"], 1)), round(p["iters"]))
    return scaled(gaussian_filter(x / 255.0, sigmas, mode="nearest"))


def shifted_sum(x: np.ndarray, radius: float, sigma: float, angle: float) -> np.ndarray:
    weights = motion.tap_weights(radius, sigma)
    total = np.zeros(x.shape, np.float32)
    for weight, dx, dy in zip(weights, *motion.offsets(len(weights), angle), strict=True):
        moved = np.roll(x, (-dy, -dx), axis=(0, 1))
        if dx > 0:
            moved[:, -dx:] = moved[:, -dx - 1 : -dx]
        if dy:
            moved[slice(-dy, None) if dy > 0 else slice(0, -dy)] = moved[-dy - 1 if dy > 0 else -dy]
        total = total + weight * moved
    return total


def motion_blur(image: np.ndarray, p: dict[str, float]) -> np.ndarray:
    return np.uint8(np.clip(shifted_sum(image, p["radius"], p["sigma"], np.random.uniform(-45, 45)), 0, 255))


def centre_zoom(x: np.ndarray, factor: float) -> np.ndarray:
    side = x.shape[0]
    kept = int(np.ceil(side / factor))
    top = (side - kept) // 2
    grown = zoom(x[top : top + kept, top : top + kept], (factor, factor) + (1,) * (x.ndim - 2), order=1)
    trim = (grown.shape[0] - side) // 2
    return np.asarray(grown[trim : trim + side, trim : trim + side])


def zoom_blur(image: np.ndarray, p: dict[str, float]) -> np.ndarray:
    x = (image / 255.0).astype(np.float32)
    zooms = np.arange(p["start"], p["stop"], p["step"])
    total = np.zeros_like(x)
    for factor in zooms:
        total += centre_zoom(x, factor)
    return scaled((x + total) / (len(zooms) + 1))


def snow(image: np.ndarray, p: dict[str, float]) -> np.ndarray:
    x = np.array(image, np.float32) / 255
    layer = centre_zoom(np.random.normal(size=x.shape[:2], loc=p["loc"], scale=p["scale"]), p["zoom"])
    layer[layer < p["thresh"]] = 0
    smeared = shifted_sum(scaled(layer), p["mb_radius"], p["mb_sigma"], np.random.uniform(-135, -45))
    layer = np.uint8(np.clip(smeared, 0, 255))[..., None] / 255.0
    gray = cv2.cvtColor(x, cv2.COLOR_RGB2GRAY)[..., None]
    x = p["blend"] * x + (1 - p["blend"]) * np.maximum(x, gray * 1.5 + 0.5)
    return scaled(x + layer + np.rot90(layer, 2))


def frosted(folder: Path) -> Callable[[np.ndarray, dict[str, float]], np.ndarray]:
    def frost(image: np.ndarray, p: dict[str, float]) -> np.ndarray:
        texture = cv2.imread(str(folder / f"{np.random.randint(5)}.png"))
        top, left = (np.random.randint(0, texture.shape[axis] - 224) for axis in range(2))
        ice = texture[top : top + 224, left : left + 224][..., [2, 1, 0]]
        return np.uint8(np.clip(p["img_w"] * np.array(image) + p["frost_w"] * ice, 0, 255))

    return frost


def wibbled(total: np.ndarray, w: float) -> np.ndarray:
    return total / 4 + w * np.random.uniform(-w, w, total.shape)


def fog(image: np.ndarray, p: dict[str, float]) -> np.ndarray:
    land, s, w = np.zeros((256, 256)), 256, 100.0
    while s >= 2:
        half, corners = s // 2, land[::s, ::s]
        rows = corners + np.roll(corners, -1, 0)
        land[half::s, half::s] = wibbled(rows + np.roll(rows, -1, 1), w)
        middle = land[half::s, half::s]
        land[::s, half::s] = wibbled(middle + np.roll(middle, 1, 0) + corners + np.roll(corners, -1, 1), w)
        land[half::s, ::s] = wibbled(middle + np.roll(middle, 1, 1) + corners + np.roll(corners, -1, 0), w)
        s, w = half, w / p["wibbledecay"]
    land -= land.min()
    x, f = image / 255.0, p["strength"]
    most = x.max()
    return scaled((x + f * (land / land.max())[:224, :224, None]) * most / (most + f))


def to_hsv(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    value, spread = x.max(-1), np.ptp(x, -1)
    with np.errstate(all="ignore"):
        saturation = np.where(spread == 0, 0, spread / value)
        red, green, blue = (x[..., c] for c in range(3))
        hue = np.where(value == red, (green - blue) / spread, 0)
        hue = np.where(value == green, 2 + (blue - red) / spread, hue)
        hue = np.where(value == blue, 4 + (red - green) / spread, hue)
        return np.where(spread == 0, 0, (hue / 6) % 1), saturation, value


def to_rgb(hue: np.ndarray, saturation: np.ndarray, value: np.ndarray) -> np.ndarray:
    sixth = np.floor(hue * 6)
    rest = hue * 6 - sixth
    a, b, c = value * (1 - saturation), value * (1 - rest * saturation), value * (1 - (1 - rest) * saturation)
    which = np.stack([sixth, sixth, sixth], -1).astype(np.uint8) % 6
    parts = [(value, c, a), (b, value, a), (a, value, c), (a, b, value), (c, a, value), (value, a, b)]
    return np.choose(which, [np.stack(part, -1) for part in parts])


def brightness(image: np.ndarray, p: dict[str, float]) -> np.ndarray:
    hue, saturation, value = to_hsv(image / 255.0)
    return scaled(to_rgb(hue, saturation, np.clip(value + p["dV"], 0, 1)))


def saturate(image: np.ndarray, p: dict[str, float]) -> np.ndarray:
    hue, saturation, value = to_hsv(image / 255.0)
    return scaled(to_rgb(hue, np.clip(p["factor"] * saturation + p["offset"], 0, 1), value))


def contrast(image: np.ndarray, p: dict[str, float]) -> np.ndarray:
    x = image / 255.0
    mean = x.mean(axis=(0, 1), keepdims=True)
    return scaled((x - mean) * p["factor"] + mean)


def elastic(image: np.ndarray, p: dict[str, float]) -> np.ndarray:
    x, shape = np.array(image, np.float32) / 255, image.shape
    corners = np.float32([[186, 186], [186, 38], [38, 38]])
    moved = corners + np.random.uniform(-p["affine"], p["affine"], corners.shape).astype(np.float32)
    affine = cv2.getAffineTransform(corners, moved)
    x = cv2.warpAffine(x, affine, (224, 224), borderMode=cv2.BORDER_REFLECT_101)
    dx, dy = (
        (gaussian_filter(np.random.uniform(-1, 1, shape[:2]), p["sigma"], mode="reflect", truncate=3) * p["alpha"])
        .astype(np.float32)[..., None]
        for _ in range(2)
    )  # fmt: skip
    columns, rows, channels = np.meshgrid(np.arange(224), np.arange(224), np.arange(3))
    where = [np.reshape(rows + dy, (-1, 1)), np.reshape(columns + dx, (-1, 1)), np.reshape(channels, (-1, 1))]
    return scaled(map_coordinates(x, where, order=1, mode="reflect").reshape(shape))


def pixelate(image: np.ndarray, p: dict[str, float]) -> np.ndarray:
    side = int(224 * p["scale"])
    small = Image.fromarray(image).resize((side, side), Image.Resampling.BOX)
    return np.asarray(small.resize((224, 224), Image.Resampling.BOX))


def as_jpeg(image: np.ndarray, quality: int, **options: bool) -> bytes:
    file = io.BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=quality, **options)
    return file.getvalue()


def jpeg(image: np.ndarray, p: dict[str, float]) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(as_jpeg(image, round(p["quality"])))))


def speckle_noise(image: np.ndarray, p: dict[str, float]) -> np.ndarray:
    x = image / 255.0
    return scaled(x + x * np.random.normal(size=image.shape, scale=p["sigma"]))


def gaussian_blur(image: np.ndarray, p: dict[str, float]) -> np.ndarray:
    return scaled(gaussian_filter(image / 255.0, (p["sigma"], p["sigma"], 0), mode="nearest"))


def spatter(image: np.ndarray, p: dict[str, float]) -> np.ndarray:
    x = np.array(image, np.float32) / 255
    field = np.random.normal(size=x.shape[:2], loc=p["loc"], scale=p["scale"])
    field = gaussian_filter(field, p["sigma"], mode="nearest")
    field[field < p["thresh"]] = 0
    if round(p["mud"]):
        mask = gaussian_filter((field > p["thresh"]).astype(np.float32), p["strength"], mode="nearest")
        mask[mask < 0.8] = 0
        mud = np.stack([c / 255 * np.ones_like(x[..., 0]) for c in (63, 42, 20)], -1) * mask[..., None]
        return scaled(x * (1 - mask[..., None]) + mud)
    drops = (field * 255).astype(np.uint8)
    distance = cv2.distanceTransform(255 - cv2.Canny(drops, 50, 150), cv2.DIST_L2, 5)
    distance = cv2.threshold(distance, 20, 20, cv2.THRESH_TRUNC)[1]
    shade = cv2.equalizeHist(cv2.blur(distance, (3, 3)).astype(np.uint8))
    shade = cv2.filter2D(shade, cv2.CV_8U, np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]]))
    light = cv2.cvtColor(drops * cv2.blur(shade, (3, 3)).astype(np.float32), cv2.COLOR_GRAY2BGRA)
    light = light / np.max(light) * p["strength"]
    color = np.concatenate([c / 255 * np.ones_like(light[..., :1]) for c in (175, 238, 238)], -1)
    with_alpha = cv2.cvtColor(x, cv2.COLOR_BGR2BGRA)
    color = cv2.cvtColor(color, cv2.COLOR_BGR2BGRA)
    return scaled(cv2.cvtColor(np.clip(with_alpha + light * color, 0, 1), cv2.COLOR_BGRA2BGR))


def shown(file: bytes, first: Slow, second: Slow, p: tuple[dict[str, float], dict[str, float]], jpeg: bool) -> None:
    """Decode a file, cut and flip it, corrupt it twice; store it and read it again if images are shown from files."""
    picture = Image.open(io.BytesIO(file)).convert("RGB")
    if np.random.rand() < 0.5:
        picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    top, left, height, width = random_box(picture.height, picture.width, np.random.default_rng())
    part = picture.crop((left, top, left + width, top + height)).resize((224, 224), Image.Resampling.BILINEAR)
    image = second(first(np.asarray(part), p[0]), p[1])
    if jpeg:
        np.asarray(Image.open(io.BytesIO(as_jpeg(image, 85, optimize=True))))
