"""The contract of a metric."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from driftline.metrics import Metric
from driftline.state import digest
from driftline.testing.looking import watched_randomness


def check_metric(metric: Metric) -> None:
    """Check that a metric is a pure function that says what it means.

    It modifies nothing, stays within the bounds it names, gives the same number each time and for any memory layout,
    and, if it takes stacks of inputs and gives a stack of results, treats each of the stack on its own.
    """
    name = f"metric '{metric.name}'"
    assert metric.name.strip(), "a metric has no name"
    assert metric.formula.strip(), f"{name} does not say its formula"
    assert metric.better in ("higher", "lower"), f"{name}: better is '{metric.better}', not 'higher' or 'lower'"
    examples = [metric.example(np.random.default_rng(k)) for k in (0, 1)]
    before = digest(examples)
    results = []
    with watched_randomness(f"computing {name}"):
        for example in examples:
            try:
                results.append(_numbers(metric.compute(**example)))
            except Exception as error:
                raise AssertionError(f"{name} does not accept its own example: {error!r}") from error
    assert digest(examples) == before, f"{name} modifies its inputs"
    if metric.within is not None:
        low, high = metric.within
        found = np.concatenate([np.ravel(array) for result in results for array in result])
        inside = np.isnan(found) | ((found >= low) & (found <= high))
        assert inside.all(), f"{name} says that it is within {low} and {high}, and is {found[~inside][0]}"
    for example, result in zip(examples, results, strict=True):
        assert _same(_numbers(metric.compute(**example)), result), f"{name} differs when it is computed again"
        for layout, lay in (("Fortran order", np.asfortranarray), ("strides", _strided)):
            changed = _numbers(metric.compute(**_arrays_to(lay, example)))
            assert _same(changed, result, close=True), f"{name} depends on the memory layout ({layout})"
    stack = {key: _stack([example[key] for example in examples]) for key in examples[0]}
    try:
        both = _numbers(metric.compute(**stack))
    except Exception:  # it takes no stacks, and may say so in any way
        return
    if len(both) == len(results[0]) and all(len(np.atleast_1d(array)) == 2 for array in both):
        for k in (0, 1):
            alone = [array[k] for array in both]
            shapes = [array.shape for array in alone] == [array.shape for array in results[k]]
            if shapes:
                assert _same(alone, results[k], close=True), f"{name} mixes the entries of a stack of inputs"


def _numbers(result: Any) -> list[np.ndarray]:
    """A metric's result as arrays: itself, or its fields, or its values."""
    if is_dataclass(result):
        result = [getattr(result, part.name) for part in fields(result)]
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, list | tuple):
        return [array for part in result if part is not None for array in _numbers(part)]
    array = np.asarray(result)
    assert array.dtype.kind in "biuf", f"a metric returns numbers, not {result!r}"
    return [array]


def _same(one: list[np.ndarray], other: list[np.ndarray], *, close: bool = False) -> bool:
    if [array.shape for array in one] != [array.shape for array in other]:
        return False
    rtol = 1e-9 if close else 0
    return all(np.allclose(a, b, rtol=rtol, atol=rtol, equal_nan=True) for a, b in zip(one, other, strict=True))


def _arrays_to(lay: Callable[[np.ndarray], np.ndarray], example: dict[str, Any]) -> dict[str, Any]:
    return {key: lay(value) if isinstance(value, np.ndarray) else value for key, value in example.items()}


def _strided(array: np.ndarray) -> np.ndarray:
    """The same numbers as a view of every second entry."""
    wide = np.repeat(array[..., None], 2, axis=-1)
    return wide[..., 0]


def _stack(values: list[Any]) -> Any:
    same = all(isinstance(value, np.ndarray) and value.shape == values[0].shape for value in values)
    return np.stack(values) if same else values[0]
