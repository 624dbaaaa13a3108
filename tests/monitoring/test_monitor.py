"""A monitor finds a change soon and names its date, is quiet without one, and treats late labels as early ones."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.auditing.test_findings import order, verdict
from typer.testing import CliRunner

from driftline.auditing.metric import CLASS_METRICS
from driftline.auditing.shape import Shape
from driftline.auditing.verdict import PairTests
from driftline.cli.commands.monitor import app
from driftline.errors import UserError
from driftline.monitoring import Monitor
from driftline.monitoring.diagnosis import _sentence, diagnose
from driftline.monitoring.models import ModelChoice
from driftline.monitoring.result import BatchResult
from driftline.monitoring.rows import Columns, Rows

pytestmark = pytest.mark.xdist_group("monitor")  # one process makes what all tests share

ROWS, BATCH, CHANGE = 600, 150, 1200


def make_table(change: int = CHANGE, rows: int = 1800, seed: int = 0, numbers: bool = False) -> pd.DataFrame:
    """Return rows whose target follows `a`, and from row `change` on `b`."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, 2))
    z = 3 * np.where(np.arange(rows) < change, x[:, 0], x[:, 1])
    y = z + random.normal(size=rows) if numbers else np.where(random.random(rows) < 1 / (1 + np.exp(-z)), "yes", "no")
    when = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(rows), "h")
    shop = random.choice(["north", "south"], rows)
    return pd.DataFrame({"when": when, "a": x[:, 0], "b": x[:, 1], "shop": shop, "y": y, "row": np.arange(rows)})


def fit(table: pd.DataFrame, **options: object) -> Monitor:
    chosen = {"time": "when", "target": "y", "id": "row", "model": "logistic-regression", **options}
    return Monitor.fit(table[:ROWS], **chosen)  # type: ignore[arg-type]


def batches(table: pd.DataFrame, until: int = 1800) -> list[pd.DataFrame]:
    return [table[k : k + BATCH] for k in range(ROWS, until, BATCH)]


def kinds(results: list[BatchResult]) -> list[list[str]]:
    return [[alarm.kind for alarm in result.alarms] for result in results]


@pytest.fixture(scope="module")
def changed() -> tuple[Monitor, list[BatchResult]]:
    table = make_table()
    monitor = fit(table)
    return monitor, [monitor.check(batch) for batch in batches(table)]


def test_a_change_is_found_within_two_batches_and_dated(changed: tuple[Monitor, list[BatchResult]]) -> None:
    _, results = changed
    before, after = results[:4], results[4:]
    assert kinds(before) == [[]] * 4
    assert "quality" in kinds(after)[0]
    assert "staleness" in kinds(after[:2])[0] + kinds(after[:2])[1]
    named = [result.diagnosis for result in after if result.diagnosis and "changed" in result.diagnosis]
    assert named
    assert "19 Feb 2024" in named[-1] or "20 Feb 2024" in named[-1]  # row 1,200 is of 20 Feb


def test_a_diagnosis_names_what_was_found() -> None:
    strong, calm = PairTests(order(0.002), 0.0005), PairTests(order(0.4), 0.5)
    names = [f"batch {k}" for k in range(6)]

    def sentence(only_inputs: bool = False, is_number: bool = False, **found: object) -> str | None:
        return _sentence(verdict(**found), names, only_inputs, is_number)

    assert sentence() is None
    aged = {"recalibrated": strong, "shape": Shape("uncertain")}
    assert "changes over time, without a single date (p = 0.002)" in str(sentence(**aged))
    assert "Later inputs are new to older models; at equal inputs no change" in str(sentence(True, **aged))
    off = {"recalibrated": calm, "raw": strong}
    assert "Probabilities are off; a changed relation was not found" in str(sentence(**off))
    assert "Level or scale of the target moved" in str(sentence(is_number=True, **off))
    assert "Probabilities" not in str(sentence(is_number=True, **off))


def test_moved_inputs_of_trees_are_not_called_a_changed_relation() -> None:
    """Trees cannot extrapolate: they age where inputs move, although the relation stays."""
    random = np.random.default_rng(0)
    parts = []
    for k in range(8):
        x = random.uniform(k, k + 1.5, 300)
        y = np.where(random.random(300) < 1 / (1 + np.exp(-4 * np.sin(3 * x))), 1.0, 0.0)
        parts.append(Rows(pd.DataFrame({"x": x}), np.arange(300.0) + 300 * k, y))
    columns = Columns("when", "y", None, None, {"x": "number"}, "number", ("no", "yes"))
    said = diagnose(parts, ModelChoice("hist-gradient-boosting", columns, 0), CLASS_METRICS["accuracy"])
    assert said is not None
    assert said.startswith("Later inputs are new to older models")


