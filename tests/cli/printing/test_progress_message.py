"""A command that takes long before it has anything to show says what it is doing."""

import time
from pathlib import Path
from typing import Any

import pytest

from driftline.cli.main import app
from driftline.cli.printing import progress_message as module
from driftline.cli.printing.progress_message import progress_message
from driftline.engine.costs import forecast
from driftline.errors import UserError

FIRST_AFTER = module.FIRST_AFTER  # as installed


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_AFTER", 0.05)
    monkeypatch.setattr(module, "REPEAT_AFTER", 0.1)


def test_what_takes_long_is_announced_once_and_then_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_message("planning 10,000 method(s)"):
        time.sleep(0.4)
    first, *others = capsys.readouterr().err.splitlines()
    assert first == "planning 10,000 method(s)"
    assert others
    assert all(line.startswith("planning 10,000 method(s) (for ") for line in others)


@pytest.mark.parametrize("quiet", [True, False])
def test_what_is_quick_or_to_be_quiet_is_not(quiet: bool, capsys: pytest.CaptureFixture[str]) -> None:
    with progress_message("planning", quiet):
        time.sleep(0.2 if quiet else 0)
    assert capsys.readouterr().err == ""


def test_a_forecast_says_that_it_plans_until_it_profiles(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*_: object, on_profile: Any, **settings: object) -> None:
        time.sleep(0.2)
        on_profile(0, 1, "erm")
        planned = capsys.readouterr().err.splitlines()
        time.sleep(0.2)
        raise UserError(planned[0], capsys.readouterr().err)

    monkeypatch.setattr(forecast, "forecast", slow)
    monkeypatch.setattr("driftline.cli.printing.forecast.LOG_INTERVAL", 0)
    with pytest.raises(UserError) as end:
        app(["plan", "timeline", "--data", "digits", "--methods", "erm"], standalone_mode=False)
    assert end.value.args == ("planning timeline", "")


def test_a_run_says_that_it_plans(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*_: object, on_plan: Any, **settings: object) -> None:
        time.sleep(0.2)
        raise UserError(capsys.readouterr().err)

    monkeypatch.setattr("driftline.engine.run.run_spec", slow)
    with pytest.raises(UserError, match=r"planning 2 method\(s\), 3 seed\(s\)"):
        app(
            ["run", "timeline", "--data", "digits", "--methods", "erm,ft", "--seeds", "3", "--runs", str(tmp_path)],
            standalone_mode=False,
        )


def test_the_first_message_comes_within_a_second() -> None:
    assert FIRST_AFTER < 1
