"""Labels of what was acted on: a label is known only if the answer led to an action.

A loan that was refused never shows whether it would have been paid back: selective labels (Lakkaraju et al., "The
Selective Labels Problem", KDD 2017), or verification bias (Begg and Greenes, "Assessment of Diagnostic Tests When
Disease Verification Is Subject to Selection Bias", Biometrics 1983). With exploration, the probability that a label is
revealed is positive for every answer and known, so that accuracy on revealed labels can be corrected for it.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from driftline.errors import UserError, unknown_name
from driftline.label_rules.base import LabelRule
from driftline.registry import register
from driftline.seeds import Seed
from driftline.tasks import Classification, Regression, Task
from driftline.types import Answers


@register("label-rule", "acted-on")
@dataclass
class ActedOn(LabelRule):
    """Only the labels of samples whose answer led to an action, and of a share of the others."""

    classes: tuple[str, ...] = ()  # classes that lead to an action; none: all but the first
    threshold: float | None = None  # minimum score of the answered class, or minimum answered number, for an action
    explore: Annotated[float, Field(ge=0, le=1)] = 0.0  # share of the other samples whose labels are revealed as well

    uses_answers: ClassVar[bool] = True

    def prepare(self, task: Task, seed: Seed) -> None:
        super().prepare(task, seed)
        if isinstance(task, Regression):
            if self.threshold is None or self.classes:
                raise UserError("acted-on: answers are numbers here, so give a threshold and no classes")
            return
        names = self.need_classes()
        for name in self.classes:
            if name not in names:
                raise unknown_name("class", name, names, " (in the classes of acted-on)")
        self.positive = np.array([name in self.classes if self.classes else k > 0 for k, name in enumerate(names)])

    @property
    def needs_scores(self) -> bool:
        return self.threshold is not None and isinstance(self.task, Classification)

    def selects(self, answers: Answers, positions: np.ndarray) -> np.ndarray:
        return self.acts(answers) | (self.draws(positions) < self.explore)

    def propensity(self, answers: Answers) -> np.ndarray | None:
        if self.explore == 0:  # nothing is known about answers without an action
            return None
        return np.where(self.acts(answers), 1.0, self.explore)

    def acts(self, answers: Answers) -> np.ndarray:
        """Return which answers lead to an action."""
        prediction = np.asarray(answers.prediction)
        if isinstance(self.task, Regression):
            assert self.threshold is not None
            above: np.ndarray = prediction >= self.threshold
            return above
        acted: np.ndarray = self.positive[prediction.astype(int)]
        if self.threshold is not None:
            assert answers.scores is not None
            acted = acted & (answers.scores[np.arange(len(prediction)), prediction.astype(int)] >= self.threshold)
        return acted
