"""Every full recipe on stand-ins of its files; run by test_device.py, in a process of its own (see on_sim_device.py).

Some run from end to end, on the simulated device if it can; the others up to the plan, which reads the data, builds the
model and checks the method. With DRIFTLINE_EVERY_RECIPE=1 all run to the end, which takes a minute.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import driftline
from driftline import recipes
from driftline.engine.build import DatasetCache
from driftline.engine.planning.plan import plan
from driftline.io.locate import using_data_folder
from driftline.record.run import Run
from driftline.spec import parse, read_yaml

from . import sim_device, stand_ins

FULL = [name for name in recipes.names() if name.endswith(".full")]
SPECS = {name: stand_ins.shrunk(read_yaml(f"recipe:{name}")) for name in FULL}
TO_THE_END = (
    *("open-world/ned-published.full", "refinement/qa.full", "seq-to-final/conv.full"),
    *("test-time/ccc-medium.full", "test-time/table-2.full", "timeline/wild-time-table-2-yearbook.full"),
)
if os.environ.get("DRIFTLINE_EVERY_RECIPE"):
    TO_THE_END = tuple(name for name in FULL if SPECS[name]["model"]["name"] != "minilm")  # see test_recipes.py


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sim_device.install()
    folder = tmp_path_factory.mktemp("data")
    stand_ins.write_data(folder)
    return folder


@pytest.mark.parametrize("name", FULL)
def test_a_full_recipe_runs(name: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(data)
    monkeypatch.setitem(sys.modules, "timm", stand_ins.timm())
    spec: dict[str, Any] = SPECS[name]
    device = "cpu" if spec["model"]["name"] == "densenet121" else "sim"  # 430 layers take the device a minute
    if spec["model"]["name"] == "seq2seq":
        monkeypatch.setattr(torch, "tensor", sim_device.tensor)
    folder = data / "portraits" if (spec["benchmark"], spec["data"]["name"]) == ("seq-to-final", "yearbook") else data
    if name not in TO_THE_END:
        with using_data_folder(folder):
            assert len(plan(parse(spec), DatasetCache(folder)).run_keys) == 1
        return
    run, on_cpu = (
        driftline.run({**spec, "device": name}, data_dir=folder, runs=tmp_path / name).runs[0]
        for name in (device, "cpu")
    )
    assert run.card.device.name.partition(":")[0] == device
    assert np.isfinite(run.table("scores")["value"]).any()
    assert run.table("scores").equals(on_cpu.table("scores"))
    if check := CHECKS.get(name):
        check(run)


def check_qa(run: Run) -> None:
    protocol = run.card.protocol
    assert protocol["upstream_samples_are"] == "as marked in the data"
    assert protocol["upstream_samples"] == 40  # all of the training part, none of dev
    assert protocol["clusters"] == ["upstream", *stand_ins.MRQA[1:]]
    assert protocol["pools"]["upstream"] == (40 - 4) * 3 // 4


def check_fmow(run: Run) -> None:
    assert run.card.weights is not None
    assert run.card.weights.initialized == ["classifier.bias", "classifier.weight"]
    scores = run.table("scores")
    each = scores[(scores["metric"] == "fix-ood") & (scores["stat"] == "each")]
    assert each["time"].tolist() == ["2016", "2017"]


def check_moco(run: Run) -> None:
    loaded = run.card.weights
    assert loaded is not None
    assert (loaded.loaded, loaded.entry, loaded.prefix) == (265, "state_dict", "module.encoder_q.")


CHECKS = {
    "refinement/qa.full": check_qa,
    "timeline/wild-time-table-2-fmow.full": check_fmow,
    "open-world/ned-table-4-moco.full": check_moco,
}
