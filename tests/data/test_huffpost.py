"""The same headlines in every standard form, and every way a file of records can be broken."""

import gzip
import json
import os
import pickle

import h5py
import numpy as np
import pytest

from driftline.data import load
from driftline.data.huffpost import WILD_TIME, huffpost
from driftline.errors import UserError
from driftline.streams import periods

NAME = "News_Category_Dataset_v3.json"
# (day, section, headline), not in time order
NEWS = [
    (f"{year}-{1 + k % 12:02}-{1 + k % 28:02}", WILD_TIME[k % 11], f"Headline {k} of {year}")
    for year in (2013, 2012, 2018)
    for k in range(20)
]


def records(path, news=NEWS, **extra):
    lines = [json.dumps({"date": d, "category": c, "headline": h, **extra}) for d, c, h in news]
    (gzip.open if path.suffix == ".gz" else open)(path, "wb").write("\n".join(lines).encode())


def splits():
    """Wild-Time's preparation: per year a permutation, 90% and all but one of the rest, in lower case."""
    for year in (2012, 2013, 2018):
        of = [(h.lower(), WILD_TIME.index(c)) for d, c, h in sorted(NEWS) if d.startswith(str(year))]
        order = np.random.default_rng(year).permutation(len(of))
        yield year, [of[i] for i in order[:18]], [of[i] for i in order[19:]]


def wild_time(path):
    content = {}
    for year, *both in splits():
        arrays = [{"headline": np.array([h for h, _ in p]), "category": np.array([c for _, c in p])} for p in both]
        content[year] = {0: arrays[0], 1: arrays[1], 2: {"headline": ["x"], "category": [0]}}
    path.write_bytes(pickle.dumps(content))


def hdf5(path):
    with h5py.File(path, "w") as file:
        for year, *both in splits():
            for name, part in zip(("train", "test"), both, strict=True):
                group = file.create_group(f"{year}/{name}")
                group["text"] = [h.encode() for h, _ in part]
                group["labels"] = np.array([c for _, c in part], "u1")


def test_pickle_and_hdf5_are_one_dataset(tmp_path):
    for name, write in (("huffpost.pkl", wild_time), ("huffpost.hdf5", hdf5)):
        (tmp_path / name).parent.joinpath(name[-3:]).mkdir()
        write(tmp_path / name[-3:] / name)
    one, other = (load("huffpost", folders=[tmp_path / end]) for end in ("pkl", "df5"))
    assert one.fingerprint == other.fingerprint
    s = one.samples
    assert len(s) == 3 * 19
    assert s.time.tolist() == [2012] * 19 + [2013] * 19 + [2018] * 19
    assert s.id[18:20].tolist() == [2012_000018, 2013_000000]
    assert s.x[0] == next(splits())[1][0][0]
    assert set(map(type, s.x)) == {str}
    marked = load("huffpost", {"published_split": True, "categories": list(WILD_TIME[:4])}, [tmp_path / "pkl"])
    tests = [h for _, _, test in splits() for h, c in test if c < 4]
    assert [marked.samples.x[row] for row in np.flatnonzero(marked.test)] == tests


def test_records_are_the_same_headlines_by_day(tmp_path):
    (tmp_path / "a").mkdir()
    records(tmp_path / NAME)
    wild_time(tmp_path / "a" / "huffpost.pkl")
    byday, byyear = load("huffpost", folders=[tmp_path]).samples, load("huffpost", folders=[tmp_path / "a"]).samples
    assert byday.time.dtype == "datetime64[D]"
    assert byday.time[[0, -1]].astype(str).tolist() == ["2012-01-01", "2018-12-12"]
    assert byday.x[0] == "headline 0 of 2012"
    assert byday.id[0] == 21  # its line
    years = byday.time.astype("datetime64[Y]").astype(int) + 1970
    all_of_them = set(zip(byday.x, byday.y.tolist(), years.tolist(), strict=True))
    some = set(zip(byyear.x, byyear.y.tolist(), byyear.time.tolist(), strict=True))
    assert some < all_of_them
    assert len(all_of_them - some) == 3  # the one per year that Wild-Time loses


def test_records_have_no_split(tmp_path):
    records(tmp_path / NAME)
    with pytest.raises(UserError, match="has no split"):
        load("huffpost", {"published_split": True}, [tmp_path])


