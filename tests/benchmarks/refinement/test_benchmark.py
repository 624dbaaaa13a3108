"""Refinement: the worked example through a record, what is examined and when, and runs that agree with their record."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import driftline
from driftline.benchmarks.refinement import scores as refinement_scores
from driftline.benchmarks.refinement.benchmark import Options, Refinement
from driftline.data import load
from driftline.engine.executors.base import Event
from driftline.engine.planning.plan import plan
from driftline.engine.run import as_spec, run_plan
from driftline.engine.stages import Pretrain, checkpoint
from driftline.errors import UserError
from driftline.record.card import Card, RunSettings, write_card
from driftline.record.run import Record, Run
from driftline.report.analysis.composition import of_group
from driftline.report.analysis.groups import groups
from driftline.report.analysis.result_table import tabulate
from driftline.report.page.page import page
from driftline.report.tables.captions import formulas
from driftline.seeds import Seed
from driftline.spec import parse
from driftline.store.store import Store
from driftline.types import Samples, Step

pytestmark = pytest.mark.xdist_group("refinement")  # what all its tests use is made once

OPTIONS: dict[str, Any] = {
    **{"episodes": 6, "queries_per_episode": 20, "period": 2, "past": 30, "upstream_set": 60, "held_out": 20},
    **{"upstream_updates": 150, "alpha": 0.6, "resamples": 20},
}
SPEC: dict[str, Any] = {
    "benchmark": "refinement",
    "data": {"name": "digit-clusters", "train": 300, "copies": 1},
    "model": {"name": "mlp", "width": 32},
    "methods": ["frozen", {"name": "cft", "lr": 0.005}, {"name": "er", "epochs": 3}],
    "refinement": OPTIONS,
}

# The worked example: three episodes of four queries, before and after refinement.
BEFORE = [[1, 1, 0, 1], [1, 0, 0, 1], [0, 1, 0, 0]]
AFTER = [[0, 1, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0]]
UPSTREAM, HELD_OUT = [4, 3, 3, 2], [2, 2, 3, 4]  # right answers of f_0 .. f_3, out of 4 and 5
PAST = {"after": {2: (4, 4), 3: (6, 8)}, "before": {1: (3, 4), 2: (7, 8)}}


def right(count: int, of: int) -> list[int]:
    return [1] * count + [0] * (of - count)


def table(step: int, ids: Any, correct: Any, **more: Any) -> pd.DataFrame:
    return pd.DataFrame({"step": step, "id": ids, "correct": np.array(correct, np.float32), **more})


def worked_example(folder: Path, indexing: str, csr: str = "inclusive", *, errors_only: bool = False) -> Run:
    """A record of the worked example, made by hand."""
    ids = np.arange(12).reshape(3, 4)
    answers = [table(t, ids[t], row) for t, row in enumerate(BEFORE)]
    asked = [(np.array(row) < 1) | (not errors_only) for row in BEFORE]
    probes = [table(t, ids[t][asked[t]], np.array(row)[asked[t]], probe="now") for t, row in enumerate(AFTER)]
    for k in range(1, 4) if indexing == "after" else range(3):
        probes.append(table(k - 1, 100 + np.arange(4), right(UPSTREAM[k], 4), probe="upstream"))
        probes.append(table(k - 1, 200 + np.arange(5), right(HELD_OUT[k], 5), probe="held out"))
    for k, (count, of) in PAST[indexing].items():
        probes.append(table(k - 1, np.arange(of), right(count, of), probe="past"))
    return record(folder, answers, probes, indexing=indexing, csr=csr)


def record(folder: Path, answers: list[pd.DataFrame], probes: list[pd.DataFrame], **options: Any) -> Run:
    pd.concat(answers).to_parquet(folder / "answers.parquet")
    pd.concat(probes).to_parquet(folder / "probes.parquet")
    steps = [str(t + 1) for t in range(len(answers))]
    output = {"options": {"resamples": 200, **options}, "seed": 0}
    protocol = {"periods": steps, "label_delay_steps": 0}
    write_card(folder, Card(run=RunSettings.model_validate(output), protocol=protocol))
    return Run(folder)


def curve(scores: pd.DataFrame, metric: str) -> dict[str, float]:
    rows = scores[(scores["metric"] == metric) & (scores["stat"] == "each")]
    return {t: round(value, 6) for t, value in zip(rows["time"], rows["value"], strict=True)}


def summary(scores: pd.DataFrame, stat: str) -> dict[str, float]:
    rows = scores[scores["stat"] == stat]
    return {metric: round(value, 6) for metric, value in zip(rows["metric"], rows["value"], strict=True)}


def test_the_worked_example_as_the_paper_defines_it(tmp_path: Path) -> None:
    scores = Refinement().score(worked_example(tmp_path, "after"))
    assert curve(scores, "efr") == {"1": 1.0, "2": 0.5, "3": 0.666667}
    assert curve(scores, "ukr") == {"1": 0.75, "2": 0.75, "3": 0.5}
    assert curve(scores, "okr") == {"2": 1.0, "3": 0.75}, "before the second step there are no past queries"
    assert curve(scores, "csr") == {"1": 0.75, "2": 0.625, "3": 0.5}
    assert curve(scores, "kg") == {"1": 0.4, "2": 0.6, "3": 0.8}
    mean, final = summary(scores, "mean"), summary(scores, "final")
    assert mean == {"efr": 0.722222, "ukr": 0.666667, "okr": 0.875, "csr": 0.625, "kg": 0.6, "oec": 0.691667}
    assert final == {"efr": 0.666667, "ukr": 0.5, "okr": 0.75, "csr": 0.5, "kg": 0.8, "oec": 0.6375}


def test_a_record_of_the_errors_alone_has_the_scores_of_a_whole_one(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("whole", "errors")]
    for folder in folders:
        folder.mkdir()
    whole, errors = (worked_example(folder, "after", errors_only=folder.name == "errors") for folder in folders)
    assert (len(whole.table("probes")), len(errors.table("probes"))) == (51, 45)
    pd.testing.assert_frame_equal(Refinement().score(whole), Refinement().score(errors), check_exact=True)


def test_the_worked_example_as_the_code_indexes_it(tmp_path: Path) -> None:
    scores = Refinement().score(worked_example(tmp_path, "before"))
    assert curve(scores, "efr") == {"1": 1.0, "2": 0.5, "3": 0.666667}
    assert curve(scores, "ukr-before") == {"1": 1.0, "2": 0.75, "3": 0.75}
    assert curve(scores, "okr-before") == {"2": 0.75, "3": 0.875}
    assert curve(scores, "kg-before") == {"1": 0.4, "2": 0.4, "3": 0.6}
    assert summary(scores, "mean")["oec"] == 0.684375
    assert summary(scores, "final")["oec"] == 0.68125


def test_strict_success_leaves_the_present_episode_out(tmp_path: Path) -> None:
    scores = Refinement().score(worked_example(tmp_path, "after", csr="strict"))
    assert curve(scores, "csr-strict") == {"2": 0.75, "3": 0.625}


def test_every_number_says_what_it_rests_on(tmp_path: Path) -> None:
    scores = Refinement().score(worked_example(tmp_path, "after"))
    last = scores[scores["stat"] == "final"].set_index("metric")["n"].to_dict()
    assert last == {"efr": 3, "ukr": 4, "okr": 8, "csr": 12, "kg": 5, "oec": 4}
    times = scores[scores["stat"] == "mean"].set_index("metric")["n"].to_dict()
    assert times == {"efr": 3, "ukr": 3, "okr": 2, "csr": 3, "kg": 3, "oec": 2}
    known = scores.dropna(subset="low")
    assert ((known["low"] <= known["value"] + 1e-9) & (known["value"] <= known["high"] + 1e-9)).all()


def test_without_errors_there_is_nothing_to_fix(tmp_path: Path) -> None:
    answers = [table(0, [1, 2], [1, 1]), table(1, [3, 4], [1, 0])]
    probes = [table(0, [1, 2], [1, 1], probe="now"), table(1, [3, 4], [0, 1], probe="now")]
    scores = Refinement().score(record(tmp_path, answers, probes))
    assert curve(scores, "efr") == {"2": 1.0}, "the right answer that was broken is no error that was fixed"
    assert summary(scores, "mean")["efr"] == 1.0
    assert summary(scores, "final")["csr"] == 0.75
    assert np.isnan(summary(scores, "final")["oec"]), "nothing was examined"


def test_a_query_that_comes_twice_is_found_at_both_places() -> None:
    stream = pd.Series([7, 8, 7, 9])
    assert refinement_scores.stream_positions(pd.Series([7, 9, 7]), stream).tolist() == [0, 3, 2]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Record:
    return driftline.run(SPEC, runs=tmp_path_factory.mktemp("runs"))


def by_method(record: Record) -> dict[str, Run]:
    return {run.method.partition("(")[0]: run for run in record.runs}


def test_scores_agree_with_a_direct_count(small: Record) -> None:
    assert small.runs
    for run in small.runs:
        answers, probes, scores = run.table("answers"), run.table("probes"), run.table("scores")
        wrong = answers[answers["correct"] < 1]
        now = probes[probes["probe"] == "now"]
        again = wrong[["step", "id"]].merge(now, on=["step", "id"])
        expected: Any = again.groupby("step")["correct"].mean()
        assert curve(scores, "efr") == {str(t + 1): round(value, 6) for t, value in expected.items()}
        for metric, name in (("ukr", "upstream"), ("kg", "held out"), ("okr", "past")):
            exam: Any = probes[probes["probe"] == name].groupby("step")["correct"].mean()
            assert curve(scores, metric) == {str(t + 1): round(value, 6) for t, value in exam.items()}
        assert summary(scores, "final")["csr"] == pytest.approx(answers["correct"].mean(), abs=1e-6)


def test_frozen_fixes_nothing_and_forgets_nothing(small: Record) -> None:
    runs = by_method(small)
    frozen, tuned = (runs[name].table("scores") for name in ("frozen", "cft"))
    assert set(curve(frozen, "efr").values()) == {0.0}
    assert len(set(curve(frozen, "ukr").values())) == 1
    assert summary(tuned, "mean")["efr"] > 0.3
    assert summary(frozen, "final")["ukr"] > 0.8, "the upstream model has been trained"


def test_all_methods_have_the_same_evaluations(small: Record) -> None:
    columns = ["step", "time", "probe", "id", "group", "truth"]
    tables = [run.table("probes").query("probe != 'now'")[columns].reset_index(drop=True) for run in small.runs]
    first, *others = tables
    assert all(first.equals(other) for other in others)
    sizes: Any = first.groupby(["probe", "step"]).size()
    assert sizes["upstream"].to_dict() == {1: 60, 3: 60, 5: 60}
    assert sizes["held out"].to_dict() == {1: 100, 3: 100, 5: 100}
    assert sizes["past"].to_dict() == {1: 20, 3: 30, 5: 30}


def test_the_errors_of_each_episode_are_asked_again_and_nothing_else_of_it(small: Record) -> None:
    for run in small.runs:
        answers, probes = run.table("answers"), run.table("probes")
        errors, again = answers[answers["correct"] < 1], probes[probes["probe"] == "now"]
        assert 0 < len(errors) < len(answers)
        assert again[["step", "id", "truth"]].to_numpy().tolist() == errors[["step", "id", "truth"]].to_numpy().tolist()


@pytest.mark.parametrize("options", [{}, {"role": "validation"}, {"validation": None}])
def test_no_base_image_is_shared_by_training_stream_and_held_out_sets(options: dict[str, Any]) -> None:
    scenario = Refinement().build_scenario(load("digit-clusters"), Options(episodes=30, **options), Seed(0))
    probes = {probe.name: probe.samples.id for probe in scenario.probes.large_evaluation(0)}
    sets = [scenario.upstream.id, probes["upstream"], probes["held out"]]
    images = [set((ids % 1797).tolist()) for ids in (*sets, np.concatenate([s.samples.id for s in scenario.stream]))]
    if (
        options.get("role") == "validation"
    ):  # from 82 images, of which an episode may need 64; in both sets, but no stream
        assert images[1] == images[2]
        images[2] = set()
        assert [len(one) for one in images[:3]] == [700, 18, 0]
    else:
        assert [len(one) for one in images[:3]] == [700, 512, 256]
    assert len(set.union(*images)) == sum(map(len, images)), "an image has two uses"


def test_past_queries_are_past(small: Record) -> None:
    run = small.runs[0]
    answers, probes = run.table("answers"), run.table("probes")
    for t in (1, 3, 5):
        asked = set(probes.loc[(probes["probe"] == "past") & (probes["step"] == t), "id"])
        assert asked <= set(answers.loc[answers["step"] < t, "id"])


def test_the_first_episode_is_upstream_and_the_card_tells_the_rest(small: Record) -> None:
    protocol, answers = small.runs[0].card.protocol, small.runs[0].table("answers")
    counted = pd.crosstab(answers["step"], answers["group"]).reindex(columns=range(6), fill_value=0)
    assert counted.to_numpy().tolist() == protocol["composition"]
    assert protocol["composition"][0] == [20, 0, 0, 0, 0, 0]
    assert [row[0] for row in protocol["composition"]] == [20, 12, 7, 4, 2, 1]
    assert protocol["upstream_samples"] == 300
    assert small.runs[0].card.metrics.keys() == {"efr", "ukr", "okr", "csr", "kg", "oec"}


def layout(seed: int = 0, **options: Any) -> Any:
    data = load("digit-clusters", {"train": 300, "copies": 1})
    return Refinement().build_scenario(data, Options(**{**OPTIONS, **options}), Seed(seed))


def ids_of(laid_out: Any) -> list[list[int]]:
    return [laid_out.stream[t].samples.id.tolist() for t in range(len(laid_out.stream))]


def test_streams_are_replicates_over_the_same_pools() -> None:
    own = [ids_of(layout(seed)) for seed in range(3)]
    assert own[0] != own[1] != own[2]
    shared = [ids_of(layout(seed, streams=2)) for seed in range(4)]
    assert shared[0] == shared[2] == own[0]
    assert shared[1] == shared[3] == own[1]
    assert ids_of(layout(0, first_stream=1)) == own[1]
    exams = [layout(seed).probes.held_out.id.tolist() for seed in range(2)]
    assert exams[0] == exams[1], "seeds differ in their stream, not in what is held out"


def test_no_sample_has_two_uses() -> None:
    test, validation = layout(), layout(role="validation")
    uses = [
        set(test.upstream.id.tolist()),
        set(test.probes.upstream_set.id.tolist()),
        set(test.probes.held_out.id.tolist()),
        set(test.stream.samples.id.tolist()),
        set(validation.stream.samples.id.tolist()),
    ]
    assert sum(map(len, uses)) == len(set.union(*uses))


def test_upstream_data_that_nobody_marked_are_divided_at_random() -> None:
    unmarked = replace(load("digit-clusters", {"train": 300, "copies": 1}), test=None)
    laid_out = Refinement().build_scenario(unmarked, Options(**OPTIONS), Seed(0))
    assert laid_out.upstream is not None
    assert len(laid_out.upstream) == round(0.5 * 1797)
    assert "at random" in laid_out.protocol["upstream_samples_are"]


def test_clusters_of_own_data_are_names_in_samples_or_in_a_column() -> None:
    """Both routes give the same queries; upstream is the cluster of that name, else the earliest one."""
    rng = np.random.default_rng(0)
    x, where = rng.normal(size=(300, 2)).astype(np.float32), rng.choice(["sea", "home", "abroad"], 300)
    where[0], y = "home", np.arange(300) % 2
    frame = pd.DataFrame(x, columns=["a", "b"]).assign(y=np.where(y, "yes", "no"), day=np.arange(300), where=where)
    options = Options(episodes=2, queries_per_episode=8, upstream_set=8, held_out=4)

    def built(data: Any, **columns: str) -> Any:
        name = {"name": data, "time": "day", "target": "y", **columns} if columns else data
        spec = parse({"benchmark": "refinement", "data": name, "methods": ["cft"]})
        dataset = load(spec.data.name, spec.data.settings)
        return Refinement().build_scenario(dataset, options, Seed(0))

    named = built(Samples(x=x, y=y, time=np.arange(300), group=where))
    table = built(frame, cluster="where")
    renamed = built(frame.replace({"where": {"abroad": "upstream"}}), cluster="where")
    assert named.protocol == table.protocol
    assert table.protocol["clusters"][1:] == list(dict.fromkeys(where[where != "home"]))
    assert set(renamed.protocol["clusters"][1:]) == {"home", "sea"}
    assert set(where[table.upstream.id]) == {"home"}
    assert set(where[renamed.upstream.id]) == {"abroad"}
    steps = [(scenario.stream[k].samples for k in range(2)) for scenario in (named, table)]
    for one, other in zip(*steps, strict=True):
        np.testing.assert_array_equal(one.x, other.x)
        names = np.array(table.stream.names)[np.asarray(other.group)]
        assert np.where(names == "upstream", "home", names).tolist() == where[other.id].tolist()
    for data in (Samples(x=x, y=y), Samples(x=x, y=y, group=np.full(300, "home"))):
        with pytest.raises(UserError, match=r"name them with --set data\.cluster=COLUMN of a table or Samples\(group"):
            built(data)


def test_streams_of_all_kinds_share_one_upstream_model() -> None:
    def upstream(**options: Any) -> set[str]:
        spec = as_spec({**SPEC, "refinement": {**OPTIONS, **options}})
        return {stage.key for stage in plan(spec).stages if isinstance(stage, Pretrain)}

    assert len(upstream()) == 1
    assert upstream() == upstream(beta=0.1, episodes=4, role="validation")
    assert upstream() != upstream(upstream_updates=151)
    assert upstream() != upstream(split=1)


def test_the_last_evaluation_follows_after_the_learner_has_finished() -> None:
    exams = layout().probes
    last = exams.stream[5]
    assert [probe.name for probe in exams.due(last)] == ["now"]
    assert [probe.name for probe in exams.due(None)] == ["upstream", "held out", "past"]
    assert [probe.name for probe in exams.due(exams.stream[1])] == ["now", "upstream", "held out", "past"]
    assert [probe.name for probe in exams.due(exams.stream[2])] == ["now"]


MEMORY = """
from dataclasses import dataclass, replace
import numpy as np
from driftline.learners.base import Learner
from driftline.types import Reveal

