"""A folder of dated pictures and a table that lists them are one dataset."""

import numpy as np
import pytest
from PIL import Image

from driftline.data import load
from driftline.data.dated_images import dated_images
from driftline.errors import UserError

RANDOM = np.random.default_rng(0)
PIXELS = RANDOM.integers(0, 256, (4, 16, 16, 3), dtype=np.uint8)
ROWS = [
    ("dog", "rex_2020-03-01.png"),
    ("cat", "tom_20190105.png"),
    ("dog", "fido-2019-01-06.png"),
    ("cat", "x2021-1.png"),
]
TIMES = ["2020-03-01", "2019-01-05", "2019-01-06", "2021-12-31"]


@pytest.fixture
def folder(tmp_path):
    for (label, name), pixels in zip(ROWS[:3], PIXELS[:3], strict=True):
        (tmp_path / "pets" / label).mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(tmp_path / "pets" / label / name)
    (tmp_path / "pets" / "dog" / ".hidden_1.png").write_text("")
    (tmp_path / "pets" / "dog" / "notes.txt").write_text("not a picture")
    return tmp_path / "pets"


def table(folder, rows, header="file,label,time"):
    (folder / "list.csv").write_text("\n".join([header, *(",".join(row) for row in rows)]))
    return str(folder / "list.csv")


def listing():
    return [(f"{label}/{name}", label, time) for (label, name), time in list(zip(ROWS, TIMES, strict=True))[:3]]


def test_folder_and_table_are_one_dataset(folder):
    one = load("dated-images", {"path": "pets", "size": 16}, [folder.parent])
    other = load("dated-images", {"path": table(folder, listing()), "size": 16}, [])
    assert one.fingerprint == other.fingerprint
    s = one.samples
    np.testing.assert_array_equal(s.x, PIXELS[[1, 2, 0]])
    assert s.y.tolist() == [0, 1, 1]
    assert one.task.classes == ("cat", "dog")
    assert s.time.astype(str).tolist() == ["2019-01-05", "2019-01-06", "2020-03-01"]
    assert s.id.tolist() == ["cat/tom_20190105.png", "dog/fido-2019-01-06.png", "dog/rex_2020-03-01.png"]


def test_gray_and_size(folder):
    x = dated_images([], path=str(folder), size=8, gray=True).samples.x
    expected = Image.fromarray(PIXELS[1]).convert("L").resize((8, 8), Image.Resampling.BILINEAR)
    assert x.shape == (3, 8, 8, 1)
    np.testing.assert_array_equal(x[0, ..., 0], np.asarray(expected))


def test_columns_and_kinds_of_time(folder):
    def times(*texts):
        rows = [(label, time, name) for (name, label, _), time in zip(listing(), texts, strict=True)]
        path = table(folder, rows, "what,when,where")
        return dated_images([], path=path, file="where", label="what", time="when", size=8).samples.time

    assert times("1999", "1950", "2001").tolist() == [1950, 1999, 2001]
    assert times("0.5", "2", "-1").tolist() == [-1, 0.5, 2]
    zoned = times("2020-01-01T00:30+01:00", "2020-01-01", "2020-01-02T12:00Z")
    assert zoned.astype("datetime64[m]").astype(str).tolist() == [
        "2019-12-31T23:30",
        "2020-01-01T00:00",
        "2020-01-02T12:00",
    ]


