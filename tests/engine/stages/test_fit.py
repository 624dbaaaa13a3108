"""Fits as stages: computed once, shared, in any number of processes, and never a different result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import driftline
from driftline.cli.commands.run import run_and_print
from driftline.engine.costs.sharing import sharing_savings
from driftline.engine.executors.config import ExecutorConfig
from driftline.engine.planning.plan import plan
from driftline.engine.run import as_spec, run_plan
from driftline.engine.stages import Fit, StageContext
from driftline.errors import UserError
from driftline.io import serialization
from driftline.store.store import Store

pytestmark = pytest.mark.xdist_group("fits")  # what all its tests use is made once
FILES = ("answers.parquet", "probes.parquet", "scores.parquet", "trials.parquet", "card.json")
METHODS = ["oracle", "seq-ft", "lp-ft", "st-1", "sft", "seq-ewc"]


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bands on noise: four classes, 400 images and a test set."""
    rng = np.random.default_rng(0)
    y = np.tile(np.arange(4), 130)
    x = rng.integers(0, 120, (len(y), 16, 16, 1), dtype=np.uint8)
    for i, label in enumerate(y):
        x[i, 4 * label : 4 * label + 4] += np.uint8(90)
    path = tmp_path_factory.mktemp("data") / "bands.npz"
    np.savez(path, x=x, y=y, test=np.arange(len(y)) >= 400)
    return path


def spec(images: Path, methods: Any = METHODS, seeds: int = 1, **options: Any) -> dict[str, Any]:
    settings = {"shifts": "RL", "sizes": "60,40,40", "test": 60, "oracle": 200, "epochs": 2, "batch": 20}
    grid = {"lr": "3e-3,1e-3", "weight_decay": "1e-4", "dropout": 0, "adjacent": 0.1, "fisher": 10, "resamples": 20}
    return {
        "benchmark": "seq-to-final",
        "data": {"name": "npz", "path": str(images)},
        "model": {"name": "conv-1", "width": 2},
        "methods": methods,
        "seeds": seeds,
        "seq-to-final": {**settings, **grid, **options},
    }


def contents(folder: Path) -> dict[str, bytes]:
    return {
        f"{path.parent.name}/{path.name}": path.read_bytes()
        for path in sorted((folder / "runs").glob("*/*"))
        if path.name in FILES
    }