def test_quality_and_challenger_after_the_change(changed: tuple[Monitor, list[BatchResult]]) -> None:
    last = changed[1][-1]
    assert last.quality is not None
    assert last.challenger is not None
    assert last.tas is not None
    assert last.quality.high < 0.65 < 0.75 < last.challenger.value
    assert last.tas.high < 0.9
    assert last.quality.n == BATCH


def test_estimates_without_labels_follow_inputs_and_miss_a_changed_relation(
    changed: tuple[Monitor, list[BatchResult]],
) -> None:
    before, after = changed[1][3], changed[1][4]
    assert before.estimated is not None
    assert before.quality is not None
    assert before.estimated.value == pytest.approx(before.quality.value, abs=0.08)
    assert before.estimated.error is not None
    assert after.estimated is not None
    assert after.quality is not None
    assert after.estimated.value > after.quality.high + 0.1
    table = make_table(rows=1800, change=99_999)
    monitor = fit(table)
    harder = table[ROWS:][table["a"][ROWS:].abs() < 0.5].drop(columns="y")
    found = monitor.check(harder).estimated
    assert found is not None
    truth = float(((harder["a"] > 0) == (table.loc[harder.index, "y"] == "yes")).mean())
    assert found.value == pytest.approx(truth, abs=0.06)  # and not the 0.82 of all rows
    assert truth < 0.72


def test_without_a_change_there_is_no_alarm() -> None:
    table = make_table(change=99_999, seed=3)
    monitor = fit(table)
    results = [monitor.check(batch) for batch in batches(table)]
    assert kinds(results) == [[]] * len(results)
    assert all(result.tas is not None and result.tas.low < 1 < result.tas.high + 0.02 for result in results)


def test_numbers(tmp_path: Path) -> None:
    table = make_table(numbers=True)
    monitor = fit(table, model="sklearn.linear_model.Ridge")
    results = [monitor.check(batch) for batch in batches(table, 1500)]
    assert kinds(results[:4]) == [[]] * 4
    assert {"quality", "staleness"} <= {kind for found in kinds(results[4:]) for kind in found}
    assert monitor.metric.name == "rmse"
    assert results[-1].quality is not None
    assert results[-1].quality.low > 2 * monitor.watch.reference.quality.high


def test_a_saved_monitor_continues_as_one_that_was_not(tmp_path: Path) -> None:
    table, path = make_table(), tmp_path / "watch.json"
    kept, saved = fit(table), fit(table)
    for batch in batches(table, 1200):
        saved.save(path)
        saved = Monitor.load(path)
        one, other = kept.check(batch), saved.check(batch)
        assert replace(one, checked="") == replace(other, checked="")
    assert json.loads(path.read_text(encoding="utf-8"))["format"] == 2


def test_late_labels_give_the_scores_of_labels_that_come_with_their_rows() -> None:
    table = make_table()
    batch = table[ROWS : ROWS + BATCH]
    at_once, late = fit(table).check(batch), fit(table)
    first = late.check(batch.drop(columns="y"))
    assert (first.labeled, first.quality) == (0, None)
    then = late.check(batch[["row", "y"]].sample(frac=1, random_state=0))
    assert (then.rows, then.labeled) == (0, BATCH)
    for name in ("quality", "challenger", "tas", "paired", "evidence", "labels"):
        assert getattr(then, name) == getattr(at_once, name), name
    assert late.watch.pending == ()


def test_labels_of_some_rows_leave_the_others_waiting() -> None:
    table = make_table()
    monitor = fit(table)
    monitor.check(table[ROWS : ROWS + BATCH].drop(columns="y"))
    result = monitor.check(table[ROWS : ROWS + 50][["row", "y"]])
    assert result.labeled == 50
    assert len(monitor.watch.pending[0]) == BATCH - 50


def test_rows_checked_before_change_nothing(changed: tuple[Monitor, list[BatchResult]]) -> None:
    monitor, results = changed
    before = monitor.watch
    again = monitor.check(make_table()[ROWS : ROWS + BATCH])
    assert again.seen_before
    assert replace(again, seen_before=False) == results[0]
    assert monitor.watch is before


