"""What the figures of `open-world` show, as tables: accuracy over time, who notices new classes, how many there are.

As in `report.courses`, every function takes a record and returns one row per thing to draw, `panel` is what may be
compared, and `frame.attrs["notes"]` says what was left out. `pareto` works for the runs of any benchmark.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from driftline import registry
from driftline.metrics import unseen
from driftline.metrics.intervals import seed_interval
from driftline.metrics.openworld import classes_met
from driftline.record import Record, Run
from driftline.report.analysis.curves import per_time
from driftline.report.analysis.estimates import measured
from driftline.report.analysis.groups import Group, groups
from driftline.report.analysis.result_table import is_share
from driftline.report.figures.courses import framed

BENCHMARK = "open-world"
SCORES = {"hg": "HG: 1 - max softmax", "mdt": "MDT: distance to the nearest class"}
CLOCK = "clock (-t)"
FALSE = np.linspace(0, 1, 201)  # where ROC curves of several seeds are averaged
POINTS = 200  # of a curve over the samples of a stream
GIGA = 1e9
Rows = list[dict[str, Any]]


def rolling(record: Record, *, where: Path | None = None) -> pd.DataFrame:
    """Accuracy in consecutive windows: means over seeds with intervals (Fig. 2a and 3a)."""
    rows: Rows = []
    left_out = []
    for group in groups(record):
        found = per_time(group, "rolling")
        left_out += [] if found.rows else [group.title]
        named = (dict(zip(found.columns, row, strict=True)) for row in found.rows)
        rows += [{"panel": group.title, **row, "time": int(row["time"])} for row in named]
    return framed(rows, "no accuracy in windows", left_out)


def roc(record: Record, *, where: Path | None = None) -> pd.DataFrame:
    """The ROC curve of each method's scores for noticing new classes, means over seeds, and the clock's (Fig. 3b)."""
    rows: Rows = []
    left_out = []
    for group in groups(record):
        found = list(_curves(group)) if group.card["run"]["benchmark"] == BENCHMARK else []
        rows += [{"panel": group.title, **row} for row in found]
        left_out += [] if found else [group.title]
    return framed(rows, "no scores for noticing new classes", left_out)


def _curves(group: Group) -> Iterator[dict[str, Any]]:
    for name, called in SCORES.items():
        methods = {method: _scored(group.runs_of(method), name) for method in group.methods}
        methods = {method: pairs for method, pairs in methods.items() if pairs}
        if methods:
            flags = next(iter(methods.values()))  # the clock is the same for all methods on a seed
            methods[CLOCK] = [(unseen.clock(len(new)), new) for _, new in flags]
        for method, pairs in methods.items():
            curves = [unseen.roc(score, new) for score, new in pairs]
            true = np.array([np.interp(FALSE, curve.false, curve.true) for curve in curves])
            auroc = float(np.mean([unseen.unseen_auroc(score, new) for score, new in pairs]))
            low, high = (np.clip(end, 0, 1) for end in seed_interval(true))
            counts = {"n": min(len(new) for _, new in pairs), "unseen": min(int(new.sum()) for _, new in pairs)}
            for k, at in enumerate(FALSE):
                ends = {"low": low[k], "high": high[k], "seeds": len(pairs), **counts, "auroc": auroc}
                yield {"score": called, "method": method, "false": at, "true": float(true[:, k].mean()), **ends}


def _scored(runs: tuple[Run, ...], name: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """By run: the scores that a record has under this name, and which samples are unseen; runs without are left out."""
    found = []
    for run in runs:
        answers = run.table("answers")
        flags = unseen.unseen_flags(answers["truth"].to_numpy(), run.card["protocol"]["pretrain_classes"])
        column = {"hg": "confidence", "mdt": "distance"}[name]
        score = answers[column].to_numpy(float) if column in answers else np.full(len(answers), np.nan)
        known = ~np.isnan(score)
        if (flags & known).any() and (~flags & known).any():
            found.append(((1 - score if name == "hg" else score)[known], flags[known]))
    return found


def thresholds(record: Record, *, where: Path | None = None) -> pd.DataFrame:
    """What share of seen samples a threshold accepts and of unseen ones rejects, means over seeds (Fig. 5)."""
    rows: Rows = []
    left_out = []
    for group in groups(record):
        ours = group.card["run"]["benchmark"] == BENCHMARK
        found = [row for method in group.methods for row in _by_threshold(group, method)] if ours else []
        rows += [{"panel": group.title, **row} for row in found]
        left_out += [] if found else [group.title]
    return framed(rows, "no scores for noticing new classes", left_out)


def _by_threshold(group: Group, method: str) -> Iterator[dict[str, Any]]:
    for name, called in SCORES.items():
        pairs = _scored(group.runs_of(method), name)
        if not pairs:
            continue
        known = np.concatenate([score[np.isfinite(score)] for score, _ in pairs])
        at = np.linspace(known.min(), known.max(), POINTS)
        curves = [unseen.threshold_curves(score, new, at) for score, new in pairs]
        for side in ("seen", "unseen"):
            shares = np.mean([getattr(curve, side) for curve in curves], axis=0)
            n = min(int((new == (side == "unseen")).sum()) for _, new in pairs)
            told = {"method": method, "score": called, "samples": side, "seeds": len(pairs), "n": n}
            yield from ({**told, "threshold": x, "value": y} for x, y in zip(at, shares, strict=True))


def classes(record: Record, *, where: Path | None = None) -> pd.DataFrame:
    """How many samples each class has, by rank, and how many classes have come (Fig. 4), for each seed."""
    rows: Rows = []
    left_out = []
    for group in groups(record):
        if group.card["run"]["benchmark"] != BENCHMARK:
            left_out.append(group.title)
            continue
        for run in {run.seed: run for run in group.runs}.values():  # all methods meet the same stream
            told = {"panel": group.title, "seed": run.seed, "head": run.card["protocol"]["head"]}
            rows += [{**told, **row} for row in _stream(run)]
    return framed(rows, "no stream with new classes", left_out)


def _stream(run: Run) -> Iterator[dict[str, Any]]:
    labels = run.table("answers")["truth"].to_numpy()
    counts = np.sort(np.unique(labels, return_counts=True)[1])[::-1]
    yield from ({"what": "samples of a class", "at": k, "value": int(n)} for k, n in enumerate(counts, 1))
    met = classes_met(labels)
    places = np.unique(np.linspace(0, len(labels) - 1, POINTS).astype(int))
    yield from ({"what": "classes met", "at": int(k) + 1, "value": int(met[k])} for k in places)


def pareto(record: Record, *, where: Path | None = None, metric: str | None = None) -> pd.DataFrame:
    """A metric against compute, and which methods nothing else beats in both (Fig. 6).

    The metric is the benchmark's first headline share unless one is named. Where features were kept, compute is also
    shown as if they had not been.
    """
    rows: Rows = []
    left_out = []
    for group in groups(record):
        headline = registry.get("benchmark", group.card["run"]["benchmark"]).headline
        wanted = [(name, stat) for name, stat in headline if (name == metric if metric else is_share(name))]
        name, stat = wanted[0] if wanted else (str(metric), "mean")
        found = [row for kind in _kinds(group) for row in _priced(group, name, stat, kind)]
        rows += [{"panel": group.title, "metric": name, **row} for row in found]
        left_out += [] if found else [group.title]
    return framed(rows, f"no {metric or 'share'} of runs whose compute is counted", left_out)


def _kinds(group: Group) -> tuple[str, ...]:
    spares = any(run.card["compute"].get("spared_macs") for run in group.runs)
    return ("as it happened", "without keeping features") if spares else ("as it happened",)


def _priced(group: Group, metric: str, stat: str, kind: str) -> Rows:
    rows: Rows = []
    for method, cell in measured(group, metric, stat).items():
        bills = [run.card["compute"] for run in group.runs_of(method)]
        if any(bill["forward_macs"] is None for bill in bills):
            continue
        spared = [bill.get("spared_macs", 0) if kind != "as it happened" else 0 for bill in bills]
        spent = [bill["forward_macs"] + (bill["backward_macs"] or 0) for bill in bills]
        gmac = float(np.mean(np.add(spent, spared))) / GIGA
        number = {"value": cell.value, "low": cell.low, "high": cell.high, "interval": cell.interval}
        counts = {"seeds": len(cell.by_seed), "n": cell.n, "unit": cell.unit}
        rows.append({"compute": kind, "method": method, "gmac": gmac, **number, **counts})
    return [{**row, "unbeaten": _unbeaten(row, rows)} for row in rows]


def _unbeaten(row: dict[str, Any], rows: Rows) -> bool:
    """Whether no other has more for the same price or the same for less."""
    return not any(
        other["value"] >= row["value"]
        and other["gmac"] <= row["gmac"]
        and (other["value"], other["gmac"]) != (row["value"], row["gmac"])
        for other in rows
    )
