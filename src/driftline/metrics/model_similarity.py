"""Similarity of models: of their activations, their weights, and their answers.

Three views of models over time, of Ji, Alaa, Sontag, "Seq-to-Final", Appendix G.2:

- `svcca` compares activations with those of another model, such as an oracle;
- `project_weights` places weights on two axes that leave from an oracle;
- `disagreement_map` needs no oracle. The paper finds the first two too dependent on one training run and asks for one
  without a reference. Here the distance of models is their disagreement on a fixed set of inputs, which is defined for
  any architecture and initialization, side modules included.

Where the paper and its code disagree, or this file departs from them:
- The paper keeps directions that explain a share of the variance. Its code sums singular values, which are not squared,
  as Raghu et al. (2017) do, and so does this file.
- google/svcca adds 1e-10 to the diagonal of covariances before it inverts them. Here nothing is inverted: the singular
  vectors are orthonormal already. Directions that are 0 up to rounding are dropped.
- For an entire model the paper's text concatenates the layers and its code takes the mean over layers. Both can be had
  from `svcca`; nothing is chosen here.
- Eq. 14 and 15 print a vector; the code plots its signed length, as here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from driftline.errors import UserError


def svcca(acts_a: ArrayLike, acts_b: ArrayLike, share: float = 0.9) -> float:
    """Return the mean canonical correlation of two truncated layers: 0 unrelated, 1 equal up to a linear map.

    Rows are the same inputs in the same order; the rest is flattened. With few rows and many directions chance alone
    gives high values: use many more rows than `leading_directions` has columns. NaN if a layer is constant.
    """
    found = canonical_correlations(acts_a, acts_b, share)
    return float(found.mean()) if len(found) else np.nan


def canonical_correlations(acts_a: ArrayLike, acts_b: ArrayLike, share: float = 0.9) -> np.ndarray:
    """Return the correlations between the leading directions of two layers, highest first.

    With orthonormal bases U_a and U_b of the kept, centered directions they are the singular values of U_a' U_b.
    """
    one, other = leading_directions(acts_a, share), leading_directions(acts_b, share)
    if len(one) != len(other):
        raise UserError(
            f"activations of {len(one)} and of {len(other)} inputs cannot be compared: give the same inputs"
        )
    if not one.shape[1] or not other.shape[1]:
        return np.empty(0)
    return np.asarray(np.minimum(np.linalg.svd(one.T @ other, compute_uv=False), 1.0))


def leading_directions(acts: ArrayLike, share: float = 0.9) -> np.ndarray:
    """Return the leading singular directions of the centered activations as orthonormal columns.

    Kept is the smallest k with (s_1 + ... + s_k) / (s_1 + s_2 + ...) > share, as in the authors' code; 1 keeps all.
    """
    if not 0 < share <= 1:
        raise UserError(f"a share of singular values lies above 0 and up to 1, and {share} does not")
    x = np.asarray(acts, np.float64)
    x = x.reshape(len(x), -1)
    u, s, _ = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
    # What centering leaves of a constant is rounding, measured against the activations themselves.
    rank = int((s > max(x.shape) * np.finfo(float).eps * np.linalg.norm(x)).sum())
    s = s[:rank]
    kept = rank if share == 1 else int(np.searchsorted(np.cumsum(s), share * s.sum(), side="right")) + 1
    return np.asarray(u[:, : min(kept, rank)])


class Coordinates(NamedTuple):
    """Where a model lies between the oracle, at (0, 0), and two others. The axes are not at right angles."""

    historical: float
    """How far it goes from the oracle towards the model of the historical data."""
    final: float
    """How far it goes from the oracle towards the model of the few final data."""


class WeightProjection(NamedTuple):
    """A model's place, by each layer's weights and by all of them."""

    layers: dict[str, Coordinates]
    whole: Coordinates


def project_weights(
    weights: Mapping[str, ArrayLike],
    origin: Mapping[str, ArrayLike],
    historical: Mapping[str, ArrayLike],
    final: Mapping[str, ArrayLike],
) -> WeightProjection:
    """Return scalar projections <w - w*, d> / ||d|| on d_H = w_H - w* and d_T = w_T - w*, with w* the origin.

    Each model is its layers' weights by name; the authors take convolution and linear weights, without batch norm.
    An axis is NaN where its model is the origin.

    >>> project_weights({"fc": [1.0, 1.0]}, {"fc": [0.0, 0.0]}, {"fc": [2.0, 0.0]}, {"fc": [3.0, 4.0]}).whole
    Coordinates(historical=1.0, final=1.4)
    """
    models = [{name: np.asarray(w, np.float64) for name, w in m.items()} for m in (weights, origin, historical, final)]
    shapes = [{name: w.shape for name, w in m.items()} for m in models]
    for name in dict.fromkeys(name for m in shapes for name in m):
        if len({m.get(name) for m in shapes}) > 1:
            raise UserError(f"layer '{name}' is not the same in all four models: {[m.get(name) for m in shapes]}")
    names = list(models[0])
    w, start, *ends = ([m[name].ravel() for name in names] for m in models)
    layers = {name: _point(w[k], start[k], [end[k] for end in ends]) for k, name in enumerate(names)}
    joined = [np.concatenate(m) if m else np.empty(0) for m in (w, start, *ends)]
    return WeightProjection(layers, _point(joined[0], joined[1], joined[2:]))


def _point(w: np.ndarray, start: np.ndarray, ends: list[np.ndarray]) -> Coordinates:
    axes = [end - start for end in ends]
    lengths = [float(np.linalg.norm(axis)) for axis in axes]
    return Coordinates(
        *(float((w - start) @ d) / long if long else np.nan for d, long in zip(axes, lengths, strict=True))
    )


class PlanarLayout(NamedTuple):
    """Points in the plane whose distances approximate given ones."""

    points: np.ndarray
    """One row of two coordinates per model, centered at 0; the first axis is the longer one."""
    explained: float
    """The share of the squared distances' spread that two axes hold; 1: nothing is lost."""
    stress: float
    """sqrt(sum (d - plane)^2 / sum d^2) over pairs; 0: every distance is exact."""


