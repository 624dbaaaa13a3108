"""The contract of a learner."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from driftline import loop
from driftline.device import place
from driftline.engine.executors.process import one_thread
from driftline.errors import UserError
from driftline.io import serialization as files
from driftline.io.serialization import digest
from driftline.learners.base import Learner
from driftline.models.sklearn_models import logistic_regression, naive_bayes
from driftline.reveal import RevealPolicy
from driftline.seeds import Seed
from driftline.testing.answers import check_answers
from driftline.testing.fixtures import SHAPE, STEPS, TASK, samples, small_blocks, small_network
from driftline.testing.generators import seeded_generators, unrelated_seeds
from driftline.testing.inspect import columns, display_name, global_seed, no_global_randomness
from driftline.testing.on_device import check_on_device
from driftline.testing.online import check_one_by_one
from driftline.testing.watched import AnswerLog, SameProbe, WatchedLearner, state_digests
from driftline.training.model import as_model
from driftline.types import JsonObject, Network, Reveal, Step

Make = Callable[[], Learner]
MakeModel = Callable[[tuple[int, ...], int, Seed], Network]
Outcome = tuple[list[str], dict[str, str]]
"""Digests of all answers, and of each part of the learner's final state."""
Saved = tuple[Any, str]
"""The states of a learner and of its reveal policy, saved and loaded, and the digest of the learner's."""

# Unusual numbers, so that a method that uses a seed of its own, such as Seed(0), uses none of these.
MODEL_SEED, REVEAL_SEED = Seed(917_101), Seed(917_103)
FIRST_SEED, SECOND_SEED = 917_102, 917_105
MAX_SETTINGS = {"updates": 3, "n_augmentations": 2}
"""The contract does not depend on how many updates a training round has or how many copies of an input there are."""
LABEL_SCHEDULES: dict[str, JsonObject] = {
    "all labels at once": {"level": Reveal.LABELS},
    "its errors only": {"level": Reveal.ERRORS},
    "one label per step": {"level": Reveal.LABELS, "budget": 1},
    "labels two steps late": {"level": Reveal.LABELS, "delay": 2},
    "no label ever": {"level": Reveal.INPUTS},
}
REPEATED = ("all labels at once", "its errors only", "labels two steps late")
INTERRUPTED = ("all labels at once", "labels two steps late")


def check_learner(
    make: Make, *, models: Iterable[MakeModel] | None = None, on_device: str | None = None, tolerance: float = 1e-3
) -> None:
    """Check the contract of the learner that `make()` returns, with each kind of model that it accepts.

    - `predict` changes nothing, and no method modifies its arguments.
    - The same seed and data give the same learner. Global random generators are not used; another seed gives other
      random numbers.
    - Saved after any step and restored, it continues as if never interrupted.
    - Labels may be late, few, or missing. Labels that were not revealed cannot be reached from its arguments.
    - It answers `min_batch` inputs at once. Unless it is `batch_dependent`, an answer does not depend on the other
      inputs of its batch. Samples one by one get the answers that they get one at a time.
    - On the accelerator `on_device`, if given, its predictions are those on the CPU, and scores differ by at most
      `tolerance`; with a tolerance of 0 its state is the same as well, bit for bit. The same holds for a learner that
      was saved there after its first step and restored, and for the multiply-accumulates of both.

    The settings `updates` and `n_augmentations` are reduced, so that this takes seconds.

    `models`: functions `(shape, outputs, seed)`. By default a network with batch norm and dropout, one that
    standardizes its inputs or, if the method refuses both, one of named blocks; and, unless the method is for networks
    only, two scikit-learn estimators. A model that `prepare` refuses with a UserError is skipped.
    """
    name = display_name(make)
    accepted, refused = 0, []
    for make_model in default_models(make()) if models is None else models:
        check = ContractCheck(make, make_model, f"{name} with {display_name(make_model)}")
        try:
            check.learner()
        except UserError as error:
            refused.append(error)
            continue
        accepted += 1
        with one_thread():  # as in runs; several threads are a hundred times slower for small tasks on a busy machine
            check.run_all()
            if on_device is not None and as_model(check.model()).is_network:
                check_on_device(check, on_device, tolerance)
    assert accepted, f"{name} refuses every model: {refused[0] if refused else 'there is none'}"


