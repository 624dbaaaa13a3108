"""Errors that the user can fix: they are shown as a sentence, never as a traceback."""

import difflib
from collections.abc import Iterable
from pathlib import Path

MAX_LISTED = 100  # known names in a message
FEW_NAMES = 40  # that a message lists beside a guess


class UserError(Exception):
    """Something the user gave cannot be used. The message says what, why, and what to do instead."""


class RequirementError(UserError):
    """A method needs something that the benchmark, the data or the model does not have."""

    def __init__(self, needs: str, message: str) -> None:
        super().__init__(message)
        self.needs = needs
        """What is missing, in a few words, such as "a network"."""


class DiskError(UserError):
    """The disk cannot be written to; the sweep stops."""


class ClusterLost(UserError):
    """The head of a Ray cluster no longer answers; the sweep stops."""

    def __init__(self) -> None:
        super().__init__(
            "the head of the Ray cluster no longer answers. What was finished is kept; the same command resumes"
        )


class InputsChanged(UserError):
    """The data or files of a stage changed after it was planned."""


class DamagedFile(UserError):
    """A file of a store is missing, or its content is not what was written."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"{path} is damaged: {reason}. `driftline check --repair` removes what is damaged, and the same `driftline "
            "run` computes it again"
        )
        self.path, self.reason = path, reason


class MissingExtra(UserError):
    """A feature needs a package that the base install leaves out."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f'{feature} needs an optional package: pip install "driftline[{extra}]"')


def shorten(text: str, limit: int = 80) -> str:
    """Return a text that fits into a sentence.

    >>> shorten("a" * 5000, limit=5)
    'aaaa…'
    """
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def unknown_name(kind: str, name: str, known: Iterable[str], hint: str = "") -> UserError:
    """Return the error for an unknown name, with the nearest valid one, and all if there is none or they are few.

    >>> print(unknown_name("method", "emr", ["erm", "ft"]))
    no method 'emr'. Did you mean 'erm'? Known: erm, ft
    """
    names, name = sorted(known), shorten(name)
    lower = {one.lower(): one for one in reversed(names)}
    near = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.8)
    near = near or [one for one in lower if name and name.lower() in one.split()]  # date, in "order date"
    near = near or difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.5)
    guess = f" Did you mean '{lower[near[0]]}'?" if near else ""
    if near and len(names) > FEW_NAMES:
        return UserError(f"no {kind} '{name}'.{guess}{hint.removeprefix('.')}")
    rest = f" and {len(names) - MAX_LISTED:,} more" if len(names) > MAX_LISTED else ""
    return UserError(f"no {kind} '{name}'.{guess} Known: {', '.join(names[:MAX_LISTED]) or 'none'}{rest}{hint}")