def test_inputs_that_move_twice_raise_an_alarm_and_once_do_not() -> None:
    table = make_table()
    monitor = fit(table)
    moved = [batch.assign(b=batch["b"] + 2, shop="south") for batch in batches(table, 1050)[:2]]
    first, second = (monitor.check(batch) for batch in moved)
    assert [one.name for one in first.moved_inputs] == ["b", "shop"]
    assert not any(alarm.kind == "inputs" for alarm in first.alarms)
    assert [alarm.text for alarm in second.alarms if alarm.kind == "inputs"] == [
        "b, shop moved in two batches in a row"
    ]


def test_logged_predictions_are_watched_without_training_the_deployed_model() -> None:
    table = make_table()
    table["answer"] = np.where(table["a"] > 0, "yes", "no")
    monitor = fit(table, predictions="answer", features=["a", "b"])
    results = [monitor.check(batch) for batch in batches(table, 1500)]
    truth = float((table["answer"] == table["y"])[ROWS : ROWS + BATCH].mean())
    assert results[0].quality is not None
    assert results[0].quality.value == pytest.approx(truth, abs=1e-12)
    assert kinds(results[:4]) == [[]] * 4
    assert {"quality", "staleness"} <= {kind for found in kinds(results[4:]) for kind in found}


def test_memory_does_not_grow_with_the_number_of_batches(tmp_path: Path) -> None:
    table = make_table(rows=600 + 14 * 60, change=99_999)
    monitor = fit(table)
    sizes = []
    for k in range(600, len(table), 60):
        monitor.check(table[k : k + 60])
        sizes.append(sum(len(part) for part in monitor.watch.kept))
    assert len(monitor.watch.kept) == 12
    assert sizes[-1] <= max(sizes[:8]) + 60


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda t: t.drop(columns="a"), "'a'"),
        (lambda t: t[:0], "has no rows"),
        (lambda t: t.assign(when="soon"), "time column 'when'"),
        (lambda t: t.assign(a="many"), "cannot be read as number"),
        (lambda t: t.assign(row=7), "more than once"),
        (lambda t: t[["row", "y"]], "no row waits for a label"),
    ],
)
def test_bad_batches_are_refused_in_a_sentence(changed: tuple[Monitor, list[BatchResult]], change, sentence) -> None:
    table = make_table(rows=700, seed=9)[600:]
    with pytest.raises(UserError, match=sentence):
        changed[0].check(change(table.assign(row=table["row"] + 5000)))


def test_a_class_that_the_reference_lacks_is_counted(changed: tuple[Monitor, list[BatchResult]]) -> None:
    monitor = Monitor(changed[0].watch)
    table = make_table(seed=4)[ROWS : ROWS + BATCH]
    table.loc[table.index[:5], "y"] = "maybe"
    result = monitor.check(table)
    assert result.quality is not None
    assert result.quality.n == BATCH - 5
    assert any("5 labels are classes" in note for note in result.notes)


def test_a_damaged_watch_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "watch.json"
    with pytest.raises(UserError, match="monitor fit"):
        Monitor.load(path)
    for content in ("{}", "[" * 100_000, "nothing"):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(UserError, match="not a watch file"):
            Monitor.load(path)
    fit(make_table()).save(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**content, "evidence": {"quality": ["much"]}}), encoding="utf-8")
    with pytest.raises(UserError, match="not a watch file"):
        Monitor.load(path)


