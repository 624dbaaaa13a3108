"""open-world: one sample at a time, mostly new classes, and every multiply-accumulate counted.

Wallingford et al., "In the Wild: From ML Models to Pragmatic ML Systems", 2020 (NED, later FLUID). A model that was
trained on some classes answers a stream in which a few of them, and many new ones, come one sample at a time; few
classes have many samples, many have few. After each answer its label is revealed, and the method may train on it; its
compute is counted. The scores are the accuracy of these answers (overall, per class, and for new and old classes with
many and few samples) and the AUROC of detecting samples of unseen classes.

New classes come early, so the time alone is a good detector: each AUROC is reported together with that of the clock and
one against samples of the same time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np
import pandas as pd
from pydantic import Field, field_validator

from driftline.benchmarks import base
from driftline.benchmarks.answer import Answer, Evidence
from driftline.benchmarks.open_world import answer as own_answer
from driftline.benchmarks.open_world import few_shot
from driftline.benchmarks.open_world import scores as open_world_scores
from driftline.data import Dataset
from driftline.errors import UserError
from driftline.learners.settings import Augmentation
from driftline.record.card import Card
from driftline.record.run import Run
from driftline.registry import register
from driftline.seeds import Seed
from driftline.streams import OpenWorld, open_world, ordered_world, published_world
from driftline.streams.open_world.published import expand_folder
from driftline.types import JsonObject, Reveal, Settings

PUBLISHED_CLASSES = 999
"""The number of classes with images in S1; the other sequences have 1000."""


class Options(base.Options):
    """The settings of a stream of samples that come one by one."""

    pretrain_options: ClassVar[tuple[str, ...] | None] = (
        *("classes", "pretrain", "upstream_classes", "upstream_share", "upstream_each", "split"),
        *("upstream_updates", "upstream_lr", "upstream_batch", "upstream_augment", "stream"),
    )

    stream: str | tuple[str, ...] | None = None
    """A file with the order of the samples, or the folder of NED's published sequences; if not given, it is drawn."""
    classes: int | None = Field(default=None, ge=2)
    """Number of classes in the stream; if not given, four tenths of all."""
    pretrain: int | None = Field(default=None, ge=0)
    """How many of them the upstream model was trained on; if not given, a tenth of all classes."""
    class_size_law: str = "3000/(19+r)"
    """Maximum number of samples of the class of rank r; NED: 25000/(25+r). Zipf's law: 1000/r."""
    order: str = "uniform"
    """uniform, drifting, bursts or recurring, optionally with a number after a colon (see docs/open-world.md)."""
    role: Literal["test", "validation"] = "test"
    """Sequences to test on, or to choose settings by."""
    sequences: int = Field(default=5, ge=1)
    """Number of sequences."""
    validation: int = Field(default=2, ge=0)
    """Number of sequences, from the first, for choosing settings. Seeds cycle through the others."""
    disjoint: bool = False
    """Whether no class may be novel in two sequences to test on."""
    split: int = Field(default=0, ge=0)
    """Which division of classes and samples; the same for all seeds."""
    upstream_classes: int | None = Field(default=None, ge=1)
    """How many classes the upstream model is trained on; if not given, three tenths of all, or `pretrain` if more."""
    upstream_share: float = Field(default=0.3, gt=0, lt=1)
    """The share of an upstream class's samples that it is trained on; the others are for the stream."""
    upstream_each: int | None = Field(default=None, ge=1)
    """Number of samples of each upstream class, instead of a share."""
    upstream_updates: int = Field(default=1500, ge=0)
    """Number of updates of a network on them; 0 for a pretrained network."""
    upstream_lr: float = Field(default=1e-3, gt=0)
    """Learning rate on upstream samples."""
    upstream_batch: int = Field(default=32, ge=1)
    """Mini-batch size on upstream samples."""
    upstream_augment: Augmentation = "none"
    """How the upstream model's training images are augmented; NED: crop-flip."""
    block: int = Field(default=100, ge=1)
    """Number of samples per step; each label is still revealed before the next answer."""
    head: int = Field(default=50, ge=0)
    """Classes with more samples than this are head, the others tail."""
    window: int | None = Field(default=None, ge=1)
    """Samples in a window of rolling accuracy; if not given, an eighteenth of what the law allows, as NED's 5,000."""
    threshold: float | None = None
    """Distance above which an answer counts as "unseen"; if not given, k+1 accuracy uses the best one."""
    episodes: int = Field(default=0, ge=0)
    """Number of few-shot episodes of unseen classes, on the final features of a run; 0 for none."""
    way: int = Field(default=5, ge=2)
    """Classes in an episode."""
    shot: int = Field(default=5, ge=1)
    """Samples of each class in an episode to learn from."""
    resamples: int = Field(default=500, ge=1)
    """Bootstrap resamples behind each interval."""

    def pretrain_settings(self) -> JsonObject:
        return {**super().pretrain_settings(), "augment": self.upstream_augment}

    @field_validator("stream")
    @classmethod
    def _expand_stream(cls, stream: str | tuple[str, ...] | None) -> str | tuple[str, ...] | None:
        return expand_folder(stream) if isinstance(stream, str) else stream

    def training_budget(self) -> JsonObject:
        return {"epochs": 4, "batch": 32}  # epochs of fine-tuning in NED

    def validation_options(self) -> Options | None:
        """Return the options of the validation sequences; None if there is one given order."""
        return None if isinstance(self.stream, str) else self.model_copy(update={"role": "validation"})

    def number(self, seed: int) -> tuple[int, int]:
        """Return the number of the sequence of a seed, from 1, and that of its shuffle.

        >>> [Options().number(seed) for seed in range(4)], Options(role="validation").number(2)
        ([(3, 0), (4, 0), (5, 0), (3, 1)], (1, 1))
        """
        first, many = (0, self.validation) if self.role == "validation" else (self.validation, self.tests)
        if many < 1:
            use = "choose settings by" if self.role == "validation" else "test on"
            raise UserError(
                f"sequences={self.sequences} and validation={self.validation} leave no sequence to {use}: give "
                f"{'a validation of 1 or more' if self.role == 'validation' else 'more sequences than validation'}"
            )
        return first + 1 + seed % many, seed // many

    @property
    def tests(self) -> int:
        return self.sequences - self.validation


