"""Models that users bring: decided by what they are, not by how they are named."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import Perceptron

from driftline import models
from driftline.errors import UserError
from driftline.models.sklearn_models import SklearnModel
from driftline.models.user_models import factory_of
from driftline.seeds import Seed
from driftline.spec.settings import Choice, with_defaults
from driftline.training.optimizers import new_optimizer

SOURCE = """
import functools
from torch import nn
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

class Net(nn.Module):
    def __init__(self, shape, outputs, hidden=6):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(shape[0], hidden), nn.Dropout(), nn.Linear(hidden, outputs))
    def forward(self, x):
        return self.layers(x)

class Fixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)
    def forward(self, x):
        return self.layer(x)

class Majority(ClassifierMixin, BaseEstimator):
    def __init__(self, add=0):
        self.add = add
    def fit(self, x, y):
        self.classes_, self.most_ = sorted(set(y)), max(set(y), key=list(y).count)
        return self
    def predict(self, x):
        return [self.most_] * len(x)

class Duck:
    def fit(self, x, y):
        return self
    def predict(self, x):
        import numpy
        return numpy.ones(len(x), int)

def no_seed(shape, outputs, *, width=5):
    return nn.Linear(shape[0], outputs)

def annotated(shape: tuple[int, ...], outputs: int, seed: object, *, width: int = 5) -> nn.Module:
    return nn.Linear(shape[0], outputs)

def forest(seed, *, trees: int = 3):
    return RandomForestClassifier(n_estimators=trees)

def own_state():
    return RandomForestClassifier(3, random_state=7)

def pipeline() -> BaseEstimator:
    return make_pipeline(StandardScaler(), GaussianNB())

def ridge():
    return Ridge()

def unreadable(width: Nowhere = 3):
    return GaussianNB()

