import csv
import io
import math
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from driftline.benchmarks.test_time.benchmark import Options as StreamOptions
from driftline.errors import UserError
from driftline.record.card import write_card
from driftline.record.run import Record, Run
from driftline.report.analysis.aggregate import best_or_tied, clip_interval
from driftline.report.analysis.estimates import Estimate, estimates, mean_of
from driftline.report.analysis.groups import groups
from driftline.report.analysis.result_table import ResultTable, Score
from driftline.report.analysis.selected_settings import selected_settings
from driftline.report.page.page import page
from driftline.report.tables import make
from driftline.revisions import RAISED

from ..conftest import render_results, results, summary_rows, write_run

Make = Callable[..., Record]
T2 = 4.302652729911275  # the 97.5% point of Student's t with two degrees of freedom


def ood(table: ResultTable, method: str) -> Score:
    cell = table.cell(method, "ood", "mean")
    assert cell is not None
    return cell


def test_mean_and_t_interval_over_seeds_by_hand(make_record: Make) -> None:
    (table,) = results(make_record({"erm": [0.50, 0.60, 0.70]}))
    cell = ood(table, "erm")
    half = T2 * 0.1 / math.sqrt(3)
    assert (cell.value, cell.low, cell.high) == pytest.approx((0.6, 0.6 - half, 0.6 + half))
    assert (cell.interval, cell.seeds, cell.n, cell.unit) == ("seeds", 3, 2, "times")
    assert table.rows[0].gmac == pytest.approx(1.5)


def test_one_seed_keeps_its_own_interval_and_nothing_is_marked(make_record: Make) -> None:
    record = make_record({"erm": [0.5], "ft": [0.6]})
    (table,) = results(record)
    cell = ood(table, "ft")
    assert (cell.value, cell.low, cell.high, cell.interval) == (
        0.6,
        pytest.approx(0.5),
        pytest.approx(0.8),
        "test examples",
    )
    text = render_results([table], "md")
    assert "**" not in text
    assert "95% interval over test examples (one seed)" in text
    assert "that needs at least three seeds" in text


def test_one_seed_of_a_stream_says_that_blocks_of_batches_were_drawn(tmp_path: Path) -> None:
    changes = {"run__benchmark": "test-time", "run__options": StreamOptions().model_dump(mode="json"), "metrics": {}}
    run = write_run(tmp_path, "frozen", 0, summary_rows({("stream-accuracy", "mean"): 0.5}), **changes)
    text = render_results(results(Record([run])), "md")
    assert "95% interval over blocks of consecutive batches (one seed)" in text
    assert "test examples" not in text


def test_the_false_alarm_rate_stands_beside_a_horizon_everywhere(tmp_path: Path) -> None:
    numbers = {("ood", "mean"): 0.8, ("dh", "mean"): 4.5}
    runs = []
    for seed, rate in ((0, 0.02), (1, 0.04)):
        rows = [*summary_rows(numbers), ("dh", "false-alarm", None, None, rate, math.nan, math.nan, 9, "times")]
        runs.append(write_run(tmp_path, "erm", seed, rows))
    record = Record(runs)
    (table,) = results(record)
    cell = table.cell("erm", "dh", "mean")
    assert cell is not None
    assert cell.false_alarm == pytest.approx(0.03)
    assert "4.50 [4.50, 4.50] FA 3% |" in render_results([table], "md")
    assert "FA 3\\%" in render_results([table], "latex")
    assert [row["false_alarm"] for row in csv.DictReader(io.StringIO(render_results([table], "csv")))] == [
        "",
        "0.03",
        "",
    ]
    assert "FA: false-alarm rate, the share of models whose horizon would end" in render_results([table], "md")


def test_a_seed_without_a_value_is_left_out(make_record: Make) -> None:
    (table,) = results(make_record({"erm": [0.5, math.nan], "ft": [math.nan, math.nan]}))
    cell = ood(table, "erm")
    assert (cell.value, cell.low, cell.interval, cell.seeds) == (0.5, pytest.approx(0.4), "test examples", 1)
    assert table.cell("ft", "ood", "mean") is None


def by_seed(**methods: list[float]) -> dict[str, dict[int, float]]:
    return {method: dict(enumerate(values)) for method, values in methods.items()}


