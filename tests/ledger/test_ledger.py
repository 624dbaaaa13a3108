"""Results on disk, printed numbers against ours, findings, and the page that is made from them."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from driftline.cli.main import main
from driftline.errors import UserError
from driftline.ledger.catalog import Comparison, Finding, Item, Paper
from driftline.ledger.compare import decide, pairs
from driftline.ledger.page import write_page
from driftline.ledger.picture import points, write_picture
from driftline.ledger.results import Header, Result, add_table, read_results
from driftline.version import __version__

SOURCE = "CMR Table 1"  # frozen has a final OEC of 45.8 %


def make_result(
    folder: Path, values: dict[str, list[float]], metric: str = "oec", stat: str = "final"
) -> dict[str, Result]:
    rows = [
        {"method": method, "seed": seed, "metric": metric, "stat": stat, "value": value}
        for method, by_seed in values.items()
        for seed, value in enumerate(by_seed)
    ]
    path = folder / "scores.csv"
    folder.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows).to_csv(path, index=False)
    header = Header(command="driftline table", version=__version__, date="2026-01-01", note="small")
    return {"small": add_table(folder / "results", "small", path, header)}


def one_item(*tests: str, margin: float = 0.0, comparisons: tuple[Comparison, ...] = ()) -> Item:
    findings = tuple(
        Finding(text="A finding", result="small", metric="oec:final", tests=(test,), margin=margin) for test in tests
    )
    return Item(id="X-T1", shows="Something", reason="Smaller.", comparisons=comparisons, findings=findings)


def decisions(item: Item, results: dict[str, Result]) -> list[str]:
    return [one.decision for one in decide(item, results)]


VALUES = {"low": [0.1, 0.12, 0.11], "high": [0.5, 0.53, 0.51], "near": [0.51, 0.51, 0.52], "wild": [0.1, 0.9, 0.6]}


@pytest.mark.parametrize(
    ("test", "margin", "decision"),
    [
        ("high > low", 0.0, "holds"),
        ("low < high", 0.0, "holds"),
        ("low > high", 0.0, "does not hold"),
        ("wild > low", 0.0, "undecided"),
        ("high > low", 0.3, "holds"),
        ("high > low", 0.6, "does not hold"),
        ("low < high", 0.6, "does not hold"),
        ("high > 0.4", 0.0, "holds"),
        ("near = high", 0.05, "holds"),
        ("low = high", 0.05, "does not hold"),
        ("wild = high", 0.05, "undecided"),
    ],
)
def test_a_finding_is_decided_by_its_paired_test(tmp_path: Path, test: str, margin: float, decision: str) -> None:
    assert decisions(one_item(test, margin=margin), make_result(tmp_path, VALUES)) == [decision]


def test_two_seeds_decide_nothing(tmp_path: Path) -> None:
    results = make_result(tmp_path, {"low": [0.1, 0.101], "high": [0.9, 0.901]})
    assert decisions(one_item("high > low"), results) == ["undecided"]


def test_the_tests_of_an_item_are_corrected_together(tmp_path: Path) -> None:
    """p = .03 alone; with a second test of the same table it is .06."""
    results = make_result(tmp_path, {"a": [0.0, 0.0, 0.0], "b": [0.012, 0.02, 0.025], "c": [-0.2, 0.2, 0.01]})
    assert decisions(one_item("b > a"), results) == ["holds"]
    assert decisions(one_item("b > a", "c > a"), results) == ["undecided", "undecided"]


def test_an_unknown_method_of_a_test_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no method with oec:final in small 'hgh'\. Did you mean 'high'"):
        decide(one_item("hgh > low"), make_result(tmp_path, VALUES))


def test_a_finding_waits_for_runs_that_are_missing(tmp_path: Path) -> None:
    results = make_result(tmp_path, {"erm-all": [0.1, 0.12, 0.11], "si": [0.5, 0.53, 0.51]})
    card = results["small"].folder / "card.json"
    card.write_text(json.dumps({"shared": {"run": {"benchmark": "timeline"}}}))
    header = results["small"].folder / "result.json"
    missing = {"missing": ["ft(updates=5) seed 0", "ft(updates=5) seed 1", "si seed 3"]}
    header.write_text(json.dumps({**json.loads(header.read_text()), **missing}))
    results = read_results(tmp_path / "results")
    assert decisions(one_item("ft > erm-all", "si > erm-all"), results) == ["holds"], "ft was not run yet"
    with pytest.raises(UserError, match="no method"):
        decide(one_item("swa > erm-all"), results)


def test_printed_numbers_are_those_of_the_same_method_and_metric(tmp_path: Path) -> None:
    results = make_result(tmp_path, {"frozen": [0.4, 0.5, 0.6], "unprinted": [0.1, 0.1, 0.1]})
    comparison = Comparison(result="small", scale="substitute", source=SOURCE, metrics=("oec:final", "ukr:final"))
    (pair,) = pairs(comparison, results)
    assert pair.method == "frozen"
    assert pair.printed == pytest.approx(0.4579, abs=5e-4)
    assert pair.ours.value == pytest.approx(0.5)
    half = 4.302653 * 0.1 / math.sqrt(3)  # t quantile with 2 degrees of freedom
    assert (pair.ours.low, pair.ours.high) == pytest.approx((0.5 - half, 0.5 + half), abs=1e-5)
    assert pair.difference == pytest.approx(0.5 - pair.printed)


def test_another_metric_can_stand_for_a_printed_one(tmp_path: Path) -> None:
    results = make_result(tmp_path, {"frozen": [0.4, 0.5, 0.6]}, metric="ukr-before")
    instead = {"ukr:final": "ukr-before:final"}
    comparison = Comparison(result="small", scale="own", source=SOURCE, metrics=("ukr:final",), instead=instead)
    (pair,) = pairs(comparison, results)
    assert pair.metric == "ukr"
    assert pair.printed == pytest.approx(0.803, abs=1e-3)


def test_a_counterpart_stands_for_a_printed_method(tmp_path: Path) -> None:
    results = make_result(tmp_path, {"frozen": [0.4, 0.5, 0.6], "still": [0.1, 0.2, 0.3]})
    common = {"result": "small", "scale": "own", "source": SOURCE, "metrics": ("oec:final",)}
    (pair,) = pairs(Comparison(**common, counterparts={"frozen": "still"}), results)
    assert (pair.method, pair.ours.value) == ("still", pytest.approx(0.2))
    assert pair.printed == pytest.approx(0.4579, abs=5e-4)


def test_a_part_of_a_result_is_named_with_its_setting(tmp_path: Path) -> None:
    results = make_result(tmp_path, {"frozen": [0.4, 0.5, 0.6]})
    path = results["small"].folder / "scores.csv"
    scores = pd.read_csv(path)
    pd.concat([scores.assign(setting="first"), scores.assign(setting="second", value=0.7)]).to_csv(path, index=False)
    both = tuple(
        Comparison(result="small", scale="own", metrics=("oec:final",), setting=name) for name in ("first", "second")
    )
    text = write_page(
        [Paper(name="Paper", order=1, items=(one_item(comparisons=both),))], read_results(tmp_path / "results")
    )
    first, second = text.split("From `")[1:3]
    assert first.startswith("small`, first, (the paper's own scale: small)")
    assert "50.0" in first
    assert "70.0" in second


def test_a_finding_can_compare_two_settings(tmp_path: Path) -> None:
    results = make_result(tmp_path, {"ft": [0.4, 0.5, 0.6]})
    path = results["small"].folder / "scores.csv"
    scores = pd.read_csv(path)
    short = scores.assign(setting="short", value=scores["value"] + [0.3, 0.3, 0.31])
    pd.concat([scores.assign(setting="long"), short]).to_csv(path, index=False)
    common = {"text": "Longer is worse", "result": "small", "metric": "oec:final", "tests": ("ft < ft",)}
    finding = Finding(**common, setting="long", other_setting="short")
    item = Item(id="X-T1", shows="Something", reason="Smaller.", findings=(finding,))
    (decided,) = decide(item, read_results(tmp_path / "results"))
    assert decided.decision == "holds"
    assert decided.tests[0].difference.value == pytest.approx(-0.91 / 3)


def test_huge_numbers_have_three_digits(tmp_path: Path) -> None:
    results = make_result(tmp_path, {"frozen": [5.7173e15]}, metric="macs")
    comparison = Comparison(result="small", scale="own", metrics=("macs:final",))
    text = write_page([Paper(name="Paper", order=1, items=(one_item(comparisons=(comparison,)),))], results)
    assert "| frozen | 5.72e+15 |" in text


def test_the_page_and_the_picture_show_what_the_results_have(tmp_path: Path) -> None:
    comparison = Comparison(result="small", scale="substitute", source=SOURCE, metrics=("oec:final",))
    items = (
        one_item("frozen > 0.1", comparisons=(comparison,)),
        Item(id="X-F1", shows="A drawing", status="nothing to run", reason="A drawing."),
        Item(id="X-F3", shows="A picture", status="drawn", reason="`driftline figure curves`."),
        Item(id="X-F2", shows="A curve", reason="Long.", cost="2 CPU days"),
    )
    papers = [Paper(name="Paper", order=1, items=items)]
    results = make_result(tmp_path, {"frozen": [0.4, 0.5, 0.6]})
    text = write_page(papers, results)
    assert "| frozen | 45.8 / 50.0 [25.2, 74.8]; +4.2 |" in text
    assert "| Paper | 1 | 3 | 1 | 0 | 1 | 1 | 0 | 1 | 1 | 1 | 0 | 0 |" in text
    assert "| X-F2 | A curve | – | not run | – | – | Long. (2 CPU days) |" in text
    assert "| [X-T1](#x-t1) | A finding | **holds** |" in text
    write_picture(papers, results, tmp_path / "ledger.svg")
    (line,) = re.findall(r"<line[^>]*stroke-dasharray[^>]*>", (tmp_path / "ledger.svg").read_text())
    x, y = (float(re.findall(rf' {end}="(-?[\d.]+)"', line)[0]) for end in ("x2", "y2"))
    assert abs(x) == pytest.approx(abs(y)), "the line of equal numbers goes from corner to corner"
    assert abs(x) > 100
    (point,) = points(papers, results).to_dict("records")
    assert (point["item"], point["ours"]) == ("X-T1", pytest.approx(0.5))


def test_published_names_find_methods_with_settings_unless_two_have_them(tmp_path: Path) -> None:
    results = make_result(tmp_path, {"ft(updates=5)": [0.5, 0.52, 0.51], "erm-all": [0.1, 0.11, 0.12]})
    card = results["small"].folder / "card.json"
    card.write_text(json.dumps({"shared": {"run": {"benchmark": "timeline"}}}))
    assert decisions(one_item("ft > erm-all"), results) == ["holds"]
    results = make_result(tmp_path, {"ft(updates=5)": [0.5, 0.5, 0.5], "ft(updates=6)": [0.1, 0.1, 0.1]})
    with pytest.raises(UserError, match="several methods that are published as ft"):
        decide(one_item("ft > 0"), results)


def test_stale_results_are_those_of_other_revisions_or_versions(tmp_path: Path) -> None:
    result = make_result(tmp_path, VALUES)["small"]
    assert Result("small", result.folder).stale == ""
    header = json.loads((result.folder / "result.json").read_text())
    (result.folder / "result.json").write_text(json.dumps({**header, "version": "0.0.1"}))
    assert Result("small", result.folder).stale == f"version 0.0.1 → {__version__}"
    card = {
        "shared": {"code": {"revisions": {"loop": 1}}},
        "methods": {"er": {"code": {"score_revisions": {"metrics": 7}}}},
    }
    (result.folder / "card.json").write_text(json.dumps(card))
    assert Result("small", result.folder).stale == "metrics 7 → 1"


@pytest.fixture
def ledger(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Run `driftline ledger`; its exit code and what it prints."""

    def command(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["driftline", "ledger", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        return int(end.value.code or 0), "".join(capsys.readouterr())

    return command


def test_scores_are_added_and_listed_from_the_command_line(
    tmp_path: Path, ledger: Callable[..., tuple[int, str]]
) -> None:
    scores, results = tmp_path / "scores.csv", tmp_path / "results"
    scores.write_text("method,seed,metric,value\na,0,samples,3.123456789\n")
    add = ["add", str(scores), "--name", "counts/one", "--results", str(results)]
    code, text = ledger(*add)
    assert code != 0
    assert "give --recipe, or --command with the exact command" in text
    assert ledger(*add, "--command", "python count.py")[0] == 0
    assert ledger("--results", str(results), "--stale") == (0, "0 of 1 result(s) were made by other code\n")
    (found,) = read_results(results).values()
    assert (found.name, found.header.command, found.header.version) == ("counts/one", "python count.py", __version__)
    assert found.scores["value"].tolist() == [3.12346], "six digits are enough"


FIGURE = """\
panel,method,seed,s,statistics,accuracy,n
p,ft,0,0.0,own,0.2,50
p,ft,0,0.0,redone,0.3,50
p,ft,0,1.0,own,,50
"""


def test_numbers_of_a_figure_can_be_added(tmp_path: Path, ledger: Callable[..., tuple[int, str]]) -> None:
    (tmp_path / "path.csv").write_text(FIGURE)
    add = ["add", str(tmp_path / "path.csv"), "--name", "path", "--command", "c", "--results", str(tmp_path / "all")]
    columns = ["--value", "accuracy", "--by", "statistics,s"]
    assert ledger(*add, *columns, "--metric", "final-accuracy")[0] == 0
    scores = read_results(tmp_path / "all")["path"].scores
    assert scores["metric"].unique().tolist() == ["final-accuracy"]
    assert dict(zip(scores["stat"], scores["value"], strict=True)) == {"own, 0.0": 0.2, "redone, 0.0": 0.3}
    assert ledger(*add, "--value", "accuracy,n", "--by", "statistics,s")[0] == 0
    scores = read_results(tmp_path / "all")["path"].scores
    assert scores["metric"].value_counts().to_dict() == {"accuracy": 2, "n": 3}
    assert ledger(*add, "--value", "accuracy")[0] != 0, "two values of one seed"
    assert ledger(*add, *columns, "--metric", "a,b")[0] != 0, "two names for one column"
    code, text = ledger(*add, "--value", "loss")
    assert code != 0
    assert "path.csv has no column loss: it has the columns panel, method, seed" in " ".join(text.split())
    code, text = ledger(*add, "--by", "s")
    assert code != 0
    assert "give their column with --value" in " ".join(text.split())


def test_a_name_cannot_leave_the_folder_of_results(tmp_path: Path, ledger: Callable[..., tuple[int, str]]) -> None:
    code, text = ledger("add", str(tmp_path), "--name", "../x", "--command", "c")
    assert code != 0
    assert "give a path inside of the results" in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("method,seed,value\na,0,1\n", "has no column metric"),
        ("method,seed,metric,value\na,0,m,x\n", "the column value must hold numbers"),
        ("method,seed,metric,value\na,0,m,1\na,0,m,2\n", "two values of m for a, seed 0"),
    ],
)
def test_scores_that_cannot_be_used_are_refused(tmp_path: Path, text: str, message: str) -> None:
    scores = tmp_path / "scores.csv"
    scores.write_text(text)
    with pytest.raises(UserError, match=message):
        add_table(tmp_path, "x", scores, Header(command="c", version="1", date="2026-01-01"))
