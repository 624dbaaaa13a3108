"""The ledger as Markdown: findings, then every table and figure with printed numbers and ours."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from driftline.ledger.catalog import SCALES, Comparison, Item, Paper
from driftline.ledger.compare import Decided, Decision, Pair, Results, decide, pairs
from driftline.report.format import NONE, count_of, count_range, format_interval, format_value
from driftline.report.tables.markdown import escape

DECISIONS: tuple[Decision, ...] = ("holds", "does not hold", "undecided")
NOT_RUN = "not run"
WITHOUT = ("drawn", NOT_RUN, "not feasible", "nothing to run")
PICTURE = "ledger.svg"
HUGE = 1e9
INTRO = f"""\
# Ledger

Every table and figure of the papers behind the benchmarks, with what was run here. `driftline ledger` makes
this page from the committed [results](../results/README.md) and from the published numbers in
`src/driftline/published`; no number is typed by hand, and a test compares the page with them.
[Departures](departures.md) lists where papers, their code and this package differ.

- **Printed** is what the paper has, **ours** the mean over seeds with a 95 % t-interval over seeds (over test
  examples if there is one seed), then the difference. **n** is the smallest sample size of a seed. Shares are
  in percent. Published numbers are the papers' own and not targets.
- A **finding** is decided by paired differences over seeds: it *holds* if every test is significant on the
  paper's side, *does not hold* if one is significant on the other side, and otherwise *undecided* at
  this scale. p-values are Holm-corrected for all tests of a table, at 5 %; fewer than three seeds decide
  nothing. A margin is stated with the test. A finding is listed when all its methods were run.
- *Drawn* is a picture without numbers that was drawn once, with the command that is given; it is not kept here.
- **Scale**: *{SCALES["own"]}*; *{SCALES["smaller"]}*; or *{SCALES["substitute"]}*, where only the order of methods can
  be compared.
