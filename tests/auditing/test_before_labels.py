"""One small audit with rows whose labels are missing: segments, estimates and calibration in result, JSON and page."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import driftline
from driftline.auditing import AuditResult

ROWS, NEW = 900, 60


@pytest.fixture(scope="module")
def found() -> AuditResult:
    random = np.random.default_rng(0)
    x, color = random.normal(size=(ROWS + NEW, 2)), random.choice(["red", "<b>"], ROWS + NEW)
    y = np.where(random.random(ROWS + NEW) < 1 / (1 + np.exp(-2 * x[:, 0])), "yes", "no").astype(object)
    y[ROWS:] = None
    frame = pd.DataFrame({"when": np.arange(ROWS + NEW), "a": x[:, 0], "b": x[:, 1], "color": color, "y": y})
    return driftline.audit(frame, time="when", target="y", model="logistic-regression", period="150 rows", quick=True)


def test_nothing_is_claimed_without_drift(found: AuditResult) -> None:
    assert found.slices is not None
    assert {(s.feature, s.values) for s in found.slices.segments} >= {("color", "red"), ("color", "<b>")}
    assert not found.slices.decaying
    assert found.calibration is not None
    assert found.calibration.of == "'yes'"
    assert not found.calibration.off
    questions = [answer.question for answer in found.answers]
    assert questions[-2:] == ["Which segments decay?", "How good is it before labels come?"]


def test_rows_without_a_target_are_estimated(found: AuditResult) -> None:
    quality = found.estimated_quality
    assert quality is not None
    (newest,) = quality.newest
    assert newest.n == NEW
    assert newest.real is None
    assert newest.estimated == pytest.approx(0.77, abs=0.08)
    assert [p.period for p in quality.periods] == list(found.data.periods[-len(quality.periods) :])
    assert quality.missed is None


def test_json_and_page_have_them(found: AuditResult) -> None:
    numbers = found.to_dict()
    assert len(numbers["slices"]["segments"]) == len(found.slices.segments)  # type: ignore[union-attr]
    assert numbers["estimated_quality"]["newest"][0]["real"] is None
    assert {"intercept", "slope", "error", "p"} <= set(numbers["calibration"]["periods"][0])
    page = found.html()
    for anchor in ("segments", "before-labels"):
        assert f'id="{anchor}"' in page
    fold = page.partition('id="segments"')[2].partition("</details>")[0]
    assert "&lt;b&gt;" in fold
    assert "<b>" not in fold
    assert fold.count("<tr>") == 1 + len(found.slices.segments)  # type: ignore[union-attr]
