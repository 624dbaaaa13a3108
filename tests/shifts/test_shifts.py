"""What each block does to known pixels and labels."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from driftline.errors import UserError
from driftline.shifts import apply
from driftline.shifts.rotation import rotate, source_pixels

RANDOM = np.random.default_rng(0)
IMAGES = RANDOM.integers(1, 256, (10, 32, 32, 3), dtype=np.uint8)
LABELS = np.arange(10)


def shifted(sequence, images=IMAGES, labels=LABELS, seed=0):
    return apply(images, labels, sequence, seed, classes=10)


def by_torchvision(images, angle):
    """The arithmetic of torchvision's rotate on tensors, angle in degrees counter-clockwise."""
    h, w = images.shape[1:3]
    cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    theta = torch.tensor([[[cos, -sin, 0], [sin, cos, 0]]])
    base = torch.ones(1, h, w, 3)
    base[..., 0] = torch.linspace(-w * 0.5 + 0.5, w * 0.5 - 0.5, w)
    base[..., 1] = torch.linspace(-h * 0.5 + 0.5, h * 0.5 - 0.5, h)[:, None]
    grid = base.view(1, h * w, 3).bmm(theta.transpose(1, 2) / torch.tensor([0.5 * w, 0.5 * h])).view(1, h, w, 2)
    return sampled(images, grid)


def by_affine_grid(images, angle):
    cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    theta = torch.tensor([[[cos, -sin, 0], [sin, cos, 0]]])
    grid = torch.nn.functional.affine_grid(theta, (1, 3, *images.shape[1:3]), align_corners=False)
    return sampled(images, grid)


def sampled(images, grid):
    x = torch.from_numpy(images).permute(0, 3, 1, 2).float()
    grid = grid.expand(len(x), -1, -1, -1)
    out = torch.nn.functional.grid_sample(x, grid, mode="nearest", padding_mode="zeros", align_corners=False)
    return out.permute(0, 2, 3, 1).numpy().astype(np.uint8)


@pytest.mark.parametrize("angle", [*range(15, 360, 15), 7.3, 101.9, 333.3])
def test_a_rotation_is_torchvisions_bit_for_bit(angle):
    turned = rotate(IMAGES, np.full(10, float(angle)))
    np.testing.assert_array_equal(turned, by_torchvision(IMAGES, angle))
    np.testing.assert_array_equal(turned, by_affine_grid(IMAGES, angle))


def test_images_that_are_not_square():
    images = RANDOM.integers(1, 256, (2, 24, 40, 3), dtype=np.uint8)
    for angle in (30, 90, 200):
        np.testing.assert_array_equal(rotate(images, np.full(2, float(angle))), by_torchvision(images, angle))


def test_golden_rotations():
    np.testing.assert_array_equal(shifted("RRR")[0], np.rot90(IMAGES, 1, (1, 2)))
    np.testing.assert_array_equal(shifted("RRRRRR")[0], np.rot90(IMAGES, 2, (1, 2)))
    for turns in (1, 2, 4, 5, 7):
        assert ((shifted("R" * turns)[0] == 0).sum(axis=(1, 2)) == 156).all(), turns
    chained = IMAGES
    for _ in range(3):
        chained = rotate(chained, np.full(10, 30.0))
    assert ((chained == 0).sum(axis=(1, 2)) == 200).all()  # why the accumulated angle is applied once
    np.testing.assert_array_equal(shifted("R180,R180")[0], IMAGES)


def test_a_conditional_rotation_turns_odd_classes_the_other_way():
    turned, labels = shifted("rrr")
    np.testing.assert_array_equal(turned[::2], np.rot90(IMAGES[::2], 1, (1, 2)))
    np.testing.assert_array_equal(turned[1::2], np.rot90(IMAGES[1::2], -1, (1, 2)))
    assert labels.tolist() == LABELS.tolist()
    both, _ = shifted("Rr60")  # 90 for even classes, -30 for odd ones
    np.testing.assert_array_equal(both[::2], np.rot90(IMAGES[::2], 1, (1, 2)))
    np.testing.assert_array_equal(both[1::2], rotate(IMAGES[1::2], np.full(5, 330.0)))


def test_conditions_look_at_the_original_label():
    flipped, labels = shifted("Lr")  # 9 - y is odd for every even y
    np.testing.assert_array_equal(flipped, shifted("r")[0])
    assert labels.tolist() == LABELS[::-1].tolist()


def test_source_pixels_by_hand():
    assert source_pixels(3, 3, 90).tolist() == [2, 5, 8, 1, 4, 7, 0, 3, 6]
    assert source_pixels(3, 3, 45).tolist()[4] == 4
    assert (source_pixels(1, 3, 90) == -1).sum() == 2


def test_a_tint_is_red_and_accumulates_before_it_is_cut_off():
    tinted, _ = shifted("TTT")
    np.testing.assert_array_equal(tinted[..., 0], np.minimum(IMAGES[..., 0].astype(int) + 90, 255))
    np.testing.assert_array_equal(tinted[..., 1:], IMAGES[..., 1:])
    assert (shifted("T60")[0] == shifted("TT")[0]).all()


def test_a_conditional_tint_is_a_colour_by_class():
    tinted, _ = shifted("t20")
    for k in range(10):
        expected = IMAGES[k].astype(int)
        expected[..., k % 3] += 20
        np.testing.assert_array_equal(tinted[k], expected.clip(0, 255))


def test_the_tint_comes_after_the_rotation():
    corner = shifted("TR")[0][:, 0, 0]
    assert corner.tolist() == [[30, 0, 0]] * 10


