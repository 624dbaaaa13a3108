"""The contract of a metric."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from driftline.io.serialization import digest
from driftline.metrics import Metric
from driftline.testing.inspect import no_global_randomness
from driftline.types import JsonObject


def check_metric(metric: Metric) -> None:
    """Check that a metric is a pure function with a name, a formula and a direction.

    It modifies nothing, stays within its bounds, gives the same number each time and for any memory layout, and treats
    the entries of a stack of inputs separately if it accepts stacks.
    """
    name = f"metric '{metric.name}'"
    assert metric.name.strip(), "a metric has no name"
    assert metric.formula.strip(), f"{name} has no formula"
    assert metric.better in ("higher", "lower"), f"{name}: better is '{metric.better}', not 'higher' or 'lower'"
    examples = [metric.example(np.random.default_rng(k)) for k in (0, 1)]
    before = digest(examples)
    results = []
    with no_global_randomness(f"computing {name}"):
        for example in examples:
            try:
                results.append(_numbers(metric.compute(**example)))
            except Exception as error:
                raise AssertionError(f"{name} does not accept its own example: {error!r}") from error
    assert digest(examples) == before, f"{name} modifies its inputs"
    if metric.bounds is not None:
        low, high = metric.bounds
        values = np.concatenate([np.ravel(array) for result in results for array in result])
        inside = np.isnan(values) | ((values >= low) & (values <= high))
        assert inside.all(), f"{name} should be within {low} and {high}, but is {values[~inside][0]}"
    for example, result in zip(examples, results, strict=True):
        assert _same(_numbers(metric.compute(**example)), result), f"{name} differs when computed again"
        for layout, convert in (("Fortran order", np.asfortranarray), ("strides", _strided)):
            changed = _numbers(metric.compute(**_convert_arrays(convert, example)))
            assert _same(changed, result, close=True), f"{name} depends on the memory layout ({layout})"
    _check_stack(metric, examples, results)


def _check_stack(metric: Metric, examples: list[JsonObject], results: list[list[np.ndarray]]) -> None:
    stack = {key: _stack([example[key] for example in examples]) for key in examples[0]}
    try:
        both = _numbers(metric.compute(**stack))
    except Exception:  # it does not accept stacks
        return
    if len(both) == len(results[0]) and all(len(np.atleast_1d(array)) == 2 for array in both):
        for k, expected in enumerate(results):
            alone = [array[k] for array in both]
            if [array.shape for array in alone] == [array.shape for array in expected]:
                same = _same(alone, expected, close=True)
                assert same, f"metric '{metric.name}' mixes the entries of a stack of inputs"


def _numbers(result: object) -> list[np.ndarray]:
    """Return a metric's result as arrays: itself, its fields, or its values."""
    if is_dataclass(result):
        result = [getattr(result, part.name) for part in fields(result)]
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, list | tuple):
        return [array for part in result if part is not None for array in _numbers(part)]
    array = np.asarray(result)
    assert array.dtype.kind in "biuf", f"a metric returns numbers, not {result!r}"
    return [array]


def _same(a: list[np.ndarray], b: list[np.ndarray], *, close: bool = False) -> bool:
    if [array.shape for array in a] != [array.shape for array in b]:
        return False
    rtol = 1e-9 if close else 0
    return all(np.allclose(x, y, rtol=rtol, atol=rtol, equal_nan=True) for x, y in zip(a, b, strict=True))


def _convert_arrays(convert: Callable[[np.ndarray], np.ndarray], example: JsonObject) -> JsonObject:
    return {key: convert(value) if isinstance(value, np.ndarray) else value for key, value in example.items()}


def _strided(array: np.ndarray) -> np.ndarray:
    """Return the same numbers as a view of every second entry."""
    wide = np.repeat(array[..., None], 2, axis=-1)
    return wide[..., 0]


def _stack(values: list[Any]) -> Any:
    same = all(isinstance(value, np.ndarray) and value.shape == values[0].shape for value in values)
    return np.stack(values) if same else values[0]
