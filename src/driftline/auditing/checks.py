"""What is unusual about a table, in words: imbalance, identifiers, copies, constant columns, dates as features."""

from __future__ import annotations

import numpy as np
import pandas as pd

from driftline.auditing.copies import copy_keys
from driftline.auditing.frame import Frame
from driftline.auditing.metric import DOMINANT, RARE
from driftline.tasks import Classification

MAX_SHARE_OF_VALUES = (
    0.05  # values of a feature as a share of its rows; with more, a match with the target may be chance
)
MANY_CLASSES = 0.5  # classes as a share of rows, from which the target looks like an identifier


def check_table(frame: Frame) -> tuple[str, ...]:
    """Return warnings about a table, one sentence each."""
    return tuple([*_target(frame), *_leaks(frame), *_identifiers(frame), *_columns(frame), *_copies(frame)])


def _target(frame: Frame) -> list[str]:
    if not isinstance(frame.task, Classification):
        return []
    counts = np.bincount(frame.samples.y, minlength=len(frame.task.classes))
    if len(counts) > MANY_CLASSES * len(frame.samples):
        rows = len(frame.samples)
        return [f"the target '{frame.target}' has {len(counts):,} values in {rows:,} rows, like an identifier"]
    shares = counts / counts.sum()
    if shares.max() > (1 - RARE if len(counts) == 2 else DOMINANT):
        name = frame.task.classes[int(shares.argmax())]
        return [f"the classes are unbalanced: {100 * shares.max():.1f}% of the rows are '{name}'"]
    return []


def _leaks(frame: Frame) -> list[str]:
    """Warn about features that give the target away."""
    rows, y = frame.samples.x, pd.Series(frame.samples.y)
    found = [name for name in frame.features if _gives_away(frame.inputs[name].iloc[rows].reset_index(drop=True), y)]
    if not found:
        return []
    verb = "gives" if len(found) == 1 else "give"
    return [f"{_list(found)} {verb} the target '{frame.target}' away; check that it is known before the target"]


def _gives_away(column: pd.Series, y: pd.Series) -> bool:
    """Return whether each value of the feature has one target, and there are few values for the rows that have one."""
    known = column.notna()
    if column.nunique() > MAX_SHARE_OF_VALUES * known.sum() or y[known].nunique() < 2:
        return False
    return bool((y[known].groupby(column[known], observed=True).nunique() <= 1).all())


def _identifiers(frame: Frame) -> list[str]:
    """Warn about features that identify the time or the row, with the option that excludes them."""
    if not frame.time_proxies:
        return []
    named = ", ".join(f"'{name}'" for name in frame.time_proxies)
    others = ",".join(name for name in frame.features if name not in frame.time_proxies)
    verb, them = ("identifies", "it") if len(frame.time_proxies) == 1 else ("identify", "them")
    advice = f'; exclude {them} with --features "{others}"' if others else ""
    return [f"{named} {verb} the time or the row, so every later row looks new{advice}"]


def _columns(frame: Frame) -> list[str]:
    notes = []
    rows = len(frame.table)
    used = [column for column in frame.columns if column.name in frame.features]
    empty = [column.name for column in used if column.missing == rows]
    constant = [column.name for column in used if column.missing < rows and column.levels <= 1]
    dates = [column.name for column in used if column.kind == "date" and column.name not in frame.time_proxies]
    inexact = [name for name in constant if frame.table[name].nunique() > 1]
    constant = [name for name in constant if name not in inexact]
    equal = "equal in the first 15 digits"
    for names, what in ((empty, "empty"), (constant, "constant"), (inexact, equal)):
        if names:
            notes.append(f"{_list(names)} {'is' if len(names) == 1 else 'are'} {what} and cannot help a model")
    if dates:
        notes.append(
            f"{_list(dates)} {'is a date' if len(dates) == 1 else 'are dates'}: where dates move on with time, every "
            "later row is outside of the range that a model was trained on; use a difference of dates instead"
        )
    return notes


def _copies(frame: Frame) -> list[str]:
    keys = copy_keys(frame)
    if keys is None:
        return []
    copies = len(keys) - len(np.unique(keys))
    return [
        f"{copies:,} of {len(keys):,} rows are copies of another row, target included; tests keep the copies of a row "
        "together within a period that has enough other rows; intervals count each copy, so they are too narrow"
    ]


def _list(names: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
