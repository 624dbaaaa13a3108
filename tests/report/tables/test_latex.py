"""Every table in LaTeX, through a real engine if there is one: names that try to break it, nothing off the page."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from driftline import registry
from driftline.benchmarks.seq_to_final.benchmark import Options
from driftline.io.checksums import write_checked
from driftline.record.run import Record, Run
from driftline.report.tables.comparison import comparison_tables
from driftline.report.tables.latex import environment, named
from driftline.report.tables.make import table
from driftline.report.tables.matrix import matrix_tables
from driftline.report.tables.papers import paper_tables
from driftline.report.tables.ranking import ranking_tables
from driftline.report.tables.render import render
from driftline.report.tables.result import result_tables
from driftline.store.labels import write_labels
from driftline.store.store import Store

from ..conftest import adapted, add_table, at, final, refined, summary_rows, write_run
from ..opened import opened

pytestmark = pytest.mark.xdist_group("latex")  # all tables are compiled at once

HOSTILE = "a_b%&#$~^\\{}`|\"' [x] --set é ł ą τ 日本 \x07\u202e<script>alert(1)</script>"
LONG = "method-" + "with-a-very-long-name-" * 12
ARRANGED = {
    "transposed": {"transpose": True, "precision": 3, "notes": False},
    "grouped": {"order": "ood", "metrics": ["ood", "dh"], "columns": ["dh:mean", "ood", "gmac"]},
}
KINDS = ("results", "comparisons", "ranks", "matrix", *registry.names("paper-table"), *ARRANGED)


def timelines(folder: Path) -> list[Run]:
    """Two settings, so that there are ranks; all columns that there can be."""
    names = ("id", "ood", "tas", "sh", "dh", "fix-id", "fix-ood", "fix-worst", "average-accuracy", "forgetting")
    return [
        write_run(
            folder,
            label,
            seed,
            [*summary_rows({(name, "mean"): 0.1 * place + 0.01 * seed for name in names}), *at("ood", ta=0.5)],
            **{"data__name": data, "run__data": {"name": data, "settings": {}}, "protocol__protocol": HOSTILE},
            **{"run__options": {"protocol": protocol}},
        )
        for data, protocol in (("digits", "stream"), ("clouds_50%", "fix"), ("sequence_1", "tasks"))
        for place, label in enumerate((HOSTILE, LONG, "frozen", "erm-all"), start=1)
        for seed in range(3)
    ]


def sequences(folder: Path) -> list[Run]:
    shifts = ("CLR", "RCL", "rrr", "TTT", "sss", "time", "rot4")
    return [
        write_run(
            folder,
            label,
            seed,
            [final("final-accuracy", 0.5 + 0.1 * seed, "mean")],
            **{"run__benchmark": "seq-to-final", "run__options": Options(shifts=one).model_dump(mode="json")},
            **{"run__data": {"name": "cifar10", "settings": {}}, "data__name": "cifar10", "protocol__protocol": one},
            **{"run__model": {"name": "conv-2", "settings": {"width": 64}}, "metrics": {}},
        )
        for one in shifts
        for label in (HOSTILE, "baseline", "oracle", "seq-ft", "jm")
        for seed in (0, 1)
    ]


def queries(folder: Path) -> list[Run]:
    return [
        refined(folder, label, 0, [final("oec", 0.5), final("efr", 0.9, "mean")], [["x", "b"]], data="qa", options=one)
        for one in ({}, {"alpha": 0.5})
        for label in (HOSTILE, "frozen", "er")
    ]


def streams(folder: Path) -> list[Run]:
    schedule = {"order": ["a > b"], "paths": {"a > b": [[1, 0], [0, 0]]}, "mixed": False}
    easy = {"options": {"difficulty": "easy"}, "schedule": schedule}
    resets = (
        (f"rdumb(reset_every={k})", {"settings": {"reset_every": k}, "options": {"order": "holdout"}})
        for k in (60, 125)
    )
    shares = ((f"eata(entropy_fraction={k})", {"settings": {"entropy_fraction": k}, **easy}) for k in (0.3, 0.4))
    held = {"options": {"order": "holdout"}}
    weights = ((f"eata(penalty_weight={k})", {"settings": {"penalty_weight": k}, **held}) for k in (100, 500))
    harder = [("eata", {**easy, "options": {"difficulty": level}}) for level in ("medium", "hard")]
    made = [(HOSTILE, easy), ("frozen", easy), *resets, *shares, *weights, *harder]
    runs = [adapted(folder, label, 0, [0.5], **json.loads(json.dumps(given))) for label, given in made]
    visits = adapted(folder, HOSTILE, 0, [0.5], options={"order": "cin-c"}, schedule=schedule)
    add_table(visits, "answers", {"group": [0, 0], "correct": [True, False]})
    return [*runs, visits]


def open_worlds(folder: Path) -> list[Run]:
    columns = {"overall": 0.5, "mean-class": 0.4, "novel-head": 0.3, "unseen-auroc-mdt": 0.6, "k+1": 0.5}
    row = ("episodic", "each", "5-shot 5-way", None, 0.6, 0.5, 0.7, 600, "episodes")
    labels = {HOSTILE: {}, "fine-tune(n_layers=2)": {"n_layers": 2}, "fine-tune": {"n_layers": 1}}
    labels |= {"weight-imprinting": {"scale": 4.0}, "exemplar-tuning": {"similarity": "cosine"}}
    price = (160_000e9, 0, 5_730_000e9)
    made = [
        opened(folder, label, 0, columns, settings=settings, rows=[row], compute=price)
        for label, settings in labels.items()
    ]
    for run in made:
        run.card.protocol.update(revealed="labels", label_delay_steps=0, labels_per_step="all")
        run.card.protocol.update(sequence=1, samples=12, counts=[7, 5], pretrain_classes=[0], novel_classes=[1])
    return made


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """Runs of all benchmarks, for all layouts, and a matrix of some of them."""
    folder = tmp_path_factory.mktemp("store")
    found = [run for make in (timelines, sequences, queries, streams, open_worlds) for run in make(folder / "runs")]
    timeline = [run for run in found if run.card.data.name == "digits"]
    cells = [
        {"benchmark": "timeline", "method": name, "keys": [run.key for run in timeline if run.method == name]}
        | {"label": f"{name}(lr=0.1)", "uses": "inputs", "reason": "" if name != LONG else f"{HOSTILE}. More."}
        for name in (HOSTILE, LONG, "frozen")
    ]
    content = {"methods": [HOSTILE, LONG, "frozen"], "seeds": [0, 1, 2], "cells": cells}
    content["benchmarks"] = [{"name": "timeline", "reveals": "labels"}]
    write_checked(folder / "matrices" / "m.json", content)
    for run in timeline:
        label = f"[{HOSTILE}" if run.method == "frozen" else ""
        write_labels(Store(folder), {run.key: (label, f"*{HOSTILE}")})
    return Record(found)


def rendered(kind: str, record: Record, format: str = "latex") -> str:
    make = {
        "results": result_tables,
        "comparisons": comparison_tables,
        "ranks": ranking_tables,
        "matrix": matrix_tables,
    }
    if kind in ARRANGED:
        return table(Record(run for run in record.runs if run.card.data.name == "digits"), format, **ARRANGED[kind])
    return render(make[kind](record) if kind in make else paper_tables(record, kind), format)


def compiled(body: str, folder: Path) -> str:
    """What the engine says of a document with these tables."""
    engine = shutil.which("pdflatex") or shutil.which("lualatex") or shutil.which("xelatex")
    if engine is None:
        pytest.skip("no TeX engine here: apt-get install texlive-latex-recommended")
    head = "\\documentclass{article}\n\\usepackage{booktabs,graphicx}\n\\extrafloats{500}\n\\begin{document}\n"
    (folder / "tables.tex").write_text(f"{head}{body}\n\\end{{document}}\n")
    command = [engine, "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "tables.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def logs(record: Record, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the engine says of every table; they are pages of one document, as starting the engine takes longest."""
    pages = [f"\\clearpage\\typeout{{page {kind}}}\n{rendered(kind, record)}" for kind in KINDS]
    log = compiled("\n".join([*pages, "\\clearpage\\typeout{page end}"]), tmp_path_factory.mktemp("latex"))
    _, *parts = re.split(r"^page (.+)$", log, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_every_table_compiles_and_fits_the_page(kind: str, record: Record, logs: dict[str, str]) -> None:
    assert not re.findall(r"Overfull \\hbox.*|Missing character.*", logs[kind])
    labels = re.findall(r"\\label{(.*?)}", rendered(kind, record))
    assert len(labels) == len(set(labels))


def test_the_page_shows_names_as_they_are(record: Record, tmp_path: Path) -> None:
    if shutil.which("pdftotext") is None:
        pytest.skip("pdftotext is not installed: apt-get install poppler-utils")
    compiled(environment("t", "c", [["method", "x"]], [[named("a_b%&#$~^\\{} --set"), "1"]]), tmp_path)
    shown = subprocess.run(["pdftotext", "-layout", "tables.pdf", "-"], cwd=tmp_path, capture_output=True, text=True)
    assert re.search(r"a[_ ]b%&#\$[~˜][\^ˆ]\\\{\} --set", shown.stdout), shown.stdout


def test_wide_tables_have_parts_that_can_be_read() -> None:
    heads = [["method", *map(str, range(10))]]
    text = environment("t", "c", heads, [["erm", *("abcdefghij")], ["", "", "", *([""] * 7), "low"]], max_columns=8)
    assert [len(found) for found in re.findall(r"begin{tabular}{l(r+)}", text)] == [5, 5]
    first, second = text.split(r"\toprule")[1:]
    assert r"{}erm & a & b & c & d & e \\" in first
    assert r"{}erm & f & g & h & i & j \\" in second
    assert ("low" in first, "low" in second) == (False, True)
    assert first.count(r"\\") == 2  # the second line says nothing there


def test_compute_has_three_digits_and_no_pennies(record: Record) -> None:
    assert "| fine-tune | 160,000 | 5,890,000 |" in rendered("open-world/table-1", record, "md")