@dataclass
class ContractCheck:
    """The checks of one method with one kind of model."""

    make: Make
    make_model: MakeModel
    name: str
    _expected: dict[str, Outcome] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.upstream, *parts, self.probe = (samples(k) for k in range(STEPS + 2))
        self.steps = [Step(k, f"t{k}", part) for k, part in enumerate(parts)]

    def model(self) -> Network:
        return place(self.make_model(SHAPE, TASK.width, MODEL_SEED))

    def learner(self, seed: int = FIRST_SEED) -> Learner:
        learner, model = self.make(), self.model()
        for name, most in MAX_SETTINGS.items():
            if isinstance(value := getattr(learner, name, None), int):
                setattr(learner, name, min(value or most, most))  # 0: no limit of its own
        learner.seed = Seed(seed)
        before = digest(columns(self.upstream))
        with no_global_randomness(f"{self.name}: prepare"):
            learner.prepare(model, TASK, self.upstream)
        assert digest(columns(self.upstream)) == before, f"{self.name}: prepare modifies the upstream samples"
        return learner

    def run_all(self) -> None:
        self._smallest_batch()
        self._answer_is_predict()
        self._batch_does_not_matter()
        self._draws_from_its_seed()  # before the other runs: it watches the run that they are compared with
        check_one_by_one(self.learner, self.steps[0].samples, self.name)
        for schedule in LABEL_SCHEDULES:
            replace(self, name=f"{self.name}, shown {schedule}").expected(schedule)
        for schedule in REPEATED:
            saved = self._same_each_time(schedule)
            if schedule in INTERRUPTED:
                self._continues_when_restored(schedule, saved)

    def expected(self, schedule: str) -> Outcome:
        """Return the outcome of an uninterrupted run; cached."""
        if schedule not in self._expected:
            self._expected[schedule] = self.run(schedule)
        return self._expected[schedule]

    def run(self, schedule: str, *, global_random: int = 0, seed: int = FIRST_SEED, probed: bool = False) -> Outcome:
        """Return the outcome of a run with the global random generators seeded with `global_random`."""
        with global_seed(global_random):
            return self.follow(self.learner(seed), self.reveal(schedule), probed=probed)

    def reveal(self, schedule: str) -> RevealPolicy:
        return RevealPolicy(TASK, seed=REVEAL_SEED, **LABEL_SCHEDULES[schedule])

    def follow(
        self,
        learner: Learner,
        reveal: RevealPolicy,
        *,
        start: int = 0,
        probed: bool = False,
        on_step: Callable[[int], None] = lambda done: None,
        log: AnswerLog | None = None,
    ) -> Outcome:
        watched = WatchedLearner(learner, self.name, [step.samples.y for step in self.steps])
        log, probes = log or AnswerLog(), SameProbe(self.probe if probed else None)
        loop.run(self.steps, watched, reveal, probes, log, start=start, on_step=on_step)  # type: ignore[arg-type]
        watched.check_arguments()
        return log.answers, state_digests(learner)

    def _smallest_batch(self) -> None:
        minimum = type(self.learner()).min_batch
        for n in {minimum, minimum + 1}:
            try:
                answers = self.learner().answer(self.steps[0].samples.x[:n])
            except Exception as error:
                raise AssertionError(
                    f"{self.name} cannot answer {n} input(s) at once, and min_batch = {minimum}; raise it: {error!r}"
                ) from error
            check_answers(answers, n, f"{self.name}: answer")

    def _answer_is_predict(self) -> None:
        learner, x = self.learner(), self.steps[0].samples.x
        predicted = learner.predict(x)
        if type(learner).answer is Learner.answer:
            answer = learner.answer(x)
            same = digest([predicted.prediction, predicted.scores]) == digest([answer.prediction, answer.scores])
            assert same, f"{self.name}: answer differs from predict before it, although `answer` is not overridden"

    def _batch_does_not_matter(self) -> None:
        learner, x = self.learner(), self.steps[0].samples.x
        if learner.batch_dependent:
            return
        whole, first = learner.predict(x), learner.predict(x[:1])
        same = whole.prediction[:1] == first.prediction
        assert same.all(), f"{self.name}: the answer to an input depends on its batch, and batch_dependent is False"

    def _same_each_time(self, schedule: str) -> list[Saved]:
        """Check that global generators, probes and saving do not matter; return what was saved after each step.

        All three are changed at once, and one by one only to say which of them matters.
        """
        expected = self.expected(schedule)
        learner, reveal, saved = self.learner(), self.reveal(schedule), []

        def save(done: int) -> None:
            now = {"learner": learner.state(), "reveal": reveal.state()}
            saved.append((self.saved_and_loaded(now), digest(now["learner"])))

        with global_seed(1):
            outcome = self.follow(learner, reveal, probed=True, on_step=save)
        if outcome != expected:
            self._explain_difference(schedule)
        return saved

    def _explain_difference(self, schedule: str) -> None:
        """Fail with a sentence that says what made a run end differently."""
        expected = self.expected(schedule)
        name, other = f"{self.name}, shown {schedule}", self.run(schedule, global_random=1)
        differ = [key for key, value in expected[1].items() if value != other[1].get(key)]
        differ += ["answers"] if expected[0] != other[0] else []
        hint = "is everything random drawn from self.seed?"
        assert not differ, f"{name}: the same seed and data do not give the same {', '.join(differ)}; {hint}"
        same = expected == self.run(schedule, probed=True)
        assert same, f"{name} ends differently if predict is called in between; it must change nothing"
        raise AssertionError(f"{name} ends differently if it is saved in between; state() must change nothing")

    def _draws_from_its_seed(self) -> None:
        """Check that two seeds give different random numbers, if it draws any."""
        first = self._constant_seeds(FIRST_SEED)
        if not first:  # as almost always: no second run is needed
            return
        fixed = ", ".join(sorted(first & self._constant_seeds(SECOND_SEED)))
        assert not fixed, (
            f"{self.name} draws the same random numbers with every seed ({fixed}): draw from self.seed.numpy() or "
            "self.seed.torch()"
        )

    def _constant_seeds(self, seed: int) -> set[str]:
        """Return the generators and seeds of a run that may not come from the learner's seed."""
        schedule, modules = "all labels at once", [base.__module__ for base in type(self.make()).__mro__]
        model, roots = type(self).model.__code__, (Seed(seed), MODEL_SEED, REVEAL_SEED)
        with seeded_generators(modules, except_in=model) as generators, unrelated_seeds(roots, model) as seeds:
            self.expected(schedule) if seed == FIRST_SEED else self.run(schedule, seed=seed)
        return generators | seeds

    def _continues_when_restored(self, schedule: str, saved: list[Saved]) -> None:
        """Check that a learner restored from what was saved after a step continues as if never interrupted."""
        answers, state = self.expected(schedule)
        for cut, (loaded, before) in enumerate(saved[:-1], start=1):
            fresh, fresh_reveal = self.learner(), self.reveal(schedule)
            fresh.restore(loaded["learner"])
            fresh_reveal.restore(loaded["reveal"])
            assert before == digest(fresh.state()), f"{self.name}: restore does not restore what state() returned"
            same = (answers[cut:], state) == self.follow(fresh, fresh_reveal, start=cut)
            assert same, (
                f"{self.name}: saved after step {cut} and restored, it continues differently from an uninterrupted "
                "learner; is something missing from state()?"
            )

    def saved_and_loaded(self, tree: object) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "state"
            try:
                files.save(tree, path)
            except TypeError as error:
                raise AssertionError(f"{self.name}: its state cannot be saved: {error}") from error
            return files.load(path)


def default_models(learner: Learner) -> Iterator[MakeModel]:
    """Yield the models with which a method is checked."""
    if importlib.util.find_spec("torch"):
        from driftline.models.mlp import linear

        networks = [make for make in (small_network, linear) if _accepts(learner, make)]
        yield from networks or [small_blocks]
    if type(learner).requires != "network":
        yield naive_bayes
        yield logistic_regression


def _accepts(learner: Learner, make_model: MakeModel) -> bool:
    try:
        learner.prepare(make_model(SHAPE, TASK.width, MODEL_SEED), TASK, samples(0))
    except UserError:
        return False
    return True
