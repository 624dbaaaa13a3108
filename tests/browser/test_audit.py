"""What a reader can do with the page of an audit: see, point, open, print; none of it needs a network."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import driftline
from driftline.auditing import AuditResult
from driftline.auditing.examples import table

from .conftest import HOSTILE, least_contrast, opened

pytestmark = pytest.mark.xdist_group("browser-audit")  # one process makes what all tests share

OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
OPTIONS: dict[str, Any] = {"time": "when", "target": "y", "period": "100 rows"}


@pytest.fixture(scope="module")
def result() -> AuditResult:
    frame = table("concept", rows=500).rename(columns={"color": HOSTILE})
    frame.loc[frame[HOSTILE] == frame[HOSTILE].iloc[0], HOSTILE] = "</script><b>"
    frame.loc[300:, HOSTILE] = "new"
    return driftline.audit(frame, model="logistic-regression", **OPTIONS)


@pytest.fixture(scope="module")
def page(
    browser: Any, result: AuditResult, complaints: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    file = tmp_path_factory.mktemp("audit") / "audit.html"
    result.write(file)
    yield from opened(browser, file, complaints)


@pytest.fixture(autouse=True)
def nothing_is_wrong(page: Any, complaints: list[str]) -> Any:
    yield
    assert complaints == []


def test_the_first_screen_has_the_verdict_beside_the_chart(page: Any, result: AuditResult) -> None:
    box, figure = page.locator(".verdict").bounding_box(), page.locator(".first figure").bounding_box()
    assert box["y"] == figure["y"]
    assert box["y"] + box["height"] < 900
    assert page.locator(".verdict .word").inner_text() == result.summary.word
    assert page.locator(".verdict dt").all_inner_texts() == [row.label for row in result.summary.rows]
    assert page.locator(".fact .number").count() == 3
    assert page.locator("tr.answer .tag").first.inner_text() == "recommended"


def test_charts_in_view_are_drawn_and_folded_ones_when_opened(page: Any) -> None:
    for chart in page.locator("main > :not(.folds) .chart").all():
        assert chart.locator("svg path").count() > 1
        assert len(chart.get_attribute("aria-label")) > 20
    folded = page.locator("#aging .chart")
    assert folded.count() == 2
    assert folded.locator("svg").count() == 0
    page.locator("#aging > summary").press("Enter")
    page.wait_for_function("document.querySelectorAll('#aging .chart svg').length === 2")
    assert folded.first.bounding_box()["width"] > 300
    page.locator("#aging > summary").press("Enter")


def test_a_hostile_name_is_text_everywhere(page: Any) -> None:
    assert page.locator(".feature code", has_text=HOSTILE).count() == 1
    assert page.locator("script").count() == 4
    assert "alert" in page.locator("#inputs tbody th").first.text_content()


def test_a_question_leads_to_its_definition_and_all_numbers_are_there(page: Any, result: AuditResult) -> None:
    page.locator(".fact a", has_text="TAS").press("Enter")
    page.wait_for_function("document.getElementById('how').open")
    assert page.locator("#tas").is_visible()
    page.locator("#provenance > summary").press("Enter")
    page.wait_for_function("document.querySelector('[data-shows]').textContent.length > 100")
    shown = json.loads(page.locator("[data-shows]").text_content())
    assert shown["summary"]["word"] == result.summary.word
    assert shown["gate_values"]["tas"] == pytest.approx(result.gate_values["tas"], rel=1e-5)
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = false)")


def test_pointing_at_a_point_shows_its_numbers(page: Any) -> None:
    mark = page.locator(".first figure .mark-symbol path").last
    mark.evaluate("mark => mark.scrollIntoView({block: 'center'})")
    mark.hover(force=True)
    tooltip = page.locator("#vg-tooltip-element.visible")
    tooltip.wait_for()
    assert re.search(r"accuracy\s*\d+\.\d% \[\d+\.\d,\s\d+\.\d\]", tooltip.inner_text())
    page.mouse.move(0, 0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_every_width_and_can_be_read(page: Any, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    for width in (390, 768, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
        assert page.evaluate(OVERFLOW) <= 0, width
        wide = "all => all.filter(svg => svg.getBoundingClientRect().right > innerWidth).length"
        assert page.locator(".chart svg").evaluate_all(wide) == 0, width
    words = page.locator(".word, .why, dd, dt, .soft, .interval, .axis, .source, summary, summary span, td, th, .tag")
    assert words.count() > 60
    assert least_contrast(words) >= 4.5
    assert least_contrast(page.locator(".chart svg text"), "fill") >= 4.5
    page.emulate_media(color_scheme="light")
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = false)")
    page.set_viewport_size({"width": 1200, "height": 900})


def test_the_keyboard_reaches_every_fold(page: Any) -> None:
    page.locator(".skip").focus()
    met = []
    for _ in range(30):
        page.keyboard.press("Tab")
        met.append(page.evaluate("document.activeElement.closest('details')?.id || ''"))
    folds = page.locator(".folds > details").evaluate_all("all => all.map(part => part.id)")
    assert [name for name in dict.fromkeys(met) if name] == folds


def test_it_prints_whole_cards(page: Any) -> None:
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 718, "height": 1000})
    assert page.evaluate(OVERFLOW) <= 0
    assert page.locator(".card").evaluate_all("all => all.every(c => getComputedStyle(c).breakInside === 'avoid')")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.emulate_media(media="screen")
    page.set_viewport_size({"width": 1200, "height": 900})


def test_a_log_has_its_own_page(browser: Any, complaints: list[str], tmp_path: Path) -> None:
    frame = table("concept", rows=500)
    frame["logged"] = (frame["b"] > 0).map({True: "yes", False: "no"})
    driftline.audit(frame, predictions="logged", **OPTIONS).write(tmp_path / "log.html")
    for log in opened(browser, tmp_path / "log.html", complaints):
        assert log.locator(".verdict dt").all_inner_texts() == ["Change", "Cause", "How sure", "Alarms"]
        assert log.locator(".first .chart svg").count() == 1
        assert log.locator("text=recommended").count() == 0
        log.set_viewport_size({"width": 390, "height": 800})
        assert log.evaluate(OVERFLOW) <= 0
