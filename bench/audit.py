"""An audit of a large table: CPU seconds, wall time, and memory against the table's own.

1,000,000 rows x 20 columns are to take at most 120 CPU s (60 s of two free cores) and 3 times the table's memory;
50,000,000 rows x 20 columns at most 4 GB. The table is a folder of Parquet files that DuckDB makes. Memory is the
proportional set size of this process and its workers, sampled while the audit runs: pages that several processes share
are counted once. Run: `python bench/audit.py [rows] [columns] [--quick]`.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import threading
import time
from pathlib import Path

PART = 5_000_000  # rows of a file


def write(folder: Path, rows: int, columns: int) -> None:
    """Write numbers, one in a hundred missing, whose rule turns slowly over 600 days."""
    import duckdb

    def uniform(k: int) -> str:
        return f"(hash(i * 1000 + {k}) / 18446744073709551616.0 - 0.5) * 3.4641"

    def feature(k: int) -> str:
        return f"case when hash(i * 1000 + {k} + 500) % 100 > 0 then {uniform(k)} end as f{k}"

    features = ", ".join(map(feature, range(columns)))
    angle = f"i * pi() / 2 / {rows}"
    rule = f"cos({angle}) * {uniform(0)} + sin({angle}) * {uniform(1)} + 0.5 * {uniform(columns)} > 0"
    when = f"timestamp '2023-01-01' + to_microseconds((i * {600 * 86_400e6 / rows})::bigint)"
    with duckdb.connect() as database:
        for start in range(0, rows, PART):
            numbers = f"range({start}, {min(rows, start + PART)}) r(i)"
            made = f"select {features}, {when} as moment, ({rule})::int as y from {numbers}"
            database.execute(f"copy ({made}) to '{folder}/{start // PART:03d}.parquet' (format parquet)")


def memory() -> int:
    """Proportional set size of this process and its children, in bytes."""
    me = os.getpid()
    pids = [me, *(int(p) for p in Path(f"/proc/{me}/task/{me}/children").read_text(encoding="utf-8").split())]
    total = 0
    for pid in pids:
        try:
            text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
        except OSError:
            continue
        total += next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")) * 1024
    return total


def watch(peak: list[int], over: threading.Event) -> None:
    while not over.wait(0.2):
        peak[0] = max(peak[0], memory())


def cpu() -> float:
    """CPU seconds of this process and its finished children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def main(rows: int, columns: int, quick: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="driftline-bench-") as name:
        folder = Path(name) / "table"
        folder.mkdir()
        pid = os.fork()  # the table is made elsewhere, so that its memory is not counted here
        if not pid:
            write(folder, rows, columns)
            os._exit(0)
        os.waitpid(pid, 0)
        made = cpu()
        import driftline

        peak, over = [0], threading.Event()
        watcher = threading.Thread(target=watch, args=(peak, over), daemon=True)
        watcher.start()
        began = time.perf_counter()
        found = driftline.audit(folder, time="moment", target="y", jobs=2, quick=quick)
        if not quick:
            found.write(Path(name) / "audit.html", Path(name) / "audit.json")
        took, used = time.perf_counter() - began, cpu() - made
        over.set()
        watcher.join()
    size = rows * (columns + 2) * 8
    limit = 4e9 if rows > PART else 3 * size
    print(f"{rows:,} rows x {columns} columns, {len(found.data.periods)} periods: {used:.0f} CPU s, {took:.0f} s")
    print(f"peak memory {peak[0] / 1e9:.2f} GB = {peak[0] / size:.1f} x the table's {size / 1e9:.2f} GB")
    print(found.headline, *found.data.notes[:1], sep="\n")
    if peak[0] >= limit or (rows <= 1_000_000 and used > (20 if quick else 120)):
        sys.exit("over the limit")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", type=int, nargs="?", default=1_000_000)
    parser.add_argument("columns", type=int, nargs="?", default=20)
    parser.add_argument("--quick", action="store_true")
    main(**vars(parser.parse_args()))
