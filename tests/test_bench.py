"""Benches that documents quote still run: renames in the package must not break them."""

import csv
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from driftline import data
from driftline.store.store import Store

BENCH = Path(__file__).parent.parent / "bench"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"bench_{name}", BENCH / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(BENCH))  # benches import what they share
    spec.loader.exec_module(module)
    sys.path.remove(str(BENCH))
    return module


def test_interval_coverage_is_a_share_for_every_metric(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = load("interval_coverage")
    monkeypatch.setattr(bench, "DRAWS", 20)
    found = bench.coverage("no drift", 0.9, 1, seed=3)
    assert sorted(set(found.index.get_level_values(0))) == ["dh", "id", "sh", "tas"]
    assert found[["now", "plain"]].to_numpy(float).min() >= 0
    assert found[["now", "plain"]].to_numpy(float).max() <= 1
    assert found.loc[("sh", "each"), "now"] > 0.5
    assert found.loc[("id", "each"), "width now"] > 0.05


def test_shift_quantities_are_relative_to_the_final_step(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = load("shift_quantities")
    monkeypatch.setattr(bench, "SIZES", (50, 50, 50, 50))
    monkeypatch.setattr(bench, "TEST", 50)
    measured = list(bench.measured(data.load("color-digits", {}, []), "TTT"))
    assert measured
    for ratios in measured:
        np.testing.assert_allclose(ratios[-1], 1)
        assert len(ratios) == 4
        assert (ratios > 0).all()


def test_the_page_of_performance_has_the_numbers_of_the_benches() -> None:
    bench = load("performance")
    text = (BENCH.parent / "docs" / "performance.md").read_text(encoding="utf-8")
    assert text == bench.page(bench.read()), "run python bench/performance.py"
    with (BENCH / "performance.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == text.count("\n| ") - 1
    for row in rows:
        ratio = float(row["ours"]) / float(row["against"])
        against = f"{row['against']} ({row['what']})"
        assert f"| {row['measure']} | {row['ours']} {row['unit']} | {against} | {ratio:.2f} | " in text
        assert float(row["low"]) <= float(row["ours"]) <= float(row["high"])


def test_a_measure_is_the_median_and_replaces_an_earlier_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = load("performance")
    monkeypatch.setattr(bench, "FILE", tmp_path / "measures.csv")
    monkeypatch.setattr(bench, "PAGE", tmp_path / "page.md")
    bench.add([bench.measured("a", "s", [3.0, 1.0, 2.5], 2.0, "x.py"), bench.measured("b", "s", [1.0], 1.0, "x.py")])
    bench.add([bench.measured("a", "s", [4.0, 1.0, 3.0], 2.0, "x.py", "peer")])
    first, second = bench.read()
    assert (first.measure, first.ours, first.low, first.high, first.what) == ("a", 3.0, 1.0, 4.0, "peer")
    assert second.measure == "b"
    assert "| a | 3 s | 2 (peer) | 1.50 | 1 to 4 |" in (tmp_path / "page.md").read_text(encoding="utf-8")


def test_a_driver_that_is_too_slow_keeps_workers_waiting() -> None:
    simulate = load("million_runs").simulate
    hours, busy = simulate(runs=1000, workers=10, seconds=36.0, service=0.0)
    assert hours == pytest.approx(1.0, rel=0.03)
    assert busy > 0.97
    hours, busy = simulate(runs=1000, workers=10, seconds=36.0, service=7.2)
    assert hours == pytest.approx(2.0, rel=0.03), "the driver serves 1,000 ends and 10 starts, 7.2 s each"
    assert busy == pytest.approx(0.5, rel=0.05)


def test_synthetic_runs_are_read_like_real_ones(tmp_path: Path) -> None:
    load("synthetic_runs").write(tmp_path, 41)
    record = Store.open(tmp_path).record()
    assert len(record) == 41
    assert {card.run.benchmark for card in record.cards} == {"timeline"}
    table = str(record.table())
    assert table.count("| erm ") == 4, "a group for each dataset; of the fifth, there is one run of another method"
