"""The base install is light: nothing heavy is imported unless asked for, and a missing extra is named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BASE_INSTALL = """
import sys

class WithoutTorch:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")

sys.meta_path.insert(0, WithoutTorch())
sys.modules.update(dict.fromkeys(["altair", "vl_convert", "jinja2", "duckdb"]))
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
    heavy = {"torch", "pandas", "sklearn", "altair", "scipy", "numpy", "pyarrow", "duckdb"}
    code = f"import sys, {module}; print(sorted({heavy} & set(sys.modules)))"
    assert python(code, tmp_path).stdout == "[]\n"


def test_the_list_of_recipes_brings_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys\n" + EACH.format(arguments=["recipes"]) + "print({'torch', 'pandas', 'numpy'} & set(sys.modules))"
    )
    assert python(code, tmp_path).stdout.endswith("exit code 0\nset()\n")


def test_a_timeline_runs_in_the_base_install_and_is_drawn_with_the_extras(tmp_path: Path) -> None:
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
    ran = python(BASE_INSTALL + COMMAND.format(arguments=[*arguments, "--set", "data.periods=4"]), tmp_path)
    assert ran.returncode == 0, ran.stderr
    drawing, query = (["report"], ["figure", "curves"]), ["query", "select * from runs"]
    reading = (["table", "--format", "latex"], ["list", "methods"])
    each = [EACH.format(arguments=arguments) for arguments in (*reading, *drawing, query)]
    install = "del sys.modules['altair'], sys.modules['vl_convert'], sys.modules['jinja2'], sys.modules['duckdb']"
    ran = python("\n".join([BASE_INSTALL, *each, install, *each]), tmp_path)
    codes = [line[-1] for line in ran.stdout.splitlines() if line.startswith("exit code")]
    assert codes == [*"00222", *"00000"], ran.stderr
    assert ran.stderr.splitlines()[:3] == [
        'driftline: drawing figures needs an optional package: pip install "driftline[figures]"',
        'driftline: drawing figures needs an optional package: pip install "driftline[figures]"',
        'driftline: a query needs an optional package: pip install "driftline[query]"',
    ]
    assert (tmp_path / "report.html").exists()
    assert (tmp_path / "curves.svg").exists()


def test_a_missing_extra_is_one_sentence_with_the_pip_line(tmp_path: Path) -> None:
    arguments = ["run", "timeline", "--data", "digits", "--methods", "erm"]
    ran = python(BASE_INSTALL + COMMAND.format(arguments=arguments), tmp_path)
    assert ran.returncode == 2
    assert 'pip install "driftline[deep]"' in ran.stderr
    errors = [line for line in ran.stderr.splitlines() if not line.startswith(("preparing", "planning"))]
    assert len(errors) == 1
