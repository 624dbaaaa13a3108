"""The tables of In the Wild (NED; Wallingford et al.) about methods; those about sequences are in the next file.

Published cells that cannot be right are in rows marked doubtful; `driftline.published.numbers` gives the reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from driftline.errors import UserError
from driftline.metrics.openworld import SECTIONS
from driftline.published.numbers import published_name
from driftline.registry import register
from driftline.report.analysis.aggregate import SHARE, best_or_tied
from driftline.report.analysis.estimates import Estimate, estimates, estimates_by_method
from driftline.report.analysis.groups import Group
from driftline.report.analysis.highlights import Highlight
from driftline.report.analysis.published import numbers, source_note
from driftline.report.format import format_amount
from driftline.report.tables.model import Table, TableRow, bold_note
from driftline.report.tables.papers.base import cell, columns, has_source, order, published, published_row, require_runs

BENCHMARK = "open-world"
DATA, SEQUENCE = "imagenet-22k", "sequence 5"  # of the published numbers
NETWORKS = {"resnet18": "ResNet-18", "resnet50": "ResNet-50", "conv-4": "Conv-4"}
METHODS = (
    *("prototypical", "maml", "meta-baseline", "oltr", "fine-tune", "standard-training"),
    *("ncm", "lwf", "weight-imprinting", "exemplar-tuning"),
)
ACCURACIES = (*SECTIONS, "mean-class", "overall")
COSTS = {"macs": "cached", "macs-uncached": "uncached"}
NOVELTY = {
    "unseen-auroc-hg": "AUROC HG",
    "unseen-auroc-mdt": "AUROC MDT",
    "clock-auroc": "AUROC clock",
    "matched-auroc-hg": "matched HG",
    "matched-auroc-mdt": "matched MDT",
    "best-f1-hg": "F1 HG",
    "best-f1-mdt": "F1 MDT",
    "clock-f1": "F1 clock",
    "k+1": "k+1 accuracy",
}
GIGA = 1e9
INTERVALS = (
    "In percent: means over seeds with 95% t-intervals, or with one seed Wilson's interval (overall, k+1) and "
    "bootstrap intervals over classes (all other columns), clipped to 0 and 100."
)
COMPUTE = (
    "GMAC, means over seeds: a forward pass counts once, the backward pass of trained layers twice, frozen layers only "
    "forward; uncached is the compute without cached features. Pretraining is not counted."
)
PUBLISHED = (
    "Rows with a source are as published there: one order of one sequence of about 90,000 images of ImageNet-22K, 750 "
    "of 1,000 classes new. Rows marked doubtful contain cells that cannot be right: do not compare with them."
)
PUBLISHED_COMPUTE = "NED counts training as one, two or three forward passes; its compute cannot be compared with ours."
CLOCK = (
    "The clock's score is -t: it looks at no sample. In a matched AUROC each first sample of a class meets the nearest "
    "10 earlier and 10 later samples of seen classes; there the clock has 50. F1 is at the best threshold in "
    "hindsight. HG: 1 - max softmax. MDT: smallest distance, or minus the largest similarity, to a "
    'class. k+1: accuracy if "unseen" is an answer too, with the best threshold of MDT, or of HG without distances.'
)


@dataclass(frozen=True)
class Source:
    """The source of published numbers: the table, the sequence and the network."""

    table: str
    protocol: str
    model: str

    def rows(
        self, group: Group, label: str, metrics: Iterable[str], unit: float = 1, stat: str = "mean"
    ) -> list[TableRow]:
        """Return the published rows of a method, doubtful cells apart; Conv-4 replaces a network without numbers."""
        method, metrics = published_name(BENCHMARK, label), list(metrics)
        for model in (self.model, "conv-4"):
            found = numbers(group.card, DATA, self.protocol, model)
            found = [n for n in found if (n.method, n.stat, _table(n.source)) == (method, stat, self.table)]
            rows = []
            for source in dict.fromkeys(n.source for n in found):
                values = {n.metric: n.value / unit for n in found if n.source == source}
                same = group.card.data.name == DATA
                note = source_note(group.card, source) if same else f"{source} (ImageNet, {NETWORKS[model]})"
                rows += published_row(label, tuple(published(values.get(name)) for name in metrics), note)
            if rows:
                return rows
        return []


def _table(source: str) -> str:
    """Return the table of a source, without remarks on its cells."""
    return source.partition(",")[0].partition(" (")[0]


def source_of(group: Group, table: str, protocol: str = SEQUENCE) -> Source:
    """Return a published table for the network of a group, or for ResNet-18 if the paper does not have it."""
    model = group.card.run.model.name
    return Source(table, protocol, model if model in NETWORKS else "resnet18")


@register("paper-table", "open-world/table-1")
def table_1(groups: list[Group]) -> list[Table]:
    """Methods by sections of classes, mean per class and overall, and below it their compute."""
    require_runs(groups, BENCHMARK)
    tables = []
    for group in groups:
        large = group.card.run.model.name == "resnet50"
        source = source_of(group, "NED Table 4" if large else "NED Table 1")
        tables.append(_accuracies(f"Table 1: {group.title}", group, ordered(group.methods), source))
        tables += _compute(group, source)
    return tables


@register("paper-table", "open-world/table-3")
def table_3(groups: list[Group]) -> list[Table]:
    """Number of fine-tuned layers."""
    return tables_of(groups, _depth, "with fine-tune: make one with several values of n_layers")


@register("paper-table", "open-world/table-6")
def table_6(groups: list[Group]) -> list[Table]:
    """n-shot k-way episodes next to the stream."""
    return tables_of(groups, _episodes, "has scores of n-shot k-way episodes")


@register("paper-table", "open-world/table-7")
def table_7(groups: list[Group]) -> list[Table]:
    """Detection of new classes, compared with the clock."""
    return tables_of(groups, _novelty, "has scores for detection of new classes")


@register("paper-table", "open-world/table-8")
def table_8(groups: list[Group]) -> list[Table]:
    """Weight-imprinting by the scale of its similarities, exemplar-tuning by their kind."""
    return tables_of(groups, _variants, "with weight-imprinting or exemplar-tuning")


def _accuracies(title: str, group: Group, labels: list[str], source: Source) -> Table:
    metrics = {name: name.replace("-", " ") for name in ACCURACIES}
    head = group.card.protocol["head"]
    sections = f"Head: classes with more than {head} samples in the stream; tail: the others."
    return _shares(title, group, labels, metrics, source, (INTERVALS, sections, bold_note()))


def _shares(
    title: str,
    group: Group,
    labels: list[str],
    metrics: dict[str, str],
    source: Source,
    notes: tuple[str, ...],
) -> Table:
    """Return a row for each method with its published rows below, a column for each metric."""
    found = {name: {k: v for k, v in estimates(group, name).items() if k in labels} for name in metrics}
    ranked = {name: {} if name.startswith("clock") else column for name, column in found.items()}  # all are equal
    best = {name: best_or_tied({k: v.by_seed for k, v in column.items()}, "higher") for name, column in ranked.items()}
    rows: list[TableRow] = []
    for label in labels:
        cells = (cell(found[name].get(label), Highlight(bold=label in best[name])) for name in metrics)
        rows.append(TableRow(label, tuple(cells)))
        rows += source.rows(group, label, metrics)
    more = (PUBLISHED,) if has_source(rows) else ()
    return Table(title, "method", columns(*metrics.values()), tuple(rows), (*notes, *more))


def _compute(group: Group, source: Source) -> list[Table]:
    scores = group.scores[group.scores["metric"].isin(COSTS) & (group.scores["stat"] == "final")]
    if scores.empty:
        return []
    means = scores.groupby(["method", "metric"])["value"].agg(["mean", "size"])
    rows: list[TableRow] = []
    for label in ordered(group.methods):
        known = [(label, name) if (label, name) in means.index else None for name in COSTS]
        found = (key and Estimate(means["mean"][key] / GIGA, seeds=int(means["size"][key])) for key in known)
        rows.append(TableRow(label, tuple(map(cell, found))))
        rows += source.rows(group, label, COSTS, GIGA, "final")
    notes = (COMPUTE, *([PUBLISHED_COMPUTE] if has_source(rows) else []))
    numbers = columns(*COSTS.values(), format=format_amount)
    return [Table(f"Table 1: GMAC, {group.title}", "method", numbers, tuple(rows), notes)]


def ordered(labels: Iterable[str]) -> list[str]:
    """Return display names of methods in the order of the paper."""
    return sorted(set(labels), key=lambda label: (order(METHODS)(label.partition("(")[0].partition(" [")[0]), label))


def _of(group: Group, methods: Iterable[str], setting: str | None = None) -> list[str]:
    """Return the display names of some methods, in increasing order of a setting."""
    found: dict[str, float] = {}
    for run in group.runs:
        method = run.card.run.method
        if method.name in methods:
            found[group.labels[run.key]] = method.settings.get(setting or "", 0)
    return sorted(found, key=lambda label: (found[label], label))


def tables_of(groups: list[Group], make: Callable[[Group], Table | None], which: str) -> list[Table]:
    """Return the table of each group that has one."""
    require_runs(groups, BENCHMARK)
    tables = [table for group in groups if (table := make(group))]
    if not tables:
        raise UserError(f"no run of {BENCHMARK} {which}")
    return tables


def _depth(group: Group) -> Table | None:
    labels = _of(group, ["fine-tune"], "n_layers")
    if not labels:
        return None
    title = f"Table 3: layers that are fine-tuned, {group.title}"
    return _accuracies(title, group, labels, source_of(group, "NED Table 3", "sequence 2"))


def _novelty(group: Group) -> Table | None:
    """Return the detection of new classes; a method without scores of its own has only the clock's."""
    known = set(group.scores.loc[group.scores["value"].notna(), "metric"])
    metrics = {name: head for name, head in NOVELTY.items() if name in known}
    if not metrics:
        return None
    title, notes = f"Table 7: detection of new classes, {group.title}", (INTERVALS, CLOCK, bold_note())
    return _shares(title, group, ordered(group.methods), metrics, source_of(group, "NED Table 7"), notes)


