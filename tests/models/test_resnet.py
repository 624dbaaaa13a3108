"""ResNets and their published weights."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn.functional import conv2d

import driftline
from driftline import models
from driftline.calibration.run import calibrate_model
from driftline.data import data_folders, load
from driftline.errors import UserError
from driftline.models.checkpoints import read_checkpoint
from driftline.models.resnet import BasicBlock, Bottleneck, OriginalBottleneck, ResNet, ZeroPadShortcut
from driftline.models.weights import IMAGENET_MEAN, IMAGENET_STD
from driftline.seeds import Seed
from driftline.spec import parse
from driftline.store.store import Store
from driftline.training.torch_model import torch_model

SMALL = {"shape": (32, 32, 3), "outputs": 4}


def weights_count(model: nn.Module) -> int:
    return sum(weight.numel() for weight in model.parameters())


def test_sizes_are_the_published_ones() -> None:
    assert weights_count(models.build("resnet20", (32, 32, 3), 10)) == 269_722
    assert weights_count(models.build("resnet56", (32, 32, 3), 10)) == 853_018
    with torch.device("meta"):
        deep = [
            ResNet(BasicBlock, (2, 2, 2, 2), 1000, 64),
            ResNet(BasicBlock, (3, 4, 6, 3), 1000, 64),
            ResNet(Bottleneck, (3, 4, 6, 3), 1000, 64),
            ResNet(OriginalBottleneck, (3, 4, 6, 3), 1000, 64),
        ]
    assert [weights_count(model) for model in deep] == [11_689_512, 21_797_672, 25_557_032, 25_557_032]


def test_names_are_torchvisions() -> None:
    with torch.device("meta"):
        names = list(ResNet(Bottleneck, (3, 4, 6, 3), 1000, 64).state_dict())
    some = ["conv1.weight", "bn1.running_var", "layer1.0.downsample.0.weight", "layer1.0.downsample.1.bias"]
    some += ["layer4.2.conv3.weight", "layer4.2.bn3.num_batches_tracked", "fc.weight", "fc.bias"]
    assert set(some) <= set(names)
    assert len(names) == 320
    assert sum("downsample" in name for name in names) == 4 * 6


def bottleneck_by_hand(unit: Any, x: torch.Tensor, strides: tuple[int, int]) -> torch.Tensor:
    """The unit as it is usually written: with the stride in the convolutions."""
    first, second = strides
    y = unit.bn1(conv2d(x, unit.conv1.weight, stride=first)).relu()
    y = unit.bn2(conv2d(y, unit.conv2.weight, stride=second, padding=1)).relu()
    y = unit.bn3(conv2d(y, unit.conv3.weight))
    return (y + unit.downsample[1](conv2d(x, unit.downsample[0].weight, stride=2))).relu()


@pytest.mark.parametrize(("kind", "strides"), [(Bottleneck, (1, 2)), (OriginalBottleneck, (2, 1))])
def test_strides_sit_where_the_layout_says(kind: Any, strides: tuple[int, int]) -> None:
    torch.manual_seed(0)
    unit, x = kind(8, 4, 2, nn.BatchNorm2d).eval(), torch.randn(2, 8, 6, 6)
    torch.testing.assert_close(unit(x), bottleneck_by_hand(unit, x, strides))
    assert not torch.allclose(unit(x), bottleneck_by_hand(unit, x, strides[::-1]))


def test_shortcuts_without_weights_add_zero_channels_on_both_sides() -> None:
    x = torch.randn(1, 2, 4, 4)
    shortcut = ZeroPadShortcut(2, 6, nn.BatchNorm2d)
    assert torch.equal(shortcut(x)[:, 2:4], x)
    assert not shortcut(x)[:, [0, 1, 4, 5]].any()
    assert not list(shortcut.parameters())


@pytest.mark.parametrize("name", ["resnet20", "resnet34", "resnet50"])
@pytest.mark.parametrize("channels", [1, 3])
def test_they_answer_and_learn_at_small_widths(name: str, channels: int) -> None:
    model = models.build(name, (32, 32, channels), 4, Seed(0), width=4)
    x = np.random.default_rng(0).integers(0, 256, (3, 32, 32, channels), dtype=np.uint8)
    assert torch_model(model).predict(x).shape == (3, 4)
    model.train()(torch.rand(3, channels, 32, 32).contiguous(memory_format=torch.channels_last)).sum().backward()
    assert all(weight.grad is not None for weight in model.parameters())


@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
def test_weights_come_back_from_a_file(suffix: str, tmp_path: Path) -> None:
    source = models.build("resnet50", **SMALL, seed=Seed(1), width=4)
    file = tmp_path / f"weights{suffix}"
    tensors = {key: value.contiguous() for key, value in source.network.state_dict().items()}
    save_file(tensors, file) if suffix == ".safetensors" else torch.save(tensors, file)
    model = models.build("resnet50", **SMALL, seed=Seed(2), width=4, weights=str(file))
    assert all(torch.equal(value, tensors[key]) for key, value in model.network.state_dict().items())
    assert model.pretrained
    assert not source.pretrained
    x = torch.rand(2, 3, 32, 32)
    shifted = (x - torch.tensor(IMAGENET_MEAN)[:, None, None]) / torch.tensor(IMAGENET_STD)[:, None, None]
    torch.testing.assert_close(model(x), model.network(shifted))


def test_weights_are_found_in_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "weights").mkdir()
    torch.save(models.build("resnet20", **SMALL, width=4).network.state_dict(), tmp_path / "weights" / "mine.th")
    monkeypatch.setenv("DRIFTLINE_DATA", str(tmp_path))
    assert models.build("resnet20", **SMALL, width=4, weights="mine.th").pretrained


def test_weights_are_found_in_the_folder_that_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By planning, by worker processes and by a calibration alike; afterwards nobody looks there."""
    monkeypatch.delenv("DRIFTLINE_DATA", raising=False)
    (tmp_path / "weights").mkdir()
    torch.save(models.build("resnet20", **SMALL, width=4).network.state_dict(), tmp_path / "weights" / "own.th")
    images = np.random.default_rng(0).integers(0, 256, (30, 32, 32, 3), dtype=np.uint8)
    np.savez(tmp_path / "images.npz", x=images, y=np.arange(30) % 4, test=np.arange(30) >= 20)
    spec = {
        "benchmark": "test-time",
        "data": {"name": "npz", "path": "images.npz"},
        "model": {"name": "resnet20", "width": 4, "weights": "own.th"},
        "methods": "frozen",
        "test-time": {"order": "cin-c", "corruptions": "contrast", "images": 20, "batch": 10, "upstream_updates": 0},
    }
    runs = tmp_path / "runs"
    assert len(driftline.run(spec, runs=runs, data_dir=tmp_path, engine="local", jobs=1)) == 1
    assert "DRIFTLINE_DATA" not in os.environ
    job, output = parse(spec).jobs(default_model="")[0], tmp_path / "out.safetensors"
    how: dict[str, Any] = {"images": 10, "levels": 2, "store": Store.create(runs)}
    assert calibrate_model(job, ["contrast", "brightness"], output, data_dir=tmp_path, **how).levels == 2
    with pytest.raises(UserError, match=r"no file own\.th"):
        models.build("resnet20", **SMALL, width=4, weights="own.th")