@pytest.fixture(scope="module")
def plain(images: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which everything was computed in one process, in order."""
    folder = tmp_path_factory.mktemp("plain")
    driftline.run(spec(images), runs=folder)
    return folder


def test_methods_share_their_fits(images: Path) -> None:
    planned = plan(as_spec(spec(images)))
    fits = [stage for stage in planned.stages if isinstance(stage, Fit)]
    assert len(fits) == len({stage.key for stage in fits})
    uses = [key for stage in planned.stages if stage.is_result for key in stage.needs]
    # oracle 2; ft 2+2; lp-ft 2+2+2; st-1 2+2; sft 2*3; ewc 2*3 and two measurements
    assert len(uses) == 2 + 4 + 6 + 4 + 6 + 8
    assert len(fits) == len(uses) - 2 - 2 - 2  # history is shared by three methods, the first step by two
    seen: set[str] = set()
    for stage in planned.stages:
        assert seen.issuperset(stage.needs)
        seen.add(stage.key)


def test_fits_are_shared_across_options_that_they_do_not_depend_on(images: Path) -> None:
    def fits(**options: Any) -> set[str]:
        planned = plan(as_spec(spec(images, ["seq-ft", "oracle"], **options)))
        return {stage.key for stage in planned.stages if isinstance(stage, Fit)}

    usual = fits()
    assert fits(resamples=7) == usual
    more = fits(lr="3e-3,1e-3,1e-2")
    assert len(more & usual) == 4  # history and oracle; what starts from a winner starts from another contest now
    assert len(fits(oracle=100) & usual) == 4  # all but the oracle's own two
    assert not fits(epochs=3) & usual
    assert not fits(shifts="LR") & usual


@pytest.mark.usefixtures("quick_workers")
def test_two_processes_give_the_same_record(images: Path, plain: Path, tmp_path: Path) -> None:
    driftline.run(spec(images), runs=tmp_path, jobs=2)
    assert contents(tmp_path) == contents(plain)


def test_a_run_without_its_fits_computes_them_itself_and_costs_the_same(
    images: Path, plain: Path, tmp_path: Path
) -> None:
    planned, store = plan(as_spec(spec(images))), Store.create(tmp_path)
    for stage in planned.stages:
        if stage.is_result:
            stage.run(StageContext(store))
    assert contents(tmp_path) == contents(plain)


def test_a_half_done_plan_goes_on_where_it_stopped(images: Path, plain: Path, tmp_path: Path) -> None:
    planned, store = plan(as_spec(spec(images))), Store.create(tmp_path)
    for stage in planned.stages[:11]:
        stage.run(StageContext(store))
    cut = store.stage_path(planned.stages[4].key)
    cut.write_bytes(cut.read_bytes()[:100])  # and one file was only half written
    summary = run_plan(planned, store)
    assert planned.stages[4] in summary.computed
    assert planned.stages[3] in summary.reused
    assert contents(tmp_path) == contents(plain)


def test_what_a_fit_left_can_be_looked_at_without_reading_its_weights(images: Path, plain: Path) -> None:
    planned = plan(as_spec(spec(images)))
    (first, *_) = [stage for stage in planned.stages if isinstance(stage, Fit)]
    path = Store.open(plain).stage_path(first.key)
    short, whole = serialization.load_metadata(path), serialization.load(path)
    assert short["score"] == whole["score"]
    assert set(short["weights"]) == set(whole["weights"])
    assert not any(value is not None for value in short["weights"].values())


def test_what_sharing_saved_adds_up(images: Path, plain: Path) -> None:
    planned, store = plan(as_spec(spec(images))), Store.open(plain)
    saved = sharing_savings(planned, store)
    assert saved is not None
    assert (saved.fits, saved.fits_without_sharing) == (24, 30)
    record = store.record(planned.run_keys)
    bills = sum(card.compute.forward_macs + card.compute.backward_macs for card in record.cards)
    answering = sum(_answering(run) for run in record.runs)
    assert saved.macs_without_sharing == bills - answering
    assert saved.macs < saved.macs_without_sharing


def _answering(run: Any) -> int:
    """What it cost to answer the steps on the way: the answers before the fits were put on the bill."""
    return int(run.table("answers")["forward_macs"].max())


def test_the_card_names_what_was_chosen(plain: Path) -> None:
    cards = {card.label: card for card in Store.open(plain).record().cards}
    protocol = cards["lp-ft"].protocol
    assert protocol["trials"] == 6
    assert [(row["train"], row["layers"]) for row in protocol["chosen"]] == [("0,1", "all"), ("2", "fc"), ("2", "all")]
    assert all(row["lr"] in (3e-3, 1e-3) for row in protocol["chosen"])
    trials = {run.card.label: run.table("trials") for run in Store.open(plain).record().runs}["lp-ft"]
    assert len(trials) == 6
    assert trials.loc[trials["picked"], "score"].tolist() == [row["score"] for row in protocol["chosen"]]


def test_the_oracle_trains_on_more_and_is_tested_on_the_same(plain: Path) -> None:
    runs = {run.card.label: run for run in Store.open(plain).record().runs}
    oracle, tuned = runs["oracle"].table("probes"), runs["seq-ft"].table("probes")
    assert oracle["id"].tolist() == tuned["id"].tolist()
    answers = runs["oracle"].table("answers")
    assert (answers["step"] == 2).sum() == 200
    assert (runs["seq-ft"].table("answers")["step"] == 2).sum() == 40


def test_label_budget_and_delay_reach_the_fits(images: Path, tmp_path: Path) -> None:
    given = {**spec(images, ["seq-erm"]), "reveal": {"delay": 1, "budget": 24}}
    (run,) = driftline.run(given, runs=tmp_path).runs
    assert set(run.table("trials")["train"]) == {"0,1"}  # the last step's labels never came


def test_other_methods_meet_this_benchmark_and_these_meet_others(images: Path, tmp_path: Path) -> None:
    record = driftline.run(spec(images, [{"name": "ft", "updates": 3}, {"name": "si", "updates": 3}]), runs=tmp_path)
    assert [card.protocol["trials"] for card in record.cards] == [0, 0]
    timeline = {"benchmark": "timeline", "data": {"name": "digits", "periods": 2}, "model": "linear"}
    (run,) = driftline.run({**timeline, "methods": ["baseline"], "timeline": {"resamples": 10}}, runs=tmp_path).runs
    assert run.card.protocol["trials"] == 1  # outside seq-to-final a planned method has one learning rate


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"shifts": "RX"}, "X"),
        ({"shifts": "LLLL", "sizes": "40,40,40,40,40"}, "four flips restore"),
        ({"sizes": "60,40"}, "3 steps"),
        ({"sizes": "4000,40,40"}, "1,000 samples of class"),
        ({"shifts": "sR"}, "sub-class"),
        ({"test": 4000}, "test"),
        ({"oracle": 20}, "oracle"),
        ({"lr": "fast"}, "lr"),
        ({"lr": 0}, "lr"),
        ({"dropout": 1.5}, "dropout"),
        ({"shifts": "rot9"}, "rot8"),
        ({"first": 1930}, "first has no effect on a sequence of shifts"),
        ({"shifts": "time"}, "sizes has no effect with shifts=time"),
        ({"budget": "all"}, "budget"),
        ({"shift": "R"}, "shifts"),
    ],
)
def test_bad_input_is_refused_before_training(images: Path, change: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=words):
        driftline.run(spec(images, ["seq-ft"], **change), runs=tmp_path)
    assert not (tmp_path / "stages").exists()


def test_side_blocks_of_conv_nets_are_explained(images: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="dash"):
        driftline.run(spec(images, ["st-b"]), runs=tmp_path)


def test_a_sequence_without_an_oracle_refuses_the_oracle(images: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="leave it out"):
        driftline.run(spec(images, ["oracle"], oracle=0), runs=tmp_path)


def test_sharing_is_told_on_the_command_line(images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = as_spec(spec(images, ["seq-ft", "lp-ft"]))
    assert run_and_print(given, Store.create(tmp_path), None, ExecutorConfig(), False) == 0
    assert len(Store.open(tmp_path).record()) == 2
    assert "8 fits; 10 if no run shared one with another" in capsys.readouterr().out


BLOCK = """
from dataclasses import dataclass
import numpy as np
from driftline.shifts import Shift

@dataclass(frozen=True)
class Darker(Shift):
    amount: float = {amount}
    target = "images"
    amount_range = (0.0, 255.0)

    def images(self, images, labels, rng, white):
        return np.maximum(images.astype(int) - int(self.amount), 0).astype(np.uint8)
"""


def test_editing_a_block_of_ones_own_makes_it_another_sequence(images: Path, tmp_path: Path) -> None:
    file = tmp_path / "darker.py"
    keys = []
    for amount in (10, 10, 200):
        file.write_text(BLOCK.format(amount=amount))
        given = spec(images, ["baseline"], shifts=f"{file}:Darker,R")
        keys.append(plan(as_spec(given)).run_keys)
    assert keys[0] == keys[1] != keys[2]
