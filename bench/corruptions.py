"""Corruptions per second of CPU time, against the computations of existing generators, and the whole way of an image.

One process and one thread, 224 pixels, allocator fixed for both sides, both sides in each round, and the factor is the
median of those within a round.

    python bench/corruptions.py [FOLDER] [--only gaussian_noise,fog] [--severities 3] [--rounds 5] [--save]

FOLDER: imagenet_val1000_256px, by default in $DRIFTLINE_DATA. `--save`: write to the table of docs/performance.md.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

os.environ.update({name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")})

import corruption_references as references
import cv2
import numpy as np
import performance
from PIL import Image

from driftline import data
from driftline.corruptions import HOLDOUT, NAMES, frost, parameters
from driftline.corruptions.cropping import decode_image, random_crop
from driftline.corruptions.pixelate_jpeg import each_compressed
from driftline.shifts import corrupt

OURS, THEIRS = 32, 6  # images
EASY = [name for name in NAMES if name != "brightness"]
BENCH = "corruptions.py"


def seconds(function: Callable[[], object], images: int) -> float:
    began = time.process_time()
    function()
    return (time.process_time() - began) / images


def compared(
    images: np.ndarray, name: str, severity: float, theirs: references.Slow, rounds: int
) -> list[tuple[float, float]]:
    """Return seconds per image of theirs and of ours, for each round."""
    found, rng, few = parameters(name, severity), np.random.default_rng(0), images[: THEIRS if severity >= 1 else 2]
    corrupt(images[:1], name, severity, rng)
    theirs(images[0], found)
    return [
        (
            seconds(lambda: [theirs(image, found) for image in few], len(few)),
            seconds(lambda: corrupt(images, name, severity, rng), len(images)),
        )
        for _ in range(rounds)
    ]


def row(title: str, pairs: list[tuple[float, float]]) -> performance.Measure:
    """Return the row of a comparison, and print its factor."""
    pairs = sorted(pairs, key=lambda pair: pair[0] / pair[1])
    theirs, ours = pairs[len(pairs) // 2]
    factors = [a / b for a, b in pairs]
    print(f"{title:28} theirs {1 / theirs:7.1f}, ours {1 / ours:7.0f} a second: {theirs / ours:6.1f} times as fast"
          f" ({factors[0]:.1f} to {factors[-1]:.1f})", flush=True)  # fmt: skip
    scaled = sorted(theirs * 1e3 / factor for factor in factors)  # ours in milliseconds, at the median of theirs
    return performance.Measure(title, "ms", ours * 1e3, theirs * 1e3, "reference", scaled[0], scaled[-1],
                               os.getloadavg()[0], BENCH)  # fmt: skip


def files_of(images: np.ndarray) -> list[bytes]:
    """Return pictures of a common size, 500 x 400."""
    larger = (Image.fromarray(image).resize((500, 400), Image.Resampling.BICUBIC) for image in images)
    return [references.as_jpeg(np.asarray(image), 90) for image in larger]


def pipeline(images: np.ndarray, slow: dict[str, references.Slow], rounds: int) -> Iterator[performance.Measure]:
    """Compare decoding, cutting and flipping, two corruptions at severity 3, and JPEG at last."""
    files, rng = files_of(images), np.random.default_rng(1)
    pairs = [tuple(rng.choice(EASY, 2, replace=False)) for _ in range(24)]
    known = {file: decode_image(file) for file in files}

    def theirs(jpeg: bool) -> None:
        for k, (first, second) in enumerate(pairs):
            found = (parameters(first, 3), parameters(second, 3))
            references.shown(files[k % len(files)], slow[first], slow[second], found, jpeg)

    def ours(decode: Callable[[bytes], np.ndarray], jpeg: bool) -> None:
        for first, second in pairs:
            keys = rng.integers(0, 2**64, len(files), dtype=np.uint64)
            parts = np.stack([random_crop(decode(file), int(key)) for file, key in zip(files, keys, strict=True)])
            shown = corrupt(corrupt(parts, first, 3, keys), second, 3, keys)
            each_compressed(shown, 85) if jpeg else shown

    theirs(True), ours(decode_image, True)
    for title, decode, jpeg in (
        ("pipeline", decode_image, False),
        ("pipeline, decoded before", known.__getitem__, False),
        ("pipeline with JPEG at last", decode_image, True),
    ):
        yield row(title, [
            (seconds(lambda j=jpeg: theirs(j), len(pairs)),
             seconds(lambda d=decode, j=jpeg: ours(d, j), len(pairs) * len(files)))
            for _ in range(rounds)
        ])  # fmt: skip


def main(given: argparse.Namespace) -> None:
    for setting, value in ((-1, 1 << 30), (-3, 1 << 25)):  # memory never goes back to the system, for both sides
        assert ctypes.CDLL(None).mallopt(setting, value), "the allocator of this system cannot be fixed"
    cv2.setNumThreads(1)
    files = sorted(given.folder.glob("*.jpg"))[:OURS]
    images = np.stack([np.asarray(Image.open(file).convert("RGB"))[16:240, 16:240] for file in files])
    found = []
    with tempfile.TemporaryDirectory() as place:
        for i, texture in enumerate(frost.synthetic_textures()):
            cv2.imwrite(f"{place}/{i}.png", texture[..., ::-1])
        slow = {**vars(references), "frost": references.frosted(Path(place))}
        for severity in given.severities:
            for name in given.only:
                pairs = compared(images, name, severity, slow[name], given.rounds)
                found.append(row(f"{name} at {severity:g}", pairs))
        factors = [one.against / one.ours for one in found]
        print(f"geometric mean {np.exp(np.log(factors).mean()):.1f}, lowest {min(factors):.1f}")
        if set(EASY) <= set(given.only):
            found += pipeline(images, slow, given.rounds)
    if given.save:
        performance.add(found)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--only", type=lambda text: text.split(","), default=[*NAMES, *HOLDOUT])
    parser.add_argument("--severities", type=float, nargs="+", default=[3])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args()
    folders = [given.folder] if given.folder else [one / "imagenet_val1000_256px" for one in data.data_folders()]
    given.folder = next((one for one in folders if one.is_dir()), None)
    if given.folder is None:
        sys.exit("not measured: no folder imagenet_val1000_256px is given or in $DRIFTLINE_DATA")
    return given


if __name__ == "__main__":
    main(arguments())
