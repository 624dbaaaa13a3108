"""Training objectives: registered classes that plans and learners share, and the pure functions of tensors they use.

A group is a part of a mini-batch that an objective keeps apart from the others: a step, a window of time, a domain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from driftline import registry
from driftline.device import to_device, to_double
from driftline.registry import register
from driftline.tasks import Task
from driftline.types import Network

FINAL_STEP_WEIGHT = 3.0  # of the last step in the joint objective, as in the Seq-to-Final paper


@dataclass(eq=False)
class Group:
    """Outputs and targets of one group of a mini-batch."""

    outputs: Tensor
    y: Tensor
    weights: Tensor | None = None
    """One per sample; None if all weigh the same."""
    _risk: Tensor | None = None

    def risk(self, task: Task) -> Tensor:
        """Return the mean loss, which is computed once."""
        if self._risk is None:
            losses = task.loss(self.outputs, self.y)
            self._risk = losses.mean() if self.weights is None else (self.weights * losses).mean()
        return self._risk


class Objective:
    """What a fit minimizes. A subclass is a frozen dataclass; its fields are part of a fit's key."""

    name: ClassVar[str]
    pools: ClassVar[bool] = False
    """True if a mini-batch is one group drawn from all steps together; otherwise it has one group per step."""
    weight: float = 0.0
    """The weight of the term that is added to the risk, if there is one."""

    def sample_weights(self, sizes: Sequence[int]) -> Tensor | None:
        """Return one weight per sample of pooled steps with these sizes, or None."""
        return None

    def forward(self, network: Network, x: Tensor, step: int) -> Tensor:
        """Return the network's outputs for inputs of the group with this number."""
        outputs: Tensor = network(x)
        return outputs

    def loss(self, task: Task, groups: Sequence[Group]) -> Tensor:
        """Return the loss of a mini-batch."""
        raise NotImplementedError


def objective(name: str, weight: float) -> Objective:
    """Return the objective registered under this name; `weight` is for those that add a term to the risk."""
    kind = registry.get("objective", name)
    made: Objective = kind(weight) if "weight" in kind.__dataclass_fields__ else kind()
    return made


@register("objective", "erm")
@dataclass(frozen=True)
class ERM(Objective):
    """Empirical risk minimization: the mean loss."""

    name: ClassVar[str] = "erm"
    pools: ClassVar[bool] = True

    def loss(self, task: Task, groups: Sequence[Group]) -> Tensor:
        (group,) = groups
        return group.risk(task)


@register("objective", "weighted")
@dataclass(frozen=True)
class RecencyWeightedERM(ERM):
    """ERM with weights 1 / (age + 1) for samples of earlier steps."""

    name: ClassVar[str] = "weighted"

    def sample_weights(self, sizes: Sequence[int]) -> Tensor:
        return recency(sizes)


@register("objective", "irm")
@dataclass(frozen=True)
class IRM(Objective):
    """Invariant risk minimization (IRMv1): mean over groups of risk + weight * penalty (`invariance_penalty`)."""

    weight: float = 1.0
    name: ClassVar[str] = "irm"

    def loss(self, task: Task, groups: Sequence[Group]) -> Tensor:
        penalties = [invariance_penalty(scale_gradients(group.outputs, group.y, task.loss)) for group in groups]
        return risks(task, groups).mean() + self.weight * torch.stack(penalties).mean()


@register("objective", "dro")
@dataclass(frozen=True)
class WorstStepDRO(Objective):
    """Distributionally robust optimization: the risk of the group with the largest one."""

    name: ClassVar[str] = "dro"

    def loss(self, task: Task, groups: Sequence[Group]) -> Tensor:
        each = [group.risk(task) for group in groups]
        return max(each, key=lambda risk: risk.item())  # not of a stack: its gradient would pass through all groups


@register("objective", "joint")
@dataclass(frozen=True)
class JointOverSteps(Objective):
    """The mean risk of a network with layers for each step; the final step counts `FINAL_STEP_WEIGHT` times."""

    name: ClassVar[str] = "joint"

    def forward(self, network: Network, x: Tensor, step: int) -> Tensor:
        outputs: Tensor = network(x, step=step)
        return outputs

    def loss(self, task: Task, groups: Sequence[Group]) -> Tensor:
        each = risks(task, groups)
        return torch.cat([each[:-1], FINAL_STEP_WEIGHT * each[-1:]]).mean()


def risks(task: Task, groups: Sequence[Group]) -> Tensor:
    """Return the mean loss of each group."""
    return torch.stack([group.risk(task) for group in groups])


def recency(sizes: Sequence[int]) -> Tensor:
    """Return a weight per sample of several steps, 1 / (age + 1), scaled to a mean of 1.

    >>> recency([1, 3]).tolist()  # 1/2 for the older one, 1 for the others
    [0.5714285969734192, 1.1428571939468384, 1.1428571939468384, 1.1428571939468384]
    """
    ages = range(len(sizes) - 1, -1, -1)
    weights = to_device(torch.cat([torch.full((n,), 1 / (age + 1)) for n, age in zip(sizes, ages, strict=True)]))
    return weights / weights.mean()


