"""What the documents show must work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import driftline

ROOT = Path(__file__).parent.parent


def test_the_method_in_architecture_runs_beside_built_in_ones(tmp_path: Path) -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    (source,) = re.findall(r"```python\n(\"\"\"Forget slowly.*?)```", text, flags=re.DOTALL)
    file = tmp_path / "half_way.py"
    file.write_text(source.replace('@register("method", "half-way")\n', ""))
    spec = {
        "benchmark": "timeline",
        "data": {"name": "digits", "periods": 4},
        "model": "linear",
        "methods": [{"name": "ft", "lr": 0.01}, {"name": f"{file}:HalfWay", "lr": 0.01, "keep": 0.0}],
        "timeline": {"draws": 10},
    }
    ft, half_way = driftline.run(spec, runs=tmp_path / "runs").runs
    assert ft.table("probes")["prediction"].equals(half_way.table("probes")["prediction"]), "keeping nothing is ft"


def test_the_readme_names_commands_that_exist() -> None:
    from typer.main import get_command

    from driftline.cli.main import app

    known = set(get_command(app).commands)  # type: ignore[attr-defined]
    text = (ROOT / "README.md").read_text() + (ROOT / "docs" / "timeline.md").read_text()
    used = set(re.findall(r"^\s*(?:\$ )?driftline ([a-z]+)", text, flags=re.MULTILINE))
    assert used <= known, f"{used - known} are in the documents, not in the command line"


@pytest.mark.parametrize("name", ["README.md", "ARCHITECTURE.md", "docs/timeline.md", "docs/extending.md"])
def test_files_that_documents_point_to_exist(name: str) -> None:
    text = (ROOT / name).read_text()
    for path in re.findall(r"\]\(((?!https?:)[^)#]+)\)", text):
        assert ((ROOT / name).parent / path).exists(), path
