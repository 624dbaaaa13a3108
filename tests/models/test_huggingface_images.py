"""Image classifiers of Hugging Face, with their head or a new one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from driftline import models
from driftline.errors import UserError
from driftline.io.locate import ENV_VARIABLE
from driftline.seeds import Seed
from driftline.spec.files import files_of
from driftline.spec.settings import Choice

transformers = pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny ViT with five classes that expects a mean and a deviation of 0.5."""
    path = tmp_path_factory.mktemp("vit")
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    config = transformers.ViTConfig(**sizes, image_size=32, patch_size=8, num_labels=5)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        transformers.ViTForImageClassification(config).save_pretrained(path)
    (path / "preprocessor_config.json").write_text(json.dumps({"image_mean": [0.5] * 3, "image_std": [0.5] * 3}))
    return path


def build(folder: Path, outputs: int, seed: int = 0, **options: Any) -> Any:
    return models.build("huggingface-images", (32, 32, 3), outputs, Seed(seed), weights=str(folder), **options)


def test_its_own_head(folder: Path) -> None:
    model, x = build(folder, 5), torch.rand(2, 3, 32, 32)
    network = transformers.ViTForImageClassification.from_pretrained(folder).eval()
    with torch.no_grad():
        torch.testing.assert_close(model(x), network(2 * x - 1).logits)
    assert model.pretrained
    assert model.loaded_weights.initialized == []


def test_a_new_head(folder: Path) -> None:
    first, again, other = (build(folder, 3, seed, head="new") for seed in (0, 0, 1))
    head, layer = "network.network.classifier.weight", "network.network.vit.embeddings.cls_token"
    states = [model.state_dict() for model in (first, again, other)]
    assert states[0][head].shape == (3, 16)
    assert torch.equal(states[0][head], states[1][head])
    assert not torch.equal(states[0][head], states[2][head])
    assert torch.equal(states[0][layer], build(folder, 5).state_dict()[layer])
    assert first.loaded_weights.initialized == ["classifier.weight", "classifier.bias"]
    assert first.loaded_weights.loaded == len(states[0]) - 2 - 3  # without the head, and mean, deviation and their mark
    assert not first.pretrained
    same = build(folder, 5, head="new").state_dict()[head]
    assert not torch.equal(same, build(folder, 5).state_dict()[head]), "new also where the old one would fit"


def test_refusals(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"has no head with 3 outputs, as these data need: --set model\.head=new"):
        build(folder, 3)
    with pytest.raises(UserError, match="takes images of 32 x 32 pixels"):
        models.build("huggingface-images", (64, 64, 3), 5, weights=str(folder))
    with pytest.raises(UserError, match=r"there is no model\.safetensors in"):
        build(tmp_path, 5)


def test_a_folder_is_found_by_its_name_in_the_data_folder_and_is_part_of_the_key(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tiny-vit").symlink_to(folder)
    (tmp_path / "keep").mkdir()  # called as a setting, and no network
    monkeypatch.setenv(ENV_VARIABLE, str(tmp_path))
    model = models.build("huggingface-images", (32, 32, 3), 5, weights="tiny-vit")
    assert model.loaded_weights.initialized == []
    choice = Choice(name="huggingface-images", settings={"weights": "tiny-vit", "head": "keep"})
    assert files_of("digits", [choice], {}) == {"tiny-vit": tmp_path / "tiny-vit"}
