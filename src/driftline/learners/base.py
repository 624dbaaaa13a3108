"""Base class of all methods: a dataclass whose fields are its hyper-parameters."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from driftline.errors import RequirementError, UserError
from driftline.io import serialization
from driftline.learners.settings import check_settings
from driftline.reveal import LabelFeed, RevealedLabels
from driftline.seeds import Seed
from driftline.tasks import Task
from driftline.training.model import as_model
from driftline.types import (
    Answers,
    Inputs,
    JsonObject,
    Network,
    Reveal,
    Samples,
    State,
    Targets,
    TrainingRound,
    take_rows,
)

if TYPE_CHECKING:
    from driftline.learners.fit_plan import FitSpec, SearchSpace

Role = Literal["method", "baseline", "upper-bound"]
Outcome = dict[str, Any]
"""The result of a planned fit: its score, its selected weights and its learning curve."""
Recall = Callable[[str, bool], Outcome | None]
"""A function from a fit's key to its result if it is known: all of it, or all but its arrays."""


class Learner:
    """A method: it predicts, and may adapt to inputs and learn from labels.

    A benchmark calls `prepare` once, then for each step `answer`, `learn` if labels were revealed, and `predict` for
    each probe; at the end `finish`. Everything random must come from `self.seed`. Attributes are saved at
    checkpoints and must be plain values, arrays, tensors, networks, optimizers or generators, or have `state()` and
    `restore()`; those named in `transient` are not saved, `prepare` makes them again.
    """

    min_reveal: ClassVar[Reveal] = Reveal.LABELS
    """The least that must be revealed to the method."""
    requires: ClassVar[Literal["any", "partial-fit", "network"]] = "any"
    """The model it needs: any; one that can learn from more data without starting again; or a network."""
    frozen_features: ClassVar[bool] = False
    """True if the method uses the network as a fixed feature extractor. Such a method needs a pretrained network."""
    min_batch: ClassVar[int] = 1
    """The smallest batch it can answer with any model."""

    evaluated_at_end: bool = False
    """Set by the benchmark. If True, the learner is evaluated only after `finish()`, so cumulative methods can
    train once at the end."""

    plans_fits: ClassVar[bool] = False
    """Whether it is a plan of fits (`learners.sequence`), which an engine may compute ahead and share."""
    is_oracle: ClassVar[bool] = False
    """True for an upper bound that is shown more samples than other methods, where the benchmark has them."""

    trains_network: ClassVar[bool] = False
    """Whether it trains all weights of its network that require gradients, so that these may be adapters
    (`training.lora`)."""

    role: ClassVar[Role] = "method"
    """Its part in a comparison: gains are measured over a baseline, and an upper bound does not compete."""
    quick: ClassVar[Mapping[str, str]] = {}
    """Settings that a matrix in miniature changes, each with the key of `Benchmark.quick` that holds its value."""

    budget_settings: ClassVar[frozenset[str]] = frozenset()
    """Settings that a benchmark's training budget sets for methods that leave them to the class that names them."""

    wraps: ClassVar[str] = ""
    """The setting that names the method that it wraps, whose settings are its `options`; empty if it wraps none."""

    cost_free: ClassVar[frozenset[str]] = frozenset({"lr", "weight_decay", "momentum"})
    """Numeric settings that do not change the amount of work, added to those of the classes that it extends."""
    transient: ClassVar[frozenset[str]] = frozenset({"_task"})
    """Attributes that are not saved at checkpoints, added to those of the classes that it extends."""

    seed: Seed = Seed(0)
    """The source of all its random numbers; set before `prepare`."""

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        """Take the model, which was trained on `upstream` if there are such samples, before the first step."""
        check_settings(self)
        self.check_model(model)
        self.model = model
        self._task = task

    def check_model(self, model: Network) -> None:
        """Refuse a model that this method cannot work with."""
        name, adapter = type(self).__name__, as_model(model)
        if self.requires == "network" and not adapter.is_network:
            raise RequirementError("a network", f"{name} needs a network, and {model} is not one")
        if self.requires == "partial-fit" and not adapter.supports_partial_fit:
            raise UserError(f"{name} continues training, and {model} cannot: use a model with partial_fit, or erm")

    @property
    def smallest_batch(self) -> int:
        """The smallest batch that it can answer with its model; at most `min_batch`."""
        return self.min_batch

    @property
    def batch_dependent(self) -> bool:
        """Whether an answer depends on the other inputs of its batch; by default if it cannot answer one alone."""
        return self.min_batch > 1

    def predict(self, x: Inputs) -> Answers:
        """Return predictions. This must not change the learner."""
        return self._task.decode(as_model(self.model).predict(x))

    def adapt(self, x: Inputs) -> None:
        """Adapt to inputs whose labels are unknown."""

    def answer(self, x: Inputs) -> Answers:
        """Predict, then adapt. Override this to share one forward pass."""
        answers = self.predict(x)
        self.adapt(x)
        return answers

    def learn(self, x: Inputs, y: Targets) -> None:
        """Learn from labels, which may come late or only for some samples."""

    def receive(self, shown: RevealedLabels) -> None:
        """Take revealed labels together with their split. By default, call `learn`."""
        self.learn(shown.x, shown.y)

    def answer_one_by_one(self, feed: LabelFeed) -> Answers:
        """Answer samples one by one, and learn from each label before the next answer.

        Override this to answer several at once, as long as no answer uses a later label.
        """
        given = []
        for k in range(len(feed)):
            given.append(self.answer(take_rows(feed.x, slice(k, k + 1))))
            if (shown := feed.reveal_next(given[-1])) is not None:
                self.learn(shown.x, shown.y)
        return Answers.concat(given)

    def fit_plan(self, n_steps: int) -> list[FitSpec]:
        """Return the fits it needs once this many steps are labeled, each after those it starts from."""
        return []

    def set_search_space(self, selection: SearchSpace) -> None:
        """Use a benchmark's way to choose hyper-parameters, for the fits it plans."""

    def set_fit_lookup(self, recall: Recall) -> None:
        """Use this function to look up the results of planned fits before computing them."""

    def compute_fit(self, key: str, step_samples: list[TrainingRound], report: Callable[[int, int], None]) -> Outcome:
        """Return the result of the planned fit with this key, from the labeled samples of each step."""
        raise NotImplementedError(f"{type(self).__name__} plans no fits")

    def fit_table(self) -> list[JsonObject]:
        """Return one row per fit behind the present model: its settings, its score, whether it was picked."""
        return []

    def diagnostics(self) -> Mapping[str, float]:
        """Return named numbers about its internal state, recorded after each step."""
        return {}

    def finish(self) -> None:
        """Train a last time, at the end of the stream."""

    def state(self) -> State:
        """Return everything a checkpoint needs."""
        return serialization.public_attributes(self)

    def restore(self, saved: State) -> None:
        """Restore a checkpoint, on a learner that was prepared in the same way."""
        serialization.restore_attributes(self, saved)


def is_built_in(method: type) -> bool:
    """Return whether this package defines a method, and not a user."""
    module = method.__module__
    return module.startswith("driftline.") and getattr(sys.modules.get(module), method.__name__, None) is method
