"""BN: batch normalization with the statistics of each test batch; nothing is trained.

Schneider et al., "Improving robustness against common corruptions by covariate shift adaptation", NeurIPS 2020, and
Nado et al. 2020, without a prior from training and without a memory of earlier batches, as in the RDumb study.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from driftline.device import to_numpy
from driftline.errors import UserError
from driftline.learners.base import Learner
from driftline.learners.test_time.base import BatchSize, adapt_statistics, split_batches
from driftline.registry import register
from driftline.tasks import Task
from driftline.types import Answers, Inputs, Network, Reveal, Samples


@register("method", "bn")
@dataclass
class BN(Learner):
    """BN: batch normalization with the statistics of the test batch."""

    batch: BatchSize = 256  # maximum batch size; larger batches are split evenly

    min_reveal: ClassVar[Reveal] = Reveal.INPUTS
    requires = "network"
    min_batch: ClassVar[int] = 2

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        if adapt_statistics(model, task, "bn") == 1:
            raise UserError(
                "bn replaces the statistics of batch norm, and this network has no batch norm, so it would not adapt"
            )

    @torch.no_grad()
    def predict(self, x: Inputs) -> Answers:
        outputs = [self.model(part) for part in split_batches(self.model, x, self.batch, self.min_batch, "bn")]
        return self._task.decode(to_numpy(torch.cat(outputs)))
