"""Augmentation moves images by known amounts."""

from __future__ import annotations

import torch

from driftline.training.augmentations import flip_rotate_translate, random_flip_rotate_translate

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
