"""Hyper-parameter search: the grid that a spec gives, and the candidates of each method.

A spec's `selection` is a grid of settings, or ranges to draw them from. Each method searches the settings it has, in
short runs on streams that are not the test's. All methods get the same number of candidates, that of the smallest grid,
unless `trials` gives it; larger grids are subsampled at random, the same on any machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import ConfigDict, Field, model_validator

from driftline.errors import UserError, unknown_name
from driftline.seeds import Seed, first_seeds
from driftline.spec.job import SearchSpace, TieBreak
from driftline.spec.methods import method_facts
from driftline.spec.settings import (
    Choice,
    FrozenModel,
    listed,
    settings_model,
    validate,
    with_defaults,
)
from driftline.types import JsonObject, Settings

if TYPE_CHECKING:
    from driftline.benchmarks.base import Benchmark

NO_SETTINGS: Mapping[str, str] = MappingProxyType({})
MAX_DRAWS = 100  # draws per candidate, after which a range is considered exhausted


class Range(FrozenModel):
    """Values to draw from: whole numbers, ends included, if both ends are whole."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    low: float | int = Field(alias="from")
    high: float | int = Field(alias="to")
    scale: Literal["linear", "log"] = "linear"
    """log: uniform on a log scale."""

    def draw(self, rng: np.random.Generator) -> float | int:
        """Return a random value with four significant digits, which are the same on every machine."""
        whole, share = isinstance(self.low, int) and isinstance(self.high, int), rng.random()
        low, high = (self.low - 0.5, self.high + 0.5) if whole else (self.low, self.high)
        if self.scale == "log":
            value = math.exp(math.log(low) + share * (math.log(high) - math.log(low)))
        else:
            value = low + share * (high - low)
        value = round(value) if whole else float(f"{value:.4g}")
        return min(max(value, self.low), self.high)


Values = tuple[Any, ...] | Range