def test_gzip_changes_nothing(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    records(tmp_path / "a" / NAME)
    records(tmp_path / "b" / f"{NAME}.gz")
    assert huffpost([tmp_path / "a"]).fingerprint == huffpost([tmp_path / "b"]).fingerprint


def test_categories(tmp_path):
    records(tmp_path / NAME, [*NEWS, ("2014-01-01", "ARTS", "Art"), ("2014-01-02", "ARTS", "")])
    wild, every = huffpost([tmp_path]), huffpost([tmp_path], categories="all")
    assert (len(wild.samples), wild.task.classes) == (60, WILD_TIME)
    assert "2 headlines of other sections are left out" in wild.notes[1]
    assert (len(every.samples), every.task.classes) == (62, tuple(sorted([*WILD_TIME, "ARTS"])))
    two = huffpost([tmp_path], categories=["TECH", "ARTS"])
    assert two.task.classes == ("TECH", "ARTS")
    assert [two.samples.x[i] for i in np.flatnonzero(two.samples.y == 1)] == ["art", ""]
    assert np.bincount(two.samples.y).tolist() == [sum(c == "TECH" for _, c, _ in NEWS), 2]
    for wrong, message in (
        (["TECH", "ART"], "no category in .*Did you mean 'ARTS'"),
        ("TECH", "set of cat"),
        (["TECH"], "two"),
    ):
        with pytest.raises(UserError, match=message):
            huffpost([tmp_path], categories=wrong)


def test_years_chosen(tmp_path):
    records(tmp_path / NAME)
    assert set(huffpost([tmp_path], last=2012).samples.time.astype("datetime64[Y]").astype(str)) == {"2012"}
    with pytest.raises(UserError, match=r"v3\.json: expected News.*no headline from 2020 to 2021"):
        huffpost([tmp_path], first=2020, last=2021)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"date": "2012-01-01", "category": "TECH"}', "None as 'headline' in line 61"),
        ('{"date": "2012-01-01", "headline": "x"}', "None as 'category' in line 61"),
        ('{"date": "2012-01-01", "headline": "x", "category": " "}', "' ' as 'category' in line 61"),
        ('{"date": "yesterday", "headline": "x", "category": "TECH"}', "'yesterday' as 'date' in line 61, not a date"),
        ('{"date": "2012-02-31", "headline": "x", "category": "TECH"}', "'2012-02-31' as 'date' in line 61"),
        ('{"date": 1, "headline": "x", "category": "TECH"}', "1 as 'date' in line 61"),
        ('["date"]', "in line 61, not a record"),
        ('{"date": "2012-0', "line 61 is no JSON"),
        ("[" * 200_000, "line 61 is no JSON"),
        ("\xff", "line 61 is no JSON"),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, message):
    records(tmp_path / NAME)
    with open(tmp_path / NAME, "ab") as file:
        file.write(b"\n" + line.encode("latin1"))
    with pytest.raises(UserError, match=rf"v3\.json: expected News_Category_Dataset: one JSON .*{message}"):
        huffpost([tmp_path])


@pytest.mark.parametrize(("name", "write"), [("huffpost.pkl", wild_time), ("huffpost.hdf5", hdf5)])
def test_every_cut_is_a_user_error(tmp_path, name, write):
    write(tmp_path / name)
    raw = (tmp_path / name).read_bytes()
    for cut in np.linspace(0, len(raw) - 1, 40).astype(int):
        (tmp_path / name).write_bytes(raw[:cut])
        with pytest.raises(UserError, match=f"{name}: expected "):
            huffpost([tmp_path])


def test_a_cut_gzip_is_a_user_error(tmp_path):
    records(tmp_path / f"{NAME}.gz")
    raw = (tmp_path / f"{NAME}.gz").read_bytes()
    for cut in np.linspace(1, len(raw) - 1, 40).astype(int):
        (tmp_path / f"{NAME}.gz").write_bytes(raw[:cut])
        with pytest.raises(UserError, match="expected News"):
            huffpost([tmp_path])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([1], "a list, not a dict of time steps"),
        ({2025: {}}, "no text from"),
        ({2012: {0: {}}}, "no 1"),
        ({2012: {k: {"headline": ["a"], "category": [11]} for k in (0, 1)}}, "from 0 to 10"),
        ({2012: {k: {"headline": ["a"], "category": [0.5]} for k in (0, 1)}}, "from 0 to 10"),
        ({2012: {k: {"headline": ["a", "b"], "category": [1]} for k in (0, 1)}}, "4 inputs but 2 labels"),
        ({2012: {k: {"headline": [3], "category": [1]} for k in (0, 1)}}, "3, not a text"),
        ({2012: {k: {"title": [3], "category": [1]} for k in (0, 1)}}, "no 'headline'"),
    ],
)
def test_wrong_content_of_a_pickle(tmp_path, content, message):
    (tmp_path / "huffpost.pkl").write_bytes(pickle.dumps(content))
    with pytest.raises(UserError, match=rf"huffpost\.pkl: expected Wild-Time's pickle, but found.*{message}"):
        huffpost([tmp_path])


def test_a_hostile_pickle_does_nothing(tmp_path):
    class Evil:
        def __reduce__(self):
            return os.system, (f"touch {tmp_path / 'mark'}",)

    (tmp_path / "huffpost.pkl").write_bytes(pickle.dumps({2012: Evil()}))
    with pytest.raises(UserError, match="not data"):
        huffpost([tmp_path])
    assert not (tmp_path / "mark").exists()


def test_the_real_headlines(real_data):
    try:
        every = load("huffpost", {"categories": "all"}, real_data)
    except UserError:
        pytest.skip("no HuffPost records here")
    if "huffpost_2018-2022" not in every.notes[0]:
        pytest.skip("other HuffPost records are found first")
    s = every.samples
    assert (len(s), every.task.width) == (10_000, 29)
    assert np.bincount(s.y).max() == 3362  # politics
    wild = load("huffpost", folders=real_data).samples
    assert np.bincount(wild.y).tolist() == [128, 65, 319, 193, 1597, 41, 102, 34, 209, 38, 24]
    assert np.bincount(s.time.astype("datetime64[Y]").astype(int) + 1970)[2018:].tolist() == [
        2475,
        2005,
        2054,
        2068,
        1398,
    ]
    months = periods(s, "month")
    assert (len(months), months.names[0], months.names[-1]) == (53, "2018-05", "2022-09")
    assert len(periods(s, "quarter")) == 18
