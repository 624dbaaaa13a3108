"""The report over many synthetic runs: seconds, memory and size. Run: `python bench/report.py [runs]`."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from synthetic_runs import write

from driftline.record.run import Record
from driftline.store.store import Store


def measure(folder: Path) -> None:
    """Write the page and print what it took; in a process of its own, so that nothing else is counted."""
    began = time.perf_counter()
    from driftline.report.page.page import write_report

    record: Record = Store.open(folder).record()
    output = folder / "report.html"
    write_report(record, output)
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    size = output.stat().st_size / 1e6
    work = time.process_time()
    print(f"{len(record):,} runs: {seconds:.1f} s ({work:.1f} s of work), peak {peak:,.0f} MiB, page {size:.2f} MB")


def main(counts: list[int]) -> None:
    for count in counts:
        with tempfile.TemporaryDirectory() as name:
            write(Path(name), count)
            subprocess.run([sys.executable, __file__, "measure", name], check=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:
        measure(Path(sys.argv[2]))
    else:
        main([int(count) for count in sys.argv[1:]] or [200, 2000])
