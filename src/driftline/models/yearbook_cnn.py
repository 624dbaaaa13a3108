"""The Yearbook network of Yao et al., "Wild-Time", NeurIPS 2022."""

from __future__ import annotations

from torch import Tensor, nn

from driftline.errors import UserError
from driftline.models.preprocessing import register_network


class YearbookNetwork(nn.Module):
    """Four blocks of 3x3 convolution, batch norm, ReLU and 2x2 max-pooling, then the mean over what is left."""

    def __init__(self, outputs: int, width: int) -> None:
        super().__init__()
        blocks = []
        for channels in (3, width, width, width):
            blocks += [nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2)]
        self.features = nn.Sequential(*blocks)
        self.head = nn.Linear(width, outputs)

    def forward(self, x: Tensor) -> Tensor:
        x = x.expand(-1, 3, -1, -1)  # gray portraits are three equal channels, as in Wild-Time
        outputs: Tensor = self.head(self.features(x).mean(dim=(2, 3)))
        return outputs


@register_network("yearbook-cnn")
def yearbook_cnn(
    shape: tuple[int, ...],
    outputs: int,
    *,
    width: int = 32,  # channels of a layer
) -> nn.Module:
    """The Wild-Time Yearbook network: 28,962 parameters for two classes."""
    if len(shape) != 3 or min(shape[:2]) < 16 or shape[2] not in (1, 3):
        raise UserError(f"yearbook-cnn takes images of at least 16 x 16 pixels; these inputs have shape {shape}")
    return YearbookNetwork(outputs, width)
