"""Draw every figure that the examples of the benchmarks have, for the documentation site.

python docs/gallery.py [BENCHMARK ...]    # default: all; finished runs in build/gallery-runs are used again
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import driftline
from driftline import registry
from driftline.errors import UserError
from driftline.record.run import Record

BUILD = Path(__file__).parent.parent / "build"
SEEDS = 3


def draw(record: Record, folder: Path) -> list[str]:
    """Write the figures that these runs have as SVG; return their names."""
    drawn = []
    for name in registry.names("figure"):
        try:
            driftline.figure(name, record, folder / f"{name}.svg")
        except UserError:  # a figure of another benchmark, or of other methods
            continue
        (folder / f"{name}.csv").unlink()
        drawn.append(name)
    return drawn


def main(benchmarks: list[str]) -> None:
    """Run the examples and draw their figures."""
    for benchmark in benchmarks or registry.names("benchmark"):
        spec = {**registry.get("benchmark", benchmark).example, "benchmark": benchmark, "seeds": SEEDS}
        record = driftline.run(spec, runs=BUILD / "gallery-runs")
        folder = BUILD / "gallery" / benchmark
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        print(f"{benchmark}: {', '.join(draw(record, folder))}")


if __name__ == "__main__":
    main(sys.argv[1:])
