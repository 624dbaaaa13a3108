"""What a learner is shown once it has answered: nothing, its errors or all labels; now or late; all or some.

The contract is physical. The labels that are shown are copies, so no array in a learner's hands has a base or a
neighbour from which an unrevealed label could be read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from driftline.errors import UserError
from driftline.seeds import Seed
from driftline.tasks import Task
from driftline.types import Answers, Reveal, Step, join, take

Waiting = tuple[int, Any, np.ndarray, np.ndarray | None]
"""Labels on their way: since which step, inputs, labels, and the split if there is one."""


@dataclass
class Shown:
    """Inputs with the labels that have become known."""

    x: Any
    y: np.ndarray
    turns: Sequence[int] = ()
    """Of samples that come one by one: which they were, counted from the start of the stream."""
    split: np.ndarray | None = None
    """Which samples are for training and which for validation (`Samples.split`), where the benchmark decides it."""

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True)
class Turns:
    """The inputs of samples that come one by one."""

    x: Any
    first: int
    """How many there were before."""
    tell: Callable[[Any], Shown | None]
    """What becomes known once the next of them has been answered, with a prediction or `Answers` of one row.

    It is copied and recorded, with the scores and the distance if they are in it."""
    tell_many: Callable[[np.ndarray, Any, tuple[Any, ...]], None] | None = None
    """The labels of the next samples, one row of outputs each, to compiled code (`compiled.in_order`).

    The prediction for a sample is the arg max of its row just before its label is revealed. None if a label may come
    late."""

    def __len__(self) -> int:
        return self.x.shape[0] if hasattr(self.x, "shape") else len(self.x)


@dataclass
class Revealing:
    """The rule by which labels become known.

    `delay`: how many steps later they arrive; labels that would arrive after the stream's end never do.
    `budget`: at most so many labels per step, drawn at random from those that would be shown.
    `missing`: the share of labels that never arrive, drawn at random before any other rule.
    Where samples come one by one, each of them is a step to these rules.
    """

    task: Task
    level: Reveal
    seed: Seed
    delay: int = 0
    budget: int | None = None
    missing: float = 0.0
    waiting: list[Waiting] = field(default_factory=list)
    taken: int = 0
    """How many samples have come so far."""
    _given: list[Any] = field(default_factory=list, init=False, repr=False)
    """The predictions that were given before the labels of the present one-by-one step."""
    _rows_given: list[Answers] = field(default_factory=list, init=False, repr=False)
    """Copies of those among them that came as answers of one row."""

    def __call__(self, step: Step, answers: Answers) -> Shown | None:
        """What becomes known at the end of this step, or None."""
        rows = self._rows(step, answers)
        self.taken += len(step.samples)
        if len(rows):
            split = None if step.samples.split is None else step.samples.split[rows]
            self.waiting.append((step.index, take(step.samples.x, rows), np.array(step.samples.y[rows]), split))
        due = self._due(step.index)
        if not due:
            return None
        splits = [split for *_, split in due if split is not None]
        known = np.concatenate(splits) if len(splits) == len(due) else None
        return Shown(join([x for _, x, _, _ in due]), np.concatenate([y for _, _, y, _ in due]), split=known)

    def turns(self, step: Step) -> Turns:
        """The samples of a step one by one; a label is told only after its sample has been answered."""
        x, y, first = step.samples.x, step.samples.y, self.taken
        given, rows_given = self._given, self._rows_given = [], []
        arriving, always = self._arriving(step).tolist(), self.level is Reveal.LABELS
        at_once = always and self.delay == 0 and not self.waiting

        def tell(answer: Any) -> Shown | None:
            row = answer.copy() if isinstance(answer, Answers) else None
            prediction, turn = _plain(answer if row is None else row.prediction), self.taken
            k, self.taken = turn - first, turn + 1
            if k >= len(y):
                raise UserError(f"in_turn asked for more labels than the {len(y)} samples of this block")
            given.append(prediction)
            if row is not None:
                rows_given.append(row)
            if at_once:  # the usual case, by the shortest way
                return Shown(take(x, slice(k, k + 1)), y[k : k + 1].copy(), (turn,)) if arriving[k] else None
            truth = y[k : k + 1].copy()
            if arriving[k] and (always or self._counts(prediction, truth)):
                self.waiting.append((turn, take(x, np.array([k])), truth, None))
            if not self.waiting or not (due := self._due(turn)):
                return None
            turns, inputs, labels, _ = zip(*due, strict=True)
            return Shown(join(inputs), join(labels), list(turns))

        def tell_many(outputs: np.ndarray, hear: Any, held: tuple[Any, ...]) -> None:
            from driftline.compiled import in_order  # only now: a compiler takes long to import

            k, self.taken = self.taken - first, self.taken + len(outputs)
            predictions = np.empty(len(outputs), np.int64)
            in_order(y[k : k + len(outputs)].astype(np.int64), outputs, predictions, hear, held)
            given.extend(predictions.tolist())

        return Turns(x, first, tell, tell_many if at_once and all(arriving) else None)

    def recorded(self, answers: Answers, *, trusted: bool) -> Answers:
        """Return what was given before each label of a one-by-one step; refuse answers with other predictions.

        Scores and distances that were not given with the predictions are unknown, unless the method is `trusted` to
        return those it had.
        """
        self._must_match(answers)
        prediction = np.array(self._given, np.asarray(answers.prediction).dtype)
        if len(self._rows_given) == len(prediction) > 0:
            return replace(Answers.concat(self._rows_given), prediction=prediction)
        return replace(answers, prediction=prediction) if trusted else Answers(prediction)

    def _must_match(self, answers: Answers) -> None:
        given, returned = np.array(self._given), np.asarray(answers.prediction)
        if given.shape != returned.shape:
            raise UserError(
                f"in_turn returned {len(returned)} answers but gave {len(given)} predictions before labels: call "
                "turns.tell(prediction) once for each sample, in order, and return those predictions"
            )
        both_nan = (given != given) & (returned != returned)
        if len(differ := np.flatnonzero((given != returned) & ~both_nan)):
            k = differ[0]
            raise UserError(
                f"in_turn returned {returned[k]} for sample {k} of its block, but gave {given[k]} before it saw the "
                "label: return the predictions passed to turns.tell"
            )

    def _counts(self, prediction: Any, y: np.ndarray) -> bool:
        """Whether the label of one sample is shown at all, given its answer."""
        if self.level is Reveal.ERRORS:
            return bool(self.task.correct(np.array([prediction]), y)[0] < 1)
        return self.level is Reveal.LABELS

    def _due(self, now: int) -> list[Waiting]:
        """What has waited long enough; it waits no more."""
        due = [entry for entry in self.waiting if entry[0] <= now - self.delay]
        self.waiting = self.waiting[len(due) :]
        return due

    def _arriving(self, step: Step) -> np.ndarray:
        """Of each sample whether its label ever arrives: drawn by its place in the stream, however that is cut."""
        n = len(step.samples)
        if not self.missing:
            return np.ones(n, bool)
        random = self.seed.child("missing").numpy()
        random.bit_generator.advance(self.taken)  # type: ignore[attr-defined]  # PCG64: one number per sample
        drawn: np.ndarray = random.random(n) >= self.missing
        return drawn

    def _rows(self, step: Step, answers: Answers) -> np.ndarray:
        if self.level is Reveal.INPUTS:
            return np.empty(0, int)
        rows = np.flatnonzero(self._arriving(step))
        if self.level is Reveal.ERRORS:
            rows = rows[self.task.correct(answers.prediction, step.samples.y)[rows] < 1]
        if self.budget is not None and len(rows) > self.budget:
            chosen = self.seed.child("budget", step.index).numpy().choice(len(rows), self.budget, replace=False)
            rows = rows[np.sort(chosen)]
        return rows

    def state(self) -> dict[str, Any]:
        """The labels on their way."""
        return {"waiting": self.waiting, "taken": self.taken}

    def restore(self, state: dict[str, Any]) -> None:
        self.waiting, self.taken = list(state["waiting"]), int(state["taken"])


def _plain(prediction: Any) -> int | float | str:
    """Return a copy of one prediction that cannot change or compare as it likes; refuse what is no number or text."""
    try:
        value = prediction.item() if hasattr(prediction, "item") else prediction
    except (ValueError, RuntimeError):  # several in one array or tensor
        value = prediction
    if type(value) not in (int, float, bool, str):
        raise UserError(f"turns.tell takes one prediction, a number or a text, not a {type(value).__name__}")
    return value  # type: ignore[no-any-return]
