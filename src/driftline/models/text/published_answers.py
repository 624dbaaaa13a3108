"""A published model of which only the answers are known.

Some files hold a published model's answer to every sample (`Dataset.published_answers`). That is enough to score it
without refinement.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from driftline.errors import UserError
from driftline.models.sklearn_models import SklearnModel
from driftline.registry import register
from driftline.seeds import Seed
from driftline.types import Inputs

AnswerTable = tuple[Sequence[str], Sequence[str]]
"""Inputs, and the published answer to each."""


class PublishedAnswersModel(SklearnModel):
    """A model that repeats published answers and ignores training data."""

    generates_text: ClassVar[bool] = True
    is_pretrained: ClassVar[bool | None] = True

    def __init__(self, published_answers: AnswerTable) -> None:
        super().__init__(None, 0)
        self._answers = dict(zip(*published_answers, strict=True))

    def __repr__(self) -> str:
        return "the model 'published-answers'"

    def fit(self, x: Inputs, y: np.ndarray) -> None:
        """Do nothing."""

    def predict(self, x: Inputs) -> np.ndarray:
        """Return the published answers."""
        strange = next((one for one in x if one not in self._answers), None)
        if strange is not None:
            raise UserError(
                f"no published answer to {str(strange)[:40]!r}: the model 'published-answers' has answers only to the "
                "samples of its dataset"
            )
        return np.array([self._answers[one] for one in x], dtype=object)


@register("model", "published-answers")
def published_answers(
    shape: tuple[int, ...], outputs: int, seed: Seed, published_answers: AnswerTable | None = None
) -> PublishedAnswersModel:
    """A published model's own answers, where the data hold them (qa, nli); it cannot learn."""
    if published_answers is None:
        raise UserError(
            "the model 'published-answers' repeats a published model's answers, and these data hold none: use qa, nli "
            "or text-to-text with files in which every record has its answer"
        )
    if outputs:
        raise UserError("the model 'published-answers' answers with texts, but this task has classes: use answers=text")
    return PublishedAnswersModel(published_answers)
