"""LAME: answers that agree between similar inputs of a batch; nothing is trained.

Boudiaf et al., "Parameter-free Online Test-time Adaptation", CVPR 2022. With p the network's probabilities and W the
affinities of a batch's features, Y <- softmax(log p + W Y) is repeated from Y = p until the energy
sum(-Y log p - Y W Y + Y log Y) stands still. As in the authors' code, the network keeps its running statistics.

Departs from the authors' default in that an input has the affinity 1 to its nearest neighbors and 0 to all others:
with rbf, their default, the affinities of a row add up to as much as the batch has inputs, so that the answers depend
on its size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn.functional import normalize

from driftline.device import to_numpy
from driftline.errors import RequirementError
from driftline.learners.base import Learner
from driftline.learners.settings import Count
from driftline.models.preprocessing import to_float_batch
from driftline.registry import register
from driftline.tasks import Classification, Task
from driftline.training.features import check_features, forward_with_features
from driftline.training.modes import evaluating
from driftline.training.torch_model import torch_model
from driftline.types import Answers, Inputs, Network, Reveal, Samples

ROUNDS, MIN_ROUNDS, TOLERANCE, SMALLEST = 100, 3, 1e-8, 1e-10


@register("method", "lame")
@dataclass
class LAME(Learner):
    """LAME: the network's answers, adjusted so that similar inputs of a batch agree."""

    batch: Annotated[int, Field(ge=1)] = 256  # maximum batch size; larger batches are split evenly
    affinity: Literal["knn", "rbf"] = "knn"  # rbf: a Gaussian of the distance
    n_neighbors: Count = 5  # rbf: the mean distance to this neighbor, itself the first, is the Gaussian's width

    min_reveal: ClassVar[Reveal] = Reveal.INPUTS
    requires = "network"

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        if not isinstance(task, Classification):
            raise RequirementError("a classification task", "lame needs a classification task")
        check_features(model)

    @property
    def batch_dependent(self) -> bool:
        return True

    def predict(self, x: Inputs) -> Answers:
        inputs = torch_model(self.model).encode(x)
        parts = torch.arange(len(inputs)).tensor_split(max(1, -(-len(inputs) // self.batch)))
        with evaluating(self.model), torch.no_grad():
            outputs = [self._outputs(to_float_batch(inputs[rows])) for rows in parts]
        return self._task.decode(to_numpy(torch.cat(outputs)))

    def _outputs(self, x: Tensor) -> Tensor:
        """Return the logarithms of the adjusted probabilities of a batch."""
        logits, features = forward_with_features(self.model, x)
        weights = affinities(features.flatten(1), self.affinity, self.n_neighbors)
        return (adjusted(logits.softmax(1), weights) + SMALLEST).log()


def affinities(features: Tensor, kind: str, n_neighbors: int) -> Tensor:
    """Return the affinities between rows of features, by the distance of their directions."""
    unit = normalize(features, dim=1)
    distance = torch.cdist(unit, unit, compute_mode="donot_use_mm_for_euclid_dist")
    k = min(n_neighbors, len(features) - 1)
    if kind == "rbf":
        width = distance.sort(dim=1).values[:, min(n_neighbors, len(features)) - 1].mean().clamp(min=SMALLEST)
        return (-distance.square() / (2 * width.square())).exp()
    others = distance.clone().fill_diagonal_(torch.inf)
    return torch.zeros_like(distance).scatter_(1, others.argsort(dim=1, stable=True)[:, :k], 1.0)


def adjusted(p: Tensor, weights: Tensor) -> Tensor:
    """Return the probabilities that rows with an affinity agree on."""
    log_p, y, energy = (p + SMALLEST).log(), p, torch.inf
    for number in range(1, ROUNDS + 1):
        pairwise = weights @ y
        y = (log_p + pairwise).softmax(1)
        before, energy = energy, (y * ((y + SMALLEST).log() - log_p - pairwise)).sum().item()
        if number >= MIN_ROUNDS and abs(energy - before) <= TOLERANCE * abs(before):
            break
    return y
