"""test-time: a stream of images under changing corruptions, without labels.

Press, Schneider, Kummerer, Bethge, "RDumb: A simple approach that questions our progress in continual test-time
adaptation", NeurIPS 2023. A trained model answers a long stream; a method may adapt it to the inputs alone. The answers
given along the way are the score. The question is whether adaptation helps, keeps helping, or collapses: falls below
the model that never adapts.

order="ccc" leads from one corruption to the next along paths on which a fixed model's accuracy hardly changes
(a calibration measures what is needed), so that a fall is the method's doing. The other orders are those of
earlier work: corruptions one after another at one severity, up and down in severity, or mixed image by image.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

import pandas as pd
from pydantic import Field, model_validator

from driftline.benchmarks import base, summary
from driftline.benchmarks.answer import Answer, Evidence
from driftline.benchmarks.test_time import answer as own_answer
from driftline.benchmarks.test_time import scores
from driftline.benchmarks.test_time.accuracy_grid import AccuracyGrid, accuracy_grid
from driftline.benchmarks.test_time.streams import Stream, build_stream, restarts, upstream_images
from driftline.corruptions.cropping import DEFAULT_SIDE
from driftline.data import Dataset
from driftline.device import workers
from driftline.errors import UserError
from driftline.record.card import Card
from driftline.record.run import Run
from driftline.registry import register
from driftline.seeds import Seed
from driftline.streams import prefetch
from driftline.streams.test_time.arrangement import LabelOrder
from driftline.streams.test_time.calibration import N_LEVELS
from driftline.streams.test_time.markov import ChainKind
from driftline.streams.test_time.schedule import SUBSETS, corruption_names
from driftline.types import JsonObject, Reveal, Settings

PUBLISHED_IMAGES = {"cin-c": 750_000, "cin-3dcc": 600_000, "holdout": 750_000}
"""Images of a published stream, by order; 7,500,000 for all other orders."""


class Options(base.Options):
    """The settings of a stream of corrupted images."""

    cost_free: ClassVar[tuple[str, ...]] = ("difficulty", "target", "path", "first_schedule_seed")
    pretrain_options: ClassVar[tuple[str, ...] | None] = ("upstream_updates", "upstream_lr", "upstream_batch")
    later_options: ClassVar[tuple[str, ...]] = (
        *("domain_correlation", "domain_imbalance", "label_order", "class_correlation", "class_imbalance"),
        *("label_concentration", "chain", "reset"),
    )

    order: Literal[
        "ccc", "cin-c", "standard", "cin-3dcc", "holdout", "gradual", "mixed", "chain", "shards", "given"
    ] = "ccc"
    """ccc: paths of constant difficulty; cin-c: corruptions in a drawn order at one severity; standard: the same in
    ImageNet-C's order, or as named; cin-3dcc: as cin-c with ImageNet-3DCC's, from their files; holdout: the four
    reserved for choosing settings; gradual: severity 1 up to 5 and down; mixed: each image its own corruption; chain:
    the corruption of each image follows a Markov chain; shards: images from tar files; given: as in the file
    `stream`."""
    stream: str | None = None
    """A file with the order of the images and, if they are to be corrupted, with a corruption and severity of each."""
    calibration: str | None = None
    """order=ccc: the file that `driftline calibrate` wrote, or the released pickle. By default, the network is
    calibrated first."""
    calibration_images: int = Field(default=5000, ge=1)
    """order=ccc without a calibration file: number of images to calibrate on, or all if there are fewer."""
    calibration_levels: int = Field(default=N_LEVELS, ge=2)
    """order=ccc without a calibration file: number of severities including 0; 11 takes a quarter of the time."""
    difficulty: Literal["easy", "medium", "hard"] = "medium"
    """order=ccc: the set of corruptions and the target accuracy of the paths: 40, 20 or 0 percent."""
    target: float | None = Field(default=None, ge=0, le=100)
    """order=ccc: target accuracy in percent, instead of the difficulty's."""
    path: Literal["mean-cost", "least-squares"] = "mean-cost"
    """order=ccc: how paths are searched: as in the paper's code, or the optimal path."""
    corruptions: str | None = None
    """A subset's name or names separated by commas; if not given, the difficulty's, all 15, or the four held out."""
    severity: float = Field(default=5.0, ge=0, le=5)
    """order=cin-c, standard, holdout, mixed or chain: the severity of every corruption; 0: images as they are."""
    domain_correlation: float = Field(default=0.85, ge=0, le=1)
    """order=chain: the probability that the next image has the same corruption instead of a drawn one; 1: one after
    another."""
    domain_imbalance: float = Field(default=1.0, ge=1)
    """order=chain: how many times as frequent the first corruption is as the last."""
    label_order: LabelOrder = "shuffled"
    """The order of labels. shuffled: at random; chain: a Markov chain; practical: RoTTA's stream, in blocks of classes
    with shares from a Dirichlet distribution."""
    class_correlation: float = Field(default=0.95, ge=0, le=1)
    """label_order=chain: the probability that the next image has the same class instead of a drawn one; 1: one after
    another."""
    class_imbalance: float = Field(default=1.0, ge=1)
    """label_order=chain: how many times as frequent the first class is as the last."""
    label_concentration: float = Field(default=0.1, gt=0)
    """label_order=practical: the concentration of the Dirichlet distribution."""
    chain: ChainKind = "sticky"
    """The transition matrix of chains: sticky, or that of UniTTA's code."""
    reset: Literal["never", "domain", "batch"] = "never"
    """When learners return to their state before the first step: before each corruption, or before each batch."""
    shards: str | None = None
    """order=shards: the folder with serial_00000.tar and so on, such as CCC's own; the same stream for every seed."""
    files: str | None = None
    """order=cin-3dcc: the folder of the published images, with a folder per corruption, severity and class.
    order=cin-c, standard or holdout: read ImageNet-C's images from such a folder, or CIFAR-10-C's arrays."""
    images_per_point: int = Field(default=1000, ge=1)
    """Images per point of the schedule."""
    images: int = Field(default=100_000, ge=2)
    """Number of images in the stream."""
    batch: int = Field(default=64, ge=1)
    """Number of images per step."""
    crop: bool | None = None
    """true: a random part of each image, flipped at random, as in CCC; false: the image, or of one larger than 224
    pixels the center, as in ImageNet-C. If not given: true with order=ccc for images of 64 pixels or more."""
    jpeg: int | None = Field(default=None, ge=1, le=100)
    """The JPEG quality of the images; ImageNet-C's and CCC's files have 85."""
    frost: str | None = None
    """A folder with ImageNet-C's photographs of frost; without it frost is synthetic."""
    first_schedule_seed: int = 43
    """order=ccc: the seed of the order of corruptions for seed 0; seed 1 has the next, and so on."""
    upstream_updates: int = Field(default=3000, ge=0)
    """Number of updates of a network on clean images; 0 for a pretrained network."""
    upstream_lr: float = Field(default=1e-3, gt=0)
    """Learning rate on clean images."""
    upstream_batch: int = Field(default=32, ge=1)
    """Mini-batch size on clean images."""
    resamples: int = Field(default=500, ge=1)
    """Bootstrap resamples of windows of time behind each interval."""

    @model_validator(mode="before")
    @classmethod
    def _order_is_given(cls, options: Settings) -> Settings:
        return {"order": "given", **options} if options.get("stream") is not None else options

    def validation_options(self) -> Options | None:
        """Return the options of streams of the four corruptions that no other order has; None if a test has one."""
        tested = corruption_names(self.corruptions) if self.corruptions else ()
        if self.order in ("holdout", "shards") or set(tested) & set(SUBSETS["holdout"]):
            return None
        unset = dict.fromkeys(("calibration", "target", "files", "stream"))
        held_out = {"order": "chain", "corruptions": "holdout"} if self.order == "chain" else {"order": "holdout"}
        return self.model_copy(update={"corruptions": None, **unset, **held_out})

    def calibration_options(self) -> Options | None:
        """Return what a calibration depends on: corruptions, images, and how the network is trained."""
        if self.order != "ccc" or self.calibration is not None:
            return None
        names = ("calibration_images", "calibration_levels", "frost", *(self.pretrain_options or ()))
        corruptions = ",".join(corruption_names(self.corruptions or self.difficulty))
        return Options(order="ccc", corruptions=corruptions, **{name: getattr(self, name) for name in names})

    @property
    def random_parts(self) -> bool | None:
        """The value of `crop` with this order."""
        return False if self.crop is None and self.order != "ccc" else self.crop


