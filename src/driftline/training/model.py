"""The model protocol: what learners and the engine need from a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from driftline.models.sklearn_models import SklearnModel
from driftline.types import Inputs, Network

if TYPE_CHECKING:
    from driftline.models.weights import LoadedWeights
    from driftline.training.mac_counter import MacCounter


class Model(Protocol):
    """A network, a scikit-learn estimator or a text generator behind one interface.

    A learner keeps the network or the estimator itself as `self.model`; `as_model` gives the adapter.
    """

    is_network: ClassVar[bool]
    """Whether it is trained by gradient steps. `fit` and `partial_fit` train the others."""
    generates_text: ClassVar[bool]
    """Whether `predict` returns texts."""

    @property
    def is_pretrained(self) -> bool | None:
        """Whether it comes trained, its head included; None if that is unknown."""

    @property
    def loaded_weights(self) -> LoadedWeights | None:
        """The origin of its weights, if they were loaded from a file."""

    @property
    def mac_counter(self) -> MacCounter | None:
        """The counter of multiply-accumulates attached to it."""

    @property
    def supports_partial_fit(self) -> bool:
        """Whether it can learn from more data without starting again."""

    def predict(self, x: Inputs) -> np.ndarray:
        """Return raw outputs, or texts."""

    def fit(self, x: Inputs, y: np.ndarray) -> None:
        """Train from scratch on these inputs and targets."""

    def partial_fit(self, x: Inputs, y: np.ndarray) -> None:
        """Train on these inputs and targets, on top of the earlier ones."""

    def features(self, x: Inputs) -> np.ndarray | None:
        """Return what a network's head sees (`training.features`); None if the model has no features."""

    def truncated(self, x: Inputs) -> int | None:
        """Return how many texts are longer than it reads; None if it reads no texts."""

    def clone(self) -> Network:
        """Return a copy of what it adapts that trains independently."""

    def state(self) -> Any:
        """Return the state to save."""

    def restore(self, state: Any) -> None:
        """Restore a saved state."""


def as_model(model: Network) -> Model:
    """Return the adapter of a network or an estimator."""
    if isinstance(model, SklearnModel):
        return model
    from driftline.training.torch_model import torch_model  # torch is not loaded for estimators

    return torch_model(model)
