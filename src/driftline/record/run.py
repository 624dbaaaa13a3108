"""Finished runs on disk, and the record of several.

A run is a folder: `answers.parquet` and `probes.parquet` hold one row per answer, `diagnostics.parquet` the learner's
diagnostics if it has any, `scores.parquet` the benchmark's metrics, `trivial_scores.parquet` the same for a constant
answer, `card.json` the protocol, and `runtime.json` what must not affect results (wall-clock time, machine).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pandas as pd
import pyarrow as pa

from driftline import lazy
from driftline.errors import DamagedFile, MissingExtra, UserError, unknown_name
from driftline.io.checksums import file_hash, read_checked
from driftline.record.card import CARD, Card, ComputeCard, common_text, read_card
from driftline.record.frames import runs_frame
from driftline.record.parquet import read_rows
from driftline.record.recorder import TABLES
from driftline.record.views import SCORES, VIEWS
from driftline.types import JsonObject

if TYPE_CHECKING:
    import polars as pl

    from driftline.record.index_part import IndexEntry

FRAMES = (*TABLES, "scores")
RUNTIME = "runtime.json"
MAX_SHOWN = 200  # runs whose tables a notebook shows unasked
MAX_LISTED = 5  # damaged runs that a note names
log = logging.getLogger("driftline")


class Shown(Protocol):
    """Tables that a notebook shows."""

    def text(self, format: str = "md") -> str:
        """Return the tables as `md`, `latex` or `csv`."""

    def _repr_html_(self) -> str: ...


class Chart(Protocol):
    """An Altair chart, which a notebook shows."""

    def save(self, fp: str | Path) -> None:
        """Write the chart to a file, such as `chart.html` or `chart.svg`."""

    def to_dict(self) -> JsonObject:
        """Return the chart as a Vega-Lite spec."""


@dataclass(frozen=True)
class Run:
    """One finished run on disk: one method, one seed."""

    folder: Path
    entry: IndexEntry | None = field(default=None, compare=False, repr=False)
    """What the store's index holds of the run as it is now."""

    @cached_property
    def card(self) -> Card:
        """The protocol card. Raise DamagedFile if it is damaged."""
        return self.entry.card if self.entry else read_card(self.folder)

    @property
    def common(self) -> Card:
        """The card, of which only the fields count that do not differ between seeds: thousands of runs share it."""
        return self.entry.common if self.entry else self.card

    @cached_property
    def common_text(self) -> str:
        """The same text for runs whose cards differ only in what is their own."""
        return self.entry["common"] if self.entry else common_text(self.card)

    @property
    def protocol(self) -> JsonObject:
        """What the benchmark says about its stream."""
        return self.entry.protocol if self.entry else self.card.protocol

    @property
    def compute(self) -> ComputeCard:
        return self.entry.compute if self.entry else self.card.compute

    @cached_property
    def key(self) -> str:
        return self.entry.key if self.entry else self.card.key

    @property
    def method(self) -> str:
        """The method's name, with the settings that differ from its defaults."""
        return self.common.label

    @property
    def is_final(self) -> bool:
        """Whether it is a result, not a run of a hyper-parameter search."""
        return self.common.run.purpose != "search"

    @property
    def seed(self) -> int:
        return self.entry.seed if self.entry else self.card.run.seed

    @cached_property
    def finished_at(self) -> datetime:
        """When it was finished. Raise DamagedFile if `runtime.json` is missing or damaged."""
        if self.entry:
            return self.entry.finished_at
        return datetime.fromisoformat(read_checked(self.folder / RUNTIME)["finished"])

    def rows(self, name: str) -> int:
        """Return the number of rows of a table according to the card; 0 if the run does not have it."""
        if self.entry:
            return self.entry.rows(name)
        file = self.card.files.get(f"{name}.parquet")
        return file.rows if file else 0

    def file(self, name: str) -> Path | None:
        """Return the verified file of a table; None if the run does not have it. Raise DamagedFile if it is damaged."""
        path = self.folder / f"{name}.parquet"
        if path.name not in self.card.files:
            return None
        if path.name not in self._verified and file_hash(path) != self.card.files[path.name].sha256:
            raise DamagedFile(path, "its checksum differs")
        self._verified.add(path.name)
        return path

    @cached_property
    def _verified(self) -> set[str]:
        return set()

    def verify(self, tables: Iterable[str] | None = None) -> None:
        """Raise DamagedFile if the card or one of these tables is damaged; by default, check all files."""
        tables = None if tables is None else tuple(tables)
        if self.entry and (self.entry["intact"] or (tables is not None and set(tables) <= set(SCORES))):
            return
        files = self.card.files
        for name in [name.removesuffix(".parquet") for name in files] if tables is None else tables:
            self.file(name)
        _ = self.finished_at

    def is_intact(self) -> bool:
        """Return whether it is finished and no file is damaged."""
        try:
            self.verify()
        except DamagedFile:
            return False
        return True

    def rows_of(self, name: str) -> pa.Table | None:
        """Return a table, or a view of the scores; None if the run does not have it."""
        path = self.file("scores" if name in VIEWS else name)
        table = read_rows(path) if path else None
        return VIEWS[name](table) if name in VIEWS and table is not None else table

    def table(self, name: str) -> pd.DataFrame:
        """Return a table, such as `answers` or `scores`, as a frame; an empty one if the run does not have it."""
        path = self.file(name)
        return read_rows(path).to_pandas() if path else pd.DataFrame()


