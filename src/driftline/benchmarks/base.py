"""Base classes of benchmarks: options, scenario, metadata and scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer, model_validator

from driftline.benchmarks import answer, summary
from driftline.data import Dataset
from driftline.errors import UserError
from driftline.learners.fit_plan import SearchSpace
from driftline.loop import Probes
from driftline.record.card import Card
from driftline.record.run import Run
from driftline.seeds import Seed
from driftline.types import JsonObject, OnProgress, Probe, Reveal, Samples, Settings, State, Step, Stream

SCORES = {
    "metric": "str",
    "stat": "str",  # "each" time or cell, or a summary over times: "mean", "minimum", "final", "false-alarm"
    "time": "str",
    "tau": "str",
    "value": "float64",
    "low": "float64",  # 95 % interval of this run (docs/statistics.md)
    "high": "float64",
    "n": "int64",
    "unit": "str",  # what n counts: examples, or times that enter a summary
    "censored": "object",  # the data ended before the event did
}
"""The columns of a table of scores, and their types."""
ENDS = {"low": np.fmin, "high": np.fmax}


def scores_frame(rows: Iterable[JsonObject]) -> pd.DataFrame:
    """Return a table of scores; columns that a row lacks are missing values.

    Resamples of a minimum, or of a share near 0 or 1, may all lie on one side of the value. Its interval then ends at
    the value, so that no value lies outside its own interval.
    """
    given = pd.DataFrame(list(rows), columns=list(SCORES))
    frame = given.astype(SCORES).mask(given.isna())  # pandas 2 writes a missing text as "nan"
    for end, outer in ENDS.items():
        frame[end] = frame[end].where(frame[end].isna(), outer(frame[end], frame["value"]))
    return frame.assign(censored=frame["censored"].isin([True]))


Predict = Callable[[np.ndarray], np.ndarray]
"""Inputs to predictions of a fixed model."""


class Calibration(Protocol):
    """Measurements of the initial model that a stream is made from, in parts that are independent of each other."""

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the parts."""

    @property
    def settings(self) -> JsonObject:
        """What is measured, for the card."""

    @property
    def note(self) -> str:
        """What it costs, in a sentence for the user."""

    def measure(self, part: str, predict: Predict, folder: Path, on_progress: OnProgress) -> State:
        """Return the result of a part; what is finished is kept in `folder`, from which an interrupted one resumes."""

    def combine(self, measured: Sequence[State], about: JsonObject) -> State:
        """Return the content of the calibration file from the results of all parts."""


class Options(BaseModel):
    """A benchmark's own settings; unknown ones are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)

    fit_independent: ClassVar[tuple[str, ...]] = ()
    """Options that a fit does not depend on except through its own settings, so that fits are shared across them."""
    oracle_options: ClassVar[tuple[str, ...]] = ()
    """Options that only the oracle depends on."""

    cost_free: ClassVar[tuple[str, ...]] = ()
    """Options that do not change the amount of work of a run."""
    fit_cost_free: ClassVar[tuple[str, ...]] = ()
    """Options that do not change the amount of work of a fit on a given number of samples."""

    pretrain_options: ClassVar[tuple[str, ...] | None] = None
    """The options that the upstream model depends on; runs that differ in others share it. None: all of them."""

    later_options: ClassVar[tuple[str, ...]] = ()
    """Options that older runs do not have: left out of a run's settings at their default, so that its key stays."""

    phase_options: ClassVar[tuple[str, ...]] = ()
    """Options that are lists of values to try, for methods that choose between their own fits by validation-split."""

    refused: ClassVar[Mapping[str, str]] = {}
    """Options of other benchmarks that have no meaning here, each with what to do instead."""

    @model_validator(mode="before")
    @classmethod
    def _check_refused(cls, options: Settings) -> Settings:
        for name, advice in cls.refused.items():
            if name in options:
                raise UserError(f"{name}={options[name]}: {advice}")
        return options

    @model_serializer(mode="wrap")
    def _leave_out_defaults(self, serialize: SerializerFunctionWrapHandler) -> JsonObject:
        defaults = {name: type(self).model_fields[name].default for name in self.later_options}
        content: JsonObject = serialize(self)
        return {name: value for name, value in content.items() if name not in defaults or value != defaults[name]}

    def training_budget(self) -> JsonObject:
        """Return the settings of a training round for methods that have no budget of their own: updates or epochs."""
        return {}

    def pretrain_settings(self) -> JsonObject:
        """Return the settings of pretraining, for options that have `upstream_updates`, `_lr` and `_batch`."""
        return {name: getattr(self, f"upstream_{name}") for name in ("updates", "lr", "batch")}

    validation_advice: ClassVar[str] = ""
    """How a user gets validation streams where there are none."""

    def validation_options(self) -> Options | None:
        """Return the options of the validation streams; None if there are none."""
        return None

    def describe_validation(self) -> str:
        """Return the data that settings are selected on, for notes and cards."""
        return "validation streams"

    def calibration_options(self) -> Options | None:
        """Return the options that a calibration before the run depends on; None if there is nothing to calibrate.

        The option `calibration` is then the file that the calibration makes.
        """
        return None


