"""DenseNet-121 and the names of its published weights."""

from __future__ import annotations

import re
from pathlib import Path

import torch

from driftline import models
from driftline.models.densenet import DenseNet
from driftline.seeds import Seed


def test_size_and_names_are_torchvisions() -> None:
    with torch.device("meta"):
        network = DenseNet(1000, 64)
    assert sum(weight.numel() for weight in network.parameters()) == 7_978_856
    names = list(network.state_dict())
    assert len(names) == 727
    assert sum(not name.endswith("num_batches_tracked") for name in names) == 606
    some = {"features.conv0.weight", "features.norm5.bias", "features.transition3.conv.weight", "classifier.weight"}
    assert some | {"features.denseblock3.denselayer24.conv2.weight", "features.transition1.norm.weight"} <= set(names)


def test_it_computes_what_dense_4_computes() -> None:
    """The same layers under other names, in the same order: the weights of one are those of the other."""
    ours = models.build("densenet121", (32, 32, 3), 4, Seed(0), width=8)
    other = models.build("dense-4", (32, 32, 3), 4, Seed(1), width=8)
    tensors = [value for key, value in ours.network.state_dict().items()]
    names = [key for key in other.state_dict() if not key.startswith("standardize")]
    assert [other.state_dict()[key].shape for key in names] == [value.shape for value in tensors]
    other.load_state_dict({**other.state_dict(), **dict(zip(names, tensors, strict=True))})
    x = torch.rand(2, 3, 64, 64)
    torch.testing.assert_close(ours(x), other(x))


def test_old_names_are_read(tmp_path: Path) -> None:
    given = models.build("densenet121", (32, 32, 3), 5, Seed(1), width=8).network.state_dict()
    old = {re.sub(r"(denselayer\d+\.(?:norm|conv))([12])\.", r"\1.\2.", name): value for name, value in given.items()}
    assert "features.denseblock1.denselayer1.norm.1.weight" in old
    assert "features.transition1.norm.weight" in old
    torch.save({name: value for name, value in old.items() if "num_batches" not in name}, tmp_path / "old.pth")
    model = models.build("densenet121", (32, 32, 3), 3, width=8, weights=str(tmp_path / "old.pth"), head="new")
    assert model.loaded_weights.loaded == 604
    assert all(torch.equal(model.network.state_dict()[name], value) for name, value in given.items() if "norm2" in name)
    assert model.network.classifier.out_features == 3
