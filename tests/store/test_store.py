"""Runs are found by their names; search runs only by their keys."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from driftline.errors import UserError
from driftline.io.checksums import write_checked
from driftline.record.card import Card, Component, RunSettings, write_card
from driftline.record.run import RUNTIME
from driftline.store.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store.create(tmp_path)
    for key, purpose in (("aa11", "result"), ("aa22", "search"), ("bb33", "search")):
        settings = RunSettings(method=Component(name="er"), purpose=purpose)
        store.run_folder(key).mkdir(parents=True)
        write_card(store.run_folder(key), Card(key=key, label="er", run=settings))
        write_checked(store.run_folder(key) / RUNTIME, {"finished": datetime.now(UTC).isoformat()})
    return store


@pytest.mark.parametrize(
    ("name", "key"), [("er", "aa11"), ("er:0", "aa11"), ("aa", "aa11"), ("aa22", "aa22"), ("bb", "bb33")]
)
def test_a_run_is_found_by_its_name_or_the_start_of_its_key(store: Store, name: str, key: str) -> None:
    assert store.find(name).key == key


def test_an_unknown_name_is_answered_with_the_results_there_are(store: Store) -> None:
    with pytest.raises(UserError, match=r"no finished run in .* is called 'tent'.*: aa11 \(er:0") as error:
        store.find("tent")
    assert "aa22" not in str(error.value)
