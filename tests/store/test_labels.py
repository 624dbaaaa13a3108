"""Labels of methods beside finished runs."""

from pathlib import Path

from driftline.record.run import Run
from driftline.store.check import check
from driftline.store.labels import read_label, write_labels
from driftline.store.store import Store


def test_the_latest_label_counts_and_an_empty_one_removes_it(tmp_path: Path) -> None:
    store = Store.create(tmp_path)
    run = Run(store.run_folder("k1"))
    assert read_label(run) == ("", "")
    write_labels(store, {"k1": ("ER", "Replay")})
    write_labels(store, {"k1": ("ER (ours)", "")})
    assert read_label(run) == ("ER (ours)", "")
    assert check(store).files == 1
    write_labels(store, {"k1": ("", "")})
    assert read_label(run) == ("", "")
    assert not list((tmp_path / "labels").iterdir())
