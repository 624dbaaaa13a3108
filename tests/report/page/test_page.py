import html
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from driftline.errors import UserError
from driftline.record.run import Record
from driftline.report.analysis import displays, pareto
from driftline.report.analysis.cards import beyond, cards, shared
from driftline.report.analysis.curves import Series, json_value
from driftline.report.analysis.groups import groups
from driftline.report.analysis.result_table import Row, Score
from driftline.report.figures import axes, palette
from driftline.report.page import charts
from driftline.report.page.embed import PageCharts, compress_columns, safe_json
from driftline.report.page.page import page, write_report
from driftline.report.page.published import published_figures
from driftline.report.page.short_names import with_short_names
from driftline.report.tables.make import table

from ..conftest import results, write_full_record

HOSTILE = "<script>alert(1)</script>"


class Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@pytest.fixture(scope="module")
def full_record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    return write_full_record(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def text(full_record: Record) -> str:
    return page(full_record)


@pytest.fixture(scope="module")
def figures(text: str) -> dict[str, Any]:
    content = re.search(r'<script type="application/json" id="figures">(.*?)</script>', text, re.DOTALL)
    assert content
    found: dict[str, Any] = json.loads(content[1])
    return found


def records(figures: dict[str, Any], spec: dict[str, Any]) -> list[dict[str, Any]]:
    return unpacked(figures["data"][(spec.get("data") or spec["layer"][0]["data"])["name"]])


def unpacked(data: dict[str, Any]) -> list[dict[str, Any]]:
    def column(part: Any) -> list[Any]:
        if isinstance(part, list):
            return part
        if "of" in part:
            return [None if whole is None else whole / part["of"] for whole in part["at"]]
        return [part["all"]] * data["rows"] if "all" in part else [part["words"][place] for place in part["at"]]

    columns = {name: column(part) for name, part in data["columns"].items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def described(figures: dict[str, Any], start: str) -> list[dict[str, Any]]:
    return [spec for spec in figures["charts"].values() if spec["description"].startswith(start)]


def test_it_is_written_whole_and_small(full_record: Record, tmp_path: Path) -> None:
    output = tmp_path / "deep" / "report.html"
    write_report(full_record, output)
    assert output.read_text().rstrip().endswith("</html>")
    assert output.stat().st_size < 1_100_000
    assert list(output.parent.iterdir()) == [output]


def test_nothing_is_fetched(text: str) -> None:
    elements = Elements()
    elements.feed(text)
    assert not [(tag, a) for tag, a in elements.found if "src" in a or tag in ("link", "iframe", "img")]
    places = {a["id"] for _, a in elements.found if "id" in a}
    links = [a["href"] or "" for _, a in elements.found if "href" in a]
    assert links
    assert all(link[0] == "#" and link[1:] in places for link in links)
    style = text[text.index("<style>") : text.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style


def test_hostile_labels_are_text(text: str, figures: dict[str, Any]) -> None:
    assert HOSTILE not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    shown = described(figures, "accuracy now (ID) of ")
    assert {spec["description"].split(" over time")[0] for spec in shown} == {
        f"accuracy now (ID) of {name}" for name in ("erm", HOSTILE)
    }
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
    assert described(figures, "g(t, τ)")
    for spec in described(figures, "g(t, τ)"):
        scale = spec["encoding"]["color"]["scale"]
        assert scale["domain"] == pytest.approx([0.51, 0.9, 1.0])
        assert scale["range"] == [palette.RED, "#FFFFFF", palette.BLUE]


@pytest.mark.parametrize("delta", [0.0, 1.0])
def test_transfer_keeps_both_sides_at_extreme_deltas(delta: float) -> None:
    domain = charts.transfer_map("data", ["a"], 1.0, delta)["encoding"]["color"]["scale"]["domain"]
    assert domain[0] < domain[1] == delta < domain[2]


def test_colors_are_roles_in_every_chart_and_in_the_table(text: str, figures: dict[str, Any]) -> None:
    scales = [
        layer["encoding"]["color"]["scale"]
        for spec in figures["charts"].values()
        for layer in spec.get("layer", [])
        if layer.get("encoding", {}).get("color", {}).get("field") == "method"
    ]
    found = {pair for scale in scales for pair in zip(scale["domain"], scale["range"], strict=True)}
    assert found == {(HOSTILE, "var(--new)"), ("erm", "var(--rest)")}
    assert re.findall(r'data-method="(.*?)".*?background:(.*?)"', text, re.DOTALL) == [
        ("&lt;script&gt;alert(1)&lt;/script&gt;", "var(--new)"),
        ("erm", "var(--rest)"),
    ]


def test_many_methods_and_periods_stay_legible() -> None:
    times = [f"{1930 + k}" for k in range(84)]
    spec = charts.accuracy_map("data", times, (0.0, 1.0))
    assert len(spec["encoding"]["x"]["axis"]["values"]) <= axes.MAX_LABELS
    assert spec["encoding"]["x"]["scale"]["domain"] == times
    styles = {(palette.color(k), tuple(palette.dash(k))) for k in range(32)}
    assert len(styles) == 32


def test_tooltips_never_show_a_number_alone(figures: dict[str, Any]) -> None:
    described_specs = (*described(figures, "A("), *described(figures, "g("))
    assert described_specs
    for spec in described_specs:
        assert {"value", "low", "high", "n", "seeds"} <= {part["field"] for part in spec["encoding"]["tooltip"]}


def test_the_page_answers_and_names_departures(text: str) -> None:
    assert "How long?" in text
    assert "periods valid (SH)" in text
    assert "One thing is done otherwise." in text
    assert text.count('<details class="protocol-card">') == 3  # what all share, and a card for each method
    assert '<th scope="row">' in text
    assert '<caption class="unseen">' in text


def test_the_table_of_the_page_has_the_numbers_of_the_command(full_record: Record, text: str) -> None:
    """The Markdown of `driftline table` and the page are independent writers of the same scores."""
    printed = re.findall(r"(\d+\.\d+)\** (\[[^]]+\])", table(full_record, notes=False))
    assert len(printed) >= 6
    shown = html.unescape(text)
    for value, interval in printed:
        assert f": {value} {interval}, n = " in shown


def test_runs_without_cells_still_make_a_page(make_record: Any) -> None:
    text = page(make_record({"erm": [0.5]}))
    assert set(re.findall(r'class="says".*?>(.*?)<', text)) == {
        "About five periods. A later gap to a new model is not certain yet."
    }
    assert "tested at τ" not in text


def test_a_page_that_cannot_be_written_says_so(full_record: Record, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot write .*: it is a folder; name a file in it"):
        write_report(full_record, tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"a part of this path is a file"):
        write_report(full_record, tmp_path / "file" / "report.html")


def test_the_frontier_by_hand(make_record: Any) -> None:
    cheap = {"compute": {"forward_macs": 10**9, "backward_macs": None}}
    dear = {"compute": {"forward_macs": 3 * 10**9, "backward_macs": 10**9}}
    runs = [
        *make_record({"frozen": [0.5], "poor": [0.3]}, **cheap).runs,
        *make_record({"best": [0.7, 0.9], "wasteful": [0.5], "oracle": [0.95]}, **dear).runs,
        *make_record({"uncounted": [0.99]}, compute={"forward_macs": None, "backward_macs": None}).runs,
    ]
    (found_table,) = results(Record(runs))
    column = pareto.primary_column(found_table)
    assert column
    assert column.name == "accuracy later (OOD), mean"
    found = pareto.cost_points(found_table, column)
    assert [(one.method, one.gmac, one.on_front) for one in found] == [
        ("poor", 1.0, False),
        ("frozen", 1.0, True),
        ("wasteful", 4.0, False),
        ("best", 4.0, True),
        ("oracle", 4.0, False),
    ]


def test_without_counted_compute_there_is_no_price(make_record: Any) -> None:
    text = page(make_record({"erm": [0.5]}, compute={"forward_macs": None, "backward_macs": None}))
    assert "at its cost" not in text


points = st.lists(st.tuples(st.integers(0, 5).map(float), st.integers(0, 5).map(float)), min_size=1, max_size=12)


@given(points)
def test_the_frontier_rises_with_cost(found: list[tuple[float, float]]) -> None:
    kept = sorted({one for one in found if not pareto.is_dominated(one, found)})
    assert kept
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(kept))
    for cost, value in found:
        assert any(c <= cost and v >= value for c, v in kept)


def merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    return {
        key: merged(one[key], other[key]) if key in one and key in other else one.get(key, other.get(key))
        for key in {**one, **other}
    }


contents = st.recursive(
    st.integers(0, 2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=3),
    max_leaves=6,
).filter(lambda content: isinstance(content, dict))


@given(st.lists(contents, min_size=1, max_size=4))
def test_a_card_is_what_all_share_and_what_is_beyond(found: list[dict[str, Any]]) -> None:
    common = shared(found)
    assert found
    for content in found:
        assert merged(common, beyond(content, common)) == content


def test_cards_say_everything_once(full_record: Record) -> None:
    (group,) = groups(full_record)
    everywhere, by_method = cards(group)
    assert "question: How long?" in everywhere
    assert "seed" not in everywhere
    assert [(one.method, len(one.runs)) for one in by_method] == [(HOSTILE, 2), ("erm", 2)]
    assert "label: erm" in by_method[1].common
    assert [card for _, _, card in by_method[1].runs] == [
        "key: '000'\nrun: {seed: 0}\n",
        "key: '001'\nrun: {seed: 1}\n",
    ]


values = st.none() | st.integers(0, 3) | st.sampled_from(["x", "y"])
shares = st.none() | st.floats(-2, 2).map(json_value) | st.just(1e-5)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is not a mistake
@given(st.lists(st.tuples(values, st.sampled_from(["x", "y"]), st.just(0.5), shares).map(list), min_size=1))
def test_packed_data_come_back(rows: list[list[Any]]) -> None:
    columns = ["a", "b", "c", "d"]
    assert unpacked(json.loads(json.dumps(compress_columns(Series(columns, rows))))) == [
        dict(zip(columns, row, strict=True)) for row in rows
    ]


def test_charts_say_their_numbers_in_words() -> None:
    figures = PageCharts()
    data = figures.add_data(Series(["method", "time", "value"], [["erm", "a", 0.5], ["erm", "b", 0.25]]))
    figures.add_chart("ID", charts.bars(data, ["a", "b"]))
    assert figures.specs["chart0"]["description"] == "Samples per period. erm 0.5 to 0.25."


def test_methods_are_shown_by_their_labels(full_record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = {"erm": ("ERM & <ours>", "")}
    monkeypatch.setattr(displays, "read_labels", lambda runs: [labels.get(run.method, ("", "")) for run in runs])
    text = page(full_record)
    assert 'data-method="ERM &amp; &lt;ours&gt;"' in text
    assert 'data-method="erm"' not in text
    assert "label: erm" in text, "the card has the method's own name"


def test_published_numbers_are_beside_ours(make_record: Any) -> None:
    (found,) = results(make_record({"ft(updates=5)": [0.5, 0.6], "erm": [0.4, 0.5]}))
    place = [column.metric for column in found.columns].index("ood")
    printed = [Score(0.7) if k == place else None for k in range(len(found.columns))]
    row = Row("ft in Paper, Table 2", tuple(printed), None, 0, "Paper, Table 2")
    beside = with_short_names(replace(found, published={"ft(updates=5)": (row,), "erm": ()}))
    charts = PageCharts()
    figures = published_figures(beside, charts, ["updates=5"])
    assert figures
    assert figures.title == "Published next to ours: ours are 15.0 points lower"
    (shown,) = figures.tables
    assert (shown.title, shown.axis) == ("Paper, Table 2", "%. 1 of 1 printed means lie inside our intervals.")
    assert shown.chips[-2:] == ("2 seeds", "updates=5")
    (series,) = charts.series.values()
    assert [record["method"] for record in series.records()] == ["ft"]
    assert [(record["ours"], record["printed"]) for record in series.records()] == [(55.0, 70.0)]
    assert published_figures(found, PageCharts(), []) is None
