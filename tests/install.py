"""Install the wheel in fresh environments and try it: every Python found, newest and lowest dependencies.

    python tests/install.py [VERSION ...]    # for example 3.12; default: 3.11 to 3.14, those that are found

The lowest dependencies are the bounds of pyproject.toml. It downloads about 1 GB per Python and prints a table for
docs/install.md; the exit code is 1 if something failed.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
EXTRAS = ("figures", "query")
SHOWN = ("numpy", "scipy", "pandas", "pyarrow", "scikit-learn")
RUN = "run timeline --data digits --model logistic-regression --methods erm,erm-all --seeds 1 --set data.periods=4"
BASE = ("--version", "list methods", RUN, "table", "quickstart --jobs 1")
REFUSED = {"report": "driftline[figures]", "figure curves": "driftline[figures]", "query x": "driftline[query]"}
WITH_EXTRAS = ("report", "figure curves", 'query "select count(*) from scores"')
IMPORT = """
import sys, time
start = time.perf_counter()
import driftline
print(round(1000 * (time.perf_counter() - start)))
loaded = {"torch", "numpy", "pandas", "pyarrow", "scipy", "sklearn", "pydantic", "altair", "duckdb"} & set(sys.modules)
sys.exit(f"import driftline imports {sorted(loaded)}" if loaded else 0)
"""


class Failure(Exception):
    """A command that did not do what it should."""


def call(*command: object, cwd: Path | None = None, code: int = 0) -> str:
    """Return what a command prints; raise a Failure if it ends with another exit code."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DRIFTLINE"))}
    ran = subprocess.run([str(word) for word in command], cwd=cwd, env=env, capture_output=True, text=True, check=False)
    if ran.returncode != code:
        last = "\n".join((ran.stdout + ran.stderr).strip().splitlines()[-15:])
        raise Failure(f"{' '.join(map(str, command[-6:]))}: exit code {ran.returncode}\n{last}")
    return ran.stdout + ran.stderr


def find_python(version: str) -> Path | None:
    """Return an interpreter of this version that can make environments, from the path or from pyenv."""
    found = shutil.which(f"python{version}")
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [Path(found)] if found else []
    for python in (*candidates, *sorted(pyenv.glob(f"{version}.*/bin/python"))):
        try:
            call(python, "-c", f"import ensurepip, platform; assert platform.python_version().startswith('{version}.')")
        except Failure:
            continue
        return python
    return None


def lower_bounds() -> list[str]:
    """Return the lowest versions that pyproject.toml allows, as constraints."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    bounds = [*project["dependencies"], *(one for extra in EXTRAS for one in project["optional-dependencies"][extra])]
    return [re.sub(">=", "==", bound) for bound in bounds]


def try_out(python: Path, wheel: Path, constraints: Path, folder: Path) -> Iterator[str]:
    """Install the wheel into a new environment and use it; give the cells of its row."""
    call(python, "-m", "venv", folder)
    binaries = folder / ("Scripts" if os.name == "nt" else "bin")
    pip = (
        binaries / "python",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-compile",
        "--only-binary=:all:",
        "--constraint",
        constraints,
    )
    driftline = binaries / "driftline"
    call(*pip, wheel)
    versions = dict(line.split("==") for line in call(*pip[:3], "freeze").splitlines() if "==" in line)
    yield from (versions[name] for name in SHOWN)
    times = [call(binaries / "python", "-c", IMPORT) for _ in range(4)]
    yield f"{min(map(int, times))} ms"
    for words in BASE:
        call(driftline, *shlex.split(words), cwd=folder)
    for words, extra in REFUSED.items():
        if extra not in call(driftline, *shlex.split(words), cwd=folder, code=2):
            raise Failure(f"`driftline {words}` does not name {extra}")
    yield "passed"
    call(*pip, f"{wheel}[{','.join(EXTRAS)}]")
    for words in WITH_EXTRAS:
        call(driftline, *shlex.split(words), cwd=folder)
    yield "passed"


def main(versions: list[str]) -> int:
    """Print a row for each Python, with the newest and with the lowest dependencies; return the exit code."""
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        call(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT)
        wheel = next(folder.glob("*.whl"))
        (folder / "newest.txt").write_text("", encoding="utf-8")
        (folder / "lowest.txt").write_text("\n".join(lower_bounds()), encoding="utf-8")
        header = ("Python", "dependencies", *SHOWN, "import", "base", f"[{','.join(EXTRAS)}]")
        print(f"| {' | '.join(header)} |\n|{'---|' * len(header)}", flush=True)
        for version in versions:
            python = find_python(version)
            for kind in ("newest", "lowest") if python else ():
                cells, environment = [version, kind], folder / f"{version}-{kind}"
                try:
                    cells.extend(try_out(python, wheel, folder / f"{kind}.txt", environment))
                except Failure as failure:
                    failed += 1
                    print(failure, file=sys.stderr, flush=True)
                print(f"| {' | '.join([*cells, *['failed'] * (len(header) - len(cells))])} |", flush=True)
                shutil.rmtree(environment, ignore_errors=True)
            if not python:
                print(f"Python {version} was not found", file=sys.stderr, flush=True)
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(VERSIONS)))
