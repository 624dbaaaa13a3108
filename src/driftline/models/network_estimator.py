"""A torch network as an estimator with `fit` and `predict`, for tables that are encoded as numbers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from driftline.errors import UserError
from driftline.seeds import Seed
from driftline.types import Network

EPOCHS, MIN_STEPS, BATCH, LR = 20, 300, 64, 1e-2


class NetworkEstimator(BaseEstimator):
    """A network that is built again for each fit and trained by AdamW on standardized numbers.

    `make(width)` returns an untrained network for inputs of this width. `labels`: the classes of its outputs; None for
    a number.
    """

    def __init__(self, make: Callable[[int], Network], labels: np.ndarray | None, seed: Seed) -> None:
        self.make, self.labels, self.seed = make, labels, seed

    def __getattr__(self, name: str) -> Any:
        if name == "predict_proba" and vars(self).get("labels") is not None:
            return self._probabilities
        raise AttributeError(name)

    def fit(self, x: np.ndarray, y: np.ndarray) -> NetworkEstimator:
        """Train a new network."""
        import torch
        from torch.nn import functional

        x, y = np.asarray(x, np.float32), np.asarray(y)
        self.center_, self.spread_ = x.mean(axis=0), np.maximum(x.std(axis=0), 1e-6)
        self.network_ = self.make(x.shape[1])
        if self.labels is None:
            self.level_, self.scale_ = float(y.mean()), max(float(y.std()), 1e-12)
            targets = torch.tensor((y - self.level_) / self.scale_, dtype=torch.float32)
        else:
            self.classes_ = self.labels
            index = {label: k for k, label in enumerate(self.labels.tolist())}
            targets = torch.tensor([index[label] for label in y.tolist()])
        inputs, n = self._inputs(x), len(x)
        optimizer = torch.optim.AdamW(self.network_.parameters(), lr=LR)
        epochs = max(EPOCHS, -(-MIN_STEPS * BATCH // n))
        random = self.seed.child("network").numpy()
        self.network_.train()
        with self.seed.child("dropout").as_torch_default():
            for _ in range(epochs):
                for part in np.array_split(random.permutation(n), max(1, n // BATCH)):
                    outputs, goal = self._outputs(inputs[part]), targets[part]
                    loss = functional.mse_loss(outputs[:, 0], goal) if self.labels is None else _entropy(outputs, goal)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
        self.network_.eval()
        return self

    def predict(self, x: np.ndarray) -> np.ndarray:
        if self.labels is None:
            return self._evaluate(x)[:, 0] * self.scale_ + self.level_
        return np.asarray(self.labels[self._probabilities(x).argmax(axis=1)])

    def _probabilities(self, x: np.ndarray) -> np.ndarray:
        outputs = self._evaluate(x)
        if outputs.shape[1] == 1:
            outputs = np.column_stack([np.zeros(len(outputs)), outputs])
        shifted = np.exp(outputs - outputs.max(axis=1, keepdims=True))
        return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))

    def _evaluate(self, x: np.ndarray) -> np.ndarray:
        import torch

        with torch.no_grad():
            return np.asarray(self._outputs(self._inputs(np.asarray(x, np.float32))).numpy(), float)

    def _inputs(self, x: np.ndarray) -> Any:
        import torch

        return torch.from_numpy(((x - self.center_) / self.spread_).astype(np.float32))

    def _outputs(self, inputs: Any) -> Any:
        """Return the outputs; refuse a network that does not fit the table."""
        width = inputs.shape[1]
        try:
            outputs = self.network_(inputs)
        except RuntimeError as error:
            name, reason = type(self.network_).__name__, " ".join(str(error).split())[:100]
            raise UserError(
                f"the network {name} does not take the {width} numbers of an encoded row: give a function with an "
                f"argument `shape`, which is then ({width},) ({reason})"
            ) from error
        expected = {1} if self.labels is None else {len(self.labels), *([1] if len(self.labels) == 2 else [])}
        if outputs.ndim != 2 or outputs.shape[1] not in expected:
            raise UserError(
                f"the network {type(self.network_).__name__} returns outputs of shape {tuple(outputs.shape)}, and the "
                f"target needs {max(expected)} per row"
            )
        return outputs


def _entropy(outputs: Any, targets: Any) -> Any:
    """Return the cross-entropy; with a single output, that of the second of two classes."""
    from torch.nn import functional

    if outputs.shape[1] == 1:
        return functional.binary_cross_entropy_with_logits(outputs[:, 0], targets.float())
    return functional.cross_entropy(outputs, targets)


def is_network(thing: object) -> bool:
    """Return whether a thing is a torch module; torch is not imported for the question."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(thing, torch.nn.Module)
