"""The stream of corrupted images: which image, which corruption, which noise, and the same however it is asked for."""

import gc
import io
import multiprocessing
import os
import signal
import sys
import time
import weakref

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from driftline.corruptions import corrupt
from driftline.corruptions.cropping import random_crop
from driftline.data import Dataset, load
from driftline.errors import UserError
from driftline.seeds import Seed
from driftline.streams import Prefetched, corruption_stream, prefetch
from driftline.streams.test_time.schedule import CorruptionPair, Schedule, random_mixture, sequential
from driftline.streams.test_time.stream import CorruptionStream, image_keys, source_images
from driftline.tasks import Classification
from driftline.testing import check_stream
from driftline.types import Samples, Step

ROWS = 50
RANDOM = np.random.default_rng(0)
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")
LETTERS = {name: k + 1 for k, name in enumerate("abcdef")}


def source(n=ROWS, side=4):
    """Images that name themselves: the red channel is the row."""
    x = np.zeros((n, side, side, 3), np.uint8)
    x[..., 0] = np.arange(n)[:, None, None]
    return Samples(x, np.arange(n) % 10, id=np.arange(n) + 700)


def writing(images, name, severity, keys):
    """A stand-in that notes what was done: green counts in base 10 in order of application, blue is noise."""
    done = images.copy()
    done[..., 1] = images[..., 1] * 10 + LETTERS[name]
    done[..., 2] = (images[..., 2] + keys[:, None, None] + np.uint64(4 * severity)).astype(np.uint8)
    return done


def points(*severities):
    return Schedule(tuple(CorruptionPair("a", s1, "b", s2) for s1, s2 in severities))


def made(schedule=None, **options):
    settings = {
        "n_images": 130,
        "batch": 16,
        "images_per_point": 20,
        "seed": Seed(5),
        "corrupt": writing,
        "crop": False,
    }
    settings |= options
    return corruption_stream(source(), schedule or points((1, 0), (1, 1), (0, 1)), **settings)


def all_of(stream):
    steps = [stream[i] for i in range(len(stream))]
    return Samples.concat([step.samples for step in steps])


def test_a_random_part_is_of_the_whole_file(tmp_path):
    """CCC crops the full-size image; the dataset itself shows the center of it, at another size."""
    files = [f"{name}/1.png" for name in "ab"]
    pixels = [RANDOM.integers(0, 256, shape, np.uint8) for shape in ((90, 200, 3), (130, 70, 3))]
    for file, image in zip(files, pixels, strict=True):
        (tmp_path / file).parent.mkdir()
        Image.fromarray(image).save(tmp_path / file)
    source = load("imagenet-val", {"path": str(tmp_path), "size": 64}).samples
    stream = corruption_stream(source, points((0, 0)), n_images=2, batch=2, images_per_point=2, seed=Seed(5), crop=True)
    keys, rows = image_keys(Seed(5).child("crops"), np.arange(2)), stream.rows(np.arange(2))
    expected = [random_crop(pixels[row], int(key), 64) for row, key in zip(rows, keys, strict=True)]
    np.testing.assert_array_equal(stream[0].samples.x, expected)
    stream = corruption_stream(
        source, points((0, 0)), n_images=2, batch=2, images_per_point=2, seed=Seed(5), crop=False
    )
    np.testing.assert_array_equal(stream[0].samples.x, source.x[rows])


def test_it_keeps_the_contract():
    check_stream(made())
    check_stream(made(random_mixture(tuple("abc"))))


def test_lengths():
    stream = made()
    assert len(stream) == 9
    assert [len(stream[i].samples) for i in range(9)] == [16] * 8 + [2]
    with pytest.raises(IndexError):
        stream[9]
    assert stream[-1].index == 8


