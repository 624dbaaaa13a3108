"""Names that a shell completes: benchmarks, methods, datasets, models, figures and kinds of names."""

from __future__ import annotations

from collections.abc import Callable

from driftline import registry

Complete = Callable[[str], list[str]]


def complete_names(kind: str, *others: str) -> Complete:
    """Return the completion of one registered name, or one of these words."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in (*registry.names(kind), *others) if name.startswith(incomplete)]

    return complete


def complete_words(*words: str) -> Complete:
    """Return the completion of one of these words.

    >>> complete_words("methods", "metrics", "runs")("me")
    ['methods', 'metrics']
    """
    return lambda incomplete: [word for word in words if word.startswith(incomplete)]


def complete_list(kind: str) -> Complete:
    """Return the completion of the last of several names separated by commas.

    >>> complete_list("benchmark")("timeline,ti")
    ['timeline,timeline']
    """

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        return [f"{before}{comma}{name}" for name in registry.names(kind) if name.startswith(last)]

    return complete
