"""How loops are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def compiled(**options: Any) -> Callable[[F], F]:
    """Compile a loop, and keep the result on disk if there is a folder for it that may be written to.

    It lets other threads run, so that samples are made while a model works.
    """

    def compile_it(loop: F) -> F:
        try:
            return cast(F, numba.njit(cache=True, nogil=True, **options)(loop))
        except RuntimeError:  # a read-only install without a home: compiled anew in every process
            return cast(F, numba.njit(nogil=True, **options)(loop))

    return compile_it
