"""What a method is: a dataclass whose fields are its hyper-parameters, and at most seven verbs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from driftline import state
from driftline.errors import UserError
from driftline.reveal import Shown, Turns
from driftline.seeds import Seed
from driftline.tasks import Task
from driftline.training.model import as_model
from driftline.types import Answers, Reveal, Samples, take

if TYPE_CHECKING:
    from driftline.training.trials import Selection, Trial

Outcome = dict[str, Any]
"""The result of a planned fit: its score, the weights it kept, and its learning curve."""
Recall = Callable[[str, bool], Outcome | None]
"""From a fit's key to its result, if it is known: all of it, or all but its arrays."""


class Learner:
    """Something that answers, and may change as time passes.

    A benchmark calls `prepare` once, then for each step `answer`, `learn` if labels were revealed, and `predict` for
    each probe; at the end `finish`. Everything random must come from `self.seed`. Attributes are saved at
    checkpoints and must be plain values, arrays, tensors, networks, optimisers or generators, or have `state()` and
    `restore()`; those whose names start with an underscore are not saved, `prepare` makes them again.
    """

    sees: ClassVar[Reveal] = Reveal.LABELS
    """The least it must be shown to be useful."""
    requires: ClassVar[Literal["any", "partial-fit", "network"]] = "any"
    """The model it needs: any; one that can learn from more data without starting again; or a network."""
    keeps_features: ClassVar[bool] = False
    """Whether it answers by a network's features and never trains them, so that random ones stay random."""
    min_batch: ClassVar[int] = 1
    """The smallest number of inputs it can answer at once."""

    waits: bool = False
    """Set by the benchmark: it examines only after `finish`, so a method that pools need not train before."""

    plans_fits: ClassVar[bool] = False
    """Whether it is a plan of fits (`learners.staged`), which an engine may compute ahead and share."""
    privileged: ClassVar[bool] = False
    """Whether it is an upper bound that is shown more samples than the others, where the benchmark has them."""

    @classmethod
    def needs(cls, settings: Mapping[str, Any]) -> Reveal:
        """The least it must be shown with these settings."""
        return cls.sees

    seed: Seed = Seed(0)
    """Where all its random numbers come from; the benchmark sets it before `prepare`."""

    def prepare(self, model: Any, task: Task, upstream: Samples | None = None) -> None:
        """Before deployment: take the model (trained on `upstream`, if there is any) and get ready."""
        self.must_suit(model)
        self.model = model
        self._task = task

    def must_suit(self, model: Any) -> None:
        """Refuse a model that this method cannot work with."""
        name, adapter = type(self).__name__, as_model(model)
        if self.requires == "network" and not adapter.is_network:
            raise UserError(f"{name} works on a network's weights, and {model} has none")
        if self.requires == "partial-fit" and not adapter.supports_partial_fit:
            raise UserError(f"{name} goes on training, and {model} can only start again: use erm")

    def predict(self, x: Any) -> Answers:
        """Answer; change nothing, ever."""
        return self._task.decode(as_model(self.model).predict(x))

    def adapt(self, x: Any) -> None:
        """Inputs arrived; their labels are unknown."""

    def answer(self, x: Any) -> Answers:
        """Predict, then adapt. A method that shares one forward pass between the two overrides this."""
        answers = self.predict(x)
        self.adapt(x)
        return answers

    def learn(self, x: Any, y: Any) -> None:
        """Labels arrived, perhaps late, perhaps only some."""

    def receive(self, shown: Shown) -> None:
        """Labels arrived with what the benchmark says about them; a method that needs no more overrides `learn`."""
        self.learn(shown.x, shown.y)

    def in_turn(self, turns: Turns) -> Answers:
        """Answer samples that come one by one, and learn from each label before the next answer.

        A method that can answer several of them at once without using more than it knew overrides this.
        """
        given = []
        for k in range(len(turns)):
            given.append(self.answer(take(turns.x, slice(k, k + 1))))
            if (shown := turns.tell(given[-1])) is not None:
                self.learn(shown.x, shown.y)
        return Answers.concat(given)

    def fit_plan(self, lessons: int) -> list[Trial]:
        """Return the fits it needs once this many steps are labelled, each after those it starts from."""
        return []

    def choose_by(self, selection: Selection) -> None:
        """Use a benchmark's way to choose hyper-parameters, for the fits it plans."""

    def look_up(self, recall: Recall) -> None:
        """Look results of planned fits up here before computing them."""

    def compute_fit(self, key: str, lessons: list[tuple[Any, ...]], report: Callable[[int, int], None]) -> Outcome:
        """Return the result of the planned fit with this key, from the labelled samples of each step."""
        raise NotImplementedError(f"{type(self).__name__} plans no fits")

    def account(self) -> list[dict[str, Any]]:
        """Return one row per fit behind the present model: its settings, its score, whether it was picked."""
        return []

    @classmethod
    def built_in(cls) -> bool:
        """Whether it is one of this package's own methods, not a user's or one derived from ours."""
        return cls.__module__.startswith("driftline.")

    def gauges(self) -> Mapping[str, float]:
        """Numbers about its inside that are worth a curve, by name; asked for after each step."""
        return {}

    def finish(self) -> None:
        """The stream is over: a last chance to train."""

    def state(self) -> dict[str, Any]:
        """Everything that must survive a crash."""
        return state.attributes(self)

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Become what was saved; called on a learner that was prepared the same way."""
        state.revive(self, saved)