@register("benchmark", "open-world")
class OpenWorldBenchmark(base.Benchmark):
    """Open-world learning: one sample at a time, with new classes and compute counted."""

    question: ClassVar[str] = "How well does a model learn new classes one sample at a time, and at what cost?"
    reveals: ClassVar[Reveal] = Reveal.LABELS
    paper: ClassVar[str] = "In the Wild / NED (Wallingford et al. 2020)"
    departures: ClassVar[tuple[str, ...]] = (
        "A class without data cannot be answered: the paper's code lets it compete, as a vector of zeros or with the "
        "weights of another class.",
        "Frozen layers stay in evaluation mode and features are of images as they come, so that keeping them is valid; "
        "the paper's code trains batch norm and augments.",
        "The answer for a sample comes from what was known before it; the paper's loop is off by one.",
        "Tail classes have at most as many samples as the boundary says; the printed tables leave out those at it.",
        "Compute counts forward passes once and backward passes twice for layers that are trained, in all tables; the "
        "paper's tables use 1, 2 and 3 in all.",
    )
    place: ClassVar[int] = 5
    headline_metrics: ClassVar[tuple[tuple[str, str], ...]] = (
        *((name, "mean") for name in ("overall", "mean-class")),
        *((name, "mean") for name in ("novel-head", "novel-tail", "pretrain-head", "pretrain-tail")),
        ("rolling", "final"),
        *((name, "mean") for name in ("k+1", "matched-auroc-mdt", "unseen-auroc-mdt", "clock-auroc")),
    )
    primary_metrics: ClassVar[tuple[tuple[str, str], ...]] = (("overall", "mean"),)
    related_metrics: ClassVar[tuple[tuple[str, str], ...]] = (("novel-tail", "mean"), ("pretrain-head", "mean"))
    summary_metrics: ClassVar[tuple[tuple[str, str], ...]] = (
        *((name, "mean") for name in ("novel-head", "novel-tail", "pretrain-head", "matched-auroc-mdt")),
    )
    options: ClassVar[type[base.Options]] = Options
    time_unit: ClassVar[str] = "samples seen"
    full_scale: ClassVar[Settings] = {"classes": 1000, "pretrain": 250, "class_size_law": "25000/(25+r)"}
    equivalent_settings: ClassVar[tuple[str, ...] | None] = (
        *("train_every", "epochs", "schedule", "lr", "momentum", "weight_decay", "batch", "imprint_only_labels"),
        *("warmup_labels", "warmup_every", "augment"),
    )
    example: ClassVar[Settings] = {
        "data": "digit-symmetries",
        "model": {"name": "conv-1", "width": 16},
        "methods": ["frozen", "ncm", {"name": "fine-tune", "train_every": 100}],
        "options": {"class_size_law": "300/(4+r)", "upstream_updates": 600, "head": 20},
    }
    matrix_column: ClassVar[Settings] = {
        "data": "digit-symmetries",
        "model": {"name": "mlp", "width": 128},  # a batch is one sample here: no batch norm
        "options": {**example["options"], "upstream_updates": 1000},
    }
    quick: ClassVar[Mapping[str, float]] = {"epochs": 2, "train_every": 100, "reset_every": 200}
    interval_over: ClassVar[str] = "test examples, or classes where n counts classes"

    def build_scenario(self, dataset: Dataset, options: Options, seed: Seed) -> base.Scenario:
        """Build the sequence of this seed."""
        number, shuffle = options.number(seed.value)
        root = Seed(options.split).child("open-world")
        stream = build_stream(dataset, options, number, root, root.child("shuffle", shuffle))
        return base.Scenario(
            stream,
            base.NoProbes(),
            stream.upstream if len(stream.upstream_rows) else None,
            pretrain_settings=options.pretrain_settings(),
            embedding_samples=few_shot.unseen_class_samples(stream, options.way, options.shot, root)
            if options.episodes
            else {},
            protocol=protocol(options, stream, shuffle),
        )

    @classmethod
    def is_full_scale(cls, card: Card) -> bool:
        """Return whether the sequence has the classes of the paper's; a given order counts if it is NED's own."""
        stream = card.run.options.get("stream")
        if stream is None or isinstance(stream, str):
            return stream is None and super().is_full_scale(card)
        return bool(np.count_nonzero(card.protocol["counts"]) >= PUBLISHED_CLASSES)

    def metrics(self, options: Options, protocol: JsonObject) -> dict[str, JsonObject]:
        return {name: {} for name in (*open_world_scores.NAMES, *(["episodic"] if options.episodes else []))}

    def score(self, run: Run) -> pd.DataFrame:
        """Return every metric over the whole stream, and accuracy in each window of time."""
        options = Options(**run.card.run.options)
        bootstrap: JsonObject = {"resamples": options.resamples, "rng": Seed(run.seed).child("bootstrap").numpy()}
        protocol, compute = run.card.protocol, run.card.compute
        rows = list(
            open_world_scores.rows(run.table("answers"), protocol, compute, window=protocol["window"], **bootstrap)
        )
        features = run.table("features") if options.episodes else pd.DataFrame()
        if len(features):
            correct = few_shot.episode_correctness(
                features, options.way, options.shot, options.episodes, Seed(run.seed)
            )
            rows.append(open_world_scores.episodes(correct, f"{options.shot}-shot {options.way}-way", **bootstrap))
        return base.scores_frame(rows)

    @classmethod
    def answer(cls, results: Evidence) -> Answer | None:
        return own_answer.answer(results)


