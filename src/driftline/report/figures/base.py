"""Figures: each has a table of its data, and a chart.

A figure is a dataclass in a file of this package, registered with the decorator `figure`; its fields are the options of
`driftline figure NAME`. The table has one row per mark. Its column `panel` names the group of comparable runs, and
`frame.attrs["notes"]` lists what was left out.
"""

from __future__ import annotations

import dataclasses
import functools
import typing
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pandas as pd
from pydantic import TypeAdapter, ValidationError

from driftline import registry
from driftline.errors import UserError, unknown_name
from driftline.record.run import Record
from driftline.report.analysis.displays import displays
from driftline.report.analysis.groups import Group, groups
from driftline.report.analysis.repeats import average_repeats
from driftline.report.figures.axes import Chart
from driftline.report.figures.export import style
from driftline.types import JsonObject, Settings

Row = JsonObject
FigureType = TypeVar("FigureType", bound="type[Figure]")


@dataclasses.dataclass(frozen=True)
class Figure:
    """A figure of finished runs."""

    benchmarks: ClassVar[tuple[str, ...]] = ()
    """Benchmarks that the figure is about; empty for all."""
    averages_repeats: ClassVar[bool] = False
    """Whether runs that differ only in the option that their benchmark averages over are combined."""
    needs: ClassVar[str] = ""
    """What it needs beyond the record, such as networks; a report then only names its command."""

    @property
    def missing(self) -> str:
        """Why a group of runs is left out."""
        raise NotImplementedError

    @property
    def needs_runs(self) -> bool:
        return True

    def table(self, record: Record, data_dir: Path | None = None) -> pd.DataFrame:
        """Return the rows of all groups of runs; raise an error if there are none."""
        rows: list[Row] = []
        left_out = []
        for group in self.groups(record):
            found = [{"panel": group.title, **row} for row in self.rows(group)] if self.fits(group) else []
            rows += found
            left_out += [] if found else [group.title]
        return to_table(rows, left_out_note(self.missing, left_out))

    def groups(self, record: Record) -> Iterable[Group]:
        return average_repeats(groups(record)) if self.averages_repeats else groups(record)

    def fits(self, group: Group) -> bool:
        """Return whether the figure is about the benchmark of a group."""
        return not self.benchmarks or group.benchmark in self.benchmarks

    def rows(self, group: Group) -> Iterable[Row]:
        """Return the rows of a group of comparable runs; none if it has no place in the figure."""
        raise NotImplementedError

    def chart(self, frame: pd.DataFrame) -> Chart:
        """Return the chart of a table."""
        raise NotImplementedError


def figure(name: str, *, benchmarks: tuple[str, ...] = ()) -> Callable[[FigureType], FigureType]:
    """Register a figure, and the benchmarks that it is about."""

    def decorate(cls: FigureType) -> FigureType:
        cls.benchmarks = benchmarks
        return registry.register("figure", name)(cls)

    return decorate


def option(default: object, help: str) -> Any:
    """Return a field that `driftline figure` offers as an option."""
    return dataclasses.field(default=default, metadata={"help": help})


def options(name: str) -> dict[str, dataclasses.Field[Any]]:
    """Return the options of a figure, by their name on the command line."""
    fields = dataclasses.fields(_class(registry.get("figure", name)))
    return {field.name.replace("_", "-"): field for field in fields if "help" in field.metadata}


def create(name: str, settings: Settings) -> Figure:
    """Return a figure with options, which may be texts; those that are None keep their default."""
    thing = registry.get("figure", name)
    known, types = options(name), typing.get_type_hints(_class(thing), include_extras=True)
    values = {}
    for key, value in settings.items():
        key = key.replace("_", "-")
        if value is None:
            continue
        if key not in known:
            others = ", ".join(f"--{other}" for other in known) or "none"
            raise UserError(f"figure '{name}' has no option --{key}. Its own options: {others}")
        if key == "metric" and value not in (metrics := registry.names("metric")):
            raise unknown_name("metric", str(value), metrics)
        try:
            values[known[key].name] = TypeAdapter(types[known[key].name]).validate_python(value)
        except ValidationError as error:
            problem = error.errors()[0]["msg"].removeprefix("Input ")
            raise UserError(f"--{key} {value}: {problem}") from None
    made: Figure = thing(**values)
    return made


def draw(
    name: str, record: Record, data_dir: Path | None = None, title: str = "", **settings: Any
) -> tuple[pd.DataFrame, Chart]:
    """Return the table of a figure and its chart; a title of your own has no notes below it."""
    made = create(name, settings)
    frame = made.table(record, data_dir)
    if "method" in frame:
        shown = displays(record)
        frame["method"] = [shown[one].label if one in shown else one for one in frame["method"]]
    chart = made.chart(frame)
    return frame, style(chart.properties(title=title) if title else chart, [] if title else frame.attrs["notes"])


def to_table(rows: list[Row], notes: list[str]) -> pd.DataFrame:
    """Return rows as a table with notes; raise an error with the notes if there are no rows."""
    if not rows:
        raise UserError(f"there is nothing to draw. {'; '.join(notes)}")
    frame = pd.DataFrame(rows)
    frame.attrs["notes"] = notes
    return frame


def records(frame: pd.DataFrame, columns: list[str]) -> list[Row]:
    """Return some columns of a table as rows."""
    return [dict(zip(columns, row, strict=True)) for row in frame[columns].itertuples(index=False)]


def left_out_note(reason: str, titles: Iterable[str]) -> list[str]:
    """Return a note about what was left out for a reason, if anything was."""
    text = "; ".join(titles)
    return [f"left out ({reason}): {text}"] if text else []


def _class(thing: object) -> type[Figure]:
    found: Any = thing.func if isinstance(thing, functools.partial) else thing
    return typing.cast("type[Figure]", found)
