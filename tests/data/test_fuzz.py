"""Damaged files are refused in a sentence or read; no reader ends in another exception."""

import gzip
import io
import json
import pickle
import random

import numpy as np
import pandas as pd
import pytest

from driftline import spec
from driftline.data import load, webdataset
from driftline.errors import UserError
from driftline.spec.keys import run_key

RANDOM = np.random.default_rng(0)
TOKENS = (
    b"null",
    b"-1",
    b"1e999",
    b"[]",
    b"{}",
    b'""',
    b'"\\ud800"',
    b"9" * 30,
    b"\x00",
    b"\xff",
    b"[[[[",
    b"2020-13-45",
)
RECIPE = b"""benchmark: timeline
data: {name: digits, periods: 5}
methods: [erm, {name: ft, lr: 0.001}]
seeds: 2
reveal: {delay: 1, missing: 0.1}
selection: {grid: {lr: [0.001, 0.01]}, rule: oracle, seeds: [0, 1]}
"""


def npz() -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, x=RANDOM.integers(0, 256, (6, 8, 8), dtype=np.uint8), y=np.arange(6) % 3)
    return file.getvalue()


def portraits() -> bytes:
    part = {"images": RANDOM.integers(0, 256, (3, 32, 32), dtype=np.uint8), "labels": np.arange(3) % 2}
    return pickle.dumps({1990: {0: part, 1: part}}, 2)


def frame() -> pd.DataFrame:
    days = [f"2020-01-{day:02d}" for day in range(1, 29)]
    return pd.DataFrame({"when": days, "y": np.arange(28) % 2, "x": np.arange(28) / 2, "c": ["a", "b"] * 14})


def parquet() -> bytes:
    file = io.BytesIO()
    frame().to_parquet(file)
    return file.getvalue()


def questions() -> bytes:
    lines = [{"question": f"q {k}", "context": "c", "answers": ["c"], "split": "train"} for k in range(4)]
    return b"\n".join(json.dumps(line).encode() for line in lines)


def shard(tmp_path) -> bytes:
    images = RANDOM.integers(0, 256, (3, 8, 8, 3), dtype=np.uint8)
    webdataset.write_shard(tmp_path / "s.tar", [(k, image, k % 2, "") for k, image in enumerate(images)], "png")
    return (tmp_path / "s.tar").read_bytes()


def damaged(raw: bytes, random: random.Random) -> bytes:
    """A few bytes changed, left out, repeated or replaced by a token."""
    content = bytearray(raw)
    for _ in range(random.choice((1, 1, 2, 8))):
        at = random.randrange(len(content) or 1)
        way = random.randrange(4)
        if way == 0 and content:
            content[at] ^= 1 << random.randrange(8)
        elif way == 1:
            del content[at : at + random.choice((1, 8, 64, 10**6))]
        elif way == 2:
            content[at:at] = content[at : at + 32]
        else:
            content[at : at + random.choice((0, 1, 4))] = random.choice(TOKENS)
    return bytes(content)


@pytest.mark.parametrize(
    ("dataset", "name", "options"),
    [
        ("npz", "m.npz", {"path": "m.npz"}),
        ("yearbook", "yearbook.pkl", {}),
        ("table", "t.csv", {"path": "t.csv", "time": "when", "target": "y"}),
        ("table", "t.csv.gz", {"path": "t.csv.gz", "time": "when", "target": "y"}),
        ("table", "t.parquet", {"path": "t.parquet", "time": "when", "target": "y"}),
        ("qa", "q.jsonl", {"files": ["q.jsonl"]}),
        ("webdataset", "s/serial_00000.tar", {"path": "s"}),
        ("", "recipe.yaml", {}),
    ],
)
def test_damaged_files_are_read_or_refused_in_a_sentence(tmp_path, dataset, name, options):
    csv = frame().to_csv(index=False).encode()
    whole = {
        "m.npz": npz,
        "yearbook.pkl": portraits,
        "t.csv": lambda: csv,
        "t.csv.gz": lambda: csv,
        "t.parquet": parquet,
        "q.jsonl": questions,
        "s/serial_00000.tar": lambda: shard(tmp_path),
        "recipe.yaml": lambda: RECIPE,
    }[name]()
    file = tmp_path / "data" / name
    file.parent.mkdir(parents=True)
    dice, refused = random.Random(name), 0
    for k in range(60):
        raw = damaged(whole, dice) if k else whole
        file.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
        try:
            if dataset:
                assert load(dataset, options, [tmp_path / "data"]).fingerprint
            else:
                assert [run_key(job, "data") for job in spec.read(file).jobs("mlp")[:2]]
        except UserError:
            refused += 1
            assert k, "the whole file must be read"
    assert 0 < refused < 60
