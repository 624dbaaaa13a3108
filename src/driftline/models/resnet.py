"""ResNets whose published weights can be loaded: of ImageNet size, with torchvision's names, and of CIFAR size.

He et al., "Deep Residual Learning for Image Recognition", CVPR 2016. `weights` is a file of tensors by name, such as
torchvision's or timm's of the same network, or a name to be found in `weights` of a data folder; without it the
network starts at random and is trained upstream. `head="new"` loads all but the last layer, for another number of
classes. With weights, images are normalized by ImageNet's mean and deviation, the CIFAR weights of
pytorch_resnet_cifar10 included: they were trained so.

resnet50 with `layout="original"` is the network of the paper: the first 1x1 convolution of a stage takes the stride,
not the 3x3 one as in torchvision, and batch norm adds 1e-3 to the variance, as in Keras. Initial weights are PyTorch's
defaults, not those of the paper.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Literal

from torch import Tensor, nn
from torch.nn.functional import pad

from driftline.models.preprocessing import register_network
from driftline.models.weights import check_images, pretrained_network
from driftline.types import Head

WeightLayout = Literal["torchvision", "original"]
Norm = Callable[[int], nn.Module]

ADVICE = (
    "Save torchvision's weights of this network with `torch.save(model.state_dict(), FILE)`, or timm's, and give the "
    "file as the option weights; without weights the network is trained upstream"
)
CIFAR_ADVICE = (
    "The weights of this network are published by github.com/akamaster/pytorch_resnet_cifar10 (pretrained_models): "
    "give the file as the option weights; without weights the network is trained upstream"
)


def strided_pixels(x: Tensor, stride: int) -> Tensor:
    """Return every second pixel: the ones that a 1x1 convolution with a stride of 2 reads.

    Done in the convolution, with channels last and fewer than 8 channels, its backward pass writes past its memory
    (torch 2.13 on a CPU).
    """
    return x if stride == 1 else x[:, :, ::stride, ::stride]


class ProjectionShortcut(nn.Sequential):
    """A shortcut with weights: a 1x1 convolution with batch norm."""

    def __init__(self, inputs: int, outputs: int, norm: Norm) -> None:
        super().__init__(nn.Conv2d(inputs, outputs, 1, bias=False), norm(outputs))


class ZeroPadShortcut(nn.Module):
    """A shortcut without weights: new channels are zeros, half of them before and half behind the old ones."""

    def __init__(self, inputs: int, outputs: int, norm: Norm) -> None:
        super().__init__()
        self.new = (outputs - inputs) // 2

    def forward(self, x: Tensor) -> Tensor:
        return pad(x, (0, 0, 0, 0, self.new, self.new))


class ResNetBlock(nn.Module, ABC):
    """Convolutions with batch norm, added to a shortcut around them."""

    expansion = 1
    """How many times as many channels it puts out as its 3x3 convolution has."""

    def __init__(
        self, inputs: int, width: int, stride: int, norm: Norm, shortcut: type[nn.Module] = ProjectionShortcut
    ) -> None:
        super().__init__()
        outputs = width * self.expansion
        self.stride = stride
        self.relu = nn.ReLU(inplace=True)
        same = stride == 1 and inputs == outputs
        self.downsample = nn.Identity() if same else shortcut(inputs, outputs, norm)

    def forward(self, x: Tensor) -> Tensor:
        shortcut = self.downsample(strided_pixels(x, self.stride))
        outputs: Tensor = self.relu(self.inner(x) + shortcut)
        return outputs

    @abstractmethod
    def inner(self, x: Tensor) -> Tensor:
        """Return the residual."""


class BasicBlock(ResNetBlock):
    """Two 3x3 convolutions."""

    def __init__(
        self, inputs: int, width: int, stride: int, norm: Norm, shortcut: type[nn.Module] = ProjectionShortcut
    ) -> None:
        super().__init__(inputs, width, stride, norm, shortcut)
        self.conv1 = nn.Conv2d(inputs, width, 3, stride, padding=1, bias=False)
        self.bn1 = norm(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = norm(width)

    def inner(self, x: Tensor) -> Tensor:
        outputs: Tensor = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return outputs


class Bottleneck(ResNetBlock):
    """A 1x1 convolution to fewer channels, a 3x3 one, and a 1x1 one to four times as many."""

    expansion = 4
    strided = 2
    """Which of the convolutions takes the stride."""

    def __init__(self, inputs: int, width: int, stride: int, norm: Norm) -> None:
        super().__init__(inputs, width, stride, norm)
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = norm(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride if self.strided == 2 else 1, padding=1, bias=False)
        self.bn2 = norm(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = norm(4 * width)

    def inner(self, x: Tensor) -> Tensor:
        x = strided_pixels(x, self.stride) if self.strided == 1 else x
        x = self.relu(self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x))))))
        outputs: Tensor = self.bn3(self.conv3(x))
        return outputs


class OriginalBottleneck(Bottleneck):
    """The same with the stride on the first convolution."""

    strided = 1


class ResNet(nn.Module):
    """A stem that makes images four times smaller, four stages of units, and a linear layer."""

    def __init__(
        self, unit: type[ResNetBlock], depths: tuple[int, ...], outputs: int, width: int, eps: float = 1e-5
    ) -> None:
        super().__init__()
        norm = partial(nn.BatchNorm2d, eps=eps)
        self.conv1 = nn.Conv2d(3, width, 7, 2, padding=3, bias=False)
        self.bn1 = norm(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, padding=1)
        channels = width
        for number, depth in enumerate(depths):
            units: list[nn.Module] = []
            for k in range(depth):
                stride = 2 if k == 0 and number > 0 else 1
                units.append(unit(channels, width << number, stride, norm))
                channels = (width << number) * unit.expansion
            setattr(self, f"layer{number + 1}", nn.Sequential(*units))
        self.stages = len(depths)
        self.fc = nn.Linear(channels, outputs)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for number in range(1, self.stages + 1):
            x = getattr(self, f"layer{number}")(x)
        outputs: Tensor = self.fc(x.mean(dim=(2, 3)))
        return outputs


class CifarResNet(nn.Module):
    """A stem that keeps the size, three stages of as many units, and a linear layer."""

    def __init__(self, depth: int, outputs: int, width: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.layer1, self.layer2, self.layer3 = (self._stage(number, depth, width) for number in range(3))
        self.linear = nn.Linear(4 * width, outputs)

    @staticmethod
    def _stage(number: int, depth: int, width: int) -> nn.Sequential:
        channels = width << number
        inputs, stride = (channels, 1) if number == 0 else (channels // 2, 2)
        first = BasicBlock(inputs, channels, stride, nn.BatchNorm2d, ZeroPadShortcut)
        return nn.Sequential(first, *(BasicBlock(channels, channels, 1, nn.BatchNorm2d) for _ in range(depth - 1)))

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        outputs: Tensor = self.linear(x.mean(dim=(2, 3)))
        return outputs


@register_network("resnet18")
def resnet18(
    shape: tuple[int, ...],
    outputs: int,
    *,
    width: int = 64,  # channels of the first layer
    weights: str | None = None,  # file with weights; None: start from random ones
    head: Head = "keep",  # keep the head of the weights, or start a new one for the classes of the data
) -> nn.Module:
    """ResNet-18 for images of any size from 32 pixels up; weights with torchvision's names."""
    check_images(shape, 32, "resnet18")
    return pretrained_network(ResNet(BasicBlock, (2, 2, 2, 2), outputs, width), weights, head, ADVICE)


