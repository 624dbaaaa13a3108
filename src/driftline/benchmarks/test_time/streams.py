"""The stream of a run: drawn by an order of corruptions, read from files, or given."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from driftline.data import Dataset
from driftline.errors import UserError
from driftline.io.user_files import resolve
from driftline.seeds import Seed
from driftline.streams import (
    CorruptionStream,
    ImageFiles,
    OrderedImages,
    Shards,
    corruption_stream,
    image_files,
    ordered_images,
    read_matrices,
    shards,
)
from driftline.streams.test_time import schedule as orders
from driftline.streams.test_time.arrangement import Arrangement
from driftline.streams.test_time.markov import MarkovChain
from driftline.streams.test_time.stream import source_images
from driftline.tasks import Classification
from driftline.types import JsonObject, Samples

if TYPE_CHECKING:
    from driftline.benchmarks.test_time.benchmark import Options

Stream = CorruptionStream | ImageFiles | Shards
ONE_BY_ONE = ("cin-c", "standard", "cin-3dcc", "holdout")
"""Orders with one corruption after another at one severity."""


def build_stream(dataset: Dataset, options: Options, seed: Seed) -> tuple[Stream, JsonObject]:
    """Return the stream, and further entries for the card."""
    if options.order in ("given", "shards") and options.label_order != "shuffled":
        raise UserError(
            f"label_order={options.label_order}: with order={options.order}, files give the order of the images"
        )
    if options.stream is not None or options.order == "given":
        return _given_stream(dataset, options, seed), {}
    if options.order == "shards":
        if options.shards is None:
            raise UserError("order=shards reads images from tar files: give their folder with --shards FOLDER")
        return shards(options.shards, options.batch, options.images, dataset.task.width), {}
    schedule, about = build_schedule(options, seed.value)
    settings: JsonObject = {
        "n_images": options.images,
        "batch": options.batch,
        "images_per_point": options.images_per_point,
    }
    settings["seed"] = seed.child("test-time")
    stream: ImageFiles | CorruptionStream
    if options.order == "cin-3dcc" or options.files is not None:
        classes = dataset.task.classes if isinstance(dataset.task, Classification) else ()
        stream = image_files(_folder(options), schedule, classes, **settings)
    else:
        settings |= {"crop": options.random_parts, "jpeg": options.jpeg, "frost": options.frost}
        stream = corruption_stream(source_images(dataset), schedule, **settings)
    arrangement = _arrangement(options, dataset.task.width, len(schedule.points))
    if arrangement == Arrangement():
        return stream, about
    return replace(stream, places=arrangement.places(stream)), {**about, **arrangement.to_card()}


def _arrangement(options: Options, n_classes: int, n_domains: int) -> Arrangement:
    """Return the order of corruptions and labels, where it is not that of the schedule."""
    arrangement = Arrangement(options.label_order)
    if options.label_order == "practical":
        arrangement = replace(arrangement, concentration=options.label_concentration)
    if options.label_order == "chain":
        classes = MarkovChain(n_classes, options.class_correlation, options.class_imbalance, options.chain)
        arrangement = replace(arrangement, classes=classes)
    if options.order == "chain":
        domains = MarkovChain(n_domains, options.domain_correlation, options.domain_imbalance, options.chain)
        arrangement = replace(arrangement, domains=domains)
    return arrangement


def restarts(stream: Stream, options: Options) -> frozenset[int]:
    """Return the steps before which learners return to their first state."""
    if options.reset == "batch":
        return frozenset(range(len(stream)))
    if options.reset == "never":
        return frozenset()
    schedule = getattr(stream, "schedule", None)
    if options.order not in (*ONE_BY_ONE, "gradual") or schedule is None:
        raise UserError(f"reset=domain: with order={options.order}, corruptions do not come one after another")
    if options.images_per_point % options.batch:
        raise UserError(
            f"reset=domain: {options.images_per_point} images per point are not a multiple of the batch size "
            f"{options.batch}, so that batches would have two corruptions; change images_per_point or batch"
        )
    steps = options.images_per_point // options.batch
    points = [schedule.point(number).first for number in range(-(-options.images // options.images_per_point))]
    return frozenset(k * steps for k, name in enumerate(points) if k == 0 or name != points[k - 1])


def _given_stream(dataset: Dataset, options: Options, seed: Seed) -> OrderedImages:
    if options.stream is None:
        raise UserError("order=given shows images in the order of a file: give it with --stream FILE")
    if options.order != "given":
        raise UserError(f"stream={options.stream} gives the order of the images: leave out order={options.order}")
    settings = {name: getattr(options, name) for name in ("batch", "severity", "jpeg", "frost")}
    return ordered_images(dataset, options.stream, seed=seed.child("test-time"), crop=options.random_parts, **settings)


def _folder(options: Options) -> str:
    """Return the folder of published images; refuse options that do not apply to it."""
    if options.files is None:
        raise UserError(
            "order=cin-3dcc shows ImageNet-3DCC, whose corruptions are not made here: unpack its published files and "
            "give their folder with --files FOLDER (FOLDER/near_focus/5/CLASS/IMAGE.JPEG), or use --order shards"
        )
    if options.order not in (*ONE_BY_ONE, "chain"):
        raise UserError(
            f"files={options.files}: order={options.order} makes its images; use {', '.join(ONE_BY_ONE)} or chain"
        )
    for name in ("crop", "jpeg", "frost"):
        if getattr(options, name):
            raise UserError(f"{name}={getattr(options, name)}: published images are shown as they are; leave it out")
    return options.files


def build_schedule(options: Options, seed: int) -> tuple[orders.Schedule, JsonObject]:
    """Return the schedule, and its entries for the card."""
    if options.order == "ccc":
        return _ccc_schedule(options, seed)
    if options.order == "cin-3dcc":
        names = orders.corruption_names(options.corruptions or orders.CORRUPTIONS_3D, orders.CORRUPTIONS_3D)
    else:
        names = orders.corruption_names(options.corruptions or ("holdout" if options.order == "holdout" else "uniform"))
    if options.order == "gradual":
        return orders.gradual(orders.random_permutation(names, seed)), {"difficulty": "severity 1 to 5 and back"}
    if options.order == "chain":
        drawn = orders.random_permutation(names, seed)
        return orders.random_mixture(drawn, options.severity), {"difficulty": f"severity {options.severity:g}"}
    if options.order == "mixed":
        return orders.random_mixture(names, options.severity), {"difficulty": f"severity {options.severity:g}"}
    if options.order == "standard":
        return orders.sequential(names, options.severity), {"difficulty": f"severity {options.severity:g}"}
    every = orders.all_orders(names) if options.order == "holdout" and len(names) < 6 else None
    order = every[seed % len(every)] if every else orders.random_permutation(names, seed)
    return orders.sequential(order, options.severity), {"difficulty": f"severity {options.severity:g}"}


def _ccc_schedule(options: Options, seed: int) -> tuple[orders.Schedule, JsonObject]:
    names = orders.corruption_names(options.corruptions or options.difficulty)
    if options.calibration is None:  # while planning: the path is not known yet
        pairs = (orders.CorruptionPair(first, 2.5, second, 2.5) for first, second in pairwise(names))
        return orders.Schedule(tuple(pairs)), {"difficulty": "not calibrated yet"}
    matrices = read_matrices(resolve(options.calibration))
    target = orders.TARGET_ACCURACIES[options.difficulty] if options.target is None else options.target
    points = -(-options.images // options.images_per_point)
    schedule = orders.constant_difficulty(
        matrices, target, names, options.first_schedule_seed + seed, points, options.path
    )
    about = {"difficulty": f"{target:g} percent for the calibrated model", "calibration": dict(matrices.metadata)}
    return schedule, about


def upstream_images(dataset: Dataset, updates: int) -> Samples | None:
    """Return images to train on that are not in the stream; None if there are none and the model is pretrained."""
    test = dataset.test
    if test is not None and not test.all():
        return dataset.samples[~test]
    if updates:
        raise UserError(
            f"dataset '{dataset.name}' has no images to train on: give a pretrained model "
            "(--set model.weights=FILE) and --upstream-updates 0"
        )
    return None