def disagreement_map(answers: ArrayLike) -> PlanarLayout:
    """Return a map of models by their answers to the same inputs, one row of labels per model.

    The distance is the root of the disagreement. On one-hot answers it is Euclidean but for a factor, so that this map
    is their principal components and no distance is bent.
    """
    return classical_mds(np.sqrt(disagreement(answers)))


def disagreement(answers: ArrayLike) -> np.ndarray:
    """Return the share of inputs that each two models answer differently, models x models.

    >>> disagreement([[0, 1, 2, 2], [0, 1, 1, 1], [0, 1, 2, 2]]).tolist()
    [[0.0, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.0]]
    """
    given = np.asarray(answers)
    if given.ndim != 2 or not given.size:
        raise UserError(f"answers are one row of labels per model, and these have shape {given.shape}")
    return np.array([(given != row).mean(axis=1) for row in given])


def classical_mds(distances: ArrayLike) -> PlanarLayout:
    """Return the classical multidimensional scaling (Torgerson) of distances to the plane.

    The sign of each axis is such that its first extreme point is positive. Where both axes are equally long, their
    direction in the plane is arbitrary; distances never are.
    """
    d = np.asarray(distances, np.float64)
    if d.ndim != 2 or d.shape[0] != d.shape[1] or not d.size or not np.allclose(d, d.T) or np.diagonal(d).any():
        raise UserError("distances are a square, symmetric table with zeros from each to itself")
    square = d**2
    inner = -(square - square.mean(axis=0) - square.mean(axis=1, keepdims=True) + square.mean()) / 2
    values, vectors = np.linalg.eigh((inner + inner.T) / 2)
    values, vectors = values[::-1], vectors[:, ::-1]
    points = np.zeros((len(d), 2))
    for k in range(min(2, len(d))):
        axis = vectors[:, k] * np.sqrt(max(0.0, values[k]))
        # Extremes that differ by rounding alone are equal: the first of them decides.
        first = axis[np.argmax(np.abs(axis) >= (1 - 1e-9) * np.abs(axis).max())]
        points[:, k] = axis if first >= 0 else -axis
    plane = np.linalg.norm(points[:, None] - points[None], axis=-1)
    total, all_of_them = square.sum(), np.abs(values).sum()
    explained = float(np.maximum(values[:2], 0).sum() / all_of_them) if total else 1.0
    return PlanarLayout(points, explained, float(np.sqrt(((d - plane) ** 2).sum() / total)) if total else 0.0)
