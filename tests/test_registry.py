from __future__ import annotations

import sys
from pathlib import Path

import pytest

from driftline import registry
from driftline.errors import UserError


def test_what_is_in_a_room_is_found_by_name() -> None:
    assert {"erm", "erm-all", "frozen", "ft"} <= set(registry.names("method"))
    assert registry.names("method") == sorted(registry.names("method"))
    assert registry.get("method", "erm-all")().start == "fresh"


def test_a_wrong_name_gets_the_nearest_right_one() -> None:
    with pytest.raises(UserError, match=r"no method 'forzen'\. Did you mean 'frozen'\?"):
        registry.get("method", "forzen")


def test_two_things_of_one_name_are_refused() -> None:
    registry.get("method", "ft")  # it is registered when it is first asked for
    with pytest.raises(ValueError, match="two methods are called 'ft'"):
        registry.register("method", "ft")(object())


def test_a_file_of_the_users_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from driftline.learners.base import Learner\nclass Mine(Learner):\n    pass\nclass Other:\n    pass\n"
    )
    mine = registry.get("method", f"{file}:Mine")
    assert mine.__name__ == "Mine"
    assert registry.get("method", f"{file}:Mine") is mine
    with pytest.raises(UserError, match=r"is not a driftline\.learners\.base\.Learner"):
        registry.get("method", f"{file}:Other")
    with pytest.raises(UserError, match="has no 'Yours'"):
        registry.get("method", f"{file}:Yours")
    with pytest.raises(UserError, match=r"cannot import .*other\.py"):
        registry.get("method", f"{tmp_path}/other.py:Mine")
    assert registry.get("method", "driftline.learners.ft:FineTune") is registry.get("method", "ft")
    with pytest.raises(UserError, match="cannot import nowhere"):
        registry.get("method", "nowhere:Mine")


DECORATED = """
from driftline.registry import register
@register(
    "method", "{0}")
class Thing: pass
"""
IN_A_LOOP = """
from driftline.registry import register
for name in ("second", "third"):
    register("method", name)(name.upper())
"""


def test_a_name_loads_its_own_file_and_another_the_whole_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room = tmp_path / "little_room"
    room.mkdir()
    lacking = "import torch_of_another_world" + DECORATED.format("fourth")
    files = {"__init__": "", "a": DECORATED.format("first"), "b": IN_A_LOOP, "c": lacking}
    for name, text in files.items():
        (room / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "ROOMS", {"method": "little_room"})
    monkeypatch.setattr(registry, "EXTRAS", {"torch_of_another_world": "worlds"})
    monkeypatch.setattr(registry, "_things", {"method": {}})
    monkeypatch.setattr(registry, "_lacking", {})
    assert registry.get("method", "first").__name__ == "Thing"
    assert {"little_room.b", "little_room.c"}.isdisjoint(sys.modules), "these may take seconds to load"
    assert registry.get("method", "third") == "THIRD"
    assert registry.names("method") == ["first", "second", "third"]
    with pytest.raises(UserError, match=r"no method 'fourth'.*driftline\[worlds\]"):
        registry.get("method", "fourth")


def test_what_is_no_model_is_refused_as_such_whatever_its_annotations() -> None:
    with pytest.raises(UserError, match=r"model 'pandas:read_pickle' is not a .*, nor a function annotated to return"):
        registry.get("model", "pandas:read_pickle")
