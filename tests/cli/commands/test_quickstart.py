"""The quickstart in miniature: what is left behind, what is printed, and that one failure stops nothing else."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import driftline
from driftline import registry
from driftline.cli.commands import run_quickstart as module
from driftline.cli.commands.audit import audit
from driftline.cli.commands.run_quickstart import SEEDS, examples, plan_all, run_quickstart
from driftline.engine.build import DatasetCache
from driftline.errors import MissingExtra
from driftline.monitoring import Monitor
from driftline.record.run import load

TIMELINE = {
    "data": {"name": "digits", "periods": 4},
    "model": "logistic-regression",
    "methods": "erm,erm-all",
    "timeline": {"resamples": 20},
}
REFINEMENT = {
    "data": {"name": "digit-clusters", "train": 300, "copies": 1},
    "model": "logistic-regression",
    "methods": "frozen",
    "refinement": {
        "episodes": 3,
        "queries_per_episode": 32,
        "period": 3,
        "upstream_set": 64,
        "held_out": 20,
        "resamples": 20,
    },
}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """Two benchmarks and a small audit, in an empty folder."""
    specs: dict[str, Any] = {"timeline": TIMELINE, "refinement": REFINEMENT}
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DRIFTLINE_RUNS", raising=False)
    monkeypatch.setattr(module, "examples", lambda torch: specs)
    monkeypatch.setattr(module, "AUDIT_TABLE", {"drift": "concept", "rows": 400})
    monkeypatch.setattr(module, "SEEDS", 1)
    return specs


def test_it_covers_every_benchmark_with_seeds_enough_to_mark_the_best() -> None:
    specs = examples(torch=True)
    assert set(specs) == set(registry.names("benchmark"))
    assert SEEDS >= 3
    plans, lost = plan_all(specs, DatasetCache())
    assert lost == {}
    for benchmark, plan in plans.items():
        jobs = [stage.job for stage in plan.stages if stage.is_result]
        assert {job.benchmark for job in jobs} == {benchmark}
        assert len(jobs) == SEEDS * len(specs[benchmark]["methods"])
    light, lost = plan_all(examples(torch=False), DatasetCache())
    assert lost == {}
    assert list(light) == ["timeline"]


def test_it_leaves_a_report_and_an_audit_and_says_what_is_next(
    small: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_quickstart(Path("out.html"), None, 1) == 0
    out, err = capsys.readouterr()
    text = (tmp_path / "out.html").read_text()
    record = load(tmp_path / "quickstart-runs")
    assert len(record) == 3
    for benchmark in small:
        question = registry.get("benchmark", benchmark).question
        assert f"{benchmark}: {question}" in err
        assert question in text
    scores = record.scores[(record.scores["metric"] == "oec") & (record.scores["stat"] == "final")]
    number = f"{100 * scores['value'].item():.1f}"
    assert f"frozen: {number}% [" in out
    assert number in text
    assert "policy" in err, "the audit shows its progress"
    assert (tmp_path / "out-audit.html").exists()
    assert f"report: {tmp_path / 'out.html'}" in out
    assert f"audit:  {tmp_path / 'out-audit.html'}" in out
    assert "next:   driftline audit" in out


def test_what_cannot_be_planned_and_what_fails_stop_nothing_else(
    small: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small["refinement"] = {**REFINEMENT, "data": "digits"}
    monkeypatch.setattr(module, "AUDIT_TABLE", {"drift": "concept", "rows": 3})
    assert run_quickstart(Path("out.html"), None, 1) == 1
    out, err = capsys.readouterr()
    assert "refinement failed: dataset 'digits' has no clusters" in err
    assert "audit failed: " in err
    assert "timeline: erm" in out
    assert "audit:  " not in out
    assert "How long does a model stay good" in (tmp_path / "out.html").read_text()


def test_a_run_that_fails_is_told_and_nothing_is_reported_without_runs(
    small: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise ValueError("on purpose")

    monkeypatch.setattr("driftline.engine.stages.Stage.run", broken)
    monkeypatch.setattr(module, "run_audit", lambda *_: None)
    assert run_quickstart(Path("out.html"), None, 1) == 1
    out, err = capsys.readouterr()
    assert "timeline failed: ValueError: on purpose" in err
    assert "refinement failed: " in err
    assert not (tmp_path / "out.html").exists()
    assert "report: " not in out


NO_FIGURES = 'drawing figures needs an optional package: pip install "driftline[figures]"'


@pytest.fixture
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """An install without the extra `figures`, in which nothing has tried to draw."""
    for name in list(sys.modules):
        if name.startswith(("driftline.report.figures", "driftline.report.page", "driftline.auditing.page")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "altair", None)


@pytest.mark.usefixtures("no_figures")
def test_without_figures_it_answers_and_names_the_extra(
    small: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    del small["refinement"]
    assert run_quickstart(Path("out.html"), None, 1) == 0
    out = capsys.readouterr().out
    assert "timeline: erm" in out
    assert "\naudit: " in out
    assert f"no report: {NO_FIGURES}" in out
    assert not list(tmp_path.glob("*.html"))


@pytest.mark.usefixtures("no_figures")
def test_without_figures_an_audit_prints_and_keeps_its_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    module.table(drift="concept", rows=400).to_csv("mine.csv", index=False)
    with pytest.raises(MissingExtra, match="drawing figures"):
        audit("mine.csv", time="when", target="y", output=Path("page.html"))
    assert capsys.readouterr().out == "", "it says so before it computes"
    audit("mine.csv", time="when", target="y", model="logistic-regression", jobs=1)
    out = capsys.readouterr().out
    assert f"no page with charts: {NO_FIGURES}\nall numbers: audit.json" in out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["audit.json", "mine.csv"]


@pytest.mark.usefixtures("no_figures")
def test_without_figures_results_are_text_in_a_notebook_and_a_monitor_names_the_extra(tmp_path: Path) -> None:
    table = module.table(rows=240)
    chosen = {"time": "when", "target": "y", "model": "logistic-regression"}
    result = driftline.audit(table, **chosen, period="60 rows")
    assert result._repr_html_() is None
    monitor = Monitor.fit(table[:120], **chosen)
    with pytest.raises(MissingExtra, match="figures"):
        monitor.write_page(tmp_path / "watch.html")
