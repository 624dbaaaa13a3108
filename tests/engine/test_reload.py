"""Networks rebuilt from the store are those that answered in the run, and a path between two of them ends in both."""

from __future__ import annotations

import copy
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import driftline
from driftline.engine.reload import ReloadedRun, has_saved_networks, reload_run
from driftline.errors import UserError
from driftline.models.block_networks.base import weight_parameters
from driftline.models.block_networks.joint import JointNetwork
from driftline.models.preprocessing import to_float_batch, to_tensor
from driftline.record.run import Record, Run
from driftline.training.interpolation import (
    activations,
    interpolate,
    layer_weights,
    reestimate_batch_norm,
    truncate_to_step,
)
from driftline.training.torch_model import torch_model

pytestmark = pytest.mark.xdist_group("revisit")  # what all its tests use is made once

LOW_RANK = "seq-ft(structure=low-rank-multiply, rank=1)"
METHODS = ["baseline", "oracle", "seq-ft", "lp-ft", "st-1", "sft", "seq-ewc", "sst-1", "jm", "jst-1"]
STEPS = {
    "baseline": [2],
    "oracle": [2],
    "seq-ft": [1, 2],
    "lp-ft": [1, 2],
    "st-1": [1, 2],
    LOW_RANK: [1, 2],
    "sft": [0, 1, 2],
    "seq-ewc": [0, 1, 2],
    "sst-1": [0, 1, 2],
    "jm": [0, 1, 2],
    "jst-1": [0, 1, 2],
}
PATHS = [name for name, steps in STEPS.items() if len(steps) > 1]


def bands(folder: Path, n: int = 360) -> Path:
    """Bright bands on noise: where the band is decides the class."""
    y = np.arange(n) % 3
    x = np.random.default_rng(0).integers(0, 120, (n, 16, 16, 1), dtype=np.uint8)
    for i, label in enumerate(y):
        x[i, 4 * label + 1 : 4 * label + 4] += np.uint8(80)
    np.savez(folder / "bands.npz", x=x, y=y)
    return folder / "bands.npz"


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    folder = tmp_path_factory.mktemp("revisit")
    options = {"shifts": "RL", "sizes": [60, 60, 60], "test": 60, "oracle": 120, "epochs": 4, "batch": 8}
    grid = {"lr": [0.02], "weight_decay": [1e-4], "dropout": [0.0], "adjacent": [0.1], "fisher": [10.0]}
    low_rank = {"name": "seq-ft", "structure": "low-rank-multiply", "rank": 1}
    spec = {
        "benchmark": "seq-to-final",
        "data": {"name": "npz", "path": str(bands(folder))},
        "model": {"name": "conv-1", "width": 2},
        "methods": [*METHODS, low_rank],
        "seq-to-final": {**options, **grid},
    }
    return driftline.run(spec, runs=folder / "runs")


def run_of(record: Record, method: str) -> Run:
    return next(run for run in record.runs if run.method == method)


def ends(visit: ReloadedRun) -> tuple[Any, Any]:
    before, after = (snapshot.network for snapshot in visit.snapshots[-2:])
    return before, after


@pytest.mark.parametrize("method", STEPS)
def test_the_final_network_gives_the_recorded_answers(record: Record, method: str) -> None:
    run = run_of(record, method)
    visit = reload_run(run)
    probes = run.table("probes")
    assert has_saved_networks(run)
    np.testing.assert_array_equal(visit.test.y, probes["truth"])
    np.testing.assert_array_equal(visit.answers(visit.final), probes["prediction"])
    assert visit.accuracy(visit.final) == run.table("scores")["value"].item()
    assert visit.final.mac_counter is None


@pytest.mark.parametrize("method", STEPS)
def test_there_is_a_model_for_every_step_that_trained_one(record: Record, method: str) -> None:
    assert [snapshot.step for snapshot in reload_run(run_of(record, method)).snapshots] == STEPS[method]


