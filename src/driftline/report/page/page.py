"""The report: one HTML page that needs neither network nor server, to mail, archive and print."""

from __future__ import annotations

from pathlib import Path

from driftline.io.atomic import write_bytes
from driftline.record.run import Record
from driftline.report.analysis.displays import labeled_groups
from driftline.report.analysis.matrix import MatrixView, views
from driftline.report.analysis.repeats import average_repeats
from driftline.report.analysis.result_table import tabulate
from driftline.report.page.embed import PageCharts, bundle, template
from driftline.report.page.explorer import explorer
from driftline.report.page.front import front_cards, position
from driftline.report.page.section import Section, build
from driftline.report.page.short_names import settings, with_short_names
from driftline.report.tables import matrix
from driftline.types import JsonObject
from driftline.version import __version__


def write_report(record: Record, output: Path) -> None:
    """Write the page of all groups of a record, atomically."""
    write_bytes(output, page(record).encode())


def page(record: Record) -> str:
    """Return the page as text; runs that differ only in an averaged option share a section."""
    tables = [tabulate(group) for group in average_repeats(labeled_groups(record))]
    charts = PageCharts()
    found = views(record)
    crossed = {key for view in found for key in view.keys}
    sections = [
        build(
            with_short_names(table),
            *(place, charts, settings(table.group.methods)),
            in_matrix=all(run.key in crossed for run in table.group.runs),
        )
        for place, table in enumerate(tables)
    ]
    charts.explorer = explorer(sorted(sections, key=position))
    text: str = template().render(
        sections=sections,
        cards=front_cards(sections, charts),
        matrices=[_matrix(view, k) for k, view in enumerate(found)],
        matrix=matrix,
        definitions=_definitions(sections),
        methods=len({method for section in sections for method in section.table.group.methods}),
        runs=len(record),
        version=__version__,
        figures=charts.content(),
        bundle=bundle(),
    )
    return text


def _matrix(view: MatrixView, place: int) -> JsonObject:
    words = {"notes": matrix.notes(view), "title": matrix.finding(view)}
    return {"view": view, "anchor": f"matrix-{place}", "methods": _best_first(view), **words}


def _best_first(view: MatrixView) -> list[str]:
    """Return the methods that are best or tied in most benchmarks, then those that gain in most."""
    cells = {method: view.row(method) for method in view.methods}
    best = {m: sum(view.is_bold(column, cell) for column, cell in row) for m, row in cells.items()}
    gains = {m: sum(cell.certain for _, cell in row) for m, row in cells.items()}
    return sorted(view.methods, key=lambda method: (-best[method], -gains[method]))


def _definitions(sections: list[Section]) -> dict[str, str]:
    """Return every metric of the tables with its formula, once."""
    columns = [column for section in sections for column in section.table.columns]
    return {column.word: column.formula for column in columns}