"""


@dataclass(frozen=True)
class Entry:
    """An item with its numbers and decided findings."""

    item: Item
    numbers: tuple[tuple[Comparison, tuple[Pair, ...]], ...]
    """The comparisons that have a result, with their pairs."""
    findings: tuple[Decided, ...]

    @property
    def status(self) -> str:
        """The scale of its numbers, or why it has none."""
        if self.numbers:
            return ", ".join(dict.fromkeys(SCALES[comparison.scale] for comparison, _ in self.numbers))
        return self.item.status or NOT_RUN

    @property
    def compared(self) -> list[Pair]:
        """The numbers that have a printed counterpart."""
        return [pair for _, found in self.numbers for pair in found if pair.printed is not None]


def entries(paper: Paper, results: Results) -> list[Entry]:
    """Return the items of a paper with their numbers."""
    made = []
    for item in paper.items:
        found = [(one, tuple(pairs(one, results))) for one in item.comparisons]
        made.append(Entry(item, tuple(one for one in found if one[1]), tuple(decide(item, results))))
    return made


def write_page(papers: Sequence[Paper], results: Results) -> str:
    """Return the ledger of these papers."""
    found = {paper.name: entries(paper, results) for paper in papers}
    blocks = [INTRO, *_totals(found), f"![Printed numbers against ours, by paper]({PICTURE})\n", *_findings(found)]
    for name, made in found.items():
        blocks += [f"## {name}\n", _items(made), *(_numbers(entry, results) for entry in made if entry.numbers)]
    return "\n".join([*blocks, _results(results)])


def _totals(found: dict[str, list[Entry]]) -> list[str]:
    header = (
        "paper",
        "tables",
        "figures",
        "with our numbers",
        "at own scale",
        *WITHOUT,
        "numbers compared",
        *DECISIONS,
    )
    rows = [_total(name, made) for name, made in found.items()]
    everything = [entry for made in found.values() for entry in made]
    return [_table(header, [*rows, _total("all", everything)], left=1)]


def _total(name: str, made: Sequence[Entry]) -> list[str]:
    kinds = Counter(entry.item.kind for entry in made)
    own = sum(any(comparison.scale == "own" for comparison, _ in entry.numbers) for entry in made)
    decisions = Counter(finding.decision for entry in made for finding in entry.findings)
    counts = [kinds["table"], kinds["figure"], sum(bool(entry.numbers) for entry in made), own]
    counts += [sum(not entry.numbers and entry.status == status for entry in made) for status in WITHOUT]
    counts += [sum(len(entry.compared) for entry in made), *(decisions[decision] for decision in DECISIONS)]
    return [name, *map(str, counts)]


def _findings(found: dict[str, list[Entry]]) -> list[str]:
    header = ("item", "finding", "here", "differences", "seeds", "result")
    rows = [_finding(entry, one) for made in found.values() for entry in made for one in entry.findings]
    return ["## Findings\n", _table(header, rows, left=6)]


def _finding(entry: Entry, decided: Decided) -> list[str]:
    tests = "; ".join(
        f"{escape(test.text)}: {_signed(test.difference.value, test.share)} "
        f"{format_interval(test.difference, test.share)}".rstrip()
        for test in decided.tests
    )
    margin = decided.finding.margin
    limit = f" (margin {format_value(margin, decided.tests[0].share)})" if margin else ""
    seeds = count_range([test.difference.n for test in decided.tests])
    return [
        _link(entry.item.id, bool(entry.numbers)),
        decided.finding.text,
        f"**{decided.decision}**",
        tests + limit,
        seeds,
        f"`{decided.finding.result}`",
    ]


def _items(made: Sequence[Entry]) -> str:
    header = ("item", "shows", "printed", "scale here", "compared", "median difference", "reason, or what is missing")
    rows = [_item(entry) for entry in made]
    return _table(header, rows, left=2)


def _item(entry: Entry) -> list[str]:
    item = entry.item
    shares = [abs(pair.difference or 0) for pair in entry.compared if pair.share]
    difference = f"{format_value(float(np.median(shares)), True)} points" if shares else NONE
    cost = f" ({item.cost})" if item.cost and not entry.numbers else ""
    return [
        _link(item.id, bool(entry.numbers)),
        item.shows,
        str(item.printed or NONE),
        entry.status,
        str(len(entry.compared) or NONE),
        difference,
        item.reason + cost,
    ]


def _numbers(entry: Entry, results: Results) -> str:
    blocks = [f"### {entry.item.id}\n\n{entry.item.shows}.\n"]
    for comparison, found in entry.numbers:
        note = results[comparison.result].header.note
        scale = ": ".join(filter(None, (SCALES[comparison.scale], note)))
        name = f"`{comparison.result}`" + (f", {comparison.setting}," if comparison.setting else "")
        blocks.append(f"From {name} ({scale}), seeds: {count_range([one.ours.seeds for one in found])}.\n")
        names = list(dict.fromkeys(one.name for one in found))
        columns = [_column(name, [one for one in found if one.name == name]) for name in names]
        rows = [[escape(method), *cells] for method, cells in _by_method(found, names)]
        blocks.append(_table(("method", *columns), rows, left=1))
    return "\n".join(blocks)


def _column(name: str, found: Sequence[Pair]) -> str:
    """Return the header of a column: the metric, what its cells have, and the sample size."""
    cells = ", printed / ours" if any(one.printed is not None for one in found) else ""
    sizes = [one.ours.n for one in found if one.ours.n]
    n = f" (n = {f'{count_range(sizes)} {found[0].ours.unit}'.rstrip()})" if sizes else ""
    return f"{name}{cells}{n}"


def _by_method(found: Sequence[Pair], names: Sequence[str]) -> Iterable[tuple[str, list[str]]]:
    by = {(one.method, one.name): one for one in found}
    for method in dict.fromkeys(one.method for one in found):
        cells = [by.get((method, name)) for name in names]
        yield method, [_cell(cell) if cell else NONE for cell in cells]


def _cell(pair: Pair) -> str:
    ours = f"{_number(pair.ours.value, pair.share)} {_interval(pair)}".rstrip()
    if pair.printed is None:
        return ours
    return f"{_number(pair.printed, pair.share)} / {ours}; {_signed(pair.difference or 0.0, pair.share)}"


def _interval(pair: Pair) -> str:
    if math.isnan(pair.ours.low):
        return ""
    return f"[{_number(pair.ours.low, pair.share)}, {_number(pair.ours.high, pair.share)}]"


def _number(value: float, share: bool) -> str:
    """Return a share in percent, a huge number with three digits, a whole number, or another one with two decimals."""
    if not share and abs(value) >= HUGE:
        return f"{value:.3g}"
    if not share and float(value).is_integer():
        return f"{value:,.0f}"
    return format_value(value, share)


def _signed(value: float, share: bool) -> str:
    text = _number(value, share)
    return text if text.startswith("-") else f"+{text}"


def _results(results: Results) -> str:
    rows = [
        [
            f"`{name}`",
            f"`{result.header.command}`",
            result.header.version,
            result.header.date,
            _missing(result.header.missing),
        ]
        for name, result in results.items()
    ]
    return "## Results\n\n" + _table(("result", "command", "version", "date", "missing"), rows, left=5)


def _missing(runs: Sequence[str]) -> str:
    return count_of(len(runs), "run") if runs else NONE


def _link(name: str, has_numbers: bool) -> str:
    return f"[{name}](#{name.lower()})" if has_numbers else name


def _table(header: Sequence[str], rows: Iterable[Sequence[str]], left: int) -> str:
    align = [":--" if k < left else "--:" for k in range(len(header))]
    lines = [f"| {' | '.join(row)} |" for row in (header, align, *rows)]
    return "\n".join(lines) + "\n"