def test_the_same_fit_has_the_same_key_and_another_has_not(record: Record) -> None:
    keys = {name: [s.key for s in reload_run(run_of(record, name)).snapshots] for name in STEPS}
    assert keys["seq-ft"][0] == keys["lp-ft"][0] == keys["st-1"][0]
    assert keys["sft"][0] == keys["sst-1"][0] == keys["seq-ewc"][0]
    assert keys["baseline"] != keys["oracle"]  # the same trial on other samples
    assert len(set(keys["jm"])) == 3


@pytest.mark.parametrize("method", PATHS)
def test_a_path_ends_in_the_very_networks(record: Record, method: str) -> None:
    visit = reload_run(run_of(record, method))
    before, after = ends(visit)
    x = visit.test.x
    assert not np.allclose(
        torch_model(before).predict(x), torch_model(after).predict(x), atol=1e-3
    )  # else this shows nothing
    for s, network in ((0.0, before), (1.0, after)):
        found, _ = interpolate(before, after, s)
        if method == LOW_RANK:  # the weights are the same, their place in memory is not
            np.testing.assert_allclose(
                torch_model(found).predict(x), torch_model(network).predict(x), rtol=1e-4, atol=1e-5
            )
        else:
            np.testing.assert_array_equal(torch_model(found).predict(x), torch_model(network).predict(x))


@pytest.mark.parametrize("method", ["seq-ft", "sft", "seq-ewc"])
def test_on_the_way_every_number_is_in_proportion(record: Record, method: str) -> None:
    before, after = ends(reload_run(run_of(record, method)))
    found, moved = interpolate(before, after, 0.25)
    first, last = before.state_dict(), after.state_dict()
    for name, value in found.state_dict().items():
        if value.is_floating_point():
            np.testing.assert_allclose(
                value, 0.75 * first[name] + 0.25 * last[name], rtol=1e-5, atol=1e-6, err_msg=name
            )
    assert len(moved) == 2


def test_keeping_the_first_networks_batch_norm_would_show(record: Record) -> None:
    visit = reload_run(run_of(record, "seq-ft"))
    before, after = ends(visit)
    wrong = copy.deepcopy(after)
    norms = {n for n, part in before.named_modules() if isinstance(part, nn.BatchNorm2d)}
    kept = {k: v for k, v in before.state_dict().items() if k.rpartition(".")[0] in norms}
    wrong.load_state_dict({**after.state_dict(), **kept})
    assert np.abs(torch_model(wrong).predict(visit.test.x) - torch_model(after).predict(visit.test.x)).max() > 1e-3


def test_scaling_a_side_modules_weights_would_not_remove_it(record: Record) -> None:
    visit = reload_run(run_of(record, "jst-1"))
    before, after = ends(visit)
    wrong = copy.deepcopy(after)
    with torch.no_grad():
        for layer in wrong.layers.values():
            for weight in weight_parameters(layer.steps[-1]).values():
                weight.mul_(0)
    assert np.abs(torch_model(wrong).predict(visit.test.x) - torch_model(before).predict(visit.test.x)).max() > 1e-3


def test_half_of_a_side_module(record: Record) -> None:
    visit = reload_run(run_of(record, "jst-1"))
    before, after = ends(visit)
    found, _ = interpolate(before, after, 0.5)
    x = to_float_batch(to_tensor(visit.test.x))
    with torch.no_grad():
        h = found.standardize(x).expand(-1, 3, -1, -1)
        for layer in after.layers.values():
            h = layer.steps[0](h) + layer.steps[1](h) + 0.5 * layer.steps[2](h)
    np.testing.assert_allclose(torch_model(found).predict(visit.test.x), h, rtol=1e-4, atol=1e-5)


