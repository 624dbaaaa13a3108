"""Captions and notes of result tables: the protocol, intervals, highlights and caveats."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable

from driftline import registry
from driftline.engine.stages.search_round import describe_rule
from driftline.record.run import Run
from driftline.report.analysis.groups import Group
from driftline.report.analysis.published import full_scale
from driftline.report.analysis.result_table import Column, ResultTable, mean_gmac, training_gmac
from driftline.report.analysis.selected_settings import from_search
from driftline.report.analysis.trivial_baseline import trivial_notes
from driftline.report.format import count_of, count_range, format_amount, format_false_alarm
from driftline.report.tables.model import bold_note
from driftline.revisions import changed, describe

T_INTERVAL = "95% t-interval over seeds"
FALSE_ALARMS = (
    "FA: false-alarm rate, the share of models whose horizon would end within the data if nothing changed, with these "
    "numbers of test examples."
)
MAX_COMPUTE = 2  # times the median
MAX_OVER = 1.1  # times the budget
CUT = "Equal compute: training was stopped where a run had spent its budget of {gmac} GMAC, evenly over the steps."
OVER = (
    "Caution, over the budget: {named}. No budget cuts answers, preparations such as Fisher information, or a training "
    "loop of a method's own."
)
UNEQUAL = (
    "Caution, unequal compute: {named} the median of the methods that train ({median} GMAC). Use driftline run "
    "--budget-macs to compare at equal compute."
)
TIE_BREAKS = {"smaller-lr": "the smaller learning rate", "best": "the best score"}
NOISE = (
    "Selected within noise, where the two best candidates differ by at most one standard error (SE) over validation "
    "runs: {names}. There {rule} decides; other validation runs might select otherwise."
)


def caption(table: ResultTable) -> str:
    """Return one sentence from the protocol card: the runs, the data, and what is revealed to the methods."""
    card, protocol = table.group.card, table.group.card.protocol
    times = f"{len(protocol['periods'])} times, " if "periods" in protocol else ""
    return (
        f"{table.group.title} ({times}{card.data.samples:,} samples, {_answers(table)} test answers per run). "
        f"{_revealed(table)}"
    )


def notes(table: ResultTable) -> list[str]:
    """Return notes on intervals, highlights, selection of settings, and caveats."""
    lines = [_intervals(table), _highlights(table), *trivial_notes(table)]
    lines += [
        *table.group.notes,
        *budget_notes([table.group]),
        *unequal_notes(table.group),
        *_selection(table),
        *_fits(table),
    ]
    lines += [FALSE_ALARMS] if any(format_false_alarm(cell.false_alarm) for cell in table.cells()) else []
    if any(row.gmac is None for row in table.rows):
        lines.append("GMAC –: not counted.")
    if any(table.published.values()):
        lines.append("Rows with a source are as published in that paper, under its own protocol, data and compute.")
        if not full_scale(table.group.card):
            lines.append("Full scale: these runs have other sizes, another width or a smaller grid than the paper.")
    if outdated := _outdated(table):
        lines.append(f"Caution: these numbers are out of date ({describe(outdated)}). Run the same command again.")
    return lines


def _outdated(table: ResultTable) -> dict[str, tuple[int, int]]:
    """Return the parts of the code whose revision is not that of the runs, or of the scores of one of them."""
    texts = {run.common_text: run for run in table.group.runs}
    scores = [changed(run.common.code.score_revisions) for run in texts.values()]
    return {part: pair for parts in (changed(table.group.card.code.revisions), *scores) for part, pair in parts.items()}


def _selection(table: ResultTable) -> list[str]:
    """Return the rules by which settings were selected."""
    searches = [search for run in table.group.runs if (search := run.common.run.search)]
    options = registry.get("benchmark", table.group.benchmark).options
    validation = options.model_construct(**table.group.options).describe_validation()
    rules = dict.fromkeys(describe_rule(search["rule"], search["metrics"], validation) for search in searches)
    lines = [
        f"Settings were selected before the runs ({rule}); the cards hold the scores of all candidates."
        for rule in rules
    ]
    if any(search.get("repeats", 1) > 1 for search in searches):
        lines.append("Each seed has its own selection, so the interval over seeds includes the noise of the selection.")
    noisy = [one for one in from_search(table.group) if one.within_noise]
    for rule in dict.fromkeys(one.tie_break for one in noisy):
        names = ", ".join(one.method for one in noisy if one.tie_break == rule)
        lines.append(NOISE.format(names=names, rule=TIE_BREAKS[rule]))
    return lines


def budget_notes(groups: Iterable[Group]) -> list[str]:
    """Return the budgets of compute at which runs were stopped, and the methods that spent more nevertheless."""
    groups = list(groups)
    budgets = dict.fromkeys(run.common.run.budget_macs for group in groups for run in group.runs)
    lines = [CUT.format(gmac=format_amount(macs / 1e9)) for macs in budgets if macs is not None]
    times: dict[str, float] = {}
    for group, method in ((one, method) for one in groups for method in one.methods):
        budget, gmac = group.card.run.budget_macs, mean_gmac(group, method)
        if budget is not None and gmac is not None:
            times[method] = max(1e9 * gmac / budget, times.get(method, 0.0))
    over = [f"{method} spent {more:.3g} times as much" for method, more in times.items() if more > MAX_OVER]
    return [*lines, OVER.format(named=", ".join(over))] if over else lines


def unequal_notes(group: Group) -> list[str]:
    """Return a caution if a method has more than twice the median compute of the methods that train.

    The median of an even number is the lower of the two in the middle: of two methods, the cheaper one counts.
    """
    trained = training_gmac(group)
    if len(trained) < 2:
        return []
    median = statistics.median_low(trained.values())
    more = {method: gmac for method, gmac in trained.items() if gmac > MAX_COMPUTE * median}
    named = ", ".join(f"{method} has {gmac / median:.3g} times" for method, gmac in more.items())
    return [UNEQUAL.format(named=named, median=format_amount(median))] if more else []


def _fits(table: ResultTable) -> list[str]:
    """Return a sentence if methods that select between their own fits have different numbers of them."""
    counts = {}
    for method in table.group.methods:
        protocols = [run.protocol for run in table.group.runs_of(method) if not run.common.run.search]
        if fits := [protocol["trials"] for protocol in protocols if protocol.get("chosen")]:
            counts[method] = max(fits)
    if len(set(counts.values())) < 2:
        return []
    text = ", ".join(f"{method} {count}" for method, count in counts.items())
    return [f"Fits per run, equal per phase and not per method: {text} (budget=method makes them equal)."]


def formulas(table: ResultTable) -> list[tuple[str, str]]:
    """Return each column with its direction, its formula and its settings."""
    return [(f"{column.name} {column.arrow}", _formula(table, column)) for column in table.columns]


def _formula(table: ResultTable, column: Column) -> str:
    cells = [table.cell(row.method, column.metric, column.stat) for row in table.rows]
    n = count_range([cell.n for cell in cells if cell]) or "no"
    unit = next((cell.unit for cell in cells if cell), "times")
    given = "".join(f", {key} = {value}" for key, value in column.settings.items())
    return f"{column.stat} over {n} {unit} of {column.formula}{given}{_censored(table, column.metric)}"


def _censored(table: ResultTable, metric: str) -> str:
    """Return the number of values that are censored by the end of the data."""
    counts = table.group.censored
    if metric not in counts.index or not counts.loc[metric, "censored"]:
        return ""
    censored, n = counts.loc[metric, ["censored", "n"]]
    return f"; {censored} of {n} values are censored by the end of the data"


def _intervals(table: ResultTable) -> str:
    kinds = {cell.interval for cell in table.cells() if not math.isnan(cell.low)}
    counts = "; ".join(f"{row.method} {row.seeds}" for row in table.rows)
    same = {row.seeds for row in table.rows}
    seeds = count_of(same.pop(), "seed") if len(same) == 1 else f"seeds: {counts}"
    which = [T_INTERVAL] if "seeds" in kinds else []
    which += [f"95% interval over {kind} (one seed)" for kind in sorted(kinds - {"seeds"})]
    clipped = ", clipped to possible values" if which else ""
    return f"Mean over seeds ({seeds}) and {' or, with one seed, '.join(which) or 'no interval'}{clipped}."


def _highlights(table: ResultTable) -> str:
    if any(cell.best for cell in table.cells()):
        bounded = "upper-bound" in table.group.roles.values()
        oracle = ["The oracle is not ranked, as it sees more labels."] if bounded else []
        selected = ["Methods whose settings were selected on the test are not ranked."] if table.group.by_oracle else []
        return " ".join([bold_note(), *oracle, *selected])
    if len(table.rows) < 2:
        return "No method is marked best: there is only one."
    return "No method is marked best: that needs at least three seeds."


def _revealed(table: ResultTable) -> str:
    protocol = table.group.card.protocol
    delay, budget = protocol["label_delay_steps"], protocol["labels_per_step"]
    singly, missing = protocol.get("one_by_one", False), protocol.get("labels_missing", 0)
    at_once = "after each answer" if singly else "at the end of each step"
    when = f"{delay} {'sample' if singly else 'step'}(s) late" if delay else at_once
    amount = "" if budget == "all" else f", at most {budget} per step"
    amount += f", {missing:.0%} of them never" if missing else ""
    amount += f"; label rules: {', '.join(rules)}" if (rules := protocol.get("label_rules")) else ""
    return f"Revealed to the methods: {protocol['revealed']}, {when}{amount}."


def _answers(table: ResultTable) -> str:
    return count_range([_tested(run) for run in table.group.runs]) or "no"


def _tested(run: Run) -> int:
    """Return the number of answers to probes, or of all answers where a benchmark has no probes."""
    for name in ("probes", "answers"):
        if rows := run.rows(name):
            return rows
    return 0
