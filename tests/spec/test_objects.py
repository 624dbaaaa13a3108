"""Objects in a spec: what they are called, what they are refused for, and what reaches another process."""

from __future__ import annotations

import gc
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from torch import nn

from driftline import data, models, registry, spec
from driftline.errors import UserError
from driftline.io import user_objects
from driftline.learners.base import Learner
from driftline.learners.replay.er import ER
from driftline.learners.supervised.base import SupervisedLearner
from driftline.seeds import Seed
from driftline.spec.keys import run_key
from driftline.spec.settings import with_defaults
from driftline.types import Samples

GIVEN: dict[str, Any] = {"benchmark": "timeline", "data": "digits", "model": "mlp"}
FRAME = pd.DataFrame({"day": np.arange(40) // 10, "size": np.linspace(0, 1, 40), "left": np.arange(40) % 2})


@dataclass
class Keep(SupervisedLearner):
    """Training on a share of the labels."""

    share: float = 0.5
    parts: tuple[int, ...] = (1, 2)

    def learn(self, x: Any, y: Any) -> None:
        n = int(len(y) * self.share)
        self.train(x[:n], y[:n])


class Net(nn.Module):
    """One layer."""

    def __init__(self, shape: tuple[int, ...], outputs: int, *, bias: bool = True) -> None:
        super().__init__()
        self.layer = nn.Linear(int(np.prod(shape)), outputs, bias)


def labels(*methods: Any) -> list[str]:
    return [job.label for job in spec.parse({**GIVEN, "methods": list(methods)}).jobs("mlp")]


def test_methods_are_shown_by_their_class_and_changed_settings() -> None:
    given = (Keep, Keep(share=0.3), partial(Keep, share=0.2), {"name": Keep, "share": 0.1}, ER, ER(lr=0.5), "ft")
    assert labels(*given) == [
        "Keep", "Keep(share=0.3)", "Keep(share=0.2)", "Keep(share=0.1)", "er", "er(lr=0.5)", "ft",
    ]  # fmt: skip


def test_an_instance_has_the_key_of_its_class_with_settings_and_another_class_another_key() -> None:
    parsed = spec.parse({**GIVEN, "methods": [Keep(share=0.3), {"name": Keep, "share": 0.4}]})
    again = spec.parse({**GIVEN, "methods": {"name": Keep, "share": 0.3}})
    (one, two), (same,) = parsed.jobs("mlp"), again.jobs("mlp")
    assert run_key(one, "f") == run_key(same, "f") != run_key(two, "f")

    other = type("Keep", (Keep,), {})
    subclassed = spec.parse({**GIVEN, "methods": [other(share=0.3)]})  # objects live as long as their spec
    (changed,) = subclassed.jobs("mlp")
    assert changed.label == one.label
    assert run_key(changed, "f") != run_key(one, "f")


def test_a_search_names_a_method_by_its_class() -> None:
    selection = {"grid": {"Keep.share": [0.1, 0.2], "updates": [5]}, "rule": "oracle"}
    (job,) = spec.parse({**GIVEN, "methods": [Keep], "selection": selection}).jobs("mlp")
    assert job.search is not None
    assert job.search.candidates == ({"updates": 5, "share": 0.1}, {"updates": 5, "share": 0.2})


def test_networks_and_estimators_are_built_from_classes_functions_and_objects() -> None:
    net = Net((3,), 2)
    logistic = LogisticRegression(C=2.0)
    for model, shown in (
        (Net, "Net"),
        (net, "Net"),
        (logistic, "LogisticRegression"),
        (lambda: LogisticRegression(C=2.0), "lambda"),
    ):
        parsed = spec.parse({**GIVEN, "model": model, "methods": ["ft"]})
        assert parsed.model is not None
        assert user_objects.display_name(parsed.model.name) == shown
        built = models.build(parsed.model.name, (3,), 2, Seed(1))
        if model is net:
            assert built is not net
            assert (built.layer.weight == net.layer.weight).all()
        if shown in ("LogisticRegression", "lambda"):
            assert built.template.C == 2.0
            assert logistic.random_state is None
    narrow = spec.parse({**GIVEN, "model": {"name": Net, "bias": False}, "methods": ["ft"]})
    assert narrow.jobs("mlp")[0].model.settings == {"bias": False, "weights": None, "head": "keep"}


def load(given: Any) -> data.Dataset:
    parsed = spec.parse({**GIVEN, "data": given, "methods": ["ft"]})
    choice = with_defaults("dataset", parsed.data)
    return data.load(choice.name, choice.settings)


def test_data_are_samples_frames_arrays_datasets_and_functions() -> None:
    x, y = FRAME[["size"]].to_numpy(), FRAME["left"].to_numpy()
    samples = Samples(x=x, y=y, time=FRAME["day"].to_numpy())
    loaded = load(samples)
    assert (loaded.name, loaded.samples.time.tolist()[::10]) == ("Samples", [0, 1, 2, 3])
    assert load((x, y)).samples.y.tolist() == y.tolist()
    assert load(loaded).fingerprint == load(lambda: loaded).fingerprint == loaded.fingerprint
    table = load({"name": FRAME, "time": "day", "target": "left", "features": ["size"]})
    assert table.samples.x.ravel().tolist() == FRAME["size"].astype(np.float32).tolist()
    assert table.samples.y.tolist() == y.tolist()
    number = load(Samples(x=x, y=FRAME["size"].to_numpy(), time=samples.time))
    assert number.task.center == pytest.approx(FRAME["size"][:4].mean())


def test_what_is_no_method_model_or_data_is_refused_in_a_sentence() -> None:
    with pytest.raises(UserError, match="method 'Net' is not a driftline"):
        labels(Net)
    with pytest.raises(UserError, match="model 'int' is not a torch"):
        spec.parse({**GIVEN, "model": 3, "methods": ["ft"]})
    with pytest.raises(UserError, match="dataset 'int' is a int: expected a driftline"):
        spec.parse({**GIVEN, "data": 3, "methods": ["ft"]})
    with pytest.raises(UserError, match=r"needs time, target: data=\{\"name\": DataFrame, \"time\": ..."):
        load(FRAME)
    with pytest.raises(UserError, match="model 'dict' "):
        spec.parse({**GIVEN, "model": dict, "methods": ["ft"]})
    with pytest.raises(UserError, match="Keep: 'share' input should be a valid number"):
        labels(Keep(share="much"))  # type: ignore[arg-type]


@pytest.mark.parametrize("module", [{"__name__": "__main__"}, {}], ids=["a module", "no module"])
def test_without_source_an_object_runs_only_if_nothing_is_kept(module: dict[str, Any]) -> None:
    names: dict[str, Any] = {**module, "Learner": Learner}
    exec("class Silent(Learner):\n    def learn(self, x, y):\n        pass", names)
    given = {**GIVEN, "methods": [names["Silent"]]}
    with pytest.raises(UserError, match=r"method 'Silent' cannot be .* Silent.learn cannot be had.* cache=False"):
        spec.parse(given)
    assert spec.parse(given, cache=False).jobs("mlp")[0].label == "Silent"


def test_objects_are_known_as_long_as_their_spec_and_can_be_sent() -> None:
    parsed = spec.parse({**GIVEN, "methods": [Keep]})
    name, sent = parsed.methods[0].name, user_objects.dumps()
    del parsed
    gc.collect()
    with pytest.raises(UserError, match="was a Python object, which this process does not have"):
        registry.get("method", name)
    user_objects.receive(sent)
    received = registry.get("method", name)
    assert b"train" in sent, "sent as it is now, not as a name to import"
    assert received(share=0.25).share == 0.25
    assert registry.types_of(name, received)["share"] is float
    user_objects.receive(b"")
    gc.collect()
    assert user_objects.dumps() == b""


class Needs(Learner):
    """A method with an __init__ of its own."""

    def __init__(self, k: int) -> None:
        super().__init__()
        self.k = k


class Hides(Learner):
    """A method that stores its setting under another name."""

    def __init__(self, k: int = 1) -> None:
        super().__init__()
        self._k = k


class Anything(Learner):
    """A method with any settings."""

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self.settings = settings


@dataclass
class Holds(Learner):
    """A method with a setting of any type."""

    thing: Any = None


def test_an_instance_keeps_the_settings_of_its_own_init() -> None:
    assert labels(Needs(3), Needs(4)) == ["Needs(k=3)", "Needs(k=4)"]
    assert labels(Keep(parts=np.arange(3).tolist(), share=np.float32(0.25))) == ["Keep(share=0.25, parts=[0, 1, 2])"]


@pytest.mark.parametrize(
    ("methods", "sentence"),
    [
        ([Needs], r'needs k: methods=\[\{"name": Needs, "k": ...\}\]'),
        ([Hides(2)], "does not store its setting k: let __init__ set self.k"),
        ([Anything(a=1)], r"takes any setting \(\*\*settings\)"),
        ([Holds(np.ones(2))], "Holds has a setting that is not plain data .*ndarray"),
        ([Holds(np.mean)], "Holds has a setting that is not plain data"),
        ([Keep, type("Keep", (Keep,), {}), "ft"], "methods named twice: Keep. Leave one out, or rename"),
    ],
)
def test_an_instance_that_a_spec_cannot_hold_is_refused(methods: list[Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        labels(*methods)


def test_arrays_may_have_times_and_truth_values() -> None:
    x, days = np.zeros((4, 2)), np.datetime64("2024-01-01") + np.arange(4)
    loaded = load((x, np.array([True, False, True, True]), days))
    assert (loaded.samples.y.tolist(), loaded.samples.time.tolist()) == ([1, 0, 1, 1], days.tolist())
    with pytest.raises(UserError, match="'arrays' has 4 samples but 3 values of 'time'"):
        load((x, np.zeros(4, int), days[:3]))
    with pytest.raises(UserError, match=r"Names of classes become numbers by np\.unique"):
        load((x, np.array(["a", "b", "a", "b"])))


def test_an_object_that_is_nested_too_deeply_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(UserError, match="cannot be recognized in a later run: maximum recursion"):
        spec.parse({**GIVEN, "data": "digits", "model": LogisticRegression(class_weight=deep), "methods": ["ft"]})
