"""Adaptation and collapse in two dimensions."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import typer
from torch.nn import functional

from collapse_2d import (
    NOISE,
    best_linear,
    entropy,
    entropy_derivative,
    main,
    minimize_entropy,
    population_classes,
    rotation,
    sampled_classes,
    train_source,
)
from driftline.seeds import Seed

pytestmark = pytest.mark.xdist_group("collapse-2d")  # the runs are computed once

# Accuracy of a symmetric sample of 20,000 points: at the start, at best and at the end.
MEASURED = {1: (0.776, 0.808, 0.808), 2: (0.789, 0.819, 0.694)}


@pytest.fixture(scope="module")
def runs() -> dict[int, pd.DataFrame]:
    return {condition: minimize_entropy(condition) for condition in NOISE}


@pytest.mark.parametrize("condition", NOISE)
def test_the_numbers_of_the_experiment(runs: dict[int, pd.DataFrame], condition: int) -> None:
    accuracy = runs[condition]["accuracy"]
    found = (accuracy.iloc[0], accuracy.max(), accuracy.iloc[-1])
    assert found == pytest.approx(MEASURED[condition], abs=0.015)


def test_condition_1_adapts_and_stays(runs: dict[int, pd.DataFrame]) -> None:
    accuracy = runs[1]["accuracy"]
    assert accuracy.is_monotonic_increasing
    assert accuracy.iloc[-1] - accuracy.iloc[0] > 0.025
    assert best_linear(1) - accuracy.iloc[-1] < 0.012


def test_condition_2_adapts_then_collapses(runs: dict[int, pd.DataFrame]) -> None:
    accuracy, step = runs[2]["accuracy"], runs[2]["step"]
    assert 1500 <= step[accuracy.argmax()] <= 4000
    assert best_linear(2) - accuracy.max() < 1e-3  # it passes the best line on its way
    assert accuracy.iloc[-1] < accuracy.iloc[0] - 0.05


@pytest.mark.parametrize("condition", NOISE)
def test_entropy_falls_and_scales_grow_in_both(runs: dict[int, pd.DataFrame], condition: int) -> None:
    assert runs[condition]["entropy"].is_monotonic_decreasing
    assert runs[condition]["scales"].is_monotonic_increasing
    assert runs[condition]["scales"].iloc[[0, -1]].tolist() == pytest.approx([2.0, 13.0], abs=0.4)


def test_accuracy_on_the_clean_classes_is_optimal() -> None:
    clean, _ = population_classes(NOISE[1])
    weights, scales = train_source(clean)
    assert clean.accuracy(weights * scales) == pytest.approx(0.8413, abs=1e-4)  # P(z > -1), the best there is


@pytest.mark.parametrize("condition", NOISE)
def test_a_sample_gives_what_infinitely_many_points_give(condition: int) -> None:
    points, exact = (minimize_entropy(condition, samples=s, steps=1000, record_every=500) for s in (32_000, None))
    np.testing.assert_allclose(points.iloc[:, 2:], exact.iloc[:, 2:], rtol=0.03)


def test_expectations_over_a_line_are_those_over_the_plane() -> None:
    _, corrupted = population_classes(NOISE[2])
    side = np.linspace(-8, 8, 801)
    standard = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    density = np.exp(-(standard**2).sum(axis=1) / 2)
    density /= density.sum()
    x = corrupted.mean + standard @ np.linalg.cholesky(corrupted.covariance).T
    for slope in (np.array([0.3, -0.2]), np.array([4.0, 9.0]), np.array([-0.4, 26.0])):
        z = x @ slope
        assert corrupted.mean_of(entropy, slope) == pytest.approx(density @ entropy(z), rel=1e-6)
        along = (density * entropy_derivative(z)) @ x
        np.testing.assert_allclose(corrupted.mean_along(entropy_derivative, slope), along, rtol=1e-6, atol=1e-9)


def test_a_step_is_that_of_torch_on_both_classes() -> None:
    """Batch norm, a linear layer and autograd on points of both classes, against the sums over one class."""
    clean, corrupted = sampled_classes(NOISE[1], 3200, Seed(1))
    weights, scales = train_source(clean)
    x = torch.tensor(np.concatenate([corrupted.x, -corrupted.x]) * [3.0, 0.2])  # batch norm takes the factors out
    gamma = torch.tensor(scales, requires_grad=True)
    for _ in range(2):
        z = functional.batch_norm(x, None, None, gamma, training=True, eps=1e-30) @ torch.tensor(weights)
        both = torch.stack([z, torch.zeros_like(z)], dim=1)
        functional.softmax(both, dim=1).mul(functional.log_softmax(both, dim=1)).sum(dim=1).neg().mean().backward()
        gamma = (gamma - 0.01 * gamma.grad).detach().requires_grad_()  # type: ignore[operator]
    by_sums = minimize_entropy(1, samples=3200, seed=Seed(1), steps=2, record_every=1)["scales"].iloc[-1]
    assert by_sums == pytest.approx(float(gamma.detach().norm()), rel=1e-9)


def test_samples_are_symmetric_and_scaled() -> None:
    clean, corrupted = sampled_classes(NOISE[1], 1600, Seed(0))
    for cloud in (clean, corrupted):
        assert cloud.x.shape == (800, 2)
        np.testing.assert_allclose((cloud.x**2).mean(axis=0), 1)
    weights, scales = train_source(clean)
    assert scales[0] == pytest.approx(scales[1])  # the signal lies on the diagonal, and nothing pulls it off
    assert abs(weights[0]) == pytest.approx(abs(weights[1]))


def test_the_noise_lies_nearly_across_the_signal() -> None:
    signal = np.array([1.0, 0.0]) @ rotation(-math.pi / 9)
    noise = np.array([0.0, 1.0]) @ rotation(-math.pi / 6)
    assert math.degrees(math.acos(abs(signal @ noise))) == pytest.approx(80)


def test_the_script_writes_figure_and_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(tmp_path / "fig.svg", samples=1600, seed=3, steps=30, seeds=2, scores=tmp_path / "scores.csv")
    assert capsys.readouterr().out.count("condition 2: accuracy 0.") == 2
    table = pd.read_csv(tmp_path / "fig.csv")
    assert table.groupby("condition")["step"].max().tolist() == [30, 30], "of the first draw"
    assert (tmp_path / "fig.svg").read_text().startswith("<svg")
    scores = pd.read_csv(tmp_path / "scores.csv").set_index(["method", "seed", "metric"])["value"]
    assert scores.index.get_level_values("seed").unique().tolist() == [3, 4]
    own = minimize_entropy(2, samples=1600, seed=Seed(4), steps=30, record_every=1)
    for metric, value in (
        ("accuracy at the start", own["accuracy"].iloc[0]),
        ("highest accuracy", own["accuracy"].max()),
        ("accuracy at the end", own["accuracy"].iloc[-1]),
        ("scale at the end", own["scales"].iloc[-1]),
    ):
        assert scores["condition 2", 4, metric] == pytest.approx(value)


def test_scores_do_not_replace_the_numbers_of_the_picture(tmp_path: Path) -> None:
    with pytest.raises(typer.BadParameter, match="name another one"):
        main(tmp_path / "fig.svg", samples=1600, seed=0, steps=3, scores=tmp_path / "fig.csv")


def test_too_few_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="samples=10: must be 16 or greater"):
        minimize_entropy(1, samples=10)
