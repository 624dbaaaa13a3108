"""Benches that documents quote still run: renames in the package must not break them."""

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from driftline import data

BENCH = Path(__file__).parent.parent / "bench"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"bench_{name}", BENCH / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
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
