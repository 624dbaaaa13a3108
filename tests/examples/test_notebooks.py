"""The notebooks of examples/ run from top to bottom, without Jupyter: a notebook is JSON, and its cells are code."""

from __future__ import annotations

import json
import linecache
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run_notebook(path: Path) -> dict[str, Any]:
    """Run all code cells as one module, as a kernel does; return its names."""
    module = sys.modules[path.stem] = ModuleType(path.stem)
    cells = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(cells, 1):
        text, name = "".join(cell["source"]), f"<{path.name} cell {number}>"
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        exec(compile(text, name, "exec"), vars(module))
    return vars(module)


def test_an_author_compares_a_method_from_a_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names = run_notebook(EXAMPLES / "author.ipynb")
    table = capsys.readouterr().out
    methods = {run.method.partition("(")[0] for run in names["record"].runs}
    assert methods == {"frozen", "cft", "er", "DerPP"}
    assert all(f"| {name}" in table for name in methods)
    macs = {run.method.partition("(")[0]: run.card.compute.macs for run in names["record"].runs}
    assert macs["frozen"] < macs["cft"] < 4 * macs["er"]
    assert macs["DerPP"] < 4 * macs["er"]  # the same updates of the same size
    assert set(names["curves"]["method"]) == {run.method for run in names["record"].runs}
    assert (tmp_path / "author-curves.svg").read_text(encoding="utf-8").startswith("<svg")
