"""Everything that is registered keeps its contract, and the checks that say so can tell good from bad."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from numpy.random import default_rng
from sklearn.ensemble import RandomForestClassifier

from driftline import registry
from driftline.learners.base import Learner
from driftline.learners.fit_plan import SearchSpace
from driftline.learners.sequence.base import PlannedLearner
from driftline.learners.supervised.ft import FineTune
from driftline.metrics import Metric
from driftline.models.mlp import linear
from driftline.models.sklearn_models import logistic_regression, naive_bayes, wrap_estimator
from driftline.seeds import Seed
from driftline.streams import periods
from driftline.testing import check_learner, check_metric, check_stream, digest
from driftline.testing.fixtures import small_network
from driftline.testing.generators import seeded_generators
from driftline.testing.inspect import can_reach
from driftline.testing.learner import default_models
from driftline.types import Answers, Samples, Step


def quick(make: Any) -> Any:
    """The same method; one that chooses, with little to choose from."""
    return partial(hurried, make) if issubclass(getattr(make, "func", make), PlannedLearner) else make


def hurried(make: Any) -> PlannedLearner:
    """A method that chooses, with little to choose from and little time."""
    learner: PlannedLearner = make()
    learner.set_search_space(
        SearchSpace(lr=(1e-2,), weight_decay=(1e-4,), dropout=(0.5,), epochs=1, batch=9, fisher_examples=2)
    )
    return learner


WITH_TWO_NETWORKS = ("erm", "ft", "er", "ewc", "ncm")
"""Methods that are checked with the network that standardizes its inputs as well: one for each way to train."""


@pytest.mark.parametrize("name", registry.names("method"))
def test_every_method_keeps_the_contract(name: str) -> None:
    make = quick(registry.get("method", name))
    first, *others = default_models(make())
    check_learner(make, models=[first, *(one for one in others if one is not linear or name in WITH_TWO_NETWORKS)])


@pytest.mark.parametrize("name", registry.names("metric"))
def test_every_metric_keeps_the_contract(name: str) -> None:
    check_metric(registry.get("metric", name))


@pytest.mark.parametrize("period", ["each", "20 rows", "decade"])
def test_periods_keep_the_contract(period: str) -> None:
    rng = np.random.default_rng(0)
    samples = Samples(rng.random((90, 3)), rng.integers(0, 2, 90), time=np.repeat([1950, 1960, 1970], 30))
    check_stream(periods(samples, period))


Quick = partial(FineTune, updates=2)


@dataclass
class PredictsInTrainingMode(FineTune):
    def predict(self, x: Any) -> Answers:
        self.model.train()
        with torch.no_grad(), torch.random.fork_rng():
            out = self.model(torch.from_numpy(x).permute(0, 3, 1, 2).float() / 255)
        self.model.eval()
        return self._task.decode(out.numpy())


@dataclass
class DrawsWithAFixedSeed(FineTune):
    """Its batches depend on its seed, the samples it keeps do not."""

    def learn(self, x: Any, y: Any) -> None:
        kept = np.random.default_rng(0).permutation(len(y))[: len(y) // 2 + 1]
        super().learn(x[kept], y[kept])


@dataclass
class DrawsWithAFixedImportedGenerator(Learner):
    updates: int = 0

    def learn(self, x: Any, y: Any) -> None:
        self.lucky = default_rng(7).random()


@dataclass
class DrawsWithAFixedTorchSeed(Learner):
    updates: int = 0

    def learn(self, x: Any, y: Any) -> None:
        self.lucky = torch.rand(1, generator=torch.Generator().manual_seed(0))


@dataclass
class ReplacesItsSeed(FineTune):
    def prepare(self, model: Any, task: Any, upstream: Any) -> None:
        self.seed = Seed(0)
        super().prepare(model, task, upstream)


@dataclass
class DrawsFromAnotherSeed(FineTune):
    """Its batches depend on its seed, what it draws first does not."""

    def prepare(self, model: Any, task: Any, upstream: Any) -> None:
        super().prepare(model, task, upstream)
        self.lucky = Seed(0).child("lucky", 1).numpy().random()


@dataclass
class ComputesASeedFromItsSeed(FineTune):
    def prepare(self, model: Any, task: Any, upstream: Any) -> None:
        super().prepare(model, task, upstream)
        self.lucky = Seed(self.seed.value + 1).child("lucky").numpy().random()


def drawing(make: Any) -> type[Learner]:
    """A method that draws from the generator that `make(seed)` returns."""

    class Draws(Learner):
        def learn(self, x: Any, y: Any) -> None:
            self.lucky = float(make(self.seed.value).random())

    return Draws


GENERATORS: dict[str, Any] = {
    "default_rng(seed=*)": lambda seed: np.random.default_rng(seed=seed),
    "RandomState(*)": lambda seed: np.random.RandomState(seed),
    "PCG64(*)": lambda seed: np.random.Generator(np.random.PCG64(seed)),
    "SeedSequence(*)": lambda seed: np.random.default_rng(np.random.SeedSequence(seed)),
    "Random(*)": lambda seed: random.Random(seed),
}


@pytest.mark.parametrize("output", GENERATORS)
def test_any_generator_may_be_seeded_from_the_seed_but_with_no_constant(output: str) -> None:
    make = GENERATORS[output]
    check_learner(drawing(make), models=[logistic_regression])
    with pytest.raises(AssertionError, match=re.escape(output.replace("*", "0"))):
        check_learner(drawing(lambda seed: make(0)), models=[logistic_regression])


def forest(shape: tuple[int, ...], outputs: int, seed: Seed) -> Any:
    """A model whose own random numbers are fixed."""
    np.random.RandomState(0)
    return wrap_estimator(RandomForestClassifier(2, random_state=0), outputs, seed)


def test_a_model_may_fix_its_own_random_numbers() -> None:
    check_learner(registry.get("method", "erm"), models=[forest])


def test_generators_made_before_are_still_of_their_class_while_seeds_are_watched() -> None:
    old = np.random.RandomState(0), torch.Generator(), random.Random(0)
    with seeded_generators([], except_in=forest.__code__) as seeded:
        assert all(map(isinstance, old, (np.random.RandomState, torch.Generator, random.Random)))
        assert not isinstance(0, np.random.RandomState)
        assert type(np.random.RandomState(3)) is type(old[0])
    assert seeded == {"RandomState(3)"}


@dataclass
class DrawsFromItsSeedInVain(Learner):
    """Two seeds end the same, and yet it is right."""

    def learn(self, x: Any, y: Any) -> None:
        self.known = len(self.seed.numpy().permutation(len(y)))


@dataclass
class LeavesTrainingMode(FineTune):
    def predict(self, x: Any) -> Answers:
        answers = super().predict(x)
        self.model.train()
        return answers


@dataclass
class CountsPredictions(FineTune):
    """Its hidden count moves the next training round's batches."""

    transient = frozenset({"_asked"})

    def predict(self, x: Any) -> Answers:
        self._asked = getattr(self, "_asked", 0) + 1
        return super().predict(x)

    def learn(self, x: Any, y: Any) -> None:
        self.batch = 8 + self._asked
        super().learn(x, y)
        self.batch = 32


