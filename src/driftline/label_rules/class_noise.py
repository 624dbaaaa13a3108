"""Class noise: labels of some classes are shown as certain other classes.

The asymmetric noise of CIFAR-10 (Patrini et al., "Making Deep Neural Networks Robust to Label Noise", CVPR 2017) is
`pairs=[truck>automobile, bird>airplane, deer>horse, cat>dog, dog>cat]`.
"""

from dataclasses import dataclass

import numpy as np

from driftline.errors import UserError, unknown_name
from driftline.label_rules.base import LabelRule, Rate
from driftline.registry import register
from driftline.seeds import Seed
from driftline.tasks import Task


@register("label-rule", "class-noise")
@dataclass
class ClassNoise(LabelRule):
    """Wrong labels: a class is taken for another one, by default each for the next and the last for the first."""

    rate: Rate = 0.2  # share of wrong labels of each of these classes
    pairs: tuple[str, ...] = ()  # true and shown class, such as "cat>dog", with a rate of its own as "cat>dog:0.4"

    def prepare(self, task: Task, seed: Seed) -> None:
        super().prepare(task, seed)
        classes = self.need_classes()
        self.target = np.arange(len(classes))
        self.rates = np.zeros(len(classes))
        if not self.pairs:
            self.target, self.rates = np.roll(self.target, -1), np.full(len(classes), self.rate)
        for pair in self.pairs:
            names, _, rate = pair.partition(":")
            true, arrow, shown = (part.strip() for part in names.partition(">"))
            for name in (true, shown):
                if not arrow or name not in classes:
                    raise unknown_name("class", name, classes, f" (in the pair '{pair}' of class-noise)")
            self.target[classes.index(true)] = classes.index(shown)
            self.rates[classes.index(true)] = _rate(rate, pair) if rate else self.rate

    def shown(self, y: np.ndarray, positions: np.ndarray) -> np.ndarray:
        wrong = self.draws(positions) < self.rates[y]
        return np.where(wrong, self.target[y], y).astype(y.dtype)


def _rate(text: str, pair: str) -> float:
    """Return the rate of a pair; refuse one that is not a share."""
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0 <= rate < 1:
        raise UserError(f"class-noise: the rate in '{pair}' is not a number from 0 to below 1")
    return rate