def logged(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with the probability of "yes" that a model of the first relation gives."""
    return table.assign(p=1 / (1 + np.exp(-3 * table["a"])))


def test_logged_probabilities_are_watched_and_keep_their_class(tmp_path: Path) -> None:
    table = logged(make_table()).assign(q=lambda rows: 1 - rows["p"], logged="no")
    table.loc[table["p"] > 0.5, "logged"] = "yes"
    options = {"features": ["a", "b"], "metric": "log-loss"}
    monitor, other = fit(table, probability="p", **options), fit(table, probability="q=no", **options)
    guessed = fit(table, probability="q", predictions="logged", **options)
    assert guessed.watch.columns.probabilities == (("q", "no"),), "as the predictions say"
    other.save(tmp_path / "watch.json")
    other = Monitor.load(tmp_path / "watch.json")
    for batch in batches(table, 1500):
        first, second = monitor.check(batch), other.check(batch)
        assert first.quality is not None
        assert second.quality is not None
        assert first.quality.value == pytest.approx(second.quality.value)
        truth = np.where(batch["y"] == "yes", batch["p"], 1 - batch["p"])
        assert first.quality.value == pytest.approx(-np.log(truth.clip(0.001, 0.999)).mean(), rel=0.01)
    assert any("staleness" in one for one in kinds(list(monitor.history))[4:])
    assert "predictions in p" in repr(monitor)


def test_a_label_counts_from_the_batch_that_reaches_its_time(tmp_path: Path) -> None:
    table = make_table()
    late = table.assign(known=table["when"] + pd.Timedelta(hours=BATCH)).drop(columns="row")
    by_column, by_delay = fit(late, id=None, label_time="known"), fit(late, id=None, delay=f"{BATCH}h")
    assert "known" not in by_column.watch.columns.kinds
    assert by_column.watch.reference.rows == ROWS - BATCH, "the labels of the last rows were not known yet"
    by_column.save(tmp_path / "watch.json")
    by_column = Monitor.load(tmp_path / "watch.json")
    found = [by_column.check(batch) for batch in batches(late)]
    assert [one.labeled for one in found] == [0] + [BATCH] * (len(found) - 1)
    assert all(part.rows.has_label(late["when"].max()).sum() == 0 for part in by_column.watch.pending)
    before = CHANGE // BATCH - ROWS // BATCH
    assert kinds(found)[: before + 1] == [[]] * (before + 1), "the first changed labels come one batch later"
    assert "quality" in kinds(found)[before + 1]
    same = late.drop(columns="known")
    by_delay = fit(same, id=None, delay=f"{BATCH}h")
    assert [by_delay.check(batch).quality for batch in batches(same)] == [one.quality for one in found]


@pytest.mark.parametrize("late", [{"label_time": "known"}, {"delay": f"{2 * BATCH}h"}])
def test_a_row_that_comes_again_with_its_label_waits_until_that_is_known(late: dict[str, str]) -> None:
    table = make_table(rows=1200).assign(known=lambda rows: rows["when"] + pd.Timedelta(hours=2 * BATCH))
    table = table if "label_time" in late else table.drop(columns="known")
    monitor = fit(table, **late)
    found = [monitor.check(table[max(ROWS, k - BATCH) : k + BATCH]) for k in range(ROWS, 1200, BATCH)]
    assert [(one.rows, one.labeled) for one in found] == [(BATCH, 0), (BATCH, 0), (BATCH, BATCH), (BATCH, BATCH)]
    with pytest.raises(UserError, match="has no new rows, and labels that become known later count in a later batch"):
        monitor.check(table[-20:])
    labels = monitor.check(table[-20:][["row", "y"]])
    assert (labels.rows, labels.labeled) == (0, 20), "labels alone are known when they come"


def test_a_delay_in_periods_is_refused() -> None:
    with pytest.raises(UserError, match="a monitor has no periods"):
        fit(make_table(rows=ROWS), delay="2")
    with pytest.raises(UserError, match="delay '': give"):
        fit(make_table(rows=ROWS), delay="")


def test_batches_are_read_as_the_reference_was(tmp_path: Path) -> None:
    table = make_table(rows=750).drop(columns="shop")
    written = {"sep": ";", "decimal": ",", "date_format": "%d.%m.%Y %H:%M", "index": False}
    paths = [tmp_path / "reference.csv", tmp_path / "batch.csv"]
    for path, part in zip(paths, (table[:ROWS], table[ROWS:]), strict=True):
        part.to_csv(path, **written)  # type: ignore[call-overload]
    flags = ["--sep", ";", "--decimal", ",", "--date-format", "%d.%m.%Y %H:%M", "--model", "logistic-regression"]
    command = ["fit", str(paths[0]), "--time", "when", "--target", "y", *flags, "-o", str(tmp_path / "watch.json")]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    monitor = Monitor.load(tmp_path / "watch.json")
    assert monitor.watch.columns.kinds["a"] == "number"
    found, expected = monitor.check(paths[1]), fit(table, id=None).check(table[ROWS:])
    assert (found.first, found.labeled) == (expected.first, expected.labeled)
    assert found.quality == expected.quality