@dataclass
class Memory(Learner):
    min_reveal = Reveal.ERRORS

    def prepare(self, model, task, upstream=None):
        super().prepare(model, task, upstream)
        self.known = {}

    def predict(self, x):
        answers = super().predict(x)
        kept = [self.known.get(row.tobytes().hex(), said) for row, said in zip(x, answers.prediction)]
        return replace(answers, prediction=np.array(kept))

    def learn(self, x, y):
        self.known.update({row.tobytes().hex(): int(label) for row, label in zip(x, y)})
"""


@pytest.mark.parametrize("delay", [0, 2])
def test_errors_are_evaluated_again_once_their_labels_have_been_learned(tmp_path: Path, delay: int) -> None:
    (tmp_path / "memory.py").write_text(MEMORY)
    spec = {**SPEC, "methods": [f"{tmp_path / 'memory.py'}:Memory"], "reveal": {"delay": delay}}
    record = driftline.run(spec, runs=tmp_path / "runs")
    (run,), table = record.runs, tabulate(groups(record)[0])
    fixed = curve(run.table("scores"), "efr")
    (formula,) = [text for name, text in formulas(table) if "EFR" in name]
    assert "EFR(t) = Acc(f_{t+delay}, E_t)" in formula
    assert formula.endswith(f", delay = {delay}")
    assert fixed == {str(t): 1.0 for t in range(1, 7 - delay)}, "the labels of the last episodes never arrive"
    assert summary(run.table("scores"), "mean")["efr"] == 1.0


def test_the_code_examines_the_models_that_enter_a_step(small: Record, tmp_path: Path) -> None:
    methods = SPEC["methods"][:2]
    before = driftline.run({**SPEC, "methods": methods, "refinement": {**OPTIONS, "indexing": "before"}}, runs=tmp_path)
    runs, usual = by_method(before), by_method(small)
    probes = runs["cft"].table("probes")
    large = probes[probes["probe"] != "now"].groupby("step")["probe"].unique().map(sorted).to_dict()
    assert large == {-1: ["held out", "upstream"], **{k: ["held out", "past", "upstream"] for k in (1, 3, 4)}}
    frozen = curve(usual["frozen"].table("scores"), "ukr")["6"]
    assert curve(runs["cft"].table("scores"), "ukr-before")["1"] == frozen, "f_0 is the upstream model"
    assert curve(runs["cft"].table("scores"), "ukr-before")["5"] == curve(usual["cft"].table("scores"), "ukr")["4"]
    assert runs["cft"].table("answers").equals(usual["cft"].table("answers")), "examining changes nothing"
    assert tabulate(groups(before)[0]).columns[2].metric == "ukr-before"


def test_a_run_that_was_stopped_half_way_ends_as_if_it_had_not(
    small: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "CHECKPOINT_SECONDS", 0.0)
    spec = {**SPEC, "methods": SPEC["methods"][2:]}
    with pytest.raises(KeyboardInterrupt):
        run_plan(plan(as_spec(spec)), Store.create(tmp_path), on_event=stop_after(3))
    assert list((tmp_path / "work").glob("*/checkpoint.safetensors"))
    (resumed,), never = driftline.run(spec, runs=tmp_path).runs, by_method(small)["er"]
    for name in ("answers.parquet", "probes.parquet", "scores.parquet", "card.json"):
        assert (resumed.folder / name).read_bytes() == (never.folder / name).read_bytes()


def stop_after(steps: int) -> Callable[[Event], None]:
    def watch(event: Event) -> None:
        if event.kind == "advanced" and event.done >= steps:
            raise KeyboardInterrupt

    return watch


def test_the_report_shows_curves_and_what_the_stream_is_made_of(small: Record) -> None:
    results = tabulate(groups(small)[0])
    assert [(column.metric, column.stat) for column in results.columns][:2] == [("oec", "final"), ("efr", "mean")]
    (_, queries), (_, errors) = of_group(results.group)
    assert sum(queries.values("count")) == 120
    frozen = by_method(small)["frozen"].table("answers")
    assert sum(errors.values("count")) == (frozen["correct"] < 1).sum()
    text = page(small)
    assert "queries in stream 0, by cluster" in text
    assert "errors of the upstream model in stream 0, by cluster" in text


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"data": "digits"}, "dataset 'digits' has no clusters"),
        ({"refinement": {"beta": 1.5}}, "refinement: 'beta' input should be less than or equal to 1; got 1.5"),
        ({"refinement": {"gamma": -0.1}}, "refinement: 'gamma' input should be greater than or equal to 0"),
        (
            {"refinement": {**OPTIONS, "queries_per_episode": 2000}},
            "'upstream' has .* samples, and an episode may need 2000 of them",
        ),
        (
            {"refinement": {**OPTIONS, "alpha": 0, "gamma": 1, "queries_per_episode": 1110}},
            "'rot90' has 1063 samples, and an episode may need 1110 of them",
        ),
        ({"refinement": {**OPTIONS, "held_out": 5000}}, "'upstream' has 1,497 samples: 5,060 are held out"),
        (
            {"refinement": {**OPTIONS, "repeats": False, "queries_per_episode": 300, "episodes": 50}},
            "are left: give larger pools",
        ),
        ({"methods": ["ft"]}, "ft needs all labels, and refinement reveals the labels of its errors"),
        ({"reveal": {"delay": 6}}, "The label delay is 6 steps but the stream has only 6"),
    ],
)
def test_what_cannot_be_done_is_refused_before_it_is_tried(
    changes: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=sentence):
        driftline.run({**SPEC, **changes}, runs=tmp_path)


def test_probes_of_a_step_belong_to_it() -> None:
    exams = layout().probes
    step: Step = exams.stream[2]
    (now,) = exams.due(step)
    assert now.samples is step.samples


def test_a_given_order_is_the_stream_and_no_image_of_it_is_used_otherwise(tmp_path: Path) -> None:
    data = load("digit-clusters", {"train": 300, "copies": 1})
    assert data.base is not None
    rows = np.random.default_rng(0).permutation(np.flatnonzero(data.test))[:90]
    steps = np.repeat([1, 2, 5], [20, 30, 40])
    pd.DataFrame({"row": rows, "step": steps}).to_csv(tmp_path / "order.csv", index=False)
    given = layout(stream=str(tmp_path / "order.csv"))
    assert ids_of(given) == [data.samples.id[rows[steps == k]].tolist() for k in (1, 2, 5)]
    groups = [given.stream[t].samples.group for t in range(3)]
    assert [group.tolist() for group in groups] == [data.samples.group[rows[steps == k]].tolist() for k in (1, 2, 5)]
    assert given.protocol["composition"] == [np.bincount(group, minlength=6).tolist() for group in groups]
    assert given.protocol["evaluated_models"] == [2, 3]
    base = dict(zip(data.samples.id.tolist(), data.base.tolist(), strict=True))
    sets = (given.upstream, given.probes.upstream_set, given.probes.held_out)
    assert [len(one) for one in sets[1:]] == [60, 5 * 20]
    for one in sets:
        assert not {base[name] for name in one.id.tolist()} & set(data.base[rows].tolist())
    assert [len(step) for step in ids_of(layout(1, stream=str(tmp_path / "order.csv"), queries_per_episode=7))] == [
        20,
        30,
        40,
    ]
    upstream = np.flatnonzero(data.samples.group == 0)[:50]
    marks = pd.DataFrame({"row": [*rows, *upstream[~np.isin(upstream, rows)]]})
    marks["split"] = np.where(marks.index < 90, "stream", "upstream")
    marks.to_csv(tmp_path / "marked.csv", index=False)
    marked = layout(stream=str(tmp_path / "marked.csv"))
    assert marked.upstream.id.tolist() == sorted(data.samples.id[marks["row"][90:]].tolist())
    marks.loc[95, "row"] = next(k for k in np.flatnonzero(data.samples.group == 3) if k not in rows)
    marks.to_csv(tmp_path / "marked.csv", index=False)
    with pytest.raises(UserError, match="marks samples as upstream that are of another cluster"):
        layout(stream=str(tmp_path / "marked.csv"))
    np.save(tmp_path / "order.npy", rows)
    assert [len(step) for step in ids_of(layout(stream=str(tmp_path / "order.npy"), queries_per_episode=40))] == [
        40,
        40,
        10,
    ]


def test_released_lists_of_streams_run_with_the_published_answers(tmp_path: Path) -> None:
    def record(name: str, k: int, answer: str = "yes") -> dict[str, Any]:
        parts = {"input": f"Premise: {name} {k} </s> Hypothesis: h | Options: a, b ", "truth": ["yes"]}
        return {**parts, "id": f"{name}-validation-{k}", "mistake": answer, "data_name": name, "init_status": "pass"}

    streams = [[[record("snli", 10), record("anli", 10 + t, "no")], [record("anli", 12)]] for t in range(2)]
    (tmp_path / "b=2-test.json").write_text(json.dumps(streams), encoding="utf-8")
    for part, names in (("upstream", ["snli"] * 3), ("heldout", ["anli"] * 4)):
        lines = [json.dumps(record(name, k, "no" if k else "yes")) for k, name in enumerate(names)]
        (tmp_path / f"{part}_eval.jsonl").write_text("\n".join(lines), encoding="utf-8")
    files = [str(tmp_path / name) for name in ("upstream_eval.jsonl", "heldout_eval.jsonl", "b=2-test.json")]
    options = {"stream": files[2], "train": 0, "upstream_updates": 0, "period": 1, "resamples": 5}
    common: dict[str, Any] = {"model": "published-answers", "methods": ["frozen"], "seeds": 3, "refinement": options}
    found = driftline.run(
        {"benchmark": "refinement", "data": {"name": "nli", "files": files}, **common}, runs=tmp_path / "runs"
    )
    runs = sorted(found.runs, key=lambda run: run.seed)
    assert [run.card.protocol["stream"] for run in runs] == [0, 1, 0]
    for run, named in zip(runs, ("10", "11", "10"), strict=True):
        wanted = ["snli-validation-10", f"anli-validation-{named}", "anli-validation-12"]
        assert run.table("answers")["id"].tolist() == wanted
        scores = run.table("scores").query("stat == 'final'").set_index("metric")["value"]
        assert scores["csr"] == pytest.approx(2 / 3)
        assert (scores["ukr"], scores["kg"]) == (pytest.approx(1 / 3), pytest.approx(1 / 4))
    with pytest.raises(UserError, match="no sample is left to train on: give a pretrained model"):
        Refinement().build_scenario(load("nli", {"files": files}), Options(stream=files[2], train=0), Seed(0))
    with pytest.raises(UserError, match="all samples of the clusters are in the stream"):
        Refinement().build_scenario(
            load("nli", {"files": [files[0], files[2]]}), Options(stream=files[2], train=0), Seed(0)
        )


@pytest.mark.parametrize(("sizes", "full"), [([64] * 100, True), ([64] * 99, False), ([32] * 100, False)])
def test_given_streams_of_the_published_size_have_the_published_scale(sizes: list[int], full: bool) -> None:
    protocol = {"composition": [[size - 4, 4] for size in sizes]}
    card: Any = SimpleNamespace(run=SimpleNamespace(options={"stream": "stream.json"}), protocol=protocol)
    assert Refinement.is_full_scale(card) is full
