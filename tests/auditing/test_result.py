"""audit.json has the documented layout, and unknown numbers are null in it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

import driftline
from driftline.auditing import AuditResult, gate
from driftline.auditing.estimate import Estimate
from driftline.auditing.examples import table
from driftline.auditing.result import _plain
from driftline.auditing.schema import audit_schema
from driftline.cli.main import app

pytestmark = pytest.mark.xdist_group("audit-result")  # what all its tests use is made once

QUICK: dict[str, Any] = {"time": "when", "target": "y", "period": "100 rows"}


@pytest.fixture(scope="module", params=["model", "log"])
def result(request: pytest.FixtureRequest) -> AuditResult:
    if request.param == "model":
        return driftline.audit(table(rows=400), model="logistic-regression", **QUICK)
    return driftline.audit(
        table(rows=400).assign(logged="yes")[["when", "y", "logged"]], predictions="logged", **{**QUICK, "model": None}
    )


def test_every_key_is_documented(result: AuditResult) -> None:
    document = (Path(__file__).parents[2] / "docs" / "audit.md").read_text(encoding="utf-8")
    rows = document.split("## audit.json")[1].split("## A worked example")[0]
    layout = result.to_dict()
    parts = [layout, *(layout[key] or {} for key in ("matrix", "horizons", "log", "policies", "shift", "label_shift"))]
    assert [key for part in parts for key in part if f"`{key}`" not in rows] == []


def test_every_number_can_be_named_in_a_gate(result: AuditResult) -> None:
    assert result.gate_values
    assert set(result.gate_values) <= gate.NAMES


def test_the_layout_is_that_of_the_result(result: AuditResult, tmp_path: Path) -> None:
    result.write(json=tmp_path / "audit.json")
    layout = json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))
    assert layout["format"] == 3
    assert layout["gate_values"] == result.gate_values
    source = layout["log"] or layout["sizes"][0]
    assert source["first_own"]["value"] == result.gate_values["first_own"]
    assert source["metric"]["name"] == result.metric.name == layout["data"]["metrics"][0]
    assert layout["answers"] == {answer.question: answer.text for answer in result.answers}
    assert (layout["policies"] is None) == (result.policies is None) == (layout["data"]["prediction"] == "logged")


def test_a_result_fits_the_schema_and_a_wrong_one_does_not(result: AuditResult) -> None:
    validator = Draft202012Validator(audit_schema())
    layout = json.loads(json.dumps(result.to_dict()))
    assert list(validator.iter_errors(layout)) == []
    extra, missing, text = {**layout, "more": 1}, dict(layout), {**layout, "data": {**layout["data"], "rows": "400"}}
    del missing["summary"]
    assert not any(map(validator.is_valid, (extra, missing, text)))


def test_the_command_prints_the_schema() -> None:
    printed = json.loads(CliRunner().invoke(app, ["audit", "--schema"]).stdout)
    assert printed == json.loads(json.dumps(audit_schema()))
    assert printed["$defs"]["Estimate"]["description"].startswith("A value with its 95 % interval")
    histogram = printed["$defs"]["Histogram"]["properties"]["missing_then"]
    assert histogram == {"type": ["number", "null"], "description": "Share of rows without a value."}


def test_unknown_numbers_are_null() -> None:
    estimate = Estimate(0.5, math.nan, math.inf, 3, "answers")
    assert _plain(estimate) == {"value": 0.5, "low": None, "high": None, "n": 3, "unit": "answers"}
    assert _plain({"a": (np.array([[1.0, np.nan]]), True)}) == {"a": [[[1.0, None]], True]}


def test_a_notebook_shows_verdict_and_chart_without_a_script(result: AuditResult) -> None:
    shown = result._repr_html_()
    assert f'<p class="word">{result.summary.word}</p>' in shown
    assert all(f"<dt>{row.label}</dt>" in shown for row in result.summary.rows)
    assert shown.count("<svg") == 1
    assert "<script" not in shown
    assert "http" not in shown.replace("http://www.w3.org/", "")


def test_the_terminal_shows_the_verdict_first_and_then_numbers(result: AuditResult) -> None:
    lines = str(result).splitlines()
    assert lines[0] == result.summary.word
    assert lines[1] == " ".join(result.summary.sentences)
    assert [line.split("  ")[0] for line in lines[3:7]] == [row.label for row in result.summary.rows]
    labels = [line.split("  ")[0] for line in lines[8:]]
    assert ("TAS" in labels) == ("Policies" in labels) == (result.policies is not None)
    assert len(lines) <= 24
