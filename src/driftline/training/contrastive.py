"""Contrastive learning: features of two views of a sample are similar, and unlike those of other samples.

    nt_xent    SimCLR: Chen et al., "A Simple Framework for Contrastive Learning of Visual Representations", ICML 2020
    info_nce   MoCo: He et al., "Momentum Contrast for Unsupervised Visual Representation Learning", CVPR 2020
    swapped    SwAV: Caron et al., "Unsupervised Learning of Visual Features by Contrasting Cluster Assignments",
               NeurIPS 2020

All compare directions: vectors are scaled to length one first. A loss of zero is never reached with negatives; what
counts is that it falls.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, log_softmax, normalize

from driftline.device import place, to_device
from driftline.io.serialization import Stateful
from driftline.seeds import Seed
from driftline.training.cached_features import classifier_layer, features_with_frozen_head
from driftline.training.features import forward_with_features

PROJECTION_WIDTH = 128


def nt_xent(a: Tensor, b: Tensor, temperature: float = 0.5) -> Tensor:
    """Return the normalized temperature-scaled cross-entropy of a sample's other view among the 2n - 1 other views.

    mean_i -log( exp(z_i.z_j / T) / sum_(k != i) exp(z_i.z_k / T) ), j being the other view of i. Views of the same
    batch side are negatives too; a view is never compared with itself.

    >>> same = torch.eye(2)
    >>> round(float(nt_xent(same, same, temperature=1.0)), 4)  # log(1 + 2 / e)
    0.5514
    """
    n = len(a)
    z = normalize(torch.cat([a, b]), dim=1)
    logits = (z @ z.T / temperature).masked_fill(torch.eye(2 * n, dtype=torch.bool, device=z.device), -torch.inf)
    partner = torch.arange(2 * n, device=z.device).roll(n)
    return cross_entropy(logits, partner)


def info_nce(query: Tensor, key: Tensor, queue: Tensor, temperature: float = 0.07) -> Tensor:
    """Return the cross-entropy of the key of the other view among it and the queued keys of earlier samples.

    mean_i -log( exp(q_i.k_i / T) / (exp(q_i.k_i / T) + sum_j exp(q_i.queue_j / T)) ). Keys and queue are constants.
    """
    q, k = normalize(query, dim=1), normalize(key, dim=1).detach()
    logits = torch.cat([(q * k).sum(1, keepdim=True), q @ queue.detach().T], dim=1) / temperature
    return cross_entropy(logits, torch.zeros(len(q), dtype=torch.long, device=q.device))


def sinkhorn(scores: Tensor, epsilon: float = 0.05, iterations: int = 3) -> Tensor:
    """Return soft assignments of n samples to k prototypes that use all prototypes equally.

    exp(scores / epsilon), its columns and rows scaled alternately to sum to n / k and 1. Rows come last, so that each
    sample's assignments sum to one exactly; the columns approach n / k with more iterations.

    >>> sinkhorn(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), epsilon=1.0)  # both want the first; it has room for one
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """
    n, k = scores.shape
    logs = scores.detach() / epsilon  # in logarithms: exp(1 / 0.05) squared is more than a float can hold
    for _ in range(iterations):
        logs = logs - logs.logsumexp(dim=0, keepdim=True) + torch.tensor(n / k).log()
        logs = logs.log_softmax(dim=1)
    return logs.exp()


def swav_loss(
    a: Tensor, b: Tensor, prototypes: Tensor, *, temperature: float = 0.1, epsilon: float = 0.05, iterations: int = 3
) -> Tensor:
    """Predict the assignment of each view from the other one.

    The mean of the cross-entropies of softmax(z_a.c / T) with sinkhorn(z_b.c) and the other way round. Assignments
    are constants; prototypes c have length one already.
    """
    scores = [normalize(view, dim=1) @ prototypes.T for view in (a, b)]
    targets = [sinkhorn(view, epsilon, iterations) for view in scores]
    pairs = zip(scores, reversed(targets), strict=True)
    each = [-(target * log_softmax(view / temperature, dim=1)).sum(1).mean() for view, target in pairs]
    return (each[0] + each[1]) / 2


def projection_head(features: int, seed: Seed, *, batch_norm: bool = False) -> nn.Sequential:
    """Return a projection head: linear, (batch norm,) ReLU, linear; as wide as the features."""
    with seed.as_torch_default():
        first = [nn.Linear(features, features), *([nn.BatchNorm1d(features)] if batch_norm else []), nn.ReLU()]
        return place(nn.Sequential(*first, nn.Linear(features, PROJECTION_WIDTH)))


@torch.no_grad()
def ema_update(slow: nn.Module, fast: nn.Module, momentum: float) -> None:
    """Update the slow network's weights: slow <- momentum * slow + (1 - momentum) * fast."""
    for s, f in zip(slow.parameters(), fast.parameters(), strict=True):
        s.lerp_(f, 1 - momentum)


def push_queue(queue: Tensor, keys: Tensor, size: int) -> Tensor:
    """Return the latest `size` keys, oldest first.

    >>> push_queue(torch.tensor([[1.0], [2.0]]), torch.tensor([[3.0]]), size=2).tolist()
    [[2.0], [3.0]]
    """
    return torch.cat([queue, keys])[-size:]


class MoCo(Stateful):
    """Momentum contrast: a network is queried, a slow copy of it gives the keys, and a queue holds earlier keys."""

    transient = frozenset({"_query_network", "_momentum", "_size", "_temperature"})

    def __init__(self, model: nn.Module, seed: Seed, *, momentum: float, size: int, temperature: float) -> None:
        self.projector = projection_head(classifier_layer(model).in_features, seed)
        self._query_network = nn.ModuleList([model, self.projector])
        self.key_network = copy.deepcopy(self._query_network).requires_grad_(False).train()
        self.queue = to_device(torch.empty(0, PROJECTION_WIDTH))
        self._momentum, self._size, self._temperature = momentum, size, temperature

    def loss(self, a: Tensor, b: Tensor) -> Tensor:
        """Update the slow copy; return InfoNCE of one view's queries and the other's keys, which join the queue."""
        ema_update(self.key_network, self._query_network, self._momentum)
        query, key = self.projector(features_with_frozen_head(self._query_network[0], a)), self.key(b)
        loss = info_nce(query, key, self.queue, self._temperature)
        self.queue = push_queue(self.queue, key, self._size)
        return loss

    @torch.no_grad()
    def key(self, x: Tensor) -> Tensor:
        """Return the keys of these inputs: the slow copy's projections, without gradient."""
        model, projector = self.key_network
        return normalize(projector(forward_with_features(model, x)[1]), dim=1)