@dataclass
class ForgetsState(FineTune):
    """What it gathers is in an attribute that is not saved."""

    transient = frozenset({"_gathered"})

    def prepare(self, *args: Any) -> None:
        super().prepare(*args)
        self._gathered: list[Any] = []

    def learn(self, x: Any, y: Any) -> None:
        self._gathered.append((x, y))
        super().learn(np.concatenate([x for x, _ in self._gathered]), np.concatenate([y for _, y in self._gathered]))


@dataclass
class UsesGlobalTorch(FineTune):
    def learn(self, x: Any, y: Any) -> None:
        rows = torch.randperm(len(y)).numpy()
        super().learn(x[rows], y[rows])


@dataclass
class UsesGlobalPython(FineTune):
    def learn(self, x: Any, y: Any) -> None:
        super().learn(x, y)
        self.luck = random.random()


@dataclass
class HidesItsUseOfGlobalNumbers(FineTune):
    """Puts the global state back, and still depends on it."""

    def learn(self, x: Any, y: Any) -> None:
        with torch.random.fork_rng():
            rows = torch.randperm(len(y)).numpy()
        super().learn(x[rows], y[rows])


@dataclass
class MutatesLabels(FineTune):
    def learn(self, x: Any, y: Any) -> None:
        super().learn(x, y)
        y[0] = 0
        y[-1] = 1


