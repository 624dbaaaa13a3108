"""Tables with options: what is selected, ordered, labelled and written, and refusals in one sentence."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import driftline
from driftline.errors import UserError
from driftline.record.run import Record
from driftline.report.analysis.displays import displays
from driftline.report.tables.arrange import relabel
from driftline.report.tables.model import Table
from driftline.store.labels import write_labels
from driftline.store.store import Store

from ..conftest import summary_rows, write_run

Write = Callable[..., str]
VALUES = {"erm": 0.5, "ft": 0.7, "own.py:Mine(k=2)": 0.6}


def make(folder: Path, values: dict[str, float], **changes: Any) -> Record:
    runs = []
    for method, value in values.items():
        rows = summary_rows({("ood", "mean"): value, ("ood", "min"): value / 2, ("sh", "mean"): 8 - 10 * value})
        name = {"run__method": {"name": method.partition("(")[0], "settings": {}}}
        runs.append(write_run(folder / "runs", method, 0, rows, **name, **changes))
    return Record(runs)


@pytest.fixture
def record(tmp_path: Path) -> Record:
    return make(tmp_path, VALUES)


def rows(text: str) -> list[list[str]]:
    """Return the cells of a table in Markdown, without its heading."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def label(record: Record, tmp_path: Path, **given: tuple[str, str]) -> None:
    for run in record.runs:
        if run.method in given:
            write_labels(Store(tmp_path), {run.key: given[run.method]})


def test_metrics_order_columns_and_precision(record: Record) -> None:
    text = driftline.table(record, metrics=["sh", "ood:min"], columns=["ood:min", "sh"], order="sh", precision=0)
    assert rows(text) == [
        ["erm", "25 [15, 45]", "3 [3, 3]"],
        ["Mine(k=2)", "30 [20, 50]", "2 [2, 2]"],
        ["ft", "35 [25, 55]", "1 [1, 1]"],
    ]


def test_methods_are_shown_in_the_given_order_by_name_class_or_label(record: Record, tmp_path: Path) -> None:
    label(record, tmp_path, ft=("Fine-tuning", ""))
    for names in (["Fine-tuning", "Mine(k=2)"], ["ft", "own.py:Mine"]):
        found = rows(driftline.table(record, methods=names, columns=["ood:mean"], precision=1))
        assert found == [["Fine-tuning", "70.0 [60.0, 90.0]"], ["Mine(k=2)", "60.0 [50.0, 80.0]"]]


def test_rows_of_a_group_stand_under_its_heading(record: Record, tmp_path: Path) -> None:
    label(record, tmp_path, erm=("", "Plain_1"), ft=("FT", "Plain_1"))
    first = [row[0] for row in rows(driftline.table(record, order="ood"))]
    assert first == ["Mine(k=2)", "*Plain_1*", "FT", "erm"]
    text = driftline.table(record, "latex", columns=["seeds"])
    assert "{}\\textit{Plain\\_1} &  \\\\\n{}\\quad erm & 1 \\\\\n{}\\quad FT & 1 \\\\" in text


def test_ambiguous_labels_are_not_shown(tmp_path: Path) -> None:
    record = make(tmp_path, {"a.py:Mine": 0.5, "b.py:Mine": 0.6, "erm": 0.5, "ft": 0.4})
    label(record, tmp_path, erm=("X", ""), ft=("X", ""))
    assert all(method == shown.label for method, shown in displays(record).items())


def test_caption_label_notes_and_transposition(record: Record) -> None:
    given = {"columns": ["ood:mean", "seeds"], "caption": "My 5%", "label": "tab:my", "notes": False}
    text = driftline.table(record, "latex", **given)
    assert "\\caption{My 5\\%}\\label{tab:my}" in text
    assert "scriptsize Mean over" not in text
    turned = rows(driftline.table(record, transpose=True, **given))
    assert turned == [
        ["accuracy later (OOD), mean ↑ (%)", "50.0 [40.0, 70.0]", "70.0 [60.0, 90.0]", "60.0 [50.0, 80.0]"],
        ["seeds", "1", "1", "1"],
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metrics": ["odd"]}, "no metric 'odd'. Did you mean 'ood'?"),
        ({"order": "tas"}, "no metric 'tas'"),
        ({"methods": ["emr"]}, "no method 'emr'. Did you mean 'erm'?"),
        ({"columns": ["seed"]}, "no column 'seed'. Did you mean 'seeds'?"),
        ({"precision": 7}, "--precision 7: give 0 to 6 decimals"),
        ({"precision": -1}, "--precision -1: give 0 to 6 decimals"),
        ({"label": "tab:{x}"}, "a label has letters, digits"),
        ({"ranks": True, "order": "ood"}, "--metrics and --order are for tables of results"),
        ({"matrix": True, "methods": ["erm"]}, "--methods cannot select from a matrix"),
        ({"format": "csv", "transpose": True}, "csv has one line for each number"),
        ({"compare": True, "ranks": True}, "give one of them"),
    ],
)
def test_bad_options_are_refused_in_a_sentence(record: Record, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as error:
        driftline.table(record, **options)
    assert message in str(error.value)


def test_csv_keeps_names_and_takes_metrics_and_methods(record: Record) -> None:
    lines = driftline.table(record, "csv", metrics=["ood:min"], methods=["Mine(k=2)"], columns=[]).splitlines()
    assert lines[1].startswith("timeline · digits · mlp,own.py:Mine(k=2),ood,min,0.3,")
    assert len(lines) == 3  # the metric and the compute


def test_a_caption_is_for_one_table(tmp_path: Path) -> None:
    other = {"data__name": "clouds", "run__data": {"name": "clouds", "settings": {}}}
    both = Record([*make(tmp_path, {"erm": 0.5}).runs, *make(tmp_path, {"erm": 0.6}, **other).runs])
    with pytest.raises(UserError, match="these runs make 2: timeline · clouds · mlp; timeline · digits · mlp"):
        driftline.table(both, caption="One")


def test_notes_show_a_method_file_by_its_class(record: Record) -> None:
    table = Table("t", "method", (), (), notes=("own.py:Mine(k=2) wins",), footnotes=("own.py:Mine(k=2) fails",))
    (found,) = relabel([table], displays(record))
    assert (found.notes, found.footnotes) == (("Mine(k=2) wins",), ("Mine(k=2) fails",))
