"""Images in a given order: the pixels are those of the corruption named, whatever the batch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from driftline.corruptions import corrupt
from driftline.data import Dataset
from driftline.errors import UserError
from driftline.seeds import Seed
from driftline.streams import OrderedImages, ordered_images
from driftline.streams.test_time.stream import image_keys
from driftline.tasks import Classification
from driftline.testing import check_stream
from driftline.types import Samples

X = np.random.default_rng(0).integers(0, 256, (6, 32, 32, 3), dtype=np.uint8)
DATA = Dataset("six", Samples(X, np.arange(6) % 2, id=np.array(list("abcdef"))), Classification(("0", "1")))
ORDER = pd.DataFrame({"id": list("fafbc"), "corruption": ["contrast", "", "saturate", "clean", "contrast"]})


def made(folder: Path, frame: pd.DataFrame = ORDER, dataset: Dataset = DATA, **settings: object) -> OrderedImages:
    frame.to_csv(folder / "order.csv", index=False)
    return ordered_images(dataset, str(folder / "order.csv"), seed=Seed(3), **settings)  # type: ignore[arg-type]


def test_each_image_has_the_corruption_of_its_row(tmp_path: Path) -> None:
    stream = made(tmp_path, ORDER.assign(severity=[2, 5, 1.5, 4, 5]), batch=2)
    samples = Samples.concat([stream[k].samples for k in range(3)])
    keys = image_keys(Seed(3).child("noise"), np.arange(5))
    wanted = [
        *(corrupt(X[5:6], "contrast", 2.0, keys[:1]), X[:1], corrupt(X[5:6], "saturate", 1.5, keys[2:3])),
        *(X[1:2], corrupt(X[2:3], "contrast", 5.0, keys[4:])),
    ]
    np.testing.assert_array_equal(samples.x, np.concatenate(wanted))
    assert samples.y.tolist() == [1, 0, 1, 1, 0]
    assert [stream[k].time for k in range(3)] == ["contrast 2", "saturate 1.5", "contrast 5"]
    counts = {"contrast 2": 1, "clean": 2, "saturate 1.5": 1, "contrast 5": 1}
    assert (stream.protocol["corruptions"], stream.protocol["source_images"]) == (counts, 4)
    check_stream(stream)


def test_the_severity_is_the_given_one_where_the_file_has_none_and_images_alone_are_clean(tmp_path: Path) -> None:
    stream = made(tmp_path, severity=3.0)
    assert [str(point) for point in stream.schedule.points] == ["contrast 3", "clean", "saturate 3"]
    stream = made(tmp_path, ORDER.assign(severity=["", "", "1", "", 2]), severity=3.0)
    assert [str(point) for point in stream.schedule.points] == ["contrast 3", "clean", "saturate 1", "contrast 2"]
    clean = made(tmp_path, ORDER[["id"]])
    np.testing.assert_array_equal(clean[0].samples.x, X[[5, 0, 5, 1, 2]])


def test_what_cannot_be_shown_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="corruption 'smoke'"):
        made(tmp_path, ORDER.replace("saturate", "smoke"))
    with pytest.raises(UserError, match="a severity is not from 0 to 5"):
        made(tmp_path, ORDER.assign(severity=6))
    with pytest.raises(UserError, match=r"order\.csv has a column 'severity' but no column 'corruption'"):
        made(tmp_path, ORDER[["id"]].assign(severity=3))
    with pytest.raises(UserError, match="the severity 'high' is not a number"):
        made(tmp_path, ORDER.assign(severity="high"))
    with pytest.raises(UserError, match="the image a is one to train on, not of the test set"):
        made(tmp_path, dataset=replace(DATA, test=np.array([False, *[True] * 5])))
