"""What a shell sees: `-h` everywhere, and completion."""

from __future__ import annotations

import shlex
import sys

import pytest
from typer.main import get_command

from driftline.cli.main import app, main

COMMANDS = get_command(app).commands  # type: ignore[attr-defined]


def call(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", shlex.split(command))
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code


@pytest.mark.parametrize("words", ["", *sorted(COMMANDS), "monitor fit", "monitor check"])
def test_h_is_help(words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    call(f"driftline {words} -h", monkeypatch)
    out = capsys.readouterr().out
    assert out.startswith(f"Usage: driftline {words}".rstrip())
    assert "-h, --help" in out


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("driftline ta", ["table"]),
        ("driftline run ti", ["timeline"]),
        ("driftline run timeline --methods erm,tent-", []),
        ("driftline run timeline --methods erm,ten", ["erm,tent"]),
        ("driftline run timeline --data yearb", ["yearbook"]),
        ("driftline figure curv", ["curves"]),
        ("driftline list run", ["runs"]),
    ],
)
def test_a_shell_completes_commands_and_names(
    line: str, expected: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_DRIFTLINE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split()) - 1))
    call("driftline", monkeypatch)
    assert capsys.readouterr().out.split() == expected
