"""What the figures of timeline show, with every number by hand, and that they can be drawn."""

from __future__ import annotations

from pathlib import Path

import pytest

from driftline.errors import UserError
from driftline.record.run import Record
from driftline.report.figures.base import draw
from driftline.report.figures.export import save
from driftline.report.page import charts

from ..conftest import adapted, add_table, table_of, write_run


def test_accuracy_is_a_mean_over_seeds(full_record: Record) -> None:
    frame = table_of("accuracy", full_record)
    erm = frame[frame["method"] == "erm"].set_index(["time", "tau"])
    assert sorted(erm.index) == [("a", "a"), ("a", "b"), ("a", "c"), ("b", "b"), ("b", "c"), ("c", "c")]
    assert erm.loc[("a", "c"), "value"] == pytest.approx(0.41)  # 0.40 and 0.42
    assert erm.loc[("c", "c"), ["value", "low", "high"]].tolist() == pytest.approx([0.8, 0.8, 0.8])
    assert erm.loc[("a", "a"), ["low", "high"]].tolist() == pytest.approx([0.583, 0.8371], abs=1e-3)
    assert set(erm["seeds"]) == {2}
    assert frame.attrs["times"] == {"timeline · digits · mlp": ["a", "b", "c"]}


def test_transfer_comes_with_its_delta(full_record: Record) -> None:
    frame = table_of("transfer", full_record)
    erm = frame[frame["method"] == "erm"].set_index(["time", "tau"])
    assert erm["value"].to_dict() == pytest.approx({("a", "a"): 1.0, ("a", "b"): 0.51, ("b", "b"): 1.0})
    assert set(frame["delta"]) == {0.9}


def test_other_benchmarks_are_left_out(full_record: Record, tmp_path: Path) -> None:
    other = adapted(tmp_path / "other", "frozen", 0, [0.5])
    frame = table_of("accuracy", Record([*full_record.runs, other]))
    assert frame.attrs["notes"] == ["left out (no model that is tested in later periods): test-time · cifar10 · mlp"]
    with pytest.raises(UserError, match="nothing to draw"):
        table_of("transfer", Record([other]))
    with pytest.raises(UserError, match="no features were recorded"):
        table_of("projection", full_record)


@pytest.fixture
def pictured(tmp_path: Path) -> Record:
    """Two seeds with features on a line: the first direction of variation is the line itself."""
    runs = [write_run(tmp_path, "erm", seed, []) for seed in (0, 1)]
    for run in runs:
        features = [[3.0 * k, 4.0 * k] for k in (-2, -1, 0, 3)]
        table = {"time": ["a", "a", "b", "c"], "truth": [0, 1, 0, 1], "features": features}
        add_table(run, "features", table)
    return Record(runs)


def test_projection_keeps_distances_along_a_line(pictured: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("driftline.report.analysis.projection.find_spec", lambda name: None)  # without UMAP
    frame = table_of("projection", pictured)
    assert set(frame["seed"]) == {0}
    assert set(frame["projection"]) == {"PCA"}
    assert frame["stretch"].tolist() == ["a", "a", "b", "c"]
    assert frame["class"].tolist() == ["0", "1", "0", "1"]
    first = frame["x"].tolist()
    assert [abs(x - first[2]) for x in first] == pytest.approx([10, 5, 0, 15])
    assert frame["y"].abs().max() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("name", ["accuracy", "transfer"])
def test_maps_are_drawn(full_record: Record, tmp_path: Path, name: str) -> None:
    frame, chart = draw(name, full_record)
    save(frame, chart, tmp_path / f"{name}.svg")
    text = (tmp_path / f"{name}.svg").read_text()
    assert all(word in text for word in ("erm", "trained at t", "tested at τ", "timeline · digits · mlp"))


def test_the_projection_is_drawn(pictured: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("driftline.report.analysis.projection.find_spec", lambda name: None)
    frame, chart = draw("projection", pictured)
    save(frame, chart, tmp_path / "projection.svg")
    assert "erm, seed 0, PCA of 4 held-out samples" in (tmp_path / "projection.svg").read_text()


def test_classes_that_share_a_colour_differ_in_shape() -> None:
    encoding = charts.projection("data", ["a"], [str(k) for k in range(10)])["encoding"]
    looks = list(zip(encoding["color"]["scale"]["range"], encoding["shape"]["scale"]["range"], strict=True))
    assert len(set(looks)) == 10
