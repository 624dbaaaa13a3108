"""Commands work where the system's encoding is not UTF-8."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

RECIPE = """
# Größe, 時間, τ → ∞
benchmark: timeline
data: {name: table, path: ware.csv, time: jahr, target: größe}
model: logistic-regression
methods: [erm, "mine.py:Naïve"]
timeline: {period: each, resamples: 10}
"""
METHOD = '''
"""Ein Verfahren für Größen: τ."""
from dataclasses import dataclass
from driftline.learners.supervised.erm import ERM

@dataclass
class Naïve(ERM):
    """ERM, naïvely."""
'''


COMMANDS = """
import sys
import vl_convert
from driftline.cli.main import main

vl_convert.javascript_bundle = lambda *given: ""  # takes seconds, and has no letters of ours
for command in {commands}:
    sys.argv = ["driftline", *command.split()]
    try:
        main()
    except SystemExit as end:
        assert not end.code, command
"""


def driftline(folder: Path, *commands: str) -> subprocess.CompletedProcess[bytes]:
    """Run commands in a process with ASCII as the encoding of files, arguments and output."""
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    environment.pop("PYTHONIOENCODING", None)
    python = [sys.executable, "-c", COMMANDS.format(commands=commands)]
    return subprocess.run(python, cwd=folder, env=environment, capture_output=True, check=False)


def test_a_recipe_a_table_and_a_method_with_any_letters(tmp_path: Path) -> None:
    rows = [f"{2000 + k // 20},{(k * 7) % 13},{'groß' if (k * 7) % 13 > 6 else 'klein'}" for k in range(100)]
    (tmp_path / "ware.csv").write_text("\n".join(["jahr,maß,größe", *rows]), encoding="utf-8")
    (tmp_path / "recipe.yaml").write_text(RECIPE, encoding="utf-8")
    (tmp_path / "mine.py").write_text(METHOD, encoding="utf-8")

    ran = driftline(
        tmp_path, "run recipe.yaml --engine local --jobs 1 --runs runs", "report --runs runs -o bericht.html"
    )
    assert ran.returncode == 0, ran.stderr.decode()
    assert "Naïve" in ran.stdout.decode()
    assert "Naïve" in (tmp_path / "bericht.html").read_text(encoding="utf-8")


def test_a_name_that_the_encoding_lacks_is_refused_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "täglich.csv").write_text("date,y\n", encoding="utf-8")
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0"}
    command = [sys.executable, "-m", "driftline", "audit", "täglich.csv", "--time", "date", "--target", "y"]
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr.decode() == (
        "driftline: täglich.csv is not text in the encoding ascii: set PYTHONUTF8=1, or rename the file\n"
    )
