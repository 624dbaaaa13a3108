"""A narrow network in place of a deep one, whose many layers would take long for their size."""

from __future__ import annotations

from torch import Tensor, nn


class Narrow(nn.Module):
    """One convolution with batch norm, and a linear layer."""

    def __init__(self, shape: tuple[int, ...], outputs: int, width: int = 4) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(shape[2], width, 3, stride=2), nn.BatchNorm2d(width), nn.ReLU())
        self.head = nn.Linear(width, outputs)

    def features(self, x: Tensor) -> Tensor:
        """Return the mean of each channel."""
        return self.layers(x).mean(dim=(2, 3))

    def forward(self, x: Tensor) -> Tensor:
        outputs: Tensor = self.head(self.features(x))
        return outputs


class Pretrained(Narrow):
    """In place of a network with published weights."""

    pretrained = True
