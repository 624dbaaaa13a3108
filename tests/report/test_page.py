import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from driftline.record import Record
from driftline.report import charts
from driftline.report.page import page, safe_json, write_report

HOSTILE = "<script>alert(1)</script>"


class Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@pytest.fixture
def text(full_record: Record) -> str:
    return page(full_record)


@pytest.fixture
def figures(text: str) -> dict[str, Any]:
    content = re.search(r'<script type="application/json" id="figures">(.*?)</script>', text, re.DOTALL)
    assert content
    found: dict[str, Any] = json.loads(content[1])
    return found


def records(figures: dict[str, Any], spec: dict[str, Any]) -> list[dict[str, Any]]:
    data = figures["data"][(spec.get("data") or spec["layer"][0]["data"])["name"]]
    rows = [[data["words"][value[0]] if isinstance(value, list) else value for value in row] for row in data["rows"]]
    return [dict(zip(data["columns"], row, strict=True)) for row in rows]


def described(figures: dict[str, Any], start: str) -> list[dict[str, Any]]:
    return [spec for spec in figures["charts"].values() if spec["description"].startswith(start)]


def test_it_is_written_whole_and_small(full_record: Record, tmp_path: Path) -> None:
    output = tmp_path / "deep" / "report.html"
    write_report(full_record, output)
    assert output.read_text().rstrip().endswith("</html>")
    assert output.stat().st_size < 5_000_000
    assert list(output.parent.iterdir()) == [output]


def test_nothing_is_fetched(text: str) -> None:
    elements = Elements()
    elements.feed(text)
    assert not [(tag, a) for tag, a in elements.found if "src" in a or "href" in a or tag in ("link", "iframe", "img")]
    style = text[text.index("<style>") : text.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style


def test_hostile_labels_are_text(text: str, figures: dict[str, Any]) -> None:
    assert HOSTILE not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    (spec,) = described(figures, "ID")
    assert {row["method"] for row in records(figures, spec)} == {"erm", HOSTILE}
    assert text.count("<script") == text.count("</script>") == 3


def test_safe_json_survives_a_round_trip() -> None:
    content = {"a": "</script><!-- & \u2028\u2029"}
    assert not set("<>&\u2028\u2029") & set(safe_json(content))
    assert json.loads(safe_json(content)) == content


def test_heat_maps_hold_the_means_over_seeds(figures: dict[str, Any]) -> None:
    hostile, erm = described(figures, "A(t, τ)")
    cells = {(row["time"], row["tau"]): row for row in records(figures, erm)}
    assert set(cells) == {("a", "a"), ("a", "b"), ("a", "c"), ("b", "b"), ("b", "c"), ("c", "c")}
    assert cells["a", "c"]["value"] == pytest.approx(0.41)  # 0.40 and 0.42
    half = 12.706204736 * 0.01  # t with one degree of freedom times the standard error
    assert cells["a", "c"]["low"] == pytest.approx(0.41 - half, abs=1e-4)
    assert cells["a", "c"]["high"] == pytest.approx(0.41 + half, abs=1e-4)
    assert (cells["a", "c"]["n"], cells["a", "c"]["seeds"], cells["a", "c"]["interval"]) == (10, 2, "seeds")
    assert hostile["encoding"]["color"]["scale"] == erm["encoding"]["color"]["scale"]
    assert erm["encoding"]["color"]["scale"]["domain"] == pytest.approx([0.41, 0.81])


def test_transfer_is_white_exactly_at_delta(figures: dict[str, Any]) -> None:
    for spec in described(figures, "g(t, τ)"):
        scale = spec["encoding"]["color"]["scale"]
        assert scale["domain"] == pytest.approx([0.51, 0.9, 1.0])
        assert scale["range"] == [charts.RED, "#FFFFFF", charts.BLUE]


@pytest.mark.parametrize("delta", [0.0, 1.0])
def test_transfer_keeps_both_sides_at_extreme_deltas(delta: float) -> None:
    domain = charts.transfer_map("data", ["a"], 1.0, delta)["encoding"]["color"]["scale"]["domain"]
    assert domain[0] < domain[1] == delta < domain[2]


def test_a_method_has_one_colour_everywhere(text: str, figures: dict[str, Any]) -> None:
    scales = [
        layer["encoding"]["color"]["scale"]
        for name in ("ID", "OOD", "TAS")
        for layer in described(figures, name)[0]["layer"]
    ]
    assert len(scales) == 9
    assert all(scale == scales[0] for scale in scales)
    assert text.count(f'stroke="{scales[0]["range"][1]}"') == 2  # in the table and in the legend


def test_many_methods_and_periods_stay_legible() -> None:
    times = [f"{1930 + k}" for k in range(84)]
    spec = charts.accuracy_map("data", times, (0.0, 1.0))
    assert len(spec["encoding"]["x"]["axis"]["values"]) <= charts.LABELS
    assert spec["encoding"]["x"]["scale"]["domain"] == times
    looks = {(charts.colour(k), tuple(charts.dash(k))) for k in range(32)}
    assert len(looks) == 32


def test_tooltips_never_show_a_number_alone(figures: dict[str, Any]) -> None:
    for spec in (*described(figures, "A("), *described(figures, "g(")):
        assert {"value", "low", "high", "n", "seeds"} <= {part["field"] for part in spec["encoding"]["tooltip"]}


def test_the_page_answers_and_confesses(text: str) -> None:
    assert "How long?" in text
    assert "a model is right in 61.0% [48.3, 73.7] of cases in its own period" in text
    assert "it keeps 90% of their accuracy" in text
    assert "One thing is done otherwise." in text
    assert text.count("<details>") == 4
    assert '<th scope="col">' in text
    assert '<th scope="row">' in text
    assert "<caption>" in text


def test_runs_without_cells_still_make_a_page(make_record: Any) -> None:
    text = page(make_record({"erm": [0.5]}))
    assert "By OOD mean, erm is best: 50.0% [40.0, 70.0]" in text
    assert "tested at τ" not in text