def test_paired_differences_tell_apart_what_an_unpaired_test_would_not() -> None:
    """Seeds differ much, but ft is better than erm by nearly the same amount on each."""
    erm, ft = [0.30, 0.50, 0.70], [0.32, 0.521, 0.72]
    assert stats.ttest_ind(erm, ft, equal_var=False).pvalue > 0.9
    assert best_or_tied(by_seed(erm=erm, ft=ft), "higher") == {"ft"}
    assert best_or_tied(by_seed(erm=erm, ft=ft), "lower") == {"erm"}


def test_paired_differences_tie_what_an_unpaired_test_would_part() -> None:
    """The seed that suits one method harms the other, so their difference is uncertain."""
    erm, ft = [0.50, 0.54, 0.58], [0.74, 0.68, 0.62]
    assert stats.ttest_ind(erm, ft, equal_var=False).pvalue < 0.05
    assert best_or_tied(by_seed(erm=erm, ft=ft), "higher") == {"erm", "ft"}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (by_seed(erm=[0.5, 0.6, 0.7]), set()),
        (by_seed(erm=[0.5, 0.6, 0.7], ft=[0.9, 0.8, np.nan]), set()),
        (by_seed(erm=[0.5, 0.6, 0.7], ft=[0.4, np.nan, np.nan]), {"erm"}),
        (by_seed(erm=[0.5, 0.6, 0.7], ft=[0.5, 0.6, 0.7]), {"erm", "ft"}),
        (by_seed(erm=[0.1 + 0.2, 0.6, 0.7], ft=[0.3, 0.6, 0.7]), {"erm", "ft"}),
        (by_seed(erm=[np.nan, np.nan], ft=[np.nan, np.nan]), set()),
    ],
    ids=["alone", "best has two seeds", "one common seed", "equal", "equal but for a bit", "unknown"],
)
def test_leaders_at_the_edges(values: dict[str, dict[int, float]], expected: set[str]) -> None:
    assert best_or_tied(values, "higher") == expected


def test_holm_keeps_what_a_single_test_would_drop() -> None:
    """erm is .04 from best by its own test; among three comparisons that is no longer telling."""
    best, erm = [0.70, 0.72, 0.74, 0.80], [0.69, 0.69, 0.71, 0.79]
    far, level = [0.50, 0.51, 0.55, 0.58], [0.70, 0.71, 0.75, 0.79]
    assert stats.ttest_rel(best, erm).pvalue == pytest.approx(0.0405, abs=1e-4)
    assert best_or_tied(by_seed(best=best, erm=erm), "higher") == {"best"}
    assert best_or_tied(by_seed(best=best, erm=erm, far=far, level=level), "higher") == {"best", "erm", "level"}


def test_seeds_that_one_method_lacks_do_not_enter_its_comparison() -> None:
    """ft has the easy seeds 2 to 4 only. Its mean is best, but on these erm is better each time, so both lead."""
    erm, ft = {0: 0.1, 1: 0.1, 2: 0.80, 3: 0.81, 4: 0.82}, {2: 0.70, 3: 0.71, 4: 0.72}
    assert best_or_tied({"erm": erm, "ft": ft}, "higher") == {"erm", "ft"}
    assert best_or_tied({"erm": {s: erm[s] for s in ft}, "ft": ft}, "higher") == {"erm"}


@given(st.integers(0, 200), st.randoms(use_true_random=False))
def test_leaders_do_not_depend_on_the_order_of_methods(seed: int, random: Random) -> None:
    rng = np.random.default_rng(seed)
    values = by_seed(**{f"m{k}": (rng.normal(size=4) + k / 2).tolist() for k in range(5)})
    names = list(values)
    random.shuffle(names)
    assert best_or_tied({name: values[name] for name in names}, "higher") == best_or_tied(values, "higher")


def test_an_unknown_end_of_an_interval_is_not_cut_to_what_is_possible(make_record: Make) -> None:
    assert clip_interval(-0.2, 1.2) == (0.0, 1.0)
    assert np.isnan(clip_interval(math.nan, math.nan)).all()
    record = make_record({"erm": [0.5]})
    (group,) = groups(record)
    group.summary.loc[:, ["low", "high"]] = math.nan
    assert math.isnan(estimates(group, "ood")["erm"].low)


