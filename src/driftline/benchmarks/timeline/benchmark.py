"""timeline: train at t, test at every later period, and measure how long a model stays good.

The protocol of Wild-Time's Eval-Stream and the metrics of "Tracking Adaptation Time" (Iovine, Ziffer, Della Valle,
2026). After each period t the learner is evaluated on a held-out part of t itself, which gives the diagonal A(t, t),
and on every later period in full, which gives A(t, tau). No model is evaluated on a training sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

import pandas as pd
from pydantic import Field, model_validator

from driftline.benchmarks import base
from driftline.benchmarks.answer import Answer, Evidence
from driftline.benchmarks.timeline import answer as own_answer
from driftline.benchmarks.timeline import eval_fix, layout, task_sequence
from driftline.benchmarks.timeline import scores as timeline_scores
from driftline.data import Dataset
from driftline.errors import UserError
from driftline.metrics.temporal import period_answers, with_r2
from driftline.record.run import Run
from driftline.registry import register
from driftline.seeds import Seed
from driftline.streams import LaterPeriodProbes, PeriodRange, periods
from driftline.types import JsonObject, Reveal, Settings


class Options(base.Options):
    """The settings of a timeline."""

    refused: ClassVar[Mapping[str, str]] = {
        "stream": "the order of a timeline is that of the times in the data; give data with these times",
    }
    pretrain_options: ClassVar[tuple[str, ...] | None] = (
        *("period", "holdout", "min_samples", "upstream", "upstream_updates", "validation"),
    )
    later_options: ClassVar[tuple[str, ...]] = ("order", "step_size", "blur")
    validation_advice: ClassVar[str] = (
        "give the number of first periods to choose by (--validation 3) or a share of each period (--validation 0.1)"
    )

    protocol: Literal["stream", "fix", "tasks"] = "stream"
    """stream: train and test period by period (Eval-Stream); fix: train up to a split, test after it (Eval-Fix);
    tasks: train on one period after another, and test on the held-out part of all (continual learning)."""
    split: str = "last"
    """Eval-Fix: the last period that is trained on. With "last" every period is, and each is tested on its
    held-out part: how hard the task is at each time."""
    period: str = "auto"
    """How time is cut: each, decade, year, quarter, month, week, day, "500 rows", or auto."""
    order: Literal["time", "shuffled"] = "time"
    """The order of the periods. shuffled: at random by seed, as a control: a horizon that is no longer in the order of
    time than in this one is noise, or says nothing about time."""
    holdout: Annotated[float, Field(gt=0, lt=1)] | Literal["given"] = 0.1
    """Share of each period that is never trained on; it gives A(t, t). given: the test set of the data, which is the
    default with protocol=tasks."""
    step_size: int | None = Field(default=None, ge=1)
    """tasks: number of samples per step; if not given, a step is a whole task."""
    blur: float = Field(default=0.0, ge=0, le=1)
    """tasks: width of the boundaries between tasks, as a share of the smaller task; 0: sharp."""
    min_samples: int = Field(default=10, ge=2)
    """Periods with fewer samples are left out."""
    horizon: int | None = Field(default=None, ge=1)
    """How many later periods each model is tested on; all if not given, and then the drift horizon looks at most
    half of all periods ahead."""
    upstream: int = Field(default=0, ge=0)
    """Number of first periods that pretrain the model of every method."""
    upstream_updates: int = Field(default=3000, ge=0)
    """Number of updates of this pretraining."""
    validation: Annotated[int, Field(ge=1)] | Annotated[float, Field(gt=0, lt=1)] | None = None
    """What settings are selected on, and no test uses. Eval-Stream: this many first periods, or this share of each.
    Eval-Fix: this many last periods up to the split; if not given, a third of them."""
    role: Literal["test", "validation"] = "test"
    """Periods to test on, or to choose settings by."""
    delta: float = Field(default=0.9, ge=0, le=1)
    """Stability horizon: the share of the oracle's accuracy that still counts as valid."""
    epsilon: float = Field(default=0.0, ge=0, le=1)
    """Drift horizon: deviations up to this much never count. The paper does not say what it used."""
    allowance: float = Field(default=1.96, ge=0)
    """Horizons: differences up to this many standard errors are noise, besides epsilon; 0 is the paper's definition."""
    threshold: float = Field(default=0.15, ge=0)
    """Drift horizon: the accumulated deviation that counts as drift."""
    resamples: int = Field(default=500, ge=1)
    """Bootstrap resamples of the test examples behind each interval."""

    @model_validator(mode="before")
    @classmethod
    def _given_tests(cls, options: Settings) -> Settings:
        return {"holdout": "given", **options} if options.get("protocol") == "tasks" else options

    @model_validator(mode="after")
    def _check_validation(self) -> Options:
        if self.protocol == "fix" and isinstance(self.validation, float):
            raise UserError(f"validation={self.validation}: Eval-Fix selects on whole periods; give their number")
        if self.protocol != "fix" and self.validation == 1:
            raise UserError("validation=1: Eval-Stream needs at least two periods to select by; give 2 or more")
        if self.order == "shuffled" and self.protocol == "fix":
            raise UserError("order=shuffled: Eval-Fix trains up to a date; only Eval-Stream and tasks can be shuffled")
        return self

    def training_budget(self) -> JsonObject:
        return {"updates": 300, "batch": 32}  # Wild-Time's for Yearbook

    def validation_options(self) -> Options | None:
        """Return the options of the validation periods; None if Eval-Stream has none."""
        if self.protocol != "fix" and self.validation is None:
            return None
        return self.model_copy(update={"role": "validation"})

    def describe_validation(self) -> str:
        if self.protocol == "fix":
            last = "the last third" if self.validation is None else f"the last {self.validation}"
            return f"{last} of the periods up to the split"
        if isinstance(self.validation, float):
            return f"a part of each period ({self.validation:g} of what is revealed)"
        return f"the first {self.validation} periods"

    @property
    def untested(self) -> int:
        """Number of first periods of a test run that selected its settings."""
        early = self.protocol != "fix" and isinstance(self.validation, int) and self.role == "test"
        return int(self.validation or 0) if early else 0


