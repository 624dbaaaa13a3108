"""The table of error per corruption that papers on test-time adaptation print.

Printed rows are error rates at severity 5; of some methods only the mean over corruptions is printed. One corruption
after another without resets: VCoTTA (NeurIPS 2024), Tables 1 to 3, and the benchmark page of ROID's authors, which has
mixed corruptions and streams sorted by class as well. With a reset at each corruption: CoLA (NeurIPS 2024), SAR's
README and its issue 5, and NOTE's README. CoLA normalizes images for ViT-B/16 by other statistics than those that the
network was trained with. RoTTA's row for CIFAR-100-C in VCoTTA is left out: its mean is not that of its values.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

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
from driftline.types import JsonObject

BENCHMARK, MEAN = "test-time", "mean"
STANDARD = (
    *("gaussian_noise", "shot_noise", "impulse_noise", "defocus_blur", "glass_blur", "motion_blur", "zoom_blur"),
    *("snow", "frost", "fog", "brightness", "contrast", "elastic", "pixelate", "jpeg"),
)
"""The corruptions of ImageNet-C in their usual order."""
ORDERS = ("standard", "cin-c", "mixed")
ERRORS = (
    "Error in percent of all images under a corruption: means over seeds, with 95% t-intervals. Mean: over corruptions."
)
PUBLISHED = (
    "Rows with a source are as printed there, at severity 5, on the network named; sequences are in the order of the "
    "columns. Other orders, networks, severities and sizes of batches are not comparable."
)


@register("paper-table", "test-time/corruptions")
def corruptions(groups: list[Group]) -> list[Table]:
    """Error of each method under each corruption, and their mean."""
    ours = [group for group in groups if group.options["order"] in ORDERS]
    require_runs(ours, BENCHMARK, "with order=standard, cin-c or mixed")
    return [_table(group) for group in ours]


def _table(group: Group) -> Table:
    found = {method: _errors(group, method) for method in group.methods}
    names = {name for errors in found.values() for name in errors}
    shown = [*(name for name in STANDARD if name in names), *sorted(names - {*STANDARD, MEAN}), MEAN]
    rows: list[TableRow] = []
    for method, errors in found.items():
        rows.append(TableRow(method, tuple(cell(errors.get(name)) for name in shown)))
        for source, printed in _printed(group, method.partition("(")[0]).items():
            rows += published_row(method, tuple(published(printed.get(name)) for name in shown), source)
    notes = (ERRORS, *([PUBLISHED] if has_source(rows) else []))
    severity = group.options["severity"]
    return Table(
        titled(f"Error per corruption, severity {severity:g}", group.title),
        "method",
        columns(*shown),
        tuple(rows),
        notes,
    )


def _printed(group: Group, method: str) -> Mapping[str, Mapping[str, float]]:
    """Return the printed errors of a method by source and corruption, for streams of the same kind."""
    found: dict[str, dict[str, float]] = {}
    for one in numbers(group.card, group.card.data.name, _protocol(group.options)):
        if one.method == method:
            found.setdefault(one.source, {})[one.stat] = one.value
    return found


def _protocol(options: JsonObject) -> str:
    """Return the name under which numbers for such streams are stored.

    >>> _protocol({"order": "cin-c", "severity": 5.0, "label_order": "chain", "class_correlation": 1.0})
    'continual sorted by class, severity 5'
    """
    kind = "mixed" if options["order"] == "mixed" else "continual"
    if options.get("reset", "never") != "never":
        kind = f"reset at each {'corruption' if options['reset'] == 'domain' else 'batch'}"
    labels = options.get("label_order", "shuffled")
    if labels != "shuffled":
        kind += (
            " sorted by class" if labels == "chain" and options.get("class_correlation") == 1 else f" {labels} labels"
        )
    return f"{kind}, severity {options['severity']:g}"


def _errors(group: Group, method: str) -> Mapping[str, Estimate]:
    """Return a method's error under each corruption, and their mean."""
    by_seed: dict[str, dict[int, float]] = {}
    for run in group.runs_of(method):
        answers, order = run.table("answers"), np.array(run.card.protocol["schedule"]["order"])
        wrong = 1 - answers["correct"].groupby(order[answers["group"].to_numpy() % len(order)]).mean()
        for name, error in {**wrong.to_dict(), MEAN: wrong.mean()}.items():
            by_seed.setdefault(str(name), {})[run.seed] = float(error)
    return {name: estimate_from_seeds(seeds, (0.0, 1.0)) for name, seeds in by_seed.items()}
