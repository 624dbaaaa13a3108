"""DenseNet-121 with torchvision's names, so that its published weights can be loaded.

Huang et al., "Densely Connected Convolutional Networks", CVPR 2017. `dense-4` has the same layers under other names.
Images are normalized by ImageNet's mean and deviation if there are weights. Initial weights are PyTorch's defaults.
"""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import Tensor, nn

from driftline.models.preprocessing import register_network
from driftline.models.weights import check_images, pretrained_network
from driftline.types import Head

DEPTHS = (6, 12, 24, 16)
ADVICE = (
    "Save torchvision's weights of this network with `torch.save(model.state_dict(), FILE)`, or timm's, and give the "
    "file as the option weights; without weights the network is trained upstream"
)


class DenseLayer(nn.Module):
    """A bottleneck that adds `growth` channels to its inputs."""

    def __init__(self, channels: int, growth: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv1 = nn.Conv2d(channels, 4 * growth, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(4 * growth)
        self.conv2 = nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        new = self.conv1(self.norm1(x).relu())
        return torch.cat([x, self.conv2(self.norm2(new).relu())], 1)


class Transition(nn.Module):
    """Half as many channels and a quarter of the pixels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)
        self.conv = nn.Conv2d(channels, channels // 2, 1, bias=False)
        self.pool = nn.AvgPool2d(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        outputs: Tensor = self.pool(self.conv(self.norm(x).relu()))
        return outputs


class DenseNet(nn.Module):
    """A stem, four dense blocks with transitions in between, and a linear layer."""

    def __init__(self, outputs: int, width: int) -> None:
        super().__init__()
        layers: dict[str, nn.Module] = {
            "conv0": nn.Conv2d(3, width, 7, 2, padding=3, bias=False),
            "norm0": nn.BatchNorm2d(width),
            "relu0": nn.ReLU(inplace=True),
            "pool0": nn.MaxPool2d(3, 2, padding=1),
        }
        channels, growth = width, width // 2
        for number, depth in enumerate(DEPTHS, start=1):
            if number > 1:
                layers[f"transition{number - 1}"] = Transition(channels)
                channels //= 2
            block = {f"denselayer{k + 1}": DenseLayer(channels + k * growth, growth) for k in range(depth)}
            layers[f"denseblock{number}"] = nn.Sequential(OrderedDict(block))
            channels += depth * growth
        self.features = nn.Sequential(OrderedDict({**layers, "norm5": nn.BatchNorm2d(channels)}))
        self.classifier = nn.Linear(channels, outputs)

    def forward(self, x: Tensor) -> Tensor:
        outputs: Tensor = self.classifier(self.features(x).relu().mean(dim=(2, 3)))
        return outputs


@register_network("densenet121")
def densenet121(
    shape: tuple[int, ...],
    outputs: int,
    *,
    width: int = 64,  # channels of the first layer
    weights: str | None = None,  # file with weights; None: start from random ones
    head: Head = "keep",  # keep the head of the weights, or start a new one for the classes of the data
) -> nn.Module:
    """DenseNet-121 for images of any size from 32 pixels up; weights with torchvision's names."""
    check_images(shape, 32, "densenet121")
    return pretrained_network(DenseNet(outputs, width), weights, head, ADVICE)
