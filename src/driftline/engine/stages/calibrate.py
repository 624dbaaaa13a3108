"""Calibration: measurements of the initial model that streams are made from, the same for all methods and seeds."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from driftline.device import to_numpy
from driftline.engine.build import build_calibration, build_model, build_scenario, load_pretrained
from driftline.engine.stages.base import Stage, StageContext, Workload, cost_text
from driftline.engine.stages.metering import metered
from driftline.io import serialization
from driftline.spec.keys import calibration_key, sources_hash
from driftline.training.model import as_model
from driftline.types import Network


@dataclass(frozen=True)
class CalibrationPart(Stage):
    """Measure one part; an interrupted one resumes."""

    part: str
    pretrained: str | None
    """The key of the pretrained model, if there is one."""

    kind: ClassVar[str] = "calibration-part"
    shareable: ClassVar[bool] = True

    @property
    def title(self) -> str:
        return f"calibration: {self.part}"

    @property
    def needs(self) -> tuple[str, ...]:
        return () if self.pretrained is None else (self.pretrained,)

    def current_key(self, fingerprint: str) -> str:
        return calibration_key(self.job, fingerprint, self.part)

    def cost_key(self, workload: Workload) -> str:
        parts = self.job.model_dump(mode="json", include={"benchmark", "data", "model", "options"})
        return cost_text(self.kind, parts)

    def cost_title(self, workload: Workload) -> str:
        return "calibration"

    def compute(self, context: StageContext) -> None:
        started, store = time.perf_counter(), context.store
        dataset, _ = build_scenario(self.job, context.datasets)
        model = build_model(self.job, dataset)
        if self.pretrained is not None:
            load_pretrained(model, store.stage_path(self.pretrained))
        meter = metered(model, context.profiler)

        def predict(x: np.ndarray) -> np.ndarray:
            return dataset.task.decode(as_model(model).predict(x)).prediction

        rows = store.work_folder(self.key) / sources_hash()
        measured = build_calibration(self.job, dataset).measure(self.part, predict, rows, context.on_progress)
        cost = {"macs": (meter.forward, meter.backward) if meter else None, "seconds": time.perf_counter() - started}
        weights = _hash(model) if meter else self.pretrained
        serialization.save({**measured, "weights": weights, **cost}, store.stage_path(self.key))
        store.remove_work_folder(self.key)


@dataclass(frozen=True)
class Calibrate(Stage):
    """Put the parts of a calibration together; the result is a calibration file."""

    parts: tuple[str, ...]
    """Keys of the parts."""

    kind: ClassVar[str] = "calibration"
    shareable: ClassVar[bool] = True

    @property
    def title(self) -> str:
        return "calibration"

    @property
    def needs(self) -> tuple[str, ...]:
        return self.parts

    def current_key(self, fingerprint: str) -> str:
        return calibration_key(self.job, fingerprint)

    def cost_key(self, workload: Workload) -> None:
        return None

    def cost_title(self, workload: Workload) -> str:
        return "calibration"

    def compute(self, context: StageContext) -> None:
        dataset = context.datasets.load(self.job.data)
        calibration = build_calibration(self.job, dataset)
        measured = [serialization.load(context.store.stage_path(key)) for key in self.parts]
        about = {
            "model": self.job.model.short(),
            "data": self.job.data.short(),
            "weights": measured[0]["weights"],
            "fingerprint": dataset.fingerprint,
            **calibration.settings,
            "seed": self.job.seed,
            **self.job.content(set()),
            "key": self.key,
        }
        serialization.save(calibration.combine(measured, about), context.store.stage_path(self.key))


@dataclass(frozen=True)
class CalibrationFile(Calibrate):
    """A calibration that is requested on its own."""

    kind: ClassVar[str] = "calibration-file"
    is_result: ClassVar[bool] = True


def _hash(network: Network) -> str:
    """Return a hash of the weights."""
    digest = hashlib.sha256()
    for name, tensor in network.state_dict().items():
        digest.update(name.encode() + np.ascontiguousarray(to_numpy(tensor)).tobytes())
    return digest.hexdigest()[:16]
