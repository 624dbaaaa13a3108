"""Logged class probabilities: one column for two classes, or one column per class."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from driftline.data.formats.column_kinds import to_floats
from driftline.errors import UserError

TOLERANCE = 0.01  # of the sum of a row's probabilities


def split_names(given: Sequence[str], columns: Sequence[str]) -> list[tuple[str, str | None]]:
    """Return column and class of each COL or COL=CLASS; the name of a column may contain an equals sign.

    >>> split_names(["p", "q=yes"], ["p", "q"])
    [('p', None), ('q', 'yes')]
    """
    found: list[tuple[str, str | None]] = []
    for text in given:
        column, equals, name = text.rpartition("=")
        found.append((text, None) if text in columns or not equals else (column, name))
    return found


def parse_probabilities(
    table: pd.DataFrame,
    given: Sequence[tuple[str, str | None]],
    labels: np.ndarray | None,
    predicted: np.ndarray | None,
) -> tuple[np.ndarray, list[str]]:
    """Return the probability of each class, and a note on what one column was taken for.

    With two classes one column is enough. If its class is not named, it is the one whose predictions have the higher
    values; without predictions, the second class in sorted order.
    """
    if labels is None:
        raise UserError("--probability is for classes, and the target is a number")
    values = {column: _values(table[column]) for column, _ in given}
    if len(labels) == 2 and len(given) == 1:
        column, name = given[0]
        at = _index(name, labels) if name is not None else _likely(values[column], predicted)
        p = values[column]
        both = np.stack([1 - p, p] if at == 1 else [p, 1 - p], axis=1)
        return both, [f"'{column}' is read as the probability of '{labels[at]}'"]
    classes = [_index(name, labels) if name is not None else _class_of(column, labels) for column, name in given]
    if sorted(classes) != list(range(len(labels))):
        missing = [f"'{label}'" for k, label in enumerate(labels) if k not in classes]
        raise UserError(
            f"each of the {len(labels)} classes needs one column of probabilities; classes without one: "
            f"{', '.join(missing[:5]) or 'none, one is named twice'}. Use --probability COLUMN=CLASS for each"
        )
    whole = np.stack([values[given[classes.index(k)][0]] for k in range(len(labels))], axis=1)
    total = whole.sum(axis=1)
    if (np.abs(total - 1) > TOLERANCE).any():
        row = int(np.abs(total - 1).argmax())
        raise UserError(f"the probabilities of each row must sum to 1; those of one row sum to {total[row]:.4g}")
    return whole / total[:, None], []


def _values(column: pd.Series) -> np.ndarray:
    numeric = pd.to_numeric(column, errors="coerce")
    values = to_floats(numeric.astype(float))
    bad = ~((values >= 0) & (values <= 1))
    if bad.any():
        wrong = column.iloc[int(np.flatnonzero(bad)[0])]
        raise UserError(
            f"probability column '{column.name}' has {int(bad.sum()):,} values that are not numbers from 0 to 1, such "
            f"as '{wrong}'"
        )
    return values


def _index(name: str, labels: np.ndarray) -> int:
    names = [str(label) for label in labels]
    if name not in names:
        raise UserError(f"--probability names the class '{name}', and the target holds {', '.join(names[:10])}")
    return names.index(name)


def _class_of(column: str, labels: np.ndarray) -> int:
    """Return the class whose name ends the column's, such as p_yes; the longest one."""
    ending = [k for k, label in enumerate(labels) if column.endswith(str(label))]
    if not ending:
        raise UserError(f"the class of the probability '{column}' is not known: use --probability {column}=CLASS")
    return max(ending, key=lambda k: len(str(labels[k])))


def _likely(values: np.ndarray, predicted: np.ndarray | None) -> int:
    if predicted is None or not (predicted == 0).any() or not (predicted == 1).any():
        return 1
    return int(values[predicted == 1].mean() >= values[predicted == 0].mean())
