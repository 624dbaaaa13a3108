"""CPL: conjugate pseudo-labels for a network trained with PolyLoss.

Goyal et al., "Test-Time Adaptation via Conjugate Pseudo-labels", NeurIPS 2022. With logits h and p = softmax(h):

    loss = logsumexp(h) - sum_c y_c h_c + eps sum_c y_c (1 - p_c)
    y solves (I + eps diag(p) - eps p p^T) y = p

The solution is y_c proportional to p_c / (1 + eps p_c), normalized to sum 1, which takes no matrix; gradients flow
through it. For a network trained with plain cross-entropy the conjugate loss is the entropy (see tent); the RDumb study
still applies this one to such a network, and it collapses at once. Departs from the authors' code, which reports
answers from after the update.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from driftline.learners.settings import NonNegative
from driftline.learners.test_time.base import NormAdapter
from driftline.registry import register


@register("method", "cpl")
@dataclass
class CPL(NormAdapter):
    """CPL: conjugate pseudo-labels for PolyLoss."""

    lr: NonNegative = 1e-3
    eps: NonNegative = 8.0  # epsilon of PolyLoss; 0 is cross-entropy, as in tent

    def loss(self, outputs: Tensor) -> Tensor:
        p, y = outputs.softmax(dim=1), conjugate(outputs, self.eps)
        poly = outputs.logsumexp(dim=1) - (y * outputs).sum(dim=1) + self.eps * (y * (1 - p)).sum(dim=1)
        return poly.mean()


def conjugate(outputs: Tensor, eps: float) -> Tensor:
    """Return the pseudo-labels y of each sample."""
    p = outputs.softmax(dim=1)
    y = p / (1 + eps * p)
    return y / y.sum(dim=1, keepdim=True)
