"""The notebooks of examples/ run from top to bottom, without Jupyter: a notebook is JSON, and its cells are code."""

from __future__ import annotations

import json
import linecache
import runpy
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import driftline
from driftline.report.figures import make

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def one_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells run with one seed instead of two or three, to save time."""

    def run(spec: dict[str, Any] | None = None, run: Callable[..., Any] = driftline.run, **more: Any) -> Any:
        return run(spec and {**spec, "seeds": 1}, **more)

    monkeypatch.setattr(driftline, "run", run)


def run_notebook(path: Path) -> dict[str, Any]:
    """Run all code cells as one module, as a kernel does; return its names."""
    module = sys.modules[path.stem] = ModuleType(path.stem)
    cells = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(cells, 1):
        text, name = "".join(cell["source"]), f"<{path.name} cell {number}>"
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        exec(compile(text, name, "exec"), vars(module))
    return vars(module)


def check_author(names: dict[str, Any], printed: str) -> None:
    methods = {run.method.partition("(")[0] for run in names["record"].runs}
    assert methods == {"frozen", "cft", "er", "DerPP"}
    assert all(f"| {name}" in printed for name in ("No update", "Fine-tuning", "ER", "DER++ (ours)"))
    macs = {run.method: run.card.compute.macs for run in names["record"].runs}
    assert macs["frozen"] < macs["cft"] < macs["er"]
    assert macs["cft"] < macs["DerPP"] < 2 * macs["er"]  # the same epochs, two replays each
    equal = {run.method: run.card.compute.macs for run in names["equal"].runs}
    assert equal["frozen"] == macs["frozen"]
    assert max(equal.values()) < 3.3e6 < macs["cft"]
    assert "DER++ (ours)" in set(names["curves"]["method"])
    assert Path("author-curves.svg").read_text(encoding="utf-8").startswith("<svg")


def check_owner(names: dict[str, Any], printed: str) -> None:
    assert "Does the model age? True" in printed
    change = names["change"]
    assert (
        np.datetime64("2024-06-24")
        < change.low
        <= np.datetime64("2024-07-01")
        <= change.high
        < np.datetime64("2024-07-08")
    )
    assert "The relation between inputs and target changed" in str(names["result"])
    assert names["tas"].high < 0.9
    assert "gate failed: tas<0.9 (tas = 0." in printed
    assert names["policy"].retrained_before[1] == "2024-10"  # half of July's labels are known in mid-September
    assert names["policy"].gained.low > 0
    saved = json.loads((names["folder"] / "audit.json").read_text(encoding="utf-8"))
    assert saved["data"]["label_time"] == "known"
    assert saved["gate_values"]["tas"] == names["tas"].value
    assert (names["folder"] / "audit.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    months = names["months"]
    assert months["60 days late"].first_valid_index() == "2024-03"  # 1 January and 60 days is 1 March
    changed = months.loc["2024-07":"2024-08"]
    assert changed["at once"].min() > 0.8 > 0.65 > changed["60 days late"].max()
    assert months.loc["2024-10":].min(axis=None) > 0.8


@pytest.mark.parametrize(("notebook", "check"), [("author", check_author), ("owner", check_owner)])
def test_a_notebook_runs_from_top_to_bottom(
    notebook: str,
    check: Callable[[dict[str, Any], str], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    display = ModuleType("IPython.display")
    display.Markdown = display.SVG = print  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    check(run_notebook(EXAMPLES / f"{notebook}.ipynb"), capsys.readouterr().out)


BENCHMARKS = ["timeline", "seq-to-final", "refinement", "test-time", "open-world"]


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_the_notebook_of_a_benchmark_has_the_outputs_of_its_code(benchmark: str) -> None:
    script = runpy.run_path(str(EXAMPLES.parent / "docs" / "notebooks.py"))
    content = json.loads((EXAMPLES / f"{benchmark}.ipynb").read_text(encoding="utf-8"))
    assert content["metadata"]["driftline"]["code"] == script["code_hash"](content["cells"]), (
        f"run python docs/notebooks.py {benchmark}"
    )
    shown = [one for cell in content["cells"] for one in cell.get("outputs", [])]
    assert {kind for one in shown for kind in one.get("data", {})} == {"text/html", "image/png", "text/plain"}
    assert any(r"\toprule" in "".join(one.get("text", [])) for one in shown)


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_the_notebook_of_a_benchmark_shows_a_table_and_charts(
    benchmark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    charts: list[Any] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(make, "plot", lambda *given, plot=make.plot: charts.append(plot(*given)))
    record = run_notebook(EXAMPLES / f"{benchmark}.ipynb")["record"]
    assert {run.card.run.benchmark for run in record.runs} == {benchmark}
    assert all(run.method in record._repr_html_() for run in record.runs)
    assert r"\toprule" in capsys.readouterr().out
    assert charts
    for chart in charts:
        drawn = str(chart.to_dict())
        assert all(run.method.partition("(")[0] in drawn for run in record.runs), "every method has a mark"
