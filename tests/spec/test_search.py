"""Which settings compete: the part of a grid that a method has, in equal numbers for all methods."""

import pytest

from driftline.errors import UserError
from driftline.spec import parse
from driftline.spec.keys import pretrain_key
from driftline.spec.search import Search
from driftline.spec.settings import Choice

METRICS = (("oec", "final"), ("efr", "mean"))


def spaces(grid, *methods, **how):
    chosen = [method if isinstance(method, Choice) else Choice(name=method) for method in methods]
    return Search(grid=grid, **how).search_spaces(chosen, metrics=METRICS)


def test_a_method_searches_what_it_has_and_was_not_given():
    grid = {"lr": [1e-3, 1e-2], "epochs": [1, 2]}
    frozen, cft, er = spaces(grid, "frozen", "cft", Choice(name="er", settings={"lr": 0.5}), trials="all")
    assert frozen is None
    assert [tuple(point.values()) for point in cft.candidates] == [(1e-3, 1), (1e-3, 2), (1e-2, 1), (1e-2, 2)]
    assert [dict(point) for point in er.candidates] == [{"epochs": 1}, {"epochs": 2}]


def test_what_is_said_for_one_method_goes_before_what_is_said_for_all():
    er, mir = spaces({"lr": [1e-3, 1e-2], "er.lr": [1.0], "mir.replay_size": [4]}, "er", "mir", trials="all")
    assert [dict(point) for point in er.candidates] == [{"lr": 1.0}]
    assert [dict(point) for point in mir.candidates] == [{"lr": 1e-3, "replay_size": 4}, {"lr": 1e-2, "replay_size": 4}]


def test_all_methods_try_as_many_settings_as_the_one_with_the_fewest_can():
    grid = {"lr": [1e-3, 1e-2, 1e-1], "online-l2.penalty_weight": [1.0, 2.0, 3.0]}
    cft, l2 = spaces(grid, "cft", "online-l2")
    assert len(cft.candidates) == len(l2.candidates) == 3
    assert len({tuple(point.items()) for point in l2.candidates}) == 3, "no setting is tried twice"
    assert spaces(grid, "cft", "online-l2") == [cft, l2], "the draw is always the same"
    assert [len(space.candidates) for space in spaces(grid, "cft", "online-l2", trials=2)] == [2, 2]
    assert [len(space.candidates) for space in spaces(grid, "cft", "online-l2", trials="all")] == [3, 9]


def test_the_same_setting_written_twice_is_tried_once_and_takes_no_part_of_the_budget():
    grid = {"lr": ["1e-3", 0.001, 1e-2], "er.replay_size": [4, 8]}
    cft, er = spaces(grid, "cft", "er", seeds=[0, 1, 0])
    assert [dict(point) for point in cft.candidates] == [{"lr": 0.001}, {"lr": 0.01}]
    assert len(er.candidates) == 2, "as many as the smallest grid has"
    assert cft.seeds == (0, 1)


@pytest.mark.parametrize(
    ("selection", "words"),
    [
        ({"grid": {"lrr": [1]}}, "lrr"),
        ({"grid": {"er.lr": [1.0]}}, "er.lr"),
        ({"grid": {"lr": 1e-3}}, "a list of values to try"),
        ({"grid": {"lr": []}}, "a list of values to try"),
        ({"grid": {}}, "grid"),
        ({"grid": {"lr": ["fast"]}}, "lr"),
        ({"grid": {"lr": [1e-3]}, "trials": 0}, "at least 1"),
        ({"grid": {"lr": [1e-3]}, "rule": "luck"}, "rule"),
        ({"grid": {"lr": {"from": 1e-3, "to": 1e-2}}}, "give the number of settings"),
        ({"grid": {"lr": {"from": 1e-3}}, "trials": 2}, "'to' is empty"),
        ({"grid": {"lr": {"from": 1, "to": 2, "until": 2}}, "trials": 2}, "until"),
        ({"grid": {"lr": {"from": 2.0, "to": 1.0}}, "trials": 2}, "from must be less than to"),
        ({"grid": {"lr": {"from": 0, "to": 1.0, "scale": "log"}}, "trials": 2}, "begins above 0"),
        ({"grid": {"lr": [1e-3]}, "rule": "validation-split"}, "refinement has no such phases"),
        ([1e-3], "a mapping"),
    ],
)
def test_a_search_that_means_nothing_is_refused_in_words(selection, words):
    content = {"benchmark": "refinement", "data": "digit-clusters", "methods": "cft", "selection": selection}
    with pytest.raises(UserError, match=words):
        parse(content).jobs("mlp")


