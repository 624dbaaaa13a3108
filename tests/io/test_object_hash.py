"""What changes the hash of an object, and what does not."""

from __future__ import annotations

import linecache
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from torch import nn

from driftline.io.object_hash import CannotHash, ObjectHasher, is_own

CELL = """
from dataclasses import dataclass, field

SCALE = 2.0
UNUSED = 1

def inner(x):
    return SCALE * x

def helper(x):
    return [inner(one) for one in x]

@dataclass
class Method:
    alpha: float = 0.5
    names: list = field(default_factory=list)

    def learn(self, x):
        return helper(x)
"""


def hash_of(thing: object) -> str:
    return ObjectHasher().hash(thing)


def cell(text: str, name: str = "<cell-1>", **names: Any) -> dict[str, Any]:
    """The names of a notebook cell; as IPython does, its text is in linecache."""
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    module: dict[str, Any] = {"__name__": "__main__", **names}
    exec(compile(text, name, "exec"), module)
    return module


def test_a_class_is_hashed_with_what_it_uses_in_its_module() -> None:
    first = hash_of(cell(CELL)["Method"])
    assert hash_of(cell(CELL, "<cell-2>")["Method"]) == first
    assert hash_of(cell(CELL.replace("UNUSED = 1", "UNUSED = 2"), "<cell-3>")["Method"]) == first
    for old, new in (
        ("SCALE * x", "SCALE + x"),
        ("SCALE = 2.0", "SCALE = 3.0"),
        ("return helper(x)", "return helper(2 * x)"),
        ("alpha: float = 0.5", "alpha: float = 0.6"),
        ("default_factory=list", "default_factory=dict"),
    ):
        assert hash_of(cell(CELL.replace(old, new), f"<cell {new}>")["Method"]) != first


def test_the_hash_is_of_what_runs_even_if_its_file_was_edited_since(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text("def double(x):\n    return 2 * x\n", encoding="utf-8")
    module = ModuleType("own")
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), vars(module))
    path.write_text("def double(x):\n    return 3 * x\n", encoding="utf-8")
    stale = hash_of(module.double)
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), vars(module))
    assert hash_of(module.double) != stale


def test_a_function_without_source_has_no_hash() -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    exec("def double(x):\n    return 2 * x", names)
    with pytest.raises(CannotHash, match="the source of double cannot be had"):
        hash_of(names["double"])
    with pytest.raises(CannotHash, match="a generator has no content"):
        hash_of(one for one in ())


def counter(start: int) -> Any:
    return lambda x: x + start


class Base:
    @property
    def one(self) -> int:
        return 1

    @cached_property
    def two(self) -> int:
        return 2

    @classmethod
    def make(cls) -> Base:
        return cls()


@dataclass(frozen=True)
class Point(Base):
    x: float = 0.0


def decorated(text: str) -> Any:
    return cell(f"import functools, torch\n{text}", f"<cell {text}>")["compute"]


@pytest.mark.parametrize("decorator", ["torch.no_grad()", "functools.lru_cache", "functools.lru_cache(3)"])
def test_a_decorated_function_is_hashed_with_what_it_wraps(decorator: str) -> None:
    one, again, two = (decorated(f"@{decorator}\ndef compute(x):\n    return x + {n}\n") for n in (1, 1, 2))
    assert hash_of(one) == hash_of(again) != hash_of(two)


def test_closures_members_and_instances_count() -> None:
    assert hash_of(counter(1)) == hash_of(counter(1)) != hash_of(counter(2))
    assert hash_of(partial(counter, 1)) != hash_of(partial(counter, 2))
    assert hash_of(Point(1.0)) == hash_of(Point(1.0)) != hash_of(Point(2.0))
    assert hash_of(Point) != hash_of(Base)
    assert hash_of({"a", "b", "c"}) == hash_of({"c", "b", "a"})
    cycle: list[Any] = [1]
    cycle.append(cycle)
    assert hash_of(cycle) != hash_of([1])


def test_arrays_tables_networks_and_estimators_count_by_content() -> None:
    rows = np.arange(6.0).reshape(3, 2)
    assert hash_of(rows) == hash_of(np.asfortranarray(rows)) != hash_of(rows.astype(np.float32))
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", None]})
    assert hash_of(frame) == hash_of(frame.copy()) != hash_of(frame.rename(columns={"a": "c"}))
    assert hash_of(frame) != hash_of(frame.assign(a=[1, 3]))
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    first = hash_of(net)
    with torch.no_grad():
        next(net.parameters())[0, 0] += 1
    assert hash_of(net) != first
    assert hash_of(make_pipeline(LogisticRegression(C=2))) == hash_of(make_pipeline(LogisticRegression(C=2)))
    assert hash_of(LogisticRegression(C=2)) != hash_of(LogisticRegression(C=3))


def test_installed_code_is_not_the_users_own() -> None:
    assert [is_own(name) for name in ("torch.nn", "json", "driftline.types", None)] == [False] * 4
    assert is_own(__name__)
    assert is_own("__main__")