@dataclass(frozen=True)
class Scenario:
    """A dataset laid out in time for one run."""

    stream: Stream
    probes: Probes
    upstream: Samples | None
    pretrain_settings: JsonObject = field(default_factory=lambda: {"updates": 3000})
    """How a network is trained on the upstream samples: settings of its pretraining."""
    delayed_probes: Callable[[int], Probes] | None = None
    """The probes if labels arrive this many steps late; None if they are the same."""
    initial_probes: tuple[Probe, ...] = ()
    """Probes of the upstream model, before the first step."""
    evaluated_at_end: bool = False
    """Whether learners are evaluated only after they have finished."""
    restarts: frozenset[int] = frozenset()
    """Steps before which learners return to their state before the first step."""
    oracle_stream: Stream | None = None
    """The same stream with more samples, for the oracle."""
    selection: SearchSpace | None = None
    """The hyper-parameter search of learners that choose among their own fits."""
    embedding_samples: dict[str, Samples] = field(default_factory=dict)
    """Samples by time whose features in the final network are recorded for a figure."""
    protocol: JsonObject = field(default_factory=dict)
    """The description of the scenario on the card."""


class NoProbes:
    """No probes, for benchmarks that score only the answers."""

    def due(self, step: Step | None) -> Iterator[Probe]:
        return iter(())


class Benchmark(ABC):
    """A stream, the labels it reveals, its probes and its scores; one file per benchmark defines a subclass."""

    question: ClassVar[str]
    reveals: ClassVar[Reveal]
    paper: ClassVar[str]
    departures: ClassVar[tuple[str, ...]] = ()
    options: ClassVar[type[Options]] = Options

    place: ClassVar[int] = 100
    """Its position on the front page of a report, from the lowest."""
    headline_metrics: ClassVar[tuple[tuple[str, str], ...]]
    """The (metric, statistic) pairs that a result table shows, in order."""
    related_metrics: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Two (metric, statistic) pairs that the page of a report relates in a chart, upwards and to the right."""
    primary_metrics: ClassVar[tuple[tuple[str, str], ...]] = ()
    """The (metric, statistic) pairs whose mean decides between settings; those that a protocol lacks do not count.

    The first that a table has is its primary metric: the summary, the Pareto front and the comparison with the trivial
    baseline use it.
    """
    summary_metrics: ClassVar[tuple[tuple[str, str], ...]] = ()
    """The (metric, statistic) pairs that the summary adds to the primary metric."""
    interval_over: ClassVar[str] = "test examples"
    """What the interval of a single run is over, for captions."""
    time_unit: ClassVar[str] = "t"
    """The label of a time axis."""
    follows_label_times: ClassVar[bool] = False
    """Whether its stream runs on the clock of the samples, so that labels can be revealed when they become known."""
    averaged_over: ClassVar[str | None] = None
    """An option. Runs that differ in it alone are averaged for each seed."""

    full_scale: ClassVar[Settings] = {}
    """The options, and settings of the model as `model.NAME`, behind the published numbers."""
    equivalent_settings: ClassVar[tuple[str, ...] | None] = None
    """Method settings that a published row does not depend on; None: all of them."""

    example: ClassVar[Settings | None] = None
    """A spec that runs in seconds on embedded data, for `driftline quickstart`."""
    example_without_torch: ClassVar[Settings | None] = None
    """The same for an installation without torch."""
    matrix_column: ClassVar[Settings | None] = None
    """A spec without methods and seeds: the benchmark's column in `driftline run matrix`."""
    quick: ClassVar[Mapping[str, float]] = {}
    """Values for `Learner.quick` in that column."""

    @abstractmethod
    def build_scenario(self, dataset: Dataset, options: Any, seed: Seed) -> Scenario:
        """Choose stream, probes and upstream data."""

    @classmethod
    def shown_shape(cls, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of an input as the stream shows it, given its shape in the dataset."""
        return shape

    def calibration(self, dataset: Dataset, options: Any, seed: Seed) -> Calibration:
        """Return what is measured if these options need a calibration."""
        raise NotImplementedError

    @abstractmethod
    def metrics(self, options: Any, protocol: JsonObject) -> dict[str, JsonObject]:
        """Return the names of all metrics that `score` computes, with their settings, given the card's protocol."""

    @abstractmethod
    def score(self, run: Run) -> pd.DataFrame:
        """Return rows with the columns of `SCORES`: functions of the record alone."""

    @classmethod
    def is_full_scale(cls, card: Card) -> bool:
        """Return whether a run has the sizes, network and grid of the published numbers."""
        model = {f"model.{name}": value for name, value in card.run.model.settings.items()}
        settings = {**model, **card.run.options}
        return all(settings.get(name) == value for name, value in cls.full_scale.items())

    @classmethod
    def summary(cls, results: summary.Results) -> str:
        """Return the answer to the benchmark's question: the best method and its numbers."""
        return summary.best_method(results, cls.primary_metrics, cls.summary_metrics)

    @classmethod
    def answer(cls, results: answer.Evidence) -> answer.Answer | None:
        """Return the answer for the front page of a report; None if the runs have no scores for it."""
        return answer.default_answer(results, cls.primary_metrics or cls.headline_metrics)
