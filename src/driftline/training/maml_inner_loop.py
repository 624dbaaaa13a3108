"""MAML's inner loop: a few differentiable gradient steps on new classes.

Finn et al., "Model-Agnostic Meta-Learning for Fast Adaptation of Deep Networks", ICML 2017.

The last layer has one row per class of the episode and starts at zero each time, as the rows of new classes do in a
stream. So no class has a row of its own before its first sample, the order of the classes does not matter, and any
number of them will do (Kao et al., "MAML is a Noisy Contrastive Learner in Classification", ICLR 2022, find that this
does not hurt). Finn et al. learn the last layer's start too. The first step then moves the last layer alone.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from driftline.forward_pass import as_written
from driftline.training.cached_features import classifier_layer
from driftline.training.mac_counter import uncounted

Weights = dict[str, Tensor]


class InnerLoop:
    """A network and how it adapts to an episode."""

    def __init__(self, model: nn.Module, *, steps: int, lr: float) -> None:
        self.model, self.steps, self.lr = model, steps, lr
        self.unhooked = uncounted(copy.deepcopy(model))
        """The same, not counted: a counter cannot look into a network whose weights are those of an inner step."""
        self._head = {id(weight) for weight in classifier_layer(model).parameters()}

    def initial_weights(self, way: int) -> Weights:
        """Return the network's weights, with a last layer of zeros."""
        weights: Weights = dict(self.model.named_parameters())
        for name, weight in weights.items():
            if id(weight) in self._head:
                weights[name] = torch.zeros(
                    way, *weight.shape[1:], dtype=weight.dtype, device=weight.device, requires_grad=True
                )
        return weights

    def outputs(self, weights: Weights, x: Tensor) -> Tensor:
        """Return the network's outputs with these weights; training mode updates its running statistics."""
        with as_written():
            outputs: Tensor = functional_call(self.unhooked, {**weights, **dict(self.model.named_buffers())}, (x,))
        return outputs

    def adapt(self, x: Tensor, y: Tensor, way: int, *, second_order: bool) -> Weights:
        """Return the weights after `steps` gradient steps on the mean cross-entropy.

        `second_order`: whether they shall be differentiated by the weights they came from, gradients of gradients
        included.
        """
        weights = self.initial_weights(way)
        if not second_order:
            weights = {name: weight.detach().requires_grad_() for name, weight in weights.items()}
        for _ in range(self.steps):
            loss = cross_entropy(self.outputs(weights, x), y)
            grads = torch.autograd.grad(loss, list(weights.values()), create_graph=second_order)
            weights = {
                name: weight - self.lr * grad for (name, weight), grad in zip(weights.items(), grads, strict=True)
            }
            if not second_order:
                weights = {name: weight.detach().requires_grad_() for name, weight in weights.items()}
        return weights
