"""Curves, bars and durations in a line of text, in ASCII if required."""

from __future__ import annotations

import numpy as np

BLOCKS = "▁▂▃▄▅▆▇█"
DIGITS = "0123456789"


def sparkline(correct: np.ndarray, answered: np.ndarray, width: int, ascii: bool = False) -> str:
    """Return the accuracy in up to `width` equal parts of time, from 0 at the bottom to 1 at the top.

    In ASCII each character is a digit: 7 stands for 70 to 80 percent.

    >>> sparkline(np.array([0, 1, 2, 4]), np.array([4, 4, 4, 4]), 4, ascii=True)
    '0259'
    >>> sparkline(np.array([0, 1, 2, 4]), np.array([4, 4, 4, 4]), 2)
    '▂▇'
    """
    if not len(correct):
        return ""
    levels = DIGITS if ascii else BLOCKS
    parts = min(width, len(correct))
    starts = np.arange(parts) * len(correct) // parts
    shares = np.add.reduceat(correct, starts) / np.maximum(np.add.reduceat(answered, starts), 1)
    return "".join(levels[int(k)] for k in np.clip(shares * len(levels), 0, len(levels) - 1))


def progress_bar(done: int, total: int, width: int, ascii: bool = False) -> str:
    """Return a bar of the share that is done.

    >>> progress_bar(1, 4, 8, ascii=True), progress_bar(4, 4, 8)
    ('##......', '████████')
    """
    full, empty = ("#", ".") if ascii else ("█", "░")
    filled = width * done // total if total else 0
    return full * filled + empty * (width - filled)


def format_duration(seconds: float) -> str:
    """Return a duration in one or two units.

    >>> [format_duration(seconds) for seconds in (4.4, 89, 610, 5000, 200_000)]
    ['4 s', '89 s', '10 min', '1 h 23 min', '2 d 7 h']
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"
