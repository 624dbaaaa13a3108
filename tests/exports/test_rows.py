"""A run as rows: the numbers of a hand-written run, and of long ones against a plain loop."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import driftline
from driftline.exports import rows
from driftline.exports.rows import COLUMNS, _averaged, flat_settings, is_final, run_rows
from driftline.record.run import Run


def triples(frame: pd.DataFrame) -> list[tuple[str, int, float]]:
    return list(zip(frame["name"], frame["step"], frame["value"], strict=True))


def test_every_number_of_a_run_has_a_row(make_run: Callable[..., Run]) -> None:
    frame = run_rows(make_run())
    assert list(frame.columns) == COLUMNS
    assert sorted(triples(frame)) == [
        ("answers/correct", 0, 0.5),
        ("answers/correct", 1, pytest.approx(2 / 3)),
        ("compute/forward_macs", 0, 3e9),
        ("diagnostics/drift (a=1)", 0, 0.5),
        ("diagnostics/norm", 0, 2.0),
        ("diagnostics/norm", 1, 4.0),
        ("final/acc mean", 0, 0.625),
        ("scores/acc", 1930, 0.5),
        ("scores/acc", 1940, 0.75),
    ], "what is undefined is left out, and times that are numbers are steps"
    mean = frame[frame["name"] == "final/acc mean"].iloc[0]
    assert (mean["low"], mean["high"], mean["n"]) == (0.5, 0.75, 8)
    assert frame[frame["name"] == "answers/correct"]["n"].tolist() == [2, 3]
    assert frame["name"][is_final(frame)].tolist() == ["final/acc mean", "compute/forward_macs"]


def test_times_with_names_stand_in_the_order_of_the_card(make_run: Callable[..., Run]) -> None:
    each = {"metric": "acc", "stat": "each", "n": 1}
    given_ = [
        {**each, "time": time, "value": value} for time, value in (("spring", 0.1), ("autumn", 0.3), ("may", 0.2))
    ]
    frame = run_rows(make_run(rows=given_, answers=[], diagnostics=[], periods=("spring", "may", "autumn")))
    along = frame[frame["name"] == "scores/acc"]
    assert dict(zip(along["step"], along["value"], strict=True)) == {0: 0.1, 1: 0.2, 2: 0.3}
    assert along["time"].tolist() == ["spring", "autumn", "may"]


def test_a_model_of_one_time_is_followed_over_the_others(make_run: Callable[..., Run]) -> None:
    cells = [("5", "5", 0.9), ("5", "7", 0.6), ("7", "7", 0.8)]
    given_ = [{"metric": "A", "stat": "each", "time": t, "tau": tau, "value": v, "n": 1} for t, tau, v in cells]
    frame = run_rows(make_run(rows=given_, answers=[], diagnostics=[]))
    expected = [("scores/A/from 5", 5, 0.9), ("scores/A/from 5", 7, 0.6), ("scores/A/from 7", 7, 0.8)]
    assert triples(frame[~is_final(frame)]) == expected


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=60), st.integers(1, 12))
def test_long_curves_are_averaged_over_ranges_of_steps(sizes: list[int], points: int) -> None:
    answers = [(3 * k, float((7 * k + i) % 5 < 2)) for k, size in enumerate(sizes) for i in range(size)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "MAX_POINTS", points)
        frame = _averaged(pd.DataFrame(answers, columns=["step", "value"]).assign(time="t"))
    assert len(frame) <= points
    length = -(-len(sizes) // points)
    for k, row in enumerate(frame.itertuples()):
        inside = [right for step, right in answers if k * length <= step // 3 < (k + 1) * length]
        assert row.value == pytest.approx(sum(inside) / len(inside)), "of all answers, not of the steps' means"
        assert row.n == len(inside)
        assert row.step == 3 * (min((k + 1) * length, len(sizes)) - 1), "where the stretch ends"


def test_settings_are_flat_words(make_run: Callable[..., Run]) -> None:
    settings = flat_settings(make_run())
    assert settings["method.settings.lr"] == "0.1"
    assert settings["method.settings.sizes"] == "[1, 2]"
    assert settings["reveal.budget"] == "null"
    assert (settings["benchmark"], settings["seed"], settings["key"]) == ("timeline", "3", "00aa")


def test_rows_of_a_real_run_are_its_scores(tmp_path: Path) -> None:
    data = {"name": "digits", "periods": 3}
    spec = {
        "benchmark": "timeline",
        "data": data,
        "model": "logistic-regression",
        "methods": ["erm"],
        "timeline": {"resamples": 5},
    }
    (run,) = driftline.run(spec, runs=tmp_path).runs
    frame, scores, answers = run_rows(run), run.table("scores"), run.table("answers")
    cell = scores[(scores["metric"] == "accuracy") & (scores["time"] == "0") & (scores["tau"] == "2")]
    assert len(cell) == 1
    row = frame[(frame["name"] == "scores/accuracy/from 0") & (frame["step"] == 2)]
    assert row["value"].tolist() == cell["value"].tolist()
    assert row["low"].tolist() == cell["low"].tolist()
    assert len(frame[frame["name"].str.startswith(("scores/", "final/"))]) == scores["value"].notna().sum()
    along = frame[frame["name"] == "answers/correct"]
    assert (along["value"] * along["n"]).sum() == pytest.approx(answers["correct"].sum())
