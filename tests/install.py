"""Install the wheel in fresh environments and try it: every Python found, newest and lowest dependencies.

    python tests/install.py [VERSION ...]    # for example 3.12; default: 3.11 to 3.14, those that are found

The lowest dependencies are the bounds of pyproject.toml, or the first versions above them with a wheel for that Python.
It needs uv (`pip install uv`), downloads about 1 GB per Python and prints a table for docs/install.md; the exit code
is 1 if something failed.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
EXTRAS = ("figures", "query")
SHOWN = ("numpy", "scipy", "pandas", "pyarrow", "scikit-learn")
RUN = "run timeline --data digits --model logistic-regression --methods erm,erm-all --seeds 1 --set data.periods=4"
BASE = ("--version", "--help", "run refinement --help", "list methods", RUN, "table", "quickstart --jobs 1")
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
    """Return an interpreter of this version, from the path or from pyenv."""
    found = shutil.which(f"python{version}")
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [Path(found)] if found else []
    for python in (*candidates, *sorted(pyenv.glob(f"{version}.*/bin/python"))):
        try:
            call(python, "-c", f"import platform; assert platform.python_version().startswith('{version}.')")
        except Failure:
            continue
        return python
    return None


def lowest(version: str) -> str:
    """Return the lowest versions of the dependencies that this Python can install, as constraints."""
    extras = (word for extra in EXTRAS for word in ("--extra", extra))
    options = ("--resolution", "lowest-direct", "--only-binary", ":all:", "--python-version", version)
    return call(
        "uv", "pip", "compile", "--quiet", "--no-header", "--no-annotate", ROOT / "pyproject.toml", *extras, *options
    )


def megabytes(folder: Path) -> str:
    """Return the size of the installed packages."""
    files = (file for packages in folder.rglob("site-packages") for file in packages.rglob("*") if file.is_file())
    return f"{sum(file.stat().st_blocks for file in files) * 512 / 1e6:.0f} MB"


def try_out(python: Path, wheel: Path, constraints: Path, folder: Path) -> Iterator[str]:
    """Install the wheel into a new environment and use it; give the cells of its row."""
    call("uv", "venv", "--quiet", "--python", python, folder)
    binaries = folder / ("Scripts" if os.name == "nt" else "bin")
    pip = ("uv", "pip", "install", "--quiet", "--link-mode=copy", "--only-binary=:all:", "--constraint", constraints)
    install, driftline = (*pip, "--python", folder), binaries / "driftline"
    call(*install, wheel)
    versions = dict(
        line.split("==") for line in call("uv", "pip", "freeze", "--python", folder).splitlines() if "==" in line
    )
    yield from (versions[name] for name in SHOWN)
    yield megabytes(folder)
    times = [call(binaries / "python", "-c", IMPORT) for _ in range(4)]
    yield f"{min(map(int, times))} ms"
    for words in BASE:
        call(driftline, *shlex.split(words), cwd=folder)
    for words, extra in REFUSED.items():
        if extra not in call(driftline, *shlex.split(words), cwd=folder, code=2):
            raise Failure(f"`driftline {words}` does not name {extra}")
    yield "passed"
    call(*install, f"{wheel}[{','.join(EXTRAS)}]")
    for words in WITH_EXTRAS:
        call(driftline, *shlex.split(words), cwd=folder)
    yield "passed"


def main(versions: list[str]) -> int:
    """Print a row for each Python, with the newest and with the lowest dependencies; return the exit code."""
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        call("uv", "build", "--quiet", "--wheel", "--out-dir", folder, ROOT)
        wheel, constraints = next(folder.glob("*.whl")), folder / "constraints.txt"
        header = ("Python", "dependencies", *SHOWN, "size", "import", "base", f"[{','.join(EXTRAS)}]")
        print(f"| {' | '.join(header)} |\n|{'---|' * len(header)}", flush=True)
        for version in versions:
            python = find_python(version)
            for kind in ("newest", "lowest") if python else ():
                cells, environment = [version, kind], folder / f"{version}-{kind}"
                try:
                    constraints.write_text(lowest(version) if kind == "lowest" else "", encoding="utf-8")
                    cells.extend(try_out(python, wheel, constraints, environment))
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
