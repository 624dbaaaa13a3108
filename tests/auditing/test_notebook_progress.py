"""In a notebook an audit shows one line of progress; elsewhere nothing."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import driftline
from driftline.auditing.examples import table
from driftline.auditing.notebook_progress import NotebookProgress, notebook_progress


def in_shell(monkeypatch: pytest.MonkeyPatch, **shell: object) -> list[dict[str, str]]:
    """Put a shell of IPython in place, and return what it displays."""
    shown: list[dict[str, str]] = []

    def display(content: dict[str, str], **options: Any) -> object:
        assert options == {"raw": True, "display_id": True}
        shown.append(content)
        return SimpleNamespace(update=lambda content, raw: shown.append(content))

    ipython, parts = ModuleType("IPython"), ModuleType("IPython.display")
    monkeypatch.setitem(vars(ipython), "get_ipython", lambda: SimpleNamespace(**shell))
    monkeypatch.setitem(vars(parts), "display", display)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", parts)
    return shown


def test_an_audit_in_a_notebook_shows_its_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = in_shell(monkeypatch, kernel=object())
    frame = table(rows=400).assign(logged="yes")
    options: dict[str, Any] = {"time": "when", "target": "y", "predictions": "logged", "period": "100 rows"}
    driftline.audit(frame, **options)
    assert shown[0]["text/plain"].startswith("0 of ")
    done, total = shown[-2]["text/plain"].split(":")[0].split(" of ")
    assert done == total
    assert shown[-1] == {"text/plain": "", "text/html": ""}
    shown.clear()
    driftline.audit(frame, **options, on_progress=lambda *event: None)
    assert not shown, "the given function shows it"


def test_names_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = in_shell(monkeypatch)
    NotebookProgress()("<b>", 1, 2)
    assert shown == [
        {"text/plain": "1 of 2: <b>", "text/html": '<progress value="1" max="2"></progress> 1 of 2: &lt;b&gt;'}
    ]


def test_a_terminal_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    in_shell(monkeypatch)
    assert notebook_progress() is None
    monkeypatch.delitem(sys.modules, "IPython")
    assert notebook_progress() is None
