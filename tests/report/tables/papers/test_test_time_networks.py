"""The tables of RDumb by network: numbers of ours and printed ones in the column of their network."""

from __future__ import annotations

from pathlib import Path

import pytest

from driftline.errors import UserError
from driftline.record.run import Record
from driftline.report.tables.papers import paper_tables

from ...conftest import heads
from .test_test_time import numbers, runs

VIT = "timm:vit_base_patch16_224"


def test_tables_2_and_9(tmp_path: Path) -> None:
    found = []
    for k, model in enumerate(("resnet18", VIT)):
        cells = {"eata": [0.3 + k / 10], "eata(penalty_weight=3000.0)": [0.2 + k / 10], "frozen": [0.1 + k / 10]}
        found += runs(tmp_path, cells, run__model={"name": model, "settings": {}})
    (grid,) = paper_tables(Record(found), "test-time/table-2")
    source = "RDumb Table 2 (full scale)"
    assert heads(grid) == ("resnet18", VIT)
    assert numbers(grid) == {
        "frozen": [0.1, 0.2],
        f"frozen in {source}": [0.122, 0.42],
        "eata": [0.3, 0.4],
        f"eata in {source}": [0.268, 0.385],
        "eata(penalty_weight=3000.0)": [0.2, 0.3],
    }
    (grid,) = paper_tables(Record(found), "test-time/table-9")
    assert list(numbers(grid)) == [
        "eata",
        "eata in RDumb Table 9 (full scale)",
        "eata(penalty_weight=3000.0)",
        "eata(penalty_weight=3000.0) in RDumb Table 9 (full scale)",
    ]
    assert numbers(grid)["eata(penalty_weight=3000.0) in RDumb Table 9 (full scale)"] == [None, 0.278]
    with pytest.raises(UserError, match="no run of test-time on ccc hard"):
        paper_tables(Record(found), "test-time/table-3")
