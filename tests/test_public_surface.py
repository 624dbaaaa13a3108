"""The public names: lazy, complete for type checkers, and the same wherever they come from."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGES = ("driftline", "driftline.learners")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_exists_for_users_type_checkers_and_completion(package: str) -> None:
    module = importlib.import_module(package)
    tree = ast.parse(Path(module.__file__ or "").read_text(encoding="utf-8"))
    checked = [
        node for node in ast.walk(tree) if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    imported = {
        alias.asname or alias.name: f"{found.module}.{alias.name}"
        for node in checked
        for found in node.body
        if isinstance(found, ast.ImportFrom)
        for alias in found.names
    }
    assert set(module.__all__) - {"__version__"} == set(imported)
    assert set(module.__all__) <= set(dir(module))
    for name, path in imported.items():
        source, _, attribute = path.rpartition(".")
        assert getattr(module, name) is getattr(importlib.import_module(source), attribute)


def test_an_unknown_name_is_an_attribute_error() -> None:
    import driftline

    with pytest.raises(AttributeError, match="module 'driftline' has no attribute 'runs'"):
        _ = driftline.runs


def test_names_are_imported_on_first_use_and_bring_no_torch() -> None:
    code = (
        "import sys, driftline, driftline.learners; print('numpy' in sys.modules)\n"
        "from driftline import Answers, Learner, Reveal, Samples, load, register\n"
        "print('torch' in sys.modules)"
    )
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert made.stdout.split() == ["False", "False"]


def test_the_package_is_marked_as_typed() -> None:
    import driftline

    assert Path(driftline.__file__).with_name("py.typed").exists()
