"""An audit of 1,000,000 rows x 50 columns: wall time, and memory against the table's own.

Memory is the proportional set size of this process and its workers, sampled while the audit runs: pages that several
processes share are counted once. Run: `python bench/audit.py [rows] [columns]`.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd


def write(path: Path, rows: int, columns: int) -> int:
    """A table of numbers, some with gaps, whose rule turns slowly; returns its size in memory."""
    random = np.random.default_rng(0)
    x = random.normal(size=(rows, columns))
    angle = np.linspace(0, np.pi / 2, rows)
    y = np.cos(angle) * x[:, 0] + np.sin(angle) * x[:, 1] + 0.5 * random.normal(size=rows) > 0
    x[random.random(x.shape) < 0.01] = np.nan
    frame = pd.DataFrame(x, columns=[f"f{k}" for k in range(columns)])
    frame["when"] = pd.Timestamp("2023-01-01") + pd.to_timedelta(np.linspace(0, 600, rows), unit="D")
    frame["y"] = y.astype(int)
    frame.to_parquet(path)
    return int(frame.memory_usage(deep=True).sum())


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


def main(rows: int = 1_000_000, columns: int = 50) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        pid = os.fork()  # the table is made elsewhere, so that its memory is not counted here
        if not pid:
            Path(folder, "size").write_text(str(write(path, rows, columns)), encoding="utf-8")
            os._exit(0)
        os.waitpid(pid, 0)
        size = int(Path(folder, "size").read_text(encoding="utf-8"))
        import driftline

        peak, over = [0], threading.Event()
        watcher = threading.Thread(target=watch, args=(peak, over), daemon=True)
        watcher.start()
        began = time.perf_counter()
        found = driftline.audit(path, time="when", target="y", jobs=2)
        found.write(Path(folder) / "audit.html", Path(folder) / "audit.json")
        took = time.perf_counter() - began
        over.set()
        watcher.join()
    print(f"{rows:,} rows x {columns} columns, {len(found.data.periods)} periods: {took:.0f} s (limit 300)")
    print(f"peak memory {peak[0] / 1e9:.2f} GB = {peak[0] / size:.1f} x the table's {size / 1e9:.2f} GB (limit 4)")
    if took >= 300 or peak[0] >= 4 * size:
        sys.exit("over the limit")


if __name__ == "__main__":
    main(*(int(given) for given in sys.argv[1:]))
