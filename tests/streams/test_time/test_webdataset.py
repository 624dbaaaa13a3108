"""Streams in shards: written by the generator's rule, read again, and compared with the stream they came from."""

import io
import json
import os
import tarfile
from threading import Thread

import numpy as np
import pytest
from PIL import Image

from driftline.data import load, webdataset
from driftline.errors import UserError
from driftline.seeds import Seed
from driftline.streams import corruption_stream, shards, write_shards
from driftline.streams.test_time.schedule import CorruptionPair, Schedule
from driftline.streams.test_time.webdataset import format_info, parse_info
from driftline.testing import check_stream
from driftline.types import Samples

RANDOM = np.random.default_rng(0)


def brighter(n_images, name, severity, keys):
    return (n_images // 2 + np.uint8(20 * severity)).astype(np.uint8)


def made(n_images=100, images_per_point=10, batch=7):
    source = Samples(
        RANDOM.integers(0, 256, (30, 8, 8, 3), dtype=np.uint8),
        np.arange(30) % 5,
        id=np.array([f"n0{k % 5}/{k}.jpg" for k in range(30)]),
    )
    points = Schedule(tuple(CorruptionPair("fog", s, "snow", 5 - s) for s in (3.0, 2.75, 2.5)))
    return corruption_stream(
        source,
        points,
        n_images=n_images,
        batch=batch,
        images_per_point=images_per_point,
        corrupt=brighter,
        seed=Seed(3),
    )


STREAM = made()


def all_of(stream):
    return Samples.concat([stream[i].samples for i in range(len(stream))])


def test_a_lossless_stream_comes_back_as_it_was(tmp_path):
    stream = made()
    write_shards(stream, tmp_path, per_shard=25, format="png")
    read, known = all_of(shards(tmp_path, batch=16)), all_of(stream)
    np.testing.assert_array_equal(read.x, known.x)
    np.testing.assert_array_equal(read.y, known.y)
    assert read.id.tolist() == known.id.tolist()
    check_stream(shards(tmp_path, batch=16))


def test_whole_points_until_a_shard_is_large_enough(tmp_path):
    """Speeds of 1,000, 2,000 and 5,000 give 25,000, 26,000 and 25,000 images; here a thousandth of it."""
    for images_per_point, size in ((1, 25), (2, 26), (5, 25)):
        folder = tmp_path / str(images_per_point)
        paths = write_shards(made(images_per_point=images_per_point), folder, per_shard=25, format="png")
        assert [path.name for path in paths] == [f"serial_{k:05d}.tar" for k in range(4)]
        assert list(webdataset.image_counts(folder).values()) == [size, size, size, 100 - 3 * size]


def test_entries_are_called_as_in_the_original_files(tmp_path):
    stream = made()
    write_shards(stream, tmp_path, per_shard=25)
    with tarfile.open(tmp_path / "serial_00001.tar") as tar:
        names = tar.getnames()
        assert names[:3] == ["sample_30.input.jpg", "sample_30.output.cls", "sample_30.info"]
        label = int(tar.extractfile("sample_30.output.cls").read())
        revealed = tar.extractfile("sample_30.info").read().decode()
        kept = Image.open(io.BytesIO(tar.extractfile("sample_30.input.jpg").read()))
    samples = all_of(stream)
    assert label == samples.y[30]
    assert parse_info(revealed) == stream.schedule.point(3)
    assert revealed.startswith(f"++dir++n0{label}++name++")
    file = io.BytesIO()
    Image.fromarray(samples.x[30]).save(file, "JPEG", quality=85, optimize=True)
    np.testing.assert_array_equal(np.asarray(kept), np.asarray(Image.open(file)))


def test_written_twice_is_the_same_to_the_byte_and_goes_on_where_it_stopped(tmp_path):
    for folder in ("a", "b"):
        write_shards(STREAM, tmp_path / folder, 25, "png")
    first = [(tmp_path / "a" / f"serial_0000{k}.tar").read_bytes() for k in range(4)]
    assert first == [(tmp_path / "b" / f"serial_0000{k}.tar").read_bytes() for k in range(4)]
    (tmp_path / "b" / "serial_00002.tar").unlink()
    kept = (tmp_path / "b" / "serial_00001.tar").stat().st_mtime_ns
    write_shards(STREAM, tmp_path / "b", 25, "png")
    assert (tmp_path / "b" / "serial_00002.tar").read_bytes() == first[2]
    assert (tmp_path / "b" / "serial_00001.tar").stat().st_mtime_ns == kept


def test_shards_of_another_stream_are_not_mixed_in(tmp_path):
    write_shards(STREAM, tmp_path, 25, "png")
    with pytest.raises(UserError, match="the shards of another stream"):
        write_shards(made(images_per_point=5), tmp_path, 25, "png")


def test_without_an_index_entries_are_counted(tmp_path):
    write_shards(STREAM, tmp_path, 25, "png")
    assert json.loads((tmp_path / "index.json").read_text())["shards"]["serial_00003.tar"] == 10
    (tmp_path / "index.json").unlink()
    np.testing.assert_array_equal(all_of(shards(tmp_path)).x, all_of(STREAM).x)


def test_the_original_layout_without_numbers_in_order_is_read(tmp_path):
    """Keys need not be numbered from 0, and entries of an image may be in any order."""
    with tarfile.open(tmp_path / "serial_00000.tar", "w") as tar:
        for name, label in (("sample_9", 3), ("sample_2", 1)):
            picture = io.BytesIO()
            Image.fromarray(np.full((8, 8, 3), 50 * label, np.uint8)).save(picture, "PNG")
            for part, content in (("output.cls", str(label).encode()), ("input.png", picture.getvalue())):
                member = tarfile.TarInfo(f"./{name}.{part}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    step = shards(tmp_path)[0]
    assert step.samples.y.tolist() == [3, 1]
    assert step.samples.x[:, 0, 0, 0].tolist() == [150, 50]
    assert step.time == "0"


def test_shards_as_a_dataset(tmp_path):
    write_shards(STREAM, tmp_path / "ccc", 25, "png")
    data = load("webdataset", {"path": "ccc", "classes": 7}, [tmp_path])
    np.testing.assert_array_equal(data.samples.x, all_of(STREAM).x)
    np.testing.assert_array_equal(data.samples.y, all_of(STREAM).y)
    assert data.task.width == 7


def write_tar(path, entries):
    """Write entries, numbers as the text of a class and shapes as black pictures with a white right half."""
    with tarfile.open(path, "w") as tar:
        for name, content in entries:
            if isinstance(content, tuple):
                pixels = np.zeros((*content, 3), np.uint8)
                pixels[:, content[1] // 2 :] = 255
                file = io.BytesIO()
                Image.fromarray(pixels).save(file, "PNG")
                content = file.getvalue()
            member = tarfile.TarInfo(name)
            data = content if isinstance(content, bytes) else str(content).encode()
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))


def test_the_conventions_of_webdataset(tmp_path):
    """Folders belong to the key, a key that comes back is a new sample, and other fields are ignored."""
    entries = [("__meta__.json", b"{}"), ("train/0.PNG", (8, 16)), ("train/0.cls", 1), ("train/0.pyd", b"code")]
    entries += [("val/0.cls", 2), ("val/0.seg.png", (4, 4)), ("val/0.jpeg", (8, 8)), ("train/0.png", (16, 8))]
    write_tar(tmp_path / "name-000000.tar", [*entries, ("train/0.cls", 0), ("only.txt", b"text")])
    data = load("webdataset", {"path": str(tmp_path), "size": 8})
    assert (data.samples.y.tolist(), data.samples.x.shape) == ([1, 2, 0], (3, 8, 8, 3))
    center = load("webdataset", {"path": str(tmp_path), "size": 8, "resize": 12})
    assert (data.samples.x[0, :, 1] == 0).all()
    assert center.samples.x[0, 0, :, 0].tolist() == [0, 0, 0, 43, 212, 255, 255, 255]
    assert data.samples.x[0, 0, :, 0].tolist() != center.samples.x[0, 0, :, 0].tolist()
    assert center.fingerprint != data.fingerprint
    with pytest.raises(UserError, match=r"expected square images, but found 16 x 8 pixels: choose a size with --set"):
        load("webdataset", {"path": str(tmp_path)})
    with pytest.raises(UserError, match="resize needs a size"):
        load("webdataset", {"path": str(tmp_path), "resize": 12})
    for entries, reason in (([("a.jpg", (8, 8))], "no class of a"), ([("b.cls", 1)], "no image of b")):
        write_tar(tmp_path / "name-000000.tar", entries)
        with pytest.raises(UserError, match=reason):
            load("webdataset", {"path": str(tmp_path)})


def test_what_is_no_shard_is_refused(tmp_path):
    with pytest.raises(UserError, match="no shard in"):
        shards(tmp_path)
    (tmp_path / "serial_00000.tar").write_bytes(b"x" * 2000)
    with pytest.raises(UserError, match="expected a tar file with"):
        shards(tmp_path)
    with pytest.raises(UserError, match="no format of images in shards 'gif'"):
        write_shards(STREAM, tmp_path / "new", format="gif")


def test_info_says_what_was_done():
    point = CorruptionPair("fog", 0.25, "snow", 5.0)
    assert parse_info(format_info(point, "n01/x.jpg")) == point
    assert format_info(point, "12") == "++dir++++name++12++n1++fog++s1++0.25++n2++snow++s2++5.0"
    assert parse_info(format_info(CorruptionPair("fog", 5.0, "", 0.0), "a/b")) == CorruptionPair("fog", 5.0, "", 0.0)
    with pytest.raises(UserError, match="does not name its corruptions"):
        parse_info("none")


def test_an_index_must_agree_with_its_shards(tmp_path):
    write_shards(STREAM, tmp_path, per_shard=50, format="png")
    index = tmp_path / "index.json"
    known = json.loads(index.read_text())
    for count, reason in ((-1, "-1 images"), (10**30, f"{10**30} images"), (60, "has 50 images, and index.json .* 60")):
        index.write_text(json.dumps({**known, "shards": {**known["shards"], "serial_00000.tar": count}}))
        with pytest.raises(UserError, match=reason):
            all_of(shards(tmp_path))


@pytest.mark.parametrize("name", ["index.json", "serial_00000.tar"])
def test_a_pipe_is_no_shard_and_no_index(tmp_path, name):
    write_shards(STREAM, tmp_path, per_shard=400, format="png")
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    Thread(target=(tmp_path / name).write_bytes, args=(b"{}",), daemon=True).start()  # waits for a reader
    with pytest.raises(UserError, match=f"{name} is a folder, a pipe or a device"):
        webdataset.image_counts(tmp_path)
    assert (tmp_path / name).read_bytes() == b"{}", "nothing read the pipe before"


def test_the_published_members_are_read_though_their_keys_start_again_in_each_shard(tmp_path):
    """CCC's own order of members, owner and mode; two shards with the same keys."""
    folder = tmp_path / "baseline_20_transition+speed_1000_seed_43"
    folder.mkdir()
    for shard in range(2):
        with tarfile.open(folder / f"serial_{shard:05}.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
            for k in range(3):
                picture = io.BytesIO()
                Image.fromarray(np.full((8, 8, 3), 80 * k, np.uint8)).save(picture, "JPEG", quality=85)
                info = f"++dir++n01440764++name++x.JPEG++n1++fog++s1++{shard}++n2++snow++s2++5.0".encode()
                label = str(3 * shard + k).encode()
                for part, content in (("info", info), ("input.jpg", picture.getvalue()), ("output.cls", label)):
                    member = tarfile.TarInfo(f"sample_{k}.{part}")
                    member.size, member.mode, member.uname, member.mtime = len(content), 0o444, "bigdata", 1_700_000_000
                    tar.addfile(member, io.BytesIO(content))
    stream = shards(folder, batch=2, classes=6)
    assert all_of(stream).y.tolist() == [0, 1, 2, 3, 4, 5]
    assert [stream[k].time for k in range(3)] == ["snow 5", "snow 5", "fog 1 + snow 5"]
    with pytest.raises(UserError, match=r"serial_00001\.tar has an image of class 5, and the data have 5 classes"):
        all_of(shards(folder, batch=2, classes=5))


def test_images_of_two_sizes_and_labels_out_of_range_are_refused(tmp_path):
    small, large = np.zeros((8, 8, 3), np.uint8), np.zeros((9, 9, 3), np.uint8)
    webdataset.write_shard(tmp_path / "serial_00000.tar", [(0, small, 0, ""), (1, large, 1, "")], "png")
    with pytest.raises(UserError, match=r"images of one size, but found \(8, 8, 3\) and \(9, 9, 3\)"):
        all_of(shards(tmp_path))
    for label in (10**30, 2**40, -1):
        webdataset.write_shard(tmp_path / "serial_00000.tar", [(0, small, label, "")], "png")
        for read in (lambda: all_of(shards(tmp_path)), lambda: load("webdataset", {"path": str(tmp_path)})):
            with pytest.raises(UserError, match=r"the class -?\d+, not a number from 0 to 99999"):
                read()
    webdataset.write_shard(tmp_path / "serial_00000.tar", [(0, small, 0, "")], "png")
    with pytest.raises(UserError, match="the class 999999999, not a number"):
        load("webdataset", {"path": str(tmp_path), "classes": 10**9})
