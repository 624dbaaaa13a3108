"""Make the pictures of reports and audits in the documentation: `python docs/screenshot.py [RUNS]`.

`report.png` and `audit.png` show the first screen on a desktop, `report-phone.png`, `report-dark.png` and
`report-print.png` the report on a phone, in dark mode and as it is printed. RUNS is a folder of finished runs; without
it the quickstart makes some first; with `audit` only the audit's picture is made. Needs Chromium and playwright.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from playwright.sync_api import ViewportSize, sync_playwright

import driftline
from driftline.auditing.examples import table
from driftline.cli.commands.run_quickstart import run_quickstart
from driftline.record.run import load
from driftline.report.page.page import write_report

DOCS = Path(__file__).parent


@dataclass(frozen=True)
class View:
    """How a page is looked at: the size of the window, and what the browser emulates."""

    width: int
    height: int
    color_scheme: Literal["light", "dark"] = "light"
    media: Literal["screen", "print"] = "screen"


AUDIT = {"audit.png": View(1280, 1460)}
REPORT = {
    "report.png": View(1280, 1086),
    "report-phone.png": View(390, 1000),
    "report-dark.png": View(1280, 800, color_scheme="dark"),
    "report-print.png": View(718, 1000, media="print"),  # A4 less its margins
}


def report(folder: Path, runs: Path | None) -> Path:
    """A report on these runs, or on those of the quickstart."""
    page = folder / "report.html"
    if runs is not None:
        write_report(load(runs), page)
    elif run_quickstart(page, folder / "runs", jobs=2):
        sys.exit("the quickstart failed: no picture was made")
    return page


def audit_page(folder: Path) -> Path:
    """The page of an audit of a table whose relation changes in the middle of the year."""
    frame = table("concept", rows=4000)
    page = folder / "audit.html"
    driftline.audit(frame, time="when", target="y", model="logistic-regression", period="month").write(page)
    return page


def pictures(page: Path, views: dict[str, View]) -> None:
    """Save the first screen of the page in each view."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("chromium is not installed: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, view in views.items():
            size: ViewportSize = {"width": view.width, "height": view.height}
            tab = browser.new_page(viewport=size, color_scheme=view.color_scheme)
            tab.goto(page.as_uri())
            tab.wait_for_selector("html[data-charts=drawn]", state="attached", timeout=120_000)
            tab.emulate_media(media=view.media)
            tab.screenshot(path=DOCS / name)
            print(f"{DOCS / name}: {(DOCS / name).stat().st_size:,} bytes")
            tab.close()
        browser.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        pictures(audit_page(Path(folder)), AUDIT)
        if sys.argv[1:] != ["audit"]:
            pictures(report(Path(folder), Path(sys.argv[1]) if len(sys.argv) > 1 else None), REPORT)
