"""A run written by hand, so that every exported number is known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from driftline.benchmarks.base import scores_frame
from driftline.record.card import Card, write_card
from driftline.record.run import Run

Make = Callable[..., Run]
SCORES = [
    {"metric": "acc", "stat": "each", "time": "1930", "value": 0.5, "low": 0.25, "high": 0.75, "n": 4},
    {"metric": "acc", "stat": "each", "time": "1940", "value": 0.75, "low": 0.5, "high": 1.0, "n": 4},
    {"metric": "acc", "stat": "mean", "value": 0.625, "low": 0.5, "high": 0.75, "n": 8},
    {"metric": "ttr", "stat": "mean", "value": float("nan"), "n": 0},
]
ANSWERS = [(0, 1.0), (0, 0.0), (1, 1.0), (1, 1.0), (1, 0.0)]
DIAGNOSTICS = [(0, "norm", 2.0), (0, "drift (a=1)", 0.5), (1, "norm", 4.0)]


@pytest.fixture
def make_run(tmp_path: Path) -> Make:
    def make(
        key: str = "00aa",
        rows: list[dict[str, Any]] = SCORES,
        answers: list[tuple[int, float]] = ANSWERS,
        diagnostics: list[tuple[int, str, float]] = DIAGNOSTICS,
        periods: tuple[str, ...] = (),
    ) -> Run:
        folder = tmp_path / "made" / key
        folder.mkdir(parents=True, exist_ok=True)
        job = {"benchmark": "timeline", "options": {"resamples": 10}, "seed": 3, "reveal": {"delay": 0, "budget": None}}
        job |= {part: {"name": name, "settings": {}} for part, name in (("data", "digits"), ("model", "linear"))}
        job |= {"method": {"name": "ft", "settings": {"lr": 0.1, "sizes": [1, 2]}}}
        card = {"key": key, "label": "ft(lr=0.1)", "run": job, "protocol": {"periods": list(periods)}}
        card |= {"data": {"fingerprint": "ff"}, "code": {"driftline": "0.1"}}
        card |= {"compute": {"forward_macs": 3_000_000_000, "backward_macs": None, "convention": "counted"}}
        scores_frame(rows).to_parquet(folder / "scores.parquet")
        if answers:
            frame = pd.DataFrame(answers, columns=["step", "correct"]).astype({"correct": "float32"})
            frame.assign(time="t" + frame["step"].astype(str)).to_parquet(folder / "answers.parquet")
        if diagnostics:
            frame = pd.DataFrame(diagnostics, columns=["step", "gauge", "value"])
            frame.assign(time="t" + frame["step"].astype(str)).to_parquet(folder / "diagnostics.parquet")
        write_card(folder, Card.model_validate(card))
        return Run(folder)

    return make