@pytest.mark.parametrize(
    ("flips", "expected"), [(1, lambda y: 9 - y), (2, lambda y: (11 - y) % 10), (3, lambda y: (y - 2) % 10)]
)
def test_flips_compose(flips, expected):
    images, labels = shifted("L" * flips)
    assert labels.tolist() == expected(LABELS).tolist()
    np.testing.assert_array_equal(images, IMAGES)


def test_flips_that_would_restore_old_labels_are_refused():
    with pytest.raises(UserError, match="four flips restore the labels"):
        shifted("LLLL")
    with pytest.raises(UserError, match=r"with 2 classes, 2 label flip\(s\) give labels that there have been before"):
        apply(IMAGES[:2], np.array([0, 1]), "LL", 0)
    assert apply(IMAGES[:2], np.array([0, 1]), "L", 0)[1].tolist() == [1, 0]


def test_noise_has_the_right_values_and_mean():
    gray = np.full((50, 32, 32, 3), 100, np.uint8)
    noise = shifted("C", gray, np.zeros(50, int))[0].astype(int) - 100
    values, counts = np.unique(noise, return_counts=True)
    assert values.tolist() == [-3, -2, -1, 0, 1, 2]
    np.testing.assert_allclose(counts / noise.size, 1 / 6, atol=0.005)
    assert abs(noise.mean() + 0.5) < 0.02
    strong = shifted("C20", gray, np.zeros(50, int))[0].astype(int) - 100
    assert (strong.min(), strong.max()) == (-20, 19)


def test_noise_is_cut_off_and_not_wrapped():
    black, bright = np.zeros((5, 8, 8, 1), np.uint8), np.full((5, 8, 8, 1), 255, np.uint8)
    assert shifted("C", black, np.zeros(5, int))[0].max() == 2
    assert shifted("C", bright, np.zeros(5, int))[0].min() == 252


def test_two_corruptions_are_two_draws_with_a_cut_after_each():
    black = np.zeros((50, 16, 16, 3), np.uint8)
    twice = shifted("CC", black, np.zeros(50, int))[0]
    # max(0, noise) then noise again: above 2 only if both were positive, 1 + 2, 2 + 1 and 2 + 2
    np.testing.assert_allclose((twice > 2).mean(), 3 / 36, atol=0.01)
    gray = np.full((50, 16, 16, 3), 100, np.uint8)
    noise = shifted("CC", gray, np.zeros(50, int))[0].astype(int) - 100
    assert (noise.min(), noise.max()) == (-6, 4)
    np.testing.assert_allclose(noise.var(), 2 * 35 / 12, rtol=0.05)


def test_the_corners_of_a_corrupted_and_turned_image_are_black():
    assert not shifted("RC")[0][:, 0, 0].any()


def test_floats_up_to_one_stay_there():
    unit = np.full((20, 8, 8, 3), 0.5, np.float32)
    noisy, _ = shifted("C", unit, np.zeros(20, int))
    assert noisy.dtype == np.float32
    np.testing.assert_allclose(np.unique((noisy - 0.5) * 256), [-3, -2, -1, 0, 1, 2], atol=1e-4)
    assert shifted("C", np.zeros((5, 8, 8, 3), np.float32), np.zeros(5, int))[0].min() == 0
    tinted, _ = shifted("T", unit, np.zeros(20, int))
    np.testing.assert_allclose(tinted[0, 0, 0], [0.5 + 30 / 255, 0.5, 0.5], rtol=1e-6)
    assert shifted("T255", unit, np.zeros(20, int))[0].max() == 1


def test_floats_up_to_255_are_changed_as_bytes_are():
    assert (shifted("CTR", IMAGES.astype(np.float32))[0] == shifted("CTR")[0]).all()


@given(st.permutations("CRTLt"), st.integers(0, 3))
@settings(max_examples=20, deadline=None)
def test_the_order_of_the_steps_does_not_matter(order, seed):
    for one, other in zip(shifted("".join(order), seed=seed), shifted("CRTLt", seed=seed), strict=True):
        np.testing.assert_array_equal(one, other)


@given(st.text("RrTtL", min_size=1, max_size=6).filter(lambda s: s.count("L") < 4))
@settings(max_examples=40, deadline=None)
def test_many_at_once_are_as_one_by_one(sequence):
    images, labels = shifted(sequence)
    for k in (0, 3, 9):
        image, label = shifted(sequence, IMAGES[k : k + 1], LABELS[k : k + 1])
        np.testing.assert_array_equal(image[0], images[k])
        assert label[0] == labels[k]


@given(st.integers(1, 359), st.integers(1, 359))
@settings(max_examples=40, deadline=None)
def test_angles_add_up(one, other):
    total = shifted(f"R{one}R{other}")[0]
    np.testing.assert_array_equal(total, rotate(IMAGES, np.full(10, float(one + other))))


def test_nothing_given_is_altered():
    before = IMAGES.copy()
    shifted("CrTtL")
    np.testing.assert_array_equal(IMAGES, before)


def test_what_cannot_be_changed_is_refused():
    gray = IMAGES[..., :1]
    for letter in "Tt":
        with pytest.raises(UserError, match=r"these images have 1 channel\(s\)"):
            shifted(letter, gray)
    with pytest.raises(UserError, match="images of shape"):
        shifted("R", IMAGES[..., 0])
    with pytest.raises(UserError, match="10 images but 9 labels"):
        apply(IMAGES, LABELS[:9], "R", 0)
    with pytest.raises(UserError, match="whole steps"):
        shifted("C2.5")
