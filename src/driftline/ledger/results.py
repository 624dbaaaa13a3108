"""Committed results: the scores of a finished recipe or command, its card, and how it was made.

A result is a folder. `result.json` has the command, version and date; `scores.csv` one row per run, metric and
statistic; `card.json` what the cards of all runs share, and what those of each method share.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd
from pydantic import BaseModel, ConfigDict, ValidationError

from driftline.errors import UserError
from driftline.io.atomic import write_bytes, write_json
from driftline.io.sanitize import frame_to_csv
from driftline.record.run import Record, Run
from driftline.report.analysis.cards import beyond, shared
from driftline.report.analysis.groups import Group, groups
from driftline.report.analysis.trivial_baseline import NAME as TRIVIAL
from driftline.report.analysis.trivial_baseline import trivial_scores
from driftline.revisions import changed, describe
from driftline.types import JsonObject
from driftline.version import __version__

HEADER, SCORES, CARD = "result.json", "scores.csv", "card.json"
COLUMNS = ("setting", "method", "seed", "metric", "stat", "value", "low", "high", "n", "unit")
TEXTS = ("setting", "method", "metric", "stat", "unit")
DIGITS = 6


class Header(BaseModel):
    """How a result was made."""

    model_config = ConfigDict(extra="forbid")

    command: str
    recipe: str = ""
    version: str
    date: str
    """The day on which the last run was finished."""
    note: str = ""
    """The scale, in words."""
    missing: list[str] = []
    """Runs of the recipe that are not in the result: method and seed."""


@dataclass(frozen=True)
class Result:
    """A result on disk."""

    name: str
    folder: Path

    @cached_property
    def header(self) -> Header:
        path = self.folder / HEADER
        try:
            return Header.model_validate_json(path.read_bytes())
        except OSError as error:
            raise UserError(f"{path} cannot be read: {error.strerror}") from error
        except ValidationError as error:
            problem = error.errors()[0]
            raise UserError(f"{path}: {'.'.join(map(str, problem['loc']))} {problem['msg'].lower()}") from error

    @cached_property
    def scores(self) -> pd.DataFrame:
        return read_scores(self.folder / SCORES)

    @cached_property
    def card(self) -> JsonObject:
        """What the cards share, and the rest by method; empty if the result is not of runs."""
        path = self.folder / CARD
        try:
            return dict(json.loads(path.read_bytes())) if path.exists() else {}
        except ValueError as error:
            raise UserError(f"{path} is not JSON") from error

    @property
    def benchmark(self) -> str:
        """The benchmark of its runs; empty if the result is not of runs."""
        return str(self.card.get("shared", {}).get("run", {}).get("benchmark", ""))

    @property
    def stale(self) -> str:
        """The parts of the code that changed since, or the version if there is no card; empty if none did."""
        if not self.card:
            return "" if self.header.version == __version__ else f"version {self.header.version} → {__version__}"
        codes = [self.card.get("shared", {}).get("code", {})]
        codes += [one.get("code", {}) for one in self.card.get("methods", {}).values()]
        changes: dict[str, tuple[int, int]] = {}
        for code in codes:
            changes |= changed(code.get("revisions", {})) | changed(code.get("score_revisions", {}))
        return describe(changes)


@dataclass(frozen=True)
class FigureColumns:
    """The columns of a figure's CSV file that hold its scores."""

    metrics: Mapping[str, str]
    """The columns of values, and the metric of each."""
    by: tuple[str, ...]
    """The statistic of a row is its values in these columns."""

    def to_scores(self, frame: pd.DataFrame, path: Path) -> pd.DataFrame:
        """Return the rows that have a value, as scores; figures without seeds have seed 0."""
        missing = [name for name in (*self.metrics, *self.by) if name not in frame]
        if missing:
            raise UserError(f"{path} has no column {missing[0]}: it has the columns {', '.join(map(str, frame))}")
        stat = frame[list(self.by)].astype(str).agg(", ".join, axis=1) if self.by else "mean"
        frame = frame.assign(stat=stat, seed=frame.get("seed", 0))
        each = [frame.assign(metric=metric, value=frame[name]) for name, metric in self.metrics.items()]
        return pd.concat(each).dropna(subset="value")


def read_results(folder: Path) -> dict[str, Result]:
    """Return all results of a folder, by name."""
    found = sorted(path.parent for path in folder.rglob(HEADER))
    if not found:
        raise UserError(f"no result in {folder}: `driftline ledger add RUNS --recipe NAME` adds one")
    return {name: Result(name, path) for path in found for name in [path.relative_to(folder).as_posix()]}


