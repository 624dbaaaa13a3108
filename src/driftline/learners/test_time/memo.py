"""MEMO: one step of marginal entropy minimization over augmented copies of each image, before its answer.

Zhang, Levine and Finn, "MEMO: Test Time Robustness via Adaptation and Augmentation", NeurIPS 2022. Of an image, A
copies are made (`training.augmix`), with probabilities p_a; all weights take one step down the entropy of their mean

    H(1/A sum_a p_a)

with a new optimizer. The network then answers the image itself, and returns to the weights from before: nothing is
carried from one image to the next. Batch norm uses running statistics, blended with those of the pass at hand
(`training.blended_batch_norm`), in both passes. An image's copies depend on the seed and on its pixels, so that it has
the same answer whenever it is asked about.

Settings are those for ImageNet with a ResNet-50; for CIFAR the authors take lr 0.005 and 32 copies, on a network with
group norm. Departs from their code where the optimizer has moments: they restore the weights but not the moments, which
then leak from image to image.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from driftline.device import to_numpy
from driftline.errors import RequirementError, UserError
from driftline.learners.base import Learner
from driftline.learners.buffers import input_hashes
from driftline.learners.settings import BelowOne, Count, NonNegative, OptimizerName
from driftline.models.batch_norm import replace_batch_norm
from driftline.models.preprocessing import to_float_batch
from driftline.registry import register
from driftline.tasks import Classification, Task
from driftline.training.augmix import augmix
from driftline.training.blended_batch_norm import BlendedBatchNorm
from driftline.training.fit import optimizer_step
from driftline.training.optimizers import new_optimizer
from driftline.training.regularization import trainable_parameters
from driftline.training.torch_model import torch_model
from driftline.types import Answers, Inputs, Network, Reveal, Samples

SMALL_SIDE = 64  # pixels; smaller images are cropped after padding


@register("method", "memo")
@dataclass
class MEMO(Learner):
    """MEMO: one step of marginal entropy minimization over augmented copies, for each image separately."""

    lr: NonNegative = 2.5e-4  # learning rate
    momentum: BelowOne | None = None  # momentum of the optimizer; None: its default
    optimizer: OptimizerName = "sgd"  # name of the optimizer
    n_augmentations: Count = 64  # copies of an image
    crop: Literal["crop-flip", "pad-crop-flip"] | None = None  # None: pad-crop-flip for sides of up to 64 pixels
    prior_strength: NonNegative | None = 16  # weight of running statistics, in images; None: they alone

    min_reveal: ClassVar[Reveal] = Reveal.INPUTS
    requires = "network"

    def prepare(self, model: Network, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        if not isinstance(task, Classification):
            raise RequirementError("a classification task", "memo needs a classification task")
        model.eval()
        if (strength := self.prior_strength) is not None:
            replace_batch_norm(model, lambda layer: BlendedBatchNorm(layer, strength))

    def predict(self, x: Inputs) -> Answers:
        inputs = torch_model(self.model).encode(x)
        if inputs.ndim != 4 or np.asarray(inputs[:0]).dtype != np.uint8:
            raise UserError("memo augments images in bytes, and these inputs are of another kind")
        images = (np.asarray(inputs[k]) for k in range(len(inputs)))
        outputs = [self._outputs(image, key.hex()) for image, key in zip(images, input_hashes(inputs), strict=True)]
        return self._task.decode(to_numpy(torch.cat(outputs)))

    def _outputs(self, image: np.ndarray, key: str) -> Tensor:
        """Return raw outputs for an image after a step of its own; the weights are left as they were."""
        weights = trainable_parameters(self.model)
        before = [weight.detach().clone() for weight in weights]
        optimizer = new_optimizer(self.optimizer, weights, lr=self.lr, momentum=self.momentum)
        optimizer_step(optimizer, marginal_entropy(self.model(self._copies(image, key))))
        optimizer.zero_grad()
        with torch.no_grad():
            outputs: Tensor = self.model(to_float_batch(image[None]))
            for weight, old in zip(weights, before, strict=True):
                weight.copy_(old)
        return outputs

    def _copies(self, image: np.ndarray, key: str) -> Tensor:
        rng = self.seed.child("copies", key).numpy()
        crop = self.crop or ("pad-crop-flip" if max(image.shape[:2]) <= SMALL_SIDE else "crop-flip")
        copies = np.stack([augmix(image, crop, rng) for _ in range(self.n_augmentations)])
        return to_float_batch(copies.transpose(0, 3, 1, 2) / 255)


def marginal_entropy(outputs: Tensor) -> Tensor:
    """Return the entropy, in nats, of the mean probabilities of all rows.

    >>> outputs = torch.tensor([[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    >>> round(marginal_entropy(outputs).item(), 4), round(marginal_entropy(outputs[:1]).item(), 4)
    (0.9585, 0.6656)
    """
    log_p = (outputs.log_softmax(dim=1) - math.log(len(outputs))).logsumexp(dim=0)
    return -(log_p.exp() * log_p).sum()
