"""Calibrate a model outside a run: the stages that runs with `order=ccc` need, and a copy of their file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from driftline import registry
from driftline.data import using_data_folder
from driftline.engine.build import DatasetCache, build_scenario
from driftline.engine.executors.base import OnEvent, ignore_event
from driftline.engine.executors.config import ExecutorConfig
from driftline.engine.planning.calibration_stages import stages_of
from driftline.engine.planning.plan import Plan
from driftline.engine.run import run_plan
from driftline.engine.stages.calibrate import CalibrationFile
from driftline.errors import UserError
from driftline.io.atomic import write_bytes
from driftline.spec.job import Job
from driftline.store.store import Store
from driftline.streams.test_time.calibration import N_LEVELS, AccuracyMatrices, read_matrices
from driftline.types import JsonObject


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
    on_plan: Callable[[Plan], None] = lambda plan: None,
    on_event: OnEvent = ignore_event,
) -> AccuracyMatrices:
    """Return the matrices of a job's model on images of its data, written to `output` or read from it.

    They are those that runs with `order=ccc` make in the same store, and the model is that of its runs. Images larger
    than 224 pixels are center-cropped. `frost` is a folder with ImageNet-C's photographs of frost.
    """
    settings: JsonObject = {"order": "ccc", "corruptions": ",".join(names), "frost": frost and str(frost)}
    settings |= {"calibration": None, "calibration_images": images, "calibration_levels": levels}
    schema = registry.get("benchmark", job.benchmark).options
    options = schema(**{**job.options, **settings}).calibration_options()
    calibrated = job.model_copy(update={"options": options.model_dump(mode="json")})
    datasets = DatasetCache(data_dir)
    with using_data_folder(data_dir):
        dataset, scenario = build_scenario(calibrated, datasets)
        *needed, whole = stages_of(calibrated, dataset, pretrained=scenario.upstream is not None)
        if output.exists():
            return _read_existing(output, whole.key)
        plan = Plan((*needed, CalibrationFile(whole.key, whole.job, whole.needs)))
        on_plan(plan)
        summary = run_plan(plan, store, ExecutorConfig(jobs=jobs), datasets, on_event)
    if summary.failed:
        raise UserError(next(iter(summary.failed.values())))
    write_bytes(output, store.stage_path(whole.key).read_bytes())
    return read_matrices(output)


def _read_existing(output: Path, key: str) -> AccuracyMatrices:
    matrices = read_matrices(output)
    if matrices.metadata.get("key") != key:
        raise UserError(
            f"{output} holds a calibration of another model, data or setting: choose another -o, or move the file"
        )
    return matrices