def test_a_point_lasts_for_speed_images_and_batches_straddle():
    samples = all_of(made())
    assert samples.group.tolist() == (np.arange(130) // 20).tolist()
    assert samples.id.tolist() == list(range(130))
    green = samples.x[:, 0, 0, 1]
    expected = [{0: 1, 1: 12, 2: 2}[point % 3] for point in np.arange(130) // 20]
    assert green.tolist() == expected, "first a, then b on the result; nothing at severity 0; the points come again"


def test_moments_are_called_by_their_corruptions():
    stream = made()
    assert [stream[i].time for i in (0, 1, 2, 3)] == ["a 1", "a 1", "a 1 + b 1", "b 1"]


def test_images_are_drawn_without_replacement_in_a_point_and_anew_for_each():
    samples = all_of(made(n_images=100))
    rows = samples.x[:, 0, 0, 0].reshape(5, 20)
    assert all(len(set(row.tolist())) == 20 for row in rows)
    assert len({tuple(row) for row in rows.tolist()}) == 5
    assert set(rows[0].tolist()) & set(rows[1].tolist()), "with replacement across points"
    assert samples.y.tolist() == (samples.x[:, 0, 0, 0] % 10).tolist(), "labels belong to their images"


def test_a_point_longer_than_the_source_shows_all_before_any_again():
    samples = all_of(made(points((1, 0)), n_images=120, images_per_point=120))
    rows = samples.x[:, 0, 0, 0]
    assert sorted(rows[:50].tolist()) == sorted(rows[50:100].tolist()) == list(range(50))
    assert len(set(rows[100:].tolist())) == 20
    assert rows[:50].tolist() != rows[50:100].tolist()


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 3))
@settings(max_examples=30, deadline=None)
def test_an_image_depends_on_its_position_alone(batch, other, seed):
    """Whatever the batch size and the order of asking, position p shows the same."""
    a, b = (made(batch=size, seed=Seed(seed), n_images=70) for size in (batch, other))
    backwards = [b[i].samples for i in reversed(range(len(b)))][::-1]
    first, second = all_of(a), Samples.concat(backwards)
    np.testing.assert_array_equal(first.x, second.x)
    np.testing.assert_array_equal(first.y, second.y)


def test_a_longer_stream_begins_the_same():
    np.testing.assert_array_equal(all_of(made(n_images=64)).x, all_of(made(n_images=130)).x[:64])


def test_noise_differs_between_images_seeds_and_crops():
    stream = made()
    noise = stream[0].samples.x[:, 0, 0, 2]
    assert len(set(noise.tolist())) > 10
    assert noise.tolist() != made(seed=Seed(6))[0].samples.x[:, 0, 0, 2].tolist()
    positions = np.arange(16)
    expected = (image_keys(Seed(5).child("noise"), positions) + np.uint64(4)).astype(np.uint8)
    assert noise.tolist() == expected.tolist()
    assert (image_keys(Seed(5).child("crops"), positions) != image_keys(Seed(5).child("noise"), positions)).all()


def test_crops_have_keys_of_their_own():
    seen = []

    def crop(images, keys):
        seen.append(keys)
        return images[:, :2, :2]

    stream = CorruptionStream(source(), points((1, 0)), 32, 16, 20, Seed(0), writing, crop, "a corner")
    assert stream[1].samples.x.shape == (16, 2, 2, 3)
    np.testing.assert_array_equal(np.concatenate(seen), image_keys(Seed(0).child("crops"), np.arange(16, 32)))


def test_keys_are_splitmix_and_never_repeat():
    assert image_keys(Seed(0), np.arange(3)).tolist() == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    many = image_keys(Seed(1), np.arange(100_000))
    assert len(np.unique(many)) == 100_000
    assert abs((many >> np.uint64(63)).mean() - 0.5) < 0.01


def test_mixed_draws_a_corruption_for_each_image():
    samples = all_of(made(random_mixture(tuple("abcd")), n_images=2000, batch=64, images_per_point=500))
    assert (samples.x[:, 0, 0, 1] == samples.group + 1).all()
    counts = np.bincount(samples.group, minlength=4)
    assert counts.min() > 430
    assert len(set(samples.group[:64].tolist())) == 4, "within one batch"
    rows = samples.x[:, 0, 0, 0].reshape(4, 10, 50)
    assert (np.sort(rows, axis=2) == np.arange(50)).all(), "source images are drawn as ever"


