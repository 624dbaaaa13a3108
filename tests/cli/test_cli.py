"""The command line as a user meets it: what is printed, and the exit code that a script sees."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest

from driftline.cli.main import main
from driftline.engine import pool
from driftline.store.store import Store

from ..engine.forked import ForkedWorker

Command = Callable[..., tuple[int, str, str]]
RUN = (
    "run",
    "timeline",
    "--data",
    "digits",
    "--model",
    "logistic-regression",
    "--methods",
    "erm",
    "--set",
    "data.periods=4",
    "--set",
    "timeline.resamples=20",
)


@pytest.fixture
def driftline(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    """Run a command in an empty folder; its exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def command(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["driftline", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        return int(end.value.code or 0), out, err

    return command


def test_run_then_everything_that_reads_runs(driftline: Command, tmp_path: Path) -> None:
    code, out, err = driftline(*RUN, "--seeds", "2")
    assert code == 0
    assert "[2/2] erm seed 1: finished" in err
    assert "2 stage(s) computed, 0 reused, 0 failed" in out
    assert "TAS" in out

    code, out, err = driftline(*RUN, "--seeds", "3")
    assert "1 stage(s) computed, 2 reused" in out

    code, out, _ = driftline("list", "runs")
    assert code == 0
    assert out.count("logistic-regression") == 3
    key = Store.open(tmp_path / "driftline-runs").record().runs[0].key

    code, out, _ = driftline("show", key[:6])
    assert code == 0
    card = json.loads(out[out.index("{\n") :])
    assert card["key"] == key
    assert card["metrics"]["tas"]["formula"].startswith("TAS(t) = min(1, mean_k A[t,t+k]")

    code, out, _ = driftline("query", "select count(*) as n, avg(correct) as a from probes where step = 0")
    assert code == 0
    assert pd.read_csv(StringIO(out))["n"].tolist() == [3 * (45 + 449 + 449 + 449)], (
        "held out, then all of what follows"
    )
    joined = "from scores join runs using (run) where metric = 'tas' and stat = 'mean'"
    code, out, _ = driftline("query", f"select method, count(*) as n {joined} group by all")
    assert out == "method,n\nerm,3\n"

    for form in ("md", "latex", "csv"):
        code, out, _ = driftline("table", "--format", form)
        assert code == 0
        assert "erm" in out
    code, out, _ = driftline("report", "-o", "r.html")
    assert code == 0
    assert "<html" in (tmp_path / "r.html").read_text()


def test_tables_of_pairs_and_of_ranks(driftline: Command) -> None:
    both = (*RUN, "--methods", "erm,erm-all", "--seeds", "2")
    driftline(*both)
    code, out, _ = driftline("table", "--compare", "--format", "csv")
    rows = pd.read_csv(StringIO(out))
    assert (code, set(rows["n"]), set(rows["unit"])) == (0, {2}, {"seeds"})
    code, _, err = driftline("table", "--ranks")
    assert code == 2
    assert "run in two settings or more" in err
    driftline(*both, "--set", "data.periods=5")
    code, out, _ = driftline("table", "--ranks", "--format", "csv")
    assert (code, set(pd.read_csv(StringIO(out))["n"])) == (0, {2})
    code, _, err = driftline("table", "--ranks", "--compare")
    assert code == 2
    assert "give one of them" in err


def test_a_run_is_called_by_its_method_and_seed(driftline: Command, tmp_path: Path) -> None:
    driftline(*RUN, "--seeds", "2")
    keys = {run.card.run.seed: run.key for run in Store.open(tmp_path / "driftline-runs").record().runs}
    code, out, _ = driftline("show", "erm:1")
    assert code == 0
    assert keys[1] in out
    assert keys[0] not in out
    code, out, _ = driftline("diff", "erm:0", "erm:1")
    assert code == 0
    assert out.index(keys[0]) < out.index(keys[1])
    code, _, err = driftline("show", "erm")
    assert code == 2
    assert "2 runs in driftline-runs can be called 'erm'" in err
    assert f"{keys[0][:12]} (erm:0 in timeline, digits, logistic-regression, made " in err
    assert keys[1][:12] in err
    code, _, err = driftline("show", "erm:2")
    assert code == 2
    assert "erm:0 in timeline" in err, "what there is, if it is not that"


@pytest.mark.parametrize(
    ("source", "message"),
    [("class:\n", "line 1, SyntaxError: "), ("x = 1\n1 / 0\n", "line 2, ZeroDivisionError: division by zero")],
)
def test_a_mistake_in_a_users_own_file_is_told_with_its_line(
    driftline: Command, tmp_path: Path, source: str, message: str
) -> None:
    (tmp_path / "mine.py").write_text(source)
    code, _, err = driftline("run", "timeline", "--data", "digits", "--methods", "mine.py:Mine")
    assert code == 2
    assert message in err


def test_help_keeps_what_stands_in_brackets(driftline: Command) -> None:
    code, out, _ = driftline("table", "--help")
    assert code == 0
    assert "$DRIFTLINE_RUNS, else ./driftline-runs]" in out
    assert "[default: all]" in out


def test_diff_says_why_two_numbers_differ(driftline: Command, tmp_path: Path) -> None:
    driftline(*RUN)
    driftline(*RUN, "--set", "timeline.holdout=0.2")
    first, second = (run.key for run in Store.open(tmp_path / "driftline-runs").record().runs)
    code, out, _ = driftline("diff", first, second)
    assert code == 0
    assert "run.options.holdout" in out
    assert "0.2" in out
    assert "fingerprint" not in out, "the same data are not a difference"
    code, out, _ = driftline("diff", first, first)
    assert "the cards are the same" in out


def test_print_spec_is_a_recipe_that_runs(driftline: Command, tmp_path: Path) -> None:
    code, out, _ = driftline(*RUN, "--print-spec")
    assert code == 0
    assert not (tmp_path / "driftline-runs").exists()
    (tmp_path / "recipe.yaml").write_text(out)
    code, again, _ = driftline("run", "recipe.yaml", "--print-spec")
    assert again == out
    assert driftline("run", "recipe.yaml", "--seeds", "1", "--quiet") == (0, "", "")


def test_a_command_announces_its_preparation_once(driftline: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    announced = []
    monkeypatch.setattr(
        "driftline.cli.commands.run.progress_message", lambda what, _: announced.append(what) or nullcontext()
    )
    assert driftline(*RUN, "--print-spec")[0] == 0
    assert announced == ["preparing timeline"]


def test_options_of_a_benchmark_are_flags(driftline: Command) -> None:
    code, out, _ = driftline(*RUN, "--period", "each", "--holdout=0.3", "--print-spec")
    assert code == 0
    assert "period: each" in out
    assert "holdout: 0.3" in out
    code, out, _ = driftline(*SEQUENCE, "--methods", "baseline", "--lr", "1e-3,1e-4", "--print-spec")
    assert code == 0
    assert "sizes: 100,60,60" in out
    assert "lr: 1e-3,1e-4" in out


SEQUENCE = ("run", "seq-to-final", "--data", "digits", "--shifts", "RL", "--sizes", "100,60,60", "--test", "100")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("run", "timelin", "--data", "digits", "--methods", "erm"),
            "no benchmark 'timelin'. Did you mean 'timeline'?",
        ),
        (("run", "timeline", "--data", "digits", "--methods", "ermm"), "no method 'ermm'. Did you mean 'erm'?"),
        (("run", "timeline", "--methods", "erm"), "needs --data"),
        ((*RUN, "--set", "erm.lr=1"), "erm.lr has no effect: logistic-regression is not trained by gradients"),
        ((*RUN[:-4], "--set", "timeline.period=fortnight"), "period 'fortnight' cannot cut"),
        (
            ("run", "timeline", "--data", "digits", "--model", "random-forest", "--methods", "ft"),
            "FineTune continues training, and RandomForest",
        ),
        (
            ("run", "timeline", "--data", "digits", "--model", "yearbook-cnn", "--methods", "ft"),
            "at least 16 x 16 pixels",
        ),
        (
            ("run", "timeline", "--data", "yearbook", "--data-dir", "nowhere", "--methods", "ft"),
            "dataset 'yearbook' not found",
        ),
        (("run", "none.yaml"), "cannot read none.yaml: No such file"),
        ((*RUN, "--print-spec", "--set", "erm.lrr=1"), "no setting 'lrr'. Did you mean 'lr'?"),
        ((*RUN, "--set", "reveal.delay=9"), "The label delay is 9 steps but the stream has only 4"),
        ((*RUN[:4], "--model", "sklearn.cluster.KMeans", "--methods", "erm"), "KMeans is not a classifier"),
        (
            ("run", "timeline", "--data", "digits", "--methods", "json:dumps"),
            "cannot import json: it is part of Python",
        ),
        ((*RUN, "--shifts", "CLR"), "no flag '--shifts'"),
        ((*RUN, "--perod", "month"), "no flag '--perod'. Did you mean '--period'?"),
        ((*RUN, "--holdout", "1.5"), "timeline: 'holdout' input should be less than 1; got 1.5"),
        ((*RUN, "--stream", "order.csv"), "stream=order.csv: the order of a timeline is that of the times in the data"),
        ((*RUN, "--method", "ft"), "Did you mean '--methods'?"),
        ((*RUN, "--period"), "--period needs a value"),
        ((*RUN, "stray"), "no flag 'stray'"),
        (
            ("run", "seq-to-final", "--data", "digits", "--methods", "lp-ft", "--shifts", "RX", "--sizes", "60,40,40"),
            "no shift 'X'",
        ),
        (
            ("run", "seq-to-final", "--data", "digits", "--methods", "lp-ft", "--sizes", "60,40"),
            "4 steps",
        ),
        (
            (*SEQUENCE, "--methods", "lp-ft", "--model", "mlp"),
            "needs a network of named blocks",
        ),
        ((*SEQUENCE, "--methods", "oracle", "--oracle", "0"), "leave it out"),
        (("show", "abc"), "no finished run"),
        (("query", " "), "there is no query"),
        (("run", "timeline", "--data", "digits", "--model", "mlp", "--methods", "ncm"), "timeline.upstream=1"),
        (("report",), "no finished run in driftline-runs"),
        (("list", "methds"), "no list 'methds'. Did you mean 'methods'?"),
        (("query", "selct 1"), "Tables: runs, failures, answers, probes, diagnostics, scores"),
    ],
)
def test_mistakes_are_answered_in_a_sentence(driftline: Command, arguments: tuple[str, ...], sentence: str) -> None:
    code, _, err = driftline(*arguments)
    assert code == 2
    assert sentence in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([], "expected"),
        (["2001,1,a"] * 30, "only one value"),
        ([f"2001,{i},{'ab'[i % 2]}" for i in range(30)], "have the time 2001"),
        (
            [f"{2001 + i % 3},{'inf' if i == 7 else i},{'ab'[i % 2]}" for i in range(60)],
            "'size' has 1 missing or infinite",
        ),
        ([f"{'soon' if i == 7 else 2001 + i % 3},{i},{'ab'[i % 2]}" for i in range(60)], "'soon' in row 8"),
    ],
)
def test_tables_that_cannot_be_used(driftline: Command, tmp_path: Path, rows: list[str], sentence: str) -> None:
    (tmp_path / "t.csv").write_text("\n".join(["when,size,kind", *rows]))
    data = ("--set", "data.path=t.csv", "--set", "data.time=when", "--set", "data.target=kind")
    code, _, err = driftline(
        "run", "timeline", "--data", "table", "--model", "logistic-regression", "--methods", "erm", *data
    )
    assert code == 2
    assert sentence in err


