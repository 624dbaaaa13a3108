"""Where a published dataset comes from: its size, its license, where to get it, and by which files it is found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

F = TypeVar("F", bound=Callable[..., object])

NOT_STATED = "not stated"
"""The license of a dataset whose publisher names none; that is an answer, and not the same as free."""


@dataclass(frozen=True)
class Source:
    """Size, license and origin of a published dataset."""

    size: str
    license: str
    where: str
    files: tuple[str, ...]
    """Files, folders or patterns; one of them in a data folder is enough."""
    package: str = ""
    """The installed package that has them."""

    def found(self, folders: Sequence[Path]) -> Path | None:
        """Return the first of its files in these folders, or the folder of its package; None if there is none."""
        spec = find_spec(self.package) if self.package else None
        if spec is not None and spec.origin:
            return Path(spec.origin).parent
        matches = (path for folder in folders for name in self.files for path in sorted(folder.glob(name)))
        return next(matches, None)


def published(*, size: str, license: str, where: str, files: Sequence[str] = (), package: str = "") -> Callable[[F], F]:
    """Say where a dataset comes from, for `driftline list datasets`."""

    def decorate(function: F) -> F:
        function.source = Source(size, license, where, tuple(files), package)  # type: ignore[attr-defined]
        return function

    return decorate
