"""Logged probabilities: which class a column is of, what is refused, and metrics and calibration of a log."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss, roc_auc_score

import driftline
from driftline.auditing.logged_probability import parse_probabilities, split_names
from driftline.errors import UserError

TWO, THREE = np.array(["no", "yes"]), np.array(["a", "b", "c"])


def test_one_column_of_two_classes() -> None:
    table = pd.DataFrame({"p": [0.9, 0.2], "p=q": [0.1, 0.8]})
    assert split_names(["p=q", "p=no"], list(table.columns)) == [("p=q", None), ("p", "no")]
    for name, predicted, first in (("no", None, 0.9), ("yes", None, 0.1), (None, None, 0.1), (None, [0, 1], 0.9)):
        answers = None if predicted is None else np.array(predicted)
        shares, notes = parse_probabilities(table, [("p", name)], TWO, answers)
        assert shares[0, 0] == pytest.approx(first)
        assert notes == [f"'p' is read as the probability of '{'no' if first == 0.9 else 'yes'}'"]


def test_one_column_per_class() -> None:
    table = pd.DataFrame({"p_b": [0.2], "p_a": [0.5], "third": [0.3]})
    shares, _ = parse_probabilities(table, [("p_b", None), ("p_a", None), ("third", "c")], THREE, None)
    assert shares.tolist() == [[0.5, 0.2, 0.3]]


@pytest.mark.parametrize(
    ("given", "labels", "reason"),
    [
        ([("p", None)], None, "the target is a number"),
        ([("p", "maybe")], TWO, "names the class 'maybe', and the target holds no, yes"),
        ([("high", None)], TWO, "2 values that are not numbers from 0 to 1, such as '1.7'"),
        ([("word", None)], TWO, "such as 'low'"),
        ([("p", None)], THREE, "the class of the probability 'p' is not known"),
        ([("p", "a"), ("q", "b")], THREE, "classes without one: 'c'"),
        ([("p", "a"), ("q", "b"), ("q", "c")], THREE, "sum to 1"),
    ],
)
def test_what_cannot_be_used(given: list[tuple[str, str | None]], labels: np.ndarray | None, reason: str) -> None:
    table = pd.DataFrame({"p": [0.9, 0.9], "q": [0.5, 0.5], "high": [1.7, np.nan], "word": ["low", "0.5"]})
    with pytest.raises(UserError, match=reason):
        parse_probabilities(table, given, labels, None)


def test_a_log_with_probabilities_has_their_metrics_and_calibration() -> None:
    random = np.random.default_rng(0)
    n = 800
    p = random.random(n)
    y = np.where(random.random(n) < p, "yes", "no")
    frame = pd.DataFrame({"when": np.arange(n), "p": p, "y": y})
    result = driftline.audit(
        frame, time="when", target="y", probability="p", period="100 rows", metric=["auc", "log-loss"]
    )
    assert result.log is not None
    assert result.log.first_own.value == pytest.approx(roc_auc_score(y[:100] == "yes", p[:100]))
    assert result.log.by_period[3].value == pytest.approx(roc_auc_score(y[300:400] == "yes", p[300:400]))
    assert result.calibration is not None
    assert len(result.calibration.periods) == 8
    assert not result.calibration.off
    loss = driftline.audit(
        frame, time="when", target="y", probability=["p=yes"], period="100 rows", metric="log-loss"
    ).log
    assert loss is not None
    assert loss.first_own.value == pytest.approx(log_loss(y[:100] == "yes", np.clip(p[:100], 0.001, 0.999)))
    with pytest.raises(UserError, match="not both"):
        driftline.audit(frame, time="when", target="y", probability="p", model="logistic-regression")
    with pytest.raises(UserError, match="column of the frame 'q'"):
        driftline.audit(frame, time="when", target="y", probability="q")
