"""The table of papers on continual learning: accuracy and forgetting after a sequence of tasks.

Printed numbers are average accuracies in class-incremental learning: the README of Mammoth (2020) and its targets,
GDumb's README, the baselines of Avalanche and RanPAC's tables. Printed for other data or with the task told at the
answer only, and so not here: MAS (Split Tiny ImageNet, .40) and SLDA (CORe50, .79), both in Avalanche's baselines. No
paper prints LoRA on such a sequence.
"""

from __future__ import annotations

from driftline.registry import register
from driftline.report.analysis.aggregate import best_or_tied
from driftline.report.analysis.estimates import estimates
from driftline.report.analysis.groups import Group
from driftline.report.analysis.highlights import Highlight
from driftline.report.analysis.published import numbers
from driftline.report.tables.model import Table, TableRow, bold_note
from driftline.report.tables.papers.base import (
    cell,
    columns,
    has_source,
    published,
    published_row,
    require_runs,
    titled,
)

BENCHMARK, PROTOCOL, ACCURACY = "timeline", "tasks", "average-accuracy"
SCORES = {
    ACCURACY: "average accuracy",
    "forgetting": "forgetting",
    "backward-transfer": "backward transfer",
    "average-incremental-accuracy": "average incremental accuracy",
}
LOWER = frozenset({"forgetting"})
MEANS = "In percent: means over seeds with 95% t-intervals, or with one seed intervals over test examples."
PUBLISHED = (
    "Rows with a source are as printed there: final average accuracy, answers among all classes, on the whole dataset. "
    "Other networks, epochs, sizes of batches and of buffers are not comparable."
)


@register("paper-table", "timeline/tasks")
def tasks(groups: list[Group]) -> list[Table]:
    """Average accuracy, forgetting and transfer after a sequence of tasks; runs with protocol=tasks."""
    ours = [group for group in groups if group.options.get("protocol") == PROTOCOL]
    require_runs(ours, BENCHMARK, f"with protocol={PROTOCOL}")
    return [_table(group) for group in ours]


def _table(group: Group) -> Table:
    found = [estimates(group, metric) for metric in SCORES]
    best = [
        best_or_tied({name: one.by_seed for name, one in column.items()}, "lower" if metric in LOWER else "higher")
        for metric, column in zip(SCORES, found, strict=True)
    ]
    theirs = numbers(group.card, _sequence(group), PROTOCOL)
    rows: list[TableRow] = []
    for label in group.methods:
        both = zip(found, best, strict=True)
        rows.append(
            TableRow(label, tuple(cell(column.get(label), Highlight(bold=label in top)) for column, top in both))
        )
        for one in theirs:
            if one.method == label.partition("(")[0]:
                values = (one.value if metric == one.metric else None for metric in SCORES)
                rows += published_row(label, tuple(map(published, values)), one.source)
    notes = (MEANS, bold_note(), *([PUBLISHED] if has_source(rows) else []))
    return Table(titled("Sequence of tasks", group.title), "method", columns(*SCORES.values()), tuple(rows), notes)


def _sequence(group: Group) -> str:
    """Return the name under which numbers for a sequence are stored."""
    settings = group.card.run.data.settings
    return f"{settings.get('kind')} {settings.get('base')}, {settings.get('tasks')} tasks"
