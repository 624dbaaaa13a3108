"""What a benchmark is: a choice of stream, of what is revealed, of what is probed, and of how that is scored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import pandas as pd
from pydantic import BaseModel, ConfigDict

from driftline.data import Dataset
from driftline.loop import Probes
from driftline.record import Run
from driftline.seeds import Seed
from driftline.training.trials import Selection
from driftline.types import Probe, Reveal, Samples, Step, Stream

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


def scores(rows: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """A table of scores from its rows; what a row does not say is missing."""
    frame = pd.DataFrame(list(rows), columns=list(SCORES)).astype(SCORES)
    return frame.assign(censored=frame["censored"].fillna(False).astype(bool))


class Options(BaseModel):
    """A benchmark's own settings; unknown ones are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)

    said_by_trials: ClassVar[tuple[str, ...]] = ()
    """Options that a fit does not depend on except through its own settings, so that fits are shared across them."""
    privileged: ClassVar[tuple[str, ...]] = ()
    """Options that only privileged learners notice."""

    decide_upstream: ClassVar[tuple[str, ...] | None] = None
    """The options that the upstream model depends on; runs that differ in others share it. None: all of them."""

    chosen_by: ClassVar[tuple[tuple[str, str], ...]] = ()
    """The (metric, statistic) pairs whose mean decides between settings; one that a protocol has not does not count.

    The first that a table has is the primary quality metric: methods are compared with the trivial baseline in it.
    """
    phase_grid: ClassVar[tuple[str, ...]] = ()
    """Options that are lists of values to try, for methods that choose between fits of their own by final-valid."""

    def for_choosing(self) -> Options | None:
        """The same with streams that are kept for choosing settings; None if there are none."""
        return None


@dataclass(frozen=True)
class Layout:
    """A dataset laid out in time for one run."""

    stream: Stream
    probes: Probes
    upstream: Samples | None
    schooling: dict[str, Any] = field(default_factory=lambda: {"updates": 3000})
    """How a network is trained on the upstream samples: settings of `learners.trained.Trained`."""
    delayed_probes: Callable[[int], Probes] | None = None
    """The probes if labels arrive this many steps late; None if they are the same."""
    entrance: tuple[Probe, ...] = ()
    """Examinations of the upstream model, before the first step."""
    waits: bool = False
    """Whether learners are examined only after they have finished."""
    richer: Stream | None = None
    """The same stream with more samples, for learners that are privileged to see it."""
    selection: Selection | None = None
    """How learners that choose their hyper-parameters do so."""
    pictured: dict[str, Samples] = field(default_factory=dict)
    """Samples by time whose features, as the finished learner's network sees them, are kept for a picture."""
    protocol: dict[str, Any] = field(default_factory=dict)
    """What a reader must know about the layout; printed on the card."""


class NoExams:
    """The answers are the score: nothing is asked besides."""

    def due(self, step: Step | None) -> Iterator[Probe]:
        return iter(())


class Benchmark(Protocol):
    """One file per benchmark implements this."""

    question: ClassVar[str]
    reveals: ClassVar[Reveal]
    paper: ClassVar[str]
    departures: ClassVar[tuple[str, ...]]
    headline: ClassVar[tuple[tuple[str, str], ...]]
    """The (metric, statistic) pairs that a result table shows, in order."""
    options: ClassVar[type[Options]]
    interval_over: ClassVar[str] = "test examples"
    """What the summary intervals of a single run are over, as captions say it."""

    def lay_out(self, dataset: Dataset, options: Any, seed: Seed) -> Layout:
        """Choose stream, probes and upstream data."""

    def metrics(self, options: Any, protocol: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """The names of all metrics that `score` computes, with their settings, given the card's protocol."""

    def score(self, run: Run) -> pd.DataFrame:
        """Rows with the columns of `SCORES`: functions of the record alone."""
