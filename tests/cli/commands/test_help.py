"""Help, and the files that users start from, as a user types the commands."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from driftline import check_learner, registry, spec
from driftline.cli.main import app
from driftline.errors import UserError

RUN = ["run", "refinement", "--data", "digit-clusters", "--model", "mlp", "--methods", "er,frozen"]


def command(*words: str) -> str:
    """Return what a command prints, with single spaces."""
    result = CliRunner().invoke(app, list(words), prog_name="driftline", catch_exceptions=False)
    assert result.exit_code == 0
    return " ".join(result.stdout.split())


def test_help_prints_every_setting_with_type_default_and_meaning() -> None:
    shown = command("help", "er")
    assert "--set er.replay_size Samples replayed at a time. [int >= 1; default: 32]" in shown
    assert 'Paper: Chaudhry et al., "On Tiny Episodic Memories' in shown
    assert shown.count("--set er.") == len(registry.describe("method", "er").settings or {}) == 23
    assert "--set data.first First year. [int; default: 1930]" in command("help", "data", "yearbook")
    assert "--beta Probability that the next episode has the same major cluster." in command("help", "refinement")
    assert "--set reveal.delay Steps between an answer and its label. [int >= 0; default: 0]" in command(
        "help", "reveal"
    )
    assert "ttr (metric): g(t,tau) = min(1, A[t,tau] / A[tau,tau]) Paper: Iovine" in command("help", "ttr")
    assert "shot Samples of a class to learn from. [int; default: 5]" in command("help", "pretraining", "maml")
    assert "--set model.weights published, or a file with weights" in command("help", "model", "timm:resnet18")
    assert "--setting A setting such as rdumb.reset_every." in command("help", "figure", "setting-sweep")
    both = command("help", "accuracy")
    assert "accuracy (metric)" in both
    assert "accuracy (figure)" in both


def test_help_without_a_name_or_with_a_command_is_that_of_the_command_line() -> None:
    assert "Usage: driftline [OPTIONS] COMMAND" in command("help")
    assert "For the options of a benchmark, name it: open-world" in command("help", "run")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["forzen"], r"no name or command 'forzen'\. Did you mean 'frozen'\?"),
        (["method", "forzen"], r"no method 'forzen'\. Did you mean 'frozen'\?"),
        (["date", "yearbook"], r"no kind 'date'\. Did you mean 'data'\?"),
        (["mine.py:Mine"], r"say what mine\.py:Mine is, for example: driftline help method mine\.py:Mine"),
        (["data"], "give the name of a dataset: driftline help data NAME; see `driftline list datasets`"),
        (["data", "yearbook", "x"], "takes a kind and a name"),
    ],
)
def test_help_for_what_is_unknown_is_a_sentence(words: list[str], reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        command("help", *words)


def test_the_help_of_run_lists_the_options_of_the_benchmark() -> None:
    assert "Options of refinement: --stream A file with the order" in command("run", "refinement", "--help")
    assert "name it: open-world, refinement," in command("run", "--help")


def test_the_full_spec_has_every_default_and_the_same_jobs() -> None:
    words = [*RUN, "--set", "*.batch=16", "--seeds", "2", "--print-spec"]
    short = spec.parse(yaml.safe_load(CliRunner().invoke(app, words).stdout))
    content = yaml.safe_load(CliRunner().invoke(app, [*words, "--full"]).stdout)
    assert spec.parse(content).jobs("mlp") == short.jobs("mlp")
    assert content["methods"][0]["batch"] == 16
    assert content["methods"][0]["replay_size"] == 32
    assert content["methods"][1] == "frozen"
    assert content["model"] == {"name": "mlp", "width": 256, "depth": 2}
    assert content["reveal"] == {"delay": 0, "budget": None, "missing": 0.0}
    assert content["refinement"]["beta"] == 0.5


def test_the_full_spec_has_the_model_that_suits_the_data() -> None:
    words = ["run", "timeline", "--data", "digits", "--methods", "ft", "--print-spec", "--full"]
    assert yaml.safe_load(CliRunner().invoke(app, words).stdout)["model"]["name"] == "mlp"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--delay", "3"], r"refinement has no flag '--delay'\. Did you mean --set reveal\.delay=\.\.\.\?"),
        (["--replay-size", "3"], r"Did you mean --set er\.replay_size=\.\.\.\?"),
        (["--seed", "3"], r"no flag '--seed'\. Did you mean --seeds or --set data\.seed=\.\.\.\?"),
        (["--alhpa", "1"], r"no flag '--alhpa'\. Did you mean '--alpha'\?"),
        (["--set", "refinement.delay=3"], r"refinement has no setting 'delay'\. Did you mean --set reveal\.delay\?"),
        (["--set", "er.copies=3"], r"er has no setting 'copies'\. Did you mean --set data\.copies\?"),
        (["--set", "*.bach=3"], r"no setting 'bach'\. Did you mean 'batch'\?.*\(of er, frozen\)"),
        (["--full"], "--full needs --print-spec"),
    ],
)
def test_a_misplaced_setting_gets_its_place(words: list[str], reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        command(*RUN, *words)


def test_a_new_method_keeps_the_contract_and_is_never_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "half_way.py has the method HalfWay" in command("new", "method", "half-way")
    method = registry.get("method", "half_way.py:HalfWay")
    check_learner(method, models=[registry.get("model", "linear")])
    (tmp_path / "half_way.py").write_text("mine")
    with pytest.raises(UserError, match=r"half_way\.py exists already"):
        command("new", "method", "HalfWay")
    assert (tmp_path / "half_way.py").read_text() == "mine"
    with pytest.raises(UserError, match=r"no template 'model'.*Known: method"):
        command("new", "model", "net")
    with pytest.raises(UserError, match=r"'\.\./x' is not a valid name"):
        command("new", "method", "../x")


def test_a_refused_method_of_the_users_own_is_told_which_attribute_to_set(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from driftline.learners import Learner\nclass Mine(Learner):\n    pass\n")
    own = spec.parse({"benchmark": "refinement", "data": "digit-clusters", "methods": f"{tmp_path}/mine.py:Mine"})
    with pytest.raises(UserError, match=r"set its class attribute min_reveal = Reveal\.ERRORS\."):
        own.jobs("mlp")
    built_in = spec.parse({"benchmark": "refinement", "data": "digit-clusters", "methods": "ft"})
    with pytest.raises(
        UserError, match=r"ft needs all labels, and refinement reveals the labels of its errors\. ft runs"
    ):
        built_in.jobs("mlp")


def test_a_setting_of_the_same_name_is_suggested_before_a_flag_that_looks_alike() -> None:
    from driftline.cli.commands.run import _unknown_flag

    content = {"benchmark": "timeline", "data": "digits", "methods": ["erm"]}
    assert str(_unknown_flag("--delay", ["delta"], content)).endswith("Did you mean --set reveal.delay=...?")
    assert "'--delta'" in str(_unknown_flag("--dleta", ["delta"], content))
    both = str(_unknown_flag("--periods", ["period"], content))
    assert both.endswith("Did you mean --period or --set data.periods=...?")
    assert str(_unknown_flag("--width", ["delta"], content)).endswith("Did you mean --set model.width=...?")
