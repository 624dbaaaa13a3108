"""Novelty scores of the answers in `open-world`: how strongly a sample looks like a new class."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from driftline.metrics import novelty
from driftline.record.run import Run

SCORES = {"hg": "HG: 1 - max softmax", "mdt": "MDT: distance to the nearest class"}


def novelty_scores(runs: Iterable[Run], name: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return for each run the recorded scores of this name, and which samples are of new classes.

    Runs without such scores, or without samples of both kinds, are left out.
    """
    found = []
    for run in runs:
        answers = run.table("answers")
        flags = novelty.unseen_flags(answers["truth"].to_numpy(), run.card.protocol["pretrain_classes"])
        column = {"hg": "confidence", "mdt": "distance"}[name]
        score = answers[column].to_numpy(float) if column in answers else np.full(len(answers), np.nan)
        known = ~np.isnan(score)
        if (flags & known).any() and (~flags & known).any():
            found.append(((1 - score if name == "hg" else score)[known], flags[known]))
    return found
