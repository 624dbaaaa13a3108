"""Features of held-out samples projected to two dimensions."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np

from driftline.report.analysis.curves import Series, time_names
from driftline.report.analysis.groups import Group

COLUMNS = ["stretch", "class", "x", "y"]


def project_features(group: Group, method: str, stretches: int = 8) -> tuple[Series, str]:
    """Return the features of a method's first seed in two dimensions, by ranges of time, and the projection used."""
    names = time_names(group)
    frame = group.runs_of(method)[0].table("features")
    frame = frame[frame["time"].isin(names)] if len(frame) else frame  # few-shot episodes have no time
    if frame.empty:
        return Series(COLUMNS, []), ""
    points, projection = project(np.stack(frame["features"].to_list()))
    parts = np.array_split(np.array(names), min(stretches, len(names)))
    stretch = {name: part[0] if len(part) == 1 else f"{part[0]} to {part[-1]}" for part in parts for name in part}
    rows = zip(frame["time"].map(stretch), frame["truth"].astype(str), *points.round(3).T.tolist(), strict=True)
    return Series(COLUMNS, [list(row) for row in rows]), projection


def project(features: np.ndarray) -> tuple[np.ndarray, str]:
    """Return two coordinates per row: UMAP if it is installed, else the first two principal components."""
    if find_spec("umap"):
        import umap

        return np.asarray(umap.UMAP(random_state=0).fit_transform(features), float), "UMAP"
    centered = features - features.mean(axis=0)
    left, size, _ = np.linalg.svd(centered.astype(float), full_matrices=False)
    points = np.zeros((len(features), 2))
    kept = min(2, len(size))
    points[:, :kept] = left[:, :kept] * size[:kept]
    return points, "PCA"