@dataclass
class MutatesInputsLater(FineTune):
    transient = frozenset({"_last"})

    def learn(self, x: Any, y: Any) -> None:
        if hasattr(self, "_last"):
            self._last[:] = 0
        self._last = x
        super().learn(x, y)


@dataclass
class NeedsTwo(FineTune):
    def predict(self, x: Any) -> Answers:
        if len(x) < 2:
            raise ValueError("expected more than one value per channel")
        return super().predict(x)


@dataclass
class NeedsManyLabels(FineTune):
    def learn(self, x: Any, y: Any) -> None:
        if len(y) < 2:
            raise ValueError("too few")
        super().learn(x, y)


@dataclass
class SavesTheUnsavable(FineTune):
    def learn(self, x: Any, y: Any) -> None:
        super().learn(x, y)
        self.thing = object()


@dataclass
class PredictsNames(FineTune):
    def predict(self, x: Any) -> Answers:
        return Answers(np.array(["low"] * len(x)))


@dataclass
class GivesLogits(FineTune):
    def predict(self, x: Any) -> Answers:
        answers = super().predict(x)
        return replace(answers, scores=np.log(answers.scores))


@dataclass
class AnswersAfterAdapting(FineTune):
    """Its answer is not overridden, and yet is not what predict says."""

    transient = frozenset({"_turn"})

    def adapt(self, x: Any) -> None:
        self.model[-1].bias.data += 1

    def predict(self, x: Any) -> Answers:
        output = super().predict(x)
        self._turn = not getattr(self, "_turn", False)
        return output if self._turn else Answers((output.prediction + 1) % 3)


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        (PredictsInTrainingMode, "predict must change nothing, but it changed .*model"),
        (DrawsWithAFixedSeed, r"same random numbers with every seed \(default_rng\(0\)\)"),
        (DrawsWithAFixedImportedGenerator, r"with every seed \(default_rng\(7\)\)"),
        (DrawsWithAFixedTorchSeed, r"with every seed \(Generator\(\).manual_seed\(0\)\)"),
        (ReplacesItsSeed, r"with every seed \(Seed\(0\)"),
        (DrawsFromAnotherSeed, r"with every seed \(Seed\(0\).child\('lucky', 1\)\)"),
        (LeavesTrainingMode, "train or eval mode"),
        (CountsPredictions, "ends differently if predict is called"),
        (ForgetsState, "missing from state"),
        (UsesGlobalTorch, "global random generator of torch"),
        (UsesGlobalPython, "global random generator of python"),
        (HidesItsUseOfGlobalNumbers, "same seed and data do not give the same"),
        (MutatesLabels, "modifies the inputs or labels"),
        (MutatesInputsLater, "modifies the inputs or labels"),
        (NeedsTwo, r"cannot answer 1 input\(s\) at once, and min_batch = 1"),
        (NeedsManyLabels, "shown one label per step: learn fails"),
        (SavesTheUnsavable, "cannot save a object"),
        (PredictsNames, "not class indices"),
        (GivesLogits, "not probabilities"),
        (AnswersAfterAdapting, "answer differs from predict"),
    ],
)
def test_bad_learners_are_found_out(bad: type[FineTune], sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_learner(partial(bad, updates=2), models=[small_network])


def test_draws_from_the_seed_may_come_to_the_same() -> None:
    check_learner(DrawsFromItsSeedInVain, models=[small_network, naive_bayes])


def test_a_seed_may_be_computed_from_the_seed() -> None:
    check_learner(partial(ComputesASeedFromItsSeed, updates=2), models=[small_network])


def test_a_declared_smallest_batch_is_accepted() -> None:
    class Declared(NeedsTwo):
        min_batch: ClassVar[int] = 2

    check_learner(partial(Declared, updates=2), models=[small_network])


def test_estimators_that_are_refused_are_passed_over_but_not_all_of_them() -> None:
    check_learner(Quick, models=[naive_bayes, logistic_regression])
    with pytest.raises(AssertionError, match="refuses every model"):
        check_learner(Quick, models=[logistic_regression])


def test_a_method_for_networks_only_meets_no_estimator() -> None:
    met = []

    class OnlyNetworks(Learner):
        requires = "network"

        def prepare(self, model: Any, *args: Any) -> None:
            met.append(model)
            super().prepare(model, *args)

    check_learner(OnlyNetworks)
    assert met
    assert all(isinstance(model, torch.nn.Module) for model in met)


def test_labels_are_found_wherever_they_hide() -> None:
    y = np.arange(10)
    assert can_reach(y[2:4], [y])
    assert can_reach([{"a": (y,)}], [y])
    assert can_reach(torch.from_numpy(y), [y])
    table = np.zeros((10, 3))
    assert can_reach(table[:, :2], [table[:, 2]])
    assert not can_reach(y.copy(), [y])
    assert not can_reach(table[:, :2].copy(), [table[:, 2]])


def steps(n: int = 3) -> list[Step]:
    return [Step(k, str(k), Samples(np.full((4, 2), float(k)), np.arange(4), time=np.full(4, k))) for k in range(n)]


def broken(k: int, **changes: Any) -> list[Step]:
    stream = steps()
    stream[k] = replace(stream[k], **changes)
    return stream


class Moody(list):
    """Gives other steps each time."""

    def __getitem__(self, index: Any) -> Any:
        step = super().__getitem__(index)
        self.asked = getattr(self, "asked", 0) + 1
        return replace(step, samples=Samples(step.samples.x + self.asked, step.samples.y))


class Endless(list):
    def __getitem__(self, index: Any) -> Any:
        return super().__getitem__(min(index, len(self) - 1))


class Backwards(list):
    def __iter__(self) -> Any:
        return reversed(list(super().__iter__()))


def leaking() -> Samples:
    table = np.arange(12.0).reshape(4, 3)
    return Samples(table[:, :2], table[:, 2])


@pytest.mark.parametrize(
    ("stream", "sentence"),
    [
        ([], "no steps"),
        (broken(1, index=5), "step 1 has index 5"),
        (broken(1, time=3), "must be a string"),
        (broken(2, samples=Samples(np.zeros((2, 1)), np.zeros(2), id=np.array([7, 7]))), "same id"),
        (broken(2, samples=Samples(np.zeros((1, 1)), np.zeros(1), time=np.array([0]))), "starts before"),
        (broken(1, samples=leaking()), "share memory with its labels"),
        (Moody(steps()), "differs when it is accessed"),
        (Endless(steps()), r"stream\[3\] raises no IndexError"),
        (Backwards(steps()), r"gives the steps \[2, 1, 0\]"),
    ],
)
def test_bad_streams_are_found_out(stream: Any, sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_stream(stream)


def test_a_good_stream_passes() -> None:
    check_stream(steps())


GOOD: Metric = registry.get("metric", "tas")


def a_metric(compute: Any, **changes: Any) -> Metric:
    example = changes.pop("example", lambda rng: {"A": rng.random((3, 3))})
    return replace(GOOD, compute=compute, example=example, **changes)


def unsteady(A: np.ndarray) -> float:
    unsteady.calls = getattr(unsteady, "calls", 0) + 1  # type: ignore[attr-defined]
    return float(A.sum() + unsteady.calls)  # type: ignore[attr-defined]


def rounding(A: np.ndarray) -> float:
    A[0] = np.round(A[0])
    return float(A.sum())


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        (a_metric(np.sum, formula=" "), "has no formula"),
        (a_metric(np.sum, better="bigger"), "better is 'bigger'"),
        (a_metric(lambda A: A.nothing), "does not accept its own example"),
        (a_metric(lambda A: "high"), "does not accept its own example"),
        (a_metric(rounding), "modifies its inputs"),
        (a_metric(unsteady), "differs when computed again"),
        (a_metric(lambda A: np.random.rand() + A.sum()), "global random generator of numpy"),
        (a_metric(lambda A: A.ravel(order="K")[1]), "memory layout"),
        (a_metric(lambda A: A.mean(axis=(-1, -2)) - A.mean()), "mixes the entries"),
    ],
)
def test_bad_metrics_are_found_out(bad: Metric, sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_metric(bad)


def test_metrics_that_take_no_stack_pass() -> None:
    check_metric(a_metric(lambda A: float(A.mean())))
    check_metric(a_metric(lambda A: np.linalg.det(A).item()))


def test_digests_tell_every_bit() -> None:
    assert digest([1, np.arange(3)]) == digest([1, np.arange(3)])
    different = [0.0, -0.0, 0, "0", None, [0], np.zeros(1), np.zeros((1, 1)), np.zeros(1, np.float32), Seed(0)]
    assert len({digest(thing) for thing in different}) == len(different)
    assert digest(np.array([0.0])) != digest(np.array([-0.0]))
