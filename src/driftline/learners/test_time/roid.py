"""ROID: certainty- and diversity-weighted likelihood ratios, weight ensembling and prior correction.

Marsden, Döbler and Yang, "Universal Test-time Adaptation through Weight Ensembling, Diversity Weighting, and Prior
Correction", WACV 2024. Per batch of B samples with probabilities p_i and entropies H_i, and with m a running mean of
probabilities (at first uniform; m <- 0.9 m + 0.1 mean p, after it was used):

    d_i = 1 - cos(m, p_i) and c_i = -H_i, each scaled to [0, 1] over the batch
    w_i = exp(3 d_i c_i), 0 where d_i < mean(d);  all held fixed
    loss = 1/B sum_i w_i (-sum_c q_ic log(q_ic / (1 - q_ic))) + 1/B sum_i w_i SCE(augmented_i, i)

with q = p cut at 0.99 and SCE the symmetric cross-entropy, with gradients through both sides. Only samples with a
weight are augmented and predicted again. After each step, trained weights move by 1 % back to their first values.
Answers are those from before the step, times a prior: with v = mean p of the batch and g = max(1/B, 1/C) / max(v),

    s = (v + g) / (1 + g C)

multiplies the logits, as in the authors' code. That is not Bayes' rule, and depends on where logits have their zero;
`prior="probabilities"` multiplies probabilities, and "none" leaves the answers.

Settings are those for ImageNet; for CIFAR the authors use Adam with lr 1e-3. Departs from their code in that B is the
size of the batch at hand, not the configured one; in that a batch whose d or c are all alike, such as a single sample,
has 0 where scaling would divide by 0; and in that, with batch norm, a single sample with a weight is not augmented, as
it would have no batch statistics.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from driftline.device import to_device
from driftline.errors import UserError
from driftline.learners.settings import Fraction, Inside, Positive
from driftline.learners.test_time.base import NormAdapter
from driftline.learners.test_time.cotta import symmetric_cross_entropy
from driftline.registry import register
from driftline.tasks import Task
from driftline.training.cotta_augmentations import roid_augment
from driftline.training.fit import optimizer_step
from driftline.training.optimizers import new_optimizer
from driftline.types import Network, Samples

MEAN_DECAY, MAX_PROBABILITY, RATIO_OFFSET = 0.9, 0.99, 1e-5


@register("method", "roid")
@dataclass
class ROID(NormAdapter):
    """ROID: certainty- and diversity-weighted likelihood ratios, weight ensembling and prior correction."""

    momentum: Inside = 0.9
    temperature: Positive = 1 / 3  # temperature of the samples' weights
    source_momentum: Fraction = 0.99  # share of the trained weights after each step; the rest: source weights
    prior: Literal["logits", "probabilities", "none"] = "logits"  # what the prior corrects

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.optim = new_optimizer(self.optimizer, self._weights, lr=self.lr, momentum=self.momentum, nesterov=True)
        self.mean = to_device(torch.full((task.width,), 1 / task.width))
        self.steps = 0

    def outputs(self, x: Tensor, batch_offset: int) -> Tensor:
        return with_prior(super().outputs(x, batch_offset), self.prior)

    def adapt_batch(self, x: Tensor) -> Tensor:
        if x.ndim != 4:
            raise UserError("roid augments images, and these inputs are not images")
        outputs: Tensor = self.model(x)
        p = outputs.detach().softmax(dim=1)
        weights = sample_weights(p, self.mean, self.temperature)
        self.mean = MEAN_DECAY * self.mean + (1 - MEAN_DECAY) * p.mean(dim=0)
        loss = (weights * soft_likelihood_ratio(outputs)).sum()
        rows = weights.nonzero()[:, 0]
        if len(rows) >= self._min_inputs:
            augmented = self.model(roid_augment(x[rows], self.seed.child("augmentation", self.steps).torch()))
            loss = loss + (weights[rows] * symmetric_cross_entropy(augmented, outputs[rows])).sum()
        optimizer_step(self.optim, loss / len(x))
        self._move_towards_first_weights()
        self.steps += 1
        return with_prior(outputs.detach(), self.prior)

    @torch.no_grad()
    def _move_towards_first_weights(self) -> None:
        for weight, first in zip(self._weights, self._initial_weights, strict=True):
            weight.lerp_(first, 1 - self.source_momentum)


def sample_weights(p: Tensor, mean: Tensor, temperature: float) -> Tensor:
    """Return each sample's weight: large if its answer is certain and unlike the mean, 0 if it is like the mean."""
    diversity = _scaled(1 - cosine_similarity(mean[None], p))
    certainty = _scaled((p * p.clamp(min=1e-30).log()).sum(dim=1))
    weights = (diversity * certainty / temperature).exp()
    return torch.where(diversity < diversity.mean(), 0.0, weights)


def _scaled(values: Tensor) -> Tensor:
    """Return values scaled to [0, 1]; 0 if all are alike."""
    spread = values.max() - values.min()
    return (values - values.min()) / torch.where(spread > 0, spread, 1.0)


def soft_likelihood_ratio(outputs: Tensor) -> Tensor:
    """Return -sum_c q_c log(q_c / (1 - q_c)) of each sample, with probabilities q cut at 0.99."""
    q = outputs.softmax(dim=1).clamp(max=MAX_PROBABILITY)
    return -(q * (q / (1 - q) + RATIO_OFFSET).log()).sum(dim=1)


def with_prior(outputs: Tensor, kind: str) -> Tensor:
    """Return outputs corrected by the smoothed mean of their own probabilities."""
    if kind == "none":
        return outputs
    n, classes = outputs.shape
    mean = outputs.softmax(dim=1).mean(dim=0)
    smoothing = max(1 / n, 1 / classes) / mean.max()
    prior = (mean + smoothing) / (1 + smoothing * classes)
    return outputs * prior if kind == "logits" else outputs.log_softmax(dim=1) + prior.log()