@register("benchmark", "test-time")
class TestTime(base.Benchmark):
    """Test-time adaptation without labels on a long, changing stream."""

    __test__: ClassVar[bool] = False  # for pytest: no test, whatever its name
    question: ClassVar[str] = "Does adaptation without labels survive a long, changing stream?"
    reveals: ClassVar[Reveal] = Reveal.INPUTS
    paper: ClassVar[str] = "RDumb and CCC (Press et al. 2023)"
    departures: ClassVar[tuple[str, ...]] = (
        "Source images, crops and noise are drawn from named seeds, so that a stream is the same on every machine; the "
        "released files cannot be made again bit by bit.",
        "Images are not compressed as JPEG before they are shown unless jpeg=85 says so; the published files are.",
        "Normalization is inside the model, so that CoTTA's augmentations see images and not normalized numbers.",
        "Frost is synthetic unless a folder with the photographs is given.",
        "CIN-C's ten orders are other random ones.",
        "EATA's Fisher information comes from clean training images if there are any, else from the first images of "
        "the stream, which are answered without adapting; the paper's code then starts the stream again.",
    )
    place: ClassVar[int] = 4
    headline_metrics: ClassVar[tuple[tuple[str, str], ...]] = (
        ("stream-accuracy", "mean"),
        ("batch-accuracy", "mean"),
        ("last-tenth", "mean"),
    )
    related_metrics: ClassVar[tuple[tuple[str, str], ...]] = (("last-tenth", "mean"), ("stream-accuracy", "mean"))
    primary_metrics: ClassVar[tuple[tuple[str, str], ...]] = (("stream-accuracy", "mean"),)
    options: ClassVar[type[base.Options]] = Options
    interval_over: ClassVar[str] = "blocks of consecutive batches"
    time_unit: ClassVar[str] = "images seen"
    averaged_over: ClassVar[str | None] = "images_per_point"
    full_scale: ClassVar[Settings] = {"batch": 64}
    equivalent_settings: ClassVar[tuple[str, ...] | None] = (
        *("lr", "momentum", "batch", "similarity_margin", "penalty_weight", "fisher_from", "fisher_images"),
        *("confidence_threshold", "restore_probability"),
    )
    example: ClassVar[Settings] = {
        "data": "color-digits",
        "model": {"name": "conv-1", "width": 16},
        "methods": ["frozen", "bn", {"name": "tent", "lr": 1e-3}],
        "options": {
            **{"order": "gradual", "corruptions": "gaussian_noise,contrast,defocus_blur,saturate"},
            **{"images": 2304, "images_per_point": 64, "upstream_updates": 600},
        },
    }
    matrix_column: ClassVar[Settings] = {
        "data": "color-digits",
        "model": {"name": "conv-1", "width": 16},
        "options": {**example["options"], "upstream_updates": 1000},
    }
    quick: ClassVar[Mapping[str, float]] = {"adaptation_lr": 1e-3, "reset_every": 9}

    def build_scenario(self, dataset: Dataset, options: Options, seed: Seed) -> base.Scenario:
        """Build the stream of this seed, which decides the order of corruptions and the images."""
        stream, about = build_stream(dataset, options, seed)
        last = stream.n_images % options.batch
        if last == 1 and options.batch > 1:
            raise UserError(
                f"images={stream.n_images} leaves one image for the last batch of {options.batch}, and one image has "
                "no batch statistics: take one image more or less"
            )
        return base.Scenario(
            prefetch(stream, workers()),
            base.NoProbes(),
            upstream_images(dataset, options.upstream_updates),
            pretrain_settings=options.pretrain_settings(),
            restarts=restarts(stream, options),
            protocol={**protocol(options, stream), **about, "last_batch": last or options.batch},
        )

    @classmethod
    def shown_shape(cls, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of an image that is shown: of one larger than 224 pixels, a part of this size."""
        larger = len(shape) == 3 and min(shape[:2]) > DEFAULT_SIDE
        return (DEFAULT_SIDE, DEFAULT_SIDE, *shape[2:]) if larger else shape

    def calibration(self, dataset: Dataset, options: Options, seed: Seed) -> AccuracyGrid:
        """Return the accuracy under pairs of corruptions."""
        return accuracy_grid(dataset, options, seed.child("calibration"))

    def metrics(self, options: Options, protocol: JsonObject) -> dict[str, JsonObject]:
        return {name: {} for name in ("stream-accuracy", "batch-accuracy", "last-tenth")}

    def score(self, run: Run) -> pd.DataFrame:
        """Return accuracy in each of up to 100 windows of time, and overall."""
        answers = run.table("answers")
        options = Options(**run.card.run.options)
        return base.scores_frame(scores.rows(answers, options.resamples, Seed(run.seed).child("bootstrap").numpy()))

    @classmethod
    def is_full_scale(cls, card: Card) -> bool:
        """Return whether the stream has as many images as the published one of its order, in batches of 64."""
        options = card.run.options
        n_images = PUBLISHED_IMAGES.get(options["order"], 7_500_000)
        given = options["order"] == "given"
        return super().is_full_scale(card) and options.get("images") == n_images and not given

    @classmethod
    def summary(cls, results: summary.Results) -> str:
        """Return the best method, and the methods that collapse: their accuracy is below that of the frozen model."""
        gains = results.gains(*cls.primary_metrics[0])
        if not gains:
            return f"{super().summary(results)} Gains need a run of the frozen model and of another method."
        shown = {method: f"{method} ({summary.points(gain)})" for method, gain in gains.items()}
        best = max(gains, key=lambda method: gains[method].value)
        ahead = f"Best gain over the frozen model: {shown[best]}. " if gains[best].value > 0 else ""
        below = [shown[method] for method, gain in gains.items() if gain.value < 0]
        collapsed = f"Collapsed, below the frozen model: {', '.join(below)}." if below else "No method collapsed."
        return f"{super().summary(results)} {ahead}{collapsed}"

    @classmethod
    def answer(cls, results: Evidence) -> Answer | None:
        return own_answer.answer(results)


def protocol(options: Options, stream: Stream) -> JsonObject:
    """Return the description of a stream for the card."""
    labels = "" if options.label_order == "shuffled" else f", labels {options.label_order}"
    reset = "" if options.reset == "never" else f", reset before each {options.reset}"
    return {
        "protocol": f"{options.order}{labels}, {stream.n_images:,} images in batches of {options.batch}{reset}",
        **stream.protocol,
        "answers": "before the update with the same batch",
    }
