"""The index is what reading the runs gives, whatever happened to them or to it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import patch

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from driftline.io.checksums import write_checked
from driftline.record import index_part
from driftline.record.card import Card, CodeVersion, ComputeCard, RunSettings, write_card
from driftline.record.parquet import write_rows
from driftline.record.run import FRAMES, RUNTIME, Record, Run, drop_damaged, runs_in
from driftline.store import check, index
from driftline.store.store import Store

TABLES = ("scores", "trivial_scores", "summary", "censored")
START = datetime(2026, 1, 1, tzinfo=UTC)


def scores(values: list[float], censored: bool = False) -> pa.Table:
    """Scores, the first of which summarizes the others."""
    columns = {
        "metric": ["sh"] * len(values),
        "stat": ["mean", *["each"] * (len(values) - 1)],
        "time": [None, *[str(k) for k in range(1, len(values))]],
        "value": values,
    }
    return pa.table(columns | ({"censored": [False, *[True] * (len(values) - 1)]} if censored else {}))


def write_run(folder: Path, name: str, values: list[float], **changes: bool) -> None:
    """Put a run in place as a driver does: in a folder of its own, then by one rename."""
    final = folder / "work" / name / "final"
    final.mkdir(parents=True)
    write_rows(final / "answers.parquet", [pa.table({"prediction": values})])
    write_rows(final / "scores.parquet", [scores(values, changes.get("censored", False))])
    if changes.get("trivial"):
        write_rows(final / "trivial_scores.parquet", [scores(values[:1])])
    card = Card(
        key=name,
        label=f"method-{len(values) % 3}",
        run=RunSettings(benchmark="timeline", seed=int(values[0])),
        protocol={"chosen": values} if changes.get("chosen") else {},
        compute=ComputeCard(forward_macs=len(values)),
        code=CodeVersion(score_revisions={"metrics.temporal": len(values)}),
    )
    write_card(final, card)
    write_checked(final / RUNTIME, {"finished": (START + timedelta(seconds=values[0])).isoformat()})
    Store(folder).commit(name, final)


def assert_equal(indexed: list[Run], direct: list[Run]) -> None:
    """Compare all that commands read."""
    for one, other in zip(indexed, direct, strict=True):
        assert one.folder == other.folder
        assert one.card == other.card
        assert one.card.to_dict() == other.card.to_dict()
        assert (one.key, one.seed, one.method, one.is_final) == (other.key, other.seed, other.method, other.is_final)
        assert (one.common_text, one.finished_at) == (other.common_text, other.finished_at)
        assert (one.compute, one.protocol) == (other.compute, other.protocol)
        assert [one.rows(name) for name in FRAMES] == [other.rows(name) for name in FRAMES]
    for table in TABLES:
        pd.testing.assert_frame_equal(getattr(Record(indexed), table), getattr(Record(direct), table))


@contextmanager
def settled_at_once() -> Iterator[None]:
    with patch.object(index, "SETTLED", -1.0):
        yield


class StoreMachine(RuleBasedStateMachine):
    """Runs come, go, change and are damaged, and so are files of the index, while two drivers read the store."""

    names = st.sampled_from(["a", "b", "c", "d", "e"])

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
        self.written = 0

    @initialize()
    def begin(self) -> None:
        Store.create(self.folder)
        self.drivers = [Store(self.folder), Store(self.folder)]

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def runs(self) -> list[Path]:
        return [run.folder for run in runs_in(self.folder)]

    @rule(name=names, censored=st.booleans(), trivial=st.booleans(), chosen=st.booleans())
    def run_finishes(self, name: str, censored: bool, trivial: bool, chosen: bool) -> None:
        self.written += 1
        values = [float(self.written), *range(1, 1 + self.written % 5)]  # other sizes: times may be the same
        write_run(self.folder, name, values, censored=censored, trivial=trivial, chosen=chosen)

    @rule(name=names)
    def forget(self, name: str) -> None:
        check.remove(Store(self.folder), f"runs/{name}")

    @rule(name=names, file=st.sampled_from(["card.json", "scores.parquet", "answers.parquet", RUNTIME]))
    def damage(self, name: str, file: str) -> None:
        path = self.folder / "runs" / name / file
        if path.exists():
            path.write_bytes(path.read_bytes()[:-1])

    @rule(name=names, file=st.sampled_from(["card.json", "scores.parquet", RUNTIME]))
    def lose(self, name: str, file: str) -> None:
        (self.folder / "runs" / name / file).unlink(missing_ok=True)

    @rule()
    def repair(self) -> None:
        store = Store(self.folder)
        check.repair(store, check.check(store))

    @rule(place=st.integers(0, 3), how=st.sampled_from(["lose", "damage", "rename"]))
    def harm_the_index(self, place: int, how: str) -> None:
        for path in sorted(self.folder.glob("index/*.parquet"))[place : place + 1]:
            if how == "lose":
                path.unlink()
            elif how == "damage":
                content = bytearray(path.read_bytes())
                content[len(content) // 2] ^= 1
                path.write_bytes(content)
            else:
                path.rename(path.with_name(f"{'0' * 64}.parquet"))

    @rule(driver=st.integers(0, 1), complete=st.booleans())
    def read(self, driver: int, complete: bool) -> None:
        """Read with a process that has been running for a while."""
        self.compare(self.drivers[driver], complete)

    @rule(driver=st.integers(0, 1), name=names)
    def look_for_one(self, driver: int, name: str) -> None:
        direct = Run(self.folder / "runs" / name)
        with settled_at_once():
            assert self.drivers[driver].intact(name) == direct.is_intact()
            if direct.is_intact():
                assert_equal([self.drivers[driver].index.run(name)], [direct])

    @rule(driver=st.integers(0, 1))
    def save(self, driver: int) -> None:
        self.drivers[driver].index.save()

    @rule(driver=st.integers(0, 1))
    def start_again(self, driver: int) -> None:
        self.drivers[driver] = Store(self.folder)

    @invariant()
    def a_new_process_reads_the_same(self) -> None:
        self.compare(Store(self.folder), complete=False)

    def compare(self, store: Store, complete: bool) -> None:
        tables = None if complete else ("scores", "trivial_scores")
        with settled_at_once():
            found = list(store.record(tables=tables).runs)
        assert_equal(found, drop_damaged(runs_in(self.folder), tables))


TestStore = StoreMachine.TestCase
TestStore.settings = settings(
    max_examples=25,
    stateful_step_count=12,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with three runs, whose files count as settled at once."""
    monkeypatch.setattr(index, "SETTLED", -1.0)
    Store.create(tmp_path)
    for seed, name in enumerate("abc"):
        write_run(tmp_path, name, [float(seed), 0.5, 0.25], trivial=True)
    return tmp_path


