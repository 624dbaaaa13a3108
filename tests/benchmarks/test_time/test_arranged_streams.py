"""test-time with correlated labels, chains of corruptions and resets, from the options to the record."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import driftline
from driftline.benchmarks.test_time.benchmark import Options, TestTime
from driftline.data import load
from driftline.engine.executors.base import Event
from driftline.engine.planning.plan import plan
from driftline.engine.run import as_spec, run_plan
from driftline.engine.stages import checkpoint
from driftline.errors import UserError
from driftline.record.run import Record, Run
from driftline.report.figures.base import draw
from driftline.seeds import Seed
from driftline.store.store import Store
from driftline.streams.test_time.markov import MarkovChain

pytestmark = pytest.mark.xdist_group("arranged-streams")  # what all its tests use is made once

NAMES = "gaussian_noise,contrast,brightness"
OPTIONS: dict[str, Any] = {
    **{"order": "cin-c", "corruptions": NAMES, "images": 192, "batch": 16, "images_per_point": 32},
    **{"upstream_updates": 40, "upstream_lr": 0.01, "resamples": 20},
}
TENT = {"name": "tent", "lr": 0.05}


def spec(methods: list[Any], **options: Any) -> dict[str, Any]:
    return {
        "benchmark": "test-time",
        "data": "color-digits",
        "model": {"name": "conv-1", "width": 4},
        "methods": methods,
        "test-time": {**OPTIONS, **options},
    }


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


def only(record: Record) -> Run:
    (run,) = record.runs
    return run


def layout(**options: Any) -> Any:
    return TestTime().build_scenario(load("color-digits"), Options(**{**OPTIONS, **options}), Seed(0))


def test_a_run_without_the_new_options_keeps_its_content() -> None:
    assert not set(Options.later_options) & set(Options().model_dump(mode="json"))
    given = Options(order="chain", label_order="chain", class_imbalance=10, reset="batch")
    assert Options(**given.model_dump(mode="json")) == given
    assert set(Options.later_options) & set(given.model_dump()) == {"label_order", "class_imbalance", "reset"}


def test_the_record_has_the_chains(runs: Path) -> None:
    chains = {"order": "chain", "label_order": "chain", "class_imbalance": 10, "domain_imbalance": 2}
    run = only(driftline.run(spec(["frozen"], **chains), runs=runs))
    answers, seed = run.table("answers"), Seed(0).child("test-time")
    classes, domains = MarkovChain(10, 0.95, 10), MarkovChain(3, 0.85, 2)
    assert answers["truth"].tolist() == classes.states(192, seed.child("labels")).tolist()
    assert answers["group"].tolist() == domains.states(192, seed.child("domains")).tolist()
    assert run.card.protocol["protocol"] == "chain, labels chain, 192 images in batches of 16"
    assert run.card.protocol["class_chain"]["shares"][0] == pytest.approx(classes.shares[0], abs=1e-6)
    scores = run.table("scores")
    assert scores[scores["stat"] == "mean"]["metric"].tolist() == ["stream-accuracy", "batch-accuracy", "last-tenth"]


@pytest.mark.parametrize(("reset", "steps"), [("domain", 2), ("batch", 1)])
def test_a_reset_is_that_of_the_method_itself(runs: Path, reset: str, steps: int) -> None:
    """Two routes: the option, and a wrapper that counts steps; they agree, and differ from no reset."""
    periodic = {"name": "periodic-reset", "method": "tent", "options": {"lr": 0.05}, "reset_every": steps}
    record = driftline.run(spec([TENT, periodic], label_order="practical"), runs=runs)
    plain, expected = (run.table("answers")["prediction"] for run in record.runs)
    found = only(driftline.run(spec([TENT], label_order="practical", reset=reset), runs=runs))
    assert found.table("answers")["prediction"].equals(expected)
    assert not plain.equals(expected)
    assert found.card.protocol["protocol"].endswith(f"in batches of 16, reset before each {reset}")


def test_a_run_with_resets_that_was_stopped_ends_as_if_it_had_not(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = spec([TENT], label_order="chain", reset="domain")
    monkeypatch.setattr(checkpoint, "CHECKPOINT_SECONDS", 0.0)
    for stop in (3, 8):  # within a corruption, and where one begins
        with pytest.raises(KeyboardInterrupt):
            run_plan(plan(as_spec(given)), Store.create(tmp_path), on_event=stop_after(stop))
    resumed, never = (only(driftline.run(given, runs=folder)) for folder in (tmp_path, runs))
    for name in ("answers.parquet", "diagnostics.parquet", "card.json"):
        assert (resumed.folder / name).read_bytes() == (never.folder / name).read_bytes()


def stop_after(steps: int) -> Callable[[Event], None]:
    def watch(event: Event) -> None:
        if event.kind == "advanced" and event.done >= steps:
            raise KeyboardInterrupt

    return watch


def test_resets_come_where_corruptions_change() -> None:
    assert layout(reset="domain").restarts == {0, 2, 4, 6, 8, 10}
    assert layout().restarts == frozenset()
    gradual = layout(order="gradual", reset="domain", images=960)
    assert gradual.restarts == {0, 18, 36, 54}, "a corruption has nine points of two steps; then they come again"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reset": "domain", "order": "mixed"}, "corruptions do not come one after another"),
        ({"reset": "domain", "images_per_point": 24}, "24 images per point are not a multiple of the batch size 16"),
        ({"order": "chain", "chain": "unitta", "domain_correlation": 1}, "Use chain=sticky"),
        ({"order": "given", "stream": "order.csv", "label_order": "chain"}, "files give the order of the images"),
    ],
)
def test_refusals(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        layout(**options)


def test_settings_are_chosen_on_streams_with_the_same_order_of_labels() -> None:
    chosen_by = Options(order="chain", label_order="chain", domain_imbalance=5).validation_options()
    assert chosen_by is not None
    assert (chosen_by.order, chosen_by.corruptions, chosen_by.label_order) == ("chain", "holdout", "chain")
    practical = Options(order="cin-c", corruptions=NAMES, label_order="practical").validation_options()
    assert practical is not None
    assert (practical.order, practical.corruptions, practical.label_order) == ("holdout", None, "practical")


def test_visits(runs: Path) -> None:
    """192 images: two visits to three corruptions of 32 images; the accuracy of each, counted from the record."""
    record = driftline.run(spec(["frozen", TENT]), runs=runs)
    frame = draw("visits", record)[0]
    for run in record.runs:
        correct = run.table("answers")["correct"].to_numpy(float)
        ours = frame[frame["method"] == run.method].sort_values("visit")
        assert ours["visit"].tolist() == [1, 2]
        assert ours["value"].tolist() == pytest.approx([correct[:96].mean(), correct[96:].mean()])
        assert ours["n"].tolist() == [96, 96]
    with pytest.raises(UserError, match="no stream that visits its corruptions more than once"):
        draw("visits", driftline.run(spec(["frozen"], images=170), runs=runs))
