"""Make docs/report.png, the picture of a report in the README, and docs/audit.png: `python docs/screenshot.py [RUNS]`.

RUNS is a folder of finished runs; without it the quickstart makes some first; with `audit` only the audit's picture is
made. Needs Chromium and playwright.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import driftline
from driftline.auditing.examples import table
from driftline.cli.commands.run_quickstart import run_quickstart
from driftline.record.run import load
from driftline.report.page.page import write_report

PICTURE = Path(__file__).parent / "report.png"
AUDIT_PICTURE = Path(__file__).parent / "audit.png"
WIDTH, HEIGHT = 1280, 1086


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


def picture(page: Path, output: Path, width: int = WIDTH, height: int = HEIGHT) -> None:
    """The first screen of the page, in light mode."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("chromium is not installed: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
        tab.goto(page.as_uri())
        tab.wait_for_selector("html[data-charts=drawn]", state="attached", timeout=120_000)
        tab.screenshot(path=output)
        browser.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        picture(audit_page(Path(folder)), AUDIT_PICTURE, 1280, 1460)
        if sys.argv[1:] != ["audit"]:
            picture(report(Path(folder), Path(sys.argv[1]) if len(sys.argv) > 1 else None), PICTURE)
    for made in (PICTURE, AUDIT_PICTURE):
        print(f"{made}: {made.stat().st_size:,} bytes")
