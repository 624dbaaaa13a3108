"""Episodic pretraining: prototypical networks and Meta-Baseline.

    prototypes      Snell et al., "Prototypical Networks for Few-shot Learning", NeurIPS 2017
    meta-baseline   Chen et al., "Meta-Baseline: Exploring Simple Meta-Learning for Few-Shot Learning", ICCV 2021

Wallingford et al., 2020 (NED), meta-train with 30 classes and 5 samples of each for 100 epochs at a learning rate of
0.01, which halves after 40 and 80. Here `updates` counts episodes and the rate halves after 40 and 80 % of them; where
there are fewer classes, an episode has them all. Departs from NED in the optimizer: Adam at 0.001, as Snell et al.,
because small networks learn little in the few episodes that a CPU has time for. `optimizer: sgd` and `lr` change it.
`batch` is of supervised training alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from driftline.device import to_device
from driftline.learners.online.base import zero_rows
from driftline.learners.supervised.base import SupervisedLearner
from driftline.models.preprocessing import to_float_batch
from driftline.registry import register
from driftline.seeds import Seed
from driftline.tasks import Task
from driftline.training.augmentations import augmented
from driftline.training.batches import iterations
from driftline.training.cached_features import classifier_layer, features_with_frozen_head
from driftline.training.few_shot import Episode, classes_with_at_least, cosine_logits, episodes, squared_distance_logits
from driftline.training.fit import optimizer_step, training_tensors
from driftline.training.modes import training
from driftline.types import Inputs, Network, Samples, Targets


@dataclass
class EpisodicTraining(SupervisedLearner):
    """Base class for episodic pretraining: the episodes and the learning-rate schedule."""

    way: int = 30  # classes in an episode
    shot: int = 5  # samples of a class to learn from
    query: int = 15  # samples of a class to classify

    requires = "network"

    def train_on_episodes(
        self, x: Inputs, y: Targets, n: int, update: Callable[[Tensor, Episode], None], seed: Seed
    ) -> None:
        """Update on n episodes, of `way` classes or as many as there are."""
        inputs, _ = training_tensors(self.model, x, y)
        inputs = augmented(inputs, self.augment, seed)
        samples = Samples(inputs, y)
        way = min(self.way, max(len(classes_with_at_least(y, self.shot + self.query)), 2))
        rates = [group["lr"] for group in self.optim.param_groups]
        with training(self.model, seed.child("noise")):
            drawn = episodes(samples, way, self.shot, self.query, n, seed)
            for k in iterations(n):
                episode = next(drawn)
                for group, rate in zip(self.optim.param_groups, rates, strict=True):
                    group["lr"] = rate * halving_lr_factor(k, n)
                update(to_float_batch(inputs[episode.rows]), episode)


def halving_lr_factor(k: int, n: int) -> float:
    """Return the factor of the learning rate at update k of n.

    >>> [halving_lr_factor(k, 5) for k in range(5)]
    [1.0, 1.0, 0.5, 0.5, 0.25]
    """
    return 0.5 ** ((k >= 0.4 * n) + (k >= 0.8 * n))


def zero_head(model: nn.Module) -> None:
    """Set an untrained last layer to zero, so that all classes get the same output."""
    head = classifier_layer(model)
    zero_rows(head, np.ones(head.out_features, bool))


@register("pretraining", "prototypes")
@dataclass
class PrototypicalTraining(EpisodicTraining):
    """Prototypical networks: softmax over squared distances to class means; the last layer ends as zero."""

    def train(self, x: Inputs, y: Targets) -> None:
        self.train_on_episodes(x, y, self.updates, self.episode_update, self.seed.child("lesson", self.training_rounds))
        if self.updates:  # a pretrained network is not trained again
            zero_head(self.model)
        self.end_round()

    def episode_update(self, x: Tensor, episode: Episode) -> None:
        """Make one step on the cross-entropy of the queries; means and queries come from the same pass."""
        optimizer_step(self.optim, self.episode_loss(features_with_frozen_head(self.model, x), episode))

    def episode_loss(self, features: Tensor, episode: Episode) -> Tensor:
        """Return -log softmax(-|f - mean_c|^2) at the true class, averaged over the queries."""
        support, query = features.split([episode.support.size, episode.query.size])
        return cross_entropy(squared_distance_logits(support, query, len(episode.classes)), episode.query_labels)


@register("pretraining", "meta-baseline")
@dataclass
class MetaBaselineTraining(PrototypicalTraining):
    """Meta-Baseline: supervised training, then episodes with scaled cosines to class means.

    The scale starts at 10 as in Chen et al. and is not part of the network; the last layer stays as supervised
    training left it.
    """

    meta_updates: int = 300  # number of episodes
    meta_lr: float = 1e-3  # learning rate on episodes

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        self.scale = nn.Parameter(to_device(torch.tensor(10.0)))
        super().prepare(model, task, upstream)

    def train(self, x: Inputs, y: Targets) -> None:
        seed = self.seed.child("meta", self.training_rounds)
        SupervisedLearner.train(self, x, y)
        self.new_optimizer()
        self.optim.add_param_group({"params": [self.scale]})
        for group in self.optim.param_groups:
            group["lr"] = self.meta_lr
        self.train_on_episodes(x, y, self.meta_updates, self.episode_update, seed)

    def episode_loss(self, features: Tensor, episode: Episode) -> Tensor:
        support, query = features.split([episode.support.size, episode.query.size])
        return cross_entropy(self.scale * cosine_logits(support, query, len(episode.classes)), episode.query_labels)
