"""open-world from the command line to the scores, on embedded data."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import driftline
from driftline import data, registry
from driftline.benchmarks.open_world.benchmark import OpenWorldBenchmark, Options, class_counts
from driftline.engine.planning.plan import plan
from driftline.engine.run import run_plan
from driftline.engine.stages import checkpoint
from driftline.errors import UserError
from driftline.report.analysis.groups import groups
from driftline.report.analysis.result_table import tabulate
from driftline.report.analysis.summary import answer
from driftline.seeds import Seed
from driftline.spec import parse
from driftline.store.store import Store

pytestmark = pytest.mark.xdist_group("open-world")  # what all its tests use is made once

SPEC: dict[str, Any] = {
    "benchmark": "open-world",
    "data": "digit-symmetries",
    "model": {"name": "mlp", "width": 16, "depth": 1},
    "methods": [
        "frozen",
        "ncm",
        {"name": "fine-tune", "train_every": 60},
        {"name": "exemplar-tuning", "train_every": 60},
    ],
    "seeds": 1,
    "open-world": {"class_size_law": "400/(9+r)", "upstream_updates": 150, "resamples": 20, "head": 12, "block": 32},
}


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> driftline.Record:
    return driftline.run(SPEC, runs=tmp_path_factory.mktemp("runs"))


def test_answers_come_in_the_order_of_the_stream_and_scores_follow_from_them(record: driftline.Record) -> None:
    dataset, options = data.load("digit-symmetries"), Options(**SPEC["open-world"])
    layout = OpenWorldBenchmark().build_scenario(dataset, options, Seed(0))
    arrived = np.concatenate([layout.stream[k].samples.id for k in range(len(layout.stream))])
    assert len(record.runs) == len(SPEC["methods"])
    for run in record.runs:
        answers = run.table("answers")
        assert answers["id"].tolist() == arrived.tolist()
        scores = run.table("scores").set_index(["metric", "stat"])["value"]
        assert scores["overall", "mean"] == pytest.approx(answers["correct"].mean())
        per_class = answers.groupby("truth")["correct"].mean()
        assert scores["mean-class", "mean"] == pytest.approx(per_class.mean())
        known = per_class.index.isin(run.card.protocol["pretrain_classes"])
        many = (answers["truth"].value_counts().reindex(per_class.index) > 12).to_numpy()
        assert scores["novel-head", "mean"] == pytest.approx(per_class[~known & many].mean())
        assert scores["pretrain-tail", "mean"] == pytest.approx(per_class[known & ~many].mean(), nan_ok=True)


def test_a_model_that_never_changes_cannot_answer_new_classes_and_others_learn_them(record: driftline.Record) -> None:
    novel = record.scores.query("metric == 'novel-head'").set_index("method")["value"]
    assert novel["frozen"] == 0
    assert (novel.drop("frozen") > 0.3).all()


def test_no_class_is_answered_before_its_first_label(record: driftline.Record) -> None:
    learning = [run for run in record.runs if run.method != "frozen"]  # which has a row for every class
    assert len(learning) == 3
    for run in learning:
        answers, known = run.table("answers"), set(run.card.protocol["upstream_classes"])
        first = answers.drop_duplicates("truth").set_index("truth").index
        position = {k: int(np.flatnonzero(answers["truth"] == k)[0]) for k in first}
        for row, given in list(enumerate(answers["prediction"]))[1:]:  # the first answer may be made of nothing
            assert given in known or position[given] < row, f"{run.method} answered {given} at {row}"


def test_the_bill_has_both_sides(record: driftline.Record) -> None:
    cards = {run.method.split("(")[0]: run.card.compute for run in record.runs}
    inference = cards["frozen"].forward_macs
    assert cards["ncm"].forward_macs == inference
    assert (cards["ncm"].backward_macs, cards["ncm"].cached_macs) == (0, 0)
    head, backbone = 16 * 80, 64 * 16
    for name in ("fine-tune", "exemplar-tuning"):
        training_rounds = cards[name].forward_macs - inference
        assert training_rounds > 0
        assert cards[name].backward_macs == 2 * training_rounds
        assert cards[name].cached_macs == training_rounds // head * backbone
    scores = record.scores.query("metric in ('macs', 'macs-uncached')").pivot_table(
        index="method", columns="metric", values="value"
    )
    assert (scores["macs-uncached"] - scores["macs"]).max() == cards["fine-tune"].cached_macs


def test_killed_in_the_middle_of_the_stream_and_resumed_it_ends_the_same(
    record: driftline.Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "CHECKPOINT_SECONDS", 0.0)
    planned, store = plan(parse(SPEC)), Store.create(tmp_path)
    advanced = []

    def stop(event: Any) -> None:
        if event.kind == "advanced" and event.stage.is_result:
            advanced.append(event.done)
            if len(advanced) in (6, 20, 34, 48):
                raise KeyboardInterrupt

    for _ in range(5):
        try:
            run_plan(planned, store, on_event=stop)
        except KeyboardInterrupt:
            continue
    again = driftline.load(tmp_path)
    assert len(again.runs) == len(record.runs) > 0
    for run in record.runs:
        other = next(one for one in again.runs if one.key == run.key)
        for table in ("answers", "scores"):
            assert (run.folder / f"{table}.parquet").read_bytes() == (other.folder / f"{table}.parquet").read_bytes()


def test_blocks_are_no_part_of_the_outcome(record: driftline.Record, tmp_path: Path) -> None:
    methods = ["ncm", {"name": "exemplar-tuning", "train_every": 60}, {"name": "fine-tune", "train_every": 60}]
    one = driftline.run({**SPEC, "methods": methods, "open-world": {**SPEC["open-world"], "block": 1}}, runs=tmp_path)
    assert len(one.runs) == 3
    for run in one.runs:
        blocks = next(other for other in record.runs if other.method == run.method)
        for column in ("id", "prediction", "confidence", "distance"):
            assert run.table("answers")[column].equals(blocks.table("answers")[column]), (run.method, column)


def test_late_and_missing_labels(tmp_path: Path) -> None:
    methods = ["ncm", {"name": "fine-tune", "train_every": 60}, {"name": "standard-training", "train_every": 60}]
    some = driftline.run({**SPEC, "methods": methods, "reveal": {"delay": 40, "missing": 0.5}}, runs=tmp_path)
    assert len(some.runs) == 3
    for run in some.runs:
        answers, known = run.table("answers"), set(run.card.protocol["upstream_classes"])
        early = answers["prediction"].iloc[:40]
        assert run.method == "ncm" or set(early) <= known
        first = {k: int(np.flatnonzero(answers["truth"] == k)[0]) for k in answers["truth"].unique()}
        assert all(given in known | {0} or first[given] + 40 < row for row, given in enumerate(answers["prediction"]))
        assert run.card.protocol["labels_missing"] == 0.5


def test_seeds_take_the_test_sequences_in_turn_and_choosing_has_its_own() -> None:
    dataset, options = data.load("digit-symmetries"), Options(class_size_law="400/(9+r)")
    cards = [OpenWorldBenchmark().build_scenario(dataset, options, Seed(k)).protocol for k in range(4)]
    assert [card["sequence"] for card in cards] == [3, 4, 5, 3]
    assert [card["shuffle"] for card in cards] == [0, 0, 0, 1]
    chosen_by = OpenWorldBenchmark().build_scenario(dataset, options.validation_options(), Seed(0)).protocol
    assert chosen_by["role"] == "validation"
    assert all(not set(chosen_by["novel_classes"]) & set(card["novel_classes"]) for card in cards)
    assert all(card["upstream_classes"] == chosen_by["upstream_classes"] for card in cards)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"class_size_law": "many"}, "is not a law of class sizes"),
        ({"order": "backwards"}, "no order of an open world 'backwards'"),
        ({"classes": 70, "pretrain": 10, "disjoint": True}, "classes"),
        ({"sequences": 2, "validation": 2}, "leave no sequence to test on: give more sequences than validation"),
        ({"validation": 0, "role": "validation"}, "leave no sequence to choose settings by"),
        ({"head": -1}, "head"),
    ],
)
def test_what_cannot_be_is_refused_in_words(given: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        driftline.run({**SPEC, "open-world": given}, runs=tmp_path)


def test_the_answer_in_a_sentence(record: driftline.Record) -> None:
    (group,) = groups(record)
    sentence = answer(tabulate(group))
    values = record.scores.query("stat == 'mean'").pivot_table(index="method", columns="metric", values="value")
    best = values["overall"].idxmax()
    assert sentence.startswith(f"{best} is best: {100 * values['overall'].max():.1f}% [")
    assert re.search(rf"; {100 * values['novel-head'][best]:.1f}% \[[^]]*\] new classes, many samples; ", sentence)
    assert re.search(rf"; {100 * values['matched-auroc-mdt'][best]:.1f}% \[[^]]*\] novelty, time-matched", sentence)
    assert "(1 seed, n = " in sentence


def test_every_metric_on_the_card_is_registered(record: driftline.Record) -> None:
    for name in record.runs[0].card.metrics:
        registry.get("metric", name)
    assert class_counts(Options(), 10) == {"classes": 4, "pretrain": 1, "upstream_classes": 3}


def test_a_given_order_runs_through_the_loop_and_its_content_is_part_of_the_key(tmp_path: Path) -> None:
    dataset = data.load("digit-symmetries")
    rows = np.concatenate([np.flatnonzero(dataset.samples.y == k)[:5] for k in range(40)])[::-1]
    options = {**SPEC["open-world"], "stream": str(tmp_path / "order.npy"), "upstream_updates": 20}
    spec = {**SPEC, "methods": ["ncm"], "open-world": options}
    keys = []
    for chosen in (rows, rows[1:]):
        np.save(tmp_path / "order.npy", chosen)
        (run,) = driftline.run(spec, runs=tmp_path / "runs").runs
        keys.append(run.key)
        assert run.table("answers")["id"].tolist() == dataset.samples.id[chosen].tolist()
        assert run.card.protocol["order"] == f"as in {tmp_path / 'order.npy'}"
        assert run.card.protocol["upstream_samples"] == len(dataset.samples) - len(chosen)
        assert not OpenWorldBenchmark.is_full_scale(run.card)
    assert keys[0] != keys[1]
    with pytest.raises(UserError, match="has no streams to choose settings by here"):
        driftline.run({**spec, "selection": {"grid": {"ncm.n_layers": [1]}}}, runs=tmp_path / "runs")


@pytest.mark.parametrize(
    ("stream", "classes", "full"), [(["S3"], 1000, True), (["S3"], 998, False), ("a.csv", 1000, False)]
)
def test_published_sequences_have_the_published_scale(stream: Any, classes: int, full: bool) -> None:
    run = SimpleNamespace(options={"stream": stream})
    card: Any = SimpleNamespace(run=run, protocol={"counts": [3] * classes + [0]})
    assert OpenWorldBenchmark.is_full_scale(card) is full
