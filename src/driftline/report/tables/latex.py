r"""Tables as LaTeX that every engine compiles and that fits the column, whatever names it holds.

A table that is too wide is scaled down with graphicx; long names are broken over lines first, so scaling is seldom
strong. pdfLaTeX stops at letters it does not know: Greek ones are set as mathematics, for the rest it prints the code
point, while LuaLaTeX and XeLaTeX print the letter.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Sequence

from driftline.report.tables.model import Table, TableCell, TableColumn, TableRow

REQUIRED = "% needs \\usepackage{booktabs,graphicx}\n"
FIT = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
HEADING_WIDTH, NAME_WIDTH, SMALL_WIDTH = 11, 36, 30  # characters in a line
SPECIAL = {
    "\\": r"\textbackslash{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    "·": r"\textperiodcentered{}",
    "×": r"\texttimes{}",
    "–": r"\textendash{}",
    "—": r"\textemdash{}",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
}
GREEK = "alpha beta gamma delta epsilon zeta eta theta kappa lambda mu nu xi pi rho sigma tau phi chi psi omega"
SPECIAL |= {letter: f"$\\{name}$" for letter, name in zip("αβγδεζηθκλμνξπρστφχψω", GREEK.split(" "), strict=True)}
ACCENTS = "\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327"
LETTERS = "ßæœøÆŒØłŁ"

Lines = Sequence[Sequence[str]]


def write(tables: Sequence[Table]) -> str:
    """Return tables as LaTeX."""
    return REQUIRED + "\n".join(_table(table) for table in tables)


def _table(table: Table) -> str:
    rows, below = _rows(table), [part(_headings(table.below), _rows(table.below))] if table.below else []
    name = table.label or default_label(table.title)
    if not table.caption:
        caption = " ".join([f"{table.title}.", *table.all_notes])
        return environment(name, caption, _headings(table), rows, below=below, max_columns=table.max_columns)
    footnotes = [f"({k}) {text}." for k, text in enumerate(table.footnotes, start=1)]
    small = " ".join([*table.notes, *(f"{name}: {text}." for name, text in table.definitions), *footnotes])
    return environment(name, table.caption, _headings(table), rows, small, table.max_columns, below)


def _headings(table: Table) -> Lines:
    """Return the names of the columns, and their small print below if there is any."""
    names = [tex(table.row_header), *(broken(column.name, HEADING_WIDTH, "r") for column in table.columns)]
    details = ["", *(tiny(column.detail, HEADING_WIDTH) for column in table.columns)]
    return [names, details] if any(details) else [names]


def _rows(table: Table) -> Lines:
    lines: list[Sequence[str]] = []
    for heading, row in table.grouped_rows():
        lines += [[f"\\textit{{{named(heading)}}}", *[""] * len(table.columns)]] if heading else []
        lines += _row_lines(table, row)
    return lines


def _row_lines(table: Table, row: TableRow) -> Lines:
    """Return the numbers of a row, and their small print in lines below."""
    cells = list(zip(row.cells, table.columns, strict=True))
    small = [table.small_print(cell, column) for cell, column in cells]
    height = max((len(lines) for lines in small), default=0)
    padded = [[*lines, *[""] * (height - len(lines))] for lines in small]
    below = [["", *(tiny(lines[k], SMALL_WIDTH if k else 99) for lines in padded)] for k in range(height)]
    indent = r"\quad " if row.group else ""
    return [[indent + named(row.title), *(_number(table, cell, column) for cell, column in cells)], *filter(any, below)]


def _number(table: Table, cell: TableCell | None, column: TableColumn) -> str:
    text = named(table.text(cell, column))
    for command, applies in (("textit", cell and cell.highlight.italic), ("textbf", cell and cell.highlight.bold)):
        text = f"\\{command}{{{text}}}" if applies else text
    return text


def environment(
    label: str,
    caption: str,
    headings: Lines,
    rows: Lines,
    small_print: str = "",
    max_columns: int = 99,
    below: Sequence[str] = (),
) -> str:
    """Return a table to paste: caption, label, headings, numbers, and small print.

    Headings and rows are cells in LaTeX, the first of each a name. With more than `max_columns` columns of numbers the
    table has several parts, one below the other. `below`: further parts.
    """
    count = len(headings[0]) - 1
    width = -(-count // -(-count // max_columns))
    parts = [part(headings, rows, slice(k, k + width)) for k in range(1, count + 1, width)]
    small = f"\\begin{{minipage}}{{\\linewidth}}\\scriptsize {tex(small_print)}\\end{{minipage}}"
    lines = [
        r"\begin{table}",
        r"\centering",
        r"\small",
        r"\setlength{\tabcolsep}{3pt}",
        f"\\caption{{{tex(caption)}}}\\label{{{label}}}",
        *(f"\\par\\medskip\n{one}" for one in (*parts, *below, *([small] if small_print else []))),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def part(headings: Lines, rows: Lines, columns: slice = slice(1, None)) -> str:
    """Return the names and some columns; lines that are empty in these columns are left out."""

    def select(lines: Lines) -> list[str]:
        return [_line([line[0], *line[columns]]) for line in lines if line[0] or any(line[columns])]

    number = len(headings[0][columns])
    lines = [FIT, f"\\begin{{tabular}}{{l{'r' * number}}}", r"\toprule", *select(headings), r"\midrule", *select(rows)]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}}"])


def _line(cells: Sequence[str]) -> str:
    r"""Return a line of a table; the braces keep a name [x] from being read as an option of the line before.

    >>> print(_line(["[x]", "1"]))
    {}[x] & 1 \\
    """
    return f"{'{}' if cells[0] else ''}{' & '.join(cells)} \\\\"


def named(text: str) -> str:
    """Return plain text, such as a name, broken over lines if it is long."""
    return broken(text, NAME_WIDTH, "l")


def broken(text: str, width: int, side: str) -> str:
    r"""Return text over as many lines as it takes.

    >>> print(broken("accuracy later on", 11, "r"))
    \shortstack[r]{accuracy\\later on}
    """
    lines = [tex(line) for line in textwrap.wrap(text, width)]
    return "".join(lines) if len(lines) < 2 else f"\\shortstack[{side}]{{" + r"\\".join(lines) + "}"


def tiny(text: str, width: int = 99) -> str:
    """Return small print."""
    return f"\\scriptsize {broken(text, width, 'r')}" if text else ""


def default_label(title: str) -> str:
    """Return a label to refer to a table by, from its title.

    >>> default_label("Table 1: refinement · qa_2")
    'tab:table-1-refinement-qa-2'
    """
    return f"tab:{'-'.join(re.findall('[a-z0-9]+', title.lower()))}"


def tex(text: str) -> str:
    r"""Return text that LaTeX shows as it is; invisible characters are left out.

    >>> print(tex("a_b 100% --x"), tex("τ é 日"))
    a\_b 100\% -{}-x $\tau$ é \ifdefined\Umathcode 日\else[U+65E5]\fi{}
    """
    return re.sub("-(?=-)", "-{}", "".join(map(_character, " ".join(text.split()))))


def _character(one: str) -> str:
    if one in SPECIAL:
        return SPECIAL[one]
    if one.isascii():
        return one if one.isprintable() else ""
    if one in LETTERS or (ord(one) < 0x180 and unicodedata.normalize("NFD", one)[1:] in tuple(ACCENTS)):
        return one
    if unicodedata.category(one).startswith("C"):
        return ""
    return f"\\ifdefined\\Umathcode {one}\\else[U+{ord(one):04X}]\\fi{{}}"
