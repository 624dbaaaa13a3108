"""The report: one HTML page that needs neither network nor server, and can be mailed, archived and printed."""

from __future__ import annotations

from pathlib import Path

from driftline.atomic import write_bytes
from driftline.record import Record
from driftline.report.analysis.groups import groups
from driftline.report.analysis.repeats import over_speeds
from driftline.report.analysis.result_table import tabulate
from driftline.report.figures.palette import looks
from driftline.report.page.embed import Figures, bundle, template
from driftline.report.page.front import chapters
from driftline.report.page.section import section
from driftline.report.tables.matrix import on_page
from driftline.version import __version__


def write_report(record: Record, output: Path) -> None:
    """Write the page of all groups in the record; an older page is replaced in one step."""
    write_bytes(output, page(record).encode())


def page(record: Record) -> str:
    """The page as text; streams that differ in their speed alone share a section."""
    tables = [tabulate(group) for group in over_speeds(groups(record))]
    figures = Figures(looks(table.group.methods for table in tables))
    sections = [section(table, place, figures) for place, table in enumerate(tables)]
    text: str = template().render(
        sections=sections,
        chapters=chapters(sections),
        **on_page(record),
        runs=len(record),
        version=__version__,
        figures=figures.content(),
        bundle=bundle(),
    )
    return text