def test_a_benchmark_without_streams_to_choose_by_says_so():
    content = {"benchmark": "timeline", "data": "digits", "methods": "ft", "selection": {"grid": {"lr": [1e-3]}}}
    with pytest.raises(
        UserError, match=r"timeline has no streams to choose settings by here: give .*--validation 3.*--validation 0\.1"
    ):
        parse(content).jobs("mlp")
    shards = {**content, "benchmark": "test-time", "methods": "tent", "test-time": {"order": "shards"}}
    with pytest.raises(UserError, match="test-time has no streams"):
        parse(shards).jobs("mlp")


def test_draws_from_ranges_are_the_same_for_all_methods_and_a_longer_search_begins_with_the_shorter():
    grid = {
        "lr": {"from": "1e-4", "to": 1e-1, "scale": "log"},
        "epochs": {"from": 2, "to": 4},
        "er.replay_size": [4, 8],
    }
    cft, er = spaces(grid, "cft", "er", trials=20)
    assert len(cft.candidates) == len(er.candidates) == 20
    assert [point["lr"] for point in cft.candidates] == [point["lr"] for point in er.candidates]
    assert all(1e-4 <= point["lr"] <= 1e-1 for point in cft.candidates)
    assert {point["epochs"] for point in cft.candidates} == {2, 3, 4}, "both ends are among them"
    assert {point["replay_size"] for point in er.candidates} == {4, 8}
    below = sum(point["lr"] < 10**-2.5 for point in cft.candidates)
    assert 5 <= below <= 15, "half of the factors lie below the middle"
    assert spaces(grid, "cft", "er", trials=7)[0].candidates == cft.candidates[:7]


def test_the_first_draws_never_change():
    """Written down: another machine, or another version of numpy, must draw the same settings."""
    (cft,) = spaces({"lr": {"from": 1e-4, "to": 1e-1, "scale": "log"}}, "cft", trials=3)
    assert [point["lr"] for point in cft.candidates] == [0.001873, 0.06791, 0.005119]


def test_a_range_with_few_values_gives_each_once():
    (cft,) = spaces({"epochs": {"from": 1, "to": 3}}, "cft", trials=10)
    assert sorted(point["epochs"] for point in cft.candidates) == [1, 2, 3]


def test_a_method_with_a_short_list_and_one_with_a_range_may_try_as_many_unless_the_list_ends():
    cft, er = spaces({"cft.lr": [1e-3, 1e-2], "er.lr": {"from": 1e-3, "to": 1e-2}}, "cft", "er", trials=4)
    assert (len(cft.candidates), len(er.candidates)) == (2, 4)


def test_settings_of_training_mean_nothing_to_an_estimator_and_make_no_trials():
    selection = {"grid": {"lr": [1e-3, 1e-2], "er.replay_size": [2, 4]}, "rule": "oracle"}
    content = {
        "benchmark": "timeline",
        "data": "digits",
        "methods": "ft",
        "selection": {**selection, "grid": {"lr": [1, 2]}},
    }
    with pytest.raises(UserError, match="lr has no effect on logistic-regression, which is not trained by gradients"):
        parse(content).jobs("logistic-regression")
    (job,) = parse(content).jobs("mlp")
    assert len(job.search.candidates) == 2


def test_final_valid_names_the_values_that_every_phase_tries():
    content = {"benchmark": "seq-to-final", "data": "cifar10", "methods": "seq-ft"}
    named = parse({**content, "selection": {"rule": "validation-split", "grid": {"lr": ["1e-2", 1e-3]}}}).jobs("conv-1")
    plain = parse({**content, "seq-to-final": {"lr": [1e-2, 1e-3]}}).jobs("conv-1")
    assert named == plain
    for change, words in (
        ({"methods": "ft"}, "none of these methods trains in phases"),
        ({"seq-to-final": {"lr": [1e-2]}}, "lr is given twice"),
        ({"selection": {"rule": "validation-split", "grid": {"momentum": [0.9]}}}, "momentum"),
        ({"selection": {"rule": "validation-split", "grid": {"lr": [1]}, "trials": 2}}, "trials has no effect"),
        ({"selection": {"rule": "validation-split", "grid": {"lr": {"from": 1, "to": 2}}}}, "give a list"),
    ):
        selection = {"rule": "validation-split", "grid": {"lr": [1e-2]}}
        with pytest.raises(UserError, match=words):
            parse({**content, "selection": selection, **change}).jobs("conv-1")


