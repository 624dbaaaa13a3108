"""Rounds of a search: what is eliminated cannot win any more, whatever is still to come, and nothing else is."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import driftline
from driftline.engine.build import DatasetCache
from driftline.engine.executors.base import StageFailed, record_failure, run_stage
from driftline.engine.executors.scheduler import schedule
from driftline.engine.executors.serial import SerialExecutor
from driftline.engine.planning.plan import plan
from driftline.engine.planning.search_stages import merge, search_stages
from driftline.engine.stages import Pretrain, SearchRound, SearchRun, Stage, StageContext, StreamRun, search_round
from driftline.engine.stages.search_round import DOMINATED, SearchState, eliminate_dominated, seeds_by_round
from driftline.errors import InputsChanged, UserError
from driftline.record.card import Card, ComputeCard
from driftline.record.run import Run
from driftline.spec import parse
from driftline.spec.job import Job, LabelPolicy, SearchSpace
from driftline.spec.settings import Choice
from driftline.store.store import Store

SHARES = (("oec", "final"), ("efr", "mean"))
SPEC = {
    "benchmark": "refinement",
    "data": "digit-clusters",
    "model": {"name": "mlp", "width": 16},
    "methods": ["cft"],
    "seeds": 2,
    "selection": {"grid": {"lr": [1e-3, 1e-2, 1e-1]}, "seeds": 3},
    "refinement": {"episodes": 2, "queries_per_episode": 16, "upstream_set": 64, "held_out": 20, "upstream_updates": 5},
}


def space(candidates=3, seeds=3, metrics=SHARES):
    return SearchSpace(
        rule="validation-streams",
        candidates=tuple({"lr": float(k)} for k in range(candidates)),
        seeds=tuple(range(seeds)),
        metrics=metrics,
    )


def standing(*scores):
    return SearchState(scores=tuple(map(tuple, scores)), eliminated=("",) * len(scores))


def job(of):
    nothing = Choice(name="digit-clusters")
    method = Choice(name="cft")
    return Job(
        benchmark="refinement",
        options={},
        data=nothing,
        model=Choice(name="mlp"),
        method=method,
        label="cft",
        seed=0,
        reveal=LabelPolicy(),
        search=of,
    )


def test_nobody_drops_out_before_more_than_half_of_the_trials_are_in():
    assert seeds_by_round(space(seeds=1)) == [(0,)]
    assert seeds_by_round(space(seeds=2)) == [(0, 1)], "after one of two, 1 against 0 may still end in a tie"
    assert seeds_by_round(space(seeds=3)) == [(0, 1), (2,)]
    assert seeds_by_round(space(seeds=6)) == [(0, 1, 2, 3), (4,), (5,)]
    assert seeds_by_round(space(seeds=4, metrics=(("sh", "mean"),))) == [(0, 1, 2, 3)], "a horizon has no known bound"


def test_what_could_still_win_stays_to_the_last_hundredth():
    """Three trials, two are in: the leader has at least 1.6 / 3 in the end, another at most its sum + 1."""
    found = eliminate_dominated(standing((0.8, 0.8), (0.3, 0.29), (0.3, 0.31)), space())
    assert found.eliminated == ("", DOMINATED, "")
    tied = eliminate_dominated(standing((0.3, 0.3), (0.8, 0.8)), space(candidates=2))
    assert tied.eliminated == ("", ""), "the first could still tie, and the earlier one wins a tie"


def test_without_known_bounds_nobody_drops_out():
    found = eliminate_dominated(standing((30.0, 30.0), (0.0, 0.0)), space(candidates=2, metrics=(("sh", "mean"),)))
    assert found.eliminated == ("", "")


@pytest.mark.parametrize("seeds", [3, 5])
def test_the_winner_is_always_the_one_that_all_trials_would_have_chosen(seeds):
    """Two routes: rounds with dropping out, and the plain mean over all trials, on many drawn tables of scores."""
    rng, of = np.random.default_rng(seeds), space(candidates=4, seeds=seeds)
    skipped = 0
    for _ in range(300):
        table = np.where(rng.random((4, 1)) < 0.5, 0.0, 0.7) + 0.3 * rng.random((4, seeds)).round(1)
        now = SearchState.new(of)
        for numbers in seeds_by_round(of):
            scores = list(now.scores)
            for k in now.competing:
                scores[k] = (*scores[k], *table[k, list(numbers)])
            now = eliminate_dominated(replace(now, scores=tuple(scores)), of)
        skipped += sum(seeds - len(scores) for scores in now.scores)
        means = [float(np.mean(list(row))) for row in table]
        assert means[now.winner] == pytest.approx(max(means))
        assert now.winner == min(k for k, mean in enumerate(means) if mean > max(means) - 1e-12)
    assert skipped > 100, "and runs are skipped"


def test_one_that_is_alone_is_tried_no_further():
    left = SearchState(scores=((0.5,), (), ()), eliminated=("", "failed: no", "failed: no"))
    assert (left.competing, left.winner) == ([], 0)


def test_if_all_that_were_left_fail_the_best_of_those_that_they_had_beaten_stands():
    out = SearchState(scores=((0.1, 0.2), (0.9, 0.9), (0.3, 0.2)), eliminated=(DOMINATED, "failed: no", DOMINATED))
    assert out.winner == 2
    assert SearchState(scores=((), ()), eliminated=("failed: a", "a run has no score")).winner is None


def done(scores, macs=10):
    """A stand-in for the runs of trials: what each scored, by key."""
    card = Card(compute=ComputeCard(forward_macs=macs, backward_macs=0))
    return lambda folder: SimpleNamespace(key=folder.name, card=card, value=scores[folder.name])


@pytest.fixture
def judged(tmp_path, monkeypatch):
    """Carry a contest out with given scores by (point, seed); a text is the reason of a failure."""

    def judge(table, lost=()):
        seeds = len(table[0])
        stages = list(search_stages(job(space(len(table), seeds)), "data", pretrained=False, calibration=None))
        store = Store.create(tmp_path)
        trials = [stage for stage in stages if isinstance(stage, SearchRun)]
        place = {stage.key: (int(stage.job.method.settings["lr"]), stage.job.seed) for stage in trials}
        value = {key: table[k][seed] for key, (k, seed) in place.items()}
        made, ran = set(), []

        class Made(SerialExecutor):
            def submit(self, stage, on_progress):
                if isinstance(stage, SearchRound):
                    return run_stage(stage, StageContext(store))
                ran.append(place[stage.key])
                if isinstance(value[stage.key], str):
                    why = "" if place[stage.key] in lost else "Traceback (most recent call last): ..."
                    record_failure(stage, store, value[stage.key], why)
                    raise StageFailed(value[stage.key])
                made.add(stage.key)
                return True

        monkeypatch.setattr(Store, "finished", lambda self, key: key in made)
        monkeypatch.setattr(search_round, "Run", done(value))
        monkeypatch.setattr(search_round, "score", lambda run, metrics: run.value)
        last = StreamRun("run", stages[-1].job, search=stages[-1].key)

        class AndRun(Made):
            def submit(self, stage, on_progress):
                return stage.is_result or super().submit(stage, on_progress)

        summary = schedule([*stages, last], store, [AndRun(store, DatasetCache())])
        path = store.stage_path(stages[-1].key)
        return (SearchState.read(path) if path.exists() else None), summary, ran

    return judge


def test_settings_that_cannot_win_are_tried_no_further_and_this_is_counted(judged):
    end, summary, ran = judged([[0.1, 0.1, 0.9], [0.9, 0.9, 0.8], [0.7, 0.7, 0.9]])
    assert end.eliminated == (DOMINATED, "", "")
    assert end.winner == 1
    assert end.scores[0] == (0.1, 0.1)
    assert (end.runs, len(summary.skipped), end.macs) == (8, 1, 80)
    assert (0, 2) not in ran
    assert not summary.failed


def test_when_one_is_left_nothing_further_is_run(judged):
    end, summary, ran = judged([[0.9, 0.9, 0.9, 0.9, 0.9], [0.0, 0.0, 0.0, 0.0, 0.0]])
    assert sorted(ran) == [(k, seed) for k in (0, 1) for seed in (0, 1, 2)]
    assert (end.winner, end.runs, len(summary.skipped)) == (0, 6, 4)


def test_a_setting_whose_trial_fails_or_has_no_score_is_out_and_the_others_compete(judged):
    end, summary, ran = judged([["it exploded", 0.9, 0.9], [np.nan, 0.9, 0.9], [0.2, 0.3, 0.4], [0.2, 0.2, 0.2]])
    assert end.eliminated == ("failed: it exploded", "a run has no score", "", "")
    assert end.winner == 2
    assert list(summary.failed_candidates.values()) == ["it exploded"]
    assert not summary.failed
    assert not {(0, 2), (1, 2)} & set(ran)


def test_if_every_setting_fails_the_run_fails_and_says_why(judged):
    end, summary, _ = judged([["it exploded", 0.9, 0.9], [np.nan, 0.9, 0.9]])
    assert end is None
    reason, *after = summary.failed.values()
    assert "no setting of cft has a score: lr=0.0: failed: it exploded; lr=1.0: a run has no score" in reason
    assert len(after) == 2, "the second round and the run"
    assert all(why.startswith("a stage it needs failed") for why in after)


def test_a_worker_that_was_lost_decides_nothing(judged):
    """Otherwise a machine that ran out of memory would change which setting wins."""
    end, summary, _ = judged([["its worker was killed", 0.9, 0.9], [0.5, 0.5, 0.5]], lost={(0, 0)})
    assert end is None
    assert "the run with lr=0.0 was interrupted (its worker was killed)" in next(iter(summary.failed.values()))


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("Unable to allocate 72.8 TiB"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 400000000000000 bytes."),
        InputsChanged("the data or the files behind 'cft' changed while it was waiting: run it again"),
    ],
)
def test_neither_does_a_machine_without_memory_nor_a_file_that_changed(monkeypatch, tmp_path, error):
    def run(*_):
        raise error

    store, one = Store.create(tmp_path), space(candidates=2, seeds=1)
    first = next(search_stages(job(one), "data", pretrained=False, calibration=None))
    with monkeypatch.context() as patched:
        patched.setattr(Stage, "run", run)
        with pytest.raises(StageFailed):
            run_stage(first, StageContext(store))
    with pytest.raises(UserError, match="the hyper-parameter search is incomplete"):
        search_round._own_failure(first.key, one.candidates[0], store)


def test_two_contests_share_their_trials_and_a_trial_is_run_if_either_calls_for_it(tmp_path):
    points = [space(candidates=2), space(candidates=3)]
    both = [list(search_stages(job(of), "data", pretrained=False, calibration=None)) for of in points]
    stages = merge(itertools.chain(*both))
    assert len([stage for stage in stages if isinstance(stage, SearchRun)]) == 9, (
        "six of one are among the nine of the other"
    )
    shared = [stage for stage in stages if isinstance(stage, SearchRun) and len(stage.rounds) == 2]
    assert len(shared) == 2
    assert all(stage.job.seed == 2 for stage in shared)
    seen = set()
    for stage in stages:
        assert seen.issuperset(stage.needs), "what a stage needs comes before it"
        seen.add(stage.key)
    store = Store.create(tmp_path)
    first, second = shared[0].rounds
    from driftline.io import serialization

    for key, calls in ((first, []), (second, [{"lr": 0.0}])):
        serialization.save({"required": calls}, store.stage_path(key))
    assert [stage.is_required(store) for stage in shared] == [True, False]


def test_a_trial_that_waits_for_no_round_in_one_contest_waits_for_none(tmp_path):
    jobs = [job(space(candidates=2, seeds=n)) for n in (3, 5)]
    three, five = (list(search_stages(one, "data", pretrained=False, calibration=None)) for one in jobs)
    trials = [stage for stage in merge([*three, *five]) if isinstance(stage, SearchRun)]
    assert sorted((stage.job.seed, len(stage.rounds)) for stage in trials) == [
        *((seed, 0) for seed in (0, 0, 1, 1, 2, 2)),
        *((seed, 1) for seed in (3, 3, 4, 4)),
    ]


def test_one_setting_alone_is_run_without_any_trial(tmp_path):
    spec = {**SPEC, "seeds": 1, "selection": {"grid": {"lr": [1e-2]}, "seeds": 3}}
    planned = plan(parse(spec))
    assert [stage.kind for stage in planned.stages] == ["pretrain", "run"]
    (run,) = driftline.run(spec, runs=tmp_path).runs
    protocol = run.card.protocol
    assert protocol["chosen"] == [{"lr": 1e-2}]
    assert (protocol["trials"], protocol["skipped_runs"]) == (0, 3)


def test_upstream_models_and_trials_are_shared_by_methods_seeds_and_points():
    """cft with one setting given and the other searched, both ways: they meet in one point; each seed has one model."""
    methods = [{"name": "cft", "lr": 1e-3}, {"name": "cft", "epochs": 2}]
    selection = {"grid": {"lr": [1e-3, 1e-2], "epochs": [2, 5]}, "seeds": 2}
    stages = plan(parse({**SPEC, "methods": methods, "selection": selection})).stages
    kinds = [stage.kind for stage in stages]
    assert (kinds.count("search-run"), kinds.count("search-round"), kinds.count("run")) == (6, 2, 4), (
        "8 trials, 2 in common"
    )
    assert kinds.count("pretrain") == 2
    frozen = plan(parse({**SPEC, "methods": "frozen", "selection": None})).stages
    models = {stage.key for stage in stages if isinstance(stage, Pretrain)}
    assert {stage.key for stage in frozen if isinstance(stage, Pretrain)} == models


def test_a_real_contest_goes_on_where_it_was_and_ends_the_same(tmp_path):
    """Killed after the first round: the rest is run, nothing twice, and the card is the same as without."""
    spec = {**SPEC, "seeds": 1}
    whole = driftline.run(spec, runs=tmp_path / "whole").runs[0]
    planned, store = plan(parse(spec)), Store.create(tmp_path / "cut")
    first = next(k for k, stage in enumerate(planned.stages) if isinstance(stage, SearchRound)) + 1
    for stage in planned.stages[:first]:
        run_stage(stage, StageContext(store))
    summary = schedule(planned.stages, store, [SerialExecutor(store, DatasetCache())])
    assert len(summary.reused) == first
    again = Run(store.run_folder(planned.run_keys[0]))
    assert again.card == whole.card
    assert whole.card.protocol["trials"] + whole.card.protocol["skipped_runs"] == 9


def test_the_pretraining_of_a_method_is_not_searched():
    with pytest.raises(UserError, match="name a method once for each pretraining"):
        parse({**SPEC, "selection": {"grid": {"pretraining": ["supervised"]}}}).jobs("mlp")