@register("benchmark", "timeline")
class Timeline(base.Benchmark):
    """Train at t, test at every tau."""

    follows_label_times: ClassVar[bool] = True
    question: ClassVar[str] = "How long does a model stay good, and is it the model or the data that changes?"
    reveals: ClassVar[Reveal] = Reveal.LABELS
    paper: ClassVar[str] = "temporal-metrics (Iovine et al. 2026) on the Wild-Time protocol (Yao et al. 2022)"
    departures: ClassVar[tuple[str, ...]] = (
        "The stability horizon ends at the first dip below delta; the paper's formula, read literally, jumps over dips "
        "(sh-skip).",
        "Both horizons ignore differences within 1.96 standard errors (allowance). By the paper's definition, kept as "
        "sh-paper and dh-paper, most models drift in a world without drift if few examples are held out.",
        "The drift horizon's epsilon is not given in the paper; here it is 0 unless set. A model that never drifts "
        "counts as horizon + 1 in means, as in the paper; models with fewer later periods are left out.",
        "Each training phase makes exactly the stated number of updates; Wild-Time's code makes one more.",
    )
    place: ClassVar[int] = 1
    headline_metrics: ClassVar[tuple[tuple[str, str], ...]] = (
        ("id", "mean"),
        ("ood", "mean"),
        ("ood", "minimum"),
        ("tas", "mean"),
        ("tas", "minimum"),
        ("sh", "mean"),
        ("dh", "mean"),
        ("fix-id", "mean"),
        ("fix-ood", "mean"),
        ("fix-worst", "mean"),
        ("average-accuracy", "mean"),
        ("forgetting", "mean"),
        ("backward-transfer", "mean"),
        ("forward-transfer", "mean"),
    )
    primary_metrics: ClassVar[tuple[tuple[str, str], ...]] = (
        *(("ood", "mean"), ("fix-ood", "mean"), ("average-accuracy", "mean")),
    )
    related_metrics: ClassVar[tuple[tuple[str, str], ...]] = (("ood", "mean"), ("tas", "mean"))
    summary_metrics: ClassVar[tuple[tuple[str, str], ...]] = (
        *(("id", "mean"), ("tas", "mean"), ("sh", "mean"), ("fix-id", "mean"), ("forgetting", "mean")),
    )
    options: ClassVar[type[base.Options]] = Options
    example: ClassVar[Settings] = {
        "data": "digits",
        "model": "linear",
        "methods": ["erm", "erm-all", {"name": "ft", "updates": 100}],
    }
    example_without_torch: ClassVar[Settings] = {
        "data": "digits",
        "model": "logistic-regression",
        "methods": ["erm", "erm-all"],
    }
    matrix_column: ClassVar[Settings] = {
        "data": {"name": "digits", "periods": 6, "rotation": 45.0},
        "model": {"name": "conv-1", "width": 16},
        "options": {"upstream": 1},  # methods without labels start from a trained model, as all others do here
    }
    quick: ClassVar[Mapping[str, float]] = {
        **{"updates": 100, "train_every": 250, "adaptation_lr": 1e-3, "reset_every": 2},
    }

    def build_scenario(self, dataset: Dataset, options: Options, seed: Seed) -> base.Scenario:
        """Cut the dataset into periods; the first ones may pretrain a common model."""
        timeline = periods(
            dataset.samples,
            options.period,
            holdout=layout.test_set(dataset) if options.holdout == "given" else options.holdout,
            min_samples=options.min_samples,
            seed=seed.child("split"),
        )
        if options.order == "shuffled":
            timeline = layout.shuffled(timeline, dataset.samples, seed.child("order"))
        timeline, split = layout.for_role(timeline, options, seed.child("split"))
        if len(timeline) - options.upstream - options.untested < 2:
            early = f" and the next {options.untested} for choosing settings" if options.untested else ""
            raise UserError(
                f"{len(timeline)} periods with the first {options.upstream} as upstream{early} "
                "leave fewer than two to deploy in"
            )
        upstream = layout.known_upstream(timeline, options.upstream) if options.upstream else None
        protocol = layout.describe(timeline, options)
        embedded = layout.embedding_samples(timeline, options.upstream, seed.child("picture"))
        pretrain_settings = {"updates": options.upstream_updates}
        if options.protocol == "fix":
            fixed = eval_fix.lay_out(timeline, split, upstream, options.upstream, protocol, embedded)
            if dataset.samples.known is not None:
                layout.first_labels(fixed.stream)
            return replace(fixed, pretrain_settings=pretrain_settings)
        if options.protocol == "tasks":
            tasks = task_sequence.lay_out(timeline, upstream, options, protocol, seed.child("tasks"))
            return replace(tasks, pretrain_settings=pretrain_settings, embedding_samples=embedded)
        stream = PeriodRange(timeline, options.upstream, len(timeline))
        if dataset.samples.known is not None:
            protocol["first_labels"] = layout.first_labels(stream)
        probes = LaterPeriodProbes(timeline, options.upstream, options.horizon, options.untested)
        return base.Scenario(stream, probes, upstream, pretrain_settings, protocol=protocol, embedding_samples=embedded)

    def metrics(self, options: Options, protocol: JsonObject) -> dict[str, JsonObject]:
        """Return the metrics of a timeline and their settings; every variant by name."""
        if options.protocol == "fix":
            return {name: {} for name in eval_fix.METRICS}
        if options.protocol == "tasks":
            return task_sequence.metrics(protocol)
        ahead: JsonObject = {"horizon": options.horizon}
        tested = len(protocol["periods"]) - len(protocol.get("untested_periods", ()))
        far = options.horizon or max(1, tested // 2)  # rows with fewer later periods are left out
        drift = {"epsilon": options.epsilon, "threshold": options.threshold, "horizon": far}
        stable, allowance = {"delta": options.delta}, {"allowance": options.allowance}
        scores = ("ood", "ood-worst", "tas", "tas-transfer", "tas-elementwise", "tas-raw-transfer", "tas-unclipped")
        return {
            "id": {},
            **{name: ahead for name in scores},
            "sh": stable | allowance,
            "sh-paper": stable,
            "sh-skip": stable,
            "dh": drift | allowance,
            "dh-paper": drift,
            "dh-drop": drift | allowance,
        }

    def score(self, run: Run) -> pd.DataFrame:
        """Return A(t, tau) and TTR per cell, every metric per t, and its mean and minimum over t."""
        options = Options(**run.card.run.options)
        names = run.card.protocol["periods"]
        random = Seed(run.seed).child("bootstrap").numpy()
        probes = run.table("probes")
        if run.card.data.kind == "Regression":
            probes = with_r2(probes)
        if options.protocol == "fix":
            return base.scores_frame(
                eval_fix.score(probes, names, run.card.protocol["split"], options.resamples, random)
            )
        if options.protocol == "tasks":
            names, ends = names[options.untested :], run.card.protocol["task_ends"]
            wanted = self.metrics(options, run.card.protocol)
            return base.scores_frame(task_sequence.score(probes, names, ends, wanted, options.resamples, random))
        late = run.card.protocol.get("first_labels", run.card.run.reveal["delay"])
        late = 0 if run.card.protocol["upstream_periods"] else late
        probes = probes[probes["step"] >= late]  # before its first labels there is no model
        names = names[options.untested :]
        columns = period_answers(probes.assign(step=probes["step"] - options.untested), names)
        metrics = self.metrics(options, run.card.protocol)
        return base.scores_frame(timeline_scores.rows(columns, names, metrics, options.resamples, random))

    @classmethod
    def answer(cls, results: Evidence) -> Answer | None:
        return own_answer.answer(results)