def test_small_periods_are_left_out_and_named(driftline: Command, tmp_path: Path) -> None:
    rows = [f"{2001 + i % 3},{i},{'ab'[i % 2]}" for i in range(60)] + ["2004,1,a", "2004,2,b"]
    (tmp_path / "t.csv").write_text("\n".join(["when,size,kind", *rows]))
    data = (
        "--set",
        "data.path=t.csv",
        "--set",
        "data.time=when",
        "--set",
        "data.target=kind",
        "--set",
        "timeline.resamples=10",
    )
    code, _, err = driftline(
        "run", "timeline", "--data", "table", "--model", "logistic-regression", "--methods", "erm", *data
    )
    assert code == 0
    assert "note: 1 period(s) with too few samples are left out: 2004 (2)" in err


@pytest.mark.parametrize("line", ["methods: 5", "methods: [1]", "methods:", "data:", "benchmark: [a]", "timeline: 3"])
def test_recipes_that_make_no_sense(driftline: Command, tmp_path: Path, line: str) -> None:
    recipe = {"benchmark": "benchmark: timeline", "data": "data: digits", "methods": "methods: erm"}
    recipe[line.partition(":")[0]] = line
    (tmp_path / "r.yaml").write_text("\n".join(recipe.values()))
    for extra in ((), ("--set", "timeline.delta=0.5")):
        code, _, err = driftline("run", "r.yaml", *extra)
        assert code == 2, err
        assert "Traceback" not in err


