"""Snow, frost and fog, against direct computations from the same random numbers."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import cv2
import numpy as np
import pytest
from scipy.ndimage import zoom

from driftline.corruptions import corrupt, frost, frost_source, parameters
from driftline.corruptions.fog import plasma
from driftline.corruptions.motion_blur import blur_along_line, directions, tap_weights
from driftline.corruptions.per_image_rng import keys_for, random_bits, stream_words
from driftline.corruptions.snow import flakes
from driftline.errors import UserError

pytestmark = pytest.mark.xdist_group("corruptions")  # a loop is compiled by one process only


def snowed_slowly(image: np.ndarray, key: np.uint64, p: dict[str, float], angle: float) -> np.ndarray:
    """The whole definition in floats of 64 bits; only the smear is ours, which has a test of its own."""
    seen = int(np.ceil(224 / p["zoom"]))
    top = (224 - seen) // 2
    field = flakes(key, (224, 224), p)[top : top + seen, top : top + seen].astype(float)
    grown = zoom(field, p["zoom"], order=1)
    trim = (len(grown) - 224) // 2
    layer = grown[trim : trim + 224, trim : trim + 224]
    layer[layer < p["thresh"]] = 0
    layer = (np.clip(layer, 0, 1) * 255).astype(np.uint8)
    smeared = np.empty_like(layer)
    blur_along_line(layer, smeared, tap_weights(p["mb_radius"], p["mb_sigma"]), angle)
    x = image / 255
    pale = (x @ [0.299, 0.587, 0.114])[..., None] * 1.5 + 0.5
    x = p["blend"] * x + (1 - p["blend"]) * np.maximum(x, pale)
    fallen = smeared[..., None] / 255
    return np.asarray(np.clip(x + fallen + np.rot90(fallen, 2), 0, 1) * 255)


@pytest.mark.parametrize("severity", [0.75, 2, 3, 4.5])
def test_snow_is_its_definition(severity: float, photos: np.ndarray, keys: np.ndarray) -> None:
    p = parameters("snow", severity)
    own = keys_for(keys[:3], "snow")
    found = corrupt(photos, "snow", severity, keys[:3])
    assert len(found) == 3
    for n, angle in enumerate(directions(own, -135.0, -45.0)):
        exact = snowed_slowly(photos[n], own[n], p, angle)
        assert (found[n] == np.floor(exact + 1e-3)).mean() > 0.99
        assert np.abs(found[n] - exact).max() < 2.01
        assert -135 <= angle <= -45


def test_only_the_centre_of_the_snow_is_drawn_and_it_is_normal(keys: np.ndarray) -> None:
    p = parameters("snow", 3)
    fields = np.stack([flakes(key, (224, 224), p) for key in keys[:20]])
    centre = fields[:, 84:140, 84:140]
    assert np.count_nonzero(fields) == centre.size == 20 * 56**2
    assert centre.mean() == pytest.approx(0.55, abs=0.005)
    assert centre.std() == pytest.approx(0.3, abs=0.005)


def plasma_slowly(side: int, decay: float, low: np.uint32, high: np.uint32) -> np.ndarray:
    """Diamond-square written as the mean of four neighbours on a torus, with numbers drawn in the same order."""
    land, s, w, drawn = np.zeros((side, side)), side, 100.0, 0
    while s >= 2:
        half, n = s // 2, side // s
        signs = (
            np.array([np.int32(np.uint32(random_bits(i, low, high))) for i in range(drawn, drawn + 3 * n * n)]) / 2**31
        )
        drawn += 4 * n * n
        squares, edges = signs[: n * n].reshape(n, n), signs[n * n :].reshape(n, 2, n)
        for y in range(n):
            for x in range(n):
                at = (np.array([0, 0, 1, 1]) + y) % n * s, (np.array([0, 1, 0, 1]) + x) % n * s
                land[y * s + half, x * s + half] = land[at].mean() + w * w * squares[y, x]
        for y in range(n):
            for x in range(n):
                for kind, (r, c) in enumerate(((y * s, x * s + half), (y * s + half, x * s))):
                    around = [
                        land[(r + a) % side, (c + b) % side] for a, b in ((half, 0), (-half, 0), (0, half), (0, -half))
                    ]
                    land[r, c] = np.mean(around) + w * w * edges[y, kind, x]
        s, w = half, w / decay
    land -= land.min()
    return np.asarray(land / land.max())


@pytest.mark.parametrize("decay", [1.4, 1.7, 3.0])
def test_plasma_is_diamond_square_on_a_torus(decay: float) -> None:
    low, high = stream_words(np.uint64(9), 0)
    np.testing.assert_allclose(plasma(32, decay, low, high), plasma_slowly(32, decay, low, high), atol=2e-6)


def test_plasma_reaches_exactly_from_0_to_1(keys: np.ndarray) -> None:
    assert len(keys) >= 5
    for key in keys[:5]:
        land = plasma(256, 1.7, *stream_words(key, 0))
        assert land.shape == (256, 256)
        assert (land.min(), land.max()) == (0, 1)


@pytest.mark.parametrize(("severity", "strength", "decay"), [(0.5, 0.75, 2), (3, 2.5, 1.7), (5, 3, 1.4)])
def test_fog_adds_plasma_and_darkens(
    severity: float, strength: float, decay: float, photos: np.ndarray, keys: np.ndarray
) -> None:
    image = photos[:1] // 2 + 20  # its maximum is well below white
    land = plasma(256, decay, *stream_words(keys_for(keys[:1], "fog")[0], 0))[:224, :224, None].astype(float)
    x = image[0] / 255
    exact = np.clip((x + strength * land) * x.max() / (x.max() + strength), 0, 1) * 255
    found = corrupt(image, "fog", severity, keys[:1])[0]
    assert (found == np.floor(exact)).mean() > 0.999
    assert np.abs(found - np.floor(exact)).max() <= 1
    assert found.max() <= image.max(), "the old maximum, of this image and not of white, is the new one"


def test_fog_on_black_is_black(keys: np.ndarray) -> None:
    assert not corrupt(np.zeros((1, 64, 64, 3), np.uint8), "fog", 3, keys[:1]).any()


@pytest.mark.parametrize(("severity", "own", "other"), [(1, 1, 0.4), (3, 0.7, 0.7), (5, 0.6, 0.75)])
def test_frost_is_a_weighted_sum_bit_for_bit(
    severity: float, own: float, other: float, photos: np.ndarray, keys: np.ndarray
) -> None:
    found = corrupt(photos, "frost", severity, keys[:3])
    assert len(found) == 3
    for n, key in enumerate(keys_for(keys[:3], "frost")):
        chosen, row, column = frost.random_crop_position(key, 5)
        texture = frost.synthetic_textures()[chosen]
        top, left = int(row * (texture.shape[0] - 224)), int(column * (texture.shape[1] - 224))
        ice = texture[top : top + 224, left : left + 224]
        np.testing.assert_array_equal(found[n], np.uint8(np.clip(own * photos[n] + other * ice, 0, 255)))


def test_the_second_texture_is_drawn_twice_as_often_and_places_are_even() -> None:
    places = [frost.random_crop_position(key, 5) for key in np.arange(20_000, dtype=np.uint64)]
    chosen, rows, columns = (np.array(part) for part in zip(*places, strict=True))
    assert np.abs(np.bincount(chosen) / 20_000 - 0.2).max() < 0.01
    for part in (rows, columns):
        assert part.min() >= 0
        assert part.max() < 1
        assert part.mean() == pytest.approx(0.5, abs=0.01)
    made = frost.synthetic_textures()
    assert np.array_equal(made[1], made[2])
    assert not np.array_equal(made[0][:224, :224], made[1][:224, :224])


@pytest.mark.parametrize("index", [0, 1, 3, 4])
def test_made_up_textures_look_like_the_photographs_in_numbers(index: int) -> None:
    known, made = list(frost.TEXTURES.values())[index], frost.synthetic_textures()[index]
    assert made.shape == (known.height, known.width, 3)
    np.testing.assert_allclose(made.mean(axis=(0, 1)), known.mean, atol=1)
    np.testing.assert_allclose(made.std(axis=(0, 1)), known.spread, rtol=0.05)
    grey = made.mean(axis=2)
    power = np.abs(np.fft.fft2(grey - grey.mean())) ** 2
    frequency = np.hypot(np.fft.fftfreq(known.height)[:, None], np.fft.fftfreq(known.width))
    edges = np.geomspace(0.01, 0.5, 20)
    mean = [power[(frequency >= a) & (frequency < b)].mean() for a, b in pairwise(edges)]
    slope = np.polyfit(np.log(np.sqrt(edges[1:] * edges[:-1])), np.log(mean), 1)[0]
    assert slope == pytest.approx(known.slope, abs=0.1)


def written(folder: Path, **other: np.ndarray) -> Path:
    """A folder with pictures of the right names, sizes and mean colors."""
    for name, known in frost.TEXTURES.items():
        picture = np.full((known.height, known.width, 3), known.mean[::-1], np.uint8)
        cv2.imwrite(str(folder / name), other.get(name.split(".")[0], picture))
    return folder


def test_frost_from_a_folder_of_the_users(tmp_path: Path, photos: np.ndarray, keys: np.ndarray) -> None:
    folder = written(tmp_path)
    assert "photographs" in frost_source(folder)
    assert "not paper-comparable" in frost_source()
    second = keys[:40][np.array([frost.random_crop_position(key, 5)[0] for key in keys_for(keys[:40], "frost")]) == 1][
        :1
    ]
    found = corrupt(photos[:1], "frost", 3, second, frost=folder)[0]
    ice = np.array(frost.TEXTURES["frost2.png"].mean)
    np.testing.assert_array_equal(found, np.uint8(np.clip(0.7 * photos[0] + 0.7 * ice, 0, 255)))


def test_the_card_tells_one_set_of_photographs_from_another(tmp_path: Path) -> None:
    known = frost.TEXTURES["frost1.png"]
    other = np.full((known.height, known.width, 3), np.array(known.mean[::-1]) + 1, np.uint8)  # stored anew, say
    folders = [tmp_path / name for name in ("one", "same", "other")]
    for folder in folders:
        folder.mkdir()
    one, same = (frost_source(written(folder)) for folder in folders[:2])
    assert one == same != frost_source(written(folders[2], frost1=other))


def test_a_folder_that_is_not_that_of_imagenet_c_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match=r"has no frost1\.png"):
        frost_source(tmp_path)
    assert capfd.readouterr().err == ""  # OpenCV says nothing of its own
    for name, picture, reason in (
        ("frost4", np.zeros((300, 500, 3), np.uint8), "is 300 x 500 pixels and not 350 x 527"),
        ("frost5", np.zeros((495, 660, 3), np.uint8), r"the mean color \(0, 0, 0\) and not \(112, 123, 135\)"),
        ("frost3", np.full((315, 560, 3), (215, 205, 202), np.uint8), r"frost2\.png and frost3\.png in .* differ"),
    ):
        folder = tmp_path / name
        folder.mkdir()
        with pytest.raises(UserError, match=reason):
            frost_source(written(folder, **{name: picture}))


@pytest.mark.parametrize("shape", [(32, 32), (63, 63), (700, 1000)])
def test_textures_are_made_to_fit(shape: tuple[int, int], keys: np.ndarray) -> None:
    image = np.full((2, *shape, 3), 50, np.uint8)
    assert (corrupt(image, "frost", 3, keys[:2]) != 50).any(axis=(1, 2, 3)).all()
    shrunk = frost.scaled_textures(None, (32, 32), 0.2)
    assert [texture.shape[:2] for texture in shrunk] == [(120, 180), (63, 112), (63, 112), (70, 105), (99, 132)]
