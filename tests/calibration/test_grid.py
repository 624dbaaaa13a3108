"""Calibration: entries by hand, the work done once, resumed after a stop, and the same with any number of threads."""

from collections import Counter

import numpy as np
import pytest

from driftline import registry
from driftline.benchmarks.base import Benchmark, Scenario, scores_frame
from driftline.calibration import run as module
from driftline.calibration.grid import calibrate
from driftline.calibration.run import calibrate_model, initial_model
from driftline.corruptions import cropping
from driftline.data import Dataset
from driftline.engine.build import DatasetCache
from driftline.errors import UserError
from driftline.seeds import Seed
from driftline.spec import parse
from driftline.store.store import Store
from driftline.streams import read_matrices
from driftline.streams.test_time.stream import image_keys
from driftline.tasks import Classification
from driftline.types import Reveal, Samples

N = 40
NAMES = ("fog", "snow", "frost")
STRENGTH = {"fog": 1, "snow": 2, "frost": 5}
LABELS = np.arange(N) % 4


def images():
    """Red is the label, green how much damage an image bears, blue the damage so far."""
    x = np.zeros((N, 2, 2, 3), np.uint8)
    x[..., 0] = LABELS[:, None, None]
    x[..., 1] = np.arange(N)[:, None, None]
    return x


def damage(x, name, severity, keys):
    worn = x.copy()
    worn[..., 2] += np.uint8(round(4 * severity) * STRENGTH[name])
    return worn


def predict(x):
    """Right as long as the damage is no more than the image bears."""
    label, bears, damaged = x[:, 0, 0, 0].astype(int), x[:, 0, 0, 1], x[:, 0, 0, 2]
    return np.where(damaged <= bears, label, label + 1)


def by_hand(first, second, levels):
    quarter = 20 // (levels - 1)
    worn = quarter * (STRENGTH[first] * np.arange(levels)[:, None] + STRENGTH[second] * np.arange(levels))
    return 100 * np.maximum(N - worn, 0) / N


@pytest.mark.parametrize("levels", [3, 11])
def test_entries_are_the_share_of_right_answers(levels):
    matrices = calibrate(predict, images(), LABELS, NAMES, levels=levels, corrupt=damage)
    assert set(matrices.by_pair) == {(a, b) for a in NAMES for b in NAMES if a != b}
    for (first, second), matrix in matrices.by_pair.items():
        np.testing.assert_allclose(matrix, by_hand(first, second, levels))


def test_the_first_corruption_comes_first_and_images_keep_their_keys():
    given = []

    def noting(x, name, severity, keys):
        given.append(keys)
        worn = x.copy()
        worn[..., 2] = worn[..., 2] * 2 + (20 if name == "fog" else 0)
        return worn

    def last(x):
        return np.where(x[:, 0, 0, 2] == 20, LABELS, -1)

    matrices = calibrate(last, images(), LABELS, ("fog", "snow"), levels=2, corrupt=noting, seed=Seed(3))
    np.testing.assert_array_equal(matrices["fog", "snow"], [[0, 0], [100, 0]])
    np.testing.assert_array_equal(matrices["snow", "fog"], [[0, 100], [0, 100]])
    for drawn in given:
        np.testing.assert_array_equal(drawn, image_keys(Seed(3).child("noise"), np.arange(N)))


def test_nothing_is_corrupted_or_asked_twice():
    """One first corruption per row, and what a single corruption does is asked once for all pairs."""
    calls, asked = Counter(), [0]

    def counting(x, name, severity, keys):
        calls[name, severity, int(x[0, 0, 0, 2])] += 1
        return damage(x, name, severity, keys)

    def asking(x):
        asked[0] += 1
        return predict(x)

    levels = 5
    calibrate(asking, images(), LABELS, NAMES, levels=levels, corrupt=counting)
    alone, rows = len(NAMES) * (levels - 1), len(NAMES) * (levels - 1)
    seconds = (len(NAMES) - 1) * (levels - 1)
    assert asked[0] == 1 + alone + rows * seconds
    assert sum(calls.values()) == alone + rows * (1 + seconds)


def test_threads_change_nothing():
    one, three = (calibrate(predict, images(), LABELS, NAMES, levels=5, corrupt=damage, jobs=jobs) for jobs in (1, 3))
    assert one.by_pair
    for pair, matrix in one.by_pair.items():
        np.testing.assert_array_equal(matrix, three[pair])


def test_what_was_stopped_goes_on(tmp_path):
    rows_asked = Counter()

    def stopping(after):
        left = [after]

        def ask(x):
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            rows_asked["all"] += 1
            return predict(x)

        return ask

    settings = {"levels": 5, "corrupt": damage, "parts": tmp_path}
    with pytest.raises(KeyboardInterrupt):
        calibrate(stopping(60), images(), LABELS, NAMES, **settings)
    finished = len(list(tmp_path.glob("*.safetensors")))
    assert 3 <= finished <= 6, "a clean row of 13 entries, then rows of 8"
    before = rows_asked["all"]
    told = []
    matrices = calibrate(
        stopping(10_000), images(), LABELS, NAMES, on_progress=lambda done, of: told.append((done, of)), **settings
    )
    assert rows_asked["all"] - before == 13 + 12 * 8 - (13 + (finished - 1) * 8), "finished rows are not asked again"
    assert told == [(k, 13) for k in range(1, 14)]
    np.testing.assert_allclose(matrices["fog", "frost"], by_hand("fog", "frost", 5))


