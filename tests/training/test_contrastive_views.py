"""Views by hand, one by one against all at once, and their statistics."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch
from torch import Tensor

from driftline.training.contrastive_views import (
    SimCLRAugmentation,
    color_jitter,
    crop_resize_flip,
    gaussian_blur,
    to_grayscale,
    where_sample,
)

WHOLE, MIDDLE, NO, YES = torch.ones(1), torch.zeros(1), torch.tensor([False]), torch.tensor([True])


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def images(n: int = 5, channels: int = 3, side: int = 8) -> Tensor:
    return torch.rand(n, channels, side, side, generator=generator(9))


@pytest.mark.parametrize("shape", [(4, 1, 8, 8), (4, 3, 8, 12), (4, 7)])
def test_views_depend_on_the_seed_alone(shape: tuple[int, ...]) -> None:
    x = torch.rand(shape, generator=generator(1))
    before, state = x.clone(), torch.random.get_rng_state()
    views = SimCLRAugmentation(blur=0.5, vertical_flip=0.5)
    one, other = views.two_views(x, generator(2))
    again, third = views.two_views(x, generator(2)), views.two_views(x, generator(3))[0]
    assert torch.equal(one, again[0])
    assert torch.equal(other, again[1])
    assert not torch.equal(one, other)
    assert not torch.equal(one, third)
    assert one.shape == x.shape
    assert torch.equal(x, before)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_no_change_at_all_is_possible() -> None:
    still = SimCLRAugmentation(min_crop_area=1.0, flip=0, jitter=0, grayscale=0, mask=0, noise=0)
    x = images()
    whole = crop_resize_flip(
        x, *(torch.full((5,), v) for v in (1.0, 1.0, 0.0, 0.0)), *[torch.zeros(5, dtype=torch.bool)] * 2
    )
    torch.testing.assert_close(whole, x)
    rows = torch.rand(4, 3, generator=generator())
    assert torch.equal(still.two_views(rows, generator())[0], rows)


def test_flips_are_exact() -> None:
    x = images(1)
    torch.testing.assert_close(crop_resize_flip(x, WHOLE, WHOLE, MIDDLE, MIDDLE, YES, NO), x.flip(3))
    torch.testing.assert_close(crop_resize_flip(x, WHOLE, WHOLE, MIDDLE, MIDDLE, NO, YES), x.flip(2))


def test_a_crop_by_hand() -> None:
    # A ramp along the width: the right half at full size has its pixel centres at a quarter and three quarters.
    x = torch.arange(4.0).expand(1, 1, 4, 4)
    half = crop_resize_flip(x, WHOLE / 2, WHOLE, WHOLE, MIDDLE, NO, NO)
    torch.testing.assert_close(half[0, 0, 0], torch.tensor([1.75, 2.25, 2.75, 3.0]))
    top = crop_resize_flip(x.transpose(2, 3), WHOLE, WHOLE / 2, MIDDLE, -WHOLE, NO, NO)
    torch.testing.assert_close(top[0, 0, :, 0], torch.tensor([0.0, 0.25, 0.75, 1.25]))


def test_jitter_by_hand() -> None:
    x = torch.tensor([0.2, 0.6]).reshape(1, 1, 1, 2)
    same = torch.ones(1)
    torch.testing.assert_close(color_jitter(x, 1.5 * same, same, same).flatten(), torch.tensor([0.3, 0.9]))
    torch.testing.assert_close(color_jitter(x, 2 * same, same, same).flatten(), torch.tensor([0.4, 1.0]))
    torch.testing.assert_close(color_jitter(x, same, 0.5 * same, same).flatten(), torch.tensor([0.3, 0.5]))
    red = torch.tensor([1.0, 0.0, 0.0]).reshape(1, 3, 1, 1)
    torch.testing.assert_close(to_grayscale(red).flatten(), torch.tensor([0.299]))
    torch.testing.assert_close(color_jitter(red, same, same, 0 * same).flatten(), torch.full((3,), 0.299))


def test_blur_by_hand() -> None:
    point = torch.zeros(1, 1, 5, 5)
    point[0, 0, 2, 2] = 1.0
    side = math.exp(-1 / 2)
    edge, middle = side / (1 + 2 * side), 1 / (1 + 2 * side)
    found = gaussian_blur(point, torch.ones(1))[0, 0]
    torch.testing.assert_close(found[2, 1:4], torch.tensor([middle * edge, middle**2, middle * edge]))
    assert float(found.sum()) == pytest.approx(1)
    torch.testing.assert_close(
        gaussian_blur(torch.full((2, 3, 8, 8), 0.3), torch.ones(2)), torch.full((2, 3, 8, 8), 0.3)
    )


def test_a_batch_is_its_images_one_by_one() -> None:
    x, n = images(6), 6
    a, b, c, d = (0.3 + 0.7 * torch.rand(n, generator=generator(k)) for k in range(4))
    yes = torch.rand(n, generator=generator(5)) < 0.5
    for function, choices in (
        (crop_resize_flip, (a, b, c, d, yes, ~yes)),
        (color_jitter, (a, b, c)),
        (gaussian_blur, (a,)),
        (partial(chosen_from, function=to_grayscale), (yes,)),
    ):
        together = function(x, *choices)  # type: ignore[operator]
        alone = [function(x[i : i + 1], *(choice[i : i + 1] for choice in choices)) for i in range(n)]  # type: ignore
        torch.testing.assert_close(together, torch.cat(alone))


def chosen_from(x: Tensor, which: Tensor, *, function: object) -> Tensor:
    return where_sample(which, function(x).expand_as(x), x)  # type: ignore[operator]


def test_drawn_together_or_one_by_one_the_statistics_are_alike() -> None:
    ramp = torch.linspace(0, 1, 8).expand(1, 1, 8, 8)
    together = SimCLRAugmentation().augment_images(ramp.expand(2000, 1, 8, 8), generator(1))
    draws = generator(2)
    alone = torch.cat([SimCLRAugmentation().augment_images(ramp, draws) for _ in range(2000)])
    torch.testing.assert_close(together.mean(0), alone.mean(0), atol=0.03, rtol=0)
    torch.testing.assert_close(together.std(0), alone.std(0), atol=0.03, rtol=0)
    turned = (together[:, 0, 0, 0] > together[:, 0, 0, -1]).float().mean()
    assert float(turned) == pytest.approx(0.5, abs=0.04)
    assert together.min() >= 0
    assert together.max() <= 1


def test_probabilities_are_kept() -> None:
    x = images(1).expand(4000, 3, 8, 8)
    colourless = (lambda v: (v - to_grayscale(v)).abs().amax(dim=(1, 2, 3)) < 1e-5)(
        SimCLRAugmentation(jitter=0).augment_images(x, generator())
    )
    assert float(colourless.float().mean()) == pytest.approx(0.2, abs=0.025)
    upside = SimCLRAugmentation(min_crop_area=1.0, flip=0, vertical_flip=0.3, jitter=0, grayscale=0)
    ramp = torch.linspace(0, 1, 8)[:, None].expand(4000, 1, 8, 8)
    over = upside.augment_images(ramp, generator())
    assert float((over[:, 0, 0, 0] > over[:, 0, -1, 0]).float().mean()) == pytest.approx(0.3, abs=0.03)


def test_rows_have_features_hidden_and_noise_in_their_own_units() -> None:
    x = torch.randn(4000, 2, generator=generator()) * torch.tensor([1.0, 1000.0]) + torch.tensor([5.0, -7.0])
    hidden = SimCLRAugmentation(mask=0.3, noise=0).augment_rows(x, generator(1))
    mean = x.mean(0).expand_as(x)
    assert float((hidden == mean).float().mean()) == pytest.approx(0.3, abs=0.02)
    assert bool(((hidden == mean) | (hidden == x)).all())
    noise = (SimCLRAugmentation(mask=0, noise=0.1).augment_rows(x, generator(1)) - x).std(0) / x.std(0)
    torch.testing.assert_close(noise, torch.tensor([0.1, 0.1]), atol=0.01, rtol=0)
