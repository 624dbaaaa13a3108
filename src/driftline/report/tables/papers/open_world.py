"""The tables of In the Wild (NED; Wallingford et al.).

`open-world/table-1`: methods by sections of classes, mean per class and overall, and under it what they cost.
`open-world/table-3`: how many layers are fine-tuned. `open-world/table-6`: n-shot k-way episodes beside the stream.
`open-world/table-7`: who notices new classes, always beside the clock. `open-world/table-8`: weight-imprinting by the
scale of its similarities, exemplar-tuning by their kind.

Tables 2 and 5 are in `open_world_sequences`. Printed cells that cannot be right stand in rows marked doubtful;
`driftline.published` says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from driftline import published
from driftline.errors import UserError
from driftline.metrics.openworld import SECTIONS
from driftline.report.analysis.aggregate import SHARE, leaders, over_seeds
from driftline.report.analysis.estimates import Entry, Measured, measured
from driftline.report.analysis.groups import Group
from driftline.report.analysis.highlights import Mark
from driftline.report.analysis.published import cited, numbers
from driftline.report.tables.paper_grid import Grid, Line
from driftline.report.tables.papers.base import Layout, entry, place, refuse_none

BENCHMARK = "open-world"
DATA, SEQUENCE = "imagenet-22k", "sequence 5"  # what the numbers were printed for
NETWORKS = {"resnet18": "ResNet-18", "resnet50": "ResNet-50", "conv-4": "Conv-4"}
METHODS = (
    *("prototypical", "maml", "meta-baseline", "oltr", "fine-tune", "standard-training"),
    *("ncm", "lwf", "weight-imprinting", "exemplar-tuning"),
)
ACCURACIES = (*SECTIONS, "mean-class", "overall")
COSTS = {"macs": "cached", "macs-uncached": "uncached"}
NOTICED = {
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
    "bootstrap intervals over classes (all else), cut at 0 and 100."
)
BOLD = (
    "Bold: the best of a column and all that cannot be told from it (the 95% paired t-interval of their differences on "
    "common seeds contains 0); it takes three seeds."
)
COMPUTE = (
    "GMAC, means over seeds: a forward pass counts once, the backward pass of trained layers twice, frozen layers only "
    "forward; cached is what happened, uncached as if no features had been kept. Pretraining is not counted."
)
PRINTED = (
    "Rows with a source are as printed there: one order of one sequence of about 90,000 images of ImageNet-22K, 750 of "
    "1,000 classes new. Rows marked doubtful hold cells that cannot be right: compare nothing with them."
)
PRINTED_COMPUTE = "NED counts training as one, two or three forward passes; its compute cannot be compared with ours."
CLOCK = (
    "The clock's score is -t: it looks at no sample. In a matched AUROC each first sample of a class meets the nearest "
    "10 earlier and 10 later samples of seen classes; there the clock has 50. F1 is of the best threshold, chosen with "
    "hindsight. HG: 1 - max softmax. MDT: smallest distance, or minus the largest similarity, to a "
    'class. k+1: accuracy if "unseen" is an answer too, with the best threshold of MDT, or of HG without distances.'
)


@dataclass(frozen=True)
class Source:
    """Where numbers are printed: the table, the sequence and the network."""

    table: str
    protocol: str
    model: str

    def lines(
        self, group: Group, label: str, columns: Iterable[str], unit: float = 1, stat: str = "mean"
    ) -> list[Line]:
        """What is printed for a method, doubtful cells apart; Conv-4 stands in for a network that was not printed."""
        method = published.printed_as(BENCHMARK, label)
        for model in (self.model, "conv-4"):
            found = numbers(group.card, DATA, self.protocol, model)
            found = [n for n in found if (n.method, n.stat, _table(n.source)) == (method, stat, self.table)]
            lines = []
            for source in dict.fromkeys(n.source for n in found):
                theirs = {n.metric: n.value / unit for n in found if n.source == source}
                beside = tuple(Entry(theirs[name]) if name in theirs else None for name in columns)
                same = group.card["data"]["name"] == DATA
                told = cited(group.card, source) if same else f"{source} (ImageNet, {NETWORKS[model]})"
                lines += [Line(label, beside, told)] if any(beside) else []
            if lines:
                return lines
        return []


def _table(source: str) -> str:
    """The table of a source, without what is said of some of its cells."""
    return source.partition(",")[0].partition(" (")[0]


def source_of(group: Group, table: str, protocol: str = SEQUENCE) -> Source:
    """A printed table, for the network of a group if the paper has it, else for ResNet-18."""
    model = group.card["run"]["model"]["name"]
    return Source(table, protocol, model if model in NETWORKS else "resnet18")


def _by_section(found: list[Group]) -> list[Grid]:
    """Table 1, for each kind of run: accuracy, and compute where it was counted."""
    refuse_none(found, BENCHMARK)
    grids = []
    for group in found:
        large = group.card["run"]["model"]["name"] == "resnet50"
        source = source_of(group, "NED Table 4" if large else "NED Table 1")
        grids.append(_accuracies(f"Table 1: {group.title}", group, ordered(group.methods), source))
        grids += _compute(group, source)
    return grids


def _accuracies(title: str, group: Group, labels: list[str], source: Source) -> Grid:
    columns = {name: name.replace("-", " ") for name in ACCURACIES}
    head = group.card["protocol"]["head"]
    sections = f"Head: classes with more than {head} samples in the stream; tail: the others."
    return _shares(title, group, labels, columns, source, (INTERVALS, sections, BOLD))


def _shares(
    title: str,
    group: Group,
    labels: list[str],
    columns: dict[str, str],
    source: Source,
    notes: tuple[str, ...],
) -> Grid:
    """A line for each method with its printed line beneath, a column for each metric."""
    cells = {name: {k: v for k, v in measured(group, name).items() if k in labels} for name in columns}
    fair = {name: {} if name.startswith("clock") else column for name, column in cells.items()}  # alike for all methods
    best = {name: leaders({k: v.by_seed for k, v in column.items()}, "higher") for name, column in fair.items()}
    lines = []
    for label in labels:
        row = (entry(cells[name].get(label), Mark(bold=label in best[name])) for name in columns)
        lines.append(Line(label, tuple(row)))
        lines += source.lines(group, label, columns)
    said = (PRINTED,) if any(line.source for line in lines) else ()
    return Grid(title, "method", tuple(columns.values()), tuple(lines), (*notes, *said))


def _compute(group: Group, source: Source) -> list[Grid]:
    scores = group.scores[group.scores["metric"].isin(COSTS) & (group.scores["stat"] == "final")]
    if scores.empty:
        return []
    means = scores.groupby(["method", "metric"])["value"].agg(["mean", "size"])
    lines = []
    for label in ordered(group.methods):
        known = [(label, name) if (label, name) in means.index else None for name in COSTS]
        row = tuple(at and Entry(means["mean"][at] / GIGA, seeds=int(means["size"][at])) for at in known)
        lines.append(Line(label, row))
        lines += source.lines(group, label, COSTS, GIGA, "final")
    notes = (COMPUTE, *([PRINTED_COMPUTE] if any(line.source for line in lines) else []))
    return [Grid(f"Table 1: GMAC, {group.title}", "method", tuple(COSTS.values()), tuple(lines), notes, share=False)]


def ordered(labels: Iterable[str]) -> list[str]:
    """Labels of methods as the paper orders them."""
    return sorted(set(labels), key=lambda label: (place(METHODS)(label.partition("(")[0].partition(" [")[0]), label))


def _of(group: Group, methods: Iterable[str], setting: str | None = None) -> list[str]:
    """The labels of some methods; with a setting, from its lowest value to its highest."""
    found: dict[str, Any] = {}
    for run in group.runs:
        method = run.card["run"]["method"]
        if method["name"] in methods:
            found[group.labels[run.key]] = method["settings"].get(setting, 0)
    return sorted(found, key=lambda label: (found[label], label))


def some(found: list[Group], make: Callable[[Group], Grid | None], which: str) -> list[Grid]:
    """A grid of each group that has one."""
    refuse_none(found, BENCHMARK)
    grids = [grid for group in found if (grid := make(group))]
    if not grids:
        raise UserError(f"no run of {BENCHMARK} {which}")
    return grids


def _depth(group: Group) -> Grid | None:
    """Table 3."""
    labels = _of(group, ["fine-tune"], "layers")
    source = source_of(group, "NED Table 3", "sequence 2")
    return _accuracies(f"Table 3: layers that are fine-tuned, {group.title}", group, labels, source) if labels else None


def _noticing(group: Group) -> Grid | None:
    """Table 7; a method without scores of its own has only the clock's."""
    known = set(group.scores.loc[group.scores["value"].notna(), "metric"])
    columns = {name: head for name, head in NOTICED.items() if name in known}
    if not columns:
        return None
    title, notes = f"Table 7: noticing new classes, {group.title}", (INTERVALS, CLOCK, BOLD)
    return _shares(title, group, ordered(group.methods), columns, source_of(group, "NED Table 7"), notes)


