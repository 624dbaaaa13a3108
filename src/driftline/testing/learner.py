"""The contract of a learner."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from driftline import loop, state
from driftline.engine.executors.process import one_thread
from driftline.errors import UserError
from driftline.learners.base import Learner
from driftline.models.estimator import logistic, naive_bayes
from driftline.reveal import Revealing
from driftline.seeds import Seed
from driftline.state import digest
from driftline.testing.answers import check_answers
from driftline.testing.examples import SHAPE, STEPS, TASK, samples, small_blocks, small_network
from driftline.testing.generators import own_generators
from driftline.testing.looking import columns, global_seed, name_of, watched_randomness
from driftline.testing.turns import check_in_turn
from driftline.testing.watched import Watched, picture_of
from driftline.types import Answers, Probe, Reveal, Samples, Step

Make = Callable[[], Learner]
MakeModel = Callable[[tuple[int, ...], int, Seed], Any]
Ended = tuple[list[str], dict[str, str]]
"""All answers as bytes, and a digest of each part of the learner at the end."""

FEW = 3  # updates per lesson: what is checked does not depend on how long a method trains
DELIVERIES: dict[str, dict[str, Any]] = {
    "all labels at once": {"level": Reveal.LABELS},
    "its errors only": {"level": Reveal.ERRORS},
    "one label per step": {"level": Reveal.LABELS, "budget": 1},
    "labels two steps late": {"level": Reveal.LABELS, "delay": 2},
    "no label ever": {"level": Reveal.INPUTS},
}


def check_learner(make: Make, *, models: Iterable[MakeModel] | None = None) -> None:
    """Check that what `make()` returns keeps the learner's contract, with each kind of model that it accepts.

    Predicting changes nothing. The same seed and data give the same learner, whatever the global random numbers are,
    and those are left alone. With another seed it draws other numbers, if it draws any. Saved after any step and loaded
    into a fresh learner, it goes on as if never interrupted. What it is handed it does not modify. Labels may come
    late, be few, or never come. It answers `min_batch` inputs at once. Nothing it is handed leads to labels that were
    not revealed. Samples that come one by one it answers as if it had been asked about one at a time. A setting
    `updates` is cut to a few, so that this takes seconds.

    `models`: functions `(shape, outputs, seed)`. By default a network with batch norm and dropout, one that
    standardises its inputs or, if the method refuses both, one of named blocks; and, unless the method is for networks
    only, two scikit-learn estimators. One that `prepare` refuses with a UserError is passed over.
    """
    name = name_of(make)
    accepted, refused = 0, []
    for make_model in _models(make()) if models is None else models:
        trial = _Trial(make, make_model, f"{name} with {name_of(make_model)}")
        try:
            trial.learner()
        except UserError as error:
            refused.append(error)
            continue
        accepted += 1
        with one_thread():  # as runs are made; with several, small tasks on a busy machine take a hundred times as long
            trial.check()
    assert accepted, f"{name} refuses every model it was offered: {refused[0] if refused else 'there was none'}"


@dataclass
class _Notes:
    """In place of a recorder: every answer, as bytes."""

    answers: list[str] = field(default_factory=list)

    def answered(self, step: Step, answers: Answers) -> None:
        self.answers.append(digest([answers.prediction, answers.scores]))

    def probed(self, step: Step, probe: Probe, answers: Answers) -> None:
        """Probes must not matter, so nothing is noted."""

    def gauged(self, step: Step, gauges: Mapping[str, float]) -> None:
        """What it shows of its inside is for curves alone."""


@dataclass(frozen=True)
class _Examined:
    """One examination per step and one at the end, on inputs that are not in the stream; or none at all."""

    samples: Samples | None

    def due(self, step: Step | None) -> Iterable[Probe]:
        return [] if self.samples is None else [Probe("probe", self.samples)]


@dataclass
class _Trial:
    """One method with one kind of model."""

    make: Make
    make_model: MakeModel
    name: str
    _undisturbed: dict[str, Ended] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.upstream, *parts, self.probe = (samples(k) for k in range(STEPS + 2))
        self.steps = [Step(k, f"t{k}", part) for k, part in enumerate(parts)]

    def model(self) -> Any:
        return self.make_model(SHAPE, TASK.width, Seed(1))

    def learner(self, seed: int = 2) -> Learner:
        learner, model = self.make(), self.model()
        if isinstance(getattr(learner, "updates", None), int):
            learner.updates = min(learner.updates or FEW, FEW)  # type: ignore[attr-defined]  # 0: no limit of its own
        learner.seed = Seed(seed)
        before = digest(columns(self.upstream))
        with watched_randomness(f"{self.name}: prepare"):
            learner.prepare(model, TASK, self.upstream)
        assert digest(columns(self.upstream)) == before, f"{self.name}: prepare modifies the upstream samples"
        return learner

    def check(self) -> None:
        self._smallest_batch()
        self._answer_is_predict()
        self._draws_from_its_seed()  # first of those that run: it watches the run that others are compared with
        self._probes_do_not_matter()
        check_in_turn(self.learner, self.steps[0].samples, self.name)
        for delivery in DELIVERIES:
            self._same_each_time(delivery)
        for delivery in ("all labels at once", "labels two steps late"):
            self._survives_interruption(delivery)

    def undisturbed(self, delivery: str) -> Ended:
        """How it ends if all goes well; made once for all that is compared with it."""
        if delivery not in self._undisturbed:
            self._undisturbed[delivery] = self.run(delivery)
        return self._undisturbed[delivery]

    def run(self, delivery: str, *, numbers: int = 0, seed: int = 2, probed: bool = False) -> Ended:
        """All answers and the final state, with the global random numbers started from `numbers`."""
        with global_seed(numbers):
            return self._walk(self.learner(seed), _reveal(delivery), probed=probed)

    def _walk(
        self,
        learner: Learner,
        reveal: Revealing,
        *,
        start: int = 0,
        probed: bool = False,
        after_step: Callable[[int], None] = lambda done: None,
    ) -> Ended:
        watched = Watched(learner, self.name, [step.samples.y for step in self.steps])
        notes, probes = _Notes(), _Examined(self.probe if probed else None)
        loop.run(self.steps, watched, reveal, probes, notes, start=start, after_step=after_step)  # type: ignore[arg-type]
        watched.check_handed()
        return notes.answers, picture_of(learner)

    def _smallest_batch(self) -> None:
        least = type(self.learner()).min_batch
        for n in {least, least + 1}:
            try:
                answers = self.learner().answer(self.steps[0].samples.x[:n])
            except Exception as error:
                said = f"and min_batch = {least} says it can; declare what it needs"
                raise AssertionError(f"{self.name} cannot answer {n} input(s) at once, {said}: {error!r}") from error
            check_answers(answers, n, f"{self.name}: answer")

    def _answer_is_predict(self) -> None:
        learner, x = self.learner(), self.steps[0].samples.x
        said = learner.predict(x)
        if type(learner).answer is Learner.answer:
            answer = learner.answer(x)
            same = digest([said.prediction, said.scores]) == digest([answer.prediction, answer.scores])
            assert same, f"{self.name}: answer differs from predict just before it, and `answer` is not overridden"

    def _same_each_time(self, delivery: str) -> None:
        shown = replace(self, name=f"{self.name}, shown {delivery}")
        (answers, end), (answers_too, end_too) = shown.undisturbed(delivery), shown.run(delivery, numbers=1)
        differ = [key for key in end if end[key] != end_too.get(key)]
        why = "is everything random drawn from self.seed?"
        assert not differ, f"{shown.name}: the same seed and data do not give the same {', '.join(differ)}; {why}"
        assert answers == answers_too, f"{shown.name}: the same seed and data do not give the same answers; {why}"

    def _draws_from_its_seed(self) -> None:
        """With two seeds it must seed different generators, if it seeds any."""
        delivery, modules = "all labels at once", [base.__module__ for base in type(self.make()).__mro__]
        model = type(self).model.__code__
        with own_generators(modules, besides=model) as made:
            self.undisturbed(delivery)
        if not made:  # as almost always: no second run is needed
            return
        with own_generators(modules, besides=model) as made_too:
            self.run(delivery, seed=5)
        fixed = ", ".join(sorted(made & made_too))
        assert not fixed, (
            f"{self.name} draws the same random numbers with every seed ({fixed}): draw from self.seed.numpy() or "
            "self.seed.torch()"
        )

    def _probes_do_not_matter(self) -> None:
        alone, probed = (
            self.undisturbed("all labels at once"),
            self.run("all labels at once", probed=True),
        )
        assert alone == probed, f"{self.name} ends differently if predict is called on the way; it must change nothing"

    def _survives_interruption(self, delivery: str) -> None:
        whole, end = self.undisturbed(delivery)
        learner, reveal, saved = self.learner(), _reveal(delivery), []

        def save(done: int) -> None:
            now = {"learner": learner.state(), "reveal": reveal.state()}
            saved.append((self._saved_and_loaded(now), digest(now["learner"])))

        same = (whole, end) == self._walk(learner, reveal, after_step=save)
        assert same, f"{self.name} ends differently if it is saved on the way; state() must change nothing"
        for cut, (loaded, before) in enumerate(saved[:-1], start=1):
            fresh, fresh_reveal = self.learner(), _reveal(delivery)
            fresh.restore(loaded["learner"])
            fresh_reveal.restore(loaded["reveal"])
            assert before == digest(fresh.state()), f"{self.name}: restore does not bring back what state() gave"
            answers, end_too = self._walk(fresh, fresh_reveal, start=cut)
            same = whole[cut:] == answers and end == end_too
            assert same, (
                f"{self.name}: saved after step {cut} and loaded, it goes on differently from one that was never "
                "interrupted; is something it needs missing from state()?"
            )

    def _saved_and_loaded(self, tree: Any) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "state"
            try:
                state.save(tree, path)
            except TypeError as error:
                raise AssertionError(f"{self.name}: its state cannot be saved: {error}") from error
            return state.load(path)


def _reveal(delivery: str) -> Revealing:
    return Revealing(TASK, seed=Seed(3), **DELIVERIES[delivery])


def _models(learner: Learner) -> Iterator[MakeModel]:
    if importlib.util.find_spec("torch"):
        from driftline.models.networks import linear

        plain = [make for make in (small_network, linear) if _accepts(learner, make)]
        yield from plain or [small_blocks]
    if not type(learner).networks_only:
        yield naive_bayes
        yield logistic


def _accepts(learner: Learner, make_model: MakeModel) -> bool:
    try:
        learner.prepare(make_model(SHAPE, TASK.width, Seed(1)), TASK, samples(0))
    except UserError:
        return False
    return True
