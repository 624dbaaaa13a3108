"""Titles from a snapshot read line by line, and from Wild-Time's two forms."""

import json
import pickle

import h5py
import numpy as np
import pytest

from driftline.data import load
from driftline.data.arxiv import SNAPSHOT, arxiv
from driftline.errors import UserError

PAPERS = [
    ("Newer", "math.CO cs.CG", "2009-06-30", "Sat, 31 Mar 2007 02:26:18 GMT"),
    ("Older\n  Title", "hep-ph", "2008-11-26", "Mon, 2 Apr 2007 19:18:42 GMT"),
    ("Too late", "cs.LG", "2024-01-01", "Mon, 2 Jan 2012 00:00:00 GMT"),
    ("Before", "hep-ph", "2007-05-23", "Tue, 3 Jan 1995 00:00:00 GMT"),
]


def snapshot(path, papers=PAPERS):
    rows = [
        {"id": str(k), "title": t, "categories": c, "update_date": u, "versions": [{"version": "v1", "created": v}]}
        for k, (t, c, u, v) in enumerate(papers)
    ]
    path.write_text("\n".join(map(json.dumps, rows)))


def test_a_snapshot_is_in_order_of_update_or_of_creation(tmp_path):
    snapshot(tmp_path / SNAPSHOT)
    updated, created = load("arxiv", folders=[tmp_path]), load("arxiv", {"date": "created"}, [tmp_path])
    assert updated.samples.x == ["before", "older\n  title", "newer"]
    assert updated.samples.time.astype(str).tolist() == ["2007-05-23", "2008-11-26", "2009-06-30"]
    assert updated.samples.id.tolist() == [4, 2, 1]
    assert updated.task.classes == ("hep-ph", "math.CO")
    assert updated.samples.y.tolist() == [0, 0, 1]
    assert created.samples.x == ["newer", "older\n  title", "too late"]
    assert created.samples.time.astype(str).tolist() == ["2007-03-31", "2007-04-02", "2012-01-02"]
    assert created.task.classes == ("cs.LG", "hep-ph", "math.CO")
    early = arxiv([tmp_path], date="created", first=1990, last=1999).samples
    assert early.time.astype(str).tolist() == ["1995-01-03"]


def test_pickle_and_hdf5_are_one_dataset(tmp_path):
    train = {"title": np.array(["a b", "c"]), "category": np.array([171, 0])}
    test = {"title": np.array(["d"]), "category": np.array([5])}
    (tmp_path / "arxiv.pkl").write_bytes(pickle.dumps({y: {0: train, 1: test, 2: {}} for y in (2008, 2007, 2023)}))
    one = load("arxiv", folders=[tmp_path])
    (tmp_path / "arxiv.pkl").unlink()
    with h5py.File(tmp_path / "arxiv.hdf5", "w") as file:
        for name, part in (("train", train), ("test", test)):
            for year in (2007, 2008):
                file[f"{year}/{name}/text"] = [t.encode() for t in part["title"]]
                file[f"{year}/{name}/labels"] = part["category"]
    other = load("arxiv", folders=[tmp_path])
    assert one.fingerprint == other.fingerprint
    assert one.samples.x == ["a b", "c", "d"] * 2
    assert one.samples.y.tolist() == [171, 0, 5] * 2
    assert one.samples.id.tolist() == [2007000000, 2007000001, 2007000002, 2008000000, 2008000001, 2008000002]
    assert one.task.width == 172
    assert load("arxiv", {"published_split": True}, [tmp_path]).test.tolist() == [False, False, True] * 2
    with pytest.raises(UserError, match=r"no day of creation; date=created needs arxiv-metadata"):
        arxiv([tmp_path], date="created")


@pytest.mark.parametrize(
    ("change", "date", "message"),
    [
        ({"title": None}, "updated", "None as 'title' in line 5"),
        ({"categories": ""}, "updated", "'' as 'categories' in line 5"),
        ({"update_date": "2009"}, "updated", "'2009' as 'update_date' in line 5"),
        ({"versions": []}, "created", "first of 'versions' in line 5"),
        ({"versions": [{"created": "soon"}]}, "created", "first of 'versions' in line 5"),
        ({"versions": 3}, "created", "first of 'versions' in line 5"),
    ],
)
def test_a_bad_record_is_named_and_only_what_is_used_must_be_right(tmp_path, change, date, message):
    snapshot(tmp_path / SNAPSHOT)
    good = {"title": "t", "categories": "cs.LG", "update_date": "2010-01-01"}
    good["versions"] = [{"created": "Mon, 2 Apr 2007 19:18:42 GMT"}]
    with open(tmp_path / SNAPSHOT, "a", encoding="utf-8") as file:
        file.write("\n" + json.dumps(good | change))
    with pytest.raises(UserError, match=rf"snapshot\.json: expected Kaggle's arXiv snapshot: .*{message}"):
        arxiv([tmp_path], date=date)
    if {*change} & {"versions", "update_date"}:
        assert arxiv([tmp_path], date={"updated": "created", "created": "updated"}[date]).samples.x.count("t") == 1


def test_a_snapshot_has_no_split(tmp_path):
    snapshot(tmp_path / SNAPSHOT)
    with pytest.raises(UserError, match="has no split"):
        arxiv([tmp_path], published_split=True)


def test_a_cut_snapshot_and_a_wrong_option(tmp_path):
    snapshot(tmp_path / SNAPSHOT)
    text = (tmp_path / SNAPSHOT).read_text()
    (tmp_path / SNAPSHOT).write_text(text[:-5])
    with pytest.raises(UserError, match="line 4 is no JSON"):
        arxiv([tmp_path])
    with pytest.raises(UserError, match=r"no date of a paper 'create'\. Did you mean 'created'"):
        arxiv([tmp_path], date="create")
    with pytest.raises(UserError, match=r"none of arxiv\.pkl.*Get arxiv-metadata"):
        arxiv([tmp_path / "none"])
