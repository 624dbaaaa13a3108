"""Calibration: accuracy of a fixed model under each pair of corruptions at each pair of severities.

For an ordered pair of corruptions there is a square matrix: entry [i, j] is the accuracy in percent when the first
is applied at severity 5 i / (levels - 1) and the second, to the result, at 5 j / (levels - 1). With 21 levels the
severities are 0, 0.25, ..., 5. Calibrating is `driftline calibrate`; the file that it writes and the pickle that the
authors of CCC released are both read here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from driftline.data import file_errors
from driftline.data.formats import safe_pickle
from driftline.errors import UserError
from driftline.io import serialization
from driftline.types import Settings, State

MAX_SEVERITY = 5.0
"""The highest severity."""
N_LEVELS = 21
"""How many severities CCC has, 0 included."""
Pair = tuple[str, str]
RELEASED_NAME = re.compile(r"n1_(?P<first>\w+?)_n2_(?P<second>\w+)")
EXPECTED = "matrices of accuracies, as `driftline calibrate` writes them or as CCC's authors released them"


@dataclass(frozen=True, eq=False)
class AccuracyMatrices:
    """Accuracies in percent for pairs of corruptions, and what they were measured with."""

    by_pair: Mapping[Pair, np.ndarray]
    metadata: Settings = field(default_factory=dict)
    """The model, the data and the settings; printed on the card."""

    def __post_init__(self) -> None:
        shapes = {matrix.shape for matrix in self.by_pair.values()}
        if len(shapes) != 1 or any(len(shape) != 2 or shape[0] != shape[1] or shape[0] < 2 for shape in shapes):
            raise UserError(f"calibration needs square matrices of one size, and these have {sorted(shapes) or 'none'}")

    @property
    def levels(self) -> int:
        """How many severities there are, 0 included."""
        return len(next(iter(self.by_pair.values())))

    def __getitem__(self, pair: Pair) -> np.ndarray:
        if pair not in self.by_pair:
            raise UserError(
                f"the calibration has no matrix for {pair[0]} followed by {pair[1]}: calibrate with both "
                f"(`driftline calibrate --corruptions ...`), or leave one out. It has {', '.join(sorted(self.names))}"
            )
        return self.by_pair[pair]

    @property
    def names(self) -> set[str]:
        """All corruptions that occur."""
        return {name for pair in self.by_pair for name in pair}

    def at(self, levels: int) -> AccuracyMatrices:
        """Return matrices with more levels, interpolated bilinearly."""
        if levels == self.levels:
            return self
        if levels < self.levels:
            raise UserError(f"these matrices have {self.levels} levels, and {levels} would leave some of them out")
        about = {**self.metadata, "interpolated": f"bilinearly from {self.levels} to {levels} levels"}
        return AccuracyMatrices({pair: _interpolate(matrix, levels) for pair, matrix in self.by_pair.items()}, about)


def _interpolate(matrix: np.ndarray, levels: int) -> np.ndarray:
    known, wanted = np.linspace(0, MAX_SEVERITY, len(matrix)), np.linspace(0, MAX_SEVERITY, levels)
    rows = np.array([np.interp(wanted, known, row) for row in matrix])
    return np.array([np.interp(wanted, known, column) for column in rows.T]).T


def severity_of_level(level: int, levels: int = N_LEVELS) -> float:
    """Return the severity of a level.

    >>> severity_of_level(1), severity_of_level(20), severity_of_level(1, levels=11)
    (0.25, 5.0, 0.5)
    """
    return MAX_SEVERITY * level / (levels - 1)


def matrices_state(matrices: AccuracyMatrices) -> State:
    """Return the content of a calibration file."""
    pairs = [[first, second] for first, second in matrices.by_pair]
    return {"pairs": pairs, "matrices": np.stack(list(matrices.by_pair.values())), "about": dict(matrices.metadata)}


def write_matrices(matrices: AccuracyMatrices, path: Path) -> None:
    """Write all matrices and their metadata to one file, atomically."""
    serialization.save(matrices_state(matrices), path)


def read_matrices(path: Path | str) -> AccuracyMatrices:
    """Read matrices from a file of `driftline calibrate` or from the released pickle, whose code is not run."""
    path = Path(path)
    if not path.is_file():
        raise UserError(
            f"there is no file {path} with a calibration: make one with `driftline calibrate -o {path}`, or let the "
            "run make it (--set test-time.calibration=null)"
        )
    if path.suffix in (".pickle", ".pkl"):
        return _released(path)
    with file_errors(path, EXPECTED):
        tree = serialization.load(path)
        pairs = [(str(first), str(second)) for first, second in tree["pairs"]]
        return AccuracyMatrices(dict(zip(pairs, tree["matrices"], strict=True)), tree["about"])


def _released(path: Path) -> AccuracyMatrices:
    content = safe_pickle.load_pickle(path, EXPECTED)
    with file_errors(path, EXPECTED):
        by_pair = {}
        for key, matrix in content.items():
            found = RELEASED_NAME.fullmatch(key)
            if not found:
                raise ValueError(f"the name {key!r}, which is not n1_<corruption>_n2_<corruption>")
            by_pair[found["first"], found["second"]] = np.asarray(matrix, float)
        return AccuracyMatrices(by_pair, {"source": path.name, "model": "ResNet-50 as in CCC", "images": 5000})
