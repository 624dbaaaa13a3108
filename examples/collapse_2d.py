"""Why entropy minimization collapses: two classes in the plane, batch norm and a logistic regression.

    python examples/collapse_2d.py -o collapse-2d.svg

The experiment of Appendix A of Press et al., "RDumb", NeurIPS 2023. Two classes lie at (-1, 0) and (1, 0), with
variances 1 and 0.03. A corruption rotates the plane by -20 degrees and adds noise, nearly orthogonal to the line
between the classes, with variances 0.25 and 4 (condition 1) or 25 (condition 2), rotated by -30 degrees. Everything is
then rotated by -45 degrees. The model is batch norm without shift (eps = 0), a linear layer without bias, and a
sigmoid. It is trained on the clean classes, then gradient descent on its two scales minimizes the entropy on the
corrupted ones. Condition 1 improves and stays improved. Condition 2 improves, continues and falls below its start. The
scales grow in both.

By default expectations are those of infinitely many points, exact up to rounding: along the model's output the classes
are normal, so each step is a one-dimensional sum. `--samples` draws points instead; the paper draws 300,000.

The paper does not say how its matrices act. Here points are row vectors, a rotation by an angle multiplies them from
the right by ((cos, sin), (-sin, cos)), and matrices printed as squares are variances. Of the four readings that were
tried, only this one and its mirror image behave as the paper says. Training starts at weights 0, and samples are
symmetric: 3,000 steps do not converge along the axis with little variance, so otherwise chance would decide the
outcome.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Protocol

import altair as alt
import numpy as np
import pandas as pd
import typer
from scipy.special import expit, ndtr

from driftline.report.figures.export import check_format, save
from driftline.report.figures.palette import color
from driftline.seeds import Seed

NOISE = {1: (0.25, 4.0), 2: (0.25, 25.0)}
"""Variances of the noise of each condition."""
SPREAD = (1.0, 0.03)
SIGNAL_ROTATION, NOISE_ROTATION, TOTAL_ROTATION = -math.pi / 9, -math.pi / 6, -math.pi / 4
SIGNS = np.array([(1, *signs) for signs in itertools.product((1, -1), repeat=3)])
"""Reflections that make eight points of a draw; the mirror images in the other class make sixteen."""

NODES = np.linspace(-8.5, 8.5, 600)
"""Nodes of the trapezoidal rule, in standard deviations from the mean; exact up to rounding for these integrands."""
WEIGHTS = np.exp(-(NODES**2) / 2) / np.exp(-(NODES**2) / 2).sum()
PANELS = {"accuracy": "accuracy", "entropy": "entropy in nats", "scales": "length of the scales"}

Curve = Callable[[np.ndarray], np.ndarray]


class ClassDistribution(Protocol):
    """The class at (1, 0), each feature divided by its standard deviation; the other class is its mirror image.

    By symmetry means are zero, and both classes give the same accuracy, entropy and gradient.
    """

    def mean_of(self, curve: Curve, direction: np.ndarray) -> float:
        """Return the mean of curve(z) with z = direction . x."""

    def mean_along(self, curve: Curve, direction: np.ndarray) -> np.ndarray:
        """Return the mean of curve(z) x."""

    def accuracy(self, direction: np.ndarray) -> float:
        """Return the share with z > 0."""


@dataclass(frozen=True)
class Points:
    """A class of sampled points, one per row."""

    x: np.ndarray

    def mean_of(self, curve: Curve, direction: np.ndarray) -> float:
        return float(curve(self.x @ direction).mean())

    def mean_along(self, curve: Curve, direction: np.ndarray) -> np.ndarray:
        mean: np.ndarray = curve(self.x @ direction) @ self.x / len(self.x)
        return mean

    def accuracy(self, direction: np.ndarray) -> float:
        return float((self.x @ direction > 0).mean())


@dataclass(frozen=True)
class Normal:
    """A class of infinitely many points; along z they are normal."""

    mean: np.ndarray
    covariance: np.ndarray

    def mean_of(self, curve: Curve, direction: np.ndarray) -> float:
        centre, deviation = self._along(direction)
        return float(WEIGHTS @ curve(centre + deviation * NODES))

    def mean_along(self, curve: Curve, direction: np.ndarray) -> np.ndarray:
        centre, deviation = self._along(direction)
        weighted = WEIGHTS * curve(centre + deviation * NODES)
        # The mean of x given z is linear in the deviation of z from its mean.
        per_deviation = self.covariance @ direction / deviation if deviation else np.zeros(2)
        mean: np.ndarray = weighted.sum() * self.mean + (weighted @ NODES) * per_deviation
        return mean

    def accuracy(self, direction: np.ndarray) -> float:
        centre, deviation = self._along(direction)
        return float(ndtr(centre / deviation))

    def _along(self, direction: np.ndarray) -> tuple[float, float]:
        return float(direction @ self.mean), math.sqrt(direction @ self.covariance @ direction)


def rotation(angle: float) -> np.ndarray:
    """Return the matrix that rotates row vectors from the right."""
    return np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])


def population_classes(noise: tuple[float, float]) -> tuple[Normal, Normal]:
    """Return the clean and the corrupted class of infinitely many points."""
    signal, noisy, all_ = rotation(SIGNAL_ROTATION), rotation(NOISE_ROTATION), rotation(TOTAL_ROTATION)
    centre, spread = np.array([1.0, 0.0]), np.diag(SPREAD)
    corrupted = signal.T @ spread @ signal + noisy.T @ np.diag(noise) @ noisy
    clean = _scaled_normal(centre @ all_, all_.T @ spread @ all_)
    return clean, _scaled_normal(centre @ signal @ all_, all_.T @ corrupted @ all_)


def _scaled_normal(mean: np.ndarray, covariance: np.ndarray) -> Normal:
    deviation = np.sqrt(np.diag(covariance) + mean**2)  # of both classes together
    return Normal(mean / deviation, covariance / np.outer(deviation, deviation))


def sampled_classes(noise: tuple[float, float], samples: int, seed: Seed) -> tuple[Points, Points]:
    """Return the clean and the corrupted class from `samples` points of both classes, symmetric in every direction."""
    if samples < 16:
        raise ValueError(f"samples={samples}: must be 16 or greater")
    draws = seed.child("points").numpy().standard_normal((samples // 16, 4))
    draws = (draws * SIGNS[:, None]).reshape(-1, 4)
    x = draws[:, :2] * np.sqrt(SPREAD) + [1.0, 0.0]
    corrupted = x @ rotation(SIGNAL_ROTATION) + draws[:, 2:] * np.sqrt(noise) @ rotation(NOISE_ROTATION)
    return _scaled_points(x @ rotation(TOTAL_ROTATION)), _scaled_points(corrupted @ rotation(TOTAL_ROTATION))


def _scaled_points(x: np.ndarray) -> Points:
    return Points(x / np.sqrt((x**2).mean(axis=0)))


def train_source(clean: ClassDistribution) -> tuple[np.ndarray, np.ndarray]:
    """Return weights and scales after 3,000 steps on the cross-entropy, at rates 0.1, 0.01 and 0.001."""
    weights, scales = np.zeros(2), np.ones(2)
    for step in range(3000):
        direction = clean.mean_along(lambda z: -expit(-z), weights * scales)
        rate = 0.1 ** (1 + step // 1000)
        weights, scales = weights - rate * direction * scales, scales - rate * direction * weights
    return weights, scales


def minimize_entropy(
    condition: int, *, samples: int | None = None, seed: Seed = Seed(0), steps: int = 60_000, record_every: int = 100
) -> pd.DataFrame:
    """Minimize the entropy over the scales at rate 0.01.

    One row per `record_every` steps: condition, step, accuracy, entropy and the length of the vector of scales.
    """
    noise = NOISE[condition]
    clean: ClassDistribution
    corrupted: ClassDistribution
    clean, corrupted = population_classes(noise) if samples is None else sampled_classes(noise, samples, seed)
    weights, scales = train_source(clean)
    rows = []
    for step in range(steps + 1):
        if step % record_every == 0:
            direction = weights * scales
            state = (
                corrupted.accuracy(direction),
                corrupted.mean_of(entropy, direction),
                float(np.linalg.norm(scales)),
            )
            rows.append((condition, step, *state))
        scales = scales - 0.01 * weights * corrupted.mean_along(entropy_derivative, weights * scales)
    return pd.DataFrame(rows, columns=["condition", "step", "accuracy", "entropy", "scales"])


def best_linear(condition: int) -> float:
    """Return the accuracy of the best line through the origin, on infinitely many corrupted points."""
    _, corrupted = population_classes(NOISE[condition])
    return corrupted.accuracy(np.linalg.solve(corrupted.covariance, corrupted.mean))


def entropy(z: np.ndarray) -> np.ndarray:
    """Return the entropy of the prediction sigmoid(z), in nats."""
    size = np.abs(z)
    nats: np.ndarray = np.log1p(np.exp(-size)) + size * expit(-size)
    return nats


def entropy_derivative(z: np.ndarray) -> np.ndarray:
    """Return the derivative of the entropy: -z p (1 - p)."""
    p = expit(z)
    derivative: np.ndarray = -z * p * (1 - p)
    return derivative


def collapse_chart(frame: pd.DataFrame) -> Any:
    """Return three panels side by side, with a line per condition."""
    conditions = [int(condition) for condition in frame["condition"].unique()]
    colors = alt.Scale(domain=conditions, range=[color(k) for k in range(len(conditions))])
    base = alt.Chart(frame, width=220, height=180).mark_line(strokeWidth=2)
    panels = [
        base.encode(
            x=alt.X("step:Q", axis=alt.Axis(title="step", tickCount=3)),
            y=alt.Y(f"{column}:Q", scale=alt.Scale(zero=False), axis=alt.Axis(title=title, tickCount=5)),
            color=alt.Color("condition:N", scale=colors, legend=alt.Legend(title="condition")),
        )
        for column, title in PANELS.items()
    ]
    return alt.hconcat(*panels)


def summary(curve: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Return accuracy and scales at the start, at best and at the end, as scores for `driftline ledger add`."""
    accuracy, scales = curve["accuracy"], curve["scales"]
    values = {
        "accuracy at the start": accuracy.iloc[0],
        "highest accuracy": accuracy.max(),
        "accuracy at the end": accuracy.iloc[-1],
        "scale at the start": scales.iloc[0],
        "scale at the end": scales.iloc[-1],
    }
    frame = pd.DataFrame({"metric": values.keys(), "value": values.values()})
    return frame.assign(method=f"condition {curve['condition'].iloc[0]}", seed=seed)


