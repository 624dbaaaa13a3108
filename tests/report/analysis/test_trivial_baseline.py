"""The trivial baseline in every result table: by hand, from the record alone, with a caution where nothing beats it."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import driftline
from driftline.record.run import Record, Run
from driftline.report.analysis.groups import groups
from driftline.report.analysis.result_table import ResultTable, tabulate
from driftline.report.analysis.summary import answer
from driftline.report.page.page import page

from ..conftest import render_results

pytestmark = pytest.mark.xdist_group("trivial")  # what all its tests use is made once


def run(folder: Path, model: str) -> Record:
    """A timeline of 400 rows, in which the class is whether a feature is above a threshold."""
    x = np.random.default_rng(0).normal(size=400)
    frame = pd.DataFrame({"t": np.arange(400), "x": x, "y": (x > 0.3).astype(int)})
    frame.to_csv(folder / "t.csv", index=False)
    data = {"name": "table", "path": str(folder / "t.csv"), "time": "t", "target": "y"}
    spec = {"benchmark": "timeline", "data": data, "model": model, "methods": ["erm"], "seeds": 1}
    return driftline.run({**spec, "timeline": {"period": "100 rows", "resamples": 50}}, runs=folder / "runs")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Record:
    return run(tmp_path_factory.mktemp("trained"), "logistic-regression")


def table_of(record: Record) -> ResultTable:
    (group,) = groups(record)
    return tabulate(group)


def by_hand(record: Record) -> dict[str, float]:
    probes, answers = record.probes, record.answers
    examples = pd.concat([answers, probes]).drop_duplicates("id")
    most = examples["truth"].mode()[0]
    later = [
        np.mean([(rows["truth"] == most).mean() for _, rows in part.groupby("probe")])
        for _, part in probes[probes["probe"] != probes["time"]].groupby("step")
    ]
    own = probes[probes["probe"] == probes["time"]]
    return {"ood": float(np.mean(later)), "id": float((own["truth"] == most).groupby(own["step"]).mean().mean())}


def test_the_baseline_by_hand(trained: Record) -> None:
    table, expected = table_of(trained), by_hand(trained)
    assert table.trivial is not None
    found = {column.metric: cell for column, cell in zip(table.columns, table.trivial.cells, strict=True)
             if column.stat == "mean"}  # fmt: skip
    for name, value in expected.items():
        assert found[name] is not None
        assert found[name].value == pytest.approx(value)  # type: ignore[union-attr]


def test_every_format_carries_it(trained: Record) -> None:
    table = table_of(trained)
    assert "| trivial baseline | " in render_results([table], "md")
    assert "trivial baseline" in render_results([table], "latex")
    rows = list(csv.DictReader(io.StringIO(render_results([table], "csv"))))
    assert {"erm", "trivial baseline"} == {row["method"] for row in rows}
    assert {row["best"] for row in rows if row["method"] == "trivial baseline"} == {"0"}
    text = page(trained)
    assert '<th scope="row">trivial baseline</th>' in text
    assert "Trivial baseline: one constant answer per run" in text
    rates = [cell.false_alarm for cell in table.trivial.cells if cell] if table.trivial else []
    shown = [f"FA {rate:.0%}" for rate in rates if not np.isnan(rate)]
    assert len(shown) == 2
    (foot,) = re.findall("<tfoot>.*?</tfoot>", text, flags=re.DOTALL)
    assert re.findall("FA [0-9]+%", foot) == shown


def test_a_method_that_beats_it_gets_no_caution(trained: Record) -> None:
    assert "Caution" not in render_results([table_of(trained)], "md")
    assert "Caution" not in answer(table_of(trained))


def test_a_method_at_chance_gets_a_caution(tmp_path: Path) -> None:
    table = table_of(run(tmp_path, "sklearn.dummy.DummyClassifier"))
    caution = "Caution: not significantly better than the trivial baseline"
    assert caution in render_results([table], "md")
    assert caution in answer(table)


def test_the_caution_compares_in_the_primary_quality_metric_alone(tmp_path: Path) -> None:
    sizes = {
        "episodes": 4,
        "queries_per_episode": 20,
        "period": 2,
        "upstream_set": 60,
        "held_out": 20,
        "upstream_updates": 150,
    }
    data = {"name": "digit-clusters", "train": 300, "copies": 1}
    spec = {"benchmark": "refinement", "data": data, "model": "linear", "methods": ["frozen", "er"], "seeds": 1}
    table = table_of(driftline.run({**spec, "refinement": {**sizes, "resamples": 20}}, runs=tmp_path))
    assert table.trivial is not None
    rows = {row.method: row for row in table.rows}
    frozen, trivial = (
        {column.metric: cell.value for column, cell in zip(table.columns, cells, strict=True) if cell}
        for cells in (rows["frozen"].cells, table.trivial.cells)
    )
    assert (frozen["efr"], trivial["efr"]) == (0, 0), "neither a frozen model nor a constant can fix an error"
    assert frozen["oec"] > 2 * trivial["oec"]
    assert "Caution" not in render_results([table], "md")


def test_a_table_reads_no_answers(trained: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = table_of(trained)
    read: list[str] = []
    monkeypatch.setattr(Run, "file", lambda run, name, file=Run.file: read.append(name) or file(run, name))
    assert table_of(Record(trained.runs)) == whole
    assert set(read) == {"scores", "trivial_scores"}