def forbid_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path) -> None:
        raise AssertionError(f"{path} was read")

    for name in ("read_checked", "read_card", "read_rows", "file_hash"):
        monkeypatch.setattr(f"driftline.record.run.{name}", fail)
    monkeypatch.setattr(index_part, "read_rows", fail)


def test_runs_in_the_index_are_not_read_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    direct = [(run.card, run.table("scores")) for run in runs_in(folder)]
    Store(folder).record()
    forbid_reading(monkeypatch)
    store = Store(folder)
    record = store.record()
    assert [run.card for run in record.runs] == [card for card, _ in direct]
    assert record.scores["value"].tolist() == [value for _, table in direct for value in table["value"]]
    assert store.intact("b")
    assert store.index.score_revisions("b") == {"metrics.temporal": 3}


def test_verified_scores_do_not_vouch_for_answers(folder: Path) -> None:
    (folder / "runs/b/answers.parquet").write_bytes(b"damaged")
    assert len(Store(folder).record(tables=("scores",))) == 3
    assert not Store(folder).intact("b")
    assert [run.key for run in Store(folder).record().runs] == ["a", "c"]


def test_a_changed_byte_is_noticed_although_size_and_time_are_the_same(folder: Path) -> None:
    Store(folder).record()
    path = folder / "runs/b/scores.parquet"
    before, content = path.stat(), bytearray(path.read_bytes())
    content[10] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert [run.key for run in Store(folder).record(tables=("scores",)).runs] == ["a", "c"]


