"""Execute the notebooks of the benchmarks and store what their cells show: `python docs/notebooks.py [BENCHMARK ...]`.

It needs no Jupyter. A cell's output is what it prints, and its last expression: HTML for a record and a table, PNG for
a chart. The hash of the code is stored beside it, so that a test finds outputs of other code.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import hashlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

import altair as alt
import vl_convert

from driftline import registry

EXAMPLES = Path(__file__).parent.parent / "examples"
Cell = dict[str, Any]


def code_hash(cells: list[Cell]) -> str:
    """Return the hash of a notebook's code."""
    code = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    return hashlib.sha256(code.encode()).hexdigest()[:16]


def execute(path: Path) -> None:
    """Run all cells in an empty folder and store their outputs."""
    content = json.loads(path.read_text(encoding="utf-8"))
    module = sys.modules[path.stem] = ModuleType(path.stem)
    cells = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for number, cell in enumerate(cells, 1):
            cell["execution_count"] = number
            cell["outputs"] = outputs("".join(cell["source"]), vars(module), number)
    content["metadata"]["driftline"] = {"code": code_hash(content["cells"])}
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def outputs(source: str, names: dict[str, Any], number: int) -> list[Cell]:
    """Run a cell; return what it prints and shows."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, shown = io.StringIO(), []
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        exec(compile(tree, f"cell {number}", "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
            shown = [] if value is None else [bundle(value)]
    text = printed.getvalue()
    stream = [{"output_type": "stream", "name": "stdout", "text": text.splitlines(keepends=True)}] if text else []
    found = [{"output_type": "execute_result", "execution_count": number, "metadata": {}, "data": one} for one in shown]
    return [*stream, *found]


def bundle(value: Any) -> dict[str, Any]:
    """Return a value as a notebook stores it."""
    if isinstance(value, alt.TopLevelMixin):
        picture = vl_convert.vegalite_to_png(value.to_dict(), scale=1.5)
        return {"image/png": base64.b64encode(picture).decode(), "text/plain": ["a chart"]}
    if hasattr(value, "_repr_html_"):
        return {"text/html": value._repr_html_().splitlines(keepends=True), "text/plain": [repr(value)[:200]]}
    return {"text/plain": repr(value).splitlines(keepends=True)}


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for name in sys.argv[1:] or registry.names("benchmark"):
        execute(EXAMPLES / f"{name}.ipynb")
        print(f"{name}: {(EXAMPLES / f'{name}.ipynb').stat().st_size:,} bytes")
