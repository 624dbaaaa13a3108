"""Augmentation moves images by known amounts, the same ones each time, in training alone."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from driftline.corruptions.cropping import random_box
from driftline.data import load
from driftline.errors import UserError
from driftline.io import serialization
from driftline.learners.domain_generalization.coral_t import CoralT
from driftline.learners.online.fine_tune import FineTuneLastLayers
from driftline.learners.online.standard_training import StandardTraining
from driftline.learners.replay.cft import CFT
from driftline.learners.self_supervised.simclr import SimCLR
from driftline.learners.supervised.ft import FineTune
from driftline.learners.supervised.lisa import LISA
from driftline.models import build
from driftline.models.preprocessing import to_tensor
from driftline.pretraining.episodic import PrototypicalTraining
from driftline.seeds import Seed
from driftline.tasks import Classification
from driftline.training.augmentations import (
    augmented,
    crop_flip,
    flip_rotate_translate,
    pad_crop_flip,
    random_flip_rotate_translate,
)
from driftline.training.fit import fit

TASK = Classification(("a", "b"))
IMAGES = np.random.default_rng(0).integers(0, 256, (40, 8, 8, 3), np.uint8)
LABELS = np.arange(40) % 2

NO, ZERO = torch.tensor([False]), torch.tensor([0.0])


def image() -> torch.Tensor:
    return torch.arange(36.0).reshape(1, 1, 6, 6)


def test_nothing_moves_what_is_told_to_stay() -> None:
    torch.testing.assert_close(flip_rotate_translate(image(), NO, ZERO, ZERO, ZERO), image())


def test_a_flip_is_a_mirror() -> None:
    torch.testing.assert_close(flip_rotate_translate(image(), torch.tensor([True]), ZERO, ZERO, ZERO), image().flip(3))


def test_a_push_by_one_pixel_stretches_the_edge() -> None:
    pushed = flip_rotate_translate(image(), NO, ZERO, torch.tensor([2 / 6]), ZERO)
    torch.testing.assert_close(pushed[..., 1:], image()[..., :-1])
    torch.testing.assert_close(pushed[..., 0], image()[..., 0])
    pushed = flip_rotate_translate(image(), NO, ZERO, ZERO, torch.tensor([2 / 6]))
    torch.testing.assert_close(pushed[:, :, 1:], image()[:, :, :-1])


def test_a_quarter_turn_turns() -> None:
    turned = flip_rotate_translate(image(), NO, torch.tensor([90.0]), ZERO, ZERO)
    assert torch.allclose(turned, image().rot90(1, (2, 3)), atol=1e-3)


def test_every_image_moves_by_itself_and_chance_comes_from_the_seed() -> None:
    x = image().repeat(64, 1, 1, 1)
    torch.manual_seed(0)
    one = random_flip_rotate_translate(x)
    torch.manual_seed(0)
    assert torch.equal(one, random_flip_rotate_translate(x))
    assert len({tuple(picture.flatten().tolist()) for picture in one}) > 40
    assert one.min() >= 0
    assert one.max() <= 35


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_a_crop_is_a_resized_part_flipped_or_not(channels: int, seed: int) -> None:
    image = np.random.default_rng(9).integers(0, 256, (30, 40, channels), np.uint8)
    rng = np.random.default_rng(seed)
    top, left, height, width = random_box(30, 40, rng)
    part = Image.fromarray(image[top : top + height, left : left + width].squeeze())
    across = part.resize((12, height), Image.Resampling.BILINEAR)  # releases of Pillow differ in which axis comes first
    expected = np.asarray(across.resize((12, 10), Image.Resampling.BILINEAR)).reshape(10, 12, channels)
    flipped = rng.random() < 0.5
    found = crop_flip(image, 10, 12, np.random.default_rng(seed))
    np.testing.assert_array_equal(found, expected[:, ::-1] if flipped else expected)


def test_a_padded_crop_moves_an_image_by_up_to_four_pixels_with_a_black_border() -> None:
    image = np.arange(1, 65, dtype=np.uint8).reshape(8, 8, 1)
    black = np.zeros((16, 16, 1), np.uint8)
    black[4:12, 4:12] = image
    rng, seen = np.random.default_rng(0), set()
    places = {black[i : i + 8, j : j + 8].tobytes(): (i, j, 0) for i in range(9) for j in range(9)}
    places |= {black[i : i + 8, j : j + 8][:, ::-1].tobytes(): (i, j, 1) for i in range(9) for j in range(9)}
    for _ in range(1500):
        seen.add(places[pad_crop_flip(image, 8, 8, rng).tobytes()])
    assert len(seen) == 2 * 81


def batches(**settings: Any) -> list[Tensor]:
    """What an update sees."""
    seen: list[Tensor] = []
    model = build("conv-1", (8, 8, 3), 2, Seed(0), width=4)
    fit(model, IMAGES, LABELS, lambda x, y: seen.append(x), updates=3, batch=10, **settings)
    return seen


def test_every_batch_of_a_training_round_is_drawn_anew_and_the_same_each_time() -> None:
    plain, one, same, other = (
        batches(seed=Seed(1)),
        *(batches(seed=Seed(seed), augment="pad-crop-flip") for seed in (1, 1, 2)),
    )
    assert all(torch.equal(a, b) for a, b in zip(one, same, strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(one, plain, strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(one, other, strict=True))
    rows = torch.randint(40, (3, 10), generator=Seed(1).child("batches").torch())
    rng = Seed(1).child("augment").numpy()
    expected = [np.stack([pad_crop_flip(IMAGES[row], 8, 8, rng) for row in rows[k].tolist()]) for k in range(3)]
    np.testing.assert_array_equal(one[2].permute(0, 2, 3, 1) * 255, expected[2].astype(np.float32))


@pytest.mark.parametrize("method", [FineTune, CoralT, CFT, SimCLR, PrototypicalTraining, StandardTraining])
def test_methods_train_on_augmented_images_and_answer_as_they_come(method: Any) -> None:
    weights = []
    for augment in ("none", "crop-flip"):
        settings = {"updates": 10, "batch": 10} if hasattr(method, "updates") else {"train_every": 20, "epochs": 1}
        settings |= {"way": 2, "shot": 2, "query": 2} if method is PrototypicalTraining else {}
        learner = method(**settings, augment=augment)
        learner.prepare(build("conv-1", (8, 8, 3), 2, Seed(0), width=4), TASK)
        (learner.train if method is PrototypicalTraining else learner.learn)(IMAGES, LABELS)
        weights.append(torch.cat([weight.detach().flatten() for weight in learner.model.parameters()]))
        answers = [learner.predict(IMAGES).prediction for _ in range(2)]
        np.testing.assert_array_equal(*answers)
    assert not torch.equal(*weights)


def test_a_run_that_is_resumed_makes_the_same_draws() -> None:
    def prepared() -> FineTuneLastLayers:
        learner = FineTuneLastLayers(train_every=20, epochs=2, batch=8, augment="crop-flip")
        learner.prepare(build("conv-1", (8, 8, 3), 2, Seed(0), width=4), TASK)
        return learner

    whole, resumed = prepared(), prepared()
    whole.learn(IMAGES[:20], LABELS[:20])
    resumed.restore(copy.deepcopy(whole.state()))
    for learner in (whole, resumed):
        learner.learn(IMAGES[20:], LABELS[20:])
    for a, b in zip(whole.model.parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(a, b)
    assert whole.buffer.x.shape == (40, 8, 8, 3), "features of augmented images cannot be kept"


def test_lisa_mixes_augmented_images_with_augmented_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    partners: list[Tensor] = []
    monkeypatch.setattr("driftline.learners.supervised.lisa.mix", lambda x, other, _: partners.append(other) or x)
    learner = LISA(updates=2, batch=10, augment="pad-crop-flip")
    learner.prepare(build("conv-1", (8, 8, 3), 2, Seed(0), width=4), TASK)
    learner.learn(IMAGES, LABELS)
    plain = {image.tobytes() for image in IMAGES}
    shown = [(255 * one.permute(1, 2, 0)).round().byte().numpy() for batch in partners for one in batch]
    assert (len(shown), sum(one.tobytes() in plain for one in shown)) == (20, 0)


def test_a_checkpoint_keeps_the_full_size_of_images_in_files(tmp_path: Path) -> None:
    for k, image in enumerate(np.random.default_rng(0).integers(0, 256, (8, 20, 30, 3), np.uint8)):
        (tmp_path / f"{k % 2}").mkdir(exist_ok=True)
        Image.fromarray(image).save(tmp_path / f"{k % 2}" / f"{k}.png")
    x = load("image-folders", {"path": str(tmp_path), "size": 8}).samples.x
    learners = []
    for path in (None, tmp_path / "checkpoint"):
        learner = StandardTraining(train_every=4, epochs=1, batch=4, augment="crop-flip")
        learner.prepare(build("conv-1", (8, 8, 3), 2, Seed(0), width=4), TASK)
        learner.learn(x.take(np.arange(4)), LABELS[:4])
        if path:
            serialization.save(learner.state(), path, x.source)
            learner.restore(serialization.load(path, x.source))
        learner.learn(x.take(np.arange(4, 8)), LABELS[:4])
        learners.append(learner)
    for a, b in zip(*(learner.model.parameters() for learner in learners), strict=True):
        assert torch.equal(a, b)


def test_images_in_files_are_cropped_at_their_full_size(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (2, 60, 90, 3), np.uint8)
    for name, image in zip("ab", pixels, strict=True):
        (tmp_path / name).mkdir()
        Image.fromarray(image).save(tmp_path / name / "1.png")
    x = load("image-folders", {"path": str(tmp_path), "size": 16}).samples.x
    rng = Seed(3).child("augment").numpy()
    expected = [crop_flip(pixels[row], 16, 16, rng) for row in (1, 0, 1)]
    np.testing.assert_array_equal(augmented(to_tensor(x), "crop-flip", Seed(3))[torch.tensor([1, 0, 1])], expected)
    rng = Seed(3).child("augment").numpy()
    assert augmented(to_tensor(x), "none", Seed(3)) is x
    np.testing.assert_array_equal(
        augmented(to_tensor(x), "pad-crop-flip", Seed(3))[:1], pad_crop_flip(x[0], 16, 16, rng)[None]
    )


def test_what_is_not_an_image_is_refused() -> None:
    with pytest.raises(UserError, match="augment=crop-flip is for images in bytes"):
        augmented(torch.zeros(3, 4), "crop-flip", Seed(0))
    with pytest.raises(UserError, match="augment=flip: "):
        FineTune(augment="flip").prepare(build("mlp", (8, 8, 3), 2), TASK)  # type: ignore[arg-type]
