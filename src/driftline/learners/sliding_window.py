"""Single images with the statistics of a window: any method in batches of the latest images.

`{name: sliding-window, method: tent, window: 64}`. A batch of one has no batch statistics. Here each new image is
answered together with the images before it, `window` in all, as the last of one batch. The method adapts whenever
`window` new images have come, to these images; in between it only predicts. So after k windows it has adapted as it
would have in batches of this size, but each answer came at once. The first image, alone, is shown twice.

A buffer for single images is usual in code for test-time adaptation, such as that of Marsden, Döbler and Yang,
"Universal Test-time Adaptation through Weight Ensembling, Diversity Weighting, and Prior Correction", WACV 2024.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from driftline.learners.periodic_reset import WrappingLearner
from driftline.registry import register
from driftline.tasks import Task
from driftline.types import Answers, Inputs, Network, Samples, concat_rows, take_rows


@register("method", "sliding-window")
@dataclass
class SlidingWindow(WrappingLearner):
    """Another method on batches of the latest inputs, for streams of single inputs."""

    window: Annotated[int, Field(ge=2)] = 64  # inputs in a batch, new and earlier ones

    min_batch: ClassVar[int] = 1

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.latest: Inputs | None = None
        self.n_new = 0

    @property
    def smallest_batch(self) -> int:
        return 1

    @property
    def batch_dependent(self) -> bool:
        return True

    def predict(self, x: Inputs) -> Answers:
        return _last(self.wrapped.predict(self._filled(self._with_latest(x))), len(x))

    def answer(self, x: Inputs) -> Answers:
        self.latest = self._with_latest(x)
        self.n_new += len(x)
        if self.n_new < self.window:
            return _last(self.wrapped.predict(self._filled(self.latest)), len(x))
        self.n_new = 0
        return _last(self.wrapped.answer(self._filled(self.latest)), len(x))

    def _with_latest(self, x: Inputs) -> Inputs:
        """Return these inputs after as many earlier ones as there is room for."""
        room = max(self.window - len(x), 0)
        if self.latest is None or not room:
            return x
        return concat_rows([take_rows(self.latest, slice(-room, None)), x])

    def _filled(self, x: Inputs) -> Inputs:
        """Return a batch that the method takes: of too few inputs, each twice."""
        return concat_rows([x, x]) if len(x) < self.wrapped.smallest_batch else x


def _last(answers: Answers, n: int) -> Answers:
    return answers[slice(-n, None)]
