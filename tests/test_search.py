"""Which settings compete: the part of a grid that a method has, in equal numbers for all methods."""

import pytest

from driftline.errors import UserError
from driftline.jobs import Choice
from driftline.search import Search
from driftline.spec import parse

METRICS = (("oec", "final"), ("efr", "mean"))


def contests(grid, *methods, **how):
    chosen = [method if isinstance(method, Choice) else Choice(name=method) for method in methods]
    return Search(grid=grid, **how).contests(chosen, metrics=METRICS)


def test_a_method_searches_what_it_has_and_was_not_given():
    grid = {"lr": [1e-3, 1e-2], "epochs": [1, 2]}
    frozen, cft, er = contests(grid, "frozen", "cft", Choice(name="er", settings={"lr": 0.5}), trials="all")
    assert frozen is None
    assert [tuple(point.values()) for point in cft.points] == [(1e-3, 1), (1e-3, 2), (1e-2, 1), (1e-2, 2)]
    assert [dict(point) for point in er.points] == [{"epochs": 1}, {"epochs": 2}]


def test_what_is_said_for_one_method_goes_before_what_is_said_for_all():
    er, mir = contests({"lr": [1e-3, 1e-2], "er.lr": [1.0], "mir.size": [4]}, "er", "mir", trials="all")
    assert [dict(point) for point in er.points] == [{"lr": 1.0}]
    assert [dict(point) for point in mir.points] == [{"lr": 1e-3, "size": 4}, {"lr": 1e-2, "size": 4}]


def test_all_methods_try_as_many_settings_as_the_one_with_the_fewest_can():
    grid = {"lr": [1e-3, 1e-2, 1e-1], "online-l2.strength": [1.0, 2.0, 3.0]}
    cft, l2 = contests(grid, "cft", "online-l2")
    assert len(cft.points) == len(l2.points) == 3
    assert len({tuple(point.items()) for point in l2.points}) == 3, "no setting is tried twice"
    assert contests(grid, "cft", "online-l2") == [cft, l2], "the draw is always the same"
    assert [len(contest.points) for contest in contests(grid, "cft", "online-l2", trials=2)] == [2, 2]
    assert [len(contest.points) for contest in contests(grid, "cft", "online-l2", trials="all")] == [3, 9]


def test_the_same_setting_written_twice_is_tried_once_and_takes_no_part_of_the_budget():
    grid = {"lr": ["1e-3", 0.001, 1e-2], "er.size": [4, 8]}
    cft, er = contests(grid, "cft", "er", seeds=[0, 1, 0])
    assert [dict(point) for point in cft.points] == [{"lr": 0.001}, {"lr": 0.01}]
    assert len(er.points) == 2, "as many as the smallest grid has"
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
        ([1e-3], "a mapping"),
    ],
)
def test_a_search_that_means_nothing_is_refused_in_words(selection, words):
    content = {"benchmark": "refinement", "data": "digit-clusters", "methods": "cft", "selection": selection}
    with pytest.raises(UserError, match=words):
        parse(content).jobs("mlp")


def test_a_benchmark_without_streams_to_choose_by_says_so():
    content = {"benchmark": "timeline", "data": "digits", "methods": "ft", "selection": {"grid": {"lr": [1e-3]}}}
    with pytest.raises(UserError, match="timeline has no streams to choose settings by"):
        parse(content).jobs("mlp")


def test_a_spec_with_a_search_can_be_written_down_and_read_again():
    content = {
        "benchmark": "refinement",
        "data": "digit-clusters",
        "methods": "cft,er",
        "selection": {"grid": {"lr": [1e-3, 1e-2]}, "seeds": 2, "rule": "oracle"},
    }
    spec = parse(content)
    import yaml

    assert parse(yaml.safe_load(spec.to_yaml())) == spec


def test_trials_meet_validation_streams_and_an_oracle_meets_those_of_the_test():
    for rule, role in (("validation-streams", "validation"), ("oracle", "test")):
        selection = {"grid": {"lr": [1e-3, 1e-2]}, "rule": rule, "seeds": 2}
        content = {"benchmark": "refinement", "data": "digit-clusters", "methods": "cft", "selection": selection}
        (job,) = parse(content).jobs("mlp")
        trials = job.trials()
        assert {trial.options["role"] for of_point in trials for trial in of_point} == {role}
        assert [[(t.method.settings["lr"], t.seed) for t in row] for row in trials] == [
            [(1e-3, 0), (1e-3, 1)],
            [(1e-2, 0), (1e-2, 1)],
        ]
        assert all(trial.purpose == "trial" and trial.contest is None for row in trials for trial in row)
        assert job.options["role"] == "test"
