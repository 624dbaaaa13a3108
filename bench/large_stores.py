"""Commands over stores of thousands of synthetic runs: CPU seconds and memory, with the store's index made before.

    python bench/large_stores.py [RUNS] [--rounds N] [--only table,list,query,report] [--store FOLDER] [--save]

Each command runs in a process of its own, from its start to its end. `--store`: the folder of an earlier bench with
this many runs. `--save`: write the numbers to the table of docs/performance.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import performance
from synthetic_runs import write

COMMANDS = {
    "table": ["table"],
    "list": ["list", "runs"],
    "query": ["query", "select method, metric, avg(value) from runs join scores using (run) group by all"],
    "report": ["report", "-o", "report.html"],
}
LIMITS = {5_000: {"table": 3.0, "list": 2.0, "query": 3.0, "report": 15.0}}
LIMIT_OF_LARGE, MEMORY = 10.0, 1024.0  # CPU seconds and MiB, for 100,000 runs


def spent(command: list[str], folder: Path) -> tuple[float, float]:
    """Return the CPU seconds and the largest size in MiB of a command."""
    whole = [sys.executable, "-m", "driftline", *command, "--runs", str(folder.resolve())]
    process = subprocess.Popen(whole, stdout=subprocess.DEVNULL, cwd=folder)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(whole)} ended with {process.returncode}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def measure(folder: Path, runs: int, names: list[str], rounds: int) -> list[performance.Measure]:
    """Print and return what the commands take."""
    seconds, _ = spent(COMMANDS["list"], folder)
    print(f"{runs:,} runs: the first command, which may make the index: {seconds:.1f} CPU s", flush=True)
    found = []
    for name in names:
        used = [spent(COMMANDS[name], folder) for _ in range(rounds)]
        limit = LIMITS.get(runs, {}).get(name, LIMIT_OF_LARGE)
        title, bench = f"`{name}` over {runs:,} runs", f"large_stores.py {runs}"
        found.append(performance.measured(title, "s", (one for one, _ in used), limit, bench))
        found.append(performance.measured(f"{title}: memory", "MiB", (one for _, one in used), MEMORY, bench))
        print(*found[-2:], sep="\n", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="?", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default=",".join(COMMANDS))
    parser.add_argument("--store", type=Path)
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.store or Path(temporary)
        if not (folder / "store.json").exists():
            write(folder, given.runs)
        found = measure(folder, given.runs, given.only.split(","), given.rounds)
    if given.save:
        performance.add(found)


if __name__ == "__main__":
    main()
