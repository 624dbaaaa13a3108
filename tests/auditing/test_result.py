"""audit.json has the documented layout, and unknown numbers are null in it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import driftline
from driftline.auditing import AuditResult
from driftline.auditing.estimate import Estimate
from driftline.auditing.examples import table
from driftline.auditing.result import _plain

pytestmark = pytest.mark.xdist_group("audit-result")  # what all its tests use is made once

QUICK: dict[str, Any] = {"time": "when", "target": "y", "period": "100 rows"}


@pytest.fixture(scope="module", params=["model", "log"])
def result(request: pytest.FixtureRequest) -> AuditResult:
    if request.param == "model":
        return driftline.audit(table(rows=400), model="logistic-regression", **QUICK)
    return driftline.audit(table(rows=400).assign(logged="yes")[["when", "y", "logged"]], prediction="logged", **QUICK)


def test_every_key_is_documented(result: AuditResult) -> None:
    document = (Path(__file__).parents[2] / "docs" / "audit.md").read_text(encoding="utf-8")
    rows = document.split("## audit.json")[1].split("## A worked example")[0]
    layout = result.to_dict()
    parts = [layout, *(layout[key] or {} for key in ("matrix", "horizons", "log", "policies", "shift", "label_shift"))]
    assert [key for part in parts for key in part if f"`{key}`" not in rows] == []


def test_the_layout_is_that_of_the_result(result: AuditResult, tmp_path: Path) -> None:
    result.write(json=tmp_path / "audit.json")
    layout = json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))
    assert layout["format"] == 2
    assert layout["gate_values"] == result.gate_values
    source = layout["log"] or layout["sizes"][0]
    assert source["first_own"]["value"] == result.gate_values["first_own"]
    assert source["metric"]["name"] == result.metric.name == layout["data"]["metrics"][0]
    assert layout["answers"] == {answer.question: answer.text for answer in result.answers}
    assert (layout["policies"] is None) == (result.policies is None) == (layout["data"]["prediction"] == "logged")


def test_unknown_numbers_are_null() -> None:
    estimate = Estimate(0.5, math.nan, math.inf, 3, "answers")
    assert _plain(estimate) == {"value": 0.5, "low": None, "high": None, "n": 3, "unit": "answers"}
    assert _plain({"a": (np.array([[1.0, np.nan]]), True)}) == {"a": [[[1.0, None]], True]}


def test_a_notebook_shows_the_answers(result: AuditResult) -> None:
    shown = result._repr_html_()
    assert result.headline in shown
    assert all(answer.question in shown for answer in result.answers)
