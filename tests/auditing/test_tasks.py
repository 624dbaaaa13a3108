"""Tasks of an audit: kept results are the computed ones, a killed audit goes on, any number of workers agrees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import driftline
from driftline.auditing import AuditResult, tasks
from driftline.auditing.estimate import Estimate
from driftline.auditing.examples import table
from driftline.auditing.options import AuditOptions
from driftline.auditing.shift import DomainClassifier
from driftline.errors import UserError
from driftline.io import serialization
from driftline.types import Answers

OPTIONS: dict[str, Any] = {"time": "when", "target": "y", "period": "100 rows", "model": "logistic-regression"}
FRAME = table("concept", rows=400)


class Killed(BaseException):
    """Ends an audit as a signal does."""


def numbers(result: AuditResult) -> dict[str, Any]:
    return {**result.to_dict(), "provenance": None}


@pytest.fixture(scope="module")
def whole() -> dict[str, Any]:
    return numbers(driftline.audit(FRAME, **OPTIONS))


def test_a_killed_audit_goes_on_where_it_stopped(whole: dict[str, Any], tmp_path: Path) -> None:
    def killed_at(limit: float, output: list[tuple[str, int, int]]) -> Any:
        def on_progress(*event: Any) -> None:
            output.append(event)
            if event[1] >= limit:
                raise Killed

        return on_progress

    runs, events = str(tmp_path / "kept"), [list[tuple[str, int, int]]() for _ in range(4)]
    with pytest.raises(Killed):
        driftline.audit(FRAME, **OPTIONS, runs=runs, on_progress=killed_at(9, events[0]))
    again = driftline.audit(FRAME, **OPTIONS, runs=runs, on_progress=killed_at(np.inf, events[1]))
    assert numbers(again) == whole
    _, (first, done, _), *computed = events[1]
    assert (first, done) == ("9 tasks were done by an earlier audit", 9)
    assert len(computed) == events[1][-1][2] - 9, "and only the others are computed"
    driftline.audit(FRAME, **OPTIONS, runs=runs, on_progress=killed_at(np.inf, events[2]))
    assert all(event[0].endswith("by an earlier audit") for event in events[2][1:])
    other = driftline.audit(FRAME, **{**OPTIONS, "seed": 1}, runs=runs, on_progress=killed_at(np.inf, events[3]))
    assert numbers(other) != whole, "another seed is another audit"


def test_damaged_results_are_computed_again(whole: dict[str, Any], tmp_path: Path) -> None:
    driftline.audit(FRAME, **OPTIONS, runs=str(tmp_path))
    for path in (tmp_path / "stages").glob("*"):
        path.write_bytes(path.read_bytes()[:-1])
    assert numbers(driftline.audit(FRAME, **OPTIONS, runs=str(tmp_path), jobs=2)) == whole, "and two workers agree"


def test_the_cache_is_empty_once_an_audit_has_ended(
    whole: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "WORTH_KEEPING", 0.0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    stages, written = tmp_path / "driftline/audits/stages", []

    def on_progress(description: str, done: int, total: int) -> None:
        written.append(len(list(stages.glob("*"))))

    assert numbers(driftline.audit(FRAME, **OPTIONS, on_progress=on_progress)) == whole
    assert max(written) > 5
    assert not list(stages.glob("*"))


def test_a_quick_audit_says_what_it_leaves_out(whole: dict[str, Any]) -> None:
    found = driftline.audit(FRAME, **OPTIONS, quick=True)
    assert found.detectors == ()
    assert found.policies is not None
    assert not [row.policy for row in found.policies.results if row.policy.startswith("on-")]
    assert "quick audit of at most 400 rows per period" in str(found.skipped)
    assert found.gate_values["tas"] == whole["gate_values"]["tas"], "a table of few rows is used as a whole"
    assert found.shift is not None
    assert list(found.shift.periods) == [found.data.periods[-1]], "all inputs together, in the last period only"
    assert AuditOptions(time="t", target="y", quick=True, rows=100).limits == (100, 600, 300)


def test_results_survive_the_store_bit_for_bit(tmp_path: Path) -> None:
    given = {
        3: Answers(np.array([1, 0]), np.array([[0.1, 0.9], [1.0, 0.0]], np.float32)),
        "classifier": DomainClassifier(Estimate(0.5, 0.4, 0.6), pd.Series([1.5, 0.5], index=[7, 9]), 1.0),
        "dates": np.array(["2020-01-01", "NaT"], "datetime64[us]"),
        "rest": (1, None, [np.float64(0.25), "text"], np.array(["a", "bc"])),
    }
    serialization.save(tasks.encode(given), tmp_path / "t")
    back = tasks.decode(serialization.load(tmp_path / "t"))
    assert back[3].scores.tobytes() == given[3].scores.tobytes()  # type: ignore[union-attr]
    assert back[3].distance is None
    pd.testing.assert_series_equal(back["classifier"].weights, given["classifier"].weights)  # type: ignore[union-attr]
    assert back["classifier"].auc == given["classifier"].auc  # type: ignore[union-attr]
    np.testing.assert_array_equal(back["dates"], given["dates"])  # type: ignore[arg-type]
    assert back["rest"][:3] == (1, None, [0.25, "text"])
    with pytest.raises(UserError, match="result of the unknown class"):
        tasks.decode({"class": "subprocess:Popen", "fields": {"args": "true"}})


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"engine": "serial", "jobs": 2}, "leave out --jobs 2"),
        ({"engine": "cluster"}, "no engine 'cluster'"),
        ({"jobs": 0}, "--jobs 0"),
        ({"address": "auto", "engine": "local"}, "--address is for Ray"),
        ({"runs": "s3://bucket/x"}, "kept in a folder, not at a URL"),
    ],
)
def test_engines_and_stores_that_cannot_be_used(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        driftline.audit(FRAME, **OPTIONS, **wrong)
