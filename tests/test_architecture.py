"""The paths in ARCHITECTURE.md exist, and every package has a row there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "driftline"
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return TEXT.split(f"## {title}\n")[1].split("\n## ")[0]


def test_the_answers_to_where_is_exist() -> None:
    paths = re.findall(r"\| `([^`]+)` \|$", section("Where is …?"), flags=re.MULTILINE)
    assert len(paths) >= 12
    assert [path for path in paths if not (PACKAGE / path).exists()] == []


def test_every_package_has_a_row() -> None:
    rows = section("Packages")
    packages = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
    assert len(packages) > 20
    assert [name for name in packages if f"`{name}/`" not in rows] == []


def test_a_method_has_the_path_that_its_name_suggests() -> None:
    from driftline._registry_index import INDEX

    stems = {name: entry[0].rsplit(".", 1)[1] for name, entry in INDEX["method"].items()}
    families = {entry[0].split(".")[2] for entry in INDEX["method"].values()}
    own = [name for name, stem in stems.items() if stem == name.replace("-", "_")]
    assert {"tent", "eata", "ewc", "er", "ncm", "lwf", "a-gem"} <= set(own)
    assert {"test_time", "supervised", "replay", "online", "prototypes", "sequence", "retraining"} <= families
