"""Which code is run when something is named, and that it is announced before."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from driftline import models, registry
from driftline.cli.main import main
from driftline.data import load
from driftline.errors import UserError
from driftline.io import user_code
from driftline.seeds import Seed

Command = Callable[..., tuple[int, str, str]]
METHOD = "open({mark!r}, 'a').write('run ')\nfrom driftline.learners.supervised.erm import ERM as Mine\n"


@pytest.fixture
def driftline(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    """Run a command in an empty folder; its exit code, output and errors."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["driftline", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        return int(end.value.code or 0), out, err

    return command


@pytest.mark.parametrize("command", ["run", "plan"])
@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("sklearn.datasets.clear_data_home", "data_home: {0}"),
        ("sklearn.utils._testing.assert_run_python_script_without_output", "source_code: print(5)"),
        ("sklearn.datasets._base.urlretrieve", "{{url: 'file:///etc/hostname', filename: {0}/taken}}"),
        ("sklearn.base.BaseEstimator", "{{}}"),
        ("sklearn.preprocessing.StandardScaler", "{{}}"),
    ],
)
def test_a_dotted_name_is_an_estimator_or_it_is_not_called(
    driftline: Command, tmp_path: Path, command: str, name: str, option: str
) -> None:
    (tmp_path / "home").mkdir()
    lines = ["benchmark: timeline", "data: digits", "methods: erm", "model:", f"  name: {name}"]
    if not option.startswith("{"):
        lines.append("  " + option.format(tmp_path / "home"))
    (tmp_path / "r.yaml").write_text("\n".join(lines))
    code, _, err = driftline(command, "r.yaml")
    assert (code, f"'{name}' is not an estimator of scikit-learn with fit and predict" in err) == (2, True), err
    assert (tmp_path / "home").is_dir()


@pytest.mark.parametrize("kind", registry.KINDS)
@pytest.mark.parametrize(
    "name", ["os:system", "subprocess:call", "antigravity:fly", "sklearn.datasets:clear_data_home"]
)
def test_a_name_in_a_module_is_what_it_claims(kind: str, name: str) -> None:
    with pytest.raises(UserError, match=rf"{kind} '{name}'.*(part of Python|is not a )"):
        registry.get(kind, name)
    assert "antigravity" not in sys.modules


def test_functions_of_installed_packages_must_say_what_they_return() -> None:
    assert registry.get("dataset", "driftline.data.digits:digits") is registry.get("dataset", "digits")
    assert registry.get("model", "sklearn.naive_bayes:GaussianNB").__name__ == "GaussianNB"
    with pytest.raises(UserError, match="nor a function annotated to return one"):
        registry.get("dataset", "sklearn.datasets:load_iris")
    with pytest.raises(UserError, match="nor a function annotated to return one"):
        models.build("sklearn.datasets:load_iris")


@pytest.mark.parametrize("name", ["torch.fx.graph_module:reduce_graph_module", "torch.nn:Linear"])
def test_no_function_or_class_of_torch_is_called(tmp_path: Path, name: str) -> None:
    code = {"body": {"_code": "def forward(self): pass"}, "import_block": f"open({str(tmp_path / 'run')!r}, 'w')\n"}
    with pytest.raises(UserError, match="some functions of torch run text as code"):
        models.build(name, **code)
    assert not (tmp_path / "run").exists()


def test_an_estimator_gets_no_folder_of_pickles(tmp_path: Path) -> None:
    options = {"steps": [["last", "passthrough"]], "memory": str(tmp_path / "cache")}
    with pytest.raises(UserError, match="leave memory out"):
        models.build("sklearn.pipeline.Pipeline", (2,), 2, Seed(0), **options)


def test_a_file_is_announced_before_it_runs_and_print_spec_runs_none(driftline: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(METHOD.format(mark=str(tmp_path / "mark")))
    command = ("run", "timeline", "--data", "digits", "--model", "logistic-regression", "--methods", "mine.py:Mine")
    code, out, err = driftline(*command, "--set", "mine.py:Mine.start=fresh", "--print-spec")
    assert (code, "start: fresh" in out, "runs code" in err) == (0, True, False)
    code, out, _ = driftline("run", "matrix", "--benchmarks", "timeline", "--methods", "mine.py:Mine", "--print-spec")
    assert (code, "mine.py:Mine" in out) == (0, True)
    code, _, err = driftline("run", "mine.py:Mine", *command[2:], "--delta", "0.5", "--print-spec")
    assert (code, "would have to be run" in err) == (2, True), "an option of a benchmark that is not loaded"
    assert not (tmp_path / "mark").exists()
    (tmp_path / "r.yaml").write_text(
        "benchmark: timeline\ndata: digits\nmethods: mine.py:Mine\nmodel: logistic-regression"
    )
    code, _, err = driftline("run", "r.yaml", "--set", "mine.py:Mine.none=1")
    assert code == 2
    lines = [line for line in err.splitlines() if not line.startswith("planning")]  # printed on a busy machine
    assert lines[0] == "runs code from ./mine.py"
    assert (tmp_path / "mark").read_text() == "run "


def test_a_module_beside_the_user_is_announced_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "beside_the_user.py").write_text("def make():\n    return 5\n")
    caplog.set_level(logging.INFO, "driftline")
    with pytest.raises(UserError, match=r"made a int, which is not a torch\.nn\.Module and lacks fit or predict"):
        models.build("beside_the_user:make")
    assert caplog.messages == ["runs code from ./beside_the_user.py"]
    with pytest.raises(UserError, match=r"it is part of Python; a file of your own is named as \./calendar\.py"):
        models.build("calendar:make")


def test_no_code_is_run_inside_not_run(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("raise RuntimeError")
    with user_code.forbid_code(), pytest.raises(user_code.CodeNotAllowed):
        registry.get("method", f"{tmp_path}/own.py:Own")


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("def lamps(): ...", "is a NoneType: expected a driftline.data.Dataset, samples, arrays"),
        ("def lamps(folders, more): ...", "missing a required argument: 'more'"),
        ("def lamps(folders): return {}", "is a dict: expected a driftline.data.Dataset"),
        ("lamps = 5", "is not a driftline.data.Dataset"),
    ],
)
def test_data_that_are_none_get_a_sentence(tmp_path: Path, source: str, sentence: str) -> None:
    (tmp_path / "lamps.py").write_text(source)
    with pytest.raises(UserError, match=sentence):
        load(f"{tmp_path}/lamps.py:lamps")


class Entry:
    """An entry point whose package is broken."""

    name, value, group = "thing", "plug:thing", "driftline.method"
    dist = type("Distribution", (), {"name": "plug"})

    def load(self) -> object:
        raise ImportError("cannot import name 'thing' from 'plug' (/usr/lib/python3/site-packages/plug/__init__.py)")


def test_a_broken_plugin_is_one_sentence_without_a_path(caplog: pytest.LogCaptureFixture) -> None:
    registry._plug_in("method", Entry())  # type: ignore[arg-type]
    assert caplog.messages == [
        "the plugin 'plug' does not provide the method 'thing': ImportError: cannot import name 'thing' from 'plug'. "
        "Update or uninstall it"
    ]
    assert "thing" not in registry.names("method")
