"""What a shell sees: `-h` everywhere, and completion."""

from __future__ import annotations

import shlex
import sys

import pytest
from typer.main import get_command

from driftline.cli.main import app, main

COMMANDS = get_command(app).commands  # type: ignore[attr-defined]


def call(command: str, monkeypatch: pytest.MonkeyPatch, code: int = 0) -> None:
    monkeypatch.setattr(sys, "argv", shlex.split(command))
    with pytest.raises(SystemExit) as end:
        main()
    assert (end.value.code or 0) == code


@pytest.mark.parametrize("words", ["", *sorted(COMMANDS), "monitor fit", "monitor check"])
def test_h_is_help(words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    call(f"driftline {words} -h", monkeypatch)
    out = capsys.readouterr().out
    assert out.startswith(f"Usage: driftline {words}".rstrip())
    assert "-h, --help" in out


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("run timeline --jobs x", ["--jobs", "integer", "`driftline run -h`"]),
        ("run timeline --data digits --methods erm --precision x", ["device.precision", "'bfloat16'", "'x'"]),
        ("audit --nope", ["--nope", "`driftline audit -h`"]),
        ("show", ["Missing argument 'run'", "`driftline show -h`"]),
        ("monitor chek", ["'check'", "`driftline monitor -h`"]),
        ("table --format", ["--format"]),
    ],
)
def test_a_misused_option_is_one_sentence(
    line: str, words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    call(f"driftline {line}", monkeypatch, code=2)
    [sentence] = [text for text in capsys.readouterr().err.splitlines() if not text.startswith("preparing")]
    assert sentence.startswith("driftline: ")
    assert all(word in sentence for word in words), sentence


def test_a_command_without_anything_shows_its_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    call("driftline monitor", monkeypatch, code=2)
    assert "Usage: driftline monitor" in "".join(capsys.readouterr())


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
