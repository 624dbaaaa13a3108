"""Run the blocks of a document: write files, run Python, run commands through the real command line.

A fence says what its block is: `bash` and `python` blocks run, `title=NAME` makes the block a file, `exit=1`
expects that exit code, `extra=NAME` needs that package; other blocks only show something.
"""

from __future__ import annotations

import importlib.util
import linecache
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from driftline.cli.main import main

FENCE = re.compile(r"^```(\S+)?([^\n]*)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    language: str
    marks: dict[str, str]
    text: str


def blocks(document: Path) -> list[Block]:
    """Return all blocks, in order."""
    found = FENCE.findall(document.read_text(encoding="utf-8"))
    return [Block(one, dict(word.split("=", 1) for word in rest.split()), text) for one, rest, text in found]


@dataclass
class Reader:
    """A reader that runs the blocks of a document in the current folder and collects the output."""

    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]
    output: str = ""

    def follow(self, block: Block) -> None:
        if "title" in block.marks:
            Path(block.marks["title"]).write_text(block.text, encoding="utf-8")
        elif block.language == "python" and ">>>" not in block.text:
            name = f"<document {len(linecache.cache)}>"  # its text is known by this name, as that of a notebook cell is
            linecache.cache[name] = (len(block.text), None, block.text.splitlines(keepends=True), name)
            exec(compile(block.text, name, "exec", dont_inherit=True), {"__name__": "document"})
        elif block.language == "bash" and self._can(block):
            for line in block.text.replace("\\\n", " ").splitlines():
                if words := shlex.split(line, comments=True):
                    code = self.command(words)
                    assert code == int(block.marks.get("exit", 0)), f"{line}\nexits with {code}: {self.output[-2000:]}"

    def _can(self, block: Block) -> bool:
        return "extra" not in block.marks or importlib.util.find_spec(block.marks["extra"]) is not None

    def command(self, words: list[str]) -> int:
        """Run one command in this process, which is faster than starting Python; return its exit code."""
        assert words[0] == "driftline", f"only driftline is run here, not {words[0]}"
        words, output = (words[:-2], words[-1]) if ">" in words else (words, None)
        one_process = ["--jobs", "1"] if words[1] == "audit" else []
        self.monkeypatch.setattr(sys, "argv", [*words, *one_process])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = self.capsys.readouterr()
        self.output += printed.out + printed.err
        if output:
            Path(output).write_text(printed.out, encoding="utf-8")
        return int(ended.value.code or 0)
