"""Hugging Face datasets: folders that `save_to_disk` writes, Parquet files, and the hub through a stand-in."""

import io
import json
import pickle
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from driftline.data import load
from driftline.data.formats import images
from driftline.errors import UserError

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 12, 10, 3), dtype=np.uint8)
NAMED = {"label": {"names": ["ant", "bee"], "_type": "ClassLabel"}}


def encoded(row):
    content = io.BytesIO()
    Image.fromarray(PIXELS[row]).save(content, "PNG")
    return {"bytes": content.getvalue(), "path": None}


def table(columns, features=NAMED):
    """A table as the package `datasets` writes it: features are in the metadata of the schema."""
    made = pa.table(columns)
    return made.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})


def pets(rows, labels=None):
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    column = pa.array([encoded(row) for row in rows], kind)
    return table(
        {"img": column, "label": pa.array([row % 2 for row in rows] if labels is None else labels, pa.int64())}
    )


def write_stream(path, content, rows_per_batch=2):
    with pa.ipc.new_stream(path, content.schema) as writer:
        writer.write_table(content, rows_per_batch)


def save_to_disk(folder, *tables):
    folder.mkdir(parents=True)
    names = [f"data-{k:05d}-of-{len(tables):05d}.arrow" for k in range(len(tables))]
    for name, content in zip(names, tables, strict=True):
        write_stream(folder / name, content)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names]}))


