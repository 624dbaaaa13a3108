"""Calibration: how often a fixed model is right under each pair of corruptions at each pair of severities.

The work falls into rows: one corruption at one level, followed by every other one at every level. The images of a row
are corrupted by the first corruption once. A finished row is kept, so that a calibration that was stopped goes on where
it was; rows are independent, so that any number of workers gives the same matrices. Each image keeps its random
numbers throughout: its noise differs from level to level in strength, not in pattern. What is measured without a
first corruption therefore holds for every pair, and is measured once.
"""

from __future__ import annotations

import hashlib
import shutil
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from driftline import parallel, state
from driftline.data import Dataset, looking_in
from driftline.engine.execute import one_thread
from driftline.engine.stages import Report, Stage, materials, new_model, perform
from driftline.errors import UserError
from driftline.jobs import Job, hash_of
from driftline.learners.frozen import Frozen
from driftline.seeds import Seed
from driftline.shifts import crops
from driftline.shifts.corruptions import frost_source
from driftline.store import Store
from driftline.streams.corrupted import Corrupt, keys, own_corruptions, pool
from driftline.streams.matrices import LEVELS, Matrices, Pair, read_matrices, severity, write_matrices
from driftline.training.model import as_model
from driftline.types import Samples

Predict = Callable[[np.ndarray], np.ndarray]
"""Images in bytes to class indices."""
CLEAN = "clean"
Row = tuple[str, int]  # the first corruption and its level; ("clean", 0) for none


@dataclass(frozen=True, eq=False)
class Bench:
    """What is measured: a model on some images under some corruptions."""

    predict: Predict
    images: np.ndarray
    labels: np.ndarray
    names: tuple[str, ...]
    levels: int
    keys: np.ndarray
    corrupt: Corrupt
    stop: threading.Event = field(default_factory=threading.Event)

    @property
    def rows(self) -> list[Row]:
        return [(CLEAN, 0), *((name, level) for name in self.names for level in range(1, self.levels))]

    def right(self, row: Row) -> np.ndarray:
        """How many images the model gets right, by second corruption and its level; level 0 in the clean row only."""
        first, level = row
        images = self._corrupted(self.images, first, level)
        right = np.zeros((len(self.names), self.levels), np.int64)
        if first == CLEAN:
            right[:, 0] = self._count(images)
        for k, second in enumerate(self.names):
            for j in range(1, self.levels) if second != first else ():
                right[k, j] = self._count(self._corrupted(images, second, j))
        return right

    def _corrupted(self, images: np.ndarray, name: str, level: int) -> np.ndarray:
        return self.corrupt(images, name, severity(level, self.levels), self.keys) if level else images

    def _count(self, images: np.ndarray) -> int:
        if self.stop.is_set():
            raise CancelledError
        return int((self.predict(images) == self.labels).sum())

    def matrices(self, right: dict[Row, np.ndarray]) -> dict[Pair, np.ndarray]:
        """Accuracies in percent from the counts of all rows."""
        of: dict[Pair, np.ndarray] = {}
        alone = right[CLEAN, 0]
        for a, first in enumerate(self.names):
            for b, second in enumerate(self.names):
                if first != second:
                    rows = [right[first, i][b] for i in range(1, self.levels)]
                    counts = np.stack([alone[b], *rows])
                    counts[1:, 0] = alone[a, 1:]
                    of[first, second] = 100 * counts / len(self.labels)
        return of


def calibrate(
    predict: Predict,
    images: np.ndarray,
    labels: np.ndarray,
    names: Sequence[str],
    *,
    levels: int = LEVELS,
    seed: Seed = Seed(0),
    corrupt: Corrupt | None = None,
    parts: Path | None = None,
    jobs: int = 1,
    report: Report = lambda done, of: None,
) -> Matrices:
    """Matrices for every ordered pair of `names`; `predict` gives class indices for images in bytes.

    `parts` is a folder in which finished rows are kept; what is found there is not measured again. `jobs` threads work
    side by side. `report` is told how many of how many rows are done.
    """
    if len(set(names)) < max(len(names), 2):
        raise UserError(f"calibration is for pairs: name at least two corruptions, each once; got {', '.join(names)}")
    if levels < 2:
        raise UserError(f"levels={levels}: give at least 2, no corruption and the hardest; CCC has {LEVELS}")
    drawn = keys(seed.child("noise"), np.arange(len(labels)))
    bench = Bench(predict, images, labels, tuple(names), levels, drawn, corrupt or own_corruptions())
    with one_thread():
        right = parallel.map(
            lambda row: _kept(bench, row, parts),
            bench.rows,
            jobs,
            on_done=lambda row, done: report(done, len(bench.rows)),
            stop=bench.stop,
        )
    return Matrices(bench.matrices(dict(zip(bench.rows, right, strict=True))))


