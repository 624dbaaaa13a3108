"""Frozen scores: small runs of every benchmark and method family, with the scores that they had when they were frozen.

`python tests/frozen_scores.py` freezes them again. It refuses if a score differs and no revision behind it was raised;
docs/upgrades.md says more.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

PATH = Path(__file__).with_suffix(".json")
TOLERANCE = 1e-4
"""The absolute difference up to which two scores are the same; other processors round differently."""

SHORT = {"lr": 0.01, "updates": 20}
SPECS: dict[str, dict[str, Any]] = {
    "timeline": {
        "data": {"name": "digits", "periods": 3},
        "model": "linear",
        "methods": [{"name": name, **SHORT} for name in ("erm", "si", "groupdro-t", "simclr", "retrain-window")],
        "timeline": {"resamples": 20},
    },
    "refinement": {
        "data": "digit-clusters",
        "model": {"name": "mlp", "width": 16},
        "methods": ["frozen", {"name": "cft", "epochs": 3}, {"name": "er", "epochs": 3}],
        "refinement": {"episodes": 3, "upstream_set": 64, "held_out": 32, "upstream_updates": 40},
    },
    "open-world": {
        "data": "digit-symmetries",
        "model": {"name": "mlp", "width": 16},
        "methods": ["ncm", {"name": "fine-tune", "train_every": 60, "epochs": 1}],
        "open-world": {"class_size_law": "60/(4+r)", "upstream_updates": 40, "head": 8},
    },
    "test-time": {
        "data": "color-digits",
        "model": {"name": "conv-1", "width": 4},
        "methods": [{"name": "periodic-reset", "reset_every": 2, "options": {"lr": 0.01}}],
        "test-time": {
            **{
                "order": "gradual",
                "corruptions": "contrast",
                "images": 128,
                "images_per_point": 64,
                "upstream_updates": 30,
            },
        },
    },
    "seq-to-final": {
        "data": "color-digits",
        "model": {"name": "conv-1", "width": 4},
        "methods": ["seq-ft"],
        "seq-to-final": {
            **{"shifts": "RL", "sizes": [80, 60, 60], "test": 200, "oracle": 0, "epochs": 3, "batch": 16},
            **{"lr": [1e-2], "weight_decay": [0.0], "dropout": [0.0]},
        },
    },
}
"""A spec by benchmark."""
Frozen = dict[str, dict[str, Any]]
"""By benchmark and method: `revisions` of the code behind the numbers, and `scores`."""


def measure(benchmark: str) -> Frozen:
    """Run the spec of a benchmark; return what is frozen of its runs."""
    import driftline

    with tempfile.TemporaryDirectory() as folder:
        record = driftline.run({"benchmark": benchmark, **SPECS[benchmark], "seeds": 1}, runs=folder)
        return {f"{benchmark} {run.card.run.method.name}": _frozen(run) for run in record.runs}


def _frozen(run: Any) -> dict[str, Any]:
    """Return the revisions of a run, its summary scores, and the mean confidence of its answers."""
    scores, code = run.table("scores"), run.card.code
    rows = scores[scores["stat"] != "each"]
    values = {f"{row.metric} {row.stat}": row.value for row in rows.itertuples()}
    values["confidence"] = run.table("answers")["confidence"].mean()
    rounded = {name: None if math.isnan(value) else round(float(value), 6) for name, value in values.items()}
    return {"revisions": {**code.revisions, **code.score_revisions}, "scores": rounded}


def differences(before: Mapping[str, float | None], after: Mapping[str, float | None]) -> list[str]:
    """Return the scores that differ by more than the tolerance, with both values."""
    found = []
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if old != new and (old is None or new is None or abs(old - new) > TOLERANCE):
            found.append(f"{name} {old} → {new}")
    return found


def suspects(frozen: Frozen, changed: Iterable[str]) -> list[str]:
    """Return the parts to raise: what all changed runs are made with and no other run; if there is none, the former."""
    changed = set(changed)
    common = set.intersection(*(set(frozen[name]["revisions"]) for name in changed))
    elsewhere = {part for name, run in frozen.items() if name not in changed for part in run["revisions"]}
    return sorted(common - elsewhere or common)


def problems(before: Frozen, after: Frozen) -> list[str]:
    """Return a sentence for each change of scores without a raised revision, and for each that is not frozen yet."""
    silent, found = {}, []
    for name in sorted({*before, *after}):
        if name not in before or name not in after or before[name]["revisions"] != after[name]["revisions"]:
            found.append(f"{name}: its revisions changed. Freeze it again: python tests/frozen_scores.py")
        elif changes := differences(before[name]["scores"], after[name]["scores"]):
            silent[name] = changes
    if not silent:
        return found
    parts = ", ".join(suspects(after, silent))
    lines = [f"{name}: {', '.join(changes)}" for name, changes in silent.items()]
    advice = f"If that is intended, raise the smallest part in src/driftline/revisions.py that covers it, of: {parts}"
    return [*found, "Numbers changed, and no revision was raised.", *lines, advice]


def main() -> int:
    """Write the scores as they are now, unless some changed without a raised revision."""
    after = {name: run for benchmark in SPECS for name, run in measure(benchmark).items()}
    before = json.loads(PATH.read_text(encoding="utf-8")) if PATH.exists() else {}
    same = {name: before[name] for name in before if name in after}
    silent = [line for line in problems(same, {name: after[name] for name in same}) if "Freeze it again" not in line]
    if silent:
        print("\n".join(silent))
        return 1
    PATH.write_text(json.dumps(after, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
    raise SystemExit(main())