def read_scores(path: Path, columns: FigureColumns | None = None) -> pd.DataFrame:
    """Return the scores of a CSV file; low, high, n, unit and setting may be missing."""
    try:
        frame = pd.read_csv(path, dtype={**dict.fromkeys(TEXTS, str), "seed": int}, keep_default_na=False, na_values="")
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UserError(f"{path} is not a table of scores: {error}") from error
    if columns is not None:
        frame = columns.to_scores(frame, path)
    required = [name for name in ("method", "seed", "metric", "value") if name not in frame]
    if required:
        raise UserError(f"{path} has no column {required[0]}: scores have the columns {', '.join(COLUMNS)}")
    if not pd.api.types.is_numeric_dtype(frame["value"]):
        raise UserError(f"{path}: the column value must hold numbers")
    frame = _complete(frame)
    keys = ["setting", "method", "seed", "metric", "stat"]
    if frame.duplicated(keys).any():
        first = frame[frame.duplicated(keys)].iloc[0]
        raise UserError(f"{path} has two values of {first['metric']} for {first['method']}, seed {first['seed']}")
    return frame


def _complete(frame: pd.DataFrame) -> pd.DataFrame:
    """Return scores with all columns."""
    defaults: JsonObject = {
        "setting": "",
        "stat": "mean",
        "low": float("nan"),
        "high": float("nan"),
        "n": 0,
        "unit": "",
    }
    frame = frame.assign(**{name: value for name, value in defaults.items() if name not in frame})
    frame = frame.fillna({"setting": "", "stat": "mean", "unit": ""})
    return frame[list(COLUMNS)]


def add_runs(results: Path, name: str, record: Record, header: Header) -> Result:
    """Write the scores and cards of finished runs as a result."""
    made = groups(record)
    frames = [_scores(group, _setting(group, made)) for group in made]
    cards = [{key: value for key, value in run.card.to_dict().items() if key != "files"} for run in record.runs]
    common = shared(cards)
    methods: dict[str, list[JsonObject]] = {}
    for run, card in zip(record.runs, cards, strict=True):
        methods.setdefault(run.method, []).append(beyond(card, common))
    content = {"shared": common, "methods": {method: shared(rest) for method, rest in methods.items()}}
    return _write(results, name, pd.concat(frames), header, content)


def add_table(results: Path, name: str, path: Path, header: Header, columns: FigureColumns | None = None) -> Result:
    """Copy the scores of a CSV file into a result."""
    return _write(results, name, read_scores(path, columns), header, {})


def add_scores(results: Path, name: str, scores: pd.DataFrame, header: Header) -> Result:
    """Write scores that no run made as a result; low, high, n, unit and setting may be missing."""
    return _write(results, name, _complete(scores), header, {})


def header_of_runs(runs: Iterable[Run], command: str, recipe: str, note: str, missing: list[str]) -> Header:
    """Return the header of a result of runs."""
    runs = list(runs)
    versions = sorted({run.card.code.driftline for run in runs})
    date = max(run.finished_at for run in runs).date().isoformat()
    return Header(command=command, recipe=recipe, version=", ".join(versions), date=date, note=note, missing=missing)


def header_of_table(command: str, note: str, date: str) -> Header:
    """Return the header of a result of a command that makes no runs."""
    return Header(command=command, version=__version__, date=date, note=note)


def _setting(group: Group, all_groups: Iterable[Group]) -> str:
    """Return what distinguishes a group from the others; nothing if there is only one."""
    titles = [one.title for one in all_groups]
    return group.title if len(titles) > 1 else ""


def _scores(group: Group, setting: str) -> pd.DataFrame:
    """Return the summary scores of a group, its compute, and the scores of a constant answer."""
    scores = group.summary
    frames = [scores, pd.DataFrame(_compute(group))]
    trivial = trivial_scores(group)
    if not trivial.empty:
        frames.append(trivial.assign(method=TRIVIAL))
    frame = pd.concat([one for one in frames if len(one)], ignore_index=True)
    return frame.assign(setting=setting).reindex(columns=list(COLUMNS))


def _compute(group: Group) -> list[JsonObject]:
    computed = [(run, run.compute.macs) for run in group.runs]
    return [
        {"method": group.labels[run.key], "seed": run.seed, "metric": "macs", "stat": "mean", "value": float(macs)}
        for run, macs in computed
        if macs is not None
    ]


def _write(results: Path, name: str, scores: pd.DataFrame, header: Header, card: JsonObject) -> Result:
    folder = results / name
    folder.mkdir(parents=True, exist_ok=True)
    numbers = {column: scores[column].map(_rounded) for column in ("value", "low", "high")}
    table = scores.dropna(subset="value").assign(**numbers, n=scores["n"].fillna(0).astype(int))
    table = table.sort_values(["setting", "method", "metric", "stat", "seed"], kind="stable")
    write_bytes(folder / SCORES, frame_to_csv(table).encode())
    if card:
        write_json(folder / CARD, card)
    write_json(folder / HEADER, header.model_dump(exclude_defaults=True))
    return Result(name, folder)


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
