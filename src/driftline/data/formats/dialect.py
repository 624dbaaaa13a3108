"""The dialect of a CSV file: separator, encoding and decimal sign, recognized from its beginning or given.

Nothing ambiguous is guessed: a ValueError names the option that decides. Call these functions inside
`io.locate.file_errors`, which names the file.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from dataclasses import dataclass

from driftline.errors import UserError

HEAD_BYTES = 2**18  # bytes from the beginning by which a dialect is recognized
SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
NAMED_SEPARATORS = {"tab": "\t", "\\t": "\t", **{name: sign for sign, name in SEPARATORS.items()}}
BOMS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
COMMA_NUMBER = re.compile(r"\s*[+-]?(?:\d{1,3}(?:\.\d{3})+|\d+),\d+\s*")  # 1,5 and 1.234,5
GROUPED = re.compile(r"\s*[+-]?[1-9]\d{0,2}(?:,\d{3})+\s*")  # 1,234, which may be a whole number or not
POINT_NUMBER = re.compile(r"\s*[+-]?(?:[1-9]\d{0,2}(?:,\d{3})+|\d*)\.\d+\s*")  # 1.5 and 1,234.50
POINT_GROUPED = re.compile(r"\s*[+-]?[1-9]\d{0,2}\.\d{3}\s*")  # 1.234, which says nothing


@dataclass(frozen=True)
class Dialect:
    """How a file is written; None: to be recognized."""

    sep: str | None = None
    """Separator of columns: one character, or comma, semicolon, tab or bar."""
    encoding: str | None = None
    decimal: str | None = None
    """Decimal sign: a point or a comma."""

    def __post_init__(self) -> None:
        if self.sep is not None:
            object.__setattr__(self, "sep", NAMED_SEPARATORS.get(self.sep, self.sep))
            if len(self.sep) != 1 or self.sep in '"\r\n':
                raise UserError(f"sep '{self.sep}': give one character, such as ';', or comma, semicolon, tab or bar")
        if self.decimal not in (None, ",", "."):
            raise UserError(f"decimal '{self.decimal}': give '.' or ','")
        if self.encoding is not None:
            try:
                b"ab".decode(self.encoding, errors="replace")
            except (LookupError, ValueError):
                raise UserError(f"encoding '{self.encoding}' is not known; try utf-8, latin-1 or utf-16") from None


def recognize(head: bytes, given: Dialect) -> Dialect:
    """Return the dialect of a file that begins with these bytes."""
    encoding = given.encoding or _encoding(head)
    text = codecs.getincrementaldecoder(encoding)(errors="replace").decode(head)
    if len(head) >= HEAD_BYTES:
        text = text[: text.rfind("\n") + 1] or text  # the last line may be cut
    sep = given.sep or _separator(text)
    return Dialect(sep, encoding, given.decimal or _decimal(text, sep))


def option_hint(option: str, example: str) -> str:
    """Return how to give an option of the dialect."""
    return f"give --{option} {example} in an audit, data.{option}={example} in a run"


def encoding_error(raw: bytes, start: int) -> ValueError:
    """Return the error for bytes that are not UTF-8."""
    return ValueError(f"{raw[start : start + 1]!r} at byte {start}, not UTF-8: {option_hint('encoding', 'latin-1')}")


def _encoding(head: bytes) -> str:
    for mark, encoding in BOMS.items():
        if head.startswith(mark):
            return encoding
    for start, name in ((1, "utf-16-le"), (0, "utf-16-be")):
        if len(head) > 3 and head[start::2].count(0) > len(head) // 4 and b"\n" in head:
            raise ValueError(f"every second byte to be zero, as in UTF-16: {option_hint('encoding', name)}")
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError as error:
        raise encoding_error(head, error.start) from None
    return "utf-8-sig"


def rows(text: str, sep: str) -> list[list[str]]:
    """Return the cells of all rows that are not empty; none if it is not CSV."""
    try:
        return [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=sep) if "".join(row).strip()]
    except csv.Error:
        return []


def _separator(text: str) -> str:
    """Return the sign that cuts all rows into the same number of columns, 2 or more; a comma if none does."""
    start = "".join(text.splitlines(keepends=True)[:100])
    widths = {sep: {len(row) for row in rows(start, sep)} for sep in SEPARATORS}
    found = [sep for sep, width in widths.items() if len(width) == 1 and max(width) > 1]
    if len(found) > 1:
        names = " or ".join(SEPARATORS[sep] for sep in found)
        raise ValueError(f"rows that each of {names} cuts into columns: {option_hint('sep', SEPARATORS[found[0]])}")
    return found[0] if found else ","


def _decimal(text: str, sep: str) -> str:
    """Return the decimal sign. In comma-separated files 1,234 is a whole number, as everywhere before."""
    cells = [cell for row in rows(text, sep)[1:] for cell in row if "," in cell or "." in cell]
    commas = [cell for cell in cells if COMMA_NUMBER.fullmatch(cell)]
    sure = [cell for cell in commas if not GROUPED.fullmatch(cell)]
    points = [cell for cell in cells if POINT_NUMBER.fullmatch(cell) and not POINT_GROUPED.fullmatch(cell)]
    if not commas or (sep == "," and (points or not sure)) or (points and not sure):
        return "."
    if not points and sure:
        return ","
    examples = f"'{sure[0]}' and '{points[0]}'" if sure else f"'{commas[0]}'"
    raise ValueError(f"{examples}, so that a comma may be the decimal sign or not: {option_hint('decimal', ',')}")
