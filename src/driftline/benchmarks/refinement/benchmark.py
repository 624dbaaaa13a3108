"""refinement: queries drift away from the training data, and a model learns from its errors, episode by episode.

Lin et al., "On Continual Model Refinement in Out-of-Distribution Data Streams", ACL 2022. An upstream model f_0 answers
episodes of queries, more and more of them from clusters it does not know. After each episode it is shown the right
answers to its errors and becomes f_t. The metrics: the share of errors fixed at once (EFR), accuracy on upstream data
(UKR) and on past queries (OKR), the share of queries answered right so far (CSR), and accuracy on unseen queries of the
same clusters (KG). OEC is the mean of the last four.

Paper and code of that work disagree in many places; `streams.queries` and `metrics.refinement` name the variants. Here:
f_t is evaluated after step t (indexing="before" evaluates the model before the step, including f_0, as the code does);
the last evaluation follows after the learner has finished; past queries are a sample that is the same for all methods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from driftline.benchmarks import base
from driftline.benchmarks.answer import Answer, Evidence
from driftline.benchmarks.refinement import answer as own_answer
from driftline.benchmarks.refinement import scores as refinement_scores
from driftline.benchmarks.refinement.queries import Queries, draw_queries, number_clusters, read_queries
from driftline.data import Dataset
from driftline.errors import UserError
from driftline.metrics.refinement import evaluation_steps
from driftline.record.card import Card
from driftline.record.run import Run
from driftline.registry import register
from driftline.seeds import Seed
from driftline.streams import QueryStream
from driftline.types import JsonObject, Probe, Reveal, Samples, Settings, Step


class Options(base.Options):
    """The settings of a stream of queries and of its evaluations."""

    pretrain_options: ClassVar[tuple[str, ...] | None] = (
        *("split", "train", "upstream_updates", "upstream_lr", "upstream_batch", "stream"),
    )

    stream: str | None = None
    """A file with the order of the queries, or released streams; if not given, streams are drawn."""
    alpha: float = Field(default=0.9, ge=0, le=1)
    """Episode t = 1, 2, ... has a share alpha^(t-1) of upstream queries."""
    beta: float = Field(default=0.5, ge=0, le=1)
    """Probability that the next episode has the same major cluster."""
    gamma: float = Field(default=0.8, ge=0, le=1)
    """The share of the major cluster among the queries that are not upstream."""
    episodes: int = Field(default=100, ge=1)
    """Number of episodes, which are the steps of the stream."""
    queries_per_episode: int = Field(default=64, ge=1)
    """Number of queries in an episode."""
    rounding: Literal["floor", "round"] = "floor"
    """How shares become counts: as in the paper, or as in its code."""
    others: Literal["pooled", "equal"] = "pooled"
    """How the other clusters are drawn from: their union (paper), or equal parts (its code)."""
    repeats: bool = True
    """Whether a query may come again in a later episode."""
    role: Literal["test", "validation"] = "test"
    """Streams to test on, or streams to choose hyper-parameters by; they draw from separate pools."""
    streams: int | None = Field(default=None, ge=1)
    """With 4, seeds 0, 4, 8, ... have the first of four streams and so on; if not given, each seed has its own."""
    first_stream: int = Field(default=0, ge=0)
    """The number of the first stream."""
    split: int = Field(default=0, ge=0)
    """Which random division into pools; the same for all seeds, so that validation and test stay apart."""
    train: float = Field(default=0.5, ge=0, lt=1)
    """The share of upstream samples to train on, where the data do not say which; 0 for a pretrained network."""
    validation: float | None = Field(default=0.25, gt=0, lt=1)
    """The share of each pool for validation streams; null: both roles draw from all of it, as in the paper's code."""
    upstream_set: int = Field(default=512, ge=1)
    """Upstream samples held out for UKR."""
    held_out: int = Field(default=256, ge=1)
    """Samples of each cluster held out for KG."""
    upstream_updates: int = Field(default=3000, ge=0)
    """Number of updates of a network on upstream samples; 0 for a pretrained network."""
    upstream_lr: float = Field(default=1e-3, gt=0)
    """Learning rate on upstream samples."""
    upstream_batch: int = Field(default=32, ge=1)
    """Mini-batch size on upstream samples."""
    period: int = Field(default=10, ge=1)
    """UKR, OKR and KG are measured every `period` steps and at the last one."""
    past: int = Field(default=512, ge=1)
    """Maximum number of past queries that OKR is measured on."""
    indexing: Literal["after", "before"] = "after"
    """Which model is evaluated for step t: the one after it (paper), or the one before it (its code)."""
    csr: Literal["inclusive", "strict"] = "inclusive"
    """Whether CSR(t) counts the queries of step t."""
    resamples: int = Field(default=500, ge=1)
    """Bootstrap resamples of the examples behind each interval."""

    def training_budget(self) -> JsonObject:
        return {"epochs": 10, "batch": 8}  # as cft, er and mir

    def validation_options(self) -> Options | None:
        """Return the options of validation streams, with the full evaluation only at the end; None if one is given."""
        return None if self.stream else self.model_copy(update={"role": "validation", "period": self.episodes})

    def number(self, seed: int) -> int:
        """Return the number of the stream of a seed.

        >>> [Options(streams=4).number(seed) for seed in range(6)], Options(first_stream=10).number(3)
        ([0, 1, 2, 3, 0, 1], 13)
        """
        return self.first_stream + (seed if self.streams is None else seed % self.streams)


