"""What changed: the inputs (covariate shift), or the answers to equal inputs (conditional shift).

Everything is compared with the first period. Distances per feature and a classifier that tries to tell the two periods
apart speak of the inputs. The errors of the first model, reweighted as if its own period had the later inputs, speak of
the rest: what such a reweighting does not explain arose at equal inputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from driftline.auditing.matrix import DRAWS, examined, number
from driftline.auditing.setting import Setting, draw
from driftline.data.columns import kind_of, numbers
from driftline.metrics.shift import (
    Distance,
    auc,
    benjamini_hochberg,
    categorical,
    numeric,
    performance_gap,
    unevenness,
)
from driftline.models.tabular import Encode, Tabular
from driftline.types import Samples

EFFECT = 0.1  # a distance below this is small, however significant
LARGEST_WEIGHT = 10.0  # a later row more frequent than this has no like in the first period
BINS = 10


def reference(setting: Setting) -> Samples:
    """Rows of the first period: those the first model has never trained on, filled up with others."""
    most = setting.limits.examined
    held = draw(setting.cut.held_out[0], most, setting.seed.child("examined", "held-out"))
    more = most - len(held)
    if setting.frame.logged is not None or more <= 0:
        return draw(setting.stream[0].samples, most, setting.seed.child("examined", "first")) if more > 0 else held
    return Samples.concat([held, draw(setting.cut.shown[0], more, setting.seed.child("examined", "shown"))])


def later(setting: Setting, tau: int) -> Samples:
    """Rows of a later period."""
    return examined(setting, setting.names[tau], setting.cut.everything(tau))


def told_apart(setting: Setting, tau: int) -> dict[str, Any]:
    """A cross-fitted classifier of the first period against period tau: its AUC, and weights for the first's rows."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    one, other = reference(setting).id, later(setting, tau).id
    rows = np.concatenate([one, other])
    later_ = np.repeat([0, 1], [len(one), len(other)])
    frame, chance = setting.frame.inputs, np.empty(len(rows))
    fold = setting.seed.child("folds", tau).numpy().permutation(len(rows)) % 2
    settings = {"max_iter": 40, "max_leaf_nodes": 15, "l2_regularization": 1.0, "early_stopping": False}
    for k in (0, 1):
        model = Tabular(HistGradientBoostingClassifier(**settings, random_state=0))
        model.fit(frame.iloc[rows[fold != k]], later_[fold != k])
        chance[fold == k] = model.predict_proba(frame.iloc[rows[fold == k]])[:, 1]
    found = auc(chance[later_ == 0], chance[later_ == 1])
    odds = chance[later_ == 0] / np.maximum(1 - chance[later_ == 0], 1e-9)
    weights = np.minimum(odds * len(one) / len(other), LARGEST_WEIGHT)
    met = chance[later_ == 1] / np.maximum(1 - chance[later_ == 1], 1e-9) * len(one) / len(other) <= LARGEST_WEIGHT
    return {"auc": found._asdict(), "weights": pd.Series(weights, index=one), "overlap": float(met.mean())}


def distances(setting: Setting) -> list[dict[str, Any]]:
    """Per feature, how far each later period is from the first; the largest effect first."""
    first = reference(setting).id
    others = [later(setting, tau).id for tau in range(1, len(setting.cut))]
    rows: list[dict[str, Any]] = []
    for name in setting.frame.features:
        column = setting.frame.inputs[name]
        found = [_distance(column.iloc[first], column.iloc[ids]) for ids in others]
        rows.append({"feature": name, "kind": kind_of(column.iloc[first]), "found": found})
    adjusted: Any = benjamini_hochberg([[d.p for d in row["found"]] for row in rows]) if rows else []
    made = []
    for row, p in zip(rows, adjusted, strict=True):
        effects = np.array([d.effect for d in row["found"]])
        if np.isnan(effects).all():
            continue
        at = int(np.nanargmax(effects))
        made.append(
            {
                "feature": row["feature"],
                "kind": row["kind"],
                "distance": "total variation" if row["kind"] == "category" else "Kolmogorov-Smirnov",
                "largest": number(effects[at]),
                "largest_at": setting.names[at + 1],
                "last": number(effects[-1]),
                "p": number(p[at]),
                "psi": number(row["found"][at].psi),
                "by_period": [number(e) for e in effects],
                "changed": bool(((effects >= EFFECT) & (p < 0.05)).any()),
            }
        )
    return sorted(made, key=lambda row: -row["largest"])


