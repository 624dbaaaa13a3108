"""Curves, bars and spans of time in a line of text; in letters that any terminal has, if need be."""

from __future__ import annotations

import numpy as np

BLOCKS = "▁▂▃▄▅▆▇█"
DIGITS = "0123456789"


def spark(right: np.ndarray, asked: np.ndarray, width: int, plain: bool = False) -> str:
    """How many of those asked were right, in up to `width` equal parts of time, from 0 at the bottom to 1 at the top.

    With `plain` each letter is a digit: 7 stands for 70 to 80 percent.

    >>> spark(np.array([0, 1, 2, 4]), np.array([4, 4, 4, 4]), 4, plain=True)
    '0259'
    >>> spark(np.array([0, 1, 2, 4]), np.array([4, 4, 4, 4]), 2)
    '▂▇'
    """
    if not len(right):
        return ""
    letters = DIGITS if plain else BLOCKS
    parts = min(width, len(right))
    starts = np.arange(parts) * len(right) // parts
    shares = np.add.reduceat(right, starts) / np.maximum(np.add.reduceat(asked, starts), 1)
    return "".join(letters[int(k)] for k in np.clip(shares * len(letters), 0, len(letters) - 1))


def bar(done: int, of: int, width: int, plain: bool = False) -> str:
    """How much is done.

    >>> bar(1, 4, 8, plain=True), bar(4, 4, 8)
    ('##......', '████████')
    """
    full, empty = ("#", ".") if plain else ("█", "░")
    filled = width * done // of if of else 0
    return full * filled + empty * (width - filled)


def span(seconds: float) -> str:
    """A time as people say it, no finer than it is known.

    >>> span(4.4), span(89), span(610), span(5000), span(200_000)
    ('4 s', '89 s', '10 min', '1 h 23 min', '2 d 7 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"
