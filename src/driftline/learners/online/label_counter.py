"""When an online learner trains: a count of labels and three schedules."""

from __future__ import annotations

from typing import Literal

from driftline.io.serialization import Stateful

TrainSchedule = Literal["every", "doubling", "new-classes"]
NEVER = 1 << 62


class LabelCounter(Stateful):
    """The number of labels so far, and the number until the next training.

    `schedule`: train every `train_every` labels; or after `train_every`, twice and four times as many; or after
    `train_every` labels of classes that were never trained on. With 0 it never trains.
    """

    def __init__(self, train_every: int, schedule: TrainSchedule) -> None:
        self.train_every, self.schedule = train_every, schedule
        self.n_labels = 0
        self.n_labels_at_training = 0  # labels at the latest training
        self.n_new_class_labels = 0  # labels since then of classes that were never trained on

    def add(self, new_class: bool) -> None:
        """Count one label."""
        self.n_labels += 1
        self.n_new_class_labels += int(new_class)

    def restart(self) -> None:
        """Note that a training took place."""
        self.n_labels_at_training, self.n_new_class_labels = self.n_labels, 0

    def until_training(self) -> int:
        """Return the number of labels until the next training, at least; 0 or less if it is due.

        >>> counter = LabelCounter(3, "every")
        >>> counter.add(new_class=False)
        >>> counter.until_training()
        2
        """
        if self.train_every == 0:
            return NEVER
        if self.schedule == "new-classes":
            return self.train_every - self.n_new_class_labels
        if self.schedule == "doubling":
            return max(self.train_every, 2 * self.n_labels_at_training) - self.n_labels
        return self.n_labels_at_training + self.train_every - self.n_labels
