"""Omniglot: handwritten characters of many alphabets, 20 drawings of each, without a time.

Lake, Salakhutdinov and Tenenbaum, "Human-level concept learning through probabilistic program induction", Science 2015.
Read are the archives images_*.zip, unpacked or not, in a folder `omniglot`; inside are alphabet/character/drawing.png.
A class is a character of an alphabet. Drawings are black on white in the files and white on black here, as digits are.

Archives overlap: both small ones have Greek and Latin. A drawing that came before is left out, so that they have 242
characters together, not 292.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

import numpy as np

from driftline.data import Dataset, file_errors, locate
from driftline.data.formats import images
from driftline.data.source import published
from driftline.errors import UserError
from driftline.io import bounded_files
from driftline.registry import register
from driftline.tasks import Classification
from driftline.types import Samples

ADVICE = (
    "Get images_background.zip from github.com/brendenlake/omniglot (folder python), put it into a folder `omniglot`"
)
ARCHIVE = "a zip archive of drawings"
WHITE = 255
DEPTH = 3  # alphabet, character, drawing


@register("dataset", "omniglot")
@published(size="32,460 drawings of 1,623 characters", license="MIT", where=ADVICE, files=("omniglot",))
def omniglot(
    folders: Sequence[Path],
    *,
    size: int = 28,  # height and width of the images in pixels
) -> Dataset:
    """Characters as gray pictures of `size` pixels; an id is the drawing's place, such as Greek/character01/0394_01."""
    folder = locate(folders, ["omniglot"], "omniglot", ADVICE)
    entries, again = _distinct(folder)
    if not entries:
        raise UserError(f"{folder} has no pictures in folders of the form alphabet/character. {ADVICE}")
    ids = sorted(entries)
    x = images.allocate(len(ids), size, 1)
    row = {name: k for k, name in enumerate(ids)}
    for name, picture in _pictures(entries, size):
        x[row[name], :, :, 0] = picture
    characters = [name.rpartition("/")[0] for name in ids]
    names, y = np.unique(np.array(characters), return_inverse=True)
    samples = Samples(x=x, y=y.astype(np.int64), id=np.array(ids, dtype=object), time=np.zeros(len(ids), np.int64))
    alphabets = len({name.partition("/")[0] for name in ids})
    notes = [f"{len(ids):,} drawings of {len(names)} characters in {alphabets} alphabets, at {size} x {size} pixels"]
    notes += [f"{again:,} drawings that came before are left out"] if again else []
    return Dataset("omniglot", samples, Classification(tuple(names.tolist())), tuple(notes), model="conv-2")


def _distinct(folder: Path) -> tuple[dict[str, tuple[Path, str]], int]:
    """Return the source and path of each distinct drawing, and the number of repeated ones."""
    found: dict[str, tuple[Path, str]] = {}
    total = 0
    for source in _sources(folder):
        for entry in _listed(source):
            if name := _name(entry):
                found.setdefault(name, (source, entry))
                total += 1
    return found, total - len(found)


def _sources(folder: Path) -> list[Path]:
    """Return the folder itself, then its archives: unpacked drawings are preferred."""
    return [folder, *sorted(path for path in folder.glob("*.zip") if not path.name.startswith("."))]


def _listed(source: Path) -> list[str]:
    if source.is_dir():
        return sorted(file.relative_to(source).as_posix() for file in source.rglob("*.png"))
    with file_errors(source, ARCHIVE), bounded_files.open_zip(source) as archive:
        return sorted(archive.namelist())


def _name(path: str) -> str:
    """Return alphabet/character/drawing from a path with any folders before it; empty if it is not a drawing.

    >>> _name("images_background/Greek/character01/0394_01.png"), _name("a/b/._x.png"), _name("b/x.png")
    ('Greek/character01/0394_01', '', '')
    """
    place = PurePosixPath(path)
    if len(place.parts) < DEPTH or place.suffix.lower() != ".png" or place.name.startswith("."):
        return ""
    return "/".join(place.with_suffix("").parts[-DEPTH:])


def _pictures(entries: dict[str, tuple[Path, str]], size: int) -> Iterator[tuple[str, np.ndarray]]:
    """Yield every drawing with its name; an archive is opened once."""
    for source in dict.fromkeys(source for source, _ in entries.values()):
        here = [(name, entry) for name, (home, entry) in entries.items() if home == source]
        if source.is_dir():
            for name, entry in here:
                yield name, _picture((source / entry).read_bytes(), size, source / entry)
            continue
        with file_errors(source, ARCHIVE), bounded_files.open_zip(source) as archive:
            for name, entry in here:
                yield name, _picture(archive.read(entry), size, source / entry)


def _picture(content: bytes, size: int, path: Path) -> np.ndarray:
    """Return a drawing as white ink on black, squeezed to a square of `size` pixels."""
    with file_errors(path, "a picture"), images.open_image(content) as image:
        gray = image.convert("L")
        ink: np.ndarray = WHITE - np.asarray(gray.resize((size, size), images.pil_image_module().Resampling.BILINEAR))
        return ink
