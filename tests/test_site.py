"""The documentation site has every page, and its reference names things that exist; `./dev docs` checks the links."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from driftline import lazy

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def hooks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_hooks", ROOT / "docs" / "site_hooks.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def leaves(nav: Any) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    return [leaf for one in (nav.values() if isinstance(nav, dict) else nav) for leaf in leaves(one)]


def test_the_menu_has_every_page_once(hooks: ModuleType) -> None:
    menu = leaves(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"])
    written = [path.name for path in (ROOT / "docs").glob("*.md")]
    assert sorted(menu) == sorted({*written, *hooks.pages()})


def test_the_reference_names_things_that_exist(hooks: ModuleType) -> None:
    assert all(hooks.API.values())
    assert hooks.API
    for names in hooks.API.values():
        for name in names.values():
            module, _, attribute = f"driftline.{name}".rpartition(".")
            assert lazy.load(f"{module}:{attribute}").__doc__, f"{name} has no docstring"


def test_links_of_every_page_lead_to_pages_of_the_site(hooks: ModuleType) -> None:
    written = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")}
    pages = {**written, **hooks.pages()}
    files = {*pages, *(path.name for path in (ROOT / "docs").iterdir())}
    for name, text in pages.items():
        found = {match[2] for match in hooks.LINK.finditer(hooks.site_links(text))}
        assert {target for target in found if not target.startswith("gallery/")} <= files, name


def test_a_notebook_becomes_text_and_code(hooks: ModuleType) -> None:
    text = hooks.notebook(ROOT / "examples" / "timeline.ipynb")
    assert text.startswith("# How long does a model stay good?")
    assert '```python\nrecord.plot("tas")\n```\n\n![Chart](data:image/png;base64,' in text
    assert "(data:image/png;base64," in hooks.site_links(text)
    assert "<table" in text
    assert "\\toprule" in text


def test_pictures_are_listed_and_nothing_is_fetched(
    hooks: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "GALLERY", tmp_path)
    assert hooks.gallery("timeline", "###") == ""
    (tmp_path / "timeline").mkdir()
    (tmp_path / "timeline" / "curves.svg").touch()
    assert "![timeline: curves](gallery/timeline/curves.svg)" in hooks.gallery("timeline", "###")
    assert "## timeline" in hooks.pages()["gallery.md"]
    page = '<script src="https://x.org/a.js"></script><script src="assets/b.js"></script>'
    assert hooks.on_post_page(page) == '<script src="assets/b.js"></script>'
