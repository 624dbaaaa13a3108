"""Which settings of a method compete before it is tested, by what rule, and how many.

A spec's `selection` is a grid of settings. Each method searches the part of it that it has, by short runs of its own on
streams that are not the test's. Every method may try as many settings as the one with the fewest has, unless `trials`
says how many; where a grid has more, they are drawn at random.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, Literal

from pydantic import Field, model_validator

from driftline.errors import UserError, unknown
from driftline.jobs import Choice, Contest, Rule, Strict, filled, settings_model
from driftline.seeds import Seed


class Search(Strict):
    """Settings to try, and how the best is found."""

    grid: dict[str, tuple[Any, ...]] = Field(min_length=1)
    """Values by setting: `lr` for every method that has one and was not given one, `er.size` for er alone."""
    rule: Rule = "validation-streams"
    """validation-streams: the best on streams kept for this; oracle: the best on the test streams themselves, which no
    user could do."""
    seeds: tuple[int, ...] = Field(default=(0, 1, 2), min_length=1)
    """Each setting is tried with each of these."""
    trials: int | Literal["all"] | None = Field(default=None)
    """How many settings a method may try; all: its whole grid; if not given, as many as the smallest grid has."""

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            raise UserError("selection is a mapping with the key grid, for example {grid: {lr: [1e-3, 1e-2]}}")
        given = dict(given)
        if isinstance(given.get("seeds"), int):
            given["seeds"] = tuple(range(given["seeds"]))
        elif isinstance(given.get("seeds"), list | tuple):
            given["seeds"] = tuple(dict.fromkeys(given["seeds"]))  # a trial counts once
        for setting, values in (given.get("grid") or {}).items():
            if not isinstance(values, list | tuple) or not values:
                raise UserError(f"selection: grid.{setting} is a list of values to try; got {values!r}")
        if isinstance(given.get("trials"), int) and given["trials"] < 1:
            raise UserError(f"selection: trials={given['trials']}: at least 1 setting must be tried")
        return given

    def contests(self, methods: Sequence[Choice], *, metrics: tuple[tuple[str, str], ...]) -> list[Contest | None]:
        """What each method searches; None for one that has nothing to choose."""
        axes = [self.axes(method) for method in methods]
        self._must_be_used(methods, axes)
        grids = [_points(method, found) if found else [] for method, found in zip(methods, axes, strict=True)]
        sizes = [len(grid) for grid in grids if grid]
        most = min(sizes, default=0) if self.trials is None else max(sizes, default=0)
        most = self.trials if isinstance(self.trials, int) else most
        found: list[Contest | None] = []
        for method, grid in zip(methods, grids, strict=True):
            rows = Seed(0).child("search", method.name).numpy().permutation(len(grid))[:most]
            points = tuple(grid[row] for row in sorted(rows))
            contest = Contest(rule=self.rule, points=points, seeds=self.seeds, metrics=metrics) if points else None
            found.append(contest)
        return found

    def axes(self, method: Choice) -> dict[str, tuple[Any, ...]]:
        """The settings that this method searches: those said for it, and the common ones that it has and was not given.

        >>> search = Search(grid={"lr": (1e-3, 1e-2), "er.lr": (1e-4,), "strength": (1.0,)})
        >>> search.axes(Choice(name="er")), search.axes(Choice(name="cft", settings={"lr": 1.0}))
        ({'lr': (0.0001,), 'strength': (1.0,)}, {'strength': (1.0,)})
        """
        schema = settings_model("method", method.name)
        own = {key.removeprefix(f"{method.name}."): key for key in self.grid if key.startswith(f"{method.name}.")}
        common = {key: key for key in self.grid if "." not in key and key not in method.settings}
        if schema is not None:
            common = {key: key for key in common if key in schema.model_fields}
        return {setting: self.grid[key] for setting, key in {**common, **own}.items()}

    def _must_be_used(self, methods: Iterable[Choice], axes: Iterable[Iterable[str]]) -> None:
        """Refuse a setting that no method has: it is misspelt."""
        used = {name for method, found in zip(methods, axes, strict=True) for name in _names(method, found)}
        for key in self.grid:
            if key not in used:
                known = {name for method in methods for name in _names(method, _settings(method))}
                raise unknown("setting", key, known, " (in selection.grid: no method has it free)")


def _names(method: Choice, settings: Iterable[str]) -> set[str]:
    """What a grid may call these settings of a method."""
    return {name for setting in settings for name in (setting, f"{method.name}.{setting}")}


def _settings(method: Choice) -> list[str]:
    schema = settings_model("method", method.name)
    return [] if schema is None else [name for name in schema.model_fields if name not in method.settings]


def _points(method: Choice, axes: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """All combinations, as the method understands them and each once: `1e-3`, which YAML reads as a text, is 0.001."""
    found: list[dict[str, Any]] = []
    for values in product(*axes.values()):
        given = {**method.settings, **dict(zip(axes, values, strict=True))}
        understood = filled("method", Choice(name=method.name, settings=given)).settings
        point = {setting: understood[setting] for setting in axes}
        if point not in found:
            found.append(point)
    return found
