"""T3A: class prototypes from the classifier's weights and the stream's most confident features; nothing is trained.

Iwasawa and Matsuo, "Test-Time Classifier Adjustment Module for Model-Agnostic Domain Generalization", NeurIPS 2021.
Each class has a set of supports, at first rows of the last linear layer: row w_k belongs to the class that the layer
answers to w_k. The features f of a batch (the inputs of that layer) join the sets of the classes that the network
predicts for them; of each class the `n_supports` with the smallest entropy stay, rows of the layer included. With u(v)
= v / |v| the prototype of a class is c = u(sum of u(v) over its supports), and its score f . c, without a bias. The
batch joins before it is answered. As in the authors' code, the network keeps its running statistics.

The paper chooses `n_supports` from 1, 5, 20, 50, 100 and all by validation; 20 is in use for ImageNet and CIFAR-100,
100 for CIFAR-10. "All" is not offered: it grows for ever. Scores have the scale of |f|, so that probabilities are not
calibrated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import normalize, one_hot

from driftline.device import to_numpy
from driftline.errors import RequirementError, UserError
from driftline.io.serialization import Stateful
from driftline.learners.base import Learner
from driftline.learners.settings import Count
from driftline.learners.test_time.base import entropy
from driftline.models.preprocessing import to_float_batch
from driftline.registry import register
from driftline.tasks import Classification, Task
from driftline.training.features import forward_with_features, linear_layers
from driftline.training.mac_counter import mac_counter_of
from driftline.training.modes import evaluating
from driftline.training.torch_model import torch_model
from driftline.types import Answers, Inputs, Network, Reveal, Samples

MAX_ERROR = 0.02  # of the last layer's outputs computed again, as a share of the largest: half precision has .008


@register("method", "t3a")
@dataclass
class T3A(Learner):
    """T3A: prototypes from the last layer's weights and the most confident features so far."""

    n_supports: Count = 20  # vectors per class
    batch: Annotated[int, Field(ge=1)] = 256  # maximum batch size; larger batches are split evenly

    min_reveal: ClassVar[Reveal] = Reveal.INPUTS
    requires = "network"
    transient = frozenset({"_head"})

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        if not isinstance(task, Classification):
            raise RequirementError("a classification task", "t3a needs a classification task")
        head = linear_layers(model)[-1]
        if head.out_features != task.width:
            raise UserError(f"t3a needs a network that ends in a linear layer with an output per class ({task.width})")
        self._head: nn.Linear | None = head  # until the first batch shows that the network ends in it
        vectors = head.weight.detach().clone()
        with torch.no_grad():
            outputs = vectors @ vectors.T + (0 if head.bias is None else head.bias)
        self.supports = Supports(vectors, outputs.argmax(dim=1), entropy(outputs))

    @property
    def batch_dependent(self) -> bool:
        return True

    def predict(self, x: Inputs) -> Answers:
        return self._answered(x)[0]

    def answer(self, x: Inputs) -> Answers:
        answers, self.supports = self._answered(x)
        return answers

    def adapt(self, x: Inputs) -> None:
        self.answer(x)

    @torch.no_grad()
    def _answered(self, x: Inputs) -> tuple[Answers, Supports]:
        """Return the answers to inputs, and the supports with them."""
        inputs, supports, outputs = torch_model(self.model).encode(x), self.supports, []
        for rows in torch.arange(len(inputs)).tensor_split(max(1, -(-len(inputs) // self.batch))):
            with evaluating(self.model):
                logits, features = forward_with_features(self.model, to_float_batch(inputs[rows]))
            self._check_head(features, logits)
            supports = supports.joined(features, logits, self.n_supports)
            outputs.append(features @ supports.prototypes(self._task.width).T)
            mac_counter_of(self.model).add(forward=features.numel() * self._task.width)
        return self._task.decode(to_numpy(torch.cat(outputs))), supports

    def _check_head(self, features: Tensor, logits: Tensor) -> None:
        """Refuse a network whose outputs are not those of its last linear layer."""
        if self._head is None:
            return
        if features.shape[1] == self._head.in_features:
            error = (self._head(features) - logits).abs().max()
            if not error > MAX_ERROR * logits.abs().max():  # also if both are NaN
                self._head = None
                return
        raise UserError("t3a needs a network that ends in a linear layer, and this one's outputs are not its last's")


class Supports(Stateful):
    """Vectors with the class that each one stands for and the entropy of its answer."""

    def __init__(self, vectors: Tensor, labels: Tensor, entropies: Tensor) -> None:
        self.vectors, self.labels, self.entropies = vectors, labels, entropies

    def joined(self, features: Tensor, logits: Tensor, n_supports: int) -> Supports:
        """Return these supports and new ones: of each class those with the smallest entropy, older ones first."""
        entropies = torch.cat([self.entropies, entropy(logits)])
        labels = torch.cat([self.labels, logits.argmax(dim=1)])
        order = entropies.argsort(stable=True)
        members = one_hot(labels[order], logits.shape[1])
        rank = (members.cumsum(dim=0) * members).sum(dim=1)  # 1 for the most confident of its class
        kept = order[rank <= n_supports].sort().values
        return Supports(torch.cat([self.vectors, features])[kept], labels[kept], entropies[kept])

    def prototypes(self, classes: int) -> Tensor:
        """Return one vector of length 1 per class; 0 for a class without supports."""
        members = one_hot(self.labels, classes).to(self.vectors.dtype)
        return normalize(members.T @ normalize(self.vectors, dim=1), dim=1)