def test_a_mean_over_cells_says_the_least_that_is_behind_it() -> None:
    cells = [
        Estimate(0.5, 0.4, 0.6, seeds=2, n=64, unit="examples", by_seed={0: 0.4, 1: 0.6}),
        Estimate(0.7, 0.6, 0.8, seeds=1, n=32, unit="examples", by_seed={0: 0.7}),
    ]
    entry = mean_of(cells)
    assert entry is not None
    assert (entry.value, entry.seeds, entry.n, entry.cells) == (pytest.approx(0.6), 1, 32, 2)
    assert math.isnan(entry.low)


@pytest.fixture
def golden(make_record: Make, monkeypatch: pytest.MonkeyPatch) -> tuple[ResultTable, ...]:
    from driftline.benchmarks.timeline.benchmark import Timeline

    monkeypatch.setattr(Timeline, "headline_metrics", (("ood", "mean"), ("sh", "mean"), ("dh", "mean")), raising=False)
    return results(make_record({"erm": [0.5, 0.6, 0.7], "a|b_[50%]": [0.7, 0.8, 0.9]}))


def test_csv_is_tidy_and_exact(golden: tuple[ResultTable, ...]) -> None:
    rows = list(csv.DictReader(io.StringIO(render_results(golden, "csv"))))
    assert list(rows[0]) == [
        "group",
        "method",
        "metric",
        "stat",
        "value",
        "low",
        "high",
        "interval",
        "seeds",
        "n",
        "unit",
        "best",
        "false_alarm",
    ]
    assert [row["best"] for row in rows] == ["1", "1", "0", "0", "0", "0"]
    assert [(row["method"], row["metric"]) for row in rows] == [
        (method, metric) for method in ("a|b_[50%]", "erm") for metric in ("ood", "sh", "gmac")
    ]
    erm = rows[3]
    assert (erm["stat"], erm["interval"], erm["seeds"], erm["n"], erm["unit"]) == ("mean", "seeds", "3", "2", "times")
    cell = ood(golden[0], "erm")
    assert (float(erm["value"]), float(erm["low"]), float(erm["high"])) == (cell.value, cell.low, cell.high)
    assert (rows[5]["value"], rows[5]["low"], rows[5]["unit"]) == ("1.5", "", "runs")


def test_uncounted_compute_is_a_dash(make_record: Make) -> None:
    tables = results(make_record({"erm": [0.5]}, compute={"forward_macs": None, "backward_macs": None}))
    assert "| – | 1 |" in render_results(tables, "md")
    assert "GMAC –: not counted." in render_results(tables, "md")
    assert "gmac" not in render_results(tables, "csv")


def test_one_table_per_group(make_record: Make) -> None:
    one = make_record({"erm": [0.5]})
    other = make_record({"erm": [0.5]}, run__options={"delta": 0.8, "horizon": None})
    text = render_results(results(Record([*one.runs, *other.runs])), "md")
    assert text.count("### timeline") == 2


