"""What a reader can do with the report: see, point, press, sort, compare, print; none of it needs a network."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from .conftest import HOSTILE, least_contrast

pytestmark = pytest.mark.xdist_group("browser-report")  # one process makes what all tests share

TIMELINE = "section.group:has(h2:text-matches('^timeline'))"
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
DRAWN = "html[data-charts=drawn]"
GO = """to => new Promise(done => {
    if (location.hash === to) return done();
    addEventListener("hashchange", () => done(), {once: true});
    location.hash = to;
})"""


@pytest.fixture(autouse=True)
def nothing_is_wrong(page: Any, complaints: list[str]) -> Any:
    yield
    assert complaints == []


def show(page: Any, anchor: str) -> None:
    """Open a view and wait for its charts."""
    page.evaluate(GO, f"#{anchor}")
    page.wait_for_selector(DRAWN, state="attached")


def timeline(page: Any) -> str:
    return str(page.locator(TIMELINE).get_attribute("id"))


def order(page: Any) -> list[str]:
    return [text.strip() for text in page.locator(f"{TIMELINE} table.results tbody th").all_inner_texts()]


def test_the_front_page_has_a_card_per_benchmark_in_order(page: Any) -> None:
    show(page, "answers")
    cards = page.locator(".answer-card")
    assert cards.locator(".name b").all_inner_texts() == ["timeline", "seq-to-final", "test-time"]
    for card in cards.all():
        assert card.locator(".says, .number, .chart svg, .source, .name a").count() == 5
        assert card.locator(".chart svg path").count() > 3
        assert len(card.locator(".chart").get_attribute("aria-label")) > 20
        words = re.sub(r"\s+", " ", card.locator(".says").inner_text()).split(" ")
        assert len(words) <= 16
    assert page.locator(".view:visible").count() == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 768, 1280])
def test_no_view_is_wider_than_the_window(page: Any, width: int, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    anchors = page.locator(".view").evaluate_all("all => all.map(view => view.id)")
    assert len(anchors) >= 4
    for anchor in anchors:
        show(page, anchor)
        assert page.evaluate(OVERFLOW) <= 0, anchor
        wide = "all => all.filter(svg => svg.getBoundingClientRect().right > innerWidth).length"
        assert page.locator(f"#{anchor} .chart svg").evaluate_all(wide) == 0
    show(page, "answers")
    assert least_contrast(page.locator(".says, .ask, .interval, .source, .axis, .name a")) >= 4.5
    first = page.locator(".answer-card .chart svg").first.bounding_box()
    assert first["y"] < 900 - 100, "the first chart begins on the first screen"
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1280, "height": 900})


def test_details_lead_to_a_benchmark_and_back(page: Any) -> None:
    show(page, "answers")
    page.locator(".answer-card .name a").first.click()
    page.locator(TIMELINE).wait_for()
    assert not page.locator("#answers").is_visible()
    page.locator(f"{TIMELINE} .back a").click()
    page.locator("#answers").wait_for()
    assert not page.locator(TIMELINE).is_visible()
    for link in page.locator("a[href^='#']").all():
        assert page.locator(str(link.get_attribute("href"))).count() == 1


def test_a_hostile_name_is_text_everywhere(page: Any) -> None:
    show(page, timeline(page))
    assert page.locator(f"{TIMELINE} tr[data-method] th", has_text=HOSTILE).count() == 1
    assert page.locator(f"{TIMELINE} .protocol-card summary", has_text=HOSTILE).count() == 1
    assert page.locator("script").count() == 3


def test_pointing_at_a_mark_shows_its_numbers(page: Any) -> None:
    show(page, timeline(page))
    mark = page.locator(f"{TIMELINE} .figures figure").first.locator(".mark-symbol path").first
    mark.evaluate("mark => mark.scrollIntoView({block: 'center'})")
    mark.hover(force=True)
    tooltip = page.locator("#vg-tooltip-element.visible")
    tooltip.wait_for()
    assert re.search(r"accuracy\s*\d+\.\d% \[.*?\]", tooltip.inner_text())
    assert re.search(r"seeds\s*3", tooltip.inner_text())
    page.mouse.move(0, 0)


def test_a_row_brings_its_mark_to_the_front_and_back(page: Any) -> None:
    show(page, timeline(page))
    row = page.locator(f"{TIMELINE} tr[data-method=erm]")
    button = row.locator("th button")
    button.focus()
    page.keyboard.press("Enter")
    assert "chosen" in row.get_attribute("class")
    assert button.get_attribute("aria-pressed") == "true"
    page.keyboard.press("Enter")
    assert button.get_attribute("aria-pressed") == "false"


def test_all_metrics_unfold_and_a_heading_sorts(page: Any) -> None:
    show(page, timeline(page))
    assert order(page) == [HOSTILE, "erm", "ft"]
    gmac = page.locator(f"{TIMELINE} table.results th", has_text="GMAC")
    button = page.locator(f"{TIMELINE} .all-metrics")
    assert not gmac.is_visible()
    button.click()
    assert button.get_attribute("aria-expanded") == "true"
    gmac.locator("button").click()
    assert gmac.get_attribute("aria-sort") == "descending"
    assert order(page) == [HOSTILE, "ft", "erm"]  # 3, 2 and 1 GMAC
    gmac.locator("button").press("Enter")
    assert order(page) == ["erm", "ft", HOSTILE]
    assert page.evaluate(OVERFLOW) <= 0
    name = page.locator(f"{TIMELINE} table.results tbody th").first
    assert name.evaluate("th => getComputedStyle(th).position") == "sticky"
    button.click()


def test_folded_curves_are_drawn_when_opened(page: Any) -> None:
    show(page, timeline(page))
    fold = page.locator(f"{TIMELINE} details", has_text="All curves").first
    assert fold.locator("svg").count() == 0
    fold.locator("summary").first.click()
    fold.locator(".chart svg").first.wait_for()
    page.wait_for_selector(DRAWN, state="attached")
    assert fold.locator(".chart:not(:has(svg))").count() == 0
    fold.locator("details.numbers summary").first.press("Enter")
    table = fold.locator("details.numbers table").first
    table.wait_for()
    assert table.locator("thead th").all_inner_texts()[:3] == ["time", "at", "value"]
    fold.locator("summary").first.click()


@pytest.mark.parametrize("width", [390, 1280])
def test_every_fold_of_every_view_can_be_opened(page: Any, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    for anchor in page.locator(".view").evaluate_all("all => all.map(view => view.id)"):
        show(page, anchor)
        page.locator(f"#{anchor} details").evaluate_all("all => all.forEach(fold => { fold.open = true; })")
        page.wait_for_timeout(50)  # until the folds have said that they are open
        page.wait_for_selector(DRAWN, state="attached")
        assert page.locator(f"#{anchor} .chart:not(:has(svg))").count() == 0
        assert page.evaluate(OVERFLOW) <= 0, anchor
        page.locator(f"#{anchor} details").evaluate_all("all => all.forEach(fold => { fold.open = false; })")
    page.set_viewport_size({"width": 1280, "height": 900})


def test_figures_have_the_commands_that_print_them(page: Any) -> None:
    show(page, timeline(page))
    commands = page.locator(f"{TIMELINE} details[id$=reproduce] code").all_text_contents()
    assert "driftline figure transfer --benchmark timeline -o transfer.pdf" in commands
    assert any(command.startswith("driftline run timeline") for command in commands)


def test_the_explorer_filters_and_compares_two_runs(page: Any) -> None:
    show(page, "explorer")
    rows = page.locator("#explorer-results tbody tr")
    everything = rows.count()
    page.select_option("[data-filter='0']", "timeline")
    page.select_option("[data-filter='2']", "ft")
    page.select_option("[data-filter='3']", "accuracy later (OOD), mean")
    assert [text.split("\t")[4] for text in rows.all_inner_texts()] == ["31.0 %"]
    for place in "320":
        page.select_option(f"[data-filter='{place}']", "")
    assert rows.count() == everything
    runs = page.locator("#first-run option").all_inner_texts()
    first, second = (
        next(k for k, run in enumerate(runs) if run.startswith(f"{name}, seed 0")) for name in ("ft", HOSTILE)
    )
    page.select_option("#first-run", str(first))
    page.select_option("#second-run", str(second))
    found = [text.split("\t") for text in page.locator("#difference tbody tr").all_inner_texts()]
    assert ["accuracy later (OOD), mean", "30.00", "60.00", "+30.00"] in found
    assert any(row[1:3] == ["ft", HOSTILE] for row in found)
    assert not any(row[0] == "run.seed" for row in found)


def test_tab_reaches_everything_on_the_front_page(page: Any) -> None:
    show(page, "answers")
    wanted = page.locator("a[href]:visible, button:visible, summary:visible, [tabindex='0']:visible")
    page.locator(".skip").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")  # a browser outlines what the keyboard reached, not always what a script focused
    mark = "(() => { const now = document.activeElement; if (now === document.body || now.dataset.met) return false;"
    mark += " now.dataset.met = 1; return getComputedStyle(now).outlineStyle !== 'none'; })()"
    met = 0
    while page.evaluate(mark):
        met += 1
        page.keyboard.press("Tab")
    assert met == wanted.count()


def test_headings_come_in_order(page: Any) -> None:
    show(page, "answers")
    levels = [int(name[1]) for name in page.locator("h1, h2, h3, h4").evaluate_all("all => all.map(h => h.tagName)")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 2 for before, after in pairwise(levels))
    assert page.locator("main table:not(:has(th[scope=col]))").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_matrix_can_be_read_everywhere(page: Any, width: int, scheme: str) -> None:
    show(page, "answers")
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 800})
    matrix = page.locator("section.matrix")
    assert matrix.locator("td").count() == 8
    assert matrix.locator("td.up, td.down").count() >= 1
    assert least_contrast(matrix.locator("td, td small, th, th small")) >= 4.5
    assert matrix.locator("td.none").all_inner_texts() == ["needs all labels"] * matrix.locator("td.none").count()
    assert page.evaluate(OVERFLOW) <= 0
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1280, "height": 900})


def test_it_prints_without_folded_parts_and_with_whole_cards(page: Any, tmp_path: Path) -> None:
    show(page, "answers")
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 718, "height": 1000})  # A4 less its margins
    assert page.locator("details:not([open])").first.is_hidden()
    assert page.locator(".card").evaluate_all("all => all.every(c => getComputedStyle(c).breakInside === 'avoid')")
    assert page.evaluate(OVERFLOW) <= 0
    printed = page.pdf(path=str(tmp_path / "report.pdf"), format="A4")
    assert printed.startswith(b"%PDF")
    page.emulate_media(media="screen")
    page.set_viewport_size({"width": 1280, "height": 900})
