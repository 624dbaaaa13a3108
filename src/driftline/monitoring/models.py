"""Answers of the deployed model and of challengers, and how good they are.

No model is stored: the watch file keeps rows, and a model is trained on them again with the same seed, which gives the
same model. So nothing that could run code is ever loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from driftline.models.tabular import row_index_model
from driftline.monitoring.rows import Columns, Rows
from driftline.seeds import Seed
from driftline.tasks import Classification
from driftline.types import Answers

BLOCKS = 10  # of consecutive rows, which go to the two halves in turn
RARE = 0.2  # below this share of the rarest class, errors are weighted by class


@dataclass(frozen=True)
class ModelChoice:
    """A model by name, with the columns it takes."""

    name: str
    columns: Columns
    seed: int

    def answers(self, training: Rows, asked: Rows) -> Answers:
        """Train on rows with labels, and answer others."""
        training = training[training.y >= 0] if self.columns.labels is not None else training
        task = self.columns.task
        inputs = typed_inputs(Rows.concat([training, asked]).inputs, self.columns)
        model = row_index_model(inputs, self.name, task, self.columns.label_values, Seed(self.seed).child("init"))
        y = training.y if self.columns.labels is None else training.y.astype(np.int64)
        model.fit(np.arange(len(training)), task.targets(y))
        answers = task.decode(model.predict(np.arange(len(training), len(inputs))))
        return answers if hasattr(model.template.model, "predict_proba") else Answers(answers.prediction)

    def held_out_answers(self, rows: Rows, earlier: list[Rows]) -> Answers:
        """Answer each half of rows by a model of the other half and of earlier rows."""
        half = np.arange(len(rows)) * BLOCKS // max(len(rows), 1) % 2
        order, found = [], []
        for k in (0, 1):
            inside = np.flatnonzero(half == k)
            order.append(inside)
            found.append(self.answers(Rows.concat([*earlier, rows[half != k]]), rows[inside]))
        back = np.argsort(np.concatenate(order))
        return Answers.concat(found)[back]


@dataclass(frozen=True, eq=False)
class AnsweredRows:
    """Rows and what the deployed model answered."""

    rows: Rows
    answers: Answers

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, chosen: np.ndarray) -> AnsweredRows:
        return AnsweredRows(self.rows[chosen], self.answers[chosen])

    @staticmethod
    def concat(parts: Sequence[AnsweredRows]) -> AnsweredRows:
        """Return the rows of all parts in order of time."""
        rows = Rows.concat([part.rows for part in parts])
        order = np.argsort(rows.time, kind="stable")
        return AnsweredRows(rows, Answers.concat([part.answers for part in parts]))[order]


def typed_inputs(inputs: pd.DataFrame, columns: Columns) -> pd.DataFrame:
    """Return inputs whose categories have the type of categories."""
    names = [name for name, kind in columns.kinds.items() if kind == "category"]
    return inputs.astype(dict.fromkeys(names, "category"))


def class_weights(y: np.ndarray, columns: Columns) -> np.ndarray:
    """Return a weight per class, at most 1: equal ones, or by rarity if a class is rare."""
    if columns.labels is None:
        return np.ones(1)
    shares = np.bincount(y.astype(int), minlength=len(columns.labels)) / len(y)
    if shares[shares > 0].min() >= RARE or len(shares) > 2:
        return np.ones(len(shares))
    weights = 1 / np.maximum(shares, 1 / len(y))
    return np.asarray(weights / weights.max())


def row_scores(answers: Answers, y: np.ndarray, columns: Columns, weights: np.ndarray) -> np.ndarray:
    """Return how good each answer is, from 0 to 1: 1 - Brier score / 2 with probabilities, else its correctness."""
    task = columns.task
    if not isinstance(task, Classification):
        return task.correct(answers.prediction, y)
    truth = y.astype(int)
    if answers.scores is None:
        good = task.correct(answers.prediction, truth)
    else:
        good = 1 - ((answers.scores - np.eye(task.width)[truth]) ** 2).sum(axis=1) / 2
    return np.asarray(good * weights[truth])