made = GaussianNB()
net = Fixed()
partial = functools.partial(forest, trees=2)
five = 5
"""
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(60, 4)), np.arange(60) % 3


@pytest.fixture
def own(tmp_path: Path) -> str:
    (tmp_path / "own.py").write_text(SOURCE.replace("Nowhere", '"Nowhere"'))
    return f"{tmp_path}/own.py"


def test_a_network_class_is_a_model_and_its_parameters_are_options(own: str) -> None:
    name = f"{own}:Net"
    assert with_defaults("model", Choice(name=name)).settings == {"hidden": 6, "weights": None, "head": "keep"}
    first, again, other = (models.build(name, (4,), 3, Seed(k), hidden=5) for k in (0, 0, 1))
    assert not first.training
    assert first.layers[0].weight.shape == (5, 4)
    assert torch.equal(first.layers[0].weight, again.layers[0].weight), "its weights come from the seed"
    assert not torch.equal(first.layers[0].weight, other.layers[0].weight)
    state = torch.random.get_rng_state()
    models.build(f"{own}:Fixed", (4,), 3)
    assert torch.equal(state, torch.random.get_rng_state())


@pytest.mark.parametrize("name", ["Majority", "Duck", "forest", "pipeline", "made", "partial", "own_state"])
def test_what_has_fit_and_predict_is_an_estimator(own: str, name: str) -> None:
    model = models.build(f"{own}:{name}", (4,), 3)
    assert isinstance(model, SklearnModel)
    model.fit(X, Y)
    assert model.predict(X).shape == (60, 3)


@pytest.mark.parametrize("name", ["Net", "no_seed", "net", "Fixed", "annotated"])
def test_a_file_of_weights_is_loaded(own: str, name: str, tmp_path: Path) -> None:
    """Into a class, a function, an object; with and without parameters and annotations."""
    source = models.build(f"{own}:{name}", (4,), 3, Seed(5))
    torch.save({f"module.{key}": value + 1 for key, value in source.state_dict().items()}, tmp_path / "own.pth")
    weights = str(tmp_path / "own.pth")
    assert (
        with_defaults("model", Choice(name=f"{own}:{name}", settings={"weights": weights})).settings["head"] == "keep"
    )
    model = models.build(f"{own}:{name}", (4,), 3, Seed(6), weights=weights)
    assert all(torch.equal(value, source.state_dict()[key] + 1) for key, value in model.state_dict().items())
    assert model.pretrained
    assert model.loaded_weights.prefix == "module."
    assert not hasattr(source, "pretrained")


def test_a_new_head_has_the_outputs_of_the_task(own: str, tmp_path: Path) -> None:
    first, again, other = (
        models.build(f"{own}:Net", (4,), 9, Seed(k), head="new", weights=_saved_net(own, tmp_path)) for k in (0, 0, 1)
    )
    assert first.layers[2].weight.shape == (9, 6)
    assert torch.equal(first.layers[2].weight, again.layers[2].weight)
    assert not torch.equal(first.layers[2].weight, other.layers[2].weight)
    assert first.loaded_weights.initialized == ["layers.2.bias", "layers.2.weight"]
    loaded = models.build(f"{own}:net", (4,), 7, head="new")  # of the object itself
    assert loaded.layer.out_features == 7
    assert not loaded.pretrained


def _saved_net(own: str, folder: Path) -> str:
    torch.save(models.build(f"{own}:Net", (4,), 3, Seed(5)).state_dict(), folder / "net.pth")
    return str(folder / "net.pth")


def test_estimators_have_no_weights_to_load(own: str) -> None:
    with pytest.raises(UserError, match=r"forest' is not a network, so it has no model\.weights"):
        models.build(f"{own}:forest", (4,), 3, weights="own.pth")
    assert "weights" not in with_defaults("model", Choice(name=f"{own}:Majority")).settings


def test_functions_without_seed_and_unannotated_options(own: str) -> None:
    choice = with_defaults("model", Choice(name=f"{own}:no_seed", settings={"width": "any"}))
    assert choice.settings == {"width": "any", "weights": None, "head": "keep"}
    one, other = (models.build(f"{own}:no_seed", (4,), 3, Seed(k)) for k in (0, 1))
    assert not torch.equal(one.weight, other.weight)
    with pytest.raises(UserError, match=r"no setting 'widht'\. Did you mean 'width'"):
        with_defaults("model", Choice(name=f"{own}:no_seed", settings={"widht": 3}))
    with pytest.raises(UserError, match="cannot read its type annotations: name 'Nowhere' is not defined"):
        with_defaults("model", Choice(name=f"{own}:unreadable"))


def test_a_random_state_that_the_user_set_is_kept(own: str) -> None:
    assert models.build(f"{own}:own_state", (4,), 3, Seed(1)).template.random_state == 7
    assert models.build(f"{own}:forest", (4,), 3, Seed(1)).template.random_state == Seed(1).value % 2**32
    dotted = "sklearn.linear_model.Perceptron"  # which has 0 unless told otherwise
    assert models.build(dotted, (4,), 3, Seed(1)).template.random_state == Seed(1).value % 2**32
    assert models.build(dotted, (4,), 3, Seed(1), random_state=5).template.random_state == 5


def test_an_object_is_copied(own: str) -> None:
    first, second = (models.build(f"{own}:net", (4,), 3) for _ in range(2))
    torch.nn.init.zeros_(first.layer.weight)
    assert (second.layer.weight != 0).any()


def test_models_that_are_none_get_a_sentence(own: str) -> None:
    with pytest.raises(UserError, match="ridge is not a classifier, and the task needs one"):
        models.build(f"{own}:ridge", (4,), 3)
    with pytest.raises(UserError, match="pipeline is not a regressor"):
        models.build(f"{own}:pipeline", (4,), 1)
    with pytest.raises(UserError, match=r"'.*:five' is not a torch\.nn\.Module or sklearn"):
        models.build(f"{own}:five", (4,), 3)


def test_only_what_says_so_is_known_for_an_estimator_before_it_is_made(own: str) -> None:
    assert models.is_estimator(f"{own}:pipeline")
    assert models.is_estimator(f"{own}:Majority")
    assert not models.is_estimator(f"{own}:Net")


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("prod.pkl", r"def make\(\*, file: str = 'prod.pkl'\): return pickle.load\(open\(file, \"rb\"\)\)`"),
        ("prod.joblib", r"import joblib` and .* return joblib.load\(file\)`, and give prod.py:make"),
        ("prod.py", "prod.py is a file: name the class or function in it that is the model, prod.py:NAME"),
    ],
)
def test_a_file_given_for_a_model_is_told_how(name: str, way: str) -> None:
    with pytest.raises(UserError, match=way):
        models.build(name)


def broken_factory(shape: Any, outputs: int) -> Any:
    raise RuntimeError("no license")


def test_a_factory_that_raises_is_named_with_its_reason() -> None:
    with pytest.raises(UserError, match="model 'mine:broken' cannot be made: RuntimeError: no license"):
        factory_of("mine:broken", broken_factory)((4,), 2, Seed(0))


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_network_without_parameters_is_refused(optimizer: str) -> None:
    with pytest.raises(UserError, match="the network has no parameters to train"):
        new_optimizer(optimizer, torch.nn.Identity().parameters(), lr=0.1)


def test_lazy_layers_are_refused(tmp_path: Path) -> None:
    (tmp_path / "lazy.py").write_text("from torch import nn\ndef make(outputs): return nn.LazyLinear(outputs)\n")
    with pytest.raises(UserError, match=r"lazy.py:make' has lazy layers: give them sizes"):
        models.build(f"{tmp_path}/lazy.py:make", shape=(3,), outputs=2)


def test_estimators_of_lightgbm_and_xgboost_have_dotted_names(monkeypatch: pytest.MonkeyPatch) -> None:
    class XGBClassifier(Perceptron):
        pass

    package = ModuleType("xgboost")
    package.XGBClassifier = XGBClassifier  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "xgboost", package)
    XGBClassifier.__module__ = "xgboost"
    assert isinstance(models.build("xgboost.XGBClassifier", (4,), 3, Seed(1)).template, XGBClassifier)
