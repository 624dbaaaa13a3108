"""Copies of a row stay together, so that a model is not tested on rows that it was trained on."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

from driftline.auditing.copies import copy_keys
from driftline.auditing.data import summarize
from driftline.auditing.frame import read_frame
from driftline.auditing.matrix import split_halves
from driftline.auditing.metric import CLASS_METRICS
from driftline.auditing.shift import domain_classifier
from driftline.auditing.table import AuditTable, Limits, prepare

SIZE, PERIODS = 80, 5


def audited(frame: pd.DataFrame) -> AuditTable:
    return prepare(read_frame(frame, time="when", target="y"), "logistic-regression", f"{SIZE} rows", 0, 0, Limits(), 2)


def repeated(seed: int = 0) -> pd.DataFrame:
    """Each row comes four times within its period, at other times."""
    random = np.random.default_rng(seed)
    parts = []
    for k in range(PERIODS):
        part = pd.DataFrame({"x": random.normal(size=SIZE // 4), "y": random.choice(["no", "yes"], SIZE // 4)})
        part = part.iloc[random.permutation(np.repeat(np.arange(SIZE // 4), 4))]
        parts.append(part.assign(when=pd.date_range(f"2024-0{k + 1}", periods=SIZE, freq="h")))
    return pd.concat(parts, ignore_index=True)


def test_no_row_trains_one_half_and_tests_it() -> None:
    frame = repeated()
    halves = split_halves(audited(frame))
    for half, t in product((0, 1), range(len(halves.names))):
        trained = set(frame["x"].iloc[halves.training[half][t].x])
        tested = set(frame["x"].iloc[halves.tested[half].x[halves.periods[half] == t]])
        assert trained
        assert tested
        assert not trained & tested


def test_both_halves_have_rows_where_nearly_all_are_copies_of_one() -> None:
    frame = repeated().assign(x=1.0, y="yes")
    frame.loc[::16, ["x", "y"]] = [2.0, "no"]
    halves = split_halves(audited(frame))
    assert {len(rows) for half in halves.training for rows in half} == {SIZE // 2}


@pytest.mark.parametrize("change", ["other features", "other targets"])
def test_rows_that_are_alike_by_chance_are_no_copies(change: str) -> None:
    frame, random = repeated(), np.random.default_rng(1)
    assert copy_keys(read_frame(frame, time="when", target="y")) is not None
    column, values = (
        ("x", random.normal(size=len(frame))) if "features" in change else ("y", random.permutation(frame.y))
    )
    assert copy_keys(read_frame(frame.assign(**{column: values}), time="when", target="y")) is None


def test_periods_of_one_class_are_named() -> None:
    frame = repeated()
    frame.loc[SIZE : 2 * SIZE - 1, "y"] = "no"
    table = audited(frame)
    warnings = " ".join(summarize(table, (CLASS_METRICS["auc"],), True, None).warnings)
    assert f"1 of {PERIODS} periods has rows of one class only, such as period 2: a model" in warnings


def test_copies_do_not_help_to_tell_periods_apart() -> None:
    table = audited(repeated())
    aucs = [domain_classifier(table, k).auc for k in range(1, PERIODS)]
    assert np.mean([auc.value for auc in aucs]) == pytest.approx(0.5, abs=0.12), "a copy in both halves gives 0.9"
    assert min(auc.high - auc.low for auc in aucs) > 0.4, "20 rows against 20, not 80 against 80: 0.26"


def test_a_period_that_repeats_another_is_not_told_apart_from_it() -> None:
    part = pd.DataFrame({"x": np.random.default_rng(0).normal(size=SIZE), "y": ["no", "yes"] * (SIZE // 2)})
    frame = pd.concat([part] * PERIODS, ignore_index=True)
    found = domain_classifier(audited(frame.assign(when=pd.date_range("2024", periods=len(frame), freq="h"))), 1)
    assert found.auc.low < 0.5 < found.auc.high


def test_features_of_few_values_are_compared_by_their_shares() -> None:
    """Nearly all of their rows are copies; they are no reason to leave a half of them empty."""
    kind = np.repeat([0, 1], SIZE * PERIODS)[::2]
    frame = pd.DataFrame({"x": kind, "y": np.where(kind, "yes", "no")})
    frame["when"] = pd.date_range("2024", periods=len(frame), freq="h")
    table = audited(frame)
    assert table.copy_keys is not None
    same, other = (domain_classifier(table, k).auc for k in (1, PERIODS - 1))
    assert same.low < 0.5 < same.high
    assert other.low == 1


def test_new_classes_are_named() -> None:
    frame = repeated()
    frame.loc[4 * SIZE :, "y"] = np.where(frame["x"][4 * SIZE :] > 0, "maybe", frame["y"][4 * SIZE :])
    warnings = " ".join(summarize(audited(frame), (CLASS_METRICS["accuracy"],), True, None).warnings)
    assert "class 'maybe' first occurs in period 5: no model trained before can answer it" in warnings
    assert "class 'yes'" not in warnings
