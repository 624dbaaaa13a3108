"""Corruptions per second of CPU time, against straightforward implementations and rates measured earlier.

The straightforward ones are written here after descriptions of how existing generators work: float64, scipy zooms and
filters, legacy random numbers, a texture decoded for every image. Motion blur and snow go through ImageMagick in CCC,
which is not called here: ours are compared with a loop over shifted arrays, the fastest that exists. Beside these
factors stand those against rates of the existing generators themselves, from an earlier run on a machine of this kind.

One process and one thread, 224 pixels, severity 3, allocator fixed for both sides, rounds interleaved, and the factor
is the median of those within a round.

    python bench/corruptions.py [folder with imagenet_val1000_256px] [gaussian_noise fog ...]
"""

from __future__ import annotations

import ctypes
import io
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.update({name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")})

import cv2
import numba
import numpy as np
from PIL import Image
from scipy.ndimage import gaussian_filter, map_coordinates, zoom

from driftline import data
from driftline.corruptions import NAMES, frost, parameters
from driftline.corruptions import defocus_blur as defocus
from driftline.corruptions import motion_blur as motion
from driftline.corruptions.cropping import decode_image, random_crop
from driftline.shifts import corrupt

ROUNDS, OURS, THEIRS = 5, 32, 6
# Images per CPU second at severity 3 of imagecorruptions (PyPI, HEAD), Hendrycks and CCC, in an earlier run.
EARLIER = {
    "gaussian_noise": (228, 218, 225, 224),
    "shot_noise": (79, 82, 82, 80),
    "impulse_noise": (457, 460, 487, 419),
    "defocus_blur": (282, 288, 306, 298),
    "glass_blur": (0.6, 83, 0.5, 86),
    "motion_blur": (155, 154, 10.6, 12.3),
    "zoom_blur": (11.9, 12.3, 11.3, 12.5),
    "snow": (94, 95, 20, 21),
    "frost": (123, 133, 149, 142),
    "fog": (311, 356, 346, 319),
    "brightness": (58, 59, 62, 61),
    "contrast": (425, 432, 451, 412),
    "elastic": (57, 54, 56, 56),
}
MAGICK = ("motion_blur", "snow")  # here CCC is slower than what is measured, by its detour through PNG and ImageMagick
EASY = [name for name in NAMES if name != "brightness"]


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
    kernel, x = defocus.kernel_of(p["radius"], p["alias_sigma"]), image / 255.0
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


def brightness(image: np.ndarray, p: dict[str, float]) -> np.ndarray:
    x = image / 255.0
    value, spread = x.max(-1), np.ptp(x, -1)
    with np.errstate(all="ignore"):
        saturation = np.where(spread == 0, 0, spread / value)
        red, green, blue = (x[..., c] for c in range(3))
        hue = np.where(value == red, (green - blue) / spread, 0)
        hue = np.where(value == green, 2 + (blue - red) / spread, hue)
        hue = np.where(value == blue, 4 + (red - green) / spread, hue)
        hue = np.where(spread == 0, 0, (hue / 6) % 1)
    value = np.clip(value + p["dV"], 0, 1)
    sixth = np.floor(hue * 6)
    rest = hue * 6 - sixth
    a, b, c = value * (1 - saturation), value * (1 - rest * saturation), value * (1 - (1 - rest) * saturation)
    which = np.stack([sixth, sixth, sixth], -1).astype(np.uint8) % 6
    parts = [(value, c, a), (b, value, a), (a, value, c), (a, b, value), (c, a, value), (value, a, b)]
    return scaled(np.choose(which, [np.stack(part, -1) for part in parts]))


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


def seconds(function: Callable[[], object], images: int) -> float:
    began = time.process_time()
    function()
    return (time.process_time() - began) / images


def compared(
    images: np.ndarray, name: str, severity: float, theirs: Callable[[np.ndarray, dict[str, float]], np.ndarray]
) -> tuple[float, float, float]:
    """Images per CPU second of theirs and of ours, and the factor between them: medians over rounds."""
    found, rng, few = parameters(name, severity), np.random.default_rng(0), images[: THEIRS if severity >= 1 else 2]
    corrupt(images[:1], name, severity, rng)
    theirs(images[0], found)
    pairs = []
    for _ in range(ROUNDS):
        slow = seconds(lambda: [theirs(image, found) for image in few], len(few))
        pairs.append((1 / slow, 1 / seconds(lambda: corrupt(images, name, severity, rng), len(images))))
    rates = np.array(pairs)
    return float(np.median(rates[:, 0])), float(np.median(rates[:, 1])), float(np.median(rates[:, 1] / rates[:, 0]))


def pipeline(images: np.ndarray) -> None:
    """Decode, cut and flip, and corrupt twice; the sources are of a common size, 500 x 400."""
    files = []
    for image in images:
        stored = io.BytesIO()
        Image.fromarray(image).resize((500, 400), Image.Resampling.BICUBIC).save(stored, "JPEG", quality=90)
        files.append(stored.getvalue())
    rng = np.random.default_rng(1)

    def stream(decode: Callable[[bytes], np.ndarray], points: int) -> None:
        for _ in range(points):
            first, second = rng.choice(EASY, 2, replace=False)
            keys = rng.integers(0, 2**64, len(files), dtype=np.uint64)
            parts = np.stack([random_crop(decode(file), int(key)) for file, key in zip(files, keys, strict=True)])
            corrupt(corrupt(parts, first, 3, keys), second, 3, keys)

    stream(decode_image, 15)
    cold = [1 / seconds(lambda: stream(decode_image, 3), 3 * len(files)) for _ in range(ROUNDS)]
    kept = {file: decode_image(file) for file in files}
    warm = [1 / seconds(lambda: stream(kept.__getitem__, 3), 3 * len(files)) for _ in range(ROUNDS)]
    rates = f"{np.median(cold):.0f} images per CPU second, {np.median(warm):.0f} if decoded before"
    print(f"decode, cut, two corruptions: {rates}")


def main(folder: Path, names: list[str]) -> None:
    for setting, value in ((-1, 1 << 30), (-3, 1 << 25)):  # memory never goes back to the system, for both sides
        assert ctypes.CDLL(None).mallopt(setting, value), "the allocator of this system cannot be fixed"
    cv2.setNumThreads(1)
    files = sorted(folder.glob("*.jpg"))[:OURS]
    images = np.stack([np.asarray(Image.open(file).convert("RGB"))[16:240, 16:240] for file in files])
    with tempfile.TemporaryDirectory() as place:
        for i, texture in enumerate(frost.synthetic_textures()):
            cv2.imwrite(f"{place}/{i}.png", texture[..., ::-1])
        slow = {**globals(), "frost": frosted(Path(place))}
        ratios, ccc = [], []
        print(f"{'':16} theirs    ours  factor | earlier run: fastest, CCC, our factors")
        for name in names:
            theirs, ours, factor = compared(images, name, 3, slow[name])
            fastest, generator = max(EARLIER[name]), EARLIER[name][3]
            ratios.append(factor)
            ccc.append(ours / generator if name in MAGICK else factor)
            print(f"{name:16} {theirs:6.1f} {ours:7.0f} {factor:7.1f} | {fastest:5.0f} {generator:5.0f}"
                  f" {ours / fastest:7.1f} {ours / generator:7.1f}", flush=True)  # fmt: skip
        print(f"geometric mean {np.exp(np.log(ratios).mean()):.1f}, with the earlier CCC for {' and '.join(MAGICK)}"
              f" {np.exp(np.log(ccc).mean()):.1f}")  # fmt: skip
        for severity in (0.25, 0.5, 0.75, 1.0) if "elastic" in names else ():
            theirs, ours, factor = compared(images, "elastic", severity, elastic)
            print(f"elastic at {severity:4}  {theirs:6.1f} {ours:7.0f} {factor:7.1f}", flush=True)
    pipeline(images)


if __name__ == "__main__":
    given = [Path(argument) for argument in sys.argv[1:] if argument not in EARLIER] or data.data_folders()
    found = [folder / "imagenet_val1000_256px" for folder in given if (folder / "imagenet_val1000_256px").is_dir()]
    if not found:
        sys.exit("not measured: no folder imagenet_val1000_256px in the folders given or in $DRIFTLINE_DATA")
    main(found[0], [argument for argument in sys.argv[1:] if argument in EARLIER] or list(EARLIER))