def test_iwildcam(tmp_path):
    """Its table begins with a column without a name, and its pictures are in the folder train."""
    (tmp_path / "train").mkdir()
    for name, pixels in zip("ab", PIXELS, strict=False):
        Image.fromarray(pixels).save(tmp_path / "train" / f"{name}.jpg", quality=100)
    rows = ["0,train,a.jpg,7,2013-06-05 05:44:19.000,3", "1,val,b.jpg,0,2013-06-04 23:00:00.000,4"]
    (tmp_path / "metadata.csv").write_text("\n".join([",split,filename,y,datetime,location_remapped", *rows]))
    columns = {"file": "filename", "label": "y", "time": "datetime", "folder": "train"}
    data = load("dated-images", {"path": "metadata.csv", "size": 16, **columns}, [tmp_path])
    assert (data.samples.id.tolist(), data.samples.y.tolist()) == (["b.jpg", "a.jpg"], [0, 1])
    assert data.task.classes == ("0", "7")
    assert data.samples.time[1] == np.datetime64("2013-06-05T05:44:19")
    np.testing.assert_array_equal(data.samples.x[1], np.asarray(Image.open(tmp_path / "train" / "a.jpg")))


def test_a_pattern_of_ones_own(folder):
    named = dated_images([], path=str(folder), pattern=r"(?P<time>\d{4})", size=8).samples
    assert named.time.tolist() == [2019, 2019, 2020]
    for pattern, message in (
        (r"\d{4}", "no group"),
        ("(", "is not a regular expression"),
        (r"(?P<time>z+)", "no time in the name of"),
    ):
        with pytest.raises(UserError, match=message):
            dated_images([], path=str(folder), pattern=pattern)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("cat/none.png", "cat", "2020-01-01"), r"none\.png: expected a picture"),
        (("cat/../dog/rex_2020-03-01.png", "cat", "2020-01-01"), "rows 1 and 4 under the header are the same file"),
        (("cat/a.png", "", "2020-01-01"), "no 'label' in row 4"),
        (("cat/a.png", "cat", ""), "no 'time' in row 4"),
        (("cat/a.png", "cat", "2020-02-31"), r"the time of cat/a\.png is '2020-02-31'"),
        (("cat/a.png", "cat", "20201399"), r"the time of cat/a\.png is '20201399'"),
        (("cat/a.png", "cat", "nan"), "is 'nan'; expected a number or a date"),
        (("cat/a.png", "cat", "1999"), "a number and a date; use one kind"),
    ],
)
def test_a_bad_row_is_named(folder, row, message):
    with pytest.raises(UserError, match=message):
        dated_images([], path=table(folder, [*listing(), row]))


def test_other_mistakes(folder):
    with pytest.raises(UserError, match=r"no column of list\.csv 'time'.*options file, label, time"):
        dated_images([], path=table(folder, listing(), "file,label,when"))
    with pytest.raises(UserError, match="expected two labels or more, but found dog"):
        dated_images([], path=table(folder, [row for row in listing() if row[1] == "dog"]))
    with pytest.raises(UserError, match="but found no picture"):
        dated_images([], path=str(folder / "dog"))
    with pytest.raises(UserError, match="dataset 'dated-images' not found"):
        dated_images([folder], path="nowhere")
    (folder / "list.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match=r"list\.csv: expected a CSV file that lists pictures"):
        dated_images([], path=str(folder / "list.csv"))
    Image.fromarray(np.zeros((9, 9), np.uint16)).save(folder / "cat" / "deep_2020.png")
    with pytest.raises(UserError, match=r"a number and a date"):
        dated_images([], path=str(folder))
    with pytest.raises(UserError, match=r"deep_2020\.png: .*more than eight bits"):
        assert dated_images([], path=str(folder), pattern=r"(?P<time>\d{4})").fingerprint


def test_copies_are_told(folder):
    Image.fromarray(PIXELS[0]).save(folder / "cat" / "again_2022-01-01.png")
    notes = dated_images([], path=str(folder), size=16).notes
    assert "1 pictures are exact copies" in notes[1]


def test_a_cut_picture_is_named(folder):
    file = folder / "cat" / "tom_20190105.png"
    raw = file.read_bytes()
    for cut in np.linspace(0, len(raw) * 0.9, 15).astype(int):
        file.write_bytes(raw[:cut])
        with pytest.raises(UserError, match=r"tom_20190105\.png: expected a picture"):
            assert dated_images([], path=str(folder)).fingerprint
