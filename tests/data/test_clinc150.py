"""Queries and their intents, from a small file and from the real one."""

import json

import numpy as np
import pytest

from driftline.data import data_folders, load, locate
from driftline.errors import UserError

SMALL = {
    "oos_train": [["what is up", "oos"]],
    "val": [["play a song", "music"]],
    "train": [["pay my bill", "bill"], ["play jazz", "music"], ["bill please", "bill"]],
    "test": [["a tune", "music"], ["pay my bill", "bill"], ["owed", "bill"]],
}


def written(folder, content):
    (folder / "data_full.json").write_text(json.dumps(content))
    return [folder]


def test_intents_are_the_classes(tmp_path):
    data = load("clinc150", folders=written(tmp_path, SMALL))
    assert data.task.classes == ("bill", "music")
    assert data.samples.x == ["pay my bill", "play jazz", "bill please", "play a song", "a tune", "owed"]
    assert data.samples.y.tolist() == [0, 1, 0, 1, 1, 0]
    assert data.samples.id.tolist() == ["train-1", "train-2", "train-3", "val-1", "test-1", "test-3"]
    assert data.test.tolist() == [False] * 4 + [True] * 2
    assert data.samples.time.tolist() == [0] * 6
    assert data.notes == (
        "6 queries of 2 intents in data_full.json; those out of scope are left out",
        "1 queries that came before are left out",
    )
    assert load("clinc150", folders=written(tmp_path, {**SMALL, "test": []})).test is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"val": [["hm", ""]]}, "'' as the intent in entry 1 of val, not a text"),
        ({"val": [["hm", "bill"], [7, "bill"]]}, "7 as the query in entry 2 of val, not a text"),
        ({"val": [["hm"]]}, "expected CLINC150"),
        ({"val": [], "train": [], "test": []}, "has no queries"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, change, message):
    with pytest.raises(UserError, match=message):
        load("clinc150", folders=written(tmp_path, {**SMALL, **change}))


def test_a_missing_file(tmp_path):
    with pytest.raises(UserError, match=r"dataset 'clinc150' not found.*oos-eval"):
        load("clinc150", folders=[tmp_path])


def test_the_real_intents():
    try:
        locate(data_folders(), ["intents/clinc150_data_full.json"], "clinc150", "")
    except UserError:
        pytest.skip("intents/clinc150_data_full.json is not in $DRIFTLINE_DATA or the cache folder")
    data = load("clinc150")
    assert len(data.samples) == 22_495  # of 22,500
    assert len(data.task.classes) == 150
    assert "oos" not in data.task.classes
    assert np.unique(np.bincount(data.samples.y)).tolist() == [149, 150]
    assert data.test.sum() in range(4490, 4501)
