"""Scores of strangeness against brute force, against the clock, and on NED's published label sequences."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftline.errors import UserError
from driftline.metrics import novelty as u
from driftline.metrics.openworld import cross_sections, mean_class, overall

FLAGS = np.array([0, 1, 0, 0, 1, 0, 0, 0], bool)
SCORE = np.array([0.1, 0.7, 0.2, 0.6, 0.4, 0.5, 0.1, 0.3])
Rows = list[tuple[int, bool]]
streams = st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=30)


def test_the_worked_example() -> None:
    assert u.unseen_auroc(SCORE, FLAGS) == pytest.approx(10 / 12)
    assert u.unseen_auroc(-SCORE, FLAGS) == pytest.approx(2 / 12)  # the printed rule, sign reversed
    assert u.best_f1(SCORE, FLAGS).value == pytest.approx(2 / 3)
    clock = u.time_baseline(FLAGS)
    assert clock.auroc == pytest.approx(8 / 12)
    assert u.time_matched_auroc(u.time_score(8), FLAGS) == 0.5
    # t = 2 meets one on each side (.1 and .2), t = 5 three (.1, .2, .6 before; .5, .1, .3 after)
    assert u.time_matched_auroc(SCORE, FLAGS) == pytest.approx((1 + 4 / 6) / 2)
    assert u.time_matched_auroc(SCORE, FLAGS, n_neighbors=1) == pytest.approx((1 + 0) / 2)


def test_two_thresholds_of_equal_f1() -> None:
    curve = {at: 2 * (FLAGS & (at <= SCORE)).sum() / ((at <= SCORE).sum() + FLAGS.sum()) for at in SCORE.tolist()}
    assert curve[0.7] == pytest.approx(curve[0.4]) == max(curve.values())
    assert u.best_f1(SCORE, FLAGS) == (pytest.approx(2 / 3), 0.7, 1)


def test_nobody_or_everybody_is_unseen() -> None:
    for flags in ([0, 0], [1, 1]):
        assert np.isnan(u.unseen_auroc([1, 2], flags))
        assert np.isnan(u.time_matched_auroc([1, 2], flags))
    assert np.isnan(u.best_f1([1, 2], [0, 0]).value)
    assert u.best_f1([1, 2], [1, 1]) == (1.0, 1.0, 2)
    assert np.isnan(u.resample_best_f1([1, 2], [0, 0], 3, np.random.default_rng(0))).all()
    with pytest.raises(UserError, match="leave out"):
        u.unseen_auroc([np.nan, 1], [0, 1])
    with pytest.raises(UserError, match="one score and one flag"):
        u.best_f1([1], [0, 1])


def beats(one: float, other: float) -> float:
    return 1.0 if one > other else 0.5 if one == other else 0.0


def columns(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    score, flags = zip(*rows, strict=True)
    return np.array(score, float), np.array(flags, bool)


@given(streams)
def test_auroc_is_the_share_of_pairs(rows: Rows) -> None:
    score, flags = columns(rows)
    pairs = [beats(a, b) for a in score[flags] for b in score[~flags]]
    expected = np.mean(pairs) if pairs else np.nan
    assert u.unseen_auroc(score, flags) == pytest.approx(expected, nan_ok=True)
    assert u.unseen_auroc(np.exp(score) - 3, flags) == pytest.approx(expected, nan_ok=True)
    assert u.unseen_auroc(-score, flags) == pytest.approx(1 - expected, nan_ok=True)
    curve = u.roc(score, flags)
    if pairs:
        assert np.trapezoid(curve.true, curve.false) == pytest.approx(expected)
        assert (curve.false[-1], curve.true[-1]) == (1, 1)


@given(streams, st.integers(1, 4))
def test_matched_auroc_step_by_step(rows: Rows, n_neighbors: int) -> None:
    score, flags = columns(rows)
    shares = []
    for t in np.flatnonzero(flags):
        earlier = [score[k] for k in range(t - 1, -1, -1) if not flags[k]]
        later = [score[k] for k in range(t + 1, len(score)) if not flags[k]]
        reach = min(n_neighbors, len(earlier), len(later))
        if reach:
            shares.append(np.mean([beats(score[t], other) for other in earlier[:reach] + later[:reach]]))
    expected = np.mean(shares) if shares else np.nan
    assert u.time_matched_auroc(score, flags, n_neighbors) == pytest.approx(expected, nan_ok=True)
    assert u.time_matched_auroc(score[::-1], flags[::-1], n_neighbors) == pytest.approx(expected, nan_ok=True)
    for drifting in (u.time_score(len(score)), np.arange(len(score)) ** 3):
        assert u.time_matched_auroc(drifting, flags, n_neighbors) in (0.5, pytest.approx(np.nan, nan_ok=True))


@given(streams)
def test_best_f1_of_all_thresholds(rows: Rows) -> None:
    score, flags = columns(rows)
    every = [2 * (flags & (score >= at)).sum() / ((score >= at).sum() + flags.sum()) for at in score]
    found = u.best_f1(score, flags)
    if not flags.any():
        assert np.isnan(found.value)
        return
    assert found.value == pytest.approx(max(every))
    assert found.flagged == (score >= found.threshold).sum()
    drawn = u.resample_best_f1(score, flags, 20, np.random.default_rng(0))
    assert ((drawn > 0) & (drawn <= 1)).all()


def test_f1_of_classes_drawn_anew() -> None:
    """Of two positives, .9 above and .1 below the only negative, two are drawn anew."""
    drawn = u.resample_best_f1([0.9, 0.5, 0.1], [1, 0, 1], 400, np.random.default_rng(1))
    # both: max(2/3, 4/5); the first twice: 1; the second twice: 2*2 / (2 + 1 + 2)
    assert sorted(set(drawn.round(6))) == [0.8, 1.0]
    assert (drawn == 1).mean() == pytest.approx(0.25, abs=0.07)


def test_curves_by_threshold() -> None:
    found = u.threshold_curves([1, 2, 3, 4], [0, 0, 1, 0], thresholds=[0, 2, 3.5, 9])
    assert found.seen.tolist() == pytest.approx([0, 1 / 3, 2 / 3, 1])
    assert found.unseen.tolist() == [1, 1, 0, 0]
    usual = u.threshold_curves([1, 2, np.inf], [0, 1, 0])
    assert (usual.threshold[0], usual.threshold[-1], len(usual.threshold)) == (1, 2, 101)


def test_a_score_that_drifts_is_rewarded_unless_matched() -> None:
    """A detector that sees nothing, on top of a trend: pooled .98, matched .5; the other way round .02 and .5."""
    rng = np.random.default_rng(0)
    flags = np.zeros(5000, bool)
    flags[rng.choice(250, 100, replace=False)] = True
    noise = rng.normal(size=5000)
    for sign, pooled in ((-1, 0.98), (1, 0.02)):
        score = noise + sign * np.arange(5000) / 50
        assert u.unseen_auroc(score, flags) == pytest.approx(pooled, abs=0.015)
        assert u.time_matched_auroc(score, flags) == pytest.approx(0.5, abs=0.08)


@pytest.fixture(scope="module")
def sequences() -> dict[str, np.ndarray]:
    from driftline.data import data_folders

    for folder in data_folders():
        path = Path(folder) / "ned" / "label_sequences.npz"
        if path.exists():
            with np.load(path, allow_pickle=False) as file:
                return {name: file[name] for name in file.files}
    pytest.skip("ned/label_sequences.npz is not in $DRIFTLINE_DATA or the cache folder")


PUBLISHED = {"S3": (90133, 0.9839), "S4": (86988, 0.9831), "S5": (89921, 0.9835)}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_clock_on_published_sequences(sequences: dict[str, np.ndarray], name: str) -> None:
    length, auroc = PUBLISHED[name]
    labels, novel = sequences[f"{name}_labels"], sequences[f"{name}_novel"]
    flags = u.unseen_flags(labels, np.flatnonzero(~novel))
    assert (len(labels), flags.sum()) == (length, 750)
    clock = u.time_baseline(flags)
    assert clock.auroc == pytest.approx(auroc, abs=5e-5)
    page = (Path(__file__).parents[2] / "docs" / "open-world.md").read_text()
    output = re.findall(r"the clock has an AUROC of (\.\d+), (\.\d+) and (\.\d+)", page)[0]
    assert output[list(PUBLISHED).index(name)] == f"{clock.auroc:.3f}".removeprefix("0")
    assert u.time_matched_auroc(u.time_score(length), flags) == 0.5
    assert u.unseen_flags(labels).sum() == 1000
    if name == "S5":
        assert clock.f1.value == pytest.approx(0.43, abs=0.005)
        assert clock.f1.flagged == 901


def test_sections_of_a_published_sequence(sequences: dict[str, np.ndarray]) -> None:
    labels, novel = sequences["S5_labels"], sequences["S5_novel"]
    pretrain, right = np.flatnonzero(~novel), np.ones(len(labels))

    def sizes(at: str) -> list[int]:
        found = cross_sections(right, labels, pretrain, at_boundary=at)  # type: ignore[arg-type]
        return [len(found[name].classes) for name in ("novel-head", "pretrain-head", "novel-tail", "pretrain-tail")]

    assert sizes("neither") == [357, 108, 385, 140]
    assert sum(sizes("tail")) == sum(sizes("head")) == 1000
    assert sizes("tail")[:2] == [357, 108]
    assert sizes("head")[2:] == [385, 140]
    first = ~u.unseen_flags(labels, pretrain)  # right in all but first samples
    assert overall(first) == pytest.approx(0.9917, abs=5e-5)
    assert mean_class(right, labels) == 1