class Record:
    """The tables of one or more runs as frames, with columns for run, method and seed."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self.runs = tuple(runs)

    def __repr__(self) -> str:
        methods = ", ".join(dict.fromkeys(run.method for run in self.runs))
        return f"<Record of {len(self.runs)} run(s): {methods}>"

    def _repr_html_(self) -> str:
        """Return the tables of results for a notebook; of many runs, which take long, only the names."""
        names = escape(repr(self))
        if not 0 < len(self.runs) <= MAX_SHOWN:
            return f"<p>{names}</p>"
        return f"<p>{names}</p>{self.table()._repr_html_()}"

    def __len__(self) -> int:
        return len(self.runs)

    def table(self, **options: object) -> Shown:
        """Return tables of the runs, which a notebook shows; the options are those of `driftline table`.

        `print` writes them as Markdown, `table().text("latex")` as LaTeX.
        """
        tables: Shown = lazy.load("driftline.report.tables.make:make_tables")(self, **options)
        return tables

    def plot(self, name: str = "curves", **options: object) -> Chart:
        """Return a figure as an Altair chart: one of `driftline list figures`, or a metric such as `tas` over time.

        The options are those of `driftline figure NAME`.
        """
        chart: Chart = lazy.load("driftline.report.figures.make:plot")(self, name, **options)
        return chart

    @property
    def cards(self) -> list[Card]:
        return [run.card for run in self.runs]

    @cached_property
    def answers(self) -> pd.DataFrame:
        """One row per answer given before labels were revealed."""
        return runs_frame(self.runs, "answers")

    @cached_property
    def probes(self) -> pd.DataFrame:
        """One row per answer to a probe."""
        return runs_frame(self.runs, "probes")

    @cached_property
    def scores(self) -> pd.DataFrame:
        """One row per (run, metric, time): value, interval, n."""
        return runs_frame(self.runs, "scores")

    @cached_property
    def summary(self) -> pd.DataFrame:
        """The scores that summarize a run, without those per time."""
        return runs_frame(self.runs, "summary")

    @cached_property
    def censored(self) -> pd.DataFrame:
        """Per run and metric, the number of scores per time, and how many are censored by the end of the data."""
        return runs_frame(self.runs, "censored")

    @cached_property
    def trivial_scores(self) -> pd.DataFrame:
        """The summary scores of a constant answer, by run."""
        return runs_frame(self.runs, "trivial_scores")

    def polars(self, name: str) -> pl.DataFrame:
        """Return `answers`, `probes`, `diagnostics` or `scores` of all runs as a polars frame.

        A column that a run lacks is null there. A column that is numeric in one run and text in another becomes text.
        """
        if name not in FRAMES:
            raise unknown_name("frame", name, FRAMES)
        try:
            import polars as pl
        except ModuleNotFoundError as error:
            if error.name != "polars":
                raise
            raise MissingExtra("a polars frame", "polars") from None
        frames = []
        for run in self.runs:
            if path := run.file(name):
                front = [pl.lit(run.key).alias("run"), pl.lit(run.method).alias("method")]
                seed = pl.lit(run.seed, pl.Int64).alias("seed")
                frames.append(pl.read_parquet(path).select(*front, seed, pl.all()))
        return pl.concat(frames, how="diagonal_relaxed") if frames else pl.DataFrame()


def drop_damaged(runs: Iterable[Run], tables: Iterable[str] | None = None) -> list[Run]:
    """Return the runs that are not damaged, and log a note that names the others."""
    kept, reasons, tables = [], {}, None if tables is None else tuple(tables)
    for run in runs:
        try:
            run.verify(tables)
            kept.append(run)
        except DamagedFile as damage:
            reasons[run.folder.name] = f"{damage.path.name}: {damage.reason}"
    if reasons:
        listed = "; ".join(f"{key} ({reason})" for key, reason in list(reasons.items())[:MAX_LISTED])
        listed = listed.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")  # of any file name
        more = f" and {len(reasons) - MAX_LISTED} more" if len(reasons) > MAX_LISTED else ""
        log.warning(f"note: {len(reasons)} damaged run(s) left out: {listed}{more}. See `driftline check`")
    return kept


def load(path: str | Path) -> Record:
    """Return the record of a run's folder, or of all finished runs of a store except those of searches."""
    folder = Path(path)
    if (folder / CARD).exists():
        return Record([Run(folder)])
    runs = runs_in(folder)
    if not runs:
        raise UserError(f"no finished run in {folder}: expected a run's folder or a store made by `driftline run`")
    return Record(run for run in drop_damaged(runs) if run.is_final)


def runs_in(store: Path) -> list[Run]:
    """Return the runs in a store's folder, damaged ones included: one without a card is damaged."""
    return [Run(path) for path in sorted((store / "runs").glob("[!.]*")) if path.is_dir()]
