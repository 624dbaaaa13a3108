"""Calibrate a model: measure the accuracies that CCC streams are made from, and write them to a file."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from driftline import device
from driftline.calibration.grid import Predict, calibrate
from driftline.corruptions import cropping, frost_source
from driftline.data import Dataset, using_data_folder
from driftline.engine.build import DatasetCache, build_learner, build_model, build_scenario, load_pretrained
from driftline.engine.stages import Pretrain, StageContext
from driftline.engine.stages.base import OnProgress, ignore_progress
from driftline.errors import UserError
from driftline.seeds import Seed
from driftline.spec.job import Job
from driftline.spec.keys import pretrain_key, stable_hash
from driftline.spec.settings import Choice, with_defaults
from driftline.store.store import Store
from driftline.streams.test_time.calibration import N_LEVELS, AccuracyMatrices, read_matrices, write_matrices
from driftline.streams.test_time.stream import builtin_corruptions, source_images
from driftline.training.model import as_model
from driftline.types import Network, Samples


def calibrate_model(
    job: Job,
    names: Sequence[str],
    output: Path,
    *,
    images: int,
    levels: int = N_LEVELS,
    store: Store,
    data_dir: Path | None = None,
    frost: Path | None = None,
    jobs: int = 1,
    on_progress: OnProgress = ignore_progress,
) -> AccuracyMatrices:
    """Return the matrices of a job's model on images of its data, written to `output` or read from it.

    A model that is trained here is that of the job's runs: the same Pretrain stage of the same store. Images larger
    than 224 pixels are center-cropped. `frost` is a folder with ImageNet-C's photographs of frost.
    """
    predict, dataset, weights = _frozen_model(job, store, data_dir)
    settings = {"weights": weights, "fingerprint": dataset.fingerprint, "images": images, "levels": levels}
    settings |= {"corruptions": list(names), "frost": frost_source(frost), "seed": job.seed, **job.content(set())}
    key, seed = stable_hash(settings), Seed(job.seed).child("calibration")
    samples = _draw_images(dataset, images, seed)
    if output.exists():
        return _read_existing(output, key)
    parts = output.with_name(f"{output.name}.{key}.parts")
    measured = calibrate(
        predict,
        cropping.center_crops(np.asarray(samples.x)),
        samples.y,
        names,
        levels=levels,
        seed=seed,
        corrupt=builtin_corruptions(frost),
        parts=parts,
        jobs=jobs,
        on_progress=on_progress,
    )
    metadata = {"model": job.model.short(), "data": job.data.short(), **settings, "key": key}
    return _finish(AccuracyMatrices(measured.by_pair, metadata), output, parts)


def initial_model(job: Job, store: Store, datasets: DatasetCache) -> tuple[Network, Dataset, str]:
    """Return the model that all methods of a job start with, its data, and a hash of its weights.

    The model is pretrained if the job's scenario says so.
    """
    dataset, scenario = build_scenario(job, datasets)
    model = build_model(job, dataset)
    if scenario.upstream is not None:
        stage = Pretrain(pretrain_key(job, dataset.fingerprint), job)
        stage.run(StageContext(store, datasets))
        load_pretrained(model, store.stage_path(stage.key))
        if not as_model(model).is_network:
            return model, dataset, stage.key
    return model, dataset, _hash(model.state_dict().items())


def _frozen_model(job: Job, store: Store, data_dir: Path | None) -> tuple[Predict, Dataset, str]:
    """Return the predictions of the job's initial model, which never changes, its data and a hash of its weights."""
    datasets = DatasetCache(data_dir)
    with using_data_folder(data_dir), device.use(job.device):
        model, dataset, weights = initial_model(job, store, datasets)
        frozen = job.model_copy(update={"method": with_defaults("method", Choice(name="frozen"))})
        learner = build_learner(frozen, model, *build_scenario(frozen, datasets))

    def predict(x: np.ndarray) -> np.ndarray:
        with device.use(job.device):  # in each thread: a context belongs to one
            return learner.predict(x).prediction

    return predict, dataset, weights


def _hash(weights: Iterable[tuple[str, Any]]) -> str:
    digest = hashlib.sha256()
    for name, tensor in weights:
        digest.update(name.encode() + tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


def _draw_images(dataset: Dataset, images: int, seed: Seed) -> Samples:
    source = source_images(dataset)
    if not 1 <= images <= len(source):
        raise UserError(f"images={images}: dataset '{dataset.name}' has {len(source):,} images to calibrate on")
    return source[seed.child("images").numpy().permutation(len(source))[:images]]


def _read_existing(output: Path, key: str) -> AccuracyMatrices:
    matrices = read_matrices(output)
    if matrices.metadata.get("key") != key:
        raise UserError(
            f"{output} holds a calibration of another model, data or setting: choose another -o, or move it"
        )
    return matrices


def _finish(matrices: AccuracyMatrices, output: Path, parts: Path) -> AccuracyMatrices:
    write_matrices(matrices, output)
    shutil.rmtree(parts)
    return matrices