def test_statistics_are_those_of_the_samples_given(record: Record) -> None:
    visit = reload_run(run_of(record, "seq-ft"))
    network, moved = interpolate(*ends(visit), 0.5)
    x = visit.last_round.train_x
    reestimate_batch_norm(network, moved, x, batch=len(x))
    stem = network.layers["conv1"]
    with torch.no_grad():
        seen = stem[0](network.standardize(to_float_batch(to_tensor(x))).expand(-1, 3, -1, -1))
    np.testing.assert_allclose(stem[1].running_mean, seen.mean((0, 2, 3)), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(stem[1].running_var, seen.var((0, 2, 3)), rtol=1e-4)
    assert not any(part.training for part in network.modules())


def test_frozen_batch_norm_keeps_its_statistics(record: Record) -> None:
    visit = reload_run(run_of(record, "st-1"))
    before, after = ends(visit)
    network, moved = interpolate(before, after, 0.5)
    assert len(moved) == 2  # that of the new stem and that of the side module, not the block's
    reestimate_batch_norm(network, moved, visit.last_round.train_x, batch=12)
    block, side = network.layers["layer1"].steps
    assert torch.equal(block[1].running_var, before.layers["layer1"][1].running_var)
    assert not torch.equal(side[1].running_var, after.layers["layer1"].steps[1][1].running_var)


def test_a_joint_network_cut_off_at_a_step_is_that_step(record: Record) -> None:
    visit = reload_run(run_of(record, "jm"))
    x = to_float_batch(to_tensor(visit.test.x))
    whole = visit.final
    assert isinstance(whole, JointNetwork)
    for step in range(3):
        with torch.no_grad():
            assert torch.equal(truncate_to_step(whole, step)(x), whole(x, step=step))


def test_weights_and_activations_by_layer(record: Record) -> None:
    visit = reload_run(run_of(record, "seq-ft"))
    network = visit.final
    flat = layer_weights(network)
    assert flat is not None
    head = network.layers["fc"][2]
    both = torch.cat([head.weight.flatten(), head.bias]).detach()
    np.testing.assert_array_equal(flat["fc"], both)
    assert {name: len(w) for name, w in flat.items()} == {"conv1": 3 * 2 * 49, "layer1": 2 * 16 * 9, "fc": 17 * 3}
    assert layer_weights(reload_run(run_of(record, "sst-1")).final) is None
    acts = activations(network, visit.test.x, batch=7)
    np.testing.assert_allclose(acts["fc"], torch_model(network).predict(visit.test.x), rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        block = network.layers["layer1"](torch.as_tensor(acts["conv1"]).view(60, 2, 4, 4))
    np.testing.assert_allclose(acts["layer1"], block.flatten(1), rtol=1e-4, atol=1e-5)


def test_low_rank_weights_are_the_product(record: Record) -> None:
    layer = reload_run(run_of(record, LOW_RANK)).final.layers["layer1"]
    flat = layer_weights(reload_run(run_of(record, LOW_RANK)).final)
    assert flat is not None
    base, change = layer.steps[0][0].weight, layer.steps[1].products()[0]
    np.testing.assert_array_equal(flat["layer1"], (base * change).detach().flatten())


def test_nothing_is_trained_in_silence(record: Record, tmp_path: Path) -> None:
    store = record.runs[0].folder.parents[1]
    shutil.copytree(store, tmp_path / "runs")
    for fit in (tmp_path / "runs/stages").iterdir():
        fit.unlink()
    moved = Run(tmp_path / "runs/runs" / run_of(record, "seq-ft").key)
    with pytest.raises(UserError, match=r"fits of seq-ft, seed 0, are not in .*: run it with the same settings"):
        reload_run(moved).final  # noqa: B018
    assert not list((tmp_path / "runs/stages").iterdir())


def test_changed_data_are_noticed(record: Record, tmp_path: Path) -> None:
    run = run_of(record, "seq-ft")
    run.card.data.fingerprint, kept = "other", run.card.data.fingerprint
    try:
        with pytest.raises(UserError, match="have changed since it was run"):
            reload_run(run)
    finally:
        run.card.data.fingerprint = kept
