"""Checkpoints with the head of the file or a new one, as published files are laid out."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

import driftline
from driftline import models
from driftline.cli.printing.runs import print_difference
from driftline.data import weights_file
from driftline.errors import UserError
from driftline.io.checksums import file_hash
from driftline.models.checkpoints import read_checkpoint
from driftline.models.weights import head_name, load_weights
from driftline.seeds import Seed

SIZES: dict[str, Any] = {"shape": (32, 32, 3), "width": 4}

IMAGES = """
import numpy as np
from driftline.data import Dataset
from driftline.tasks import Classification
from driftline.types import Samples

def images(folders):
    x = np.random.default_rng(0).integers(0, 256, (120, 32, 32, 3), dtype=np.uint8)
    return Dataset("images", Samples(x, np.arange(120) % 4, time=np.arange(120) // 30), Classification(tuple("abcd")))
"""


def backbone(name: str = "resnet50", outputs: int = 7, seed: int = 1) -> dict[str, Tensor]:
    """The tensors of a small network, as torchvision names them."""
    network = models.build(name, outputs=outputs, seed=Seed(seed), **SIZES).network
    return {key: value.contiguous() for key, value in network.state_dict().items()}


def saved(path: Path, content: object) -> str:
    torch.save(content, path)
    return str(path)


def build(weights: str, head: str = "new", name: str = "resnet50", outputs: int = 3, seed: int = 2) -> Any:
    return models.build(name, outputs=outputs, seed=Seed(seed), weights=weights, head=head, **SIZES)


def test_a_new_head_is_seeded_and_everything_else_loaded(tmp_path: Path) -> None:
    given = backbone()
    file = saved(tmp_path / "seven.pth", given)
    first, again, other = (build(file, seed=seed) for seed in (2, 2, 3))
    loaded = first.network.state_dict()
    assert all(torch.equal(loaded[key], value) for key, value in given.items() if not key.startswith("fc."))
    assert loaded["fc.weight"].shape == (3, 128)
    assert torch.equal(first.network.fc.weight, again.network.fc.weight)
    assert not torch.equal(first.network.fc.weight, other.network.fc.weight)
    report = first.loaded_weights
    assert (report.loaded, report.head) == (318, "new")  # 320 tensors, two of them the head
    assert report.initialized == ["fc.bias", "fc.weight"]
    assert report.left_out == {"fc.bias": 1, "fc.weight": 1}
    assert not first.pretrained, "its head is random"
    assert build(file, "keep", outputs=7).pretrained


def test_the_old_head_is_refused_for_another_number_of_classes(tmp_path: Path) -> None:
    file = saved(tmp_path / "seven.pth", backbone())
    with pytest.raises(
        UserError, match=r"has a head with 7 outputs, and these data need 3 outputs: --set model.head=n"
    ):
        build(file, "keep")
    with pytest.raises(UserError, match=r"model\.head=new replaces the head of given weights: add --set model.weights"):
        models.build("resnet50", outputs=3, head="new", **SIZES)


def test_counters_may_be_missing(tmp_path: Path) -> None:
    old = {key: value for key, value in backbone().items() if not key.endswith("num_batches_tracked")}
    assert build(saved(tmp_path / "v1.pth", old)).loaded_weights.loaded == 265


@pytest.mark.parametrize("version", [1, 2])
def test_moco(tmp_path: Path, version: int) -> None:
    given = backbone()
    encoder = {key: value for key, value in given.items() if not key.startswith("fc.")}
    layers = {"fc": 128} if version == 1 else {"fc.0": 128, "fc.2": 16}
    heads = {f"{layer}.{kind}": torch.zeros(n) for layer, n in layers.items() for kind in ("weight", "bias")}
    tensors = {f"module.encoder_q.{key}": value for key, value in {**encoder, **heads}.items()}
    tensors |= {f"module.encoder_k.{key}": value + 1 for key, value in {**encoder, **heads}.items()}
    tensors |= {"module.queue": torch.zeros(16, 32), "module.queue_ptr": torch.zeros(1, dtype=torch.long)}
    content = {"epoch": 200, "arch": "resnet50", "state_dict": tensors, "optimizer": {"state": {}}}
    model = build(saved(tmp_path / "moco.pth.tar", content))
    assert torch.equal(model.network.conv1.weight, given["conv1.weight"]), "the query encoder, not the key encoder"
    report = model.loaded_weights
    assert (report.entry, report.prefix, report.loaded) == ("state_dict", "module.encoder_q.", 318)
    assert report.left_out == {
        "module.encoder_k": 318 + len(heads),
        "module.encoder_q": len(heads),
        "module.queue": 1,
        "module.queue_ptr": 1,
    }
    with pytest.raises(UserError, match=r"has .*head.*and these data need 3 outputs: --set model.head=new"):
        build(saved(tmp_path / "moco.pth.tar", content), "keep")


def test_swav_and_dino(tmp_path: Path) -> None:
    encoder = {key: value for key, value in backbone().items() if not key.startswith("fc.")}
    swav = {**encoder, "projection_head.0.weight": torch.zeros(2), "prototypes.weight": torch.zeros(2)}
    model = build(saved(tmp_path / "swav.pth.tar", {f"module.{key}": value for key, value in swav.items()}))
    assert model.loaded_weights.left_out == {"module.projection_head": 1, "module.prototypes": 1}
    student = {f"module.backbone.{key}": value + 1 for key, value in encoder.items()}
    teacher = {**{f"backbone.{key}": value for key, value in encoder.items()}, "head.mlp.0.weight": torch.zeros(2)}
    content = {"student": student, "teacher": teacher, "args": argparse.Namespace(arch="resnet50"), "epoch": 3}
    model = build(saved(tmp_path / "dino.pth", content))
    assert torch.equal(model.network.conv1.weight, encoder["conv1.weight"])
    report = model.loaded_weights
    assert (report.entry, report.prefix, report.left_out) == ("teacher", "backbone.", {"head.mlp": 1})


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "model.", "module._orig_mod.", "network."])
def test_wrappers_are_stripped(tmp_path: Path, prefix: str) -> None:
    file = saved(tmp_path / "wrapped.pth", {"model": {prefix + key: value for key, value in backbone().items()}})
    report = build(file, "keep", outputs=7).loaded_weights
    assert (report.entry, report.prefix, report.loaded) == ("model", prefix, 320)


def test_other_networks_are_refused_by_name(tmp_path: Path) -> None:
    given = backbone()
    lacking = {key: value for key, value in given.items() if "layer3" not in key}
    with pytest.raises(UserError, match=r"another network: it has no layer3\.0\.bn1\.bias \(\d+ such tensors\)"):
        build(saved(tmp_path / "a.pth", lacking))
    with pytest.raises(UserError, match=r"it has a mystery\.weight that has no place in it\. Save"):
        build(saved(tmp_path / "b.pth", {**given, "mystery.weight": torch.zeros(1)}))
    wide = models.build("resnet50", (32, 32, 3), 7, width=8).network.state_dict()
    with pytest.raises(
        UserError, match=r"another width: conv1.weight has shape \(8, 3, 7, 7\), and this network needs"
    ):
        build(saved(tmp_path / "c.pth", wide))


def test_whole_networks_are_refused(tmp_path: Path) -> None:
    reason = r"nothing else: it holds an object of the class torch\S*\.Linear; save its state_dict\(\) instead$"
    with pytest.raises(UserError, match=reason):
        read_checkpoint(Path(saved(tmp_path / "whole.pth", nn.Linear(2, 2))))
    (tmp_path / "junk.pth").write_bytes(b"hello")  # torch says 101
    with pytest.raises(UserError, match="nothing else: it is damaged, or no file of torch"):
        read_checkpoint(tmp_path / "junk.pth")
    with pytest.raises(UserError, match="does not hold tensors by name"):
        read_checkpoint(Path(saved(tmp_path / "empty.pth", {"state_dict": {}, "epoch": 3})))


@pytest.mark.parametrize("content", [b"<html>404 Not Found</html>", b"", b"PK"])
def test_a_file_that_holds_no_weights_is_refused_without_advice_to_run_its_code(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "w.pth").write_bytes(content)
    with pytest.raises(UserError, match=r"w\.pth as a file of weights and nothing else") as error:
        read_checkpoint(tmp_path / "w.pth")
    assert "weights_only" not in str(error.value)


def test_the_entries_of_an_unknown_checkpoint_are_named(tmp_path: Path) -> None:
    torch.save({"last": {"w": torch.ones(1)}, "best": {"w": torch.ones(1)}}, tmp_path / "w.pt")
    with pytest.raises(UserError, match="does not hold tensors by name, but last, best: save"):
        read_checkpoint(tmp_path / "w.pt")


def test_a_file_with_another_content_than_its_name_says_is_noted_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    torch.save({"w": torch.ones(1)}, path := tmp_path / "net.pth")
    right = path.rename(tmp_path / f"net-{file_hash(path)[:8]}.pth")
    read_checkpoint(right)
    assert not caplog.records
    wrong = right.rename(tmp_path / "net-0676ba61.pth")
    read_checkpoint(wrong), read_checkpoint(wrong)
    (record,) = caplog.records
    assert record.message.startswith("note: net-0676ba61.pth is not the published file: its SHA-256 begins with ")


def test_what_a_conversion_leaves_out_is_listed(tmp_path: Path) -> None:
    given = {"old.weight": torch.ones(2, 3), "bias": torch.ones(2), "text.token": torch.ones(4)}
    given["positional_embedding"] = torch.ones(4)
    file = saved(tmp_path / "foreign.pth", given)

    def convert(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        tensors.pop("text.token")  # as timm's conversion of DINOv2 does with its mask token
        return {"weight": tensors["old.weight"].view(2, 3), "bias": tensors["bias"] + 1}

    report = load_weights(nn.Linear(3, 2), str(file), "keep", "", convert)
    assert (report.loaded, report.left_out) == (2, {"text.token": 1})


def test_the_head_is_the_last_linear_layer() -> None:
    assert head_name(nn.Sequential(nn.Conv2d(1, 1, 1))) == ""
    assert head_name(models.build("densenet121", **SIZES)) == "network.classifier"


def test_a_run_says_what_it_loaded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Open-world and timeline start from published weights; the card and `driftline diff` show them."""
    file = saved(tmp_path / "seven.pth", backbone("resnet18"))
    (tmp_path / "images.py").write_text(IMAGES)
    spec: dict[str, Any] = {
        "benchmark": "timeline",
        "data": f"{tmp_path}/images.py:images",
        "model": {"name": "resnet18", "width": 4, "weights": file, "head": "new"},
        "methods": [{"name": "ft", "updates": 2}],
        "timeline": {"resamples": 5},
    }
    (run,) = driftline.run(spec, runs=tmp_path / "runs").runs
    weights = run.card.weights
    assert (weights.head, weights.loaded, weights.initialized) == ("new", 120, ["fc.bias", "fc.weight"])
    assert weights.left_out == {"fc.bias": 1, "fc.weight": 1}
    assert run.card.user_files[file]
    spec["model"] = {"name": "resnet18", "width": 4}
    (random,) = driftline.run(spec, runs=tmp_path / "runs").runs
    assert "weights" not in random.card.to_dict()
    print_difference(run, random)
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["weights.loaded", "120", "absent"] in shown
    assert ["weights.left_out.fc.bias", "1", "absent"] in shown
    frozen = {**spec, "methods": ["frozen"], "model": {**spec["model"], "weights": file, "head": "new"}}
    with pytest.raises(UserError, match="frozen never sees labels, and the new head of resnet18 is untrained"):
        driftline.run(frozen, runs=tmp_path / "runs")


def test_open_world_starts_from_weights_with_a_head_that_knows_no_class(tmp_path: Path) -> None:
    file = saved(tmp_path / "seven.pth", backbone("resnet18"))
    (tmp_path / "images.py").write_text(IMAGES)
    spec: dict[str, Any] = {
        "benchmark": "open-world",
        "data": f"{tmp_path}/images.py:images",
        "model": {"name": "resnet18", "width": 4, "weights": file, "head": "new"},
        "methods": ["ncm", {"name": "lwf", "train_every": 20, "epochs": 1}, {"name": "oltr", "train_every": 20}],
        "open-world": {"upstream_updates": 0, "resamples": 5, "classes": 2, "pretrain": 1, "upstream_classes": 2},
    }
    found = driftline.run(spec, runs=tmp_path / "runs").runs
    assert len(found) == len(spec["methods"])
    for run in found:
        answers = run.table("answers")
        assert run.card.weights.initialized == ["fc.bias", "fc.weight"]
        assert np.isinf(answers["distance"].to_numpy()[0]), "no class is known before the first label"


def test_eata_adapts_a_new_head_that_was_trained_upstream(tmp_path: Path) -> None:
    file = saved(tmp_path / "seven.pth", backbone("resnet20"))
    images = np.random.default_rng(0).integers(0, 256, (60, 32, 32, 3), dtype=np.uint8)
    np.savez(tmp_path / "images.npz", x=images, y=np.arange(60) % 4, test=np.arange(60) >= 40)
    options = {"order": "cin-c", "corruptions": "contrast", "images": 20, "batch": 10, "resamples": 5}
    spec: dict[str, Any] = {
        "benchmark": "test-time",
        "data": {"name": "npz", "path": str(tmp_path / "images.npz")},
        "model": {"name": "resnet20", "width": 4, "weights": file, "head": "new"},
        "methods": ["eata"],
        "test-time": {**options, "upstream_updates": 2},
    }
    (run,) = driftline.run(spec, runs=tmp_path / "runs").runs
    assert run.card.weights.initialized == ["linear.bias", "linear.weight"]
    spec["test-time"]["upstream_updates"] = 0
    with pytest.raises(UserError, match="eata never sees labels, and the new head of resnet20 is untrained"):
        driftline.run(spec, runs=tmp_path / "runs")


def test_imagenet_resnet50_serves_ten_classes() -> None:
    file = weights_file("resnet50-imagenet.safetensors")
    if file is None:
        pytest.skip("resnet50-imagenet.safetensors is not in a data folder")
    given = load_file(file)
    model = models.build(
        "resnet50", (64, 64, 3), 10, Seed(0), weights=file.name, head="new", layout="original"
    ).network.state_dict()
    assert model["fc.weight"].shape == (10, 2048)
    assert torch.equal(model["layer4.2.conv3.weight"], given["layer4.2.conv3.weight"])
    with pytest.raises(UserError, match="has a head with 1000 outputs, and these data need 10 outputs"):
        models.build("resnet50", (64, 64, 3), 10, weights=file.name, layout="original")


def test_safetensors_of_moco(tmp_path: Path) -> None:
    encoder = {key: value for key, value in backbone().items() if not key.startswith("fc.")}
    both = {f"encoder_k.{key}": value + 1 for key, value in encoder.items()}
    save_file({**both, **{f"encoder_q.{key}": value for key, value in encoder.items()}}, tmp_path / "moco.safetensors")
    model = build(str(tmp_path / "moco.safetensors"))
    assert torch.equal(model.network.conv1.weight, encoder["conv1.weight"])
