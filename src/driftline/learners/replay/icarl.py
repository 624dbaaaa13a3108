"""iCaRL: nearest mean of exemplars, with distillation.

Rebuffi et al., "iCaRL: Incremental Classifier and Representation Learning", CVPR 2017. After each delivery of labels
the network is trained on the delivery and all stored exemplars together, by the mean over samples and outputs of the
binary cross-entropy of sigmoid(h(x)) against

    target_c = sigmoid(h_old(x))_c   for classes c that were seen before and are not in this delivery
    target_c = 1[c = y]              for all other classes

with h_old the network as it was after the last delivery, on the same view of x. So the own class of an exemplar is not
told by its label, but by the old network. Then each class keeps m = capacity / (classes seen) exemplars, rounded down
but at least 1. With f the features, at length 1, and mu their mean over the class, exemplars are chosen one after
another (herding): the j-th brings their mean closest to mu. Older classes keep their first m. The answer is the class
whose exemplars' mean feature, at length 1 again and recomputed by the present network, is closest to f(x).

A class that comes again is treated as the classes of the paper, which never do: its targets are labels, of its
exemplars too, and its exemplars are chosen anew, from the delivery and those it had. So when every delivery has all
classes, nothing is distilled. Upstream samples, if there are any, count as a first delivery on which the network is
trained already. Without a class seen, the network's last layer answers.

Departs from the authors' code, which rounds m up, averages features of images and mirror images, and trains by SGD at
a rate of 2 for 70 epochs; here training has the length and optimizer of the benchmark's budget. Their 2,000 exemplars
are for 100 classes. The loss is a mean over outputs as in their code; the paper prints a sum.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, one_hot

from driftline.device import to_numpy
from driftline.learners.online.base import check_classification
from driftline.learners.settings import Count
from driftline.learners.supervised.base import SupervisedLearner
from driftline.models.preprocessing import to_float_batch
from driftline.registry import register
from driftline.tasks import Task
from driftline.training.batches import map_batches
from driftline.training.features import check_features, forward_with_features, unit_length
from driftline.training.fit import fit_input_scaling
from driftline.training.modes import evaluating
from driftline.training.torch_model import torch_model
from driftline.types import Answers, Inputs, Network, Reveal, Samples, Targets, concat_rows, take_rows


@register("method", "icarl")
@dataclass
class ICaRL(SupervisedLearner):
    """iCaRL: nearest mean of exemplars, with distillation from the network before the delivery."""

    capacity: Count = 500  # number of exemplars of all classes

    requires = "network"
    min_reveal = Reveal.ERRORS
    transient = frozenset({"_distilled"})

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        check_classification(self, task)
        check_features(model)
        self.exemplars: dict[int, Inputs] = {}  # of each class, in the order in which they were chosen
        self.means = np.zeros((0, 0), np.float32)  # of each class in `exemplars`
        self.old: Network = None
        if upstream is not None and len(upstream):
            self._end_delivery(upstream.x, upstream.y)

    def predict(self, x: Inputs) -> Answers:
        if not self.exemplars:
            return super().predict(x)
        outputs = np.full((len(x), self._task.width), -np.inf, np.float32)
        features, means = self.features(x), self.means
        squares = np.square(features).sum(axis=1)[:, None] + np.square(means).sum(axis=1)
        outputs[:, list(self.exemplars)] = 2 * features @ means.T - squares  # minus the squared distance
        return self._task.decode(outputs)

    def learn(self, x: Inputs, y: Targets) -> None:
        kept = list(self.exemplars.values())
        labels = [np.full(len(rows), label) for label, rows in zip(self.exemplars, kept, strict=True)]
        seen = np.isin(np.arange(self._task.width), list(self.exemplars))
        self._distilled = seen & ~np.isin(np.arange(self._task.width), y)
        if self.old is not None:
            fit_input_scaling(self.old, torch_model(self.old).encode(x))
        self.train(concat_rows([x, *kept]), np.concatenate([y, *labels]))
        self._end_delivery(x, y)

    def batch_loss(self, x: Tensor, y: Tensor) -> Tensor:
        outputs: Tensor = self.model(x)
        target = one_hot(y.long(), outputs.shape[1]).to(outputs.dtype)
        if self._distilled.any():
            with torch.no_grad():
                old = self.old(x).sigmoid()
            target = torch.where(torch_model(self.model).targets(self._distilled), old, target)
        return binary_cross_entropy_with_logits(outputs, target)

    def features(self, x: Inputs) -> np.ndarray:
        """Return features at length 1."""
        inputs = torch_model(self.model).encode(x)
        with evaluating(self.model), torch.no_grad():
            found = map_batches(lambda rows: forward_with_features(self.model, to_float_batch(rows))[1], inputs, 128)
        return unit_length(to_numpy(found))

    def _end_delivery(self, x: Inputs, y: Targets) -> None:
        """Choose exemplars, and keep the network and the means of exemplars until the next delivery."""
        fresh = {int(label): take_rows(x, np.flatnonzero(y == label)) for label in np.unique(y)}
        size = max(1, self.capacity // len(self.exemplars.keys() | fresh.keys()))
        for label in self.exemplars.keys() - fresh.keys():
            self.exemplars[label] = take_rows(self.exemplars[label], slice(0, size))
        for label, rows in fresh.items():
            pool = concat_rows([self.exemplars[label], rows]) if label in self.exemplars else rows
            self.exemplars[label] = take_rows(pool, herded(self.features(pool), size))
        means = [self.features(rows).mean(axis=0) for rows in self.exemplars.values()]
        self.means = unit_length(np.stack(means))
        self.old = copy.deepcopy(self.model).eval().requires_grad_(False)


def herded(features: np.ndarray, n: int) -> np.ndarray:
    """Return the rows of up to n features, of which each brings the mean of those before it closest to that of all.

    >>> herded(np.array([[1.0, 0.0], [0.0, 1.0], [0.8, 0.6], [0.28, -0.96]]), 4).tolist()
    [0, 1, 3, 2]
    """
    mean, total, chosen = features.mean(axis=0), np.zeros(features.shape[1]), []
    left = np.ones(len(features), bool)
    for count in range(1, min(n, len(features)) + 1):
        distance = np.square(mean - (total + features) / count).sum(axis=1)
        chosen.append(int(np.where(left, distance, np.inf).argmin()))
        left[chosen[-1]] = False
        total = total + features[chosen[-1]]
    return np.array(chosen, int)
