"""Orders that are given as files: the formats, what they may say, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from driftline.data import Dataset
from driftline.errors import UserError
from driftline.streams.order_file import read_order
from driftline.tasks import Classification
from driftline.types import Samples

IDS = np.array(["a/1.png", "a/2.png", "b/1.png", "b/2.png"])
DATA = Dataset("four", Samples(list("wxyz"), np.array([0, 0, 1, 1]), id=IDS), Classification(("a", "b")))
NAMES, PLACES = [IDS[3], IDS[0], IDS[3]], [3, 0, 3]
RECORDS = [{"input": f" {text}", "truth": ["a"], "id": "mrqa_nq-dev-1"} for text in "wxyz"]


def write(path: Path, content: object) -> str:
    if path.suffix == ".npy":
        np.save(path, np.asarray(content))
    elif isinstance(content, pd.DataFrame):
        content.to_parquet(path) if path.suffix == ".parquet" else content.to_csv(path, index=False)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("order.csv", pd.DataFrame({"id": NAMES})),
        ("order.csv.gz", pd.DataFrame({"row": PLACES})),
        ("order.parquet", pd.DataFrame({"row": PLACES})),
        ("order.txt", "\n".join(NAMES) + "\n\n"),
        ("ids.npy", NAMES),
        ("objects.npy", np.array(NAMES, dtype=object)),
        ("rows.npy", PLACES),
        ("stream.json", [[RECORDS[3], RECORDS[0]], [RECORDS[3]]]),
    ],
)
def test_every_format_gives_the_same_rows(tmp_path: Path, name: str, content: object) -> None:
    order = read_order(write(tmp_path / name, content), DATA, ("step",))
    assert (order.rows.tolist(), order.listed.tolist(), order.upstream) == (PLACES, [0, 3], None)
    assert [one.tolist() for one in order.steps(2)] == [[0, 1], [2]]


def test_a_file_may_mark_steps_and_upstream_samples(tmp_path: Path) -> None:
    frame = pd.DataFrame({"row": [3, 1, 0], "step": [4, 9, 9], "split": ["stream", "upstream", "stream"]})
    order = read_order(write(tmp_path / "order.csv", frame), DATA, ("step", "split"))
    assert order.upstream is not None
    assert (order.rows.tolist(), order.upstream.tolist(), order.listed.tolist()) == ([3, 0], [1], [0, 1, 3])
    assert [one.tolist() for one in order.steps(5)] == [[0], [1]]


def test_a_missing_cell_is_an_empty_text(tmp_path: Path) -> None:
    path = write(tmp_path / "order.parquet", pd.DataFrame({"row": [1, 2], "corruption": [None, "fog"]}))
    assert read_order(path, DATA, ("corruption",)).columns["corruption"].tolist() == ["", "fog"]


def test_a_stream_of_a_released_list_is_chosen_by_its_number(tmp_path: Path) -> None:
    path = write(tmp_path / "streams-val.json", [[[RECORDS[1]], [RECORDS[0]]], [[RECORDS[2], RECORDS[2]]]])
    assert [read_order(path, DATA, ("step",), number=k).rows.tolist() for k in (0, 1)] == [[1, 0], [2, 2]]
    assert read_order(path, DATA, ("step",), number=1).listed.tolist() == [0, 1, 2]
    assert [read_order(path, DATA, ("step",), number=k).number for k in (1, 2)] == [1, 0]


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.csv", pd.DataFrame({"id": ["c/1.png"]}), "the id 'c/1.png' in entry 1 is not in dataset 'four'"),
        ("a.csv", pd.DataFrame({"row": [0, 4]}), "the row 4 in entry 2 is not from 0 to 3"),
        ("a.csv", pd.DataFrame({"row": ["inf"]}), "the row inf in entry 1 is not from 0 to 3"),
        ("a.csv", pd.DataFrame({"row": ["x"]}), "the row x in entry 1 is not from 0 to 3"),
        ("a.npy", [0.5], "the id '0.5' in entry 1 is not in dataset"),
        ("a.npy", [[0], [1]], "an array of ids or of row numbers, but found: an array of 2 dimensions"),
        ("a.csv", pd.DataFrame({"name": [1]}), "needs one column that names the samples"),
        (
            "a.csv",
            pd.DataFrame({"row": [1], "sevrity": [1]}),
            "and this benchmark reads only id, row, split, step",
        ),
        ("a.csv", pd.DataFrame({"row": [1], "split": ["test"]}), "the split 'test' is neither stream nor upstream"),
        ("a.csv", pd.DataFrame({"row": [1], "split": ["upstream"]}), "has no sample in its stream"),
        ("a.csv", pd.DataFrame({"row": [1, 1], "split": ["upstream", "stream"]}), "row 1 .* both upstream and in"),
        ("a.csv", pd.DataFrame({"row": []}), "lists no sample"),
        ("a.csv", "row\n1,2\n3,0\n", "a table with the columns id or row, but found: Length of header"),
        ("a.txt", "a/1.png\na/1.png", "row 0 of the data comes 2 times; only once is allowed"),
        ("a.xls", "x", "expected a file whose name ends in .csv, .csv.gz"),
        ("a.json", [[{**RECORDS[0], "input": "v"}]], "the input 'v' in entry 1 is not in dataset 'four'"),
        ("a.json", [1], "expected a JSON list of time steps"),
    ],
)
def test_what_is_wrong_with_an_order_is_said(tmp_path: Path, name: str, content: object, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        read_order(write(tmp_path / name, content), DATA, ("split", "step"), repeats=False)


def test_a_transformation_of_a_listed_sample_is_neither_unlisted_nor_upstream(tmp_path: Path) -> None:
    data = replace(DATA, base=np.array([0, 1, 0, 2]))
    order = read_order(write(tmp_path / "order.npy", [2]), data)
    assert (order.listed.tolist(), order.unlisted.tolist()) == ([2], [1, 3])
    marked = pd.DataFrame({"row": [2, 3, 0], "split": ["stream", "upstream", "upstream"]})
    with pytest.raises(UserError, match="row 0 of the data is upstream, and a transformation of it in the stream"):
        read_order(write(tmp_path / "marked.csv", marked), data, ("split",))


def test_steps_ascend_and_are_numbers(tmp_path: Path) -> None:
    falling, text = (
        write(tmp_path / f"{k}.csv", pd.DataFrame({"row": [0, 1], "step": k})) for k in ([2, 1], ["1", "x"])
    )
    with pytest.raises(UserError, match="the steps are not in ascending order"):
        read_order(falling, DATA, ("step",)).steps(1)
    with pytest.raises(UserError, match="the step 'x' is not a number"):
        read_order(text, DATA, ("step",)).steps(1)
    with pytest.raises(UserError, match=r"there is no file nowhere\.csv"):
        read_order("nowhere.csv", DATA)


def test_code_in_an_array_of_objects_is_not_run(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return print, ("run",)

    path = tmp_path / "evil.npy"
    np.save(path, np.array([Evil()], dtype=object), allow_pickle=True)
    with pytest.raises(UserError, match="do not trust this file"):
        read_order(str(path), DATA)
