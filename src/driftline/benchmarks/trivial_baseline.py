"""The trivial baseline of a run: one constant answer, scored like the method and stored beside its scores.

The constant is the most frequent class among all labels in the run's record, or their mean for numbers: with hindsight,
so no constant that a learner could choose in time is expected to do better. The answers of the run are replaced by it
and scored with the metrics of the benchmark, so every benchmark has this baseline.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from driftline.benchmarks.base import Benchmark
from driftline.record.run import Run
from driftline.tasks import Classification, Regression, Task, TextToText
from driftline.text_answers import split_answers


@dataclass(frozen=True)
class ConstantRun(Run):
    """A run with every answer replaced by a constant."""

    @cached_property
    def labels(self) -> pd.Series:
        """The label of each recorded example, once; empty if the record has none."""
        tables = [super(ConstantRun, self).table(name) for name in ("answers", "probes")]
        found = [table[["id", "truth"]] for table in tables if {"id", "truth"} <= set(table)]
        return pd.concat(found).drop_duplicates("id")["truth"] if found else pd.Series(dtype=object)

    @cached_property
    def answer(self) -> int | float | str:
        if isinstance(self._task, Regression):
            return float(self.labels.mean())
        counts = self.labels.value_counts()
        most = counts.index[counts == counts.max()].min()
        return (split_answers(most) or ("",))[0] if isinstance(self._task, TextToText) else most

    def table(self, name: str) -> pd.DataFrame:
        """Return `answers` or `probes` with the constant as prediction; other tables are empty."""
        frame = super().table(name) if name in ("answers", "probes") else pd.DataFrame()
        if "truth" not in frame:
            return frame
        known, place = np.unique(frame["truth"].to_numpy(), return_inverse=True)
        right = self._task.correct(np.full(len(known), self.answer, dtype=known.dtype), known)[place]
        constant = {"distance": 0.0} if "distance" in frame else {}
        return frame.assign(prediction=self.answer, correct=right, confidence=1.0, **constant)

    @cached_property
    def _task(self) -> Task:
        data = self.card.data
        if data.kind == "Regression":
            scale = re.search(r"scale=([-+.\de]+)", data.task)
            return Regression(scale=float(scale[1]) if scale else 1.0)
        return TextToText() if data.kind == "TextToText" else Classification(())


def trivial_scores(benchmark: Benchmark, run: Run) -> pd.DataFrame:
    """Return the summary scores of the constant answer; empty if the record has no labels."""
    constant = ConstantRun(run.folder)
    if constant.labels.empty:
        return pd.DataFrame()
    scores = benchmark.score(constant)
    return scores[scores["stat"] != "each"]
