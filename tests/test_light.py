"""The base install is light: no torch is imported unless asked for, and without it the rest works."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

NO_TORCH = """
import sys

class Without:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")

sys.meta_path.insert(0, Without())
"""
COMMAND = "sys.argv = ['driftline', *{arguments!r}]\nfrom driftline.cli.main import main; main()"

EACH = """
from driftline.cli.main import main
sys.argv = ['driftline', *{arguments!r}]
try:
    main()
except SystemExit as end:
    print("exit code", end.code)
"""


def python(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize("module", ["driftline", "driftline.cli.main"])
def test_import_brings_nothing_heavy(module: str, tmp_path: Path) -> None:
    heavy = {"torch", "pandas", "sklearn", "altair", "scipy", "numpy"}
    code = f"import sys, {module}; print(sorted({heavy} & set(sys.modules)))"
    assert python(code, tmp_path).stdout == "[]\n"


def test_the_list_of_recipes_brings_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys\n" + EACH.format(arguments=["recipes"]) + "print({'torch', 'pandas', 'numpy'} & set(sys.modules))"
    )
    assert python(code, tmp_path).stdout.endswith("exit code 0\nset()\n")


def test_without_torch_a_timeline_runs_and_reports(tmp_path: Path) -> None:
    arguments = [
        "run",
        "timeline",
        "--data",
        "digits",
        "--model",
        "logistic-regression",
        "--methods",
        "erm,erm-all",
        "--seeds=2",
    ]
    ran = python(NO_TORCH + COMMAND.format(arguments=[*arguments, "--set", "data.periods=4"]), tmp_path)
    assert ran.returncode == 0, ran.stderr
    reading = (["report"], ["table", "--format", "latex"], ["list", "methods"], ["query", "select * from runs"])
    ran = python(NO_TORCH + "\n".join(EACH.format(arguments=arguments) for arguments in reading), tmp_path)
    assert ran.stdout.splitlines().count("exit code 0") == len(reading), ran.stderr
    assert (tmp_path / "report.html").exists()


def test_a_missing_extra_is_one_sentence_with_the_pip_line(tmp_path: Path) -> None:
    arguments = ["run", "timeline", "--data", "digits", "--methods", "erm"]
    ran = python(NO_TORCH + COMMAND.format(arguments=arguments), tmp_path)
    assert ran.returncode == 2
    assert 'pip install "driftline[deep]"' in ran.stderr
    errors = [line for line in ran.stderr.splitlines() if not line.startswith(("preparing", "planning"))]
    assert len(errors) == 1
