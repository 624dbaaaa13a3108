"""What a benchmark's page shows beyond its first chart: models later, figures of papers, and marks along a stream."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from driftline.record.run import Record
from driftline.report.analysis.events import changes, marks_note, resets
from driftline.report.analysis.groups import Group, groups
from driftline.report.figures.base import draw
from driftline.report.page.embed import PageCharts, data_names
from driftline.report.page.own_and_later import finding
from driftline.report.page.page import page
from driftline.report.page.paper_figures import paper_figures
from driftline.report.page.section import commands

from ..conftest import adapted

TIMES = ["1930s", "1940s", "1950s"]
SCHEDULE = {"order": ["fog", "snow"], "paths": {"fog": [[1, 0], [2, 0]], "snow": [[1, 0]]}, "mixed": False}


def seeds(value: float, noise: float = 0.01) -> dict[int, float]:
    return {0: value - noise, 1: value, 2: value + noise}


def grid(own: list[float], gap: float) -> dict[tuple[str, str], dict[int, float]]:
    """Accuracies of new models, and of the first one, which is `gap` worse later."""
    found = {(time, time): seeds(value) for time, value in zip(TIMES, own, strict=True)}
    return found | {(TIMES[0], time): seeds(own[k] - gap) for k, time in enumerate(TIMES) if k}


def test_the_title_of_models_over_time_is_the_finding_that_holds() -> None:
    harder = {"erm": grid([0.9, 0.7, 0.7], 0.3), "ft": grid([0.9, 0.75, 0.75], 0.3)}
    assert finding(harder, TIMES) == "In the 1940s even new models lose 15 to 20 points: the data got harder"
    one_keeps = {**harder, "ft": grid([0.9, 0.9, 0.95], 0.1)}
    assert finding(one_keeps, TIMES) == "erm of the 1930s is 30 points behind a new model of the 1940s"
    unsure = {"erm": {key: seeds(value[1], noise=0.0) for key, value in grid([0.9] * 3, 0.2).items()}}
    unsure["erm"] |= {(TIMES[0], time): {0: 0.2, 1: 0.9, 2: 1.0} for time in TIMES[1:]}
    assert finding(unsure, TIMES) == "No older model is behind a new one for certain"
    alone = {"erm": {key: {0: value[1]} for key, value in grid([0.9] * 3, 0.2).items()}}
    assert finding(alone, TIMES) == "No older model is behind a new one for certain", "one seed has no interval"


def test_a_further_figure_has_the_numbers_of_the_command(full_record: Record) -> None:
    (group,), charts = groups(full_record), PageCharts()
    found = {one.name: one for one in paper_figures(group, charts, {"accuracy"})}
    assert {"accuracy", "curves", "transfer"} <= found.keys()
    assert {"roc", "collapse", "weight-path", "reset-interval"}.isdisjoint(found), "of other benchmarks, and a preset"
    assert found["accuracy"].chart is None, "another part of the page shows it"
    assert found["transfer"].command == "driftline figure transfer --benchmark timeline -o transfer.pdf"
    assert found["transfer"].chart
    spec = charts.specs[found["transfer"].chart.id]
    values = [v for part in spec["concat"] for v in charts.series[data_names(part)[0]].values("value")]
    frame, _ = draw("transfer", full_record)
    assert values == pytest.approx(frame["value"].tolist(), abs=1e-4)
    assert "#222222" not in str(spec), "text has the color of the page"


def test_figures_of_networks_are_named_with_what_they_need(full_record: Record) -> None:
    (group,) = groups(full_record)
    group.card.run.benchmark = "seq-to-final"
    found = {one.name: one for one in paper_figures(group, PageCharts(), ())}
    assert found["svcca"].needs == "the networks of the runs"
    assert found["examples"].needs == "the data"
    assert found["svcca"].chart is None


def test_commands_compute_every_method_with_all_seeds(full_record: Record) -> None:
    (group,) = groups(full_record)
    found = dict(commands(group))
    assert found.keys() == {"erm", "<script>alert(1)</script>", "table"}
    assert "--methods erm --seeds 2" in found["erm"]


def stream(folder: Path, **given: Any) -> Group:
    """Sixty images, ten per point of the schedule; rdumb resets after every other batch of ten."""
    options, runs = {"images_per_point": 10}, []
    for seed in range(2):
        curve = [0.5 + 0.01 * seed, 0.6] * 3
        schedule = given.get("schedule", SCHEDULE)
        runs.append(adapted(folder, "frozen", seed, curve, options=options, schedule=SCHEDULE))
        better = [value + 0.1 for value in curve]
        more = {"schedule": schedule, "settings": {"reset_every": 2}}
        runs.append(adapted(folder, "rdumb", seed, better, options=options, **more))
    (group,) = groups(Record(runs))
    return group


def test_a_stream_names_its_changes_and_its_resets(tmp_path: Path) -> None:
    group = stream(tmp_path)
    assert changes(group) == {20: "snow", 30: "fog", 50: "snow"}
    assert resets(group, "rdumb") == [20, 40]
    assert resets(group, "frozen") == []
    assert marks_note(group, ["frozen"]) == " Dashed: another corruption begins."
    assert marks_note(group, group.methods).endswith("Triangles: resets.")


def test_changes_that_differ_between_runs_have_no_name_or_no_mark(tmp_path: Path) -> None:
    other = {"order": ["rain", "snow"], "paths": {"rain": [[1, 0], [2, 0]], "snow": [[1, 0]]}, "mixed": False}
    assert changes(stream(tmp_path / "names", schedule=other)) == {20: "snow", 30: "", 50: "snow"}
    later = {**SCHEDULE, "paths": {"fog": [[1, 0]], "snow": [[1, 0], [2, 0]]}}
    assert changes(stream(tmp_path / "times", schedule=later)) == {30: "fog"}
    mixed = {**SCHEDULE, "mixed": True}
    assert changes(stream(tmp_path / "mixed", schedule=mixed)) == {}


def test_the_page_marks_changes_and_resets(tmp_path: Path) -> None:
    text = page(Record(stream(tmp_path).runs))
    assert text.count('"shape":"triangle-up"') >= 2, "along the stream, and in the small multiple"
    assert '"event":"snow"' in text
    assert "Dashed: another corruption begins. Triangles: resets." in text


def test_a_line_that_the_answer_names_has_its_name(tmp_path: Path) -> None:
    curves = {"frozen": [0.5] * 4, "bn": [0.7] * 4, "tent": [0.3] * 4, "eta": [0.6] * 4}
    runs = [
        adapted(tmp_path, name, seed, [value + 0.01 * seed * k for value in curve])
        for k, (name, curve) in enumerate(curves.items())
        for seed in range(3)
    ]
    text = page(Record(runs))
    assert "tent collapses below the frozen model; bn beats it." in text
    named = [name for name in curves if f"['{name}']" in text.replace('\\"', "'")]
    assert named == ["frozen", "bn", "tent"]


def test_without_models_tested_later_no_lines_are_named(make_record: Any) -> None:
    text = page(make_record({"erm": [0.5, 0.6], "ft": [0.4, 0.5]}))
    assert "left alone" not in text.partition("<script")[0], "the chart has a dot per method"
