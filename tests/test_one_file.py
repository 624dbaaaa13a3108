"""One file from outside the package brings a benchmark, dataset, metric, method and figure, down to the report."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import driftline
from driftline import registry
from driftline.record.run import Record
from driftline.report.figures.base import draw
from driftline.report.page.page import page
from driftline.report.tables.render import render
from driftline.report.tables.result import result_tables

pytestmark = pytest.mark.xdist_group("one-file")  # what all its tests use is made once

SOURCE = Path(driftline.__file__).parent
GENERAL = ("engine", "report", "cli", "spec", "store", "record")
"""Packages, or modules, that work for any method and benchmark."""
PAPERS = re.compile(r"report/(tables/papers|figures)/|/(internals|novelty|frozen_baseline)\.py$")
"""Tables and figures of one paper."""
OTHER_MEANINGS = {"oracle": "a rule for choosing settings", "baseline": "a role", "offline": "a mode of an exporter"}
OUTSIDE = {
    "blank.py": "stand-ins for the papers' data",
    "calibrate.py": "calibration of test-time streams",
    "shift.py": "distances within a sequence of shifts",
}
WEATHER = '''
"""Weather of tomorrow from weather of today."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import altair as alt
import numpy as np

from driftline import Answers, Learner, Reveal, Samples
from driftline.benchmarks.base import Benchmark, NoProbes, Options, Scenario, scores_frame
from driftline.data import Dataset
from driftline.metrics import metric
from driftline.report.figures.base import Figure
from driftline.tasks import Classification
from driftline.types import Step


def rain(where: Sequence[Path], *, weeks: int = 8) -> Dataset:
    """Whether it rains: five days wet, five days dry, and so on."""
    days = np.arange(7 * weeks)
    x = np.stack([np.sin(days), np.cos(days)], axis=1)
    return Dataset("rain", Samples(x, (days // 5) % 2, time=days), Classification(("dry", "wet")))


@metric(
    "umbrella",
    title="days with the right umbrella",
    formula="mean over days of [prediction = label]",
    better="higher",
    unit="share",
    paper="none",
    example=lambda rng: {"correct": rng.integers(0, 2, 20)},
)
def umbrella(correct):
    return float(np.mean(correct))


@dataclass
class Persistence(Learner):
    """Answer with the last label."""

    def prepare(self, model, task, upstream=None):
        super().prepare(model, task, upstream)
        self.last = 0

    def predict(self, x):
        return Answers(np.full(len(x), self.last))

    def learn(self, x, y):
        self.last = int(y[-1])


class Days:
    def __init__(self, samples):
        self.samples = samples

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        if index >= len(self):
            raise IndexError(index)
        return Step(index, f"day {index}", self.samples[[index]])


@dataclass(frozen=True)
class Umbrellas(Figure):
    """Right umbrellas by method."""

    missing = "no weather"

    def rows(self, group):
        scores = group.scores[group.scores["stat"] == "mean"]
        return [{"method": method, "value": value} for method, value in zip(scores["method"], scores["value"])]

    def chart(self, frame):
        return alt.Chart(frame).mark_bar().encode(x="method:N", y="mean(value):Q")


class Weather(Benchmark):
    """One day after another."""

    question = "Does it rain tomorrow?"
    reveals = Reveal.LABELS
    paper = "none"
    options = Options
    headline_metrics = (("umbrella", "mean"),)
    primary_metrics = headline_metrics
    time_unit = "days"
    example = {
        "data": __file__ + ":rain",
        "model": "logistic-regression",
        "methods": ["erm", __file__ + ":Persistence"],
    }

    def build_scenario(self, dataset, options, seed):
        return Scenario(Days(dataset.samples), NoProbes(), None, protocol={"protocol": "daily"})

    def metrics(self, options, protocol):
        return {"umbrella": {}}

    def score(self, run):
        days = run.table("answers")
        rows = [
            {"metric": "umbrella", "stat": "each", "time": time, "value": day["correct"].mean(), "n": len(day)}
            for time, day in days.groupby("time", sort=False)
        ]
        mean = {"metric": "umbrella", "stat": "mean", "value": umbrella(days["correct"]), "n": len(days)}
        return scores_frame([{**row, "unit": "days"} for row in (*rows, mean)])
'''


@pytest.fixture(scope="module")
def weather(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    file = tmp_path_factory.mktemp("outside") / "weather.py"
    file.write_text(WEATHER)
    yield file
    registry._things["metric"].pop("umbrella", None)


@pytest.fixture(scope="module")
def record(weather: Path, tmp_path_factory: pytest.TempPathFactory) -> Record:
    name = f"{weather}:Weather"
    example = registry.get("benchmark", name).example
    return driftline.run({**example, "benchmark": name, "seeds": 2}, runs=tmp_path_factory.mktemp("runs"))


def test_its_numbers_are_right(record: Record) -> None:
    persistence = [run for run in record.runs if run.method.endswith("Persistence")]
    assert len(record) == 4
    for run in persistence:
        scores = run.table("scores")
        (mean,) = scores.loc[scores["stat"] == "mean", "value"]
        assert mean == pytest.approx(1 - 11 / 56), "wrong on day 5, 10, ..., 55"


def test_it_has_a_table_a_summary_and_a_section_on_the_page(record: Record) -> None:
    text = page(record)
    assert "Does it rain tomorrow?" in text
    assert "days with the right umbrella" in text
    assert "80.4" in text  # 100 * (1 - 11 / 56)
    assert "days with the right umbrella" in render(result_tables(record), "md")


def test_its_figure_is_drawn(record: Record, weather: Path) -> None:
    frame, chart = draw(f"{weather}:Umbrellas", record)
    assert frame.loc[frame["method"].str.endswith("Persistence"), "value"].tolist() == [pytest.approx(1 - 11 / 56)] * 2
    assert chart.to_dict()


def test_it_may_be_a_column_of_a_matrix(weather: Path) -> None:
    from driftline.engine.planning import matrix

    name = f"{weather}:Weather"
    made = matrix.read({"matrix": {"methods": ["erm"], "benchmarks": {name: {"data": f"{weather}:rain"}}}})
    assert made.spec(name, made.rows[0]).benchmark == name


def test_nothing_in_the_package_names_it() -> None:
    files = list(SOURCE.rglob("*.py"))
    assert files
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"umbrella|Persistence|weather\.py", text), file


def constants(file: Path) -> set[str]:
    """The texts in a module's code, without docstrings."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)]
    documented = {id(body[0].value) for body in bodies if body and isinstance(body[0], ast.Expr)}
    return {str(node.value) for node in nodes if id(node) not in documented}


def test_general_packages_name_no_method_and_no_benchmark() -> None:
    names = {*registry.names("method"), *registry.names("benchmark")} - set(OTHER_MEANINGS)
    found = {}
    for part in GENERAL:
        for file in [*SOURCE.glob(f"{part}.py"), *sorted((SOURCE / part).rglob("*.py"))]:
            if not PAPERS.search(file.as_posix()) and file.name not in OUTSIDE and (named := names & constants(file)):
                found[str(file.relative_to(SOURCE))] = named
    assert found == {}
