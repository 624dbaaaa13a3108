"""`driftline figure` as a user meets it: files in four formats, numbers beside them, and refusals in words."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import driftline as library
from driftline import registry
from driftline.cli.main import main
from driftline.record.run import Record
from driftline.report.figures.base import create, draw
from driftline.report.figures.export import save, style

pytestmark = pytest.mark.xdist_group("figure")  # what all its tests use is made once

Command = Callable[..., tuple[int, str, str]]
BEGINS = {".pdf": b"%PDF", ".png": b"\x89PNG", ".html": b"<!DOCTYPE html>"}


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    folder = tmp_path_factory.mktemp("figure")
    y = np.arange(360) % 3
    x = np.random.default_rng(0).integers(0, 120, (360, 16, 16, 1), dtype=np.uint8)
    for i, label in enumerate(y):
        x[i, 4 * label + 1 : 4 * label + 4] += np.uint8(80)
    np.savez(folder / "bands.npz", x=x, y=y)
    options = {"shifts": "RL", "sizes": [30, 30, 30], "test": 60, "oracle": 60, "epochs": 2, "batch": 8}
    grid = {"lr": [0.02], "weight_decay": [1e-4], "dropout": [0.0], "adjacent": [0.1, 1.0], "budget": "paper"}
    spec = {
        "benchmark": "seq-to-final",
        "data": {"name": "npz", "path": str(folder / "bands.npz")},
        "model": {"name": "conv-1", "width": 2},
        "methods": ["baseline", "oracle", "seq-ft", "sft", "jm"],
        "seq-to-final": {**options, **grid},
    }
    return library.run(spec, runs=folder / "runs")


@pytest.fixture
def figure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, record: Record
) -> Command:
    """Ask for a figure in an empty folder; exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DRIFTLINE_RUNS", str(record.runs[0].folder.parents[1]))

    def command(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["driftline", "figure", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        return int(end.value.code or 0), out, err

    return command


FIGURES = registry.names("figure")
OF_SEQUENCES = ["adjacent-strength", "examples", "model-map", "pareto", "svcca", "weight-path", "weight-projection"]


@pytest.mark.parametrize("name", OF_SEQUENCES)
def test_every_figure_can_be_drawn(figure: Command, tmp_path: Path, name: str) -> None:
    code, out, _ = figure(name, *(["--points", "3"] if name == "weight-path" else []))
    assert code == 0
    assert out == f"{name}.svg, and its numbers in {name}.csv\n"
    drawn = (tmp_path / f"{name}.svg").read_text()
    assert drawn.startswith("<svg")
    assert "NaN" not in drawn
    assert "seq-to-final" in drawn
    if name == "examples":
        assert drawn.count("data:image/png") == 9
    else:
        methods = pd.read_csv(tmp_path / f"{name}.csv")["method"].unique()
        assert all(f">{method}</text>" in drawn for method in methods)


def test_help_names_them_all(figure: Command) -> None:
    _, out, _ = figure("--help")
    joined = "".join(out.split())  # a long name may be broken over two lines
    assert all(name in joined for name in FIGURES)


@pytest.mark.parametrize("suffix", BEGINS)  # .svg: above
def test_every_format_can_be_written(figure: Command, tmp_path: Path, suffix: str) -> None:
    assert figure("adjacent-strength", "-o", f"a{suffix}")[0] == 0
    assert (tmp_path / f"a{suffix}").read_bytes().lstrip().startswith(BEGINS[suffix])
    assert (tmp_path / "a.csv").exists()


def test_the_numbers_of_one_run_with_options(figure: Command, tmp_path: Path, record: Record) -> None:
    run = next(run for run in record.runs if run.method == "sft")
    code, _, err = figure("weight-path", run.key[:8], "-o", "p.svg", "--points", "5", "--batch-norm=interpolated")
    assert (code, err) == (0, "")
    table = pd.read_csv(tmp_path / "p.csv")
    assert table["run"].unique().tolist() == [run.key]
    along = table[table["statistics"] == "interpolated"].set_index("s")["accuracy"]
    assert along.index.tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert along[1.0] == run.table("scores")["value"].item()


def test_what_is_left_out_is_said(figure: Command, tmp_path: Path) -> None:
    code, _, err = figure("weight-path", "--points", "2")
    assert code == 0
    assert err == "left out (no model before the last step): baseline, oracle\n"
    assert "left out" in (tmp_path / "weight-path.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("weight-pathe",), "no figure 'weight-pathe'. Did you mean 'weight-path'?"),
        (("weight-path", "-o", "p.gif"), "p.gif: a figure is written as .svg, .pdf, .png, .html"),
        (("svcca", "--format", "gif"), "no format 'gif'. Known: html, pdf, png, svg, vega"),
        (
            ("svcca", "--format", "vega", "-o", "p.svg"),
            "--format vega writes a .vl.json file, not p.svg: leave out one of",
        ),
        (("svcca", "--benchmark", ""), "--benchmark is empty"),
        (("svcca", "--format", ""), "--format is empty"),
        (("svcca", "--title", ""), "--title is empty"),
        (("pareto", "--metric", "oce"), "no metric 'oce'. Did you mean 'oec'?"),
        (("curves", "--metric", ""), "option --metric is empty"),
        (("svcca", "--points", "3"), "figure 'svcca' has no option --points. Its own options: none"),
        (("weight-path", "--batch-norm", "kept"), "--batch-norm kept: should be 're-estimated' or 'interpolated'"),
        (("weight-path", "--points", "1"), "--points 1: should be greater than or equal to 2"),
        (("weight-path", "--points"), "option --points needs a value"),
        (("weight-path", "--runs", "nowhere"), "no finished run in nowhere"),
        (("accuracy",), "there is nothing to draw. left out (no model that is tested in later periods): seq-to-final"),
        (("curves",), "there is nothing to draw. left out (no metric over time): seq-to-final"),
        (("composition",), "there is nothing to draw. left out (no stream of queries): seq-to-final"),
        (("composition", "--stream", "nowhere.json"), "no file nowhere.json: a released stream is a JSON list"),
        (("collapse",), "there is nothing to draw. left out (no frozen and another method on a stream of corrupted"),
        (("internals",), "there is nothing to draw. left out (no method that reports diagnostics): seq-to-final"),
        (("severity-schedule",), "there is nothing to draw. left out (no stream of corrupted images in an order)"),
        (("setting-sweep",), "there is nothing to draw. left out (no methods that differ in a setting)"),
        (("severity-grid",), "severity-grid needs a calibration: name its file with --calibration FILE"),
        (("severity-grid", "--calibration", "nowhere"), "there is no file nowhere with a calibration"),
        (("gains", "--step-ranges", "1-2"), "figure 'gains' has no option --step-ranges"),
        (("disagreement",), "there is nothing to draw. left out (no two methods in a stream of queries)"),
    ],
)
def test_refusals(figure: Command, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    code, out, err = figure(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def refined(tmp_path_factory: pytest.TempPathFactory) -> Record:
    folder = tmp_path_factory.mktemp("refined")
    options = {"episodes": 4, "queries_per_episode": 8, "period": 2, "upstream_updates": 50, "resamples": 5}
    spec = {
        "benchmark": "refinement",
        "data": "digit-clusters",
        "model": {"name": "mlp", "width": 8},
        "methods": ["frozen", "cft"],
        "seeds": 2,
        "refinement": options,
    }
    return library.run(spec, runs=folder / "runs")


@pytest.mark.parametrize(
    ("arguments", "columns"),
    [
        (("curves",), ["metric", "step", "method", "time", "value", "low", "high", "n", "seeds", "interval"]),
        (("composition",), ["stream", "time", "part", "place", "count"]),
        (
            ("disagreement", "--step-ranges", "2-3"),
            ["of", "steps", "method", "other", "value", "low", "high", "seeds", "n"],
        ),
        (("disagreement", "--metric", "csr"), ["of", "steps", "method", "other", "value", "low", "high", "seeds", "n"]),
        (
            ("gains", "--metric", "kg"),
            ["stream", "metric", "baseline", "method", "value", "low", "high", "seeds", "n", "interval"],
        ),
    ],
)
def test_figures_of_a_stream(
    figure: Command, tmp_path: Path, refined: Record, arguments: tuple[str, ...], columns: list[str]
) -> None:
    code, _, err = figure(*arguments, "--runs", str(refined.runs[0].folder.parents[1]))
    assert (code, err) == (0, "")
    table = pd.read_csv(tmp_path / f"{arguments[0]}.csv")
    assert table.columns.tolist() == ["panel", *columns]
    if arguments[0] == "composition":
        counted = table[table["stream"] == "queries"].groupby("time")["count"].sum()
        assert counted.tolist() == [8] * 4
    if arguments[0] == "gains":
        scores = refined.scores[(refined.scores["metric"] == "kg") & (refined.scores["stat"] == "final")]
        means = scores.groupby("method")["value"].mean()
        assert table["value"].tolist() == [pytest.approx(means["cft"] - means["frozen"])]


def test_several_panels(record: Record, tmp_path: Path) -> None:
    """Two settings and two seeds in one figure."""
    frame, _ = draw("weight-path", record, points=2)
    twice = pd.concat([frame, frame.assign(panel="another")])
    save(twice, style(create("weight-path", {}).chart(twice), ["left out: one"]), tmp_path / "path.svg")
    assert all(text in (tmp_path / "path.svg").read_text() for text in ("another", "left out: one"))
    frame, _ = draw("weight-projection", record)
    twice = pd.concat([frame, frame.assign(panel="another")])
    save(twice, create("weight-projection", {}).chart(twice), tmp_path / "weights.svg")
    assert "another" in (tmp_path / "weights.svg").read_text()
    frame, _ = draw("model-map", record)
    twice = pd.concat([frame, frame.assign(seed=1)])
    save(twice, create("model-map", {}).chart(twice), tmp_path / "map.svg")
    assert "seed 1" in (tmp_path / "map.svg").read_text()
