from __future__ import annotations

from pathlib import Path

import pytest

from driftline.cli.printing import runs
from driftline.engine.executors.base import RunSummary
from driftline.engine.stages import Stage, StreamRun
from driftline.record.run import Record
from driftline.store.store import Store

from ..engine.stand_ins import job


def stages(n: int) -> list[Stage]:
    return [StreamRun(f"k{k}", job(f"m{k}")) for k in range(n)]


def test_what_failed_is_named_once_per_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    how = RunSummary(failed={"k0": "odd", "k2": "even", "k1": "odd"}, failed_candidates={"k3": "RuntimeError: no"})
    store = Store.create(tmp_path / "my runs")
    for key in ("k2", "k3"):
        store.fail(key, {"label": key, "seed": 0}, "even", "Traceback ...")
    runs.print_failures(how, stages(4), store)
    assert capsys.readouterr().err.splitlines() == [
        "failed: m0 seed 0, m1 seed 0: odd",
        "failed: m2 seed 0: even",
        "failed search run: m3 seed 0: RuntimeError: no",
        f"see its traceback: driftline show k2 --runs '{tmp_path}/my runs'",
    ]


def test_no_report_is_proposed_where_no_run_has_finished(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store.create(tmp_path)
    runs.print_summary(Record([]), store, RunSummary(failed={"k0": "odd"}))
    assert capsys.readouterr().out == "0 stage(s) computed, 0 reused, 1 failed\n"


def test_a_line_names_the_first_few(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs.print_failures(RunSummary(failed={f"k{k}": "odd" for k in range(7)}), stages(7), Store(tmp_path))
    output = capsys.readouterr().err
    assert "m4 seed 0 and 2 more: odd" in output
    assert "m5" not in output


def test_counts_tell_of_every_end_that_stages_came_to() -> None:
    one, two, three, *_ = stages(5)
    how = RunSummary([one], [two, three], {}, {"k0": ["its worker was lost"]}, {"k1": "odd"}, [two])
    assert runs.count_text(how) == (
        "1 stage(s) computed, 2 reused, 0 failed, 1 search run(s) skipped because the winner was certain without them, "
        "1 search run(s) failed, 1 tried again because a worker was lost"
    )
