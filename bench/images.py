"""Peak memory and time of a process that reads a folder of generated pictures, against one with twice as many.

The process loads the folder as `image-folders`, computes the fingerprint, for which every picture is decoded once, and
lets a frozen network answer for some pictures. Decoded, a picture of 64 pixels takes 12 KB.

    python bench/images.py [--pictures 200000] [--size 64] [--cache 100MB] [--answered 2000]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

READER = """
import resource, sys, time
from driftline import registry
from driftline.data import load
from driftline.seeds import Seed
from driftline.training.model import as_model

path, size, answered = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
start = time.perf_counter()
data = load("image-folders", {"path": path, "size": size})
loaded = time.perf_counter()
if answered < 0:
    data.fingerprint
hashed = time.perf_counter()
model = registry.get("model", "conv-2")((size, size, 3), 2, Seed(0))
assert len(as_model(model).predict(data.samples[: abs(answered)].x)) == abs(answered)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(len(data.samples), peak, loaded - start, hashed - loaded, time.perf_counter() - hashed)
"""


def write_pictures(folder: Path, numbers: range, side: int = 16) -> None:
    """Write small pictures of two classes with these numbers, in folders of at most 10,000."""
    rng = np.random.default_rng(numbers.start)
    for k in numbers:
        inside = folder / "ab"[k % 2] / f"{k // 20_000:03d}"
        if k % 20_000 < 2:
            inside.mkdir(parents=True, exist_ok=True)
        (inside / f"{k:07d}.ppm").write_bytes(b"P6 %d %d 255\n" % (side, side) + rng.bytes(side * side * 3))


def read(folder: Path, size: int, answered: int, cache: str, *, fingerprint: bool) -> tuple[float, ...]:
    """Return the pictures read, the peak memory in MB, and the seconds for listing, fingerprint and answers."""
    command = [sys.executable, "-c", READER, str(folder), str(size), str(-answered if fingerprint else answered)]
    environment = {**os.environ, "DRIFTLINE_IMAGE_CACHE": cache, "XDG_CACHE_HOME": str(folder.parent / "cache")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return tuple(map(float, done.stdout.split()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=int, default=200_000)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--cache", default="100MB")
    parser.add_argument("--answered", type=int, default=2000)
    given = parser.parse_args()
    n, decoded = given.pictures, given.size**2 * 3 / 1e6
    with tempfile.TemporaryDirectory() as base:
        for numbers in (range(n), range(n, 2 * n)):
            write_pictures(Path(base) / "pictures", numbers)
            found = read(Path(base) / "pictures", given.size, given.answered, given.cache, fingerprint=True)
            count, peak, listing, hashing, answering = found
            print(
                f"{count:,.0f} pictures, {count * decoded:,.0f} MB if all were decoded: peak {peak:,.0f} MB;", end=" "
            )
            print(f"seconds: {listing:.1f} to list, {hashing:.1f} for the fingerprint,", end=" ")
            print(f"{answering:.1f} for {given.answered:,} answers", flush=True)


if __name__ == "__main__":
    main()
