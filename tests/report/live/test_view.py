"""The picture of a sweep: finished, failed, interrupted and running ones, each number against the record."""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftline.engine.executors.base import Event
from driftline.engine.executors.status import RunningStage, SweepStatus
from driftline.engine.planning.plan import plan
from driftline.engine.run import as_spec, run_plan
from driftline.engine.stages import checkpoint
from driftline.record.card import Card, write_card
from driftline.report.live.sparkline import DIGITS, sparkline
from driftline.report.live.view import accuracy_per_step, render, seconds_left
from driftline.store.store import Store

FAILS = """
from dataclasses import dataclass
from driftline.learners.supervised.ft import FineTune

@dataclass
class Mine(FineTune):
    def learn(self, x, y):
        raise RuntimeError("the moon was full")
"""


def spec(*methods: Any) -> dict[str, Any]:
    data = {"name": "digits", "periods": 4}
    return {"benchmark": "timeline", "data": data, "model": "linear", "methods": methods, "timeline": {"resamples": 5}}


def ft() -> dict[str, Any]:
    return {"name": "ft", "updates": 5}


def seen(store: Store, **how: Any) -> list[str]:
    return list(render(store, time.time(), ascii=True, **how).lines)


def test_a_finished_sweep_with_a_failure(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(FAILS)
    store = Store.create(tmp_path / "store")
    run_plan(plan(as_spec(spec(ft()))), store)
    planned = plan(as_spec(spec(ft(), {"name": "erm", "updates": 5}, f"{mine}:Mine")))
    run_plan(planned, store)
    lines = seen(store)
    assert lines[0] == "2 of 3 stages done (1 reused), 1 failed; ended"
    at = lines.index("failed")
    assert re.fullmatch(r"  \S*Mine seed 0  RuntimeError: the moon was full", lines[at + 1])
    for run in store.record().runs:
        answers = run.table("answers")
        right = 100 * answers["correct"].mean()
        digits = "".join(DIGITS[min(9, int(10 * x))] for x in answers.groupby("step")["correct"].mean())
        (line,) = [line for line in lines if line.startswith(f"  {run.method} seed 0")]
        assert line.endswith(f" {right:.1f} % right  {digits}")
    assert not render(store, time.time()).running


def test_an_interrupted_run_says_how_far_it_is_safe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "CHECKPOINT_SECONDS", 0.0)
    store = Store.create(tmp_path)
    planned = plan(as_spec(spec(ft(), {"name": "erm", "updates": 5})))

    def stop(event: Event) -> None:
        if event.kind == "advanced" and event.done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_plan(planned, store, on_event=stop)
    lines = seen(store)
    assert lines[0] == "0 of 2 stages done (0 reused), 0 failed; stopped with 2 to do: the same command resumes"
    assert lines[1:] == ["interrupted", "  ft(updates=5) seed 0  2 steps are safe"], "the third was not saved"
    run_plan(planned, store)
    assert seen(store)[0] == "2 of 2 stages done (0 reused), 0 failed; ended"
    assert "interrupted" not in seen(store)


def test_a_running_sweep(tmp_path: Path) -> None:
    store, now = Store.create(tmp_path), time.time()
    rows = pd.DataFrame({"step": [0, 0, 1, 1], "correct": np.array([0, 0, 1, 0], "float32")})
    for part, shift in enumerate((0, 2)):
        path = store.work_folder("k1") / f"answers-{part:06d}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        rows.assign(step=rows["step"] + shift).to_parquet(path)
    write(store, running_sweep(now))
    lines = seen(store)
    assert lines[0] == "3 of 8 stages done (2 reused), 0 failed, 2 running, 3 waiting; about 50 s left"
    assert lines[2] == "  ft seed 0           ######...... 50/100  20 s left   25.0 % right  0505"
    assert lines[3] == "  pretraining seed 1  for 6 s"
    assert "interrupted" not in lines
    assert render(store, now).running
    assert not render(store, now + 1000).running, "its process gives no sign of life"


def running_sweep(now: float) -> SweepStatus:
    step = RunningStage("ft seed 0", "run", now - 30, done=50, total=100, first=40, first_at=now - 4)
    other = RunningStage("pretraining seed 1", "pretrain", now - 6)
    counts = {"reused": 2, "computed": 1, "waiting": {"run": 2, "pretrain": 1}}
    return SweepStatus(
        now - 60, **counts, durations={"pretrain": (2, 20.0), "run": (4, 132.0)}, running={"k1": step, "k2": other}
    )


def write(store: Store, sweep: SweepStatus) -> None:
    (store.folder / "status").mkdir()
    (store.folder / "status" / "a.json").write_text(json.dumps(asdict(sweep)))


def test_time_left_by_hand() -> None:
    sweep = running_sweep(1000.0)
    # ft: 10 steps took 4 s, 50 are left: 20 s. pretraining: 10 s on average, 6 gone: 4 s. Waiting: 2 x 33 s + 10 s.
    assert seconds_left(sweep, 1000.0) == pytest.approx((20 + 4 + 66 + 10) / 2)
    sweep.durations = {"pretrain": (2, 20.0)}  # no run has finished: the running one will take 30 s + 20 s
    assert seconds_left(sweep, 1000.0) == pytest.approx((20 + 4 + 100 + 10) / 2)
    sweep.waiting["fit"] = 1
    assert seconds_left(sweep, 1000.0) is None, "nothing is known of fits"


def test_a_long_list_is_cut(tmp_path: Path) -> None:
    store = Store.create(tmp_path)
    for k in range(30):
        store.run_folder(f"k{k:02d}").mkdir(parents=True)
        write_card(store.run_folder(f"k{k:02d}"), Card(label=f"m{k:02d}"))
    lines = seen(store, height=13)
    assert lines[0].startswith("no sweep is known")
    assert len(lines) == 13
    assert lines[-1] == "  and 20 more"


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=40), st.integers(1, 50))
def test_a_spark_is_the_share_of_each_part(pairs: list[tuple[int, int]], width: int) -> None:
    right = np.array([min(pair) for pair in pairs], float)
    asked = np.array([pair[1] for pair in pairs], float)
    drawn = sparkline(right, asked, width, ascii=True)
    assert len(drawn) == min(width, len(pairs))
    edges = [k * len(pairs) // len(drawn) for k in range(len(drawn) + 1)]
    for letter, start, end in zip(drawn, edges, edges[1:], strict=False):
        share = right[start:end].sum() / asked[start:end].sum()
        assert int(letter) == min(9, int(10 * share))


def test_a_rewritten_part_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "answers-000000.parquet"
    for k, correct in enumerate((0.0, 1.0)):
        pd.DataFrame({"step": [0], "correct": np.array([correct], "float32")}).to_parquet(path)
        os.utime(path, ns=(k, k))
        assert accuracy_per_step(tmp_path)[0].tolist() == [correct]
