"""Published numbers, for comparison with ours. They describe the runs of others and are not targets.

Wild-Time's Tables 1 and 2 (Eval-Fix) and the temporal-metrics paper's Tables 1 and 2; shares as fractions. The
latter are indicative only: the paper has no code, does not state epsilon, and its row counts do not agree.

Seq-to-Final's Tables 8 to 15, cell by cell: one run each, without an interval. The published means of the
side-module columns are left out: those of "-1" cover the 8 dense and residual networks only, and those of "-B" all 12,
with the conv networks' values of "-1". Means are computed from the cells. Not comparable with ours:

- sss (Table 12): the paper's code shows all five sub-classes at step 0, and 2.4 times the data.
- time (Table 13, Portraits): its code normalizes the pixels to almost a constant.
- sft, in all tables: the best of three families of learning rates by *test* accuracy.
- i-ft and d-ft: their history includes the final step.

Its networks see raw pixels; ours see them standardized.

CMR's Tables 1 and 2, one run on one stream each; a method has its name here, with the settings that differ
from ours: `er` replays with every training batch, `er(replay_every=3)` is its k = 3. Not comparable with ours:

- UKR, OKR and KG are measured before each step's refinement, so none of them includes the last one.
- offline: its EFR counts errors twice, its CSR is the finished model's, and its checkpoint was chosen by KG.
- maxloss(n_candidates=512): its means are those of k = 3, its final values are not.

RDumb's Tables 1 and 4 to 8, for ResNet-50 on ImageNet, and parts of Tables 2, 3 and 9: means over ten orders (cin-c,
cin-3dcc), 24 orders (holdout) or nine runs, three speeds by three seeds (ccc). Of Table 5 only one column is legible;
the usual threshold of 0.4 is filled in from Table 8, its mean over the three difficulties. Tables 2, 3 and 9 have the
networks that can be identified: ResNet-18, ResNet-34 (without frozen on CCC-Medium, a copy of ResNet-50's) and
ViT-B/16; numbers that they share with each other or with Table 1 are stored once. Comparable with ours only for cropped
ImageNet images with photographed frost.

NED's Tables 1 to 8: one run on one order of one sequence of ImageNet-22K images each, Table 5 means and standard
deviations over three sequences; compute in multiply-accumulates, "macs" with cached features, "macs-uncached" without.
A source that ends in "doubtful" marks cells that cannot be right and are not compared with anything:

- Table 1: maml's heads (swapped), lwf's sections and mean per class (impossible together), exemplar-tuning's novel tail
  (Table 8 has another for the same run), the overall of weight-imprinting on MoCo (equal to ncm's).
- Table 4: lwf's tails (swapped), exemplar-tuning's sections and mean per class (impossible together).
- Table 5: standard-training on ResNet-50 (copies of other rows), fine-tune on MoCo (one row twice, permuted), oltr,
  exemplar-tuning on ResNet-18, meta-baseline and maml (sections and means do not agree), prototypical on Conv-4 (half
  of Table 1).
- Table 7: ncm with softmax, .07: a reversed sign, or an effect of the clock.
- Table 8: weight-imprinting with scale 1 and 2 (the same row), the sections with scale 8 (permuted) and of cosine
  exemplar-tuning (novel and pretrain swapped), the novel tail of the linear one.
- Compute: ncm, prototypical and all cached ResNet-50 cells but lwf's (less than answering alone takes), oltr (not its
  schedule), lwf (2 and 4 times standard-training in Table 1, 1 and 2 times in Table 4), meta-baseline uncached (it does
  not train). Training counts as 2 forward passes in Table 1, as 3 in Table 4, as 1 if only the last layer is trained.

Table 3 counts weights and biases as layers: its 1 and 2 are both our n_layers=1, its 3 is our n_layers=2. The text and
captions of NED differ on classes with exactly 50 samples; the tables seem to have them in no section. Table 7 has no
baseline that knows the time; oltr's own score is stored under HG.

Errors per corruption of other methods (test-time-corruptions.csv), and average accuracies after sequences of tasks
(timeline-tasks.csv): from papers and from the pages of their code, each with the network in its source.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from driftline import registry

ANY_FILES = frozenset({"dated-images", "image-folders", "npz", "table", "text-to-text", "webdataset"})
"""Datasets that read a user's own files."""
_SETS = ("SQuAD", "NaturalQuestionsShort", "HotpotQA", "SearchQA", "TriviaQA-web", "NewsQA")
FILES: dict[str, frozenset[str]] = {
    "qa": frozenset(
        {
            *(f"{name}.jsonl.gz" for name in _SETS),
            *(f"cmr_qa_{part}_eval.jsonl.gz" for part in ("upstream", "heldout")),
            "mrqa_subset.jsonl.gz",
        }
    ),
}
"""The published files of datasets that also accept other files."""