def conditional(setting: Setting, probes: pd.DataFrame, apart: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    """The loss of the first model in each later period, in a covariate and a conditional part."""
    right = _first_model(setting, probes)
    own = right[setting.names[0]]
    random = setting.seed.child("gap").numpy()
    parts: dict[str, Any] = {}
    for tau, found in apart.items():
        weights = found["weights"]
        known = own.index.intersection(weights.index)
        gap = performance_gap(own[known], weights[known], right[setting.names[tau]], DRAWS, random)
        shares = {n: dict(zip(("value", "low", "high"), getattr(gap, n), strict=True)) for n in gap._fields[:3]}
        n = {"n": len(right[setting.names[tau]]), "n_first": len(known), "effective_n": gap.effective}
        n["overlap"] = found["overlap"]
        parts[setting.names[tau]] = {**shares, **n, "auc": found["auc"]}
    return parts


def overall(parts: Mapping[str, Mapping[str, Any]], fewest: float = 30, overlap: float = 0.5) -> dict[str, Any]:
    """The same over all later periods that overlap enough with the first: half of their rows have their like there.

    The interval of the mean is the mean of the intervals: the first period's rows enter every period, so errors do not
    average out.
    """
    usable = [part for part in parts.values() if part["effective_n"] >= fewest and part["overlap"] >= overlap]
    made: dict[str, Any] = {"periods": len(usable), "of": len(parts)}
    for name in ("total", "covariate", "conditional"):
        ends = {end: float(np.mean([part[name][end] for part in usable])) if usable else None
                for end in ("value", "low", "high")}  # fmt: skip
        made[name] = {**ends, "n": sum(part["n"] for part in usable), "unit": "answers"}
    return made


def where(setting: Setting, probes: pd.DataFrame) -> list[dict[str, Any]]:
    """Per feature, how unevenly the first model's error changed over its values: first period against last third."""
    right = _first_model(setting, probes)
    names = setting.names[-max(1, len(setting.names) // 3) :]
    before, after = right[setting.names[0]], pd.concat([right[name] for name in names])
    rows: list[dict[str, Any]] = []
    for feature in setting.frame.features:
        column = setting.frame.inputs[feature]
        one, other, said = _bins(column.iloc[before.index], column.iloc[after.index])
        found = unevenness(before.to_numpy(), one, after.to_numpy(), other)
        if np.isfinite(found.spread):
            rows.append({"feature": feature, "spread": found.spread, "p": found.p, "worst": said(found.worst)})
    for row, p in zip(rows, benjamini_hochberg([row["p"] for row in rows]), strict=True):
        row["p"] = number(p)
    return sorted(rows, key=lambda row: -row["spread"])


def _first_model(setting: Setting, probes: pd.DataFrame) -> dict[str, pd.Series]:
    """By period, how right the first model was on each examined row; for numbers, on the scale of the first period."""
    mine = probes[probes["step"] == 0]
    if not setting.classifies:
        own = mine.loc[mine["probe"] == setting.names[0], "truth"]
        error = (mine["prediction"] - mine["truth"]) ** 2 / (float(np.var(own)) or 1.0)
        mine = mine.assign(correct=1 - error)
    return {str(name): rows.set_index("id")["correct"] for name, rows in mine.groupby("probe", observed=True)}


def _distance(before: pd.Series, after: pd.Series) -> Distance:
    kind = kind_of(before)
    if kind == "number":
        return numeric(numbers(before), numbers(after))
    if kind == "text":
        return _text_distance(before, after)
    counts = [part.astype(object).fillna("").astype(str).value_counts() for part in (before, after)]
    both = pd.concat(counts, axis=1).fillna(0)
    return categorical(*both.to_numpy().T)


def _text_distance(before: pd.Series, after: pd.Series) -> Distance:
    """The largest distance among the length of a text and the main directions of its words.

    The directions come from both periods together, so that neither is at home in them; p is adjusted for their number.
    """
    both = pd.concat([before, after], ignore_index=True)
    aspects = [both.fillna("").astype(str).str.len().to_numpy(float)]
    aspects += list(Encode().fit_transform(both.to_frame("text")).T)
    found = [numeric(aspect[: len(before)], aspect[len(before) :]) for aspect in aspects]
    largest = max(found, key=lambda distance: distance.effect)
    return largest._replace(p=min(1.0, largest.p * len(found)))


def _bins(before: pd.Series, after: pd.Series) -> tuple[np.ndarray, np.ndarray, Any]:
    """Bins of a feature from the first period's values, and a function that names one."""
    if kind_of(before) == "number":
        one, other = numbers(before), numbers(after)
        edges = np.unique(np.nanquantile(one, np.arange(1, BINS) / BINS)) if np.isfinite(one).any() else np.zeros(0)
        codes = [np.where(np.isnan(x), len(edges) + 1, np.searchsorted(edges, x, side="right")) for x in (one, other)]
        ends = [-np.inf, *edges, np.inf]
        return codes[0], codes[1], lambda k: "missing" if k > len(edges) else f"from {ends[k]:.4g} to {ends[k + 1]:.4g}"
    texts = [part.astype(object).fillna("").astype(str) for part in (before, after)]
    names = list(texts[0].value_counts().index[:BINS])
    found = [pd.Index(names).get_indexer(pd.Index(part)) for part in texts]
    codes = [np.where(at < 0, len(names), at) for at in found]
    return codes[0], codes[1], lambda k: f"'{names[k]}'" if k < len(names) else "other values"