@dataclass(frozen=True)
class RefinementProbes:
    """Probes: the errors of each episode again after its step; at some steps upstream, held-out and past samples."""

    stream: QueryStream
    upstream_set: Samples
    held_out: Samples
    evaluated_models: tuple[int, ...]
    """Which of f_0 .. f_T are evaluated."""
    n_past: int
    lag: int
    """Past queries of f_k are those of the first k - lag episodes."""
    seed: Seed
    delay: int = 0
    """Label delay in steps; an episode is evaluated again, all of it, once its labels have arrived."""

    def due(self, step: Step | None) -> Iterator[Probe]:
        last = len(self.stream)
        if step is None:  # learners that train at the end are evaluated after it
            yield from self.large_evaluation(last) if last in self.evaluated_models else ()
            return
        if not self.delay:
            yield Probe("now", step.samples, errors_only=True)
        elif step.index >= self.delay:
            yield Probe("now", self.stream[step.index - self.delay].samples)
        if step.index + 1 in self.evaluated_models and step.index + 1 < last:
            yield from self.large_evaluation(step.index + 1)

    def large_evaluation(self, k: int) -> Iterator[Probe]:
        """Yield the full evaluation of f_k, the same for all methods."""
        yield Probe("upstream", self.upstream_set)
        yield Probe("held out", self.held_out)
        if k > self.lag:
            yield Probe("past", self._past(k))

    def _past(self, k: int) -> Samples:
        """Return past queries, by cluster."""
        rows = np.concatenate(self.stream.drawn[: k - self.lag])
        rows = rows[self.seed.child("past", k).numpy().permutation(len(rows))[: self.n_past]]
        return self.stream.samples[rows[np.argsort(np.asarray(self.stream.samples.group)[rows], kind="stable")]]