def test_half_a_row_is_made_again(tmp_path):
    settings = {"levels": 3, "corrupt": damage, "parts": tmp_path}
    calibrate(predict, images(), LABELS, NAMES, **settings)
    (tmp_path / "snow-01.safetensors").write_bytes(b"half")
    matrices = calibrate(predict, images(), LABELS, NAMES, **settings)
    np.testing.assert_allclose(matrices["snow", "fog"], by_hand("snow", "fog", 3))


def test_settings_are_checked():
    with pytest.raises(UserError, match="at least two corruptions"):
        calibrate(predict, images(), LABELS, ("fog",), corrupt=damage)
    with pytest.raises(UserError, match="at least two corruptions"):
        calibrate(predict, images(), LABELS, ("fog", "fog"), corrupt=damage)
    with pytest.raises(UserError, match="levels=1"):
        calibrate(predict, images(), LABELS, NAMES, levels=1, corrupt=damage)


class Two(list):
    """Enough of a stream to be laid out."""


@pytest.fixture
def job(monkeypatch):
    """A job whose benchmark trains a small network on coloured squares."""
    rng = np.random.default_rng(0)
    y = np.arange(240) % 3
    x = rng.integers(0, 90, (240, 32, 32, 3), dtype=np.uint8)
    x[np.arange(240), :, :, y] += 100
    test = np.arange(240) >= 120
    dataset = Dataset("squares", Samples(x, y, time=np.zeros(240, int)), Classification(tuple("rgb")), test=test)

    class Small(Benchmark):
        reveals = Reveal.INPUTS

        def build_scenario(self, dataset, options, seed):
            upstream = dataset.samples[~dataset.test]
            return Scenario(stream=Two(), probes=None, upstream=upstream, pretrain_settings={"updates": 60})

        def metrics(self, options, protocol):
            return {}

        def score(self, run):
            return scores_frame([])

    kinds = {"benchmark": {"small": Small}, "dataset": {"squares": lambda where: dataset}}
    for kind, things in kinds.items():
        registry.names(kind)
        for name, thing in things.items():
            monkeypatch.setitem(registry._things[kind], name, thing)
    monkeypatch.setattr(module, "builtin_corruptions", lambda frost=None: darker)
    spec = {"benchmark": "small", "data": "squares", "model": "linear", "methods": "frozen"}
    return parse(spec).jobs(default_model="linear")[0]


def darker(x, name, severity, keys):
    """Fog greys an image, snow blackens it."""
    grey = x.mean(axis=3, keepdims=True) if name == "fog" else 0.0
    return (x + (grey - x) * severity / 5).astype(np.uint8)


def test_a_network_is_trained_measured_and_kept(job, tmp_path):
    store = Store.create(tmp_path / "runs")
    output = tmp_path / "small.safetensors"
    made = calibrate_model(job, ("fog", "snow"), output, images=60, levels=3, store=store)
    matrix = made["fog", "snow"]
    assert matrix[0, 0] == 100, "the network was trained"
    assert matrix[2, 0] < 60, "grey squares have no colour"
    assert made.metadata["images"] == 60
    assert made.metadata["model"] == "linear"
    np.testing.assert_array_equal(read_matrices(output)["snow", "fog"], made["snow", "fog"])
    assert [path.name for path in tmp_path.glob("*.parts")] == []


def test_a_finished_calibration_is_read_and_another_is_not_overwritten(job, tmp_path, monkeypatch):
    store, output = Store.create(tmp_path / "runs"), tmp_path / "small.safetensors"
    settings = {"levels": 2, "store": store}
    calibrate_model(job, ("fog", "snow"), output, images=20, **settings)
    monkeypatch.setattr(module, "calibrate", lambda *a, **k: pytest.fail("it was measured again"))
    calibrate_model(job, ("fog", "snow"), output, images=20, **settings)
    with pytest.raises(UserError, match="another model, data or setting"):
        calibrate_model(job, ("fog", "snow"), output, images=21, **settings)


def test_the_key_knows_the_weights(job, tmp_path):
    store = Store.create(tmp_path / "runs")
    first = initial_model(job, store, DatasetCache())
    assert first[2] == initial_model(job, store, DatasetCache())[2]
    other = job.model_copy(update={"seed": 1})
    assert first[2] != initial_model(other, store, DatasetCache())[2]
    assert len(list((tmp_path / "runs" / "stages").glob("*.safetensors"))) == 2, "the upstream stages of the store"


@pytest.mark.parametrize(("side", "shown"), [(32, 32), (224, 224), (256, 224), (300, 224)])
def test_of_large_images_the_centre_is_measured(side, shown):
    pytest.importorskip("PIL")
    images = np.random.default_rng(0).integers(0, 256, (2, side, side, 3), dtype=np.uint8)
    found = cropping.center_crops(images)
    assert found.shape == (2, shown, shown, 3)
    if side == 256:
        np.testing.assert_array_equal(found, images[:, 16:240, 16:240])


def test_too_many_images_are_refused(job, tmp_path):
    with pytest.raises(UserError, match="'squares' has 120 images to calibrate on"):
        calibrate_model(
            job, ("fog", "snow"), tmp_path / "x", images=121, levels=2, store=Store.create(tmp_path / "runs")
        )
