"""Figures in a layout: their size in print, the size of text, colors, title, and the spec to edit."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import driftline
from driftline.errors import UserError
from driftline.record.run import Record
from driftline.report.figures.layout import method_scales, svg_size
from driftline.store.labels import write_labels
from driftline.store.store import Store

from ..conftest import at, refined, write_run


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """Curves of two methods, one with a label, and a run of another benchmark."""
    each = at("ood", ta=0.5, tb=0.4)
    runs = [write_run(tmp_path / "runs", method, 0, each) for method in ("erm", "ft", "own.py:Mine")]
    write_labels(Store(tmp_path), {runs[1].key: ("Fine-tuning on the latest labels", "")})
    return Record([*runs, refined(tmp_path / "runs", "er", 0, [], [["x", "b"]])])


def draw(record: Record, output: Path, **options: Any) -> str:
    driftline.figure("curves", record, output, metric="ood", benchmark="timeline", **options)
    return output.read_text(encoding="utf-8")


def test_a_figure_has_its_size_and_its_text_in_points(record: Record, tmp_path: Path) -> None:
    svg = draw(record, tmp_path / "f.svg", width="3.3in", height="75mm", fontsize=8, title="Mine")
    assert re.search(r'<svg [^>]*width="237.6pt" height="212.598pt"', svg)
    view = [float(one) for one in re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)[0]]
    assert view == pytest.approx([237.6, 212.6], abs=2.5)
    assert min(float(size) for size in re.findall(r'font-size="([\d.]+)px"', svg)) == 8
    assert ">Mine<" in svg
    assert ">Fine-tuning on the latest labels<" in svg


def test_the_spec_has_colors_labels_and_selected_methods(record: Record, tmp_path: Path) -> None:
    text = draw(record, tmp_path / "f.vl.json", methods=["ft", "Mine"], colors=["#123456", "orange"])
    spec = json.loads(text)
    assert spec["$schema"].startswith("https://vega.github.io/schema/vega-lite")
    for scale in method_scales(spec):
        assert scale == {"domain": ["Fine-tuning on the latest labels", "Mine"], "range": ["#123456", "orange"]}
    assert (tmp_path / "f.vl.csv").read_text().count("Mine") == 2
    import vl_convert

    assert svg_size(vl_convert.vegalite_to_svg(spec))[0] > 100


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": "3.3"}, "--width 3.3: write a length as 3.3in, 8.4cm, 84mm or 240pt"),
        ({"width": "0in"}, "--width 0in: write a length"),
        ({"height": "99999mm"}, "--height 99999mm: write a length"),
        ({"fontsize": 99}, "--fontsize 99: give 4 to 24 points"),
        ({"colors": ["orang"]}, "no color 'orang'. Did you mean 'orange'?"),
        ({"colors": ["red"]}, "--colors has 1 color(s) for 3 methods"),
        ({"methods": ["erm", "fn"]}, "no method 'fn'"),
        ({"benchmark": "timelin"}, "no run of the benchmark 'timelin'. Did you mean 'timeline'?"),
        ({"metric": "odd"}, "no metric 'odd'. Did you mean 'ood'?"),
        ({"metric": "ood:mean"}, "no metric 'ood:mean'. Did you mean 'ood'?"),
        ({"width": "1in", "fontsize": 12}, "in: make it larger, its text smaller, or show fewer methods"),
        ({"output": "f.jpg"}, "f.jpg: a figure is written as .svg, .pdf, .png, .html, .json"),
    ],
)
def test_bad_options_are_refused_in_a_sentence(
    record: Record, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError) as error:
        driftline.figure("curves", record, **{"output": tmp_path / "f.svg", "benchmark": "timeline", **options})
    assert message in str(error.value)
    assert not (tmp_path / "f.svg").exists()