@register("benchmark", "refinement")
class Refinement(base.Benchmark):
    """Continual model refinement: fix errors episode by episode in a drifting stream of queries."""

    question: ClassVar[str] = "Can a model fix its errors in a drifting stream without forgetting what it knew?"
    reveals: ClassVar[Reveal] = Reveal.ERRORS
    paper: ClassVar[str] = "Continual Model Refinement (Lin et al. 2022)"
    departures: ClassVar[tuple[str, ...]] = (
        "Models are evaluated after each step, as the paper defines it; its code evaluates the model before the step, "
        "so its last values leave the last refinement out and its means include the upstream model (indexing=before).",
        "UKR is measured on held-out upstream data, as in the paper's code; the paper's text names the training data.",
        "OKR is measured on as many past queries as there are, up to 512; the paper's code waits until there are 512.",
        "Validation and test streams draw from separate pools, no query comes twice in an episode, and pools are not "
        "filtered by what the upstream model answers.",
        "The printed tables are one run on one stream.",
    )
    place: ClassVar[int] = 3
    headline_metrics: ClassVar[tuple[tuple[str, str], ...]] = (
        ("oec", "final"),
        ("efr", "mean"),
        *((f"{metric}{variant}", "final") for metric in ("ukr", "okr") for variant in ("", "-before")),
        *(("csr", "final"), ("csr-strict", "final"), ("kg", "final"), ("kg-before", "final")),
    )
    primary_metrics: ClassVar[tuple[tuple[str, str], ...]] = (("oec", "final"), ("efr", "mean"))
    summary_metrics: ClassVar[tuple[tuple[str, str], ...]] = (
        *(("efr", "mean"), ("ukr", "final"), ("ukr-before", "final"), ("kg", "final"), ("kg-before", "final")),
    )
    options: ClassVar[type[base.Options]] = Options
    full_scale: ClassVar[Settings] = {"episodes": 100, "queries_per_episode": 64}
    equivalent_settings: ClassVar[tuple[str, ...] | None] = ("lr", "epochs", "batch", "penalty_weight", "fisher_decay")
    example: ClassVar[Settings] = {
        "data": "digit-clusters",
        "model": {"name": "mlp", "width": 128},
        "methods": ["frozen", "cft", "er"],
        "options": {"episodes": 20, "upstream_set": 256, "held_out": 64, "upstream_updates": 500},
    }
    matrix_column: ClassVar[Settings] = {
        "data": "digit-clusters",
        "model": {"name": "conv-1", "width": 16},
        "options": {**example["options"], "upstream_updates": 1000},
    }
    quick: ClassVar[Mapping[str, float]] = {"adaptation_lr": 1e-3, "reset_every": 5}

    def build_scenario(self, dataset: Dataset, options: Options, seed: Seed) -> base.Scenario:
        """Build the stream of this seed, drawn from pools that are the same for all seeds, or given."""
        root, number = Seed(options.split).child("refinement"), options.number(seed.value)
        make = draw_queries if options.stream is None else read_queries
        queries = make(number_clusters(dataset), options, number, root)
        if options.upstream_updates and not len(queries.train):
            raise UserError(
                "no sample is left to train on: give a pretrained model (--set model.weights=FILE) and "
                "--upstream-updates 0"
            )
        stream = queries.stream
        models = tuple(evaluation_steps(len(stream), options.period, options.indexing))
        lag, exams = 1 if options.indexing == "after" else 0, root.child(options.role).child("exams", queries.number)
        probes = RefinementProbes(stream, queries.upstream_set, queries.held_out, models, options.past, lag, exams)
        return base.Scenario(
            stream,
            probes,
            queries.train if len(queries.train) else None,
            delayed_probes=lambda delay: replace(probes, delay=delay),
            pretrain_settings=options.pretrain_settings(),
            initial_probes=tuple(probes.large_evaluation(0)) if 0 in models else (),
            protocol=protocol(options, queries, probes),
        )

    @classmethod
    def is_full_scale(cls, card: Card) -> bool:
        """Return whether the stream has as many episodes and queries as the published ones, drawn or given."""
        if card.run.options.get("stream") is None:
            return super().is_full_scale(card)
        sizes = [sum(counts) for counts in card.protocol["composition"]]
        return sizes == [cls.full_scale["queries_per_episode"]] * cls.full_scale["episodes"]

    def metrics(self, options: Options, protocol: JsonObject) -> dict[str, JsonObject]:
        """Return the six metrics under the names of the chosen variants; EFR accounts for the label delay."""
        names = refinement_scores.variant_names(options.indexing, options.csr)
        return {name: {} for name in names.values()} | {"efr": {"delay": protocol["label_delay_steps"]}}

    def score(self, run: Run) -> pd.DataFrame:
        """Return each metric at every step at which it is defined, its mean and its final value."""
        options = Options(**run.card.run.options)
        random = Seed(run.seed).child("bootstrap").numpy()
        steps = len(run.card.protocol["periods"])
        delay = run.card.protocol["label_delay_steps"]
        evidence = refinement_scores.correctness_by_step(run.table("answers"), run.table("probes"), steps, delay)
        variants = {"indexing": options.indexing, "csr": options.csr}
        return base.scores_frame(refinement_scores.rows(evidence, resamples=options.resamples, rng=random, **variants))

    @classmethod
    def answer(cls, results: Evidence) -> Answer | None:
        return own_answer.answer(results)


def protocol(options: Options, queries: Queries, probes: RefinementProbes) -> JsonObject:
    """Return the description of a stream and its evaluations for the card."""
    stream = queries.stream
    counts = np.bincount(np.asarray(stream.samples.group), minlength=len(stream.names))
    return {
        "protocol": queries.name,
        "periods": [str(t + 1) for t in range(len(stream))],
        "role": options.role,
        "stream": queries.number,
        "upstream_samples": len(queries.train),
        "upstream_samples_are": queries.split,
        "clusters": list(stream.names),
        "pools": dict(zip(stream.names, counts.tolist(), strict=True)),
        "composition": stream.composition.tolist(),
        "majors": [stream.names[k] for k in stream.majors],
        "upstream_set": len(probes.upstream_set),
        "held_out": len(probes.held_out),
        "evaluated_models": list(probes.evaluated_models),
        "past_queries": f"at most {options.past}, drawn for each model, the same for all methods",
    }
