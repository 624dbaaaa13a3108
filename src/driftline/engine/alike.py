"""Which stages cost the same: those that differ only in their seed and in numbers that change no amount of work."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from driftline import registry
from driftline.engine.stages import Stage, materials
from driftline.jobs import Job, learner_class
from driftline.state import declared
from driftline.training.trials import Trial

WORDS = {
    "upstream": "pretraining",
    "historical": "historical",
    "final": "final",
    "trial": "trials",
    "deploy": "probes and score",
}
"""What a table calls the stages, in the order in which they are computed."""


class Alike:
    """Sorts the stages of plans by what decides their cost."""

    def __init__(self, trials: Mapping[str, Trial], where: Path | None) -> None:
        self._trials = trials
        self._where = where
        self._sizes: dict[str, tuple[int, ...]] = {}

    def group(self, stage: Stage) -> str:
        """The same text for stages that cost the same."""
        job = stage.job
        said = {name: job[name] for name in ("benchmark", "options", "data", "model", "reveal")}
        if stage.kind == "upstream":
            said = {**said, "options": Job.model_validate(job).upstream_options(), "reveal": None}
            return _text("upstream", said, Job.model_validate(job).pretraining.model_dump(mode="json"))
        options = registry.get("benchmark", job["benchmark"]).options
        if stage.kind == "fit":
            said["options"] = {k: v for k, v in job["options"].items() if k not in options.fit_cost_free}
            return _text("fit", said, self._work(stage))
        said["options"] = {k: v for k, v in job["options"].items() if k not in options.cost_free}
        free = declared(learner_class(job["method"]["name"]), "cost_free")
        settings = {k: v for k, v in settings_of(job).items() if not (k in free and isinstance(v, int | float))}
        return _text("run", said, job["method"]["name"], settings)

    def word(self, stage: Stage) -> str:
        """What a table calls it."""
        if stage.kind != "fit":
            return WORDS[stage.kind]
        last = len(self.lessons(stage)) - 1
        return WORDS["final" if last in self._trials[stage.trial].train else "historical"]

    def rows(self, stage: Stage) -> int:
        """How many samples one epoch of a fit goes through; 1 for other stages, whose amounts are not comparable."""
        return sum(self._lengths(stage, self._trials[stage.trial].train)) if stage.kind == "fit" else 1

    def lessons(self, stage: Stage) -> tuple[int, ...]:
        """How many samples each step of a stage's stream has."""
        privileged = learner_class(stage.job["method"]["name"]).privileged
        key = _text([stage.job[name] for name in ("benchmark", "options", "data")], privileged)
        if key not in self._sizes:
            self._sizes[key] = _sizes(Job.model_validate(stage.job), privileged, self._where)
        return self._sizes[key]

    def _work(self, stage: Stage) -> dict[str, Any]:
        trial = self._trials[stage.trial]
        return {
            **trial.cost_key(),
            "train": self._lengths(stage, trial.train),
            "valid": self._lengths(stage, trial.valid),
        }

    def _lengths(self, stage: Stage, lessons: tuple[int, ...]) -> list[int]:
        known = self.lessons(stage)
        return [known[t] for t in lessons]


def settings_of(job: Mapping[str, Any]) -> dict[str, Any]:
    """A method's settings; of one that has still to choose, with the first that it may choose."""
    contest = job.get("contest")
    return {**job["method"]["settings"], **(contest["points"][0] if contest else {})}


def _sizes(job: Job, privileged: bool, where: Path | None) -> tuple[int, ...]:
    """The number of samples in each step."""
    _, layout = materials(job, where)
    stream = layout.richer if privileged and layout.richer is not None else layout.stream
    return tuple(len(stream[t].samples) for t in range(len(stream)))


def _text(*parts: Any) -> str:
    return json.dumps(parts, sort_keys=True)