def test_files_that_changed_just_now_are_read_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "SETTLED", 3600.0)
    assert len(Store(folder).record()) == 3
    assert not (folder / "index").exists()


def test_a_store_that_cannot_be_written_to_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "index").write_text("not a folder", encoding="utf-8")
    assert_equal(list(Store(folder).record().runs), runs_in(folder))


def test_parts_stay_few_and_hold_what_is_current(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "MAX_ROWS", 16)
    for number in range(40):
        write_run(folder, f"r{number:02}", [float(number)] * 4, trivial=True)
        Store(folder).record()
    parts = [index_part.IndexPart.open(path) for path in folder.glob("index/*.parquet")]
    assert len(parts) <= 8
    assert sum(map(len, parts)) == 43
    for number in range(5, 40):
        check.remove(Store(folder), f"runs/r{number:02}")
    Store(folder).record()
    parts = [index_part.IndexPart.open(path) for path in folder.glob("index/*.parquet")]
    assert sum(map(len, parts)) <= 16
    assert_equal(list(Store(folder).record().runs), runs_in(folder))


@pytest.mark.parametrize(
    "sql",
    [
        "select * from scores order by all",
        "select count(*) from scores",
        "select avg(value) from scores where stat = 'each' and metric <> 'none'",  # read for the condition alone
        'select "VALUE", Run from SCORES order by all',
        "from scores select stat, max(value) group by all order by all",
        "select method, sum(value) from runs join scores using (run) group by all order by all",
        "select a.run, count(*) from scores a join scores b on a.value < b.value group by all order by all",
        "pivot scores on run using sum(value) group by metric order by metric",
        "select columns('val.*') from scores order by all",
        "select scores from scores order by scores.run, scores.value",
        "summarize scores",
    ],
)
def test_a_query_gives_the_same_from_the_index_and_from_files(folder: Path, sql: str) -> None:
    Store(folder).record()
    found = Store(folder).query(sql)
    shutil.rmtree(folder / "index")
    pd.testing.assert_frame_equal(found, Store(folder).query(sql), check_dtype=False)


def test_a_part_gives_columns_of_some_runs_alone(folder: Path) -> None:
    Store(folder).record()
    part = next(index_part.IndexPart.open(path) for path in folder.glob("index/*.parquet"))
    keys = part.column("key")
    rows = [k for k in range(len(part)) if k != 1]
    found = part.columns("scores", ["value", "stat"], rows).to_pandas()
    assert found.columns.tolist() == ["value", "stat", "run"]
    for row in rows:
        whole, _ = part.table("scores", [row]) or (None, None)
        assert whole is not None
        assert found.loc[found["run"] == keys[row], "value"].tolist() == whole["value"].to_pylist()
    assert keys[1] not in set(found["run"])


def test_a_query_reads_the_index_and_the_runs_that_are_not_in_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Store(folder).record()
    monkeypatch.setattr(index, "SETTLED", 3600.0)
    write_run(folder, "d", [3.0, 0.5], censored=True)
    sql = "select run, stat, value, censored from scores order by run, value"
    found = Store(folder).query(sql)
    shutil.rmtree(folder / "index")
    pd.testing.assert_frame_equal(found, Store(folder).query(sql))
    assert found["run"].tolist() == [*"aaabbbcccdd"]
    assert set(FRAMES) >= {"scores", "answers"}
