"""Every setting that a user can set says what it means."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

from driftline import registry
from driftline.spec.describe import PARTS, WITH_SETTINGS, Setting, describe
from driftline.spec.meanings import meanings

from .. import settings_page


@dataclass
class First:
    """Two settings."""

    size: int = 3  # number of parts; None: all
    rule: str = "best"
    """how a part is chosen,
    and when."""
    silent: int = 0


@dataclass
class Second(First):
    rule: str = "worst"
    rate: float = 0.5  # share of parts


def make(
    shape: tuple[int, ...],
    *,
    width: int = 8,  # units of a layer
    depth: int = 2,
) -> None:
    """A function."""


def test_meanings_are_comments_and_docstrings_of_a_class_and_its_bases() -> None:
    known = {"size": "Number of parts; null: all", "rule": "How a part is chosen, and when", "rate": "Share of parts"}
    assert meanings(Second) == known
    assert meanings(functools.partial(Second, size=1)) == known
    assert meanings(make) == {"width": "Units of a layer"}
    assert meanings(eval("lambda x: x")) == {}, "no source"


def test_no_registered_setting_lacks_a_meaning() -> None:
    things = [(kind, name) for kind in (*WITH_SETTINGS, "benchmark") for name in registry.index()[kind]]
    found = [describe(kind, name) for kind, name in [*things, *(("part", name) for name in PARTS)]]
    lacking = [f"{thing.name}.{one.name}" for thing in found for one in thing.settings if not one.meaning]
    assert lacking == []
    assert sum(len(thing.settings) for thing in found) > 1100


def test_a_setting_is_described_with_type_default_and_meaning() -> None:
    er = describe("method", "er")
    meaning = "Share of replayed samples from upstream data; the others are earlier errors"
    assert Setting("upstream_fraction", "float >= 0, <= 1", "0.5", meaning) in er.settings
    assert er.paper.startswith('Chaudhry et al., "On Tiny Episodic Memories in Continual Learning", 2019')
    assert describe("dataset", "yearbook").settings[2].default == "false"
    assert describe("part", "reveal").settings[1][:3] == ("budget", "int >= 1 | null", "null")
    assert describe("dataset", "table").settings[0].default == "", "it must be given"
    assert describe("metric", "ttr").paper == registry.get("metric", "ttr").paper


def test_a_file_of_the_users_own_is_described(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        '"""Mine.\n\nMe, "Mine", 2026.\n"""\n'
        "from dataclasses import dataclass\nfrom driftline.learners import Learner\n\n\n"
        '@dataclass\nclass Mine(Learner):\n    """A method."""\n\n    keep: float = 0.5  # share to keep\n'
    )
    thing = describe("method", f"{tmp_path}/mine.py:Mine")
    assert (thing.summary, thing.paper) == ("A method.", 'Me, "Mine", 2026')
    assert thing.settings == (Setting("keep", "float", "0.5", "Share to keep"),)


def test_the_page_of_settings_is_current() -> None:
    """After a change of settings: ./dev index."""
    page = Path(__file__).parents[2] / "docs" / "settings.md"
    assert page.read_text(encoding="utf-8") == settings_page.text()