def test_runs_of_other_versions_share_a_table_unless_a_revision_differs(
    make_record: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = make_record({"erm": [0.5]}, code__revisions={"training": 1}, code__driftline="0.1")
    other = make_record({"ft": [0.5]}, code__revisions={"training": 1}, code__driftline="0.2")
    record = Record([*one.runs, *other.runs])
    assert len(results(record)) == 1
    assert "Caution" not in render_results(results(record), "md")
    monkeypatch.setitem(RAISED, "training", 2)
    newer = make_record({"erm-all": [0.5]}, code__revisions={"training": 2})
    text = render_results(results(Record([*record.runs, *newer.runs])), "md")
    assert text.count("Caution: these numbers are out of date (training 1 → 2). Run the same command again.") == 1
    assert "revision of training=1" in text


def test_unknown_format_names_the_known_ones(make_record: Make) -> None:
    with pytest.raises(UserError, match=r"no format 'latx'\. Did you mean 'latex'"):
        render_results(results(make_record({"erm": [0.5]})), "latx")


SEARCH = {
    **{"candidates": [{"lr": 0.1}, {"lr": 0.2}], "seeds": [0, 1, 2], "metrics": [["ood", "mean"]]},
    **{"tie_break": "smaller-lr", "repeats": 1},
}
CHOSEN = {
    "selection": "...",
    "trials": 5,
    "skipped_runs": 1,
    "chosen": [{"lr": 0.2, "score": 0.5}],
    **{"runner_up": {"lr": 0.1, "score": 0.504}, "margin": -0.004, "margin_se": 0.016, "within_noise": True},
    "tried": [{"lr": 0.1, "score": None, "out": "failed: no"}, {"lr": 0.2, "score": 0.5}],
}


def searched(make_record: Make, rule: str) -> ResultTable:
    """Method x, the best of three, selected its settings by this rule."""
    base = make_record({"y": [0.5, 0.6, 0.55], "z": [0.3, 0.31, 0.3]})
    protocol = {**base.runs[0].card.protocol, **CHOSEN}
    compute = {**base.runs[0].card.compute.to_dict(), "search_macs": 2_000_000_000}
    changes = {"run__search": {**SEARCH, "rule": rule}, "protocol": protocol, "compute": compute}
    other = make_record({"x": [0.9, 0.91, 0.92]}, **changes)
    (table,) = results(Record([*base.runs, *other.runs]))
    return table


def test_selected_settings_and_their_cost_follow_the_results(make_record: Make) -> None:
    table = searched(make_record, "validation-streams")
    noise = "lr=0.1 | -0.004 | 0.016 | within noise"
    text = render_results([table], "md")
    assert f"| x | validation-streams | lr=0.2 | {noise} | 2 (1 failed) | 5 | 1 | 2 |" in text
    assert "Selected within noise" in text
    assert "runs: x. There the smaller learning rate decides" in text
    line = f"{{}}x & validation-streams & lr=0.2 & {noise.replace('|', '&')} & 2 (1 failed) & 5 & 1 & 2 \\\\"
    assert line in render_results([table], "latex").replace("$-$", "-")
    rows = [
        row
        for row in csv.DictReader(io.StringIO(render_results([table], "csv")))
        if row["metric"].startswith("selection")
    ]
    assert {row["stat"]: row["value"] for row in rows} == {
        "selected lr": "0.2",
        "runner-up lr": "0.1",
        "margin": "-0.004",
        "margin SE": "0.016",
        "within noise": "1",
        "candidates": "2",
        "search runs": "5",
        "skipped": "1",
        "gmac": "2.0",
    }
    assert ood(table, "x").best
    plain = render_results(results(make_record({"y": [0.5, 0.6, 0.55]})), "md")
    assert "GMAC to select" not in plain


def test_repeated_selections_are_one_row_that_counts_those_within_noise(make_record: Make) -> None:
    """Three seeds, each with a selection of its own: two chose 0.2, one 0.1, and one was within noise."""
    runs = []
    for k, (lr, noisy) in enumerate(((0.2, False), (0.1, True), (0.2, False))):
        protocol = {
            **make_record({"x": [0.9]}).runs[0].card.protocol,
            **CHOSEN,
            **{"chosen": [{"lr": lr, "score": 0.5}], "runner_up": {"lr": 0.3 - lr, "score": 0.4}},
            **{"margin": 0.03 * k, "margin_se": 0.02, "within_noise": noisy},
        }
        search = {**SEARCH, "rule": "validation-streams", "seeds": [3 * k, 3 * k + 1, 3 * k + 2], "repeats": 3}
        runs.append(make_record({"x": [0.9, 0.91, 0.92]}, protocol=protocol, run__search=search).runs[k])
    (table,) = results(Record(runs))
    (row,) = selected_settings(table.group)
    assert row.settings == {"lr": "0.2 (2 seeds) or 0.1 (1)"}
    assert row.certainty == "within noise in 1 of 3"
    assert (row.runs, row.skipped) == (15, 3)
    assert row.margin == pytest.approx(0.03)
    assert row.margin_se == pytest.approx(0.02)
    assert "the interval over seeds includes the noise of the selection" in render_results([table], "md")


def test_compute_beyond_twice_the_median_is_noted_for_methods_that_train(make_record: Make) -> None:
    """GMAC 1, 2, 3 and 7 have a lower median of 2: only the last has more than 4. A frozen model is not counted."""
    runs = []
    for label, forward, backward in (
        ("frozen", 10**8, 0),
        ("a", 5 * 10**8, 5 * 10**8),
        ("b", 10**9, 10**9),
        ("c", 10**9, 2 * 10**9),
        ("d", 3 * 10**9, 4 * 10**9),
    ):
        compute = {"forward_macs": forward, "backward_macs": backward}
        runs += make_record({label: [0.5]}, compute=compute).runs
    (table,) = results(Record(runs))
    text = render_results([table], "md")
    assert "Caution, unequal compute: d has 3.5 times the median of the methods that train (2 GMAC)." in text
    (fair,) = results(Record(runs[:-1]))
    assert "unequal compute" not in render_results([fair], "md")
    (pair,) = results(Record([runs[1], runs[4]]))
    assert "d has 7 times the median of the methods that train (1 GMAC)" in render_results([pair], "md")


def test_tables_of_runs_at_one_budget_leave_out_the_others(make_record: Make) -> None:
    spent = [{"forward_macs": 9 * 10**8, "backward_macs": macs} for macs in (2 * 10**8, 6 * 10**8)]
    cut, free = make_record({"x": [0.5]}, run__budget_macs=10**9, compute=spent[0]), make_record({"y": [0.6]})
    both = Record([*cut.runs, *free.runs])
    assert len(results(both)) == 2, "runs with and without a budget are not comparable"
    text = make.table(both, budget_macs=1e9)
    assert "| x |" in text
    assert "| y |" not in text
    assert "Equal compute: training was stopped where a run had spent its budget of 1 GMAC" in text
    assert "over the budget" not in text
    more = make_record({"z": [0.7]}, run__budget_macs=10**9, compute=spent[1])
    text = make.table(Record([*cut.runs, *more.runs]), budget_macs=1e9)
    assert "Caution, over the budget: z spent 1.5 times as much. No budget cuts answers" in text
    with pytest.raises(UserError, match=r"no run has this budget; there are runs with 1e\+09"):
        make.table(both, budget_macs=2e9)


def test_selections_within_runs_are_listed_too(make_record: Make) -> None:
    base = make_record({"y": [0.5, 0.6, 0.55]})
    protocol = {**base.runs[0].card.protocol, "selection": "validation-split: the best of each", "trials": 4}
    options = {**base.runs[0].card.run.options, "lr": [0.1, 0.2], "weight_decay": [0.0], "dropout": [0.0]}
    runs = []
    for k, lr in enumerate((0.1, 0.2, 0.2)):
        selected = {**protocol, "chosen": [{"lr": 0.3, "score": 0.1}, {"lr": lr, "score": 0.9}]}
        runs.append(make_record({"x": [0.9, 0.91, 0.92]}, protocol=selected, run__options=options).runs[k])
    (table,) = results(Record(runs))
    line = "x | validation-split | lr=0.2 (2 seeds) or 0.1 (1) | – | – | – | – | 4 | 12 | 0 | –"
    assert f"| {line} |" in render_results([table], "md")
    assert "selection by validation-split,selected lr,0.2 (2 seeds) or 0.1 (1)" in render_results([table], "csv")
    assert "validation-split & lr=0.2 (2 seeds) or 0.1 (1)" in render_results([table], "latex")


def test_settings_selected_on_the_test_are_marked_and_not_ranked(make_record: Make) -> None:
    table = searched(make_record, "oracle")
    assert [row.method for row in table.rows] == ["x (settings by ORACLE)", "y", "z"]
    assert not ood(table, "x (settings by ORACLE)").best
    assert ood(table, "y").best
    for format in ("md", "latex", "csv"):
        assert "x (settings by ORACLE)" in render_results([table], format)
    assert "which no user could do" in render_results([table], "md")
    assert "selected on the test are not ranked" in render_results([table], "latex")


def test_the_page_shows_selected_settings_with_names_escaped(make_record: Make) -> None:
    table = searched(make_record, "oracle")
    runs = [replace_label(run, "<b>x") for run in table.group.runs if run.method == "x"]
    text = page(Record(runs))
    assert "<summary>Selected settings" in text
    noise = ["lr=0.1", "-0.004", "0.016", "within noise"]
    cells = ["ORACLE (the test itself)", "lr=0.2", *noise, "2 (1 failed)", "5", "1", "2"]
    row = f'<th scope="row">&lt;b&gt;x (settings by ORACLE)</th>{"".join(f"<td>{cell}</td>" for cell in cells)}'
    assert row in text


def replace_label(run: Run, label: str) -> Run:
    """The same run under another name."""
    write_card(run.folder, run.card.model_copy(update={"label": label}))
    return Run(run.folder)
