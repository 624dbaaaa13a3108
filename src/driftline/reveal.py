"""Which labels are revealed to a learner after it has answered: none, its errors or all; how late, and how many.

A benchmark decides the level. Delay, budget, missing labels and rules (`label_rules`) take away from it: they decide
which of these labels are asked for, when they arrive, and whether they are right.

If samples say when their labels became known (`Samples.known`), no label is revealed before: a step ends at the latest
time seen so far, and reveals the labels that are known by then.

Revealed labels are copies, so no array that a learner holds gives access to an unrevealed label.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from driftline.errors import UserError
from driftline.label_rules import LabelRule, RuleChain, Tally, Waiting
from driftline.seeds import Seed
from driftline.tasks import Regression, Task
from driftline.types import Answers, Inputs, Reveal, Samples, State, Step, Stream, concat_rows, take_rows


@dataclass
class RevealedLabels:
    """Inputs with their revealed labels."""

    x: Inputs
    y: np.ndarray
    positions: Sequence[int] = ()
    """Positions in the stream, for samples that come one by one."""
    split: np.ndarray | None = None
    """Which samples are for training and which for validation (`Samples.split`), where the benchmark decides it."""

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True)
class LabelFeed:
    """The inputs of samples that come one by one."""

    x: Inputs
    first: int
    """Number of samples before these."""
    reveal_next: Callable[[object], RevealedLabels | None]
    """Takes the answer to the next sample, a prediction or `Answers` of one row; returns the labels then revealed.

    The answer is copied and recorded, with its scores and distance if it has them."""
    needs_scores: bool = False
    """Whether `reveal_next` needs `Answers` with scores, because a rule asks for labels by them."""

    def __len__(self) -> int:
        return self.x.shape[0] if hasattr(self.x, "shape") else len(self.x)


@dataclass
class RevealPolicy:
    """Which labels are revealed, and when.

    `delay`: number of steps by which labels are late; those due after the end of the stream are never revealed.
    `budget`: maximum number of labels per step, drawn at random from those that would be revealed.
    `missing`: fraction of labels that are never revealed, drawn at random before any other rule.
    `rules`: label rules by name; they see the labels that the level reveals and that are not missing.
    If samples come one by one, each of them counts as a step.
    """

    task: Task
    level: Reveal
    seed: Seed
    delay: int = 0
    budget: int | None = None
    missing: float = 0.0
    rules: Mapping[str, LabelRule] = field(default_factory=dict)
    waiting: list[Waiting] = field(default_factory=list)
    n_seen: int = 0
    """Number of samples so far."""
    now: float = -np.inf
    """The latest time of a sample so far, if labels have times."""
    _predictions: list[int | float | str] = field(default_factory=list, init=False, repr=False)
    """Predictions of the current one-by-one step, each made before its label was revealed."""
    _answer_rows: list[Answers] = field(default_factory=list, init=False, repr=False)
    """Copies of those passed as `Answers` of one row."""

    def __post_init__(self) -> None:
        self.chain = RuleChain(self.rules, self.task, self.seed)
        self.tally = Tally()

    def __call__(self, step: Step, answers: Answers) -> RevealedLabels | None:
        """Return the labels revealed at the end of this step, or None."""
        self.tally = Tally()
        self._collect(step.index, step.samples, self._available_rows(step, answers), answers, self.n_seen)
        self.n_seen += len(step.samples)
        self._advance(step.samples)
        due = self._due(step.index)
        if not due:
            return None
        splits = [entry.split for entry in due if entry.split is not None]
        divided = np.concatenate(splits) if len(splits) == len(due) else None
        return RevealedLabels(
            concat_rows([entry.x for entry in due]), np.concatenate([entry.y for entry in due]), split=divided
        )

    def feed(self, step: Step) -> LabelFeed:
        """Return the samples of a step one by one; each label is revealed only after its sample is answered."""
        x, y, first = step.samples.x, step.samples.y, self.n_seen
        predictions, answer_rows = self._predictions, self._answer_rows = [], []
        arrives, always = self._arrival_mask(step).tolist(), self.level is Reveal.LABELS
        known, self.tally = step.samples.known, Tally()
        immediate = always and self.delay == 0 and not self.waiting and known is None and not self.chain

        def reveal_next(answer: object) -> RevealedLabels | None:
            row = answer.copy() if isinstance(answer, Answers) else None
            prediction, turn = _to_scalar(answer if row is None else row.prediction), self.n_seen
            k, self.n_seen = turn - first, turn + 1
            if k >= len(y):
                raise UserError(f"answer_one_by_one requested more labels than the {len(y)} samples of this block")
            predictions.append(prediction)
            if row is not None:
                answer_rows.append(row)
            if immediate:  # the usual case, on a fast path
                return (
                    RevealedLabels(take_rows(x, slice(k, k + 1)), y[k : k + 1].copy(), (turn,)) if arrives[k] else None
                )
            truth = y[k : k + 1].copy()
            if arrives[k] and (always or self._is_revealed(prediction, truth)):
                given = Answers(np.array([prediction])) if row is None else row
                self._collect(turn, step.samples[k : k + 1], np.array([0]), given, turn)
            self._advance(step.samples, slice(k, k + 1))
            if not self.waiting or not (due := self._due(turn)):
                return None
            turns = np.concatenate([entry.positions for entry in due]).tolist()
            return RevealedLabels(
                concat_rows([entry.x for entry in due]), np.concatenate([entry.y for entry in due]), turns
            )

        return LabelFeed(x, first, reveal_next, self.chain.needs_scores)

    def _collect(self, index: int, samples: Samples, rows: np.ndarray, answers: Answers, first: int) -> None:
        """Let the rules choose among rows of a step, and put what they choose on its way."""
        propensity = correct = delays = None
        if self.chain:
            rows, propensity = self.chain.select(answers, rows, first)
        if self.budget is not None and len(rows) > self.budget:
            chosen = self.seed.child("budget", index).numpy().choice(len(rows), self.budget, replace=False)
            kept = np.sort(chosen)
            rows, propensity = rows[kept], None if propensity is None else propensity[kept]
        if not len(rows):
            return
        x, y, positions = take_rows(samples.x, rows), np.array(samples.y[rows]), first + rows
        if self.chain:
            truth, y, delays = y, self.chain.shown(y.copy(), positions), self.chain.delay(positions)
            correct = self.task.correct(np.asarray(answers.prediction)[rows], y)
            self.tally.add(correct, int((y != truth).sum()), propensity)
        split = None if samples.split is None else samples.split[rows]
        known = None if samples.known is None else _clock(samples.known[rows])
        entry = Waiting(index, x, y, split, known, positions, correct)
        for late in (0,) if delays is None else np.unique(delays).tolist():
            part = entry if delays is None else entry.take(np.flatnonzero(delays == late))
            insort(self.waiting, part._replace(due=index + late), key=lambda one: one.due)

    def verified_answers(self, answers: Answers, *, trusted: bool) -> Answers:
        """Return the answers made before each label of a one-by-one step; refuse answers with other predictions.

        Scores and distances that were not passed with the predictions are unknown, unless the method is `trusted` to
        return those it had.
        """
        self._check_match(answers)
        prediction = np.array(self._predictions, np.asarray(answers.prediction).dtype)
        if len(self._answer_rows) == len(prediction) > 0:
            return replace(Answers.concat(self._answer_rows), prediction=prediction)
        return replace(answers, prediction=prediction) if trusted else Answers(prediction)

    def _check_match(self, answers: Answers) -> None:
        given, returned = np.array(self._predictions), np.asarray(answers.prediction)
        if given.shape != returned.shape:
            raise UserError(
                f"answer_one_by_one returned {len(returned)} answers but gave {len(given)} predictions before labels: "
                "call feed.reveal_next(prediction) once for each sample, in order, and return those predictions"
            )
        both_nan = (given != given) & (returned != returned)
        if len(differ := np.flatnonzero((given != returned) & ~both_nan)):
            k = differ[0]
            raise UserError(
                f"answer_one_by_one returned {returned[k]} for sample {k} of its block, but gave {given[k]} before it "
                "saw the label: return the predictions passed to feed.reveal_next"
            )

    def _is_revealed(self, prediction: object, y: np.ndarray) -> bool:
        """Return whether the label of one sample is revealed, given its answer."""
        if self.level is Reveal.ERRORS:
            return bool(self.task.correct(np.array([prediction]), y)[0] < 1)
        return self.level is Reveal.LABELS

    def _advance(self, samples: Samples, rows: slice = slice(None)) -> None:
        """Set the clock to the latest time so far, if labels have times."""
        if samples.known is not None and samples.time is not None:
            self.now = max(self.now, float(_clock(samples.time[rows]).max()))

    def _due(self, index: int) -> list[Waiting]:
        """Remove and return the labels whose delay is over at this step and which are known by now."""
        end = bisect_right(self.waiting, index - self.delay, key=lambda entry: entry.due)
        parts = [entry.split_at(self.now) for entry in self.waiting[:end]]
        due, later = [part for part, _ in parts if part], [part for _, part in parts if part]
        self.waiting[:end] = later
        for entry in due:
            if entry.correct is not None:
                self.tally.arrived += len(entry.correct)
                self.chain.observe(entry.correct)
        return due

    def _arrival_mask(self, step: Step) -> np.ndarray:
        """Return for each sample whether its label is ever revealed; it depends only on the position in the stream."""
        n = len(step.samples)
        if not self.missing:
            return np.ones(n, bool)
        random = self.seed.child("missing").numpy()
        random.bit_generator.advance(self.n_seen)  # type: ignore[attr-defined]  # PCG64: one number per sample
        drawn: np.ndarray = random.random(n) >= self.missing
        return drawn

    def _available_rows(self, step: Step, answers: Answers) -> np.ndarray:
        """Return the rows of a step whose labels the level reveals and which are not missing."""
        if self.level is Reveal.INPUTS:
            return np.empty(0, int)
        rows = np.flatnonzero(self._arrival_mask(step))
        if self.level is Reveal.ERRORS:
            rows = rows[self.task.correct(answers.prediction, step.samples.y)[rows] < 1]
        return rows

    def diagnostics(self) -> dict[str, float]:
        """Return what the rules did in the latest step; nothing without rules."""
        return self.tally.diagnostics() if self.chain else {}

    def state(self) -> State:
        """Return the delayed labels and the position in the stream."""
        clock = {} if self.now == -np.inf else {"now": self.now}
        rules = {"rules": self.chain.state()} if self.chain else {}
        return {"waiting": [tuple(entry) for entry in self.waiting], "taken": self.n_seen, **clock, **rules}

    def restore(self, state: State) -> None:
        self.waiting, self.n_seen = [Waiting(*entry) for entry in state["waiting"]], int(state["taken"])
        self.now = state.get("now", -np.inf)
        self.chain.restore(state.get("rules", {}))


def known_by(samples: Samples, time: object) -> np.ndarray:
    """Return which labels are known at a time; all of them if the samples do not say when."""
    if samples.known is None:
        return np.ones(len(samples), bool)
    by_then: np.ndarray = _clock(samples.known) <= _clock(np.array([time]))
    return by_then


def delivery_steps(stream: Stream, policy: RevealPolicy | None = None) -> list[int]:
    """Return the steps of a stream at whose end labels are revealed; without a policy, if all labels are."""
    policy = policy or RevealPolicy(Regression(), Reveal.LABELS, Seed(0))
    revealed = []
    for step in (stream[k] for k in range(len(stream))):
        light = replace(step.samples, x=step.samples.id)
        if policy(replace(step, samples=light), Answers(light.y)) is not None:
            revealed.append(step.index)
    return revealed


def _clock(times: np.ndarray) -> np.ndarray:
    """Return moments or numbers as comparable numbers; a missing one is later than all others."""
    times = np.asarray(times)
    missing = np.isnat(times) if times.dtype.kind == "M" else np.isnan(times.astype(float))
    numbers = times.astype("datetime64[us]") if times.dtype.kind == "M" else times
    return np.where(missing, np.inf, numbers.astype(float))


def _to_scalar(prediction: Any) -> int | float | str:
    """Return one prediction as a plain number or text; refuse anything else."""
    try:
        value = prediction.item() if hasattr(prediction, "item") else prediction
    except (ValueError, RuntimeError):  # several in one array or tensor
        value = prediction
    if type(value) not in (int, float, bool, str):
        raise UserError(f"feed.reveal_next takes one prediction, a number or a text, not a {type(value).__name__}")
    return value  # type: ignore[no-any-return]