STREAM_OPTIONS = (
    *("class_size_law", "order", "sequences", "validation", "disjoint"),
    *("upstream_share", "upstream_each", "block"),
)


def build_stream(dataset: Dataset, options: Options, number: int, split: Seed, seed: Seed) -> OpenWorld:
    """Return the sequence of this number, drawn or given."""
    if isinstance(options.stream, str):
        stream = ordered_world(dataset, options.stream, block=options.block)
    elif options.stream is not None:
        settings: Settings = {"role": options.role, "block": options.block}
        stream = published_world(dataset, options.stream, number, split=split, seed=seed, **settings)
    else:
        settings = class_counts(options, dataset.task.width)
        settings |= {name: getattr(options, name) for name in STREAM_OPTIONS}
        return open_world(dataset, **settings, number=number, split=split, seed=seed)
    if options.upstream_updates and not len(stream.upstream_rows):
        raise UserError(
            f"all samples of dataset '{dataset.name}' are in the stream and none is left to train on: give a "
            "pretrained model (--set model.weights=FILE) and --upstream-updates 0"
        )
    return stream


def class_counts(options: Options, width: int) -> JsonObject:
    """Return the numbers of classes in the stream, known to the upstream model, and trained on by it.

    >>> class_counts(Options(), 150)
    {'classes': 60, 'pretrain': 15, 'upstream_classes': 45}
    """
    pretrain = max(width // 10, 1) if options.pretrain is None else options.pretrain
    classes = max(pretrain + 3 * width // 10, 2) if options.classes is None else options.classes
    upstream = max(3 * width // 10, pretrain, 1) if options.upstream_classes is None else options.upstream_classes
    return {"classes": classes, "pretrain": pretrain, "upstream_classes": upstream}


def protocol(options: Options, stream: OpenWorld, shuffle: int) -> JsonObject:
    """Return the description of a sequence for the card."""
    classes = len(stream.pretrain_classes) + len(stream.novel_classes)
    n = len(stream.rows)
    most = int(stream.class_size_law.counts(classes).sum()) if stream.class_size_law else n
    window = options.window or max(most // 18, 1)
    named = {"pretrain": len(stream.pretrain_classes), "novel": len(stream.novel_classes)}
    return {
        "protocol": f"sequence {stream.number} ({stream.role}), {n:,} samples one by one, {named['pretrain']} pretrain "
        f"and {named['novel']} novel classes",
        "periods": [str(k * window) for k in range(1, most // window + 1)],
        "one_by_one": True,
        "role": stream.role,
        "sequence": stream.number,
        "shuffle": shuffle,
        "class_size_law": str(stream.class_size_law) if stream.class_size_law else None,
        "order": stream.order,
        "samples": n,
        "pretrain_classes": list(stream.pretrain_classes),
        "novel_classes": list(stream.novel_classes),
        "upstream_classes": list(stream.upstream_classes),
        "upstream_samples": len(stream.upstream_rows),
        "counts": stream.counts.tolist(),
        "head": options.head,
        "window": window,
        "threshold": options.threshold,
        "first_seen": "classes that the upstream model was trained on count as seen from the start",
    }
