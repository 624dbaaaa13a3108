"""A report in a real browser, with the network off. One browser and one page serve all checks."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from driftline.io.checksums import write_checked
from driftline.record.run import Record, Run
from driftline.report.page.page import write_report

from ..report.conftest import adapted, at, cell_rows, final, summary_rows, write_run

HOSTILE = "<script>alert(1)</script>"
PERIODS = "abc"


def timeline(folder: Path) -> Iterator[Any]:
    """Three methods with three seeds; the hostile one is best, and each costs as much as the next one and more."""
    for place, (label, level) in enumerate((("erm", 0.5), ("ft", 0.3), (HOSTILE, 0.6))):
        for seed in range(3):
            v = level + 0.01 * seed
            cells = {(t, tau): v for t in PERIODS for tau in PERIODS if t <= tau}
            each = [row for name in ("id", "ood", "tas") for row in at(name, ta=v, tb=v - 0.1)]
            means = summary_rows({(name, "mean"): v for name in ("id", "ood", "tas", "sh")})
            cost = {"forward_macs": (place + 1) * 10**9, "backward_macs": 0}
            rows = [*cell_rows("accuracy", cells), *cell_rows("ttr", cells), *each, *means]
            yield write_run(folder, label, seed, rows, compute=cost)


def streams(folder: Path) -> Iterator[Any]:
    """A stream on which one method gains and one collapses."""
    curves = {"frozen": [0.5, 0.5, 0.5, 0.5], "bn": [0.6, 0.7, 0.7, 0.7], "tent": [0.6, 0.4, 0.2, 0.1]}
    for label, curve in curves.items():
        for seed in range(3):
            yield adapted(folder, label, seed, [value + 0.01 * seed for value in curve])


def finals(folder: Path) -> Iterator[Any]:
    """A sequence that is evaluated once, at its end."""
    for label, level in (("oracle", 0.9), ("baseline", 0.4), ("erm", 0.6)):
        for seed in range(2):
            rows = [final("final-accuracy", level + 0.01 * seed, "mean")]
            settings = {"shifts": "R"}
            yield write_run(folder, label, seed, rows, run__benchmark="seq-to-final", run__options=settings, metrics={})


def crossed(runs: list[Run], folder: Path) -> None:
    """A matrix of the methods of two benchmarks, beside their runs: one cell cannot run, one name is hostile."""
    methods, names = [HOSTILE, "frozen", "tent", "erm"], ("timeline", "test-time")
    keys = {(b, m): [run.key for run in runs if _is(run, b, m)] for b in names for m in methods}
    cells = [
        {"benchmark": benchmark, "method": method, "keys": found, "label": method, "uses": "inputs"}
        | {"reason": "" if found else f"{method} needs all labels, and {benchmark} reveals inputs only. More."}
        | {"lacks": "" if found else "all labels"}
        for (benchmark, method), found in keys.items()
    ]
    columns = [{"name": "timeline", "reveals": "labels"}, {"name": "test-time", "reveals": "inputs"}]
    folder.mkdir()
    content = {"methods": methods, "seeds": [0, 1, 2], "benchmarks": columns, "cells": cells}
    write_checked(folder / "m.json", content)


def _is(run: Run, benchmark: str, method: str) -> bool:
    return (run.card.run.benchmark, run.method) == (benchmark, method)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("store")
    runs = [run for make in (timeline, streams, finals) for run in make(store / "runs")]
    crossed(runs, store / "matrices")
    output = tmp_path_factory.mktemp("page") / "report.html"
    write_report(Record(runs), output)
    return output


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("chromium is not installed: apt-get install chromium")
    with sync.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def complaints() -> list[str]:
    """What the browser had to say: errors, messages on the console, requests for anything but the page."""
    return []


@pytest.fixture(scope="module")
def page(browser: Any, report: Path, complaints: list[str]) -> Iterator[Any]:
    yield from opened(browser, report, complaints)


def opened(browser: Any, file: Path, complaints: list[str]) -> Iterator[Any]:
    """A page without a network, after its charts are drawn."""
    context = browser.new_context(viewport={"width": 1200, "height": 900}, offline=True)
    page = context.new_page()
    page.set_default_timeout(20_000)
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(dialog.message) or dialog.dismiss())
    page.on("request", lambda request: request.url.startswith("file:") or complaints.append(request.url))
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-charts=drawn]", state="attached")
    yield page
    context.close()


def least_contrast(elements: Any, ink: str = "color") -> float:
    """How well words stand out at least, as WCAG has it: in their own colour on what is really behind them."""
    found: list[list[str]] = elements.evaluate_all(
        """(elements, ink) => {
            const pen = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
            const read = colours => {
                for (const colour of colours) { pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1); }
                return Array.from(pen.getImageData(0, 0, 1, 1).data).slice(0, 3).join(" ");
            };
            const pairs = elements.map(element => {
                const back = ["white"];
                const add = at => back.splice(1, 0, getComputedStyle(at).backgroundColor);
                for (let at = element; at; at = at.parentElement) add(at);
                return JSON.stringify([back, getComputedStyle(element)[ink]]);
            });
            return Array.from(new Set(pairs)).map(JSON.parse).map(([back, own]) => [read(back), read([...back, own])]);
        }""",
        ink,
    )
    return min(_contrast(*pair) for pair in found)


def _contrast(*colours: str) -> float:
    bright = []
    for colour in colours:
        parts = [int(part) / 255 for part in colour.split()]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        bright.append(0.2126 * red + 0.7152 * green + 0.0722 * blue)
    return (max(bright) + 0.05) / (min(bright) + 0.05)
