"""What stands under a table, so that its numbers can be read without asking the author."""

from __future__ import annotations

import math
from collections.abc import Collection

from driftline.engine.stages.search_round import describe_rule
from driftline.record import Run
from driftline.report.against_frozen import STREAM, Number, Standing, standings
from driftline.report.beside import full_scale
from driftline.report.marks import BASELINE, FROZEN, ORACLE
from driftline.report.results import NONE, Cell, Column, ResultTable, shown, shown_false_alarm, shown_interval
from driftline.report.speeds import OverSpeeds
from driftline.report.trivial import not_above, trivial_notes

T_INTERVAL = "95% t-interval over seeds"
FALSE_ALARMS = (
    "FA: false alarms, the share of models whose horizon would end within the data if nothing ever changed, with these "
    "numbers of test examples."
)
FINAL = "final-accuracy"
TOLD = {
    "oec": (
        "a model that is shown its errors reaches {} overall",
        {
            "efr": "{} of the errors are fixed at once",
            "ukr": "{} right on what it was trained for",
            "kg": "{} right on unseen queries of the new kinds",
        },
    ),
    "overall": (
        "{} of samples are answered right one by one",
        {
            "novel-head": "{} of those of new classes with many samples",
            "novel-tail": "{} with few",
            "pretrain-head": "{} of known classes with many",
            "matched-auroc-mdt": "an AUROC of {} for noticing a new class, samples of the same time apart",
        },
    ),
}
"""For benchmarks whose first column says only part of it: what it is, and what others add."""


def caption(table: ResultTable) -> str:
    """One sentence from the protocol card: what was run on what, and what the methods were shown."""
    card, protocol = table.group.card, table.group.card["protocol"]
    times = f"{len(protocol['periods'])} times, " if "periods" in protocol else ""
    return (
        f"{table.group.title} ({times}{card['data']['samples']} samples, {_answers(table)} test answers per run). "
        f"{_revealed(table)}"
    )


def notes(table: ResultTable) -> list[str]:
    """Which intervals, what the marks mean, and whatever else bears on the numbers."""
    lines = [_intervals(table), _marks(table), *trivial_notes(table)]
    lines += table.group.said() if isinstance(table.group, OverSpeeds) else []
    lines += [*_selection(table), *_trials(table)]
    lines += [FALSE_ALARMS] if any(shown_false_alarm(cell) for cell in table.cells()) else []
    if any(row.gmac is None for row in table.rows):
        lines.append("GMAC –: not counted.")
    if any(table.published.values()):
        lines.append("Rows with a source are as printed in that paper, under its own protocol, data and compute.")
        if not full_scale(table.group.card):
            lines.append("Full scale: these runs have other sizes, another width or a smaller grid than the paper's.")
    if len({run.card["code"]["sources"] for run in table.group.runs}) > 1:
        lines.append("Caution: these runs were made by different states of the code (code.sources on their cards).")
    return lines


def _selection(table: ResultTable) -> list[str]:
    """By which rule the settings of methods that had a choice were chosen."""
    found = [contest for run in table.group.runs if (contest := run.card["run"].get("search"))]
    said = dict.fromkeys(describe_rule(contest["rule"], contest["metrics"]) for contest in found)
    return [f"Settings were chosen before the runs ({text}); the cards have the scores of all." for text in said]


def _trials(table: ResultTable) -> list[str]:
    """Return a sentence if methods that choose between fits of their own have different numbers of them."""
    counts = {}
    for method in table.group.methods:
        cards = [run.card for run in table.group.runs_of(method) if not run.card["run"].get("search")]
        if tried := [card["protocol"]["trials"] for card in cards if card["protocol"].get("chosen")]:
            counts[method] = max(tried)
    if len(set(counts.values())) < 2:
        return []
    said = ", ".join(f"{method} {count}" for method, count in counts.items())
    return [f"Trials per run, which are equal per phase and not per method: {said} (budget=method makes them equal)."]


def formulas(table: ResultTable) -> list[tuple[str, str]]:
    """Each column with its direction, its formula and its settings."""
    return [(f"{column.name} {column.arrow}", _formula(table, column)) for column in table.columns]


def answer(table: ResultTable) -> str:
    """The benchmark's question, answered, with a caution where methods do not beat the trivial baseline."""
    return " ".join([_answered(table), *not_above(table)])


