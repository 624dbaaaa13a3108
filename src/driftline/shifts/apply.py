"""Apply shifts in a fixed order, which their order in the notation does not change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

import numpy as np

from driftline.errors import UserError
from driftline.shifts.base import Shift
from driftline.shifts.notation import ShiftNotation, parse


def apply(
    images: np.ndarray,
    labels: np.ndarray,
    sequence: ShiftNotation,
    rng: np.random.Generator | int,
    *,
    classes: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return images and labels after a sequence of shifts: noise, then rotation, then tint, then labels.

    Images have the shape (n, height, width, channels): bytes, or floats up to 255, or up to 1 if none is larger. The
    result has the same type. `classes` is the number of classes, by default the largest label plus one. Shifts of the
    sampling (s, l) change nothing here: `streams.seq_to_final.sampling` samples by them.

    >>> x, y = apply(np.full((1, 2, 2, 3), 240, np.uint8), np.array([7]), "TL", 0, classes=10)
    >>> x[0, 0, 0].tolist(), y.tolist()
    ([255, 240, 240], [2])
    """
    images, labels = np.asarray(images), np.asarray(labels)
    shifts = [shift for step in parse(sequence) for shift in step]
    classes = classes or int(labels.max(initial=0)) + 1
    check_shifts(shifts, images.shape[1:], classes)
    if len(images) != len(labels):
        raise UserError(f"{len(images)} images but {len(labels)} labels")
    return apply_to_images(shifts, images, labels, np.random.default_rng(rng), white_level(images)), apply_to_labels(
        shifts, labels, classes
    )


def check_shifts(shifts: Sequence[Shift], shape: tuple[int, ...], classes: int) -> None:
    """Refuse shifts that cannot be applied to inputs of this shape and this many classes."""
    earlier: Counter[type[Shift]] = Counter()
    for shift in shifts:
        if shift.target == "images" and len(shape) != 3:
            raise UserError(f"{shift}: it changes images of shape (height, width, channels), and these are {shape}")
        reason = shift.why_not(shape, classes, earlier[type(shift)])
        if reason:
            raise UserError(f"{shift}: {reason}")
        earlier[type(shift)] += 1


def white_level(images: np.ndarray) -> float:
    """Return the value of white: 255, or 1 for floats that are all at most 1."""
    return 1.0 if images.dtype.kind == "f" and images.max(initial=0) <= 1 else 255.0


def apply_to_images(
    shifts: Sequence[Shift], images: np.ndarray, labels: np.ndarray, rng: np.random.Generator, white: float
) -> np.ndarray:
    """Return the images after all shifts that change images; `labels` are the original ones."""
    images = np.asarray(images)
    changing = sorted((shift for shift in shifts if shift.target == "images"), key=lambda shift: shift.priority)
    for _, family in groupby(changing, key=lambda shift: (shift.priority, type(shift).apply_all.__func__)):  # type: ignore[attr-defined]
        members = list(family)
        changed = members[0].apply_all(members, images, labels, rng, white)
        if changed.shape != images.shape:
            raise UserError(f"{members[0]} made images of shape {changed.shape} from {images.shape}")
        if images.dtype == np.uint8 and changed.dtype != np.uint8:
            changed = np.rint(changed).clip(0, white)
        images = changed.astype(images.dtype, copy=False)
    return images


def apply_to_labels(shifts: Sequence[Shift], labels: np.ndarray, classes: int) -> np.ndarray:
    """Return the labels after all shifts that change labels, in sequence."""
    earlier: Counter[type[Shift]] = Counter()
    for shift in shifts:
        if shift.target == "labels":
            labels = shift.relabel(labels, earlier[type(shift)], classes)
            earlier[type(shift)] += 1
    return labels