def _print(curve: pd.DataFrame) -> None:
    condition, accuracy, scales = curve["condition"].iloc[0], curve["accuracy"], curve["scales"]
    typer.echo(
        f"condition {condition}: accuracy {accuracy.iloc[0]:.3f} at the start, {accuracy.max():.3f} at best (step "
        f"{curve['step'].iloc[int(accuracy.argmax())]:,}), {accuracy.iloc[-1]:.3f} at the end; best line "
        f"{best_linear(condition):.3f}; scales {scales.iloc[0]:.1f} to {scales.iloc[-1]:.1f}"
    )


def main(
    output: Annotated[
        Path, typer.Option("-o", "--output", help=".svg, .pdf, .png or .html; the numbers are written as CSV.")
    ] = Path("collapse-2d.svg"),
    samples: Annotated[
        int | None, typer.Option(help="Number of points. [default: infinitely many, computed exactly]", min=16)
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the points.")] = 0,
    steps: Annotated[int, typer.Option(help="Number of adaptation steps.", min=1)] = 60_000,
    seeds: Annotated[int, typer.Option(help="Number of draws of points; the picture is of the first.", min=1)] = 1,
    scores: Annotated[Path | None, typer.Option(help="A CSV file for the summaries of all draws.")] = None,
) -> None:
    """Reproduce the two-dimensional collapse experiment.

    Entropy minimization on a logistic regression with batch norm, under two corruptions.
    """
    check_format(output)
    if scores == output.with_suffix(".csv"):
        raise typer.BadParameter(
            f"{scores} is the file of the picture's numbers: name another one", param_hint="--scores"
        )
    every = max(1, steps // 600)
    summaries, first = [], []
    for draw in range(seed, seed + seeds):
        for k in NOISE:
            curve = minimize_entropy(k, samples=samples, seed=Seed(draw), steps=steps, record_every=every)
            _print(curve)
            summaries.append(summary(curve, draw))
            if draw == seed:
                first.append(curve)
    frame = pd.concat(first, ignore_index=True)
    table = save(frame, collapse_chart(frame), output)
    typer.echo(f"{output}, and its numbers in {table}")
    if scores is not None:
        pd.concat(summaries).to_csv(scores, index=False)
        typer.echo(f"{scores}: the summaries of {seeds} draw(s)")


if __name__ == "__main__":
    typer.run(main)
