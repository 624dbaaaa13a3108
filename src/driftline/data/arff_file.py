"""Any stream in an ARFF file, with its rows in time order.

Holmes et al., "WEKA: a machine learning workbench", 1994, defined the format; MOA (Bifet et al., "MOA: Massive Online
Analysis", JMLR 2010) and the USP repository (Souza et al., "Challenges in Benchmarking Stream Learning Algorithms with
Real-world Data", DMKD 2020) publish streams in it. The class is the last attribute unless `target` names another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from driftline.data import Dataset, locate_user_path
from driftline.data.formats.arff import read_arff
from driftline.data.formats.rows_in_order import rows_in_order
from driftline.errors import unknown_name
from driftline.registry import register


@register("dataset", "arff")
def arff(
    folders: Sequence[Path],
    *,
    path: str,  # .arff file (also .gz)
    target: str | None = None,  # attribute to predict; None: the last
    task: Literal["auto", "classes", "number"] = "auto",  # kind of target; auto: a number if it has more than 50
    columns: dict[str, str] | None = None,  # kinds of attributes: number, category, text, date or ignore; None: guessed
) -> Dataset:
    """The rows of an ARFF file in their order; time is the number of a row."""
    file = locate_user_path(folders, path, "arff")
    frame = read_arff(file)
    if target is not None and target not in frame:
        raise unknown_name(f"attribute of {file.name}", target, list(map(str, frame.columns)))
    return rows_in_order("arff", frame, target or str(frame.columns[-1]), task=task, columns=columns)