def _answered(table: ResultTable) -> str:
    """The benchmark's question, answered in a sentence with numbers.

    The method is the one with the best accuracy later on; a high TAS alone may come from a poor oracle.
    """
    ranked = sorted(table.rows, key=lambda row: _value(table, row.method, "ood"), reverse=True)
    if not ranked or not table.cells():
        return "These runs have no scores for the headline metrics."
    if any(column.metric == FINAL for column in table.columns):
        return _at_the_end(table)
    if any(column.metric == STREAM for column in table.columns):
        return _along_the_stream(table)
    if table.columns[0].metric in TOLD:
        return _in_parts(table, *TOLD[table.columns[0].metric])
    method = ranked[0].method
    parts = {name: table.cell(method, name, "mean") for name in ("id", "ood", "tas", "sh")}
    found = {name: cell for name, cell in parts.items() if cell}
    if len(found) < len(parts):
        return _best_of_first(table)
    text = {name: f"{_said(cell, name != 'sh')} {shown_interval(cell, name != 'sh')}" for name, cell in found.items()}
    delta = table.group.card["run"]["options"].get("delta", 0)
    over = f"{_range([cell.n for cell in found.values()])} times and {_seeds(found['tas'].seeds)}"
    which = f"With {method}" + (", the method that is right most often later on, " if len(table.rows) > 1 else ", ")
    return (
        f"{which}a model is right in {text['id']} of cases in its own period and in {text['ood']} later on, which is "
        f"{text['tas']} of what models trained then reach; it keeps {100 * delta:g}% of their accuracy for "
        f"{text['sh']} periods{_by_chance(found['sh'])} (means over {over}; 95% intervals)."
    )


def _by_chance(cell: Cell) -> str:
    """The false-alarm rate of a horizon in words."""
    return (
        "" if math.isnan(cell.false_alarm) else f", where {cell.false_alarm:.0%} of models would fail by chance alone"
    )


def _in_parts(table: ResultTable, whole: str, parts: dict[str, str]) -> str:
    """The best method by the first column, and what the other columns say of it."""
    first = table.columns[0]
    cells = {row.method: cell for row in table.rows if (cell := table.cell(row.method, first.metric, first.stat))}
    method, best = max(cells.items(), key=lambda pair: pair[1].value)
    stats = {column.metric: column.stat for column in table.columns}
    found = {name: table.cell(method, name, stats[name]) for name in parts if name in stats}
    said = [
        parts[name].format(f"{_said(cell, True)} {shown_interval(cell, True)}") for name, cell in found.items() if cell
    ]
    which = f"With {method}" + (f", the best of {len(cells)} methods, " if len(cells) > 1 else ", ")
    number = f"{_said(best, True)} {shown_interval(best, True)}"
    return (
        f"{which}{whole.format(number)}{': ' if said else ''}{', '.join(said)} "
        f"({_seeds(best.seeds)}, n = {best.n:,} {best.unit}; 95% intervals)."
    )


def _at_the_end(table: ResultTable) -> str:
    """The best method at the final step, between what the final step alone and much more of it give."""
    cells = {row.method: cell for row in table.rows if (cell := table.cell(row.method, FINAL, "mean"))}
    methods = {method: cell for method, cell in cells.items() if method != ORACLE} or cells
    method, best = max(methods.items(), key=lambda pair: pair[1].value)
    words = {BASELINE: "training on the final step alone gives", ORACLE: "training on many more of its samples gives"}
    others = [
        f"{words[name]} {_said(cells[name], True)} {shown_interval(cells[name], True)}"
        for name in (BASELINE, ORACLE)
        if name in cells and name != method
    ]
    which = f"With {method}" + (f", the best of {len(methods)} methods," if len(methods) > 1 else ",")
    against = f"; {' and '.join(others)}" if others else ""
    return (
        f"{which} a model is right in {_said(best, True)} {shown_interval(best, True)} of cases at the final step"
        f"{against} ({_seeds(best.seeds)}, n = {best.n:,} {best.unit}; 95% intervals)."
    )


def _along_the_stream(table: ResultTable) -> str:
    """The best method on a stream, how far it is above the model that never adapts, and which ones are below."""
    cells = {row.method: cell for row in table.rows if (cell := table.cell(row.method, STREAM, "mean"))}
    method, best = max(cells.items(), key=lambda pair: pair[1].value)
    number = f"{_said(best, True)} {shown_interval(best, True)}"
    which = f"With {method}" + (f", the best of {len(cells)} methods," if len(cells) > 1 else ",")
    if method == FROZEN:
        which = "With frozen, the model that never adapts," + (
            " and no other method does better," if len(cells) > 1 else ""
        )
    found = {one.method: one for one in standings(table.group)}
    more = f", {points(found[method].gain)} above the model that never adapts" if method in found else ""
    return (
        f"{which} a model is right in {number} of cases along the stream{more}. {_collapsed(found.values())} "
        f"({_seeds(best.seeds)}, n = {best.n:,} {best.unit}; 95% intervals)."
    )


def _collapsed(found: Collection[Standing]) -> str:
    """Which methods are below the model that never adapts."""
    below = [f"{one.method} ({points(one.gain)})" for one in found if one.gain.value < 0]
    if not found:
        return f"Without a run of {FROZEN} it cannot be said whether a method collapses"
    return f"Collapsed, below the model that never adapts: {', '.join(below)}" if below else "No method collapsed"


