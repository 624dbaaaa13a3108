"""The stages of a calibration: the network it is made with, its parts, and the file that they make."""

from __future__ import annotations

from collections.abc import Iterator

from driftline.data import Dataset
from driftline.engine.build import build_calibration
from driftline.engine.stages import Calibrate, CalibrationPart, Pretrain, Stage
from driftline.spec.job import Job
from driftline.spec.keys import calibration_key, pretrain_key


def calibration_stages(job: Job, dataset: Dataset, *, pretrained: bool) -> Iterator[Stage]:
    """Yield the stages of the calibration that a run needs, the whole last; none if it needs none.

    `pretrained`: whether the network is trained on upstream samples.
    """
    calibrated = job.calibration_job()
    if calibrated is not None:
        yield from stages_of(calibrated, dataset, pretrained=pretrained)


def stages_of(job: Job, dataset: Dataset, *, pretrained: bool) -> Iterator[Stage]:
    """Yield the stages of a calibration; `job`: see `Job.calibration_job`."""
    model = pretrain_key(job, dataset.fingerprint) if pretrained else None
    if model is not None:
        yield Pretrain(model, job)
    parts = build_calibration(job, dataset).parts
    keys = [calibration_key(job, dataset.fingerprint, part) for part in parts]
    for key, part in zip(keys, parts, strict=True):
        yield CalibrationPart(key, job, part, model)
    yield Calibrate(calibration_key(job, dataset.fingerprint), job, tuple(keys))