class Search(FrozenModel):
    """Settings to try, and the rule that selects the best."""

    grid: dict[str, Values] = Field(min_length=1)
    """Values by setting: `lr` for every method that has one and was not given one, `er.replay_size` for er alone. A
    list, or a range {from: 1e-4, to: 1e-1, scale: log} to draw from."""
    rule: Literal["validation-streams", "validation-split", "oracle"] | None = None
    """validation-streams: the best on validation data that no test score uses; validation-split: methods that train in
    phases take the best fit of each phase on validation data of the run itself; oracle: the best on the test streams,
    which no user could do. By default validation-split where methods train in phases, else validation-streams."""
    metric: tuple[str, ...] = ()
    """The metric that decides, as METRIC or METRIC:STAT; of several, their mean. By default the benchmark's own."""
    tie_break: TieBreak = "smaller-lr"
    """What decides within noise, where the best leads by at most one standard error: the smaller learning rate, or the
    best score."""
    repeats: int = Field(default=1, ge=1)
    """Number of selections on different validation seeds: 1, or one for each seed of the result, so that the noise of
    the selection is part of the interval over seeds."""
    seeds: tuple[int, ...] = Field(default=(0, 1, 2), min_length=1)
    """Each setting is tried with each of these."""
    trials: int | Literal["all"] | None = Field(default=None)
    """Number of candidates per method; all: its full grid; by default the size of the smallest grid."""

    @model_validator(mode="before")
    @classmethod
    def _expand_short_forms(cls, given: object) -> object:
        if not isinstance(given, Mapping):
            raise UserError("selection is a mapping with the key grid, for example {grid: {lr: [1e-3, 1e-2]}}")
        given = dict(given)
        if isinstance(given.get("seeds"), int):
            given["seeds"] = first_seeds(given["seeds"])
        elif isinstance(given.get("seeds"), list | tuple) and all(isinstance(seed, int) for seed in given["seeds"]):
            given["seeds"] = tuple(sorted(set(given["seeds"])))  # a run counts once
        if "metric" in given:
            given["metric"] = tuple(listed(given["metric"]))
        if isinstance(given.get("grid"), Mapping):
            given["grid"] = {setting: _parse_values(setting, values) for setting, values in given["grid"].items()}
        if isinstance(given.get("trials"), int) and given["trials"] < 1:
            raise UserError(f"selection: trials={given['trials']}: at least 1 setting must be tried")
        return given

    def search_spaces(
        self,
        methods: Sequence[Choice],
        *,
        metrics: tuple[tuple[str, str], ...],
        unused: Mapping[str, str] = NO_SETTINGS,
    ) -> list[SearchSpace | None]:
        """Return the candidates of each method; None for one that has nothing to select.

        `metrics`: the (metric, statistic) pairs that decide. `unused`: settings that have no effect, and for which
        model.
        """
        axes = [{name: axis for name, axis in self.axes(method).items() if name not in unused} for method in methods]
        self._check_used(methods, axes, unused)
        sizes = [len(_grid(method, own)) for method, own in zip(methods, axes, strict=True) if _is_finite(own)]
        limit = min(sizes, default=0) if self.trials is None else max(sizes, default=0)
        limit = self.trials if isinstance(self.trials, int) else limit
        spaces: list[SearchSpace | None] = []
        for method, own in zip(methods, axes, strict=True):
            candidates = self._candidates(method, own, limit) if own else ()
            space = SearchSpace(
                rule="oracle" if self.rule == "oracle" else "validation-streams",
                candidates=candidates,
                seeds=self.seeds,
                metrics=metrics,
                tie_break=self.tie_break,
                repeats=self.repeats,
            )
            spaces.append(space if candidates else None)
        return spaces

    def metrics(self, benchmark: type[Benchmark]) -> tuple[tuple[str, str], ...]:
        """Return the (metric, statistic) pairs that decide; METRIC alone has its first statistic in result tables."""
        if not self.metric:
            return benchmark.primary_metrics
        known = {name: pair for pair in reversed(benchmark.headline_metrics) for name in (pair[0], ":".join(pair))}
        for name in self.metric:
            if name not in known:
                raise unknown_name("metric", name, known, " (in selection.metric)")
        return tuple(dict.fromkeys(known[name] for name in self.metric))

    def _candidates(self, method: Choice, axes: Mapping[str, Values], limit: int) -> tuple[JsonObject, ...]:
        """Return at most `limit` candidates: from a grid, or drawn one after the other."""
        if _is_finite(axes):
            grid = _grid(method, axes)
            rows = Seed(0).child("search", method.display_name).numpy().permutation(len(grid))[:limit]
            return tuple(grid[row] for row in sorted(rows))
        if not isinstance(self.trials, int):
            name = next(name for name, values in axes.items() if isinstance(values, Range))
            raise UserError(f"selection: {name} is drawn from a range: give the number of settings, as trials: 20")
        names, candidates = self._names(method), []
        draws = {name: Seed(0).child("search", "draws", names[name]).numpy() for name in axes}  # for all methods
        for _ in range(MAX_DRAWS * limit):
            candidate = _parsed(method, {name: _draw(values, draws[name]) for name, values in axes.items()})
            if candidate not in candidates:
                candidates.append(candidate)
            if len(candidates) == limit:
                break
        return tuple(candidates)

    def axes(self, method: Choice) -> dict[str, Values]:
        """Return the settings that a method searches: its own, and the common ones that it has and was not given.

        >>> search = Search(grid={"lr": (1e-3, 1e-2), "er.lr": (1e-4,), "penalty_weight": (1.0,)})
        >>> search.axes(Choice(name="er")), search.axes(Choice(name="cft", settings={"lr": 1.0}))
        ({'lr': (0.0001,), 'penalty_weight': (1.0,)}, {'penalty_weight': (1.0,)})
        """
        return {setting: self.grid[key] for setting, key in self._names(method).items()}

    def _names(self, method: Choice) -> dict[str, str]:
        """Return the settings that a method searches, and the key of each in the grid."""
        schema = settings_model("method", method.name)
        prefix = f"{method.display_name}."
        own = {key.removeprefix(prefix): key for key in self.grid if key.startswith(prefix)}
        common = {key: key for key in self.grid if "." not in key and key not in method.settings}
        if schema is not None:
            common = {key: key for key in common if key in schema.model_fields}
        return {**common, **own}

    def _check_used(self, methods: Iterable[Choice], axes: Iterable[Iterable[str]], unused: Mapping[str, str]) -> None:
        """Refuse a setting that no method has: it is misspelled."""
        used = {name for method, own in zip(methods, axes, strict=True) for name in _grid_names(method, own)}
        for key in self.grid:
            setting = key.rpartition(".")[2]
            if setting == "pretraining":
                raise UserError(f"selection: {key}: name a method once for each pretraining to compare them")
            if key not in used and setting in unused:
                raise UserError(f"selection: {key} has no effect on {unused[setting]}: leave it out of the grid")
            if key not in used:
                known = {name for method in methods for name in _grid_names(method, _free_settings(method))}
                raise unknown_name("setting", key, known, " (in selection.grid: no method has it free)")

    def phases(self, benchmark: str, methods: Sequence[Choice], known: Sequence[str]) -> JsonObject:
        """Return the benchmark's options that validation-split sets: the values to try in each training phase."""
        if not known or not any(method_facts(method.name).plans_fits for method in methods):
            reason = f"{benchmark} has no such phases" if not known else "none of these methods trains in phases"
            raise UserError(f"validation-split chooses between the fits of a phase, and {reason}: use another rule")
        for name in ("trials", "seeds", "metric", "tie_break", "repeats"):
            if name in self.model_fields_set:
                raise UserError(
                    f"selection: {name} has no effect with validation-split: each run searches its own grid"
                )
        for key, values in self.grid.items():
            if key not in known:
                raise unknown_name("setting", key, known, " (in selection.grid, with validation-split)")
            if isinstance(values, Range):
                raise UserError(f"selection: {key}: validation-split tries every value, so give a list of them")
        return dict(self.grid)


