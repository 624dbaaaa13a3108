"""How loops are compiled."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

import numba
import numpy as np

F = TypeVar("F", bound=Callable[..., Any])


def cached_njit(**options: Any) -> Callable[[F], F]:
    """Compile a loop, and keep the result on disk if there is a folder for it that may be written to.

    It lets other threads run, so that samples are made while a model works.
    """

    return partial(_compile_cached, partial(numba.njit, nogil=True, **options))


def cached_cfunc(signature: Any) -> Callable[[F], F]:
    """Compile a function of this signature so that another compiled function can be given it, and keep the result.

    All functions of one signature are alike to the one that is given them, so it too is compiled only once.
    """
    return partial(_compile_cached, partial(numba.cfunc, signature))


def _compile_cached(compiler: Callable[..., Any], function: F) -> F:
    try:
        return cast(F, compiler(cache=True)(function))
    except RuntimeError:  # a read-only install without a home: compiled again in every process
        return cast(F, compiler()(function))


@cached_njit()
def answer_in_order(
    labels: np.ndarray, outputs: np.ndarray, predictions: np.ndarray, callback: Any, arguments: Any
) -> None:
    """Take the arg max of each row of outputs as its prediction, then call `callback(k, label, arguments)`.

    The compiled callback may change the rows that follow. It gets a label only after the prediction for it is taken.
    """
    for k in range(len(labels)):
        predictions[k] = outputs[k].argmax()
        callback(k, labels[k], arguments)