def test_jpeg_is_the_last_thing_done():
    rng = np.random.default_rng(0)
    noisy = Samples(rng.integers(0, 256, (4, 16, 16, 3), dtype=np.uint8), np.zeros(4, int))
    plain, kept = (
        corruption_stream(noisy, points((1, 0)), n_images=4, batch=4, images_per_point=4, corrupt=writing, jpeg=jpeg)[
            0
        ].samples.x
        for jpeg in (None, 85)
    )
    for before, after in zip(plain, kept, strict=True):
        file = io.BytesIO()
        Image.fromarray(before).save(file, "JPEG", quality=85, optimize=True)
        np.testing.assert_array_equal(np.asarray(Image.open(file)), after)
    assert (plain != kept).any()


def test_the_protocol_tells_everything():
    protocol = made(jpeg=85).protocol
    assert protocol["images_per_point"] == 20
    assert protocol["source_images"] == 50
    assert protocol["compressed_at_last"] == "JPEG of quality 85"
    assert protocol["schedule"]["paths"] == {"a > b": [[1, 0], [1, 1], [0, 1]]}


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_ahead_gives_the_same_steps(workers):
    stream, coming = made(), prefetch(made(), workers)
    check_stream(coming)
    np.testing.assert_array_equal(all_of(coming).x, all_of(stream).x)
    coming.close()


def test_ahead_forgets_the_steps_that_were_shown():
    stream = made()
    coming, shown = prefetch(stream), []
    for k in range(len(stream)):
        shown.append(weakref.ref(coming[k].samples.x))
    gc.collect()
    assert len(stream) > 3
    assert sum(x() is not None for x in shown) <= 3  # the last ones, and perhaps one that the thread has not let go of


class Noting:
    """Steps that leave a file in a folder when they are made."""

    def __init__(self, folder, seconds=0.0):
        self.folder, self.seconds = folder, seconds

    def __len__(self):
        return 100

    def __getitem__(self, index):
        time.sleep(self.seconds)
        (self.folder / str(index)).touch()
        return Step(index, "", Samples(np.full((2, 3), index), np.zeros(2)))

    def made(self):
        return sorted(int(path.name) for path in self.folder.iterdir())


@pytest.mark.parametrize(("workers", "ahead"), [(0, 2), (2, 4)])
def test_ahead_makes_the_next_steps_and_no_more(workers, ahead, tmp_path):
    noting = Noting(tmp_path)
    stream = prefetch(noting, workers)
    assert stream[0].samples.x.tolist() == [[0, 0, 0]] * 2
    deadline = time.monotonic() + 10
    while len(noting.made()) < ahead + 1 and time.monotonic() < deadline:
        time.sleep(0.001)
    assert noting.made() == list(range(ahead + 1))
    assert stream[1].index == 1
    stream.close()
    assert noting.made() in (list(range(ahead + 1)), list(range(ahead + 2)))


@on_linux
def test_images_of_a_process_are_in_shared_memory_and_belong_to_the_caller():
    stream = prefetch(made(), 1)
    base = stream[0].samples.x.base
    assert isinstance(base, torch.Tensor)
    assert base.is_shared()
    stream[0].samples.x[:] = 0  # as an array of a thread, it may be written to
    stream.close()


@on_linux
def test_a_killed_process_is_noticed(tmp_path):
    stream = prefetch(Noting(tmp_path, 0.05), 2)  # slow, so that the pool has time to notice before all steps are made
    before = set(multiprocessing.active_children())
    stream[0]
    os.kill((set(multiprocessing.active_children()) - before).pop().pid, signal.SIGKILL)
    with pytest.raises(UserError, match=r"was killed, perhaps for lack of memory: .* --set device.workers=1"):
        all(stream[k] for k in range(100))
    stream.close()


