"""The report: one HTML page that needs neither network nor server, to mail, archive and print."""

from __future__ import annotations

from pathlib import Path

from driftline.io.atomic import write_bytes
from driftline.record.run import Record
from driftline.report.analysis.displays import labeled_groups
from driftline.report.analysis.matrix import views
from driftline.report.analysis.repeats import average_repeats
from driftline.report.analysis.result_table import tabulate
from driftline.report.figures.palette import assign_styles
from driftline.report.page.embed import PageCharts, bundle, template
from driftline.report.page.front import answers_by_benchmark
from driftline.report.page.section import build
from driftline.report.tables import matrix
from driftline.types import JsonObject
from driftline.version import __version__


def write_report(record: Record, output: Path) -> None:
    """Write the page of all groups of a record, atomically."""
    write_bytes(output, page(record).encode())


def page(record: Record) -> str:
    """Return the page as text; streams that differ only in speed share a section."""
    tables = [tabulate(group) for group in average_repeats(labeled_groups(record))]
    charts = PageCharts(assign_styles(table.group.methods for table in tables))
    sections = [build(table, place, charts) for place, table in enumerate(tables)]
    text: str = template().render(
        sections=sections,
        benchmarks=answers_by_benchmark(sections),
        matrices=_matrices(record),
        matrix=matrix,
        runs=len(record),
        version=__version__,
        figures=charts.content(),
        bundle=bundle(),
    )
    return text


def _matrices(record: Record) -> list[JsonObject]:
    found = enumerate(views(record))
    return [{"view": view, "anchor": f"matrix-{k}", "notes": matrix.notes(view)} for k, view in found]
