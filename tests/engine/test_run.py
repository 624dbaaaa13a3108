"""Runs of Python objects: from keywords, again without work, in worker processes, and without a cache."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import driftline
from driftline.errors import UserError
from driftline.learners.supervised.base import SupervisedLearner
from driftline.record.run import Record
from driftline.report.analysis.groups import groups

N = 120
X = np.random.default_rng(0).normal(size=(N, 3))
SAMPLES = driftline.Samples(x=X, y=(X[:, 0] > 0).astype(int), time=np.arange(N) // 40)


def first(x: Any, share: float) -> Any:
    return x[: int(len(x) * share)]


@dataclass
class Keep(SupervisedLearner):
    """Training on a share of the labels."""

    share: float = 0.5

    def learn(self, x: Any, y: Any) -> None:
        self.train_from_scratch(first(x, self.share), first(y, self.share))


def run(**changes: Any) -> Record:
    parts = {"benchmark": "timeline", "data": SAMPLES, "model": "naive-bayes", "timeline": {"resamples": 10}}
    return driftline.run(**{**parts, **changes})


@pytest.mark.usefixtures("quick_workers")
def test_worker_processes_receive_objects_and_give_the_same_record(tmp_path: Path) -> None:
    methods = ["erm", Keep(share=0.8), Keep]
    serial, parallel = (run(methods=methods, runs=tmp_path / str(n), jobs=n) for n in (1, 2))
    assert [one.method for one in serial.runs] == ["erm", "Keep(share=0.8)", "Keep"]
    assert serial.scores.equals(parallel.scores)
    assert serial.probes.equals(parallel.probes)
    assert serial.probes.groupby("run")["prediction"].agg(tuple).nunique() == 3


def test_an_edited_class_runs_again_and_the_older_version_stands_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (before,) = run(methods=[Keep], runs=tmp_path).runs
    (again,) = run(methods=[Keep], runs=tmp_path).runs
    assert again.finished_at == before.finished_at
    monkeypatch.setitem(globals(), "first", lambda x, share: x[-int(len(x) * share) :])
    (edited,) = run(methods=[Keep], runs=tmp_path).runs
    assert (edited.method, edited.key == before.key) == ("Keep", False)
    titles = {group.title: [one.key for one in group.runs] for group in groups(driftline.load(tmp_path))}
    assert titles.pop("timeline · Samples · naive-bayes") == [edited.key]
    assert list(titles.values()) == [[before.key]]


def test_a_network_is_not_changed_by_its_run(tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = nn.Linear(3, 2)
    weights = net.weight.detach().clone()
    record = run(model=net, methods=[{"name": "ft", "updates": 3}], runs=tmp_path)
    assert torch.equal(net.weight, weights)
    assert record.runs[0].card.run.model.display_name == "Linear"


def test_without_a_cache_nothing_is_reused_and_the_record_can_be_read() -> None:
    names: dict[str, Any] = {"__name__": "__main__", "Base": SupervisedLearner}
    exec("class Own(Base):\n    def learn(self, x, y):\n        self.train_from_scratch(x, y)", names)
    one, two = (run(methods=[names["Own"]], cache=False) for _ in range(2))
    assert one.runs[0].folder != two.runs[0].folder
    assert one.scores["value"].equals(two.scores["value"])
    with pytest.raises(UserError, match="cache=False keeps no results: leave out runs"):
        run(methods=["erm"], runs="somewhere", cache=False)
    with pytest.raises(UserError, match="give a spec or its parts, not both: leave out benchmark, data"):
        driftline.run("recipe.yaml", benchmark="timeline", data="digits")
    with pytest.raises(UserError, match=r"run has no argument 'cahce'\. Did you mean 'cache'\?"):
        driftline.run(benchmark="timeline", cahce=False)
