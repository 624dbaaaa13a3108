"""Groups of stages that cost the same: they differ only in the seed and in settings without effect on the work."""

from __future__ import annotations

import json
from collections.abc import Mapping

from driftline.engine.build import DatasetCache, build_scenario, stream_for
from driftline.engine.stages import Fit, Stage
from driftline.learners.fit_plan import FitSpec
from driftline.spec.job import Job
from driftline.spec.methods import method_facts


class StageGrouper:
    """Knows what decides the cost of the stages of a plan."""

    def __init__(self, fit_specs: Mapping[str, FitSpec], datasets: DatasetCache) -> None:
        self._fit_specs = fit_specs
        self._datasets = datasets
        self._sizes: dict[str, tuple[int, ...]] = {}

    def fit_spec(self, key: str) -> FitSpec:
        """Return what the fit of this fit key does."""
        return self._fit_specs[key]

    def step_sizes(self, job: Job) -> tuple[int, ...]:
        """Return the number of samples in each step of a job's stream."""
        parts = job.model_dump(mode="json", include={"benchmark", "options", "data"})
        key = json.dumps([parts, method_facts(job.method.name).is_oracle], sort_keys=True)
        if key not in self._sizes:
            stream = stream_for(job, build_scenario(job, self._datasets)[1])
            self._sizes[key] = tuple(len(stream[t].samples) for t in range(len(stream)))
        return self._sizes[key]

    def epoch_samples(self, stage: Stage) -> int:
        """Return the samples that an epoch of a fit goes through; 1 for other stages, which have no epochs."""
        if not isinstance(stage, Fit):
            return 1
        sizes = self.step_sizes(stage.job)
        return sum(sizes[step] for step in self.fit_spec(stage.fit_spec).train)

    def fingerprint(self, stage: Stage) -> str:
        """Return the fingerprint of a stage's data."""
        return self._datasets.load(stage.job.data).fingerprint