def save_splits(folder, **splits):
    for name, content in splits.items():
        save_to_disk(folder / name, content)
    (folder / "dataset_dict.json").write_text(json.dumps({"splits": list(splits)}))
    return str(folder)


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A hub with one dataset, `pets`, whose files come to a cache."""

    def load_dataset(path, config):
        if path != "pets":
            raise FileNotFoundError(f"Dataset '{path}' doesn't exist on the Hub")
        splits = {}
        for name, rows in (("train", [0, 1, 2, 3]), ("test", [4, 5])):
            write_stream(tmp_path / f"{name}.arrow", pets(rows))
            splits[name] = SimpleNamespace(cache_files=[{"filename": str(tmp_path / f"{name}.arrow")}])
        return splits

    stub = ModuleType("datasets")
    stub.load_dataset = load_dataset
    monkeypatch.setitem(sys.modules, "datasets", stub)


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / "cache")


def check_pets(data):
    assert data.samples.y.tolist() == [0, 1, 0, 1, 0, 1]
    assert data.test.tolist() == [False] * 4 + [True] * 2
    assert data.task.classes == ("ant", "bee")
    expected = [images.to_square(Image.fromarray(pixels), 8) for pixels in PIXELS]
    np.testing.assert_array_equal(data.samples.x, expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(data.samples.x))[[5, 0]], np.stack(expected)[[5, 0]])


def test_one_dataset_in_every_form(hub, tmp_path):
    saved = save_splits(tmp_path / "saved", train=pets([0, 1, 2, 3]), test=pets([4, 5]))
    (tmp_path / "files" / "data").mkdir(parents=True)
    for name, rows in (("train-00000-of-00002", [0, 1]), ("train-00001-of-00002", [2, 3]), ("test", [4, 5])):
        pq.write_table(pets(rows), tmp_path / "files" / "data" / f"{name}.parquet")
    prints = set()
    for name in ("pets", saved, f"{tmp_path / 'files'}"):
        data = load(f"hf:{name}", {"image": "img", "size": 8})
        check_pets(data)
        prints.add(data.fingerprint)
    assert len(prints) == 1
    assert len(list((tmp_path / "cache" / "arrow").iterdir())) == 3, "one copy of each Parquet file, made once"


def test_a_folder_with_one_split(tmp_path):
    save_to_disk(tmp_path / "one", pets([3, 2]), pets([1]))
    data = load(f"hf:{tmp_path / 'one'}", {"image": "img", "size": 8, "gray": True})
    assert (data.samples.x.shape, data.samples.y.tolist(), data.test) == ((3, 8, 8, 1), [1, 0, 1], None)


def test_an_image_may_be_a_path(tmp_path):
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    column = pa.array([{"bytes": None, "path": f"{k}.png"} for k in range(2)], kind)
    save_to_disk(tmp_path / "one", table({"image": column, "label": [0, 1]}))
    for k in range(2):
        Image.fromarray(PIXELS[k]).save(tmp_path / "one" / f"{k}.png")
    data = load("hf:one", {"size": 12}, [tmp_path])  # a name in the data folder
    np.testing.assert_array_equal(data.samples.x[1], images.to_square(Image.fromarray(PIXELS[1]), 12))
    before = data.fingerprint
    Image.fromarray(PIXELS[2]).save(tmp_path / "one" / "0.png")
    assert load("hf:one", {"size": 12}, [tmp_path]).fingerprint != before


def test_rows_without_a_label_are_left_out(tmp_path):
    unlabelled = pets([4, 5], [-1, -1])
    path = save_splits(tmp_path / "saved", train=pets([0, 1, 2], [0, -1, 1]), test=unlabelled, validation=pets([3, 4]))
    data = load(f"hf:{path}", {"image": "img", "size": 8})
    assert (data.samples.y.tolist(), data.samples.id.tolist()) == ([0, 1, 1, 0], [0, 2, 3, 4])
    assert data.test.tolist() == [False, False, True, True], "the test split has no labels, so validation is taken"
    assert data.notes[-1] == "1 rows without a label are left out"
    np.testing.assert_array_equal(data.samples.x[3], images.to_square(Image.fromarray(PIXELS[4]), 8))


def test_texts(tmp_path):
    columns = {"text": ["a dog", "two", "x"], "topic": ["pets", "numbers", "pets"], "label": [0, 2, -1]}
    (tmp_path / "plain").mkdir()
    pq.write_table(table(columns, {}), tmp_path / "plain" / "train-00000-of-00001.parquet")
    data = load(f"hf:{tmp_path}", {"config": "plain"})
    assert (data.samples.x, data.samples.y.tolist(), data.task.classes) == (["a dog", "two"], [0, 2], ("0", "1", "2"))
    data = load(f"hf:{tmp_path / 'plain' / 'train-00000-of-00001.parquet'}", {"text": "text", "label": "topic"})
    assert (data.samples.x, data.samples.y.tolist()) == (["a dog", "two", "x"], [1, 0, 1])
    assert (data.task.classes, data.model) == (("numbers", "pets"), "hashed-ngrams")


def test_mistakes_are_sentences(hub, monkeypatch, tmp_path):
    with pytest.raises(UserError, match=r"no column of pets 'image'.*options image, text, label"):
        load("hf:pets")
    with pytest.raises(UserError, match="cannot read cows: Dataset 'cows' doesn't exist"):
        load("hf:cows")
    with pytest.raises(UserError, match=r"there is no file or folder \./cows\.parquet"):
        load("hf", {"path": "./cows.parquet"})
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(UserError, match=r'needs an optional package: pip install "driftline\[hf\]"'):
        load("hf:pets")
    monkeypatch.delitem(sys.modules, "datasets")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "datasets.py").write_text("import absent_inner")
    with pytest.raises(UserError, match="needs datasets, which is installed but needs absent_inner"):
        load("hf:pets")
    with pytest.raises(UserError, match=r"there is no file or folder \./nowhere"):
        load("hf:./nowhere")
    path = save_splits(tmp_path / "saved", train=pets([0]), other=pets([1]))
    (tmp_path / "saved" / "dataset_dict.json").write_text('{"splits": ["other", "more"]}')
    with pytest.raises(UserError, match=r"saved: expected a Hugging Face dataset.*state\.json"):
        load(f"hf:{path}")
    (tmp_path / "saved" / "dataset_dict.json").write_text('{"splits": ["../secret"]}')
    with pytest.raises(UserError, match=r"the name '\.\./secret', which is not of a file in the folder"):
        load(f"hf:{path}")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"neither dataset_dict\.json, state\.json nor a Parquet file"):
        load(f"hf:{tmp_path / 'empty'}")
    (tmp_path / "empty" / "train.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(UserError, match=r"train\.parquet: expected a Hugging Face dataset"):
        load(f"hf:{tmp_path / 'empty'}")


def test_a_dataset_without_files_and_one_with_two_configurations_are_refused(tmp_path):
    for file, content in (("dataset_dict.json", '{"splits": []}'), ("state.json", '{"_data_files": []}')):
        (tmp_path / file).write_text(content)
        with pytest.raises(UserError, match="but found: no file with data"):
            load(f"hf:{tmp_path}")
        (tmp_path / file).unlink()
    for name, text in (("de", "ein Hund"), ("en", "a dog")):
        (tmp_path / name).mkdir()
        columns = {"text": [text, "x"], "label": [0, 1], "raw": [b"a" * 500] * 2}
        pq.write_table(table(columns), tmp_path / name / "train-00000-of-00001.parquet")
    with pytest.raises(UserError, match=r"the split train in each of de, en: choose one with --set data\.config"):
        load(f"hf:{tmp_path}")
    assert load(f"hf:{tmp_path}", {"config": "de"}).samples.x == ["ein Hund", "x"]
    with pytest.raises(UserError, match=r"expected texts in the column raw, but found b'a+… in row 0"):
        load(f"hf:{tmp_path}", {"config": "de", "text": "raw"})


@pytest.mark.parametrize("at", [0.3, 0.6, 0.9])
def test_a_damaged_file_is_named(tmp_path, at):
    save_to_disk(tmp_path / "one", pets([0, 1, 2, 3]))
    file = tmp_path / "one" / "data-00000-of-00001.arrow"
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * at)])
    with pytest.raises(UserError, match=r"cannot read .*one"):
        np.asarray(load(f"hf:{tmp_path / 'one'}", {"image": "img", "size": 8}).samples.x)
