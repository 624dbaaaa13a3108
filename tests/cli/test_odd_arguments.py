"""Arguments that no command can use get a sentence and exit code 2, and leave nothing behind."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest
from tests.io.test_bounded_files import png_of

from driftline.cli import main as cli
from driftline.errors import ClusterLost, UserError
from driftline.spec import apply_overrides, parse
from driftline.store.store import Store

Command = Callable[..., tuple[int, str, str]]
RUN = ("run", "timeline", "--data", "digits", "--model", "logistic-regression", "--methods", "erm")
AUDIT = ("audit", "t.csv", "--time", "t", "--target", "y")
CALIBRATE = ("calibrate", "--data", "color-digits", "--model", "linear", "-o", "x.safetensors")
LONG = "x" * 5000


@pytest.fixture
def driftline(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    Store.create(tmp_path / "driftline-runs")

    def command(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["driftline", *arguments])
        with pytest.raises(SystemExit) as end:
            cli.main()
        out, err = capsys.readouterr()
        return int(end.value.code or 0), out, err

    return command


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((*RUN, "--runs", "x" * 300), "cannot be a folder: File name too long"),
        ((*RUN, "--runs", "a\0b"), "cannot be a folder: embedded null"),
        ((*RUN, "--runs", "~nouser/x"), "cannot be a folder: Could not determine home"),
        ((*RUN, "--runs", "odd"), "store.json is damaged"),
        ((*RUN, "--runs", "s3:/bucket/runs"), "looks like a URL; write it as s3://bucket/folder"),
        ((*RUN, "--runs", "nowhere://bucket/runs"), "Protocol not known: nowhere"),
        ((*CALIBRATE, "--runs", "nowhere://bucket/runs"), "Protocol not known: nowhere"),
        (("list", "runs", "--runs", "x" * 300), "File name too long"),
        (("report", "-o", ""), "cannot write '.': it is not the name of a file"),
        (("report", "-o", "s3://bucket/x.html"), "cannot write 's3:/bucket/x.html': it is not the name of a file"),
        (("audit", "~nouser/t.csv", *AUDIT[2:]), "there is no file ~nouser/t.csv"),
        ((*RUN[:-1], "~nouser/m.py:M"), "cannot import ~nouser/m.py"),
        ((*AUDIT, "-o", ""), "it is not the name of a file"),
        ((*AUDIT, "--json", ""), "it is not the name of a file"),
        (("quickstart", "-o", ""), "it is not the name of a file"),
        (("figure", "curves", "-o", ""), "it is not the name of a file"),
        (("show", LONG), "is called 'xxx"),
        (("diff", LONG, LONG), "is called 'xxx"),
        (("table", LONG), "is called 'xxx"),
        (("table", "--format", ""), "--format is empty"),
        (("table", "--paper", ""), "--paper is empty"),
        (("table", "--caption", ""), "--caption is empty"),
        (("table", "--label", ""), "--label is empty"),
        ((*RUN[:4], *RUN[6:], "--set", "model.width=4"), "'model' has settings but no name: give both"),
        ((*RUN[:-1], LONG), "no method 'xxx"),
        ((*RUN, "--seeds", "9" * 400), "at most 100,000"),
        (("run", "matrix", "--methods", "erm", "--seeds", "9" * 400), "at most 100,000"),
        ((*RUN[:-1], ":M"), "write FILE.py:NAME"),
        ((*RUN, "--device", "/dev/zero"), "device"),
        (("figure", "severity-grid", "--calibration", LONG, "-o", "f.svg"), "…: File name too long"),
        (("new", "method", LONG), "…: File name too long"),
        (("new", "method", "json"), "json.py would hide the module json, which others import"),
        (("new", "method", "torch"), "torch.py would hide the module torch"),
        (("new", "method", "class"), "'class' is a keyword of Python"),
        (("new", "method", "none"), "'none' is a keyword of Python"),
    ],
)
def test_odd_arguments(driftline: Command, tmp_path: Path, arguments: tuple[str, ...], sentence: str) -> None:
    (tmp_path / "odd" / "store.json").mkdir(parents=True)
    before = sorted(tmp_path.rglob("*"))
    code, _, err = driftline(*arguments)
    assert (code, sentence in err) == (2, True), err
    assert len(err) < 2500
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("arguments", [("run", "pipe"), ("plan", "pipe"), ("run", "b.yaml"), (*RUN[:-1], "pipe:M")])
def test_a_pipe_is_no_recipe_and_no_code(driftline: Command, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    pipe = tmp_path / ("pipe.py" if "pipe:M" in arguments else "pipe.yaml")
    os.mkfifo(pipe)
    (tmp_path / "b.yaml").write_text("base: pipe.yaml\n", encoding="utf-8")
    Thread(target=pipe.write_bytes, args=(b"1",), daemon=True).start()  # waits for a reader
    code, _, err = driftline(*(word.replace("pipe", pipe.name) for word in arguments))
    assert (code, "a folder, a pipe or a device" in err) == (2, True), err
    assert pipe.read_bytes() == b"1", "nothing read the pipe before"


def test_a_folder_that_takes_no_files(tmp_path: Path) -> None:
    from driftline.io.atomic import write_bytes

    with pytest.raises(UserError, match="cannot write /proc/x: "):
        write_bytes(Path("/proc/x"), b"")


def test_home_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    Store.create("~/mine")
    assert os.listdir(tmp_path) == ["mine"]
    monkeypatch.setenv("DRIFTLINE_RUNS", "~/mine")
    assert Store.open().folder == tmp_path / "mine"
    with pytest.raises(UserError, match="in Python as a text"):
        Store.open(Path("s3://bucket/runs"))


def test_a_list_needs_no_quotes() -> None:
    content = {"benchmark": "timeline", "data": "table", "methods": ["erm"]}
    made = apply_overrides(content, ["data.files=[a,b c.csv, 3]", "timeline.delta=[]", 'data.more=["x,y"]'])
    assert made["data"] == {"name": "table", "files": ["a", "b c.csv", 3], "more": ["x,y"]}
    assert made["timeline"]["delta"] == []
    with pytest.raises(UserError, match="is not JSON: put texts in double quotes"):
        apply_overrides(content, ["data.files=[[a],b]"])


def test_a_method_without_a_name_is_left_to_the_spec() -> None:
    content = {"benchmark": "timeline", "data": "digits", "methods": [{"lr": 1}, "erm"]}
    changed = apply_overrides(content, ["erm.lr=2"])
    assert changed["methods"] == [{"lr": 1}, {"name": "erm", "lr": 2}]
    with pytest.raises(UserError, match=r"'methods\.0' has settings but no name"):
        parse(changed)


def test_a_huge_picture_is_one_sentence(driftline: Command, tmp_path: Path) -> None:
    """Pillow warns about pictures of 90 to 180 million pixels by itself."""
    for name in ("a/1.png", "b/2.png"):
        (tmp_path / "pictures" / name).parent.mkdir(parents=True)
        (tmp_path / "pictures" / name).write_bytes(png_of(13_000, 13_000))
    options = ("--data", "image-folders", "--set", "data.path=pictures", "--model", "conv-1", "--methods", "baseline")
    with warnings.catch_warnings(record=True) as warned:
        code, _, err = driftline("run", "seq-to-final", *options, "--quiet")
    assert (code, err.count("\n"), "13000 x 13000 pixels" in err, warned) == (2, 1, True, []), err


@pytest.mark.parametrize(
    ("command", "resumes"),
    [("run", True), ("audit", True), ("calibrate", True), ("report", False), ("plan", False), ("table", False)],
)
def test_only_commands_that_resume_say_so(
    driftline: Command, monkeypatch: pytest.MonkeyPatch, command: str, resumes: bool
) -> None:
    def interrupted(*args: object, **more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "app", interrupted)
    code, _, err = driftline(command)
    assert code == 130
    assert err.startswith("interrupted")
    assert ("the same command resumes" in err) == resumes


def test_a_lost_cluster_is_a_sentence_and_ends_the_process_before_ray_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lost(*args: object, **more: object) -> None:
        raise ClusterLost

    def end(code: int) -> None:
        raise SystemExit(f"at once with {code}")

    monkeypatch.setattr(cli, "app", lost)
    monkeypatch.setattr(cli.os, "_exit", end)
    monkeypatch.setattr(sys, "argv", ["driftline", "run"])
    with pytest.raises(SystemExit, match="at once with 2"):
        cli.main()
    assert capsys.readouterr().err.startswith("driftline: the head of the Ray cluster no longer answers.")
