from collections.abc import Callable
from pathlib import Path

from driftline.record.run import Record
from driftline.report.analysis.groups import groups
from driftline.report.analysis.result_table import tabulate

Make = Callable[..., Record]


def test_methods_and_seeds_stand_together(make_record: Make) -> None:
    (group,) = groups(make_record({"ft": [0.5, 0.6], "erm": [0.4, 0.5]}))
    assert group.title == "timeline · digits · mlp"
    assert group.methods == ("erm", "ft")
    assert [run.seed for run in group.runs_of("ft")] == [0, 1]


def test_whatever_else_differs_parts_them_and_is_in_the_title(make_record: Make) -> None:
    base = make_record({"erm": [0.5]})
    others = [
        make_record({"erm": [0.5]}, run__options={"delta": 0.8, "horizon": None}),
        make_record({"erm": [0.5]}, run__reveal={"delay": 2, "budget": None}),
    ]
    titles = [group.title for group in groups(Record([*base.runs, *others[0].runs, *others[1].runs]))]
    assert titles == [
        "timeline · digits · mlp · timeline.delta=0.8 · reveal.delay=0",
        "timeline · digits · mlp · timeline.delta=0.9 · reveal.delay=0",
        "timeline · digits · mlp · timeline.delta=0.9 · reveal.delay=2",
    ]


def test_other_data_and_models_need_no_settings_in_the_title(make_record: Make) -> None:
    one = make_record({"erm": [0.5]})
    other = make_record({"erm": [0.5]}, run__model={"name": "logistic-regression", "settings": {"c": 1}})
    assert [g.title for g in groups(Record([*one.runs, *other.runs]))] == [
        "timeline · digits · logistic-regression",
        "timeline · digits · mlp",
    ]


def test_same_name_with_other_content_is_other_data(make_record: Make) -> None:
    one, other = make_record({"erm": [0.5]}), make_record({"erm": [0.5]}, data__fingerprint="f1")
    titles = [g.title for g in groups(Record([*one.runs, *other.runs]))]
    assert titles == ["timeline · digits · mlp · fingerprint=f0", "timeline · digits · mlp · fingerprint=f1"]


def test_fingerprint_is_silent_where_the_data_settings_say_it(make_record: Make) -> None:
    other = {"run__data": {"name": "digits", "settings": {"noise": 0.5}}, "data__fingerprint": "f1"}
    one, two = make_record({"erm": [0.5]}), make_record({"erm": [0.5]}, **other)
    titles = [g.title for g in groups(Record([*one.runs, *two.runs]))]
    assert titles == ["timeline · digits · mlp · data.noise=0.2", "timeline · digits · mlp · data.noise=0.5"]


def test_a_label_shared_by_two_settings_is_told_apart(make_record: Make) -> None:
    one = make_record({"mine": [0.5]})
    two = make_record({"mine": [0.5]}, run__method={"name": "mine", "settings": {"lr": 0.2}})
    (group,) = groups(Record([*one.runs, *two.runs]))
    assert group.methods == ("mine [lr=0.1]", "mine [lr=0.2]")


def test_settings_as_given_and_settings_that_were_chosen_are_told_apart(make_record: Make) -> None:
    search = {"rule": "oracle", "candidates": [{"lr": 1}, {"lr": 2}], "seeds": [0], "metrics": [["oec", "final"]]}
    searches = [None, search, {**search, "candidates": [{"lr": 1}, {"lr": 3}]}]
    made = [run for search in searches for run in make_record({"mine": [0.5, 0.6]}, run__search=search).runs]
    (group,) = groups(Record(made))
    assert len(group.methods) == 3
    assert group.methods[0] == "mine"
    marked = "mine (settings by ORACLE) [selection=best of 2 by oracle ("
    assert all(name.startswith(marked) for name in group.methods[1:])
    assert group.by_oracle == group.methods[1:]
    tabulate(group)


def test_a_run_given_twice_counts_once(make_record: Make, tmp_path: Path) -> None:
    record = make_record({"erm": [0.5]})
    (group,) = groups(Record([*record.runs, *record.runs]))
    assert len(group.runs) == 1
