"""Names of periods, dates and policies in words, and numbers set as on a printed page."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import date
from functools import cached_property

import numpy as np

SPACE = "\u00a0"  # does not break
MINUS = re.compile(r"(?<![\w.\-])-(?=\d)")
TOGETHER = re.compile(r"(?<=\d) (?=points?\b)|(?<=p) (?=[<=] )|(?<=[<=]) (?=\d)|(?<=\d,) (?=[-−\d.,]+\])")
DAY = re.compile(r"\d+ \w+ \d{4}")
PIECE = re.compile(r"(.*) \((\d+)/(\d+)\)")
ALARMS = {
    "adwin": "an ADWIN alarm",
    "page-hinkley": "a Page-Hinkley alarm",
    "kswin": "a KSWIN alarm",
    "ddm": "a DDM alarm",
    "online-tas": "an online TAS below 0.95",
    "error-rate": "a raised error",
}
DETECTORS = {"adwin": "ADWIN", "page-hinkley": "Page-Hinkley", "kswin": "KSWIN", "ddm": "DDM"}
SMALL, LARGE = 1e-4, 1e9  # between them numbers have no exponent
NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def typeset(text: str) -> str:
    """Return text with true minus signs, and with no-break spaces within intervals and before units.

    >>> typeset("-0.7 points [-2.0, 0.6], p = 0.02, from 2024-05-14") == (
    ...     "−0.7\\u00a0points [−2.0,\\u00a00.6], p\\u00a0=\\u00a00.02, from 2024-05-14")
    True
    """
    return TOGETHER.sub(SPACE, MINUS.sub("−", text))


def times_text(number: int) -> str:
    """Return how many times.

    >>> times_text(2), times_text(3)
    ('twice', 'three times')
    """
    return "twice" if number == 2 else f"{count_text(number)} times"


def plain_number(value: float, plus: str = "", digits: int = 3) -> str:
    """Return a number with a few digits, and without an exponent unless it is very large or small.

    >>> plain_number(12345.6), plain_number(-0.04567), plain_number(120.0, "+"), plain_number(-0.0), plain_number(1e-7)
    ('12,300', '-0.0457', '+120', '0', '1e-07')
    """
    short = float(f"{value:.{digits}g}") + 0.0
    if short and not SMALL <= abs(short) < LARGE:
        return f"{short:{plus}.{digits}g}"
    decimals = 0 if not short else max(0, digits - 1 - math.floor(math.log10(abs(short))))
    text = f"{short:{plus},.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def count_text(number: int) -> str:
    """Return a small number as a word, a large one with separators.

    >>> count_text(3), count_text(1200)
    ('three', '1,200')
    """
    return NUMBERS[number] if 0 <= number < len(NUMBERS) else f"{number:,}"


def period_text(name: str) -> str:
    """Return the name of a period in words.

    >>> period_text("1996-05"), period_text("2024-Q1"), period_text("2024-05-07"), period_text("rows 1-300")
    ('May 1996', 'Q1 2024', '7 May 2024', 'rows 1-300')
    """
    if match := re.fullmatch(r"(\d{4})-Q([1-4])", name):
        return f"Q{match[2]} {match[1]}"
    if match := re.fullmatch(r"(\d{4})-(\d\d)(?:-(\d\d))?(?:T00:00:00(?:\.0+)?)?", name):
        year, month, day = match[1], match[2], match[3]
        try:
            named = date(int(year), int(month), int(day or 1))
        except ValueError:
            return name
        return f"{named.day} {named:%b} {year}" if day else f"{named:%b} {year}"
    return name


@dataclass(frozen=True)
class PeriodNames:
    """Names of periods in words; those of equal numbers of rows are counted."""

    names: tuple[str, ...]
    cut: str
    """How the table was cut into periods, such as month or "300 rows"."""

    @cached_property
    def words(self) -> tuple[str, ...]:
        if re.fullmatch(r"\d+ ?rows", self.cut):
            return tuple(f"period {k + 1}" for k in range(len(self.names)))
        return tuple(map(period_text, self.names))

    def noun(self, name: str) -> str:
        """Return a period of the table or of the matrix within a sentence.

        >>> PeriodNames(("2024-05-06", "2024-05-13"), "week").noun("2024-05-13"), PeriodNames(("a",), "each").noun("a")
        ('the week of 13 May 2024', 'a')
        """
        word = self.text(name)
        if self.cut != "week" or not DAY.match(word):
            return word
        return f"the week{'s' if ' to ' in name else ''} of {word}"

    def within(self, name: str) -> str:
        """Return a period after a preposition.

        >>> [PeriodNames((name,), cut).within(name) for name, cut in (("2024-05-06", "week"), ("2024-05", "month"))]
        ['in the week of 6 May 2024', 'in May 2024']
        """
        noun = self.noun(name)
        return f"{'on' if DAY.match(noun) else 'in'} {noun}"

    def text(self, name: str) -> str:
        """Return a period of the table in words, or one of the matrix, which may be a part of one or several.

        >>> PeriodNames(("rows 1-9", "rows 10-18"), "9 rows").text("rows 10-18 (1/2)")
        'period 2 (1/2)'
        """
        if name in self.names:
            return self.words[self.names.index(name)]
        if match := PIECE.fullmatch(name):
            return f"{self.text(match[1])} ({match[2]}/{match[3]})"
        ends = name.split(" to ")
        return " to ".join(map(self.text, ends)) if len(ends) == 2 else period_text(name)

    def at(self, name: str) -> float:
        """Return the place of a period on the axis of time; parts of a period lie within it.

        >>> PeriodNames(("a", "b"), "each").at("b (1/2)"), PeriodNames(("a", "b"), "each").at("a to b")
        (0.75, 0.5)
        """
        ends = name.split(" to ")
        if len(ends) == 2:
            return (self.at(ends[0]) + self.at(ends[1])) / 2
        within = 0.0
        if match := PIECE.fullmatch(name):
            name, within = match[1], (int(match[2]) - 0.5) / int(match[3]) - 0.5
        return within + self.names.index(name)


def time_text(time: object) -> str:
    """Return a point in time, such as the date of a change, to the day.

    >>> time_text(np.datetime64("2024-05-14T03:20")), time_text(41.5)
    ('14 May 2024', '41.5')
    """
    return period_text(str(time)[:10]) if isinstance(time, np.datetime64) else f"{time:.10g}"


def singular(unit: str) -> str:
    """Return one of a unit of time."""
    return unit.removesuffix("s")


def policy_name(policy: str, unit: str) -> str:
    """Return a policy as an entry of a list headed "Retrain".

    >>> [policy_name(name, "months") for name in ("window-3", "every-4-all", "on-adwin")]
    ['Each month, last 3 months', 'Every 4 months, all history', 'On an ADWIN alarm']
    """
    kind, _, rest = policy.partition("-")
    every, each = rest.removesuffix("-all"), f"Each {singular(unit)}"
    names = {
        "never": "Never",
        "window": f"{each}, last {_periods(rest, unit)}",
        "all": f"{each}, all history",
        "every": f"Every {every} {unit}{', all history' if rest.endswith('-all') else ''}",
        "same": f"{each}, same season",
        "recalibrate": f"{each}, recalibrated only",
        "trivial": "Constant answer",
    }
    return names.get(kind, f"On {ALARMS.get(rest, f'an alarm of {rest}')}")


def policy_done(policy: str, unit: str) -> str:
    """Return what was done under a policy, as the label of a line.

    >>> [policy_done(name, "months") for name in ("never", "window-3", "on-ddm")]
    ['never retrained', 'retrained each month', 'retrained on a DDM alarm']
    """
    kind, _, rest = policy.partition("-")
    done = {
        "never": "never retrained",
        "every": f"retrained every {rest.removesuffix('-all')} {unit}",
        "on": f"retrained on {ALARMS.get(rest, f'an alarm of {rest}')}",
        "recalibrate": f"recalibrated each {singular(unit)}",
        "same": "retrained on the same season",
        "trivial": "constant answer",
    }
    return done.get(kind, f"retrained each {singular(unit)}")


def policy_action(policy: str, unit: str, deployed: int) -> str:
    """Return what to do, as a sentence without its end.

    >>> policy_action("every-4", "months", 3)
    'Retrain it every 4 months on the last 3 months'
    """
    kind, _, rest = policy.partition("-")
    if kind == "never":
        return "Keep the model as it is"
    if kind == "recalibrate":
        return f"Keep the model and recalibrate it each {singular(unit)}"
    if kind == "same":
        return f"Retrain it each {singular(unit)} on the same season of earlier cycles"
    window = f"the last {_periods(str(deployed), unit)}"
    rows = {"all": "all history", "on": "the rows since"}.get(kind, window)
    rows = "all history" if rest.endswith("-all") else rows
    return f"Retrain it {policy_done(policy, unit).removeprefix('retrained ')} on {rows}".replace(
        " on the rows since", ", with the rows since"
    )


def _periods(number: str, unit: str) -> str:
    return singular(unit) if number == "1" else f"{number} {unit}"
