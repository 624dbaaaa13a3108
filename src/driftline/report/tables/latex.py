r"""LaTeX that every engine compiles and that stays within the column, whatever names it holds.

A table that is too wide is made smaller, with graphicx; long names are broken over lines first, so that this is seldom
much. pdfLaTeX stops at letters it does not know. Greek ones are set as mathematics; of the rest it prints the code
point, while LuaLaTeX and XeLaTeX print the letter.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Sequence

NEEDS = "% needs \\usepackage{booktabs,graphicx}\n"
FIT = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
HEAD, NAME = 11, 36  # letters in a line of a heading, and of a name
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


def environment(
    title: str,
    caption: str,
    heads: Lines,
    rows: Lines,
    under: str = "",
    most: int = 99,
    below: Sequence[str] = (),
) -> str:
    """A table to paste: caption, label, headings, numbers, and what stands beneath in small print.

    Headings and rows are cells in LaTeX, the first of them names. With more than `most` columns of numbers the table
    has several parts, one below the other. `below`: further parts.
    """
    count = len(heads[0]) - 1
    width = -(-count // -(-count // most))
    parts = [part(heads, rows, slice(k, k + width)) for k in range(1, count + 1, width)]
    small = f"\\begin{{minipage}}{{\\linewidth}}\\scriptsize {tex(under)}\\end{{minipage}}"
    lines = [
        r"\begin{table}",
        r"\centering",
        r"\small",
        r"\setlength{\tabcolsep}{3pt}",
        f"\\caption{{{tex(caption)}}}{label(title)}",
        *(f"\\par\\medskip\n{one}" for one in (*parts, *below, *([small] if under else []))),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def part(heads: Lines, rows: Lines, columns: slice = slice(1, None)) -> str:
    """The names and some columns of numbers; a line that says nothing here is left out."""

    def some(lines: Lines) -> list[str]:
        return [_row([line[0], *line[columns]]) for line in lines if line[0] or any(line[columns])]

    number = len(heads[0][columns])
    lines = [FIT, f"\\begin{{tabular}}{{l{'r' * number}}}", r"\toprule", *some(heads), r"\midrule", *some(rows)]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}}"])


def _row(cells: Sequence[str]) -> str:
    r"""A line of a table; the braces keep a name [x] from being read as an option of the line before.

    >>> print(_row(["[x]", "1"]))
    {}[x] & 1 \\
    """
    return f"{'{}' if cells[0] else ''}{' & '.join(cells)} \\\\"


def heading(names: Sequence[str]) -> list[str]:
    """The line of headings, from plain text."""
    first, *others = names
    return [tex(first), *(broken(name, HEAD, "r") for name in others)]


def named(text: str) -> str:
    """A name at the start of a line, from plain text."""
    return broken(text, NAME, "l")


def broken(text: str, width: int, side: str) -> str:
    r"""Text over as many lines as it takes.

    >>> print(broken("accuracy later on", 11, "r"))
    \shortstack[r]{accuracy\\later on}
    """
    lines = [tex(line) for line in textwrap.wrap(text, width)]
    return "".join(lines) if len(lines) < 2 else f"\\shortstack[{side}]{{" + r"\\".join(lines) + "}"


def tiny(text: str, width: int = 99) -> str:
    """Small print."""
    return f"\\scriptsize {broken(text, width, 'r')}" if text else ""


def label(title: str) -> str:
    r"""A name to refer to a table by, from its title.

    >>> print(label("Table 1: refinement · qa_2"))
    \label{tab:table-1-refinement-qa-2}
    """
    return f"\\label{{tab:{'-'.join(re.findall('[a-z0-9]+', title.lower()))}}}"


def tex(text: str) -> str:
    r"""Text that LaTeX shows as it is; what cannot be seen, such as control characters, is left out.

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
