from __future__ import annotations

import os
import pickle
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save as to_safetensors
from torch import nn

from driftline.errors import DamagedFile
from driftline.io import serialization
from driftline.seeds import Seed
from driftline.testing import digest

LEAVES = {
    "nothing": None,
    "numbers": [True, False, 0, -1, 2**80, 1.5, float("inf")],
    "texts": ["", "ä", "$array", '"\n'],
    "tuple": (1, (2, [3, ()]), {}),
    "dict": {0: "int", "0": "text", None: 1, (1, 2): 3, "$dict": {"$tensor": "x"}},
    "empty": np.empty((0, 3), np.float32),
    "zero-d": np.array(3.5),
    "bools": np.array([True, False]),
    "fortran": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "strided": np.arange(10)[::3],
    "bytes": np.arange(5, dtype=np.uint8),
    "strings": np.array([["a", "bcd"], ["", "é"]]),
    "objects": np.array(["a", "long text"], dtype=object),
    "no strings": np.empty((0, 2), dtype=object),
}


def round_trip(tree: Any, folder: Path) -> Any:
    serialization.save(tree, folder / "state")
    return serialization.load(folder / "state")


@pytest.mark.parametrize("name", LEAVES)
def test_every_leaf_comes_back_as_it_was(name: str, tmp_path: Path) -> None:
    tree = LEAVES[name]
    back = round_trip({"x": tree}, tmp_path)["x"]
    assert type(back) is type(tree)
    if isinstance(tree, np.ndarray):
        assert (back.dtype, back.shape, back.tolist()) == (tree.dtype, tree.shape, tree.tolist())
        assert back.flags.writeable
    else:
        assert back == tree


@pytest.mark.parametrize(
    "tensor",
    [torch.tensor(2.5), torch.tensor(True), torch.empty(0, 2), torch.arange(6).reshape(2, 3).t(), torch.ones(2).half()],
)
def test_tensors_come_back_as_tensors(tensor: torch.Tensor, tmp_path: Path) -> None:
    back = round_trip([tensor], tmp_path)[0]
    assert (back.dtype, back.shape) == (tensor.dtype, tensor.shape)
    assert torch.equal(back, tensor)
    back += 0 if back.dtype != torch.bool else False


def test_channels_last_weights_keep_their_order(tmp_path: Path) -> None:
    weight = torch.arange(48.0).reshape(2, 2, 3, 4).contiguous(memory_format=torch.channels_last)
    assert torch.equal(round_trip(weight, tmp_path), weight)


class Thing:
    """Holds one of everything that has state."""

    transient = frozenset({"not_saved"})

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.network = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
        self.optimiser = torch.optim.Adam(self.network.parameters(), lr=0.1)
        self.numpy, self.torch = Seed(1).numpy(), Seed(1).torch()
        self.twister = np.random.Generator(np.random.MT19937(3))
        self.several = [nn.Linear(1, 1), nn.Linear(1, 1)]
        self.by_name = {"a": Seed(2).torch(), "b": 3}
        self.seed = Seed(5)
        self.count = np.int64(0)
        self.not_saved = object()
        self._private = 4

    def move(self) -> list[float]:
        x = torch.rand(8, 3, generator=self.torch)
        self.optimiser.zero_grad()
        self.network(x).square().sum().backward()
        self.optimiser.step()
        self.count += 1
        for layer in self.several:
            layer.weight.data += torch.rand(1, 1, generator=self.by_name["a"])
        return [
            self.numpy.random(),
            self.twister.random(),
            self.several[1].weight.item(),
            self.network[0].weight[0, 0].item(),
        ]


def test_objects_go_on_where_they_were_saved(tmp_path: Path) -> None:
    with torch.random.fork_rng():
        thing, fresh = Thing(), Thing()
    for _ in range(3):
        thing.move()
    saved = round_trip(serialization.public_attributes(thing), tmp_path)
    assert set(saved["optimiser"]["state"]) == {0, 1, 2, 3}
    assert "seed" not in saved
    assert "not_saved" not in saved
    assert saved["_private"] == 4, "an underscore says private, not unsaved"
    serialization.restore_attributes(fresh, saved)
    assert digest(serialization.public_attributes(fresh)) == digest(serialization.public_attributes(thing))
    assert [fresh.move() for _ in range(3)] == [thing.move() for _ in range(3)]
    assert digest(serialization.public_attributes(fresh)) == digest(serialization.public_attributes(thing))


def test_what_cannot_be_saved_is_named(tmp_path: Path) -> None:
    thing = Thing()
    thing.strange = object()
    with pytest.raises(TypeError, match=r"Thing\.strange: cannot save a object"):
        serialization.public_attributes(thing)
    for tree in (object(), {"a": [object()]}, np.array([None, "a"]), np.array([b"x", 1], dtype=object)):
        with pytest.raises(TypeError, match="cannot save"):
            serialization.save(tree, tmp_path / "state")
    assert not (tmp_path / "state").exists()


class Bomb:
    def __reduce__(self) -> Any:
        return os.mkdir, ("exploded",)


def test_hostile_and_broken_files_raise_and_run_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "state"
    serialization.save({"x": np.arange(100), "t": torch.zeros(3)}, path)
    whole = path.read_bytes()
    torch.save({"x": Bomb()}, tmp_path / "torch")
    bad = [whole[:n] for n in (0, 1, 7, 8, 50, len(whole) // 2, len(whole) - 1)]
    bad += [pickle.dumps(Bomb()), (tmp_path / "torch").read_bytes(), b"\xff" * 64, whole[8:]]
    for content in bad:
        path.write_bytes(content)
        with pytest.raises(DamagedFile, match="it cannot be read"):
            serialization.load(path)
    assert not (tmp_path / "exploded").exists()


def test_a_pipe_a_folder_and_a_missing_file_are_damage(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    Thread(target=(tmp_path / "pipe").write_bytes, args=(b"1",), daemon=True).start()  # waits for a reader
    for read in (serialization.load, serialization.load_metadata, serialization.verify):
        for name, reason in (("pipe", "it is not a file"), (".", "it is not a file"), ("none", "it is missing")):
            with pytest.raises(DamagedFile, match=reason):
                read(tmp_path / name)
    assert (tmp_path / "pipe").read_bytes() == b"1", "nothing read the pipe before"


@pytest.mark.parametrize("metadata", [None, {"other": ""}, {"tree": "{}"}], ids=["none", "no tree", "no checksums"])
def test_a_file_with_whole_arrays_and_a_broken_tree_is_damaged(tmp_path: Path, metadata: dict[str, str] | None) -> None:
    path = tmp_path / "state"
    path.write_bytes(to_safetensors({"0": np.arange(3)}, metadata=metadata))
    assert not serialization.is_complete(path)
    for read in (serialization.load, serialization.load_metadata):
        with pytest.raises(DamagedFile, match="it cannot be read"):
            read(path)


def test_a_changed_plain_value_is_damage_also_where_arrays_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "state"
    serialization.save({"seconds": 1.5, "x": np.arange(3)}, path)
    assert serialization.load_metadata(path) == {"seconds": 1.5, "x": None}
    path.write_bytes(path.read_bytes().replace(b"1.5", b"2.5"))
    for read in (serialization.load, serialization.load_metadata):
        with pytest.raises(DamagedFile, match="its checksum differs"):
            read(path)


def test_equal_trees_give_equal_bytes(tmp_path: Path) -> None:
    tree = {"weights": np.arange(5.0), "ids": np.arange(3), "name": "erm"}
    for k in range(12):
        serialization.save(tree, tmp_path / str(k))
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1
