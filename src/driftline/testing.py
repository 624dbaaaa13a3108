"""The contracts of learners, streams and metrics, as checks that can be run on any of them.

Everything that is registered passes these, and so should whatever you add: call them in a test of your own. A check
returns nothing if all is well and raises an AssertionError with a sentence that says what is wrong.

>>> from driftline.learners.frozen import Frozen
>>> check_learner(Frozen)
"""

from __future__ import annotations

import gc
import hashlib
import importlib.util
import random
import tempfile
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from driftline import loop, state
from driftline.errors import UserError
from driftline.learners.base import Learner
from driftline.metrics import Metric
from driftline.models.estimator import Estimator, logistic, naive_bayes
from driftline.reveal import Revealing
from driftline.seeds import Seed
from driftline.tasks import Classification
from driftline.types import Answers, Probe, Reveal, Samples, Step, Stream

Make = Callable[[], Learner]
MakeModel = Callable[[tuple[int, ...], int, Seed], Any]

TASK = Classification(("low", "middle", "high"))
SHAPE = (8, 8, 1)
STEPS = 4
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
    and those are left alone. Saved after any step and loaded into a fresh learner, it goes on as if never
    interrupted. What it is handed it does not modify. Labels may come late, be few, or never come. It answers
    `min_batch` inputs at once. Nothing it is handed leads to labels that were not revealed.

    `models`: functions `(shape, outputs, seed)`. By default a network with batch norm and dropout, one
    that standardises its inputs and, unless the method is for networks only, two scikit-learn estimators; an
    estimator that `prepare` refuses with a UserError is passed over.
    """
    name = _name(make)
    accepted = 0
    for make_model in _models(make()) if models is None else models:
        trial = _Trial(make, make_model, name)
        try:
            trial.learner()
        except UserError:
            if not isinstance(trial.model(), Estimator):
                raise
            continue
        accepted += 1
        trial.check()
    assert accepted, f"{name} refuses every model it was offered"


def check_stream(stream: Stream) -> None:
    """Check that steps are in order, stay the same when asked for again, and keep their labels apart from inputs."""
    n = len(stream)
    assert n > 0, "the stream has no steps"
    first = [digest(_content(stream[i])) for i in range(n)]
    again = [digest(_content(stream[i])) for i in reversed(range(n))][::-1]
    earliest = None
    for i in range(n):
        assert first[i] == again[i], f"step {i} is not the same when it is asked for a second time"
        step = stream[i]
        assert step.index == i, f"step {i} says that its index is {step.index}"
        assert isinstance(step.time, str), f"the time of step {i} is {step.time!r}; it must be a text"
        assert step.time, f"the time of step {i} is empty"
        samples = step.samples
        assert len(samples), f"step {i} has no samples"
        assert len(np.unique(samples.id)) == len(samples), f"step {i} has two samples with the same id"
        assert not _leads_to(samples.x, [samples.y]), f"the inputs of step {i} share memory with its labels"
        if samples.time is not None:
            began = samples.time.min()
            assert earliest is None or began >= earliest, f"step {i} begins before the step that precedes it"
            earliest = began
    try:
        stream[n]
    except IndexError:
        pass
    else:
        raise AssertionError(f"the stream has {n} steps, and yet there is a step {n}")
    if isinstance(stream, Iterable):
        order = [step.index for step in stream]
        assert order == list(range(n)), f"iterating over the stream gives the steps {order}"


def check_metric(metric: Metric) -> None:
    """Check that a metric is a pure function that says what it means.

    It modifies nothing, gives the same number each time and for any memory layout, and, if it takes stacks of inputs
    and gives a stack of results, treats each of the stack on its own.
    """
    name = f"metric '{metric.name}'"
    assert metric.name.strip(), "a metric has no name"
    assert metric.formula.strip(), f"{name} does not say its formula"
    assert metric.better in ("higher", "lower"), f"{name}: better is '{metric.better}', not 'higher' or 'lower'"
    examples = [metric.example(np.random.default_rng(k)) for k in (0, 1)]
    before = digest(examples)
    results = []
    with _watched_randomness(f"computing {name}"):
        for example in examples:
            try:
                results.append(_numbers(metric.compute(**example)))
            except Exception as error:
                raise AssertionError(f"{name} does not accept its own example: {error!r}") from error
    assert digest(examples) == before, f"{name} modifies its inputs"
    for example, result in zip(examples, results, strict=True):
        assert _same(_numbers(metric.compute(**example)), result), f"{name} differs when it is computed again"
        for layout, lay in (("Fortran order", np.asfortranarray), ("strides", _strided)):
            changed = _numbers(metric.compute(**_arrays_to(lay, example)))
            assert _same(changed, result, close=True), f"{name} depends on the memory layout ({layout})"
    stack = {key: _stack([example[key] for example in examples]) for key in examples[0]}
    try:
        both = _numbers(metric.compute(**stack))
    except Exception:  # it takes no stacks, and may say so in any way
        return
    if len(both) == len(results[0]) and all(len(np.atleast_1d(array)) == 2 for array in both):
        for k in (0, 1):
            alone = [array[k] for array in both]
            shapes = [array.shape for array in alone] == [array.shape for array in results[k]]
            if shapes:
                assert _same(alone, results[k], close=True), f"{name} mixes the entries of a stack of inputs"


def digest(tree: Any) -> str:
    """A hash of a tree of plain values, arrays and tensors: equal for two trees exactly if every bit is equal."""
    hashed = hashlib.sha256()
    _feed(hashed.update, tree)
    return hashed.hexdigest()


# What follows are the parts of which the three checks are made.


@dataclass
class _Notes:
    """In place of a recorder: every answer, as bytes."""

    answers: list[str] = field(default_factory=list)

    def answered(self, step: Step, answers: Answers) -> None:
        self.answers.append(digest([answers.prediction, answers.scores]))

    def probed(self, step: Step, probe: Probe, answers: Answers) -> None:
        """Probes must not matter, so nothing is noted."""


@dataclass(frozen=True)
class _Examined:
    """One examination per step and one at the end, on inputs that are not in the stream; or none at all."""

    samples: Samples | None

    def due(self, step: Step | None) -> Iterable[Probe]:
        return [] if self.samples is None else [Probe("probe", self.samples)]


class _Watched:
    """A learner behind glass: what goes in and comes out is looked at, the learner itself is as it was."""

    def __init__(self, learner: Learner, name: str, labels: list[np.ndarray]) -> None:
        self.learner, self.name, self.labels = learner, name, labels
        self.handed: list[tuple[Any, str]] = []

    def answer(self, x: Any) -> Answers:
        answers: Answers = self._looked_at("answer", x)
        return answers

    def predict(self, x: Any) -> Answers:
        before = _picture(self.learner)
        answers: Answers = self._looked_at("predict", x)
        moved = [key for key, value in _picture(self.learner).items() if before.get(key) != value]
        assert not moved, f"{self.name}: predict must change nothing, but it changed {', '.join(moved)}"
        return answers

    def learn(self, x: Any, y: Any) -> None:
        self._hand(y, "learn")
        with self._sentence("learn"):
            self._looked_at("learn", x, y)

    def finish(self) -> None:
        with self._sentence("finish"), _watched_randomness(f"{self.name}: finish"):
            self.learner.finish()

    def check_handed(self) -> None:
        for thing, before in self.handed:
            assert digest(thing) == before, f"{self.name} modifies the inputs or labels that it is handed"

    def _looked_at(self, verb: str, *given: Any) -> Any:
        self._hand(given[0], verb)
        with self._sentence(verb), _watched_randomness(f"{self.name}: {verb}"):
            result = getattr(self.learner, verb)(*given)
        self.check_handed()
        if verb != "learn":
            _check_answers(result, len(given[0]), f"{self.name}: {verb}")
        return result

    def _hand(self, thing: Any, verb: str) -> None:
        assert not _leads_to(thing, self.labels), f"what {verb} is handed leads to labels that were not revealed"
        self.handed.append((thing, digest(thing)))

    @contextmanager
    def _sentence(self, verb: str) -> Iterator[None]:
        try:
            yield
        except AssertionError:
            raise
        except Exception as error:
            raise AssertionError(f"{self.name}: {verb} fails: {error!r}") from error


@dataclass
class _Trial:
    """One method with one kind of model."""

    make: Make
    make_model: MakeModel
    name: str

    def __post_init__(self) -> None:
        self.name = f"{self.name} with {_name(self.make_model)}"
        self.upstream, *parts, self.probe = (_samples(k) for k in range(STEPS + 2))
        self.steps = [Step(k, f"t{k}", part) for k, part in enumerate(parts)]

    def model(self) -> Any:
        return self.make_model(SHAPE, TASK.width, Seed(1))

    def learner(self) -> Learner:
        learner, model = self.make(), self.model()
        learner.seed = Seed(2)
        before = digest(_columns(self.upstream))
        with _watched_randomness(f"{self.name}: prepare"):
            learner.prepare(model, TASK, self.upstream)
        assert digest(_columns(self.upstream)) == before, f"{self.name}: prepare modifies the upstream samples"
        return learner

    def check(self) -> None:
        self._smallest_batch()
        self._answer_is_predict()
        self._probes_do_not_matter()
        for delivery, rule in DELIVERIES.items():
            trial = _Trial(self.make, self.make_model, _name(self.make))
            trial.name = f"{self.name}, shown {delivery}"
            trial._same_each_time(rule)
        for rule in (DELIVERIES["all labels at once"], DELIVERIES["labels two steps late"]):
            self._survives_interruption(rule)

    def run(self, rule: dict[str, Any], *, seed: int = 0, probed: bool = False) -> tuple[list[str], dict[str, str]]:
        """All answers and the final state, with the global random numbers started from `seed`."""
        with _global_seed(seed):
            return self._walk(self.learner(), Revealing(TASK, seed=Seed(3), **rule), 0, STEPS, probed=probed)

    def _walk(
        self, learner: Learner, reveal: Revealing, start: int, stop: int, *, probed: bool = False
    ) -> tuple[list[str], dict[str, str]]:
        watched = _Watched(learner, self.name, [step.samples.y for step in self.steps])
        notes, probes = _Notes(), _Examined(self.probe if probed else None)
        if stop < STEPS:
            watched.finish = lambda: None  # type: ignore[method-assign]  # interrupted before the end
        loop.run(self.steps[:stop], watched, reveal, probes, notes, start=start)  # type: ignore[arg-type]
        watched.check_handed()
        return notes.answers, _picture(learner)

    def _smallest_batch(self) -> None:
        least = type(self.learner()).min_batch
        for n in {least, least + 1}:
            try:
                answers = self.learner().answer(self.steps[0].samples.x[:n])
            except Exception as error:
                said = f"and min_batch = {least} says it can; declare what it needs"
                raise AssertionError(f"{self.name} cannot answer {n} input(s) at once, {said}: {error!r}") from error
            _check_answers(answers, n, f"{self.name}: answer")

    def _answer_is_predict(self) -> None:
        learner, x = self.learner(), self.steps[0].samples.x
        said = learner.predict(x)
        if type(learner).answer is Learner.answer:
            answer = learner.answer(x)
            same = digest([said.prediction, said.scores]) == digest([answer.prediction, answer.scores])
            assert same, f"{self.name}: answer differs from predict just before it, and `answer` is not overridden"

    def _same_each_time(self, rule: dict[str, Any]) -> None:
        (answers, end), (answers_too, end_too) = self.run(rule, seed=0), self.run(rule, seed=1)
        differ = [key for key in end if end[key] != end_too.get(key)]
        why = "is everything random drawn from self.seed?"
        assert not differ, f"{self.name}: the same seed and data do not give the same {', '.join(differ)}; {why}"
        assert answers == answers_too, f"{self.name}: the same seed and data do not give the same answers; {why}"

    def _probes_do_not_matter(self) -> None:
        rule = DELIVERIES["all labels at once"]
        alone, probed = self.run(rule), self.run(rule, probed=True)
        assert alone == probed, f"{self.name} ends differently if predict is called on the way; it must change nothing"

    def _survives_interruption(self, rule: dict[str, Any]) -> None:
        whole, end = self.run(rule)
        for cut in range(1, STEPS):
            learner, reveal = self.learner(), Revealing(TASK, seed=Seed(3), **rule)
            self._walk(learner, reveal, 0, cut)
            fresh, fresh_reveal = self.learner(), Revealing(TASK, seed=Seed(3), **rule)
            saved = self._saved_and_loaded({"learner": learner.state(), "reveal": reveal.state()})
            fresh.restore(saved["learner"])
            fresh_reveal.restore(saved["reveal"])
            before, after = digest(learner.state()), digest(fresh.state())
            assert before == after, f"{self.name}: restore does not bring back what state() gave"
            answers, end_too = self._walk(fresh, fresh_reveal, cut, STEPS)
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


def _models(learner: Learner) -> Iterator[MakeModel]:
    if importlib.util.find_spec("torch"):
        from driftline.models.networks import linear

        yield _small_network
        yield linear
    if not type(learner).networks_only:
        yield naive_bayes
        yield logistic


def _small_network(shape: tuple[int, ...], outputs: int, seed: Seed) -> Any:
    import torch
    from torch import nn

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed.value % 2**63)
        block = [nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.2)]
        network = nn.Sequential(*block, nn.Flatten(), nn.Linear(64, outputs)).eval()
        return network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def _samples(k: int) -> Samples:
    """Small pictures with a bright band whose place is the class; the band moves from step to step."""
    rng = np.random.default_rng(k)
    y = rng.permutation(np.arange(18) % TASK.width)
    x = rng.integers(0, 120, (18, *SHAPE), dtype=np.uint8)
    for i, label in enumerate(y):
        x[i, (2 * label + k // 2) % 8] += np.uint8(100)
    return Samples(x=x, y=y, id=100 * k + np.arange(18))


def _check_answers(answers: Answers, n: int, what: str) -> None:
    assert isinstance(answers, Answers), f"{what} must return Answers, not {type(answers).__name__}"
    prediction = np.asarray(answers.prediction)
    assert prediction.shape == (n,), f"{what} gives predictions of shape {prediction.shape} for {n} inputs"
    known = prediction.dtype.kind in "iu" and bool(((prediction >= 0) & (prediction < TASK.width)).all())
    assert known, f"{what} predicts something that is no class index from 0 to {TASK.width - 1}"
    if answers.scores is not None:
        shape = answers.scores.shape
        assert shape == (n, TASK.width), f"{what} gives scores of shape {shape}, not {(n, TASK.width)}"
        proper = np.all(answers.scores >= 0) and np.allclose(answers.scores.sum(axis=1), 1, atol=1e-3)
        assert proper, f"{what} gives scores that are no probabilities"


def _picture(learner: Learner) -> dict[str, str]:
    """A digest of each part of what a learner is: its state, and the modes of any network that it holds."""
    try:
        parts = {name: digest(value) for name, value in learner.state().items()}
    except TypeError as error:
        raise AssertionError(f"its state cannot be saved: {error}") from error
    for name, value in vars(learner).items():
        if hasattr(value, "named_modules"):
            modes = [(path, module.training) for path, module in value.named_modules()]
            grads = [(path, weight.requires_grad) for path, weight in value.named_parameters()]
            parts[f"the weights of {name}"] = digest(state.capture(value))
            parts[f"the train or eval mode of {name}"] = digest([modes, grads])
    return parts


@contextmanager
def _watched_randomness(what: str) -> Iterator[None]:
    before = _global_states()
    yield
    moved = [name for name, value in _global_states().items() if before[name] != value]
    assert not moved, f"{what} draws from the global random numbers of {', '.join(moved)}; draw from a seed instead"


def _global_states() -> dict[str, Any]:
    states: dict[str, Any] = {"python": random.getstate(), "numpy": digest(np.random.get_state(legacy=True))}
    if importlib.util.find_spec("torch"):
        import torch

        states["torch"] = torch.random.get_rng_state().numpy().tobytes()
    return states


@contextmanager
def _global_seed(seed: int) -> Iterator[None]:
    """Other global random numbers for a while."""
    python, numpy = random.getstate(), np.random.get_state()
    random.seed(seed)
    np.random.seed(seed)
    try:
        if importlib.util.find_spec("torch"):
            import torch

            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                yield
        else:
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)


def _leads_to(thing: Any, labels: list[np.ndarray]) -> bool:
    """Whether labels can be reached from a thing: through references, the base of a view, or shared memory."""
    seen: set[int] = set()
    waiting = [thing]
    while waiting:
        item = waiting.pop()
        if id(item) in seen or isinstance(item, type | types.ModuleType | types.FunctionType | str | int | float):
            continue
        seen.add(id(item))
        if isinstance(item, np.ndarray):
            if any(np.may_share_memory(item, column) for column in labels):
                return True
            waiting.append(item.base)
        elif hasattr(item, "untyped_storage"):  # a tensor sees all of its storage
            waiting += [np.asarray(item.detach()), item._base]
        waiting += gc.get_referents(item)
    return False


def _feed(update: Callable[[bytes], object], tree: Any) -> None:
    if isinstance(tree, dict):
        tree = [list(pair) for pair in tree.items()]
    if isinstance(tree, list | tuple):
        update(f"[{len(tree)}".encode())
        for item in tree:
            _feed(update, item)
        return
    if hasattr(tree, "detach"):
        tree = tree.detach().cpu().numpy()
    if hasattr(tree, "tocsr"):
        tree = tree.toarray()
    if isinstance(tree, np.ndarray) and tree.dtype.kind != "O":
        update(f"{tree.dtype.str}{tree.shape}".encode() + np.ascontiguousarray(tree).tobytes())
    elif hasattr(tree, "to_numpy"):
        _feed(update, tree.to_numpy().tolist())
    else:
        update(repr(tree.tolist() if isinstance(tree, np.ndarray) else tree).encode())


def _content(step: Step) -> list[Any]:
    return [step.index, step.time, _columns(step.samples)]


def _columns(samples: Samples) -> list[Any]:
    return [getattr(samples, column.name) for column in fields(samples)]


def _numbers(result: Any) -> list[np.ndarray]:
    """A metric's result as arrays: itself, or its fields, or its values."""
    if is_dataclass(result):
        result = [getattr(result, part.name) for part in fields(result)]
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, list | tuple):
        return [array for part in result if part is not None for array in _numbers(part)]
    array = np.asarray(result)
    assert array.dtype.kind in "biuf", f"a metric returns numbers, not {result!r}"
    return [array]


def _same(one: list[np.ndarray], other: list[np.ndarray], *, close: bool = False) -> bool:
    if [array.shape for array in one] != [array.shape for array in other]:
        return False
    rtol = 1e-9 if close else 0
    return all(np.allclose(a, b, rtol=rtol, atol=rtol, equal_nan=True) for a, b in zip(one, other, strict=True))


def _arrays_to(lay: Callable[[np.ndarray], np.ndarray], example: dict[str, Any]) -> dict[str, Any]:
    return {key: lay(value) if isinstance(value, np.ndarray) else value for key, value in example.items()}


def _strided(array: np.ndarray) -> np.ndarray:
    """The same numbers as a view of every second entry."""
    wide = np.repeat(array[..., None], 2, axis=-1)
    return wide[..., 0]


def _stack(values: list[Any]) -> Any:
    same = all(isinstance(value, np.ndarray) and value.shape == values[0].shape for value in values)
    return np.stack(values) if same else values[0]


def _name(make: Any) -> str:
    make = getattr(make, "func", make)
    return str(getattr(make, "__name__", make))