def _variants(group: Group) -> Grid | None:
    """Table 8."""
    labels = [*_of(group, ["weight-imprinting"], "scale"), *_of(group, ["exemplar-tuning"])]
    return (
        _accuracies(f"Table 8: variants, {group.title}", group, labels, source_of(group, "NED Table 8"))
        if labels
        else None
    )


def _episodes(group: Group) -> Grid | None:
    """Table 6: a column for each kind of episode, then the stream."""
    scores = group.scores[(group.scores["metric"] == "episodic") & (group.scores["stat"] == "each")]
    if scores.empty:
        return None
    cells = {str(name): _column(rows) for name, rows in scores.groupby("time")}
    cells["overall"] = measured(group, "overall")
    lines = [
        Line(label, tuple(entry(column.get(label), None) for column in cells.values()))
        for label in ordered(scores["method"])
    ]
    beside = _printed_episodes(group, tuple(cells))
    lines += beside
    notes = ["In percent: means over seeds with 95% t-intervals, or with one seed intervals over episodes."]
    notes += [PRINTED] if beside else []
    return Grid(f"Table 6: episodes and stream, {group.title}", "method", tuple(cells), tuple(lines), tuple(notes))


def _column(scores: Any) -> dict[str, Measured]:
    seeds = {str(name): dict(zip(rows["seed"], rows["value"], strict=True)) for name, rows in scores.groupby("method")}
    return {
        str(method): Measured(row["value"], row["low"], row["high"], seeds[str(method)])
        for method, row in over_seeds(scores, ["method"], SHARE).to_dict("index").items()
    }


def _printed_episodes(group: Group, columns: tuple[str, ...]) -> list[Line]:
    found: dict[str, dict[str, float]] = {}
    for data, protocol in (("mini-imagenet", "5-shot 5-way"), (DATA, "sequence 2"), (DATA, SEQUENCE)):
        for number in numbers(group.card, data, protocol):
            if "NED Table 6" in number.source:
                column = protocol if number.metric == "episodic" else number.metric
                found.setdefault(number.source, {})[column] = number.value
    lines = [
        Line("prototypical", tuple(Entry(row[name]) if name in row else None for name in columns), source)
        for source, row in found.items()
    ]
    return [line for line in lines if any(line.entries)]


LAYOUTS: dict[str, Layout] = {
    f"{BENCHMARK}/table-1": _by_section,
    f"{BENCHMARK}/table-3": lambda found: some(found, _depth, "with fine-tune: make one with several `layers`"),
    f"{BENCHMARK}/table-6": lambda found: some(found, _episodes, "has scores of n-shot k-way episodes"),
    f"{BENCHMARK}/table-7": lambda found: some(found, _noticing, "has scores for noticing new classes"),
    f"{BENCHMARK}/table-8": lambda found: some(found, _variants, "with weight-imprinting or exemplar-tuning"),
}
