"""Result tables as text: Markdown to read, LaTeX to print, CSV to compute with."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence

from driftline.errors import unknown
from driftline.record import Record
from driftline.report.groups import groups
from driftline.report.notes import caption, formulas, notes
from driftline.report.results import (
    NONE,
    Cell,
    Column,
    ResultTable,
    Row,
    shown,
    shown_gmac,
    shown_interval,
    shown_seeds,
    tabulate,
)

LATEX = {
    "\\": r"\textbackslash{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "·": r"\textperiodcentered{}",
    "×": r"\texttimes{}",
    "–": "--",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "\n": " ",
}


def result_table(record: Record) -> tuple[ResultTable, ...]:
    """One table for each group of comparable runs."""
    return tuple(tabulate(group) for group in groups(record))


def render(tables: Sequence[ResultTable], format: str) -> str:
    """The tables as text: `md`, `latex` or `csv`."""
    if format not in FORMATS:
        raise unknown("format", format, FORMATS)
    return FORMATS[format](tables)


def _caption(table: ResultTable) -> str:
    """What was run on what under which protocol, with how many seeds; the rest of the card is in the notes."""
    protocol = table.group.card["protocol"].get("protocol")
    said = [f"Protocol: {protocol}."] if protocol else []
    return " ".join([caption(table), *said, f"Seeds per method: {span([row.seeds for row in table.rows])}."])


def span(counts: Sequence[int]) -> str:
    """The least and the greatest of several counts.

    >>> span([3, 3]), span([1000, 2000]), span([])
    ('3', '1,000–2,000', '')
    """
    return "–".join(f"{count:,}" for count in sorted({min(counts), max(counts)})) if counts else ""


def _markdown(tables: Sequence[ResultTable]) -> str:
    return "\n".join(_markdown_table(table) for table in tables)


def _markdown_table(table: ResultTable) -> str:
    names = ["method", *(column.title for column in table.columns), "GMAC", "seeds"]
    lines = [
        f"### {plain_md(table.group.title)}",
        "",
        piped(names),
        piped([":--", *(["--:"] * (len(names) - 1))]),
        *(piped(_markdown_row(table, row)) for row in table.lines()),
        "",
        plain_md(_caption(table)),
        *map(plain_md, notes(table)),
        "",
        *(f"- {name}: {plain_md(formula)}" for name, formula in formulas(table)),
    ]
    return "\n".join(lines) + "\n"


def _markdown_row(table: ResultTable, row: Row) -> list[str]:
    def cell_text(column: Column, cell: Cell | None) -> str:
        if cell is None:
            return NONE
        value = shown(cell.value, column.share)
        return f"{f'**{value}**' if cell.leads else value} {shown_interval(cell, column.share)}".rstrip()

    cells = (cell_text(column, cell) for column, cell in zip(table.columns, row.cells, strict=True))
    return [plain_md(row.method), *cells, shown_gmac(row.gmac), shown_seeds(row.seeds)]


def piped(cells: Sequence[str]) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def plain_md(text: str) -> str:
    """Text that Markdown shows as it is."""
    return "".join(f"\\{c}" if c in "\\|<*`" else c for c in " ".join(text.split()))


def _latex(tables: Sequence[ResultTable]) -> str:
    head = "% needs \\usepackage{booktabs}\n"
    return head + "\n".join(_latex_table(table) for table in tables)


def _latex_table(table: ResultTable) -> str:
    names = ["method", *(f"{column.metric.upper()} {column.arrow}" for column in table.columns), "GMAC", "seeds"]
    stats = ["", *(f"{column.stat}{', %' if column.share else ''}" for column in table.columns), "", ""]
    under = " ".join([*notes(table), *(f"{name}: {formula}." for name, formula in formulas(table))])
    lines = [
        r"\begin{table}",
        r"\centering",
        r"\small",
        r"\setlength{\tabcolsep}{4pt}",
        f"\\caption{{{tex(_caption(table))}}}{label(table.group.title)}",
        f"\\begin{{tabular}}{{l{'r' * (len(names) - 1)}}}",
        r"\toprule",
        f"{' & '.join(map(tex, names))} \\\\",
        f"{' & '.join(map(tiny, stats))} \\\\",
        r"\midrule",
        *(line for row in table.lines() for line in _latex_row(table, row)),
        r"\bottomrule",
        r"\end{tabular}",
        r"\par\medskip",
        f"\\begin{{minipage}}{{\\linewidth}}\\footnotesize {tex(under)}\\end{{minipage}}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _latex_row(table: ResultTable, row: Row) -> tuple[str, str]:
    """The numbers, and under them their intervals."""
    values, intervals = [f"{{}}{tex(row.method)}"], [""]  # {} keeps a label [x] from being read as an option of \\
    for column, cell in zip(table.columns, row.cells, strict=True):
        value = tex(shown(cell.value if cell else None, column.share))
        values.append(f"\\textbf{{{value}}}" if cell and cell.leads else value)
        intervals.append(tiny(shown_interval(cell, column.share) if cell else ""))
    values += [tex(shown_gmac(row.gmac)), tex(shown_seeds(row.seeds))]
    return f"{' & '.join(values)} \\\\", f"{' & '.join([*intervals, '', ''])} \\\\"


def tiny(text: str) -> str:
    """Small print in LaTeX."""
    return f"\\scriptsize {tex(text)}" if text else ""


def label(title: str) -> str:
    r"""A name to refer to a table by, from its title.

    >>> print(label("Table 1: refinement · qa_2"))
    \label{tab:table-1-refinement-qa-2}
    """
    return f"\\label{{tab:{'-'.join(re.findall('[a-z0-9]+', title.lower()))}}}"


def tex(text: str) -> str:
    """Text that LaTeX shows as it is."""
    return "".join(LATEX.get(character, character) for character in text)


def _csv(tables: Sequence[ResultTable]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    header = "group method metric stat value low high interval seeds n unit best"
    writer.writerow(header.split())
    for table in tables:
        for row in table.lines():
            for column, cell in zip(table.columns, row.cells, strict=True):
                if cell:
                    numbers = (repr(cell.value), repr(cell.low), repr(cell.high), cell.interval)
                    what = (table.group.title, row.method, column.metric, column.stat)
                    writer.writerow([*what, *numbers, cell.seeds, cell.n, cell.unit, int(cell.leads)])
            if row.gmac is not None:
                what = (table.group.title, row.method, "gmac", "mean")
                writer.writerow([*what, repr(row.gmac), "", "", "", row.seeds, row.seeds, "runs", 0])
    return out.getvalue()


FORMATS: dict[str, Callable[[Sequence[ResultTable]], str]] = {"md": _markdown, "latex": _latex, "csv": _csv}