def coral(groups: Sequence[Tensor]) -> Tensor:
    """Return the distance of features of several groups in mean and covariance; 0 if they agree.

    The mean over pairs of groups of mean((mu_i - mu_j)^2) + mean((C_i - C_j)^2), where each `groups[i]` has one row
    per example and C is the unbiased covariance. A group of one example has no covariance and is left out; fewer than
    two groups give 0. Sun and Saenko, "Deep CORAL", ECCV 2016, in the form that WILDS gave it for several domains.

    The mean of (a_i - a_j)^2 over pairs is twice the unbiased variance of the a_i: no pair needs to be formed.

    >>> coral([torch.tensor([[0.0], [2.0]]), torch.tensor([[3.0], [3.0]])]).item()  # (1 - 3)^2 + (2 - 0)^2
    8.0
    """
    groups = [group for group in groups if len(group) > 1]
    if len(groups) < 2:
        return torch.zeros(())
    means = torch.stack([group.mean(0) for group in groups])
    covariances = torch.stack([covariance(group) for group in groups])
    return 2 * (means.var(0).mean() + covariances.var(0).mean())


def covariance(rows: Tensor) -> Tensor:
    """Return the unbiased covariance matrix of at least two rows."""
    centered = rows - rows.mean(0)
    return centered.T @ centered / (len(rows) - 1)


def update_group_weights(q: Tensor, losses: Tensor, present: Tensor, eta: float) -> Tensor:
    """Return group DRO's exponentiated ascent: q_g exp(eta * loss_g) for the groups present, then all of q to sum 1.

    `losses[i]` belongs to group `present[i]`; the other groups count as not having been seen, as if their loss were 0.

    >>> weights = torch.tensor([0.5, 0.5])
    >>> update_group_weights(weights, torch.tensor([3.0]), torch.tensor([1]), eta=1.0).tolist()  # 1 : e^3
    [0.04742587357759476, 0.9525741338729858]
    """
    gain = torch.zeros_like(q).index_add_(0, present, eta * to_double(losses.detach()).to(q))
    return torch.softmax(q.log() + gain, 0)  # in logarithms, so that no loss is too large


def weighted_group_loss(q: Tensor, losses: Tensor, present: Tensor) -> Tensor:
    """Return an unbiased estimate of sum_g q_g loss_g over all groups, from groups that were drawn uniformly.

    With k of m groups present it is m / k times the sum over them. Dividing by their total weight instead would make
    the estimate biased, and with one group present it would undo the weights altogether.
    """
    return (q[present].to(losses) * losses).sum() * (len(q) / len(present))


def scale_gradients(outputs: Tensor, targets: Tensor, loss: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """Return, for each example, the derivative of its loss by a scale of its outputs, at scale 1.

    >>> outputs, targets = torch.tensor([[2.0], [5.0]]), torch.tensor([1.0, 5.0])
    >>> scale_gradients(outputs, targets, lambda out, y: (out[:, 0] - y) ** 2).tolist()  # 2 (s out - y) out
    [4.0, 0.0]
    """
    scale = torch.ones(
        len(outputs), *[1] * (outputs.ndim - 1), dtype=outputs.dtype, device=outputs.device, requires_grad=True
    )
    (by_scale,) = torch.autograd.grad(loss(outputs * scale, targets).sum(), scale, create_graph=True)
    return by_scale.flatten()


def invariance_penalty(gradients: Tensor) -> Tensor:
    """Return IRMv1's penalty of a group: an unbiased estimate of its squared mean gradient.

    The product of the means of two halves (every second example). Squaring the mean of one sample instead would add
    that sample's variance to the penalty. One example alone allows no estimate: 0, as if the gradient vanished.
    Arjovsky et al., "Invariant Risk Minimization", 2019, appendix D.

    >>> invariance_penalty(torch.tensor([1.0, 3.0, 2.0])).item()  # (1 + 2) / 2 times 3
    4.5
    """
    if len(gradients) < 2:
        return 0 * gradients.sum()
    return gradients[0::2].mean() * gradients[1::2].mean()


def mix(a: Tensor, b: Tensor, share: Tensor | float) -> Tensor:
    """Return `share` of the one and the rest of the other; one share for all, or one for each row.

    >>> mix(torch.tensor([[1.0], [1.0]]), torch.tensor([[5.0], [5.0]]), torch.tensor([1.0, 0.25])).tolist()
    [[1.0], [4.0]]
    """
    if isinstance(share, Tensor):
        share = share.to(a).reshape(-1, *[1] * (a.ndim - 1))
    return share * a + (1 - share) * b