def _variants(group: Group) -> Table | None:
    labels = [*_of(group, ["weight-imprinting"], "scale"), *_of(group, ["exemplar-tuning"])]
    if not labels:
        return None
    return _accuracies(f"Table 8: variants, {group.title}", group, labels, source_of(group, "NED Table 8"))


def _episodes(group: Group) -> Table | None:
    """Return a column for each kind of episode, then the stream."""
    scores = group.scores[(group.scores["metric"] == "episodic") & (group.scores["stat"] == "each")]
    if scores.empty:
        return None
    found = {str(name): estimates_by_method(rows, SHARE) for name, rows in scores.groupby("time")}
    found["overall"] = estimates(group, "overall")
    rows = [
        TableRow(label, tuple(cell(column.get(label)) for column in found.values()))
        for label in ordered(scores["method"])
    ]
    theirs = _published_episodes(group, tuple(found))
    notes = ["In percent: means over seeds with 95% t-intervals, or with one seed intervals over episodes."]
    notes += [PUBLISHED] if theirs else []
    title = f"Table 6: episodes and stream, {group.title}"
    return Table(title, "method", columns(*found), (*rows, *theirs), tuple(notes))


def _published_episodes(group: Group, names: tuple[str, ...]) -> list[TableRow]:
    found: dict[str, dict[str, float]] = {}
    for data, protocol in (("mini-imagenet", "5-shot 5-way"), (DATA, "sequence 2"), (DATA, SEQUENCE)):
        for number in numbers(group.card, data, protocol):
            if "NED Table 6" in number.source:
                column = protocol if number.metric == "episodic" else number.metric
                found.setdefault(number.source, {})[column] = number.value
    return [
        row
        for source, values in found.items()
        for row in published_row("prototypical", tuple(published(values.get(name)) for name in names), source)
    ]
