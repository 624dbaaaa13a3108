"""What a reader can do with the report: see, point, press, sort, type, print; none of it needs a network."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from driftline.report.figures.palette import assign_styles

from .conftest import HOSTILE, least_contrast

pytestmark = pytest.mark.xdist_group("browser-report")  # one process makes what all tests share

TIMELINE = "section.group:has(h2:text-matches('^timeline'))"
LINES = f"{TIMELINE} figure:has(figcaption:text-matches('^ID'))"
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
METHODS = ["erm", "ft", HOSTILE]


@pytest.fixture(autouse=True)
def nothing_is_wrong(page: Any, complaints: list[str]) -> Any:
    yield
    assert complaints == []


def strokes(page: Any) -> dict[str, float]:
    """The lines of the first chart over time: how opaque each colour is."""
    found = page.locator(f"{LINES} .mark-line path").all()
    drawn = [line for line in found if line.get_attribute("d")]
    return {line.get_attribute("stroke").upper(): float(line.get_attribute("opacity") or 1) for line in drawn}


def colours() -> dict[str, str]:
    """The page has sections in the order of their titles."""
    sections = [["baseline", "erm", "oracle"], ["bn", "frozen", "tent"], [HOSTILE, "erm", "ft"]]
    return {method: style.color.upper() for method, style in assign_styles(sections).items()}


def centred(mark: Any) -> Any:
    """In the middle of the window, where the legend that stays on top does not cover it."""
    mark.evaluate("mark => mark.scrollIntoView({block: 'center'})")
    return mark


def order(page: Any) -> list[str]:
    return [text.strip() for text in page.locator(f"{TIMELINE} table.results tbody th").all_inner_texts()]


def test_every_chart_is_drawn_and_says_what_it_shows(page: Any) -> None:
    charts = page.locator("div.chart").all()
    assert len(charts) >= 14
    for chart in charts:
        assert chart.locator("svg path").count() > 3
        assert chart.get_attribute("role") == "img"
        assert len(chart.get_attribute("aria-label")) > 20
    assert (
        page.locator(f"{LINES} div.chart")
        .get_attribute("aria-label")
        .startswith("accuracy now (ID) over time, by method. ")
    )
    assert page.locator("figure:has(figcaption:text-matches('against compute'))").count() == 3


def test_a_method_has_one_colour_in_all_sections(page: Any) -> None:
    expected = colours()
    for button in page.locator("[data-toggle]").all():
        stroke = button.locator("line").get_attribute("stroke").upper()
        assert stroke == expected[button.get_attribute("data-toggle")]
    assert set(strokes(page)) == {expected[method] for method in METHODS}


def test_a_hostile_name_is_text_everywhere(page: Any) -> None:
    assert page.locator(f"{TIMELINE} tr[data-method] th", has_text=HOSTILE).count() == 1
    assert page.locator(f"{TIMELINE} [data-toggle]", has_text=HOSTILE).count() == 1
    assert page.locator(f"{TIMELINE} .card summary", has_text=HOSTILE).count() == 1
    assert page.locator(f"{TIMELINE} .mark-text text", has_text=HOSTILE).count() == 1
    assert page.locator("script").count() == 3


def test_pointing_at_a_mark_shows_its_numbers(page: Any) -> None:
    marks = page.locator(f"{LINES} .mark-symbol path")
    assert marks.count() == 6
    shown = set()
    for mark in marks.all():
        centred(mark).hover(force=True)
        tooltip = page.locator("#vg-tooltip-element.visible")
        tooltip.wait_for()
        text = tooltip.inner_text()
        assert re.search(r"accuracy now \(ID\)\s*\d+\.\d%", text)
        assert re.search(r"seeds\s*3", text)
        assert tooltip.locator("script").count() == 0
        shown |= {method for method in METHODS if method in text}
    assert shown == set(METHODS)
    page.mouse.move(0, 0)


def test_a_press_in_the_legend_hides_and_shows_a_method(page: Any) -> None:
    button = page.locator(f"{TIMELINE} [data-toggle=ft]")
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    page.wait_for_function("document.querySelectorAll('[data-map=ft]')[0].hidden")
    assert set(strokes(page)) == {colours()[method] for method in METHODS if method != "ft"}
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    assert set(strokes(page)) == {colours()[method] for method in METHODS}


def test_a_row_brings_its_curve_to_the_front_and_back(page: Any) -> None:
    row = page.locator(f"{TIMELINE} tr[data-method=erm]")
    row.locator("th button").focus()
    page.keyboard.press("Enter")
    assert "chosen" in row.get_attribute("class")
    found = strokes(page)
    assert found.pop(colours()["erm"]) == 1
    assert set(found.values()) == {0.125}
    assert "dimmed" in page.locator("[data-map=ft]").get_attribute("class")
    assert not page.locator("section:not(:has([data-map])) tr.chosen").count()  # other sections do not follow
    page.keyboard.press("Enter")
    assert set(strokes(page).values()) == {1}
    assert row.locator("th button").get_attribute("aria-pressed") == "false"


def test_a_mark_brings_its_row_to_the_front_and_back(page: Any) -> None:
    colour = colours()["ft"]
    mark = page.locator(f"{LINES} .mark-symbol path[fill='{colour}' i]").first
    for chosen in (1, 0):
        centred(mark).click(force=True)
        assert page.locator(f"{TIMELINE} tr.chosen[data-method=ft]").count() == chosen
    page.mouse.move(0, 0)


def test_a_press_on_a_heading_sorts(page: Any) -> None:
    assert order(page) == [HOSTILE, "erm", "ft"]
    heading = page.locator(f"{TIMELINE} table.results th", has_text="GMAC")
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "descending"
    assert order(page) == [HOSTILE, "ft", "erm"]  # 3, 2 and 1 GMAC
    heading.locator("button").press("Enter")
    assert heading.get_attribute("aria-sort") == "ascending"
    assert order(page) == ["erm", "ft", HOSTILE]
    page.locator(f"{TIMELINE} table.results th button", has_text="method").click()
    assert heading.get_attribute("aria-sort") == "none"
    assert order(page) == [HOSTILE, "erm", "ft"]


def test_the_numbers_of_a_chart_are_a_table(page: Any) -> None:
    page.locator(f"{LINES} details.numbers summary").press("Enter")
    table = page.locator(f"{LINES} details.numbers table")
    table.wait_for()
    assert table.locator("thead th").all_inner_texts()[:3] == ["method", "time", "value"]
    found = {tuple(row.locator("th, td").all_inner_texts()[:3]) for row in table.locator("tbody tr").all()}
    assert found == {
        (method, time, f"{value - drop:.4g}")
        for method, value in zip(METHODS, (0.51, 0.31, 0.61), strict=True)
        for time, drop in (("a", 0.0), ("b", 0.1))
    }
    page.locator(f"{LINES} details.numbers summary").press("Enter")


def test_tab_reaches_everything(page: Any) -> None:
    wanted = page.locator("a[href], button, summary:visible, [tabindex='0']:visible")
    assert wanted.first.get_attribute("class") == "skip"
    wanted.first.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")  # a browser outlines what the keyboard reached, not always what a script focused
    assert wanted.first.bounding_box()["x"] >= 0  # seen as soon as it has the focus
    mark = "(() => { const now = document.activeElement; if (now === document.body || now.dataset.met) return false;"
    mark += " now.dataset.met = 1; return getComputedStyle(now).outlineStyle !== 'none'; })()"
    met = 0
    while page.evaluate(mark):
        met += 1
        page.keyboard.press("Tab")
    assert met == wanted.count()


def test_headings_come_in_order(page: Any) -> None:
    levels = [int(name[1]) for name in page.locator("h1, h2, h3, h4").evaluate_all("all => all.map(h => h.tagName)")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert page.locator("main table:not(:has(th[scope=col]))").count() == 0


def test_contents_lead_to_sections(page: Any) -> None:
    assert page.locator("nav a").count() == 4  # three sections and the matrix
    page.locator("nav a", has_text="timeline").click()
    assert page.evaluate("document.querySelector(':target h2').textContent").startswith("timeline")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1200])
def test_no_view_is_wider_than_the_window(page: Any, width: int, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 800})
    assert page.evaluate(OVERFLOW) <= 0
    wide = "all => all.filter(svg => svg.getBoundingClientRect().right > innerWidth).length"
    assert page.locator("figure svg").evaluate_all(wide) == 0
    back, text, axis = (
        page.evaluate(f"getComputedStyle(document.querySelector('{where}')).{what}")
        for where, what in (("body", "backgroundColor"), ("body", "color"), (".role-axis-label text", "fill"))
    )
    light, ink = (sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in (back, text))
    assert (light > 600 > 200 > ink) if scheme == "light" else (light < 200 < 600 < ink)
    assert axis == text
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1200, "height": 900})


def test_no_header_is_broken_within_a_word(page: Any) -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    lines = "r => th => { r.selectNodeContents(th.firstChild); return r.getClientRects().length; }"
    for name in ("GMAC", "seeds", "method"):
        button = page.locator(f"{TIMELINE} table.results thead button", has_text=name)
        assert button.evaluate(f"button => ({lines})(document.createRange())(button)") == 1, name
    assert page.evaluate(OVERFLOW) <= 0
    page.set_viewport_size({"width": 1200, "height": 900})


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1200])
def test_the_matrix_can_be_read_everywhere(page: Any, width: int, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 800})
    matrix = page.locator("section.matrix")
    assert matrix.locator("td").count() == 8
    assert matrix.locator("td.up, td.down").count() >= 1
    assert least_contrast(matrix.locator("td, td small, th, th small")) >= 4.5
    texts = matrix.locator("td").all_inner_texts()
    assert all("n = " in text or "reveals inputs only" in text for text in texts)
    box = matrix.locator(".wide")
    box.evaluate("box => box.scrollTo(9999, 0)")
    name, edge = matrix.locator("tbody th").first.bounding_box(), box.bounding_box()
    assert name["x"] == pytest.approx(edge["x"], abs=1)  # names stay in sight
    assert name["width"] < 0.5 * edge["width"]
    box.evaluate("box => box.scrollTo(0, 0)")
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1200, "height": 900})


def test_the_matrix_prints_with_whole_names(page: Any) -> None:
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 718, "height": 1000})
    frozen = page.locator("section.matrix tbody th", has_text="frozen")
    lines = "r => th => { r.selectNodeContents(th.firstChild); return r.getClientRects().length; }"
    assert frozen.evaluate(f"th => ({lines})(document.createRange())(th)") == 1
    assert page.evaluate(OVERFLOW) <= 0
    page.emulate_media(media="screen")
    page.set_viewport_size({"width": 1200, "height": 900})


def test_it_prints_without_folded_cards_and_with_whole_charts(page: Any, tmp_path: Path) -> None:
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 718, "height": 1000})  # A4 less its margins
    assert page.locator("details:not([open])").first.is_hidden()
    whole = "all => all.every(f => getComputedStyle(f).breakInside === 'avoid')"
    assert page.locator("figure").evaluate_all(whole)
    assert page.evaluate(OVERFLOW) <= 0
    printed = page.pdf(path=str(tmp_path / "report.pdf"), format="A4")
    assert printed.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) < 14
    page.emulate_media(media="screen")
    page.set_viewport_size({"width": 1200, "height": 900})