@dataclass(frozen=True)
class Published:
    """A published number; `model` is empty if the number is for all models."""

    benchmark: str
    data: str
    protocol: str
    method: str
    metric: str
    stat: str
    value: float
    source: str
    model: str = ""


@cache
def _all() -> tuple[Published, ...]:
    tables = {path.name: path for path in files("driftline.published").iterdir() if path.name.endswith(".csv")}
    rows = [
        row
        for _, table in sorted(tables.items())
        for row in csv.DictReader(table.read_text(encoding="utf-8").splitlines())
    ]
    return tuple(Published(**{**row, "value": float(row["value"])}) for row in rows)  # type: ignore[arg-type]


def lookup(benchmark: str, data: str, protocol: str, model: str | None = None) -> list[Published]:
    """Return the numbers published for a dataset under a protocol, and for a model if one is named.

    >>> [n.value for n in lookup("timeline", "yearbook", "Eval-Fix") if (n.method, n.metric) == ("ft", "fix-ood")]
    [0.8198]
    >>> [n.value for n in lookup("seq-to-final", "cifar10", "RCL", model="res-1") if n.method == "lp-ft"]
    [0.68]
    """
    found = [n for n in _all() if (n.benchmark, n.data, n.protocol) == (benchmark, data, protocol)]
    return [n for n in found if model is None or n.model in ("", model)]


def from_source(source: str) -> list[Published]:
    """Return the numbers of a table; the source of doubtful numbers ends in "doubtful" and is another one.

    >>> {number.protocol for number in from_source("RDumb Table 7")}
    {'holdout'}
    """
    return [number for number in _all() if number.source == source]


def published_name(benchmark: str, label: str) -> str:
    """Return the published name of a method from its display name with settings.

    >>> published_name("timeline", "ft(updates=150)"), published_name("seq-to-final", "sft(decay=chosen)")
    ('ft', 'sft')
    >>> published_name("seq-to-final", "seq-ft(penalty=l2)"), published_name("refinement", "er(lr=0.1, replay_every=3)")
    ('seq-ft(penalty=l2)', 'er(replay_every=3)')
    >>> published_name("test-time", "eata(penalty_weight=100.0)"), published_name("test-time", "eata(lr=1.0)")
    ('eata(penalty_weight=100)', 'eata')
    """
    label = re.sub(r"(=\d+)\.0(?=[,)])", r"\1", label)  # tables print whole numbers without a point
    label = re.sub(r"=\{'name': '([\w-]+)'[^}]*\}", r"=\1", label)  # and a pretraining without its settings
    name, _, settings = label.partition("(")
    equivalent = registry.get("benchmark", benchmark).equivalent_settings
    if equivalent is None:
        return name
    if label in _methods(benchmark) or not settings:
        return label
    inside, _, after = settings.partition(")")
    usual = f"pretraining={_own_pretraining(name)}"
    stated = [one for one in re.split(r", (?=\w+=)", inside) if one != usual]
    shown = [one for one in stated if one.partition("=")[0] not in equivalent]
    return name + (f"({', '.join(shown)})" if shown else "") + after


def _own_pretraining(method: str) -> object:
    entry = registry.describe("method", method)
    settings = entry.settings if entry and entry.settings else {}
    return settings.get("pretraining", (None, None))[1]


@cache
def _methods(benchmark: str) -> frozenset[str]:
    return frozenset(number.method for number in _all() if number.benchmark == benchmark)
