"""timeline: train at t, test at every later period, and measure how long a model stays good.

The protocol of Wild-Time's Eval-Stream and the metrics of "Tracking Adaptation Time" (Iovine, Ziffer, Della Valle,
2026). After each period t the learner is evaluated on a held-out part of t itself, which gives the diagonal A(t, t),
and on every later period in full, which gives A(t, tau). No model is evaluated on a training sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from driftline.benchmarks import base
from driftline.benchmarks.timeline import eval_fix
from driftline.benchmarks.timeline import scores as timeline_scores
from driftline.data import Dataset
from driftline.errors import UserError
from driftline.metrics.temporal import period_answers, with_r2
from driftline.record.run import Run
from driftline.registry import register
from driftline.reveal import delivery_steps, known_by
from driftline.seeds import Seed
from driftline.streams import LaterPeriodProbes, PeriodRange, Periods, periods
from driftline.types import JsonObject, Reveal, Samples, Settings, Stream

MAX_EMBEDDED = 500  # samples whose features are recorded for the figure of how classes move


class Options(base.Options):
    """The settings of a timeline."""

    refused: ClassVar[Mapping[str, str]] = {
        "stream": "the order of a timeline is that of the times in the data; give data with these times",
    }

    protocol: Literal["stream", "fix"] = "stream"
    """stream: train and test period by period (Eval-Stream); fix: train up to a split, test after it (Eval-Fix)."""
    split: str = "last"
    """Eval-Fix: the last period that is trained on. With "last" every period is, and each is tested on its
    held-out part: how hard the task is at each time."""
    period: str = "auto"
    """How time is cut: each, decade, year, quarter, month, week, day, "500 rows", or auto."""
    holdout: Annotated[float, Field(gt=0, lt=1)] | Literal["given"] = 0.1
    """Share of each period that is never trained on; it gives A(t, t). given: the test set of the data."""
    min_samples: int = Field(default=10, ge=2)
    """Periods with fewer samples are left out."""
    horizon: int | None = Field(default=None, ge=1)
    """How many later periods each model is tested on; all if not given, and then the drift horizon looks at most
    half of all periods ahead."""
    upstream: int = Field(default=0, ge=0)
    """Number of first periods that pretrain the model of every method."""
    upstream_updates: int = Field(default=3000, ge=0)
    """Number of updates of this pretraining."""
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
    )
    primary_metrics: ClassVar[tuple[tuple[str, str], ...]] = (("ood", "mean"), ("fix-ood", "mean"))
    summary_metrics: ClassVar[tuple[tuple[str, str], ...]] = (
        *(("id", "mean"), ("tas", "mean"), ("sh", "mean"), ("fix-id", "mean")),
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
            holdout=test_set(dataset) if options.holdout == "given" else options.holdout,
            min_samples=options.min_samples,
            seed=seed.child("split"),
        )
        if len(timeline) - options.upstream < 2:
            raise UserError(
                f"{len(timeline)} periods with the first {options.upstream} as upstream "
                "leave fewer than two to deploy in"
            )
        upstream = _known_upstream(timeline, options.upstream) if options.upstream else None
        protocol: JsonObject = {
            "protocol": {"stream": "Eval-Stream", "fix": "Eval-Fix"}[options.protocol],
            "periods": list(timeline.names[options.upstream :]),
            "upstream_periods": list(timeline.names[: options.upstream]),
            "left_out_periods": timeline.skipped,
            "samples_per_period": [len(part) for part in timeline.revealed[options.upstream :]],
            "held_out_per_period": [len(part) for part in timeline.held_out[options.upstream :]],
            "diagonal": f"held-out {'part' if options.holdout == 'given' else 'share'} of the period",
            "off_diagonal": "all samples of the later period",
        }
        embedded = embedding_samples(timeline, options.upstream, seed.child("picture"))
        pretrain_settings = {"updates": options.upstream_updates}
        if options.protocol == "fix":
            fixed = eval_fix.lay_out(timeline, options.split, upstream, options.upstream, protocol, embedded)
            if dataset.samples.known is not None:
                _first_labels(fixed.stream)
            return replace(fixed, pretrain_settings=pretrain_settings)
        stream = PeriodRange(timeline, options.upstream, len(timeline))
        if dataset.samples.known is not None:
            protocol["first_labels"] = _first_labels(stream)
        probes = LaterPeriodProbes(timeline, options.upstream, options.horizon)
        return base.Scenario(stream, probes, upstream, pretrain_settings, protocol=protocol, embedding_samples=embedded)

    def metrics(self, options: Options, protocol: JsonObject) -> dict[str, JsonObject]:
        """Return the metrics of a timeline and their settings; every variant by name."""
        if options.protocol == "fix":
            return {name: {} for name in eval_fix.METRICS}
        ahead: dict[str, Any] = {"horizon": options.horizon}
        far = options.horizon or max(1, len(protocol["periods"]) // 2)  # rows with fewer later periods are left out
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
        late = run.card.protocol.get("first_labels", run.card.run.reveal["delay"])
        late = 0 if run.card.protocol["upstream_periods"] else late
        columns = period_answers(probes[probes["step"] >= late], names)  # before its first labels there is no model
        metrics = self.metrics(options, run.card.protocol)
        return base.scores_frame(timeline_scores.rows(columns, names, metrics, options.resamples, random))


def _known_upstream(timeline: Periods, n: int) -> Samples:
    """Return the samples of the first periods whose labels are known when they end."""
    upstream = Samples.concat(timeline.revealed[:n])
    known = known_by(upstream, np.max(np.asarray(timeline.revealed[n - 1].time)))
    if not known.any():
        raise UserError(f"no label of the first {n} period(s) is known when they end: choose a larger upstream")
    return upstream if known.all() else upstream[np.flatnonzero(known)]


def _first_labels(stream: Stream) -> int:
    """Return the first step at whose end labels are known."""
    steps = delivery_steps(stream)
    if not steps:
        raise UserError("no label is known before the data end: check the column data.known")
    return steps[0]


def test_set(dataset: Dataset) -> np.ndarray:
    """Return which samples are of the test set that the data bring."""
    if dataset.test is None:
        raise UserError(
            f"holdout=given: dataset '{dataset.name}' has no test set; Wild-Time's data have one with "
            "--set data.published_split=true"
        )
    return dataset.test


def embedding_samples(timeline: Periods, first: int, seed: Seed) -> dict[str, Samples]:
    """Return held-out samples of every period, at most MAX_EMBEDDED in total."""
    chosen = {}
    for t in range(first, len(timeline)):
        n, limit = len(timeline.held_out[t]), max(1, MAX_EMBEDDED // (len(timeline) - first))
        rows = np.sort(seed.child(timeline.names[t]).numpy().permutation(n)[:limit])
        chosen[timeline.names[t]] = timeline.held_out[t][rows]
    return chosen
