"""The estimated cost of a sampled loop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from driftline.engine.build import DatasetCache
from driftline.engine.costs.profiler import LoopProfiler, profile_stage
from driftline.engine.planning.plan import plan
from driftline.engine.stages import StageContext, StreamRun
from driftline.spec import parse
from driftline.store.store import Store
from driftline.training import loops
from driftline.training.batches import fill_rows
from driftline.training.mac_counter import MacCounter

SPEC: dict[str, Any] = {
    "benchmark": "timeline",
    "data": {"name": "digits", "periods": 4},
    "model": {"name": "mlp", "width": 16},
    "methods": ["ft"],
}


class Clock:
    """A processor whose time passes when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr("driftline.device.time.process_time", lambda: self.now)

    def work(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_without_a_listener_a_loop_is_itself() -> None:
    items = [1, 2, 3]
    assert loops.sample(items) is items


def test_skipped_iterations_cost_what_the_others_do(clock: Clock) -> None:
    received, turns = LoopProfiler(1.0), 0
    with loops.use(received.sample):
        for _ in loops.sample(range(1000)):
            clock.work(0.1)
            turns += 1
    assert turns < 50
    assert received.seconds == pytest.approx(100.0)
    assert received.shortened


def test_a_cost_that_grows_along_the_loop_is_met(clock: Clock) -> None:
    received = LoopProfiler(2.0)
    with loops.use(received.sample):
        for k in loops.sample(range(1000)):
            clock.work(k * 1e-4)
    assert received.seconds == pytest.approx(sum(k * 1e-4 for k in range(1000)), rel=0.1)


def test_a_cold_first_iteration_does_not_count_for_all(clock: Clock) -> None:
    """There is no time at all, but the first iteration prepares what later ones find ready."""
    profiler = LoopProfiler(0.01)
    with loops.use(profiler.sample):
        for k in loops.sample(range(1000)):
            clock.work(0.001 if k else 0.5)
    assert profiler.seconds == pytest.approx(0.5 + 0.999)


def test_a_long_first_iteration_is_the_only_one(clock: Clock) -> None:
    profiler, turns = LoopProfiler(0.01), 0
    with loops.use(profiler.sample):
        for _ in loops.sample(range(1000)):
            clock.work(5.0)
            turns += 1
    assert turns == 1
    assert profiler.seconds == pytest.approx(5000.0)


def test_nested_loops_are_sampled_too(clock: Clock) -> None:
    received, turns = LoopProfiler(1.0), 0
    with loops.use(received.sample):
        for _ in loops.sample(range(50)):
            clock.work(1.0)
            for _ in loops.sample(range(200)):
                clock.work(0.01)
                turns += 1
    assert turns < 1000
    assert received.seconds == pytest.approx(50 * (1.0 + 2.0))


def test_a_loop_for_which_there_is_time_runs_in_full(clock: Clock) -> None:
    received, seen = LoopProfiler(10.0), []
    with loops.use(received.sample):
        for k in loops.sample(range(100)):
            clock.work(0.01)
            seen.append(k)
    assert seen == list(range(100))
    assert not received.shortened


def test_an_early_end_counts_only_if_nothing_was_left_out(clock: Clock) -> None:
    def stop_after_two() -> None:
        for k in loops.sample(range(100)):
            clock.work(0.01)
            if k == 1:
                break

    whole, cut = LoopProfiler(10.0), LoopProfiler(10.0)
    with loops.use(whole.sample):
        stop_after_two()
    assert whole.seconds == pytest.approx(0.02)
    cut.shortened = True
    before = clock.now
    with loops.use(cut.sample):
        stop_after_two()
    assert cut.seconds - before == pytest.approx(1.0), "with half-trained weights early stopping means nothing"


def test_the_time_of_counting_a_first_pass_is_not_repeated(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    received, meter, network = LoopProfiler(1.0), MacCounter(), torch.nn.Linear(1, 1)
    monkeypatch.setattr("driftline.training.mac_counter.count_macs", lambda *_, **__: clock.work(7.0) or (1, 1))
    meter.attach(network)
    with loops.use(received.sample):
        received.add_counter(meter)
        for _ in loops.sample(range(1000)):
            clock.work(0.1)
            network(torch.ones(1, 1))
    assert received.seconds == pytest.approx(107.0)
    assert meter.forward == 1000


def test_multiply_accumulates_are_extrapolated_like_seconds(clock: Clock) -> None:
    received, meter = LoopProfiler(1.0), MacCounter()
    with loops.use(received.sample):
        received.add_counter(meter)
        for _ in loops.sample(range(1000)):
            clock.work(0.1)
            meter.add(forward=3, backward=5)
    assert (meter.forward, meter.backward) == (3000, 5000)
    assert (received.macs, received.backward) == (8000, 5000)


def test_shortened_outputs_have_their_length() -> None:
    rows = torch.arange(6).reshape(3, 2)
    assert fill_rows(rows, 3) is rows
    assert fill_rows(rows, 7).tolist() == [*rows.tolist(), *rows.tolist(), rows[0].tolist()]


def test_a_profile_counts_what_the_stage_does(tmp_path: Path) -> None:
    (stage,) = plan(parse(SPEC)).stages
    store = Store.create(tmp_path / "full")
    stage.run(StageContext(store))
    compute = json.loads((store.run_folder(stage.key) / "card.json").read_text())["compute"]
    spent = sum(compute[name] for name in ("forward_macs", "backward_macs", "probe_macs"))
    cost = profile_stage(stage, Store.create(tmp_path / "profile"), DatasetCache(), seconds=0.05)
    assert cost.macs == pytest.approx(spent, rel=0.02)
    assert cost.backward == pytest.approx(compute["backward_macs"], rel=0.02)
    assert not cost.error


def test_why_a_stage_would_fail_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (stage,) = plan(parse(SPEC)).stages

    def broken(*_: Any) -> None:
        raise ValueError("no weights")

    monkeypatch.setattr(StreamRun, "run", broken)
    assert profile_stage(stage, Store.create(tmp_path), DatasetCache(), seconds=0.05).error == "ValueError: no weights"