def _parse_values(setting: str, values: object) -> Any:
    """Return a list of values, or a range; `1e-3`, which YAML reads as a text, is a number there."""
    if isinstance(values, Range) or (isinstance(values, list | tuple) and values):
        return values
    where = f"selection.grid.{setting}"
    if not isinstance(values, Mapping):
        raise UserError(f"{where} is a list of values to try, or a range {{from: 1e-4, to: 1e-1}}; got {values!r}")
    ends = {key: _number(value) for key, value in values.items()}
    parsed: Range = validate(Range, ends, where, ["from", "to", "scale"])
    if not (math.isfinite(parsed.low) and math.isfinite(parsed.high) and parsed.low < parsed.high):
        raise UserError(f"{where}: from must be less than to; got {parsed.low} and {parsed.high}")
    if parsed.scale == "log" and parsed.low <= 0:
        raise UserError(f"{where}: a logarithmic range begins above 0; got {parsed.low}")
    return parsed


def _number(text: object) -> object:
    try:
        return float(text) if isinstance(text, str) else text
    except ValueError:
        return text


def _grid_names(method: Choice, settings: Iterable[str]) -> set[str]:
    """Return the keys that a grid may use for these settings of a method."""
    return {name for setting in settings for name in (setting, f"{method.display_name}.{setting}")}


def _free_settings(method: Choice) -> list[str]:
    schema = settings_model("method", method.name)
    return [] if schema is None else [name for name in schema.model_fields if name not in method.settings]


def _is_finite(axes: Mapping[str, Values]) -> bool:
    """Return whether the settings form a non-empty grid."""
    return bool(axes) and not any(isinstance(values, Range) for values in axes.values())


def _grid(method: Choice, axes: Settings) -> list[JsonObject]:
    """Return all combinations, each once."""
    grid: list[JsonObject] = []
    for values in product(*axes.values()):
        candidate = _parsed(method, dict(zip(axes, values, strict=True)))
        if candidate not in grid:
            grid.append(candidate)
    return grid


def _parsed(method: Choice, candidate: Settings) -> JsonObject:
    """Return settings as the method parses them: `1e-3`, which YAML reads as a text, is 0.001."""
    settings = with_defaults("method", Choice(name=method.name, settings={**method.settings, **candidate})).settings
    return {setting: settings[setting] for setting in candidate}


def _draw(values: Values, rng: np.random.Generator) -> object:
    return values.draw(rng) if isinstance(values, Range) else values[int(rng.random() * len(values))]
