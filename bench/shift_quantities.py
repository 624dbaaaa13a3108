"""How much the inputs shift: Table 5 of Ji, Alaa, Sontag, "Seq-to-Final", on the real CIFAR-10.

Beside ours stand the values that the paper prints and those of an independent re-computation with a converged solver,
which ours must meet within .01. The paper's solver stopped early on W_X, so its values are up to .03 too high. The
corruption's noise is ours, so the images of CLR and RCL are not the paper's bit for bit. One distance takes 5 to 60 s.

    python bench/shift_quantities.py [folder with cifar-10-batches-py] [TTT RCL ...]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from driftline import data
from driftline.errors import UserError
from driftline.streams.seq_to_final.distances import sequence_distances
from driftline.streams.seq_to_final.shifts import sequence

SIZES, TEST = (6000, 4000, 6000, 4000), 5000
WITHIN = 0.01
# Distance of steps 0, 1, 2 over that of step 3: (as printed, converged) for W_X, then for W_X|Y.
TABLE = {
    "TTT": (((1.54, 1.28, 1.08), (1.518, 1.270, 1.068)), ((1.46, 1.24, 1.06), (1.462, 1.244, 1.057))),
    "RCL": (((1.65, 1.00, 1.00), (1.642, 0.999, 0.989)), ((1.64, 1.13, 1.12), (1.643, 1.125, 1.115))),
    "rrr": (((1.12, 1.55, 1.53), (1.102, 1.556, 1.523)), ((1.13, 1.51, 1.47), (1.128, 1.508, 1.467))),
    "CLR": (((1.69, 1.69, 1.69), (1.684, 1.683, 1.687)), ((1.68, 1.68, 1.61), (1.680, 1.681, 1.611))),
}


def measured(dataset: data.Dataset, name: str) -> tuple[np.ndarray, np.ndarray]:
    """W_X and W_X|Y of one sequence, as ratios."""
    began = time.perf_counter()
    found = sequence_distances(sequence(dataset, name, SIZES, TEST, row_order="reference"))
    print(
        f"{name}: {found.components} components hold {found.explained:.3f} of the variance; "
        f"{time.perf_counter() - began:.0f} s",
        flush=True,
    )
    return found.covariate.ratio, found.conditional.ratio


def line(values: np.ndarray | tuple[float, ...]) -> str:
    return " ".join(f"{value:6.3f}" for value in values[:3])


def main(where: list[Path], names: list[str]) -> bool:
    """Print the table; true if all values are where they should be."""
    try:
        dataset = data.load("cifar10", {}, where)
    except UserError as error:
        print(f"not measured: {error}")
        return True
    worst = 0.0
    for name in names:
        for quantity, found, (printed, converged) in zip(
            ("W_X", "W_X|Y"), measured(dataset, name), TABLE[name], strict=True
        ):
            off = float(np.abs(found[:3] - converged).max())
            worst = max(worst, off)
            print(
                f"  {quantity:6} ours {line(found)}   converged {line(converged)}   off by {off:.4f}"
                f"   printed {line(printed)}",
                flush=True,
            )
    print(f"largest difference from the converged values: {worst:.4f}, allowed {WITHIN}")
    return worst <= WITHIN


if __name__ == "__main__":
    given = [argument for argument in sys.argv[1:] if argument not in TABLE]
    chosen = [argument for argument in sys.argv[1:] if argument in TABLE] or list(TABLE)
    sys.exit(not main([Path(folder) for folder in given] or data.data_folders(), chosen))
