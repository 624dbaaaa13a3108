"""Pretraining: the model that all methods of a seed with the same pretraining start from."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

from driftline.engine.build import build_model, build_pretrainer, build_scenario
from driftline.engine.stages.base import Stage, StageContext, Workload, cost_text
from driftline.engine.stages.metering import metered
from driftline.io import serialization
from driftline.spec.keys import pretrain_key
from driftline.training.model import as_model


@dataclass(frozen=True)
class Pretrain(Stage):
    """Train a model on the upstream samples."""

    kind: ClassVar[str] = "pretrain"
    shareable: ClassVar[bool] = True
    profile_weight: ClassVar[int] = 4  # the cost of later training depends on how good the pretrained model is

    @property
    def title(self) -> str:
        return f"pretraining seed {self.job.seed}"

    @property
    def needs(self) -> tuple[str, ...]:
        return ()

    def current_key(self, fingerprint: str) -> str:
        return pretrain_key(self.job, fingerprint)

    def cost_key(self, workload: Workload) -> str:
        parts = self.job.model_dump(mode="json", include={"benchmark", "data", "model"})
        return cost_text(self.kind, parts, self.job.pretrain_options(), self.job.pretraining.model_dump(mode="json"))

    def cost_title(self, workload: Workload) -> str:
        return "pretraining"

    def compute(self, context: StageContext) -> None:
        started = time.perf_counter()
        dataset, scenario = build_scenario(self.job, context.datasets)
        upstream, model = scenario.upstream, build_model(self.job, dataset)
        meter = metered(model, context.profiler)
        assert upstream is not None
        if not as_model(model).is_network:
            model.fit(upstream.x, dataset.task.targets(upstream.y))
        else:
            pretrainer = build_pretrainer(self.job, scenario)
            pretrainer.prepare(model, dataset.task)
            pretrainer.train(upstream.x, upstream.y)
            loaded = as_model(model).loaded_weights
            if loaded is not None and loaded.head == "new" and pretrainer.updates == 0:
                from driftline.pretraining.episodic import zero_head

                zero_head(model)  # the head was never trained: it knows no class
        macs = (meter.forward, meter.backward) if meter else None
        seconds = time.perf_counter() - started
        saved = {"model": serialization.to_tree(model), "macs": macs, "seconds": seconds}
        serialization.save(saved, context.store.stage_path(self.key))
