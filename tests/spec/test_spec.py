"""One truth for Python, YAML and flags; an error names the nearest valid name."""

from __future__ import annotations

from pathlib import Path

import pytest

from driftline import spec
from driftline.errors import UserError
from driftline.spec.keys import pretrain_key, run_key

GIVEN = {"benchmark": "timeline", "data": "digits", "methods": "erm,ft", "seeds": 3}


def test_yaml_round_trip_gives_the_same_spec(tmp_path: Path) -> None:
    content = spec.apply_overrides(
        {**GIVEN, "model": "mlp"},
        ["ft.lr=1e-2", "timeline.horizon=3", "reveal.delay=2", "model.width=8", "data.periods=4"],
    )
    one = spec.parse(content)
    (tmp_path / "s.yaml").write_text(one.to_yaml())
    assert spec.read(tmp_path / "s.yaml") == one
    assert "timeline:" in one.to_yaml()


def test_flags_reach_the_job_with_every_default_filled_in() -> None:
    jobs = spec.parse(spec.apply_overrides(GIVEN, ["ft.lr=1e-2"])).jobs("mlp")
    assert [(job.label, job.seed) for job in jobs] == [
        ("erm", 0),
        ("erm", 1),
        ("erm", 2),
        ("ft(lr=0.01)", 0),
        ("ft(lr=0.01)", 1),
        ("ft(lr=0.01)", 2),
    ]
    assert jobs[3].method.settings == {
        "lr": 0.01,
        "updates": 300,
        "epochs": None,
        "batch": 32,
        "weight_decay": 0.0,
        "optimizer": "adam",
        "momentum": None,
        "lr_decay": 1.0,
        "augment": "none",
    }
    assert jobs[0].model.settings == {"width": 256, "depth": 2}


def test_saying_a_default_does_not_change_the_key() -> None:
    (plain,) = spec.parse({**GIVEN, "methods": ["ft"], "seeds": 1}).jobs("mlp")
    content = spec.apply_overrides({**GIVEN, "methods": ["ft"], "seeds": 1}, ["ft.lr=0.001", "timeline.delta=.9"])
    assert run_key(spec.parse(content).jobs("mlp")[0], "f") == run_key(plain, "f")
    for other in ("ft.lr=0.002", "timeline.delta=.8", "reveal.delay=1", "data.seed=1"):
        changed = spec.apply_overrides({**GIVEN, "methods": ["ft"], "seeds": 1}, [other])
        assert run_key(spec.parse(changed).jobs("mlp")[0], "f") != run_key(plain, "f"), other
    assert run_key(plain, "g") != run_key(plain, "f"), "other data, other run"


def test_the_upstream_model_does_not_depend_on_the_method() -> None:
    jobs = spec.parse({**GIVEN, "seeds": 1}).jobs("mlp")
    assert pretrain_key(jobs[0], "f") == pretrain_key(jobs[1], "f")
    assert run_key(jobs[0], "f") != run_key(jobs[1], "f")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"benchmark": "timelin"}, "no benchmark 'timelin'. Did you mean 'timeline'?"),
        ({"methods": "ermm"}, "no method 'ermm'. Did you mean 'erm'?"),
        ({"model": "mpl"}, "no model 'mpl'. Did you mean 'mlp'?"),
        ({"data": "digit"}, "no dataset 'digit'. Did you mean 'digits'?"),
        ({"sedes": 2}, "no setting 'sedes'. Did you mean 'seeds'?"),
        ({"timeline": {"horizn": 2}}, "no setting 'horizn'. Did you mean 'horizon'?"),
        ({"timeline": {"horizon": 0}}, "timeline: 'horizon' input should be greater than or equal to 1; got 0"),
        ({"methods": [{"name": "ft", "lrr": 1}]}, "no setting 'lrr'. Did you mean 'lr'?"),
        ({"methods": [{"name": "ft", "lr": "fast"}]}, "ft: 'lr' input should be a valid number"),
        ({"methods": []}, "'methods'"),
        ({"methods": "ft,ft"}, "methods named twice"),
        ({"seeds": []}, "'seeds'"),
        ({"model": "sklearn.linear_model.Nothing"}, "no scikit-learn estimator 'sklearn.linear_model.Nothing'"),
    ],
)
def test_what_is_wrong_is_said(change: dict[str, object], message: str) -> None:
    with pytest.raises(UserError) as error:
        spec.parse({**GIVEN, **change}).jobs("mlp")
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("lr=3", "--set takes part.key=value"),
        ("ft.lr", "--set takes part.key=value"),
        ("fft.lr=1", "no part 'fft'. Did you mean 'ft'?"),
    ],
)
def test_wrong_assignments_are_said(assignment: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        spec.apply_overrides(GIVEN, [assignment])
    assert message in str(error.value)


def test_files_that_are_no_spec(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("{ benchmark: [")
    with pytest.raises(UserError, match="is not YAML"):
        spec.read(tmp_path / "a.yaml")
    (tmp_path / "b.yaml").write_text("!!python/object/apply:os.system ['true']")
    with pytest.raises(UserError, match="is not YAML"):
        spec.read(tmp_path / "b.yaml")
    (tmp_path / "c.yaml").write_text("- just a list")
    with pytest.raises(UserError, match="a spec is a mapping"):
        spec.read(tmp_path / "c.yaml")
    with pytest.raises(UserError, match="cannot read"):
        spec.read(tmp_path / "none.yaml")


def test_settings_that_must_be_given_are_named_with_the_way_to_give_them() -> None:
    given = spec.parse({"benchmark": "timeline", "data": {"name": "table", "path": "x.csv"}, "methods": "erm"})
    with pytest.raises(UserError, match=r"needs time, target: --set data\.time=\.\.\. --set data\.target=\.\.\."):
        given.jobs(default_model="logistic-regression")


@pytest.mark.parametrize(
    ("setting", "message"),
    [("lr=-1", "ft: 'lr' input should be greater than or equal to 0; got -1"), ("batch=0", "ft: 'batch'")],
)
def test_settings_out_of_range_are_refused_before_an_optimiser_sees_them(setting: str, message: str) -> None:
    content = {"benchmark": "timeline", "data": "digits", "methods": "ft"}
    given = spec.parse(spec.apply_overrides(content, [f"ft.{setting}"]))
    with pytest.raises(UserError, match=message):
        given.jobs(default_model="mlp")


def test_labels_and_groups_are_kept_in_yaml_and_change_no_key(tmp_path: Path) -> None:
    shown = spec.parse({**GIVEN, "methods": [{"name": "ft", "lr": 0.01, "label": "Tuned", "group": "G"}], "seeds": 1})
    plain = spec.parse({**GIVEN, "methods": [{"name": "ft", "lr": 0.01}], "seeds": 1})
    (tmp_path / "s.yaml").write_text(shown.to_yaml())
    assert spec.read(tmp_path / "s.yaml") == shown
    assert (shown.methods[0].label, shown.methods[0].group, shown.methods[0].settings) == ("Tuned", "G", {"lr": 0.01})
    assert shown.jobs("mlp") == plain.jobs("mlp")
    twice = spec.apply_overrides(GIVEN, ["erm.label=Same", "ft.label=Same"])
    with pytest.raises(UserError, match="two methods have the same label: Same, Same"):
        spec.parse(twice).jobs("mlp")
