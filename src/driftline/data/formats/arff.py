"""Attribute-relation files (ARFF), in which Weka, MOA and the USP repository publish their streams."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from driftline.io import bounded_files
from driftline.io.locate import file_errors

EXPECTED = "an ARFF file: @attribute lines, then @data and a row per line"
ATTRIBUTE = re.compile(r"@attribute\s+('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\S+)\s+(.+)", re.IGNORECASE)
NUMBERS = ("numeric", "real", "integer")


def read_arff(path: Path) -> pd.DataFrame:
    """Return the rows of an ARFF file (also .gz): numbers as floats, nominal values and texts as texts."""
    with file_errors(path, EXPECTED), io.TextIOWrapper(bounded_files.open_file(path), "utf-8") as file:
        types = dict(_header(file))
        if not types:
            raise ValueError("no @attribute line")
        lines = [line for line in file if line.strip() and not line.lstrip().startswith("%")]
        if lines and lines[0].lstrip().startswith("{"):
            raise ValueError("sparse rows, which are not read")
        frame = pd.read_csv(
            io.StringIO("".join(lines)),
            header=None,
            names=list(types),
            index_col=False,
            na_values=["?"],
            keep_default_na=False,
            quotechar="'",
            escapechar="\\",
            skipinitialspace=True,
            dtype={name: float if kind in NUMBERS else str for name, kind in types.items()},
        )
        for name, kind in types.items():
            if kind.startswith("{"):
                _check_values(frame[name], _values(kind))
    return frame


def _header(file: io.TextIOWrapper) -> Iterator[tuple[str, str]]:
    """Yield the name and the type of each attribute, up to the line @data."""
    for line in iter(file.readline, ""):
        text = line.strip()
        if text.lower().startswith("@data"):
            return
        if match := ATTRIBUTE.match(text):
            name, kind = match.groups()
            yield _unquoted(name), kind.strip() if kind.startswith("{") else kind.split()[0].lower()
        elif text.lower().startswith("@attribute"):
            raise ValueError(f"the line {text[:60]!r}")
    raise ValueError("no line @data")


def _values(kind: str) -> set[str]:
    return {_unquoted(value.strip()) for value in kind.strip("{} \t").split(",")}


def _unquoted(text: str) -> str:
    return text[1:-1].replace("\\'", "'") if len(text) > 1 and text[0] in "'\"" and text[-1] == text[0] else text


def _check_values(column: pd.Series, allowed: set[str]) -> None:
    column = column.str.strip()
    others = set(column.dropna()) - allowed
    if others:
        raise ValueError(f"{min(others)!r} in '{column.name}', which the header does not list")
