from __future__ import annotations

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
    with pytest.raises(ValueError, match="two methods are called 'ft'"):
        registry.register("method", "ft")(object())


def test_a_file_of_the_users_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("class Mine:\n    pass\n")
    mine = registry.get("method", f"{file}:Mine")
    assert mine.__name__ == "Mine"
    assert registry.get("method", f"{file}:Mine") is mine
    with pytest.raises(UserError, match="has no 'Yours'"):
        registry.get("method", f"{file}:Yours")
    with pytest.raises(UserError, match=r"cannot import .*other\.py"):
        registry.get("method", f"{tmp_path}/other.py:Mine")
    assert registry.get("method", "driftline.learners.ft:FineTune") is registry.get("method", "ft")
    with pytest.raises(UserError, match="cannot import nowhere"):
        registry.get("method", "nowhere:Mine")