@register_network("resnet34")
def resnet34(
    shape: tuple[int, ...],
    outputs: int,
    *,
    width: int = 64,  # channels of the first layer
    weights: str | None = None,  # file with weights; None: start from random ones
    head: Head = "keep",  # keep the head of the weights, or start a new one for the classes of the data
) -> nn.Module:
    """ResNet-34 for images of any size from 32 pixels up; weights with torchvision's names."""
    check_images(shape, 32, "resnet34")
    return pretrained_network(ResNet(BasicBlock, (3, 4, 6, 3), outputs, width), weights, head, ADVICE)


@register_network("resnet50")
def resnet50(
    shape: tuple[int, ...],
    outputs: int,
    *,
    width: int = 64,  # channels of the first layer
    weights: str | None = None,  # file with weights; None: start from random ones
    head: Head = "keep",  # keep the head of the weights, or start a new one for the classes of the data
    layout: WeightLayout = "torchvision",  # torchvision's network, or the paper's with its strides
) -> nn.Module:
    """ResNet-50 for images of any size from 32 pixels up; weights with torchvision's names."""
    check_images(shape, 32, "resnet50")
    unit, eps = (OriginalBottleneck, 1e-3) if layout == "original" else (Bottleneck, 1e-5)
    return pretrained_network(ResNet(unit, (3, 4, 6, 3), outputs, width, eps), weights, head, ADVICE)


@register_network("resnet20")
def resnet20(
    shape: tuple[int, ...],
    outputs: int,
    *,
    width: int = 16,  # channels of the first layer
    weights: str | None = None,  # file with weights; None: start from random ones
    head: Head = "keep",  # keep the head of the weights, or start a new one for the classes of the data
) -> nn.Module:
    """The CIFAR ResNet with 20 layers, shortcuts without weights: 269,722 parameters for 10 classes."""
    check_images(shape, 8, "resnet20")
    return pretrained_network(CifarResNet(3, outputs, width), weights, head, CIFAR_ADVICE)


@register_network("resnet56")
def resnet56(
    shape: tuple[int, ...],
    outputs: int,
    *,
    width: int = 16,  # channels of the first layer
    weights: str | None = None,  # file with weights; None: start from random ones
    head: Head = "keep",  # keep the head of the weights, or start a new one for the classes of the data
) -> nn.Module:
    """The CIFAR ResNet with 56 layers, shortcuts without weights: 853,018 parameters for 10 classes."""
    check_images(shape, 8, "resnet56")
    return pretrained_network(CifarResNet(9, outputs, width), weights, head, CIFAR_ADVICE)