def test_waiting_is_measured_and_explained(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(sys.modules[Prefetched.__module__], "WAITING_SECONDS", 0.01)
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    stream = prefetch(Noting(tmp_path, 0.02))
    stream[0]
    assert 0.02 <= stream.waited < 1
    stream.report_waiting(stream.waited * 10)
    assert not caplog.messages
    stream.report_waiting(stream.waited * 4 / 3)
    assert caplog.messages == [
        "note: the method waited for images 75% of the time: --set device.workers=4 makes them in 4 processes"
    ]
    stream.close()


def test_a_failing_step_fails_where_it_is_asked_for():
    def failing(images, name, severity, keys):
        raise UserError("no such corruption")

    for workers in (0, 1):
        stream = prefetch(made(corrupt=failing), workers)
        with pytest.raises(UserError, match=r"^no such corruption$"):
            stream[0]
        stream.close()
    with pytest.raises(UserError, match="workers=-1"):
        prefetch(made(), -1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_images": 0}, "images=0: give a whole number from 1"),
        ({"batch": 0}, "batch=0"),
        ({"images_per_point": True}, "images_per_point=True"),
        ({"jpeg": 101}, "a quality from 1 to 100"),
    ],
)
def test_settings_are_checked(options, message):
    with pytest.raises(UserError, match=message):
        made(**options)


def test_only_colour_images_in_bytes():
    grey = Samples(np.zeros((3, 8, 8, 1), np.uint8), np.zeros(3, int))
    with pytest.raises(UserError, match="color images in bytes"):
        corruption_stream(grey, sequential(("a",)), n_images=3, corrupt=writing)


def test_the_pool_is_the_official_test_set_if_there_is_one():
    samples = source(6)
    task = Classification(tuple("abcdefghij"))
    assert source_images(Dataset("x", samples, task)).id.tolist() == [700, 701, 702, 703, 704, 705]
    test = np.array([False, True, False, True, False, False])
    assert source_images(Dataset("x", samples, task, test=test)).id.tolist() == [701, 703]


@pytest.mark.parametrize("side", [32, 72])
def test_with_the_corruptions_themselves_nothing_depends_on_batches_or_workers(side):
    """At 72 pixels with random parts, at 32 without, as is the default."""
    pytest.importorskip("numba")
    pytest.importorskip("cv2")
    rng = np.random.default_rng(0)
    photographs = Samples(rng.integers(0, 256, (12, side, side, 3), dtype=np.uint8), np.arange(12) % 3)
    schedule = Schedule(
        (CorruptionPair("gaussian_noise", 1.0, "contrast", 0.25), CorruptionPair("contrast", 2.0, "pixelate", 1.0))
    )
    streams = [
        corruption_stream(photographs, schedule, n_images=20, batch=batch, images_per_point=5) for batch in (20, 3)
    ]
    shown = {72: "a random part, flipped at random", 32: "the whole image"}
    assert [stream.protocol["crop"] for stream in streams] == [shown[side]] * 2
    whole, parts, made_ahead = all_of(streams[0]), all_of(streams[1]), all_of(prefetch(streams[1]))
    np.testing.assert_array_equal(whole.x, parts.x)
    np.testing.assert_array_equal(whole.x, made_ahead.x)
    assert whole.x.shape == (20, side, side, 3)


def test_both_corruptions_are_applied_in_turn_with_the_keys_of_their_images():
    pytest.importorskip("numba")
    pytest.importorskip("cv2")
    rng = np.random.default_rng(1)
    photographs = Samples(rng.integers(0, 256, (6, 32, 32, 3), dtype=np.uint8), np.zeros(6, int))
    schedule = Schedule((CorruptionPair("gaussian_noise", 1.5, "contrast", 2.25),))
    stream = corruption_stream(photographs, schedule, n_images=6, batch=6, images_per_point=6, seed=Seed(4))
    drawn = photographs.x[stream.rows(np.arange(6))]
    own = image_keys(Seed(4).child("noise"), np.arange(6))
    expected = corrupt(corrupt(drawn, "gaussian_noise", 1.5, own), "contrast", 2.25, own)
    np.testing.assert_array_equal(stream[0].samples.x, expected)
    swapped = corrupt(corrupt(drawn, "contrast", 2.25, own), "gaussian_noise", 1.5, own)
    assert (stream[0].samples.x != swapped).any()
