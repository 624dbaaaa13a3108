"""The figures of open-world: what they draw, by hand, and that they can be drawn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from driftline.errors import UserError
from driftline.record.run import Record, Run
from driftline.report.analysis.novelty import SCORES
from driftline.report.analysis.pareto import is_dominated
from driftline.report.figures.base import draw
from driftline.report.figures.export import save
from driftline.report.figures.pareto import CACHED, UNCACHED
from driftline.report.figures.roc import CLOCK

from ..conftest import adapted, table_of
from ..opened import STRANGE, opened

HG, MDT = SCORES.values()


def windows(*values: float) -> list[tuple[object, ...]]:
    return [("rolling", "each", str(4 * k), None, v, v - 0.1, v + 0.1, 4, "examples") for k, v in enumerate(values, 1)]


@pytest.fixture
def record(tmp_path: Path) -> Record:
    runs: list[Run] = []
    for label, seed, values in (("ncm", 0, (0.5, 0.6)), ("ncm", 1, (0.7, 0.6)), ("fine-tune", 0, (0.2, 0.9))):
        runs.append(opened(tmp_path, label, seed, {"overall": float(np.mean(values))}, rows=windows(*values)))
    return Record(runs)


def test_rolling_is_a_mean_over_seeds(record: Record) -> None:
    frame = table_of("rolling-accuracy", record)
    ncm = frame[frame["method"] == "ncm"]
    assert ncm["time"].tolist() == [4, 8]
    assert ncm["value"].tolist() == pytest.approx([0.6, 0.6])
    assert ncm["seeds"].tolist() == [2, 2]
    alone = frame[frame["method"] == "fine-tune"].iloc[1]
    assert (alone["value"], alone["low"], alone["n"], alone["seeds"]) == pytest.approx((0.9, 0.8, 4, 1))


@pytest.mark.parametrize("name", ["rolling-accuracy", "curves"])
def test_curves_end_with_the_shortest_seed_and_stay_shares(tmp_path: Path, name: str) -> None:
    """The third window has two seeds of five, right in all answers or none: a t-interval of [-5.85, 6.85]."""
    lengths = ((0.1, 0.5), (0.9, 0.5, 1.0), (0.9, 0.6), (0.9, 0.5, 0.0), (0.9, 0.6))
    runs = [opened(tmp_path, "ncm", seed, {}, rows=windows(*values)) for seed, values in enumerate(lengths)]
    frame, _ = draw(name, Record(runs))
    assert frame["time"].astype(int).tolist() == [4, 8]
    assert frame["seeds"].tolist() == [5, 5]
    assert frame["high"].tolist() == pytest.approx([1.0, 0.608], abs=1e-3)  # 0.74 + 0.44, cut
    assert frame["low"].tolist() == pytest.approx([0.2958, 0.472], abs=1e-3)


def test_times_are_sorted_as_numbers(tmp_path: Path) -> None:
    rows = [("rolling", "each", str(t), None, 0.5, 0.4, 0.6, 4, "examples") for t in (500, 1000, 10000)]
    frame = table_of("rolling-accuracy", Record([opened(tmp_path, "ncm", 0, {}, rows=rows)]))
    assert frame["time"].tolist() == [500, 1000, 10000]


def test_roc_goes_through_the_worked_example(record: Record) -> None:
    frame = table_of("roc", record)
    assert set(frame["score"]) == {HG, MDT}
    auroc = frame.drop_duplicates(["method", "score"]).set_index(["score", "method"])["auroc"]
    assert auroc[MDT, "ncm"] == auroc[HG, "fine-tune"] == pytest.approx(10 / 12)
    assert auroc[MDT, CLOCK] == pytest.approx(8 / 12)
    curve = frame[(frame["method"] == "ncm") & (frame["score"] == MDT)].set_index("false")["true"]
    assert (curve[0.0], curve[1.0]) == (0.5, 1.0)  # .7 is above all seen ones
    assert curve[curve.index >= 2 / 6 + 1e-9].min() == 1.0  # .4 is below two of six
    area = np.trapezoid(curve, curve.index)
    assert area == pytest.approx(10 / 12, abs=0.01)


def test_the_band_of_a_roc_stays_a_share(tmp_path: Path) -> None:
    """With two seeds that are as far apart as can be, t-intervals go far beyond 0 and 1."""
    reverse = {"distance": [1 - one for one in STRANGE]}
    runs = [opened(tmp_path, "ncm", seed, {}, answers=answers) for seed, answers in enumerate(({}, reverse))]
    frame = table_of("roc", Record(runs))
    band = frame[(frame["method"] == "ncm") & (frame["score"] == MDT)]
    assert band["seeds"].unique().tolist() == [2]
    assert (band["low"].min(), band["high"].max()) == (0, 1)
    assert band["true"].between(band["low"], band["high"]).all()


def test_samples_without_scores_are_left_out(tmp_path: Path) -> None:
    nothing = {"confidence": [float("nan")] * 8, "distance": [float("nan"), *STRANGE[1:]]}
    frame = table_of("roc", Record([opened(tmp_path, "ncm", 0, {}, answers=nothing)]))
    assert set(frame["score"]) == {MDT}
    assert frame["auroc"].iloc[0] == pytest.approx((5 + 3) / 10)


def test_thresholds(record: Record) -> None:
    frame = table_of("thresholds", record)
    of = frame[(frame["method"] == "ncm") & (frame["score"] == MDT)]
    assert (of["threshold"].min(), of["threshold"].max()) == (0.1, 0.7)
    seen, new = (of[of["samples"] == side].set_index("threshold")["value"] for side in ("seen", "unseen"))
    assert (seen[0.1], new[0.1]) == (0.0, 1.0)
    assert (seen[0.7], new[0.7]) == (1.0, 0.5)
    between = new.index[(new.index > 0.41) & (new.index < 0.49)]
    assert (new[between] == 0.5).all()
    assert (seen[between].round(6) == round(4 / 6, 6)).all()


def test_classes(record: Record) -> None:
    frame = table_of("class-frequencies", record)
    first = frame[frame["seed"] == 0]
    counts, met = (first[first["what"] == what] for what in ("samples of a class", "classes met"))
    assert counts["value"].tolist() == [3, 3, 2]
    assert met["at"].tolist() == list(range(1, 9))
    assert met["value"].tolist() == [1, 2, 2, 2, 3, 3, 3, 3]
    assert set(frame["head"]) == {2}
    assert set(frame["seed"]) == {0, 1}


def priced(folder: Path, label: str, accuracy: float, forward: int, saved: int = 0) -> Run:
    compute = {"forward_macs": forward * 10**9, "backward_macs": 0, "cached_macs": saved * 10**9}
    return adapted(folder, label, 0, [accuracy], compute=compute)


def test_pareto_of_any_benchmark(tmp_path: Path) -> None:
    runs = [
        priced(tmp_path, "cheap", 0.5, 1),
        priced(tmp_path, "dear", 0.7, 9),
        priced(tmp_path, "poor", 0.4, 2),
        priced(tmp_path, "saving", 0.6, 2, saved=20),
    ]
    frame = table_of("pareto", Record(runs)).set_index(["compute", "method"])
    happened, without = CACHED, UNCACHED
    assert frame["gmac"][happened, "saving"] == 2
    assert frame["gmac"][without, "saving"] == 22
    unbeaten = frame.index[frame["on_front"]].tolist()
    assert sorted(unbeaten) == [
        *((happened, name) for name in ("cheap", "dear", "saving")),
        *((without, name) for name in ("cheap", "dear")),
    ]
    named = table_of("pareto", Record(runs), metric="batch-accuracy")
    assert set(named["metric"]) == {"batch-accuracy"}
    with pytest.raises(UserError, match="nothing to draw"):
        table_of("pareto", Record(runs), metric="oec")


def test_a_method_that_sees_more_is_never_on_the_front(tmp_path: Path) -> None:
    runs = [priced(tmp_path, "cheap", 0.5, 2), priced(tmp_path, "oracle", 0.9, 1)]
    frame = table_of("pareto", Record(runs)).set_index("method")
    assert frame["on_front"].to_dict() == {"cheap": True, "oracle": False}


@pytest.mark.parametrize(("metric", "form"), [("ood", ".0%"), ("sh", "~g")])
def test_only_shares_are_in_percent(make_record: Callable[..., Record], metric: str, form: str) -> None:
    _, chart = draw("pareto", make_record({"erm": [0.5, 0.6]}), metric=metric)
    spec = chart.to_dict()
    assert spec["layer"][0]["encoding"]["y"]["axis"]["format"] == form


def test_compute_that_is_not_counted_has_no_price(tmp_path: Path) -> None:
    unknown = {"forward_macs": None, "backward_macs": None}
    runs = [priced(tmp_path, "cheap", 0.5, 1), adapted(tmp_path, "forest", 0, [0.9], compute=unknown)]
    assert table_of("pareto", Record(runs))["method"].tolist() == ["cheap"]


@pytest.mark.parametrize("name", ["rolling-accuracy", "roc", "thresholds", "class-frequencies"])
def test_figures_are_drawn(record: Record, tmp_path: Path, name: str) -> None:
    frame, chart = draw(name, record)
    table = save(frame, chart, tmp_path / f"{name}.svg")
    assert len(table.read_text().splitlines()) == len(frame) + 1
    assert (tmp_path / f"{name}.svg").read_text().startswith("<svg")
    other = Record([adapted(tmp_path / "other", "bn", 0, [0.5])])
    with pytest.raises(UserError, match="nothing to draw"):
        draw(name, other)


def test_pareto_is_drawn(tmp_path: Path) -> None:
    runs = [priced(tmp_path, "cheap", 0.5, 1, saved=3), priced(tmp_path, "dear", 0.7, 9)]
    save(*draw("pareto", Record(runs)), tmp_path / "pareto.svg")
    assert "GMAC" in (tmp_path / "pareto.svg").read_text()


def test_less_for_the_same_price_is_beaten_and_a_tie_is_not() -> None:
    points = [(1.0, 0.6), (1.0, 0.5), (1.0, 0.6)]
    assert [is_dominated(point, points) for point in points] == [False, True, False]
