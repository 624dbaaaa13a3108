"""Label rules in runs: in keys, cards and records; and in no score."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

import driftline
from driftline.cli.commands import run_matrix
from driftline.cli.commands.run import spec_content
from driftline.engine.build import DatasetCache
from driftline.engine.planning import matrix
from driftline.engine.planning.plan import plan
from driftline.errors import UserError
from driftline.spec import Spec, parse
from driftline.spec.keys import run_key

TIMELINE: dict[str, Any] = {
    "benchmark": "timeline",
    "data": {"name": "digits", "periods": 4},
    "model": "linear",
    "methods": ["frozen", {"name": "ft", "updates": 200, "lr": 1e-2}],
    "timeline": {"upstream": 1, "upstream_updates": 30, "resamples": 5},
}
NOISE = {"name": "symmetric-noise", "rate": 0.9}


def with_rules(*rules: Any, **changes: Any) -> dict[str, Any]:
    return {**TIMELINE, "reveal": {"rules": list(rules)}, **changes}


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("rules") / "runs"
    driftline.run(TIMELINE, runs=folder)
    return driftline.run(with_rules(NOISE, "geometric-delay"), runs=folder), driftline.load(folder)


def score(runs: Any, method: str, rules: bool) -> float:
    settings = ((run, run.card.run) for run in runs.runs)
    (run,) = (run for run, made in settings if made.method.name == method and ("rules" in made.reveal) is rules)
    scores = run.table("scores")
    return float(scores[(scores.metric == "ood") & (scores.stat == "mean")].value.iloc[0])


def test_scores_never_see_noise(record: Any) -> None:
    assert score(record[1], "frozen", rules=True) == score(record[1], "frozen", rules=False)
    assert score(record[1], "ft", rules=True) < score(record[1], "ft", rules=False) - 0.1


def test_what_rules_did_is_on_the_card_and_in_the_record(record: Any) -> None:
    run = next(one for one in record[0].runs if one.card.run.method.name == "ft")
    assert run.card.protocol["label_rules"] == ["symmetric-noise(rate=0.9)", "geometric-delay"]
    gauges = run.table("diagnostics").groupby("gauge").value.sum()
    assert 0 < gauges["labels arrived"] < gauges["labels asked"]
    assert gauges["labels wrong"] / gauges["labels asked"] == pytest.approx(0.9, abs=0.03)


def test_a_run_without_rules_has_the_key_of_before_there_were_any() -> None:
    (job, _) = parse(TIMELINE).jobs("linear")
    assert job.content()["reveal"] == {"delay": 0, "budget": None, "missing": 0.0}
    key = run_key(job, "data")
    assert run_key(parse({**TIMELINE, "reveal": {"rules": []}}).jobs("linear")[0], "data") == key
    assert run_key(parse(with_rules(NOISE)).jobs("linear")[0], "data") != key


def test_rules_have_every_default_in_keys_and_come_back_from_yaml() -> None:
    spec: Spec = parse(with_rules("margin-query", NOISE))
    brief = parse(with_rules({"name": "margin-query", "share": 0.1}, NOISE))
    assert run_key(spec.jobs("linear")[0], "data") == run_key(brief.jobs("linear")[0], "data")
    for text in (spec.to_yaml(), spec.to_full_yaml("linear")):
        assert parse(yaml.safe_load(text)).jobs("linear") == spec.jobs("linear")


def test_flags_name_rules_and_their_settings() -> None:
    content = spec_content(
        *("timeline", [], "digits", None, "erm", None),
        ["margin-query.share=0.2", "reveal.delay=1"],
        labels="margin-query,symmetric-noise",
    )
    job = parse(content).jobs("linear")[0]
    assert [rule.name for rule in job.reveal.rules] == ["margin-query", "symmetric-noise"]
    assert (job.reveal.rules[0].settings["share"], job.reveal.delay) == (0.2, 1)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (["margin"], "no label-rule 'margin'"),
        ([{"name": "margin-query", "share": 2}], "share"),
        (["margin-query", "margin-query"], "named twice: margin-query"),
    ],
)
def test_rules_that_do_not_exist_or_come_twice_are_refused(rules: list[Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse(with_rules(*rules)).jobs("linear")


def test_a_benchmark_without_labels_refuses_rules() -> None:
    spec = parse(
        {"benchmark": "test-time", "data": "color-digits", "methods": ["frozen"], "reveal": {"rules": [NOISE]}}
    )
    with pytest.raises(UserError, match="test-time reveals no labels to any method"):
        plan(spec, DatasetCache())


def test_delays_are_refused_where_the_data_say_when_labels_are_known(tmp_path: Path) -> None:
    rows = "".join(f"2024-01-{d:02d},2024-02-{d:02d},{d % 2},{d % 3}\n" for d in range(1, 29) for _ in range(3))
    (tmp_path / "table.csv").write_text("day,due,x,y\n" + rows)
    data = {"name": "table", "path": str(tmp_path / "table.csv"), "time": "day", "target": "y", "known": "due"}
    content = {**with_rules("geometric-delay"), "data": data, "timeline": {"period": "week"}, "methods": ["erm"]}
    with pytest.raises(UserError, match="leave out geometric-delay"):
        plan(parse(content), DatasetCache())


SEQUENCE: dict[str, Any] = {
    "benchmark": "seq-to-final",
    "data": "color-digits",
    "model": {"name": "conv-1", "width": 2},
    "methods": ["seq-ft"],
    "seq-to-final": {"shifts": "R", "sizes": [60, 60], "test": 60, "oracle": 0, "resamples": 5},
}


def test_fits_are_planned_ahead_unless_answers_decide_what_is_revealed() -> None:
    def fits(rules: list[Any]) -> int:
        planned = plan(parse({**SEQUENCE, "reveal": {"rules": rules}}), DatasetCache())
        return sum(stage.kind == "fit" for stage in planned.stages)

    assert fits([NOISE]) == fits([]) > 0
    assert fits(["uncertainty-query"]) == 0


def test_a_matrix_has_a_row_for_each_way_to_reveal_labels() -> None:
    flags = ["--benchmarks", "timeline"]
    content = run_matrix.content(
        "matrix", flags, "frozen,er", 1, ["geometric-delay.mean=2"], labels="geometric-delay,random-query"
    )
    made = matrix.read(content)
    assert [row.label() for row in made.rows] == ["frozen", "er", "er · geometric-delay", "er · random-query"]
    specs = [made.spec("timeline", row) for row in made.rows]
    assert [[rule.short() for rule in spec.reveal.rules] for spec in specs] == [
        *([], []),
        [{"name": "geometric-delay", "mean": 2}],
        ["random-query"],
    ]
    assert matrix.read(yaml.safe_load(run_matrix.to_yaml(content))) == made


def test_a_matrix_takes_chains_of_rules_and_other_settings_of_labels() -> None:
    ways = {"late and noisy": ["geometric-delay", NOISE], "two late": {"delay": 2}}
    made = matrix.read({"matrix": {"methods": ["er"], "benchmarks": ["timeline"], "labels": ways}})
    specs = [made.spec("timeline", row) for row in made.rows]
    assert [len(spec.reveal.rules) for spec in specs] == [0, 2, 0]
    assert [spec.reveal.delay for spec in specs] == [0, 0, 2]
    with pytest.raises(UserError, match="no label-rule"):
        matrix.read({"matrix": {"methods": ["er"], "benchmarks": ["timeline"], "labels": {"late": ["late"]}}})
