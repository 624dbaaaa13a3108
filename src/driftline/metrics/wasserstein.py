"""Wasserstein-2 distances between the inputs of each step and those of the last one.

Ji, Alaa, Sontag, "Seq-to-Final", Appendix B and Table 5. The images of all steps are reduced to principal components;
the distance of a step's train images to the final test images is divided by that of the final step's train images:

    ratio_t = W2(train_t, test_T) / W2(train_T, test_T)

1: no further from the final test images than the final train images are; higher is further.

Where the paper, its code and its tables disagree:
- Eq. 3 and 6 print a norm that is not squared under the root, and marginals of 1. The code and the tables use squared
  distances and weights 1/n and 1/m, as here.
- The code lets its solver stop at 100,000 iterations, and 4800 x 5000 images need more. So the W_X of Table 5 are up to
  .03 too high. Here a problem that is not solved is an error.
- The code fails when a step lacks a label. Here such a label is left out above and below the line of that step's ratio.

The distance of two finite samples of one law is above 0 and shrinks as they grow, so steps of different sizes are not
quite comparable: `n` is the number of images behind each.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

from driftline.errors import MissingExtra, UserError

COMPONENTS = 100
VARIANCE = 0.95


def wasserstein2(a: ArrayLike, b: ArrayLike, max_iterations: int | None = None) -> float:
    """Return the exact Wasserstein-2 distance of two samples of rows: sqrt(min_P sum_ij P_ij |a_i - b_j|^2).

    P moves mass 1/n from every row of `a` to mass 1/m on every row of `b`. 0: the same rows. Higher is further apart.
    The limit on iterations grows with the rows; a problem that is not solved within it is an error.
    Needs the extra `transport`.

    >>> wasserstein2([[0.0, 0.0], [0.0, 1.0]], [[3.0, 1.0], [3.0, 0.0]])
    3.0
    """
    try:
        import ot
    except ImportError:
        raise MissingExtra("the Wasserstein-2 distance", "transport") from None
    one, other = _rows(a), _rows(b)
    if one.shape[1] != other.shape[1]:
        raise UserError(f"rows of {one.shape[1]} and of {other.shape[1]} numbers have no distance")
    cost = cdist(one, other, "sqeuclidean")  # differences first: equal rows are at exactly 0
    scale = cost.max()
    if not scale:
        return 0.0
    limit = max(2_000_000, 1000 * (len(one) + len(other))) if max_iterations is None else max_iterations
    weights = [np.full(n, 1 / n) for n in cost.shape]
    cost /= scale  # the solver's tolerance is absolute
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the log, which is checked below, says the same
        found, log = ot.emd2(*weights, cost, numItermax=limit, log=True)
    if log["warning"] is not None:
        raise UserError(
            f"the transport of {len(one)} to {len(other)} rows was not solved within {limit} iterations: "
            f"{log['warning']} Give a higher max_iterations"
        )
    return float(np.sqrt(max(0.0, float(found)) * scale))


class ReducedImages(NamedTuple):
    """Images as principal components."""

    steps: list[np.ndarray]
    final: np.ndarray
    explained: float
    """The share of the variance that the components kept explain."""


def principal_components(
    steps: Sequence[ArrayLike], final: ArrayLike, components: int = COMPONENTS, variance: float = VARIANCE
) -> ReducedImages:
    """Project images on the principal components of the train images of all steps, centered and not scaled.

    Kept are the fewest components that together explain `variance` of the variance, and at most `components`.
    """
    from sklearn.decomposition import PCA

    stacked = np.concatenate([_rows(x) for x in steps])
    center = stacked.mean(axis=0)
    stacked -= center  # before the covariance is formed, which would lose digits otherwise
    # Both solvers are exact and deterministic; each is the fast one on its side.
    solver = "covariance_eigh" if len(stacked) >= stacked.shape[1] else "full"
    pca = PCA(min(components, *stacked.shape), svd_solver=solver).fit(stacked)
    explained = np.cumsum(pca.explained_variance_ratio_)
    kept = min(int(np.searchsorted(explained, variance)) + 1, len(explained))
    ends = np.cumsum([np.shape(x)[0] for x in steps])[:-1]
    made = np.split(pca.transform(stacked)[:, :kept], ends)
    return ReducedImages(made, pca.transform(_rows(final) - center)[:, :kept], float(explained[kept - 1]))


class StepDistances(NamedTuple):
    """How far each step is from the final test images, one entry per step."""

    ratio: np.ndarray
    """`distance` over that of the final step's train images; 1 at the last step."""
    distance: np.ndarray
    n: np.ndarray
    """How many of the step's train images were compared."""
    covered: np.ndarray
    """The share of the final test images they were compared with: below 1 where labels are missing."""