def _kept(bench: Bench, row: Row, parts: Path | None) -> np.ndarray:
    """The counts of a row, from the disk if they are there."""
    if parts is None:
        return bench.right(row)
    path = parts / f"{row[0]}-{row[1]:02d}.safetensors"
    if not state.readable(path):
        state.save({"right": bench.right(row)}, path)
    counts: np.ndarray = state.load(path)["right"]
    return counts


def calibrate_model(
    job: Job,
    names: Sequence[str],
    output: Path,
    *,
    images: int,
    levels: int = LEVELS,
    store: Store,
    where: Path | None = None,
    frost: Path | None = None,
    jobs: int = 1,
    report: Report = lambda done, of: None,
) -> Matrices:
    """Matrices of a job's model on images of its data, written to `output`; if they are there, they are read.

    A model that is trained on the spot is that of the job's runs: the same upstream stage of the same store. The
    images are drawn from those that streams draw from; of images larger than 224 pixels the centre is taken. `frost` is
    a folder with ImageNet-C's photographs of frost.
    """
    with looking_in(where):
        model, dataset, weights = starting_model(job, store, where)
    seed = Seed(job.seed).child("calibration")
    samples = _drawn(dataset, images, seed)
    decisive = {
        "weights": weights,
        "fingerprint": dataset.fingerprint,
        "images": images,
        "levels": levels,
        "corruptions": list(names),
        "frost": frost_source(frost),
        "seed": job.seed,
    }
    key = hash_of(decisive)
    if output.exists():
        return _present(output, key)
    parts = output.with_name(f"{output.name}.{key}.parts")
    measured = calibrate(
        _answering(model, dataset),
        crops.centred(samples.x),
        samples.y,
        names,
        levels=levels,
        seed=seed,
        corrupt=own_corruptions(frost),
        parts=parts,
        jobs=jobs,
        report=report,
    )
    about = {"model": job.model.short(), "data": job.data.short(), **decisive, "key": key}
    matrices = Matrices(measured.of, about)
    write_matrices(matrices, output)
    shutil.rmtree(parts)
    return matrices


def _answering(model: Any, dataset: Dataset) -> Predict:
    """The model as it is, answering."""
    learner = Frozen()
    learner.prepare(model, dataset.task)
    return lambda x: learner.predict(x).prediction


def starting_model(job: Job, store: Store, where: Path | None) -> tuple[Any, Dataset, str]:
    """The model that every method of a job begins with, trained if it must be; its data; a hash of its weights."""
    dataset, layout = materials(job, where)
    model = new_model(job, dataset)
    if layout.upstream is not None:
        stage = Stage(job.upstream_key(dataset.fingerprint), "upstream", job.model_dump(mode="json"))
        perform(stage, store, where)
        trained = state.load(store.stage_path(stage.key))["model"]
        as_model(model).restore(trained)
        if not as_model(model).is_network:
            return model, dataset, stage.key
    return model, dataset, _hash(model.state_dict().items())


def _hash(weights: Iterable[tuple[str, Any]]) -> str:
    digest = hashlib.sha256()
    for name, tensor in weights:
        digest.update(name.encode() + tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


def _drawn(dataset: Dataset, images: int, seed: Seed) -> Samples:
    source = pool(dataset)
    if not 1 <= images <= len(source):
        raise UserError(f"images={images}: dataset '{dataset.name}' has {len(source):,} images to calibrate on")
    return source[seed.child("images").numpy().permutation(len(source))[:images]]


def _present(output: Path, key: str) -> Matrices:
    found = read_matrices(output)
    if found.about.get("key") != key:
        raise UserError(
            f"{output} holds a calibration of another model, data or setting: choose another -o, or move it"
        )
    return found