def test_a_training_file_is_unwrapped(tmp_path: Path) -> None:
    tensors = models.build("resnet20", **SMALL, width=4).network.state_dict()
    wrapped = {"best_prec1": 91.7, "state_dict": {f"module.{key}": value for key, value in tensors.items()}}
    torch.save(wrapped, tmp_path / "model.th")
    assert set(read_checkpoint(tmp_path / "model.th").renamed_for(set(tensors)).tensors) == tensors.keys()


def test_files_that_do_not_fit_are_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"there is no file nowhere\.th.*akamaster"):
        models.build("resnet20", **SMALL, weights="nowhere.th")
    torch.save(models.build("resnet20", **SMALL, width=4).network.state_dict(), tmp_path / "a.th")
    with pytest.raises(UserError, match="another network: it has no layer1"):
        models.build("resnet56", **SMALL, width=4, weights=str(tmp_path / "a.th"))
    with pytest.raises(UserError, match=r"has a head with 4 outputs, and these data need 7"):
        models.build("resnet20", (32, 32, 3), 7, width=4, weights=str(tmp_path / "a.th"))
    with pytest.raises(UserError, match=r"at least 32 x 32 pixels; these inputs have shape \(8, 8, 1\)"):
        models.build("resnet50", (8, 8, 1), 7)
    torch.save([1, 2], tmp_path / "list.th")
    with pytest.raises(UserError, match="does not hold tensors by name"):
        read_checkpoint(tmp_path / "list.th")


class Evil:
    """What must never come to life."""

    def __reduce__(self) -> Any:
        return (print, ("this code ran",))


def test_code_in_a_file_never_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "evil.pth").write_bytes(pickle.dumps({"conv1.weight": Evil()}, protocol=2))
    torch.save({"conv1.weight": Evil()}, tmp_path / "evil2.pth")
    for name in ("evil.pth", "evil2.pth"):
        with pytest.raises(UserError, match="a file of weights and nothing else"):
            read_checkpoint(tmp_path / name)
    assert "this code ran" not in capsys.readouterr().out


def test_the_published_resnet20_knows_cifar10() -> None:
    """91.7 % of all 10,000 test images; here of the first 600."""
    batches = [folder / "cifar-10-batches-py" / "test_batch" for folder in data_folders()]
    weights = [folder / "weights" / "resnet20-12fca82f.th" for folder in data_folders()]
    batch, file = (next((path for path in paths if path.is_file()), None) for paths in (batches, weights))
    if batch is None or file is None:
        pytest.skip("cifar-10-batches-py or weights/resnet20-12fca82f.th is not in $DRIFTLINE_DATA or the cache folder")
    test = load("cifar10", {}, [batch.parent.parent]).samples[-10_000:-9400]
    model = models.build("resnet20", (32, 32, 3), 10, weights=file.name)
    assert (torch_model(model).predict(test.x).argmax(axis=1) == test.y).mean() == pytest.approx(0.917, abs=0.02)
