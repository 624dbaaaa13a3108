"""MAML meta-training: initial weights that adapt to new classes in a few gradient steps.

Finn et al., "Model-Agnostic Meta-Learning for Fast Adaptation of Deep Networks", ICML 2017: the loss on an episode's
queries after `steps` steps on its support, differentiated by the weights before them, second order included. Episodes
of 5 classes with 5 samples each, as in Wallingford et al., 2020 (NED).

The last layer is zero at the start of each episode, and zero at the end (`training.maml_inner_loop`). Batch
norm uses batch statistics; its running statistics are updated by every pass. One episode per update.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from driftline.pretraining.episodic import EpisodicTraining, zero_head
from driftline.registry import register
from driftline.training.few_shot import Episode
from driftline.training.fit import optimizer_step
from driftline.training.mac_counter import CountedOperations, mac_counter_of
from driftline.training.maml_inner_loop import InnerLoop
from driftline.training.modes import evaluating
from driftline.types import Inputs, Targets


@register("pretraining", "maml")
@dataclass
class MAMLTraining(EpisodicTraining):
    """MAML meta-training."""

    way: int = 5
    steps: int = 5  # updates on the support set
    inner_lr: float = 0.1  # learning rate on the support set

    transient = frozenset({"_inner_loop", "_cost"})

    def train(self, x: Inputs, y: Targets) -> None:
        self._inner_loop = InnerLoop(self.model, steps=self.steps, lr=self.inner_lr)
        self._inner_loop.unhooked.train()
        self._cost: tuple[int, int] | None = None
        self.train_on_episodes(x, y, self.updates, self.outer_step, self.seed.child("lesson", self.training_rounds))
        if self.updates:  # a pretrained network is not trained again
            zero_head(self.model)
        self.end_round()

    def outer_step(self, x: Tensor, episode: Episode) -> None:
        """Make one step of the outer loop. Its cost is counted once; every episode costs the same."""
        if self._cost is None:
            with CountedOperations() as counted:
                optimizer_step(self.optim, self.outer_loss(x, episode))
            self._cost = self._macs(x, episode, counted.macs)
        else:
            optimizer_step(self.optim, self.outer_loss(x, episode))
        forward, backward = self._cost
        mac_counter_of(self.model).add(forward=forward, backward=backward)

    def outer_loss(self, x: Tensor, episode: Episode) -> Tensor:
        """Return the mean cross-entropy of the queries after adaptation to the support samples."""
        support, query = x.split([episode.support.size, episode.query.size])
        weights = self._inner_loop.adapt(support, episode.support_labels, len(episode.classes), second_order=True)
        return cross_entropy(self._inner_loop.outputs(weights, query), episode.query_labels)

    def _macs(self, x: Tensor, episode: Episode, total: int) -> tuple[int, int]:
        """Return the multiply-accumulates of forward passes and of first- and second-order gradients."""
        weights = self._inner_loop.initial_weights(len(episode.classes))
        passes = []
        with evaluating(self._inner_loop.unhooked), torch.no_grad():  # so that running statistics do not notice
            for part in x.split([episode.support.size, episode.query.size]):
                with CountedOperations() as counted:
                    self._inner_loop.outputs(weights, part)
                passes.append(counted.macs)
        forward = self.steps * passes[0] + passes[1]
        return forward, total - forward