def covariate_shift(
    train_images_per_step: Sequence[ArrayLike],
    final_test_images: ArrayLike,
    components: int | None = COMPONENTS,
    variance: float = VARIANCE,
) -> StepDistances:
    """Return W_X of every step: the distance of its inputs from the final ones, without regard to labels.

    `components=None` takes the images as they are, for instance those that `principal_components` returned.
    """
    steps, final = _reduce(train_images_per_step, final_test_images, components, variance)
    distance = np.array([wasserstein2(step, final) for step in steps])
    return StepDistances(
        _divide(distance, distance[-1]), distance, np.array([len(s) for s in steps]), np.ones(len(steps))
    )


def conditional_shift(
    train_images_per_step: Sequence[ArrayLike],
    train_labels_per_step: Sequence[ArrayLike],
    final_test_images: ArrayLike,
    final_test_labels: ArrayLike,
    components: int | None = COMPONENTS,
    variance: float = VARIANCE,
) -> StepDistances:
    """Return W_X|Y of every step: the distance within each label, weighted by its share in the final test.

        distance_t = sum_y P_T(y) W2(train_t | y, test_T | y)

    A label that the step, the final train set or the final test set lacks is left out of that step: its average, and
    the final step's one that it is divided by, run over the labels that all three have, with shares that sum to 1.
    `covered` is the sum of these shares before. Without a common label the step is NaN.
    """
    labels, wanted = [np.asarray(y) for y in train_labels_per_step], np.asarray(final_test_labels)
    steps, final = _reduce(train_images_per_step, final_test_images, components, variance)
    if [len(y) for y in (*labels, wanted)] != [len(x) for x in (*steps, final)]:
        raise UserError("every image needs one label: the numbers of images and of labels differ")
    names, counts = np.unique(wanted, return_counts=True)
    apart = np.full((len(steps), len(names)), np.nan)
    for t, (x, y) in enumerate(zip(steps, labels, strict=True)):
        for k in np.flatnonzero(np.isin(names, y)):
            apart[t, k] = wasserstein2(x[y == names[k]], final[wanted == names[k]])
    common = ~np.isnan(apart) & ~np.isnan(apart[-1])
    share = np.where(common, counts / counts.sum(), 0.0)
    covered, apart = share.sum(axis=1), np.where(common, apart, 0.0)
    distance, last = (_divide((share * x).sum(axis=1), covered) for x in (apart, apart[-1]))
    n = np.array([np.isin(y, names[met]).sum() for y, met in zip(labels, common, strict=True)])
    return StepDistances(_divide(distance, last), distance, n, covered)


def _rows(x: ArrayLike) -> np.ndarray:
    rows = np.asarray(x, np.float64)
    if not rows.size or not rows.ndim:
        raise UserError("a distance between samples needs at least one row on each side")
    if not np.isfinite(rows).all():
        raise UserError("a distance between samples needs finite numbers: there are gaps or infinities among them")
    return rows.reshape(len(rows), -1)


def _reduce(
    steps: Sequence[ArrayLike], final: ArrayLike, components: int | None, variance: float
) -> tuple[list[np.ndarray], np.ndarray]:
    if not len(steps):
        raise UserError("a shift needs the train images of at least one step")
    if components is None:
        return [_rows(x) for x in steps], _rows(final)
    made = principal_components(steps, final, components, variance)
    return made.steps, made.final


def _divide(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):  # 0 over 0 is NaN: nothing was compared, or nothing differs
        return np.asarray(above / below)
