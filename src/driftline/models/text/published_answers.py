"""A published model that is known by its answers alone.

Some files hold, with every sample, what a published model said (`Dataset.said`). That is enough to measure it as it
was, unrefined: where it errs, and what the stream's queries would have met.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from driftline.errors import UserError
from driftline.models.sklearn_models import SklearnModel
from driftline.registry import register
from driftline.seeds import Seed

AnswerTable = tuple[Sequence[str], Sequence[str]]
"""Inputs, and what was said of each."""


class PublishedAnswersModel(SklearnModel):
    """Says what was said before. It comes trained: lessons are passed over."""

    generates_text: ClassVar[bool] = True

    def __init__(self, published_answers: AnswerTable) -> None:
        super().__init__(None, 0)
        self._answers = dict(zip(*published_answers, strict=True))

    def __repr__(self) -> str:
        return "the model 'released'"

    def fit(self, x: Any, y: np.ndarray) -> None:
        """It stays what it is."""

    def predict(self, x: Any) -> np.ndarray:
        """Return the published answers."""
        strange = next((one for one in x if one not in self._answers), None)
        if strange is not None:
            raise UserError(
                f"what the published model says of {str(strange)[:40]!r} is not known: the model 'released' has "
                "answers to the samples of its dataset alone"
            )
        return np.array([self._answers[one] for one in x], dtype=object)


@register("model", "published-answers")
def published_answers(
    shape: tuple[int, ...], outputs: int, seed: Seed, published_answers: AnswerTable | None = None
) -> PublishedAnswersModel:
    """A published model's own answers, where the data hold them (qa, nli); it cannot learn."""
    if published_answers is None:
        raise UserError(
            "the model 'released' repeats what a published model said, and these data do not hold it: use qa, nli or "
            "text-to-text with files in which every record has its answer"
        )
    if outputs:
        raise UserError("the model 'released' says texts, and here one of some classes is asked for: use answers=text")
    return PublishedAnswersModel(published_answers)