def test_test_time_chooses_on_the_corruptions_that_are_kept_for_it():
    output = {"order": "gradual", "upstream_updates": 10}
    content = {"benchmark": "test-time", "data": "cifar10", "methods": "tent", "test-time": output}
    (job,) = parse({**content, "selection": {"grid": {"lr": [1e-4, 1e-3]}}}).jobs("mlp")
    (first, *_), *_ = job.search_jobs()
    assert first.options["order"] == "holdout"
    assert job.options["order"] == "gradual"
    assert pretrain_key(first, "") == pretrain_key(job, "")


def test_a_spec_with_a_search_can_be_written_down_and_read_again():
    content = {
        "benchmark": "refinement",
        "data": "digit-clusters",
        "methods": "cft,er",
        "selection": {"grid": {"lr": [1e-3, 1e-2], "epochs": {"from": 1, "to": 9}}, "trials": 4, "rule": "oracle"},
    }
    spec = parse(content)
    import yaml

    assert parse(yaml.safe_load(spec.to_yaml())) == spec


def test_trials_meet_validation_streams_and_an_oracle_meets_those_of_the_test():
    for rule, role in (("validation-streams", "validation"), ("oracle", "test")):
        selection = {"grid": {"lr": [1e-3, 1e-2]}, "rule": rule, "seeds": 2}
        content = {"benchmark": "refinement", "data": "digit-clusters", "methods": "cft", "selection": selection}
        (job,) = parse(content).jobs("mlp")
        trials = job.search_jobs()
        assert {trial.options["role"] for of_point in trials for trial in of_point} == {role}
        assert [[(t.method.settings["lr"], t.seed) for t in row] for row in trials] == [
            [(1e-3, 0), (1e-3, 1)],
            [(1e-2, 0), (1e-2, 1)],
        ]
        assert all(trial.purpose == "search" and trial.search is None for row in trials for trial in row)
        assert job.options["role"] == "test"


REFINEMENT = {"benchmark": "refinement", "data": "digit-clusters", "methods": "cft", "seeds": 2}


def test_the_metric_that_decides_can_be_chosen():
    def metrics(metric):
        (job, _) = parse({**REFINEMENT, "selection": {"grid": {"lr": [1e-3]}, "metric": metric}}).jobs("mlp")
        return job.search.metrics

    assert metrics("ukr") == (("ukr", "final"),)
    assert metrics("kg:final, efr") == (("kg", "final"), ("efr", "mean"))
    assert metrics([]) == (("oec", "final"), ("efr", "mean")), "the benchmark's own"
    with pytest.raises(UserError, match=r"no metric 'okrr'. Did you mean 'okr'.*selection\.metric"):
        metrics("okrr")
    with pytest.raises(UserError, match="no metric 'ood'"):
        metrics("ood")


def test_repeated_selections_have_other_validation_seeds_for_each_seed():
    spec = {**REFINEMENT, "selection": {"grid": {"lr": [1e-3, 1e-2]}, "seeds": 2, "repeats": 2}}
    first, second = (job.search for job in parse(spec).jobs("mlp"))
    assert (first.seeds, second.seeds) == ((0, 1), (2, 3))
    assert first.candidates == second.candidates
    with pytest.raises(UserError, match="repeats=3: each seed has its own selection, so give the number of seeds, 2"):
        parse({**spec, "selection": {**spec["selection"], "repeats": 3}}).jobs("mlp")
    with pytest.raises(UserError, match="tie_break"):
        parse({**spec, "selection": {**spec["selection"], "tie_break": "luck"}})


def test_seq_to_final_selects_in_phases_or_on_the_validation_part_of_the_last_step():
    content = {"benchmark": "seq-to-final", "data": "cifar10", "selection": {"grid": {"lr": [1e-2, 1e-3]}}}
    (phased,) = parse({**content, "methods": "seq-ft"}).jobs("conv-1")
    assert (phased.search, phased.options["lr"]) == (None, [1e-2, 1e-3])
    (tuned,) = parse({**content, "methods": "ft"}).jobs("conv-1")
    assert [run.options["role"] for runs in tuned.search_jobs() for run in runs] == ["validation"] * 6
    mixed = {
        **content,
        "methods": "seq-ft",
        "selection": {"grid": {"seq-ft.decay": ["none"]}, "rule": "validation-streams"},
    }
    with pytest.raises(UserError, match="seq-ft"):
        parse(mixed).jobs("conv-1")
