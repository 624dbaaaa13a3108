"""Digits in the eight positions of a square."""

import numpy as np
from sklearn.datasets import load_digits

from driftline.data import load
from driftline.data.digit_symmetries import SYMMETRIES

CORNERS = np.arange(64).reshape(1, 8, 8, 1)


def test_the_eight_symmetries_are_all_there():
    made = {turn(CORNERS).tobytes() for turn in SYMMETRIES.values()}
    by_hand = {
        np.ascontiguousarray(np.rot90(image, k, axes=(1, 2))).tobytes()
        for image in (CORNERS, CORNERS[:, :, ::-1])
        for k in range(4)
    }
    assert made == by_hand
    assert len(made) == 8
    assert SYMMETRIES["rot90"](CORNERS)[0, 0, :, 0].tolist() == CORNERS[0, :, 7, 0].tolist()  # anti-clockwise
    assert SYMMETRIES["mirror"](CORNERS)[0, 0, :, 0].tolist() == CORNERS[0, 0, ::-1, 0].tolist()
    assert SYMMETRIES["flip"](CORNERS)[0, 0, :, 0].tolist() == CORNERS[0, 7, :, 0].tolist()


def test_a_class_is_a_digit_in_a_position():
    data = load("digit-symmetries")
    s = data.samples
    images, labels = load_digits(return_X_y=True)
    assert len(s) == 8 * 1797
    assert data.task.classes[:2] == ("0 upright", "1 upright")
    assert data.task.classes[79] == "9 antitranspose"
    np.testing.assert_array_equal(s.y % 10, np.tile(labels, 8))
    np.testing.assert_array_equal(s.y // 10, np.repeat(np.arange(8), 1797))
    np.testing.assert_array_equal(np.bincount(s.y), np.tile(np.bincount(labels), 8))
    five = np.flatnonzero(s.id == 5 + 2 * 1800)[0]
    upside_down = images[5].reshape(8, 8)[::-1, ::-1]
    np.testing.assert_array_equal(s.x[five, :, :, 0], np.rint(upside_down * 255 / 16))
    assert data.task.classes[s.y[five]] == "5 rot180"
    assert set(s.time) == {0}