def points(number: Number) -> str:
    """A difference of shares in points, with its interval if it has one.

    >>> points(Number(-0.125, -0.2, -0.05)), points(Number(0.5, float("nan"), float("nan")))
    ('-12.5 points [-20.0, -5.0]', '50.0 points')
    """
    interval = "" if math.isnan(number.low) else f" [{shown(number.low, True)}, {shown(number.high, True)}]"
    return f"{shown(number.value, True)} points{interval}"


def images(count: float | None) -> str:
    """So many images, or none.

    >>> images(12500.0), images(None)
    ('12,500 images', '–')
    """
    return NONE if count is None or math.isnan(count) else f"{count:,.0f} images"


def _best_of_first(table: ResultTable) -> str:
    column = next(c for c in table.columns if any(table.cell(row.method, c.metric, c.stat) for row in table.rows))
    cells = {row.method: table.cell(row.method, column.metric, column.stat) for row in table.rows}
    sign = 1 if column.better == "higher" else -1
    method, cell = max(((m, c) for m, c in cells.items() if c), key=lambda pair: sign * pair[1].value)
    number = f"{_said(cell, column.share)} {shown_interval(cell, column.share)}"
    return (
        f"By the {column.stat} of {column.word}, {method} is best: {number} (n = {cell.n:,} {cell.unit}, "
        f"{_seeds(cell.seeds)}; 95% interval)."
    )


def _value(table: ResultTable, method: str, metric: str) -> float:
    cell = table.cell(method, metric, "mean")
    return cell.value if cell else float("-inf")


def _said(cell: Cell, share: bool) -> str:
    return f"{shown(cell.value, share)}{'%' if share else ''}"


def _formula(table: ResultTable, column: Column) -> str:
    cells = [table.cell(row.method, column.metric, column.stat) for row in table.rows]
    n = _range([cell.n for cell in cells if cell])
    unit = next((cell.unit for cell in cells if cell), "times")
    given = "".join(f", {key} = {value}" for key, value in column.settings.items())
    return f"{column.stat} over {n} {unit} of {column.formula}{given}{_censored(table, column.metric)}"


def _censored(table: ResultTable, metric: str) -> str:
    """How many values the end of the data has cut short."""
    scores = table.group.scores
    each = scores[(scores["metric"] == metric) & (scores["stat"] == "each")]
    cut = int(each["censored"].sum()) if "censored" in each else 0
    return f"; {cut} of {len(each)} values are censored: the data ended first" if cut else ""


def _intervals(table: ResultTable) -> str:
    kinds = {cell.interval for cell in table.cells() if not math.isnan(cell.low)}
    counts = "; ".join(f"{row.method} {row.seeds}" for row in table.rows)
    same = {row.seeds for row in table.rows}
    seeds = _seeds(same.pop()) if len(same) == 1 else f"seeds: {counts}"
    which = [T_INTERVAL] if "seeds" in kinds else []
    which += [f"95% interval over {kind} (one seed)" for kind in sorted(kinds - {"seeds"})]
    cut = ", cut at the ends of what is possible"
    return f"Mean over seeds ({seeds}) and {' or, with one seed, '.join(which) or 'no interval'}{cut if which else ''}."


def _marks(table: ResultTable) -> str:
    if any(cell.leads for cell in table.cells()):
        aside = "; the oracle, which is shown more, does not compete" if ORACLE in table.group.methods else ""
        aside += "; settings that were chosen on the test do not compete" if table.group.by_oracle else ""
        return (
            "Bold: the best of a column and all that cannot be told from it (paired t test on common seeds at 5%, "
            f"Holm-corrected for the methods of the column){aside}."
        )
    if len(table.rows) < 2:
        return "Nothing is marked best: there is one method."
    return "Nothing is marked best: telling methods apart takes at least three seeds."


def _revealed(table: ResultTable) -> str:
    protocol = table.group.card["protocol"]
    delay, budget = protocol["label_delay_steps"], protocol["labels_per_step"]
    singly, missing = protocol.get("one_by_one", False), protocol.get("labels_missing", 0)
    at_once = "after each answer" if singly else "at the end of each step"
    when = f"{delay} {'sample' if singly else 'step'}(s) late" if delay else at_once
    amount = "" if budget == "all" else f", at most {budget} per step"
    amount += f", {missing:.0%} of them never" if missing else ""
    return f"Revealed to the methods: {protocol['revealed']}, {when}{amount}."


def _answers(table: ResultTable) -> str:
    return _range([_tested(run) for run in table.group.runs])


def _tested(run: Run) -> int:
    """Answers given in examinations; where a benchmark has none, answers given along the way."""
    for name in ("probes", "answers"):
        if rows := run.rows(name):
            return rows
    return 0


def _range(counts: list[int]) -> str:
    ends = dict.fromkeys((min(counts), max(counts))) if counts else {}
    return "–".join(f"{count:,}" for count in ends) or "no"


def _seeds(count: int) -> str:
    return f"{count} seed{'' if count == 1 else 's'}"
