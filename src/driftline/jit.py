"""Compilation of numeric loops with Numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def cached_njit(**options: Any) -> Callable[[F], F]:
    """Compile a loop, and cache the result on disk if there is a writable directory for it.

    The loop releases the GIL, so that samples are prepared while a model computes.
    """

    def compile_loop(function: F) -> F:
        try:
            return cast(F, numba.njit(function, nogil=True, cache=True, **options))
        except RuntimeError:  # a read-only install without a home directory: compiled again in every process
            return cast(F, numba.njit(function, nogil=True, **options))

    return compile_loop