def test_settings_of_a_users_file_and_of_odd_values(driftline: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from driftline.learners.supervised.ft import FineTune as Mine")
    command = ("run", "timeline", "--data", "digits", "--model", "sklearn.linear_model.SGDClassifier")
    odd = ("--set", "model.alpha=1e-3", "--set", "data.periods=3", "--set", "timeline.resamples=5", "--print-spec")
    code, out, err = driftline(*command, "--methods", "mine.py:Mine", "--set", "mine.py:Mine.lr=0.5", *odd)
    assert code == 0, err
    assert "lr: 0.5" in out
    assert "alpha: 0.001" in out


@pytest.mark.parametrize(("number", "age"), [(99, "a newer"), (1, "an older")])
def test_a_store_from_another_version_is_left_alone(number: int, age: str, driftline: Command, tmp_path: Path) -> None:
    (tmp_path / "driftline-runs").mkdir()
    (tmp_path / "driftline-runs" / "store.json").write_text(f'{{"format": {number}}}')
    code, _, err = driftline(*RUN)
    assert code == 2
    assert f"made by {age} version of driftline (format {number}" in err
    assert [path.name for path in (tmp_path / "driftline-runs").iterdir()] == ["store.json"]


def test_a_failed_run_gives_exit_code_1_and_is_listed(driftline: Command, tmp_path: Path) -> None:
    lines = (
        "from driftline.learners.supervised.erm import ERM",
        "class Odd(ERM):",
        "  def learn(self, x, y):",
        "    raise RuntimeError('odd')",
    )
    (tmp_path / "odd.py").write_text("\n".join(lines))
    code, _, err = driftline(*RUN[:-6], "--methods", "erm,odd.py:Odd", "--set", "data.periods=4")
    assert code == 1
    assert "failed: odd.py:Odd seed 0: RuntimeError: odd" in err
    code, out, _ = driftline("list", "runs")
    assert "failed: odd.py:Odd seed 0: RuntimeError: odd" in out
    assert "erm" in out


PATIENT = """
import os, time
from driftline.learners.supervised.erm import ERM

class Patient(ERM):
    def learn(self, x, y):
        super().learn(x, y)
        self.lessons = getattr(self, "lessons", 0) + 1
        while self.lessons == 2 and not os.path.exists("go"):
            time.sleep(0.02)
"""


def test_interrupt_exits_130_and_the_same_command_resumes(
    driftline: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "patient.py").write_text(PATIENT)
    command = [*RUN, "--methods", "patient.py:Patient", "--engine=local", "--jobs=1", "--seeds=1"]
    monkeypatch.setenv("DRIFTLINE_CHECKPOINT_SECONDS", "0")
    running = subprocess.Popen(
        [sys.executable, "-m", "driftline", *command], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    work, limit = tmp_path / "driftline-runs" / "work", time.monotonic() + 60
    while not list(work.glob("*/checkpoint.safetensors")) and time.monotonic() < limit:
        time.sleep(0.02)
    os.killpg(running.pid, signal.SIGINT)
    _, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "the same command resumes" in err
    assert "Traceback" not in err
    assert not list((tmp_path / "driftline-runs").glob("failed/*")), "an interrupted run has not failed"
    assert list(work.glob("*/checkpoint.safetensors"))
    (tmp_path / "go").touch()
    monkeypatch.setattr(pool, "LocalExecutor", ForkedWorker)
    code, out, err = driftline(*command)
    assert (code, err.count("finished")) == (0, 1), err
    assert "0 failed" in out


@pytest.mark.parametrize("kind", ["methods", "benchmarks", "datasets", "models", "metrics"])
def test_lists_explain_every_name(driftline: Command, kind: str) -> None:
    code, out, _ = driftline("list", kind)
    assert code == 0
    for line in out.strip().splitlines():
        assert len(line.split()) > 2, f"{line!r} does not say what it is"


def test_settings_of_a_device_from_the_command_line(driftline: Command) -> None:
    flags = ("run", "timeline", "--data", "digits", "--model", "mlp", "--methods", "ft", "--print-spec")
    _, out, _ = driftline(*flags, "--device", "cuda:1", "--precision", "bfloat16", "--set", "device.tf32=true")
    assert "device:\n  name: cuda:1\n  precision: bfloat16\n  tf32: true\n" in out
    code, _, err = driftline(*flags[:-1], "--device", "tpu")
    assert (code, "unknown device 'tpu'" in err or "not available" in err) == (2, True)
    code, _, err = driftline(*flags, "--set", "device.precison=bfloat16")
    assert (code, "Did you mean 'device.precision'?" in err) == (2, True)
    code, _, err = driftline(*flags, "--precision", "float8")
    assert (code, "precision" in err) == (2, True)
