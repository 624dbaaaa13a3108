"""The table of error per corruption that papers on test-time adaptation print, of streams with order=cin-c.

Published rows are error rates at severity 5, one corruption after another without resets, as VCoTTA (NeurIPS 2024)
prints them in Tables 1 to 3 for itself and for others. RoTTA's row for CIFAR-100-C is left out: its mean is not that of
its values.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from driftline.published.numbers import published_name
from driftline.registry import register
from driftline.report.analysis.estimates import Estimate, estimate_from_seeds
from driftline.report.analysis.groups import Group
from driftline.report.analysis.published import numbers
from driftline.report.tables.model import Table, TableRow
from driftline.report.tables.papers.base import (
    cell,
    columns,
    has_source,
    published,
    published_row,
    require_runs,
    titled,
)

BENCHMARK, PROTOCOL, MEAN = "test-time", "continual, severity 5", "mean"
STANDARD = (
    *("gaussian_noise", "shot_noise", "impulse_noise", "defocus_blur", "glass_blur", "motion_blur", "zoom_blur"),
    *("snow", "frost", "fog", "brightness", "contrast", "elastic", "pixelate", "jpeg"),
)
"""The corruptions of ImageNet-C in their usual order."""
ERRORS = (
    "Error in percent of all images under a corruption: means over seeds, with 95% t-intervals. Mean: over corruptions."
)
PUBLISHED = (
    "Rows with a source are as printed there: error at severity 5, corruptions in the order of the columns, without "
    "resets, on the network named. Other orders, networks, severities and sizes of batches are not comparable."
)


@register("paper-table", "test-time/corruptions")
def corruptions(groups: list[Group]) -> list[Table]:
    """Error of each method under each corruption, and their mean."""
    ours = [group for group in groups if group.options["order"] == "cin-c"]
    require_runs(ours, BENCHMARK, "with order=cin-c")
    return [_table(group) for group in ours]


def _table(group: Group) -> Table:
    found = {method: _errors(group, method) for method in group.methods}
    names = {name for errors in found.values() for name in errors}
    shown = [*(name for name in STANDARD if name in names), *sorted(names - {*STANDARD, MEAN}), MEAN]
    theirs = numbers(group.card, group.card.data.name, PROTOCOL)
    rows: list[TableRow] = []
    for method, errors in found.items():
        rows.append(TableRow(method, tuple(cell(errors.get(name)) for name in shown)))
        printed = {one.stat: one for one in theirs if one.method == published_name(BENCHMARK, method)}
        cells = tuple(published(printed[name].value) if name in printed else None for name in shown)
        rows += published_row(method, cells, printed[MEAN].source if printed else "")
    notes = (ERRORS, *([PUBLISHED] if has_source(rows) else []))
    severity = group.options["severity"]
    return Table(
        titled(f"Error per corruption, severity {severity:g}", group.title),
        "method",
        columns(*shown),
        tuple(rows),
        notes,
    )


def _errors(group: Group, method: str) -> Mapping[str, Estimate]:
    """Return a method's error under each corruption, and their mean."""
    by_seed: dict[str, dict[int, float]] = {}
    for run in group.runs_of(method):
        answers, order = run.table("answers"), np.array(run.card.protocol["schedule"]["order"])
        wrong = 1 - answers["correct"].groupby(order[answers["group"].to_numpy() % len(order)]).mean()
        for name, error in {**wrong.to_dict(), MEAN: wrong.mean()}.items():
            by_seed.setdefault(str(name), {})[run.seed] = float(error)
    return {name: estimate_from_seeds(seeds, (0.0, 1.0)) for name, seeds in by_seed.items()}
