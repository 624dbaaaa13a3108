"""Networks on an accelerator: every learner gives the CPU's results there, and settings reach every place.

`test_device.py` runs this file in a process of its own: torch starts a thread for each device at the first backward
pass, so the simulated one must be there before.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
import yaml
from torch import nn
from torch.nn import functional

from driftline import device, models, registry
from driftline.calibration.run import calibrate_model
from driftline.device import DeviceSettings, dropout, place, resolve, to_device, to_double, to_numpy
from driftline.engine.build import DatasetCache
from driftline.engine.costs.forecast import _accelerators
from driftline.engine.costs.profiler import profile_stage
from driftline.engine.executors.base import StageFailed, run_stage
from driftline.engine.executors.config import ExecutorConfig
from driftline.engine.planning.plan import plan
from driftline.engine.run import _one_worker_per_device, run
from driftline.engine.stages import Pretrain, Stage, StreamRun
from driftline.errors import UserError
from driftline.learners.supervised.ft import FineTune
from driftline.learners.test_time.tent import Tent
from driftline.models.preprocessing import to_float_batch
from driftline.seeds import Seed
from driftline.spec import parse
from driftline.spec.keys import run_key
from driftline.store.store import Store
from driftline.tasks import TextToText
from driftline.testing.fixtures import SHAPE, TASK, samples, small_network
from driftline.testing.learner import ContractCheck, default_models
from driftline.testing.on_device import check_on_device
from driftline.training.fit import descend_on, optimizer_step
from driftline.training.mac_counter import MacCounter
from driftline.training.torch_model import torch_model
from driftline.types import Samples

from . import sim_device, stand_ins
from .test_contracts import quick

SIM = DeviceSettings(name=sim_device.NAME)
BY_ROUNDING = {"i-ft", "irm-t", "seq-irm"}
"""Methods that differentiate gradients: a device sums the parts of a gradient in another order."""
SPEC = {"benchmark": "timeline", "data": "digits", "model": "mlp", "methods": [{"name": "ft", "updates": 3}]}


@pytest.fixture(scope="session", autouse=True)
def _sim() -> None:
    sim_device.install()


def contract(name: str) -> ContractCheck:
    make = quick(registry.get("method", name))
    check = ContractCheck(make, next(iter(default_models(make()))), name)
    check.steps = check.steps[:2]  # enough for a difference, as every operation on a simulated device takes its time
    return check


@pytest.mark.parametrize("name", registry.names("method"))
def test_every_method_ends_as_on_the_cpu(name: str) -> None:
    sim_device.copies.clear()
    check_on_device(contract(name), "sim", tolerance=1e-4 if name in BY_ROUNDING else 0)
    assert sim_device.copies["ops"] > 0


def test_the_simulated_device_refuses_what_a_gpu_refuses() -> None:
    here, there = torch.ones(2), torch.ones(2).to("sim")
    with pytest.raises(RuntimeError, match="same device"):
        here + there
    with pytest.raises(RuntimeError, match="generator"):
        torch.rand(2, generator=torch.Generator(), device="sim")
    with pytest.raises((RuntimeError, TypeError)):
        there.numpy()
    assert (there + torch.tensor(1.0)).cpu().tolist() == [2, 2]  # a number without dimensions may be mixed in


def test_answers_come_back_once_per_batch() -> None:
    with device.use(SIM):
        learner = Tent()
        learner.seed = Seed(0)
        learner.prepare(place(small_network(SHAPE, TASK.width, Seed(1))), TASK)
        sim_device.copies.clear()
        learner.answer(samples(0).x)
    assert (sim_device.copies["h2d"], sim_device.copies["d2h"]) == (1, 1)


def test_a_checkpoint_from_a_device_is_the_cpus() -> None:
    """What was saved on the device continues on the CPU, bit for bit."""
    check = contract("ewc")
    on_cpu = check.learner()
    with device.use(SIM):
        on_sim = check.learner()
        on_sim.learn(check.steps[0].samples.x, check.steps[0].samples.y)
        saved = on_sim.state()
    on_cpu.learn(check.steps[0].samples.x, check.steps[0].samples.y)
    moved = check.learner()
    moved.restore(check.saved_and_loaded(saved))
    x = check.probe.x
    np.testing.assert_array_equal(on_cpu.predict(x).scores, moved.predict(x).scores)
    assert moved.importance.device.type == "cpu"  # type: ignore[attr-defined]


@pytest.mark.parametrize("probability", [0.1, 0.5, 1.0])
def test_dropout_is_torchs_on_the_cpu_and_the_same_on_a_device(probability: float) -> None:
    x = torch.randn(4, 3, 5, 5, generator=torch.Generator().manual_seed(0)).to(memory_format=torch.channels_last)
    torch.manual_seed(1)
    expected = functional.dropout(x, probability)
    torch.manual_seed(1)
    assert torch.equal(dropout(x, probability), expected)
    torch.manual_seed(1)
    assert torch.equal(dropout(x.to("sim"), probability).cpu(), expected)


def test_dropout_layers_of_any_network_draw_on_the_host() -> None:
    network = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5))
    x = torch.randn(4, 3)
    torch.manual_seed(1)
    expected = network(x)
    with device.use(SIM):
        moved = place(network)
        torch.manual_seed(1)
        np.testing.assert_array_equal(to_numpy(moved(to_device(x))), expected.detach().numpy())
        assert torch.equal(moved.eval()(to_device(x)), moved[0](to_device(x)))


def test_a_seed_reaches_the_generators_of_host_and_device_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """`torch.manual_seed` would keep a formatted stack for each kind of device that is not here."""
    seeded: list[int] = []
    module = torch.get_device_module("sim")
    monkeypatch.setattr(module, "manual_seed_all", seeded.append, raising=False)
    monkeypatch.setattr(torch, "manual_seed", None)
    with Seed(1).as_torch_default():
        drawn = torch.rand(2)
    assert torch.equal(drawn, torch.rand(2, generator=Seed(1).torch()))
    assert seeded == [Seed(1).value % 2**63]


def test_names_of_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    assert resolve("cpu") == resolve("cpu:0") == torch.device("cpu")
    assert resolve("auto") == resolve("sim") == resolve("sim:0") == torch.device("sim:0")
    monkeypatch.setenv(device.DEVICE_VARIABLE, "cpu")
    assert resolve("") == torch.device("cpu")
    with pytest.raises(UserError, match="'cuda' is not available: this installation of torch finds cpu and sim"):
        resolve("cuda")
    with pytest.raises(UserError, match="the last one is sim:0"):
        resolve("sim:3")
    with pytest.raises(UserError, match="unknown device 'gpu': use auto, cpu, cuda"):
        resolve("gpu")
    for name in ("CUDA", "cuda:-1", "cuda 1", "cuda:1:2", "cuda:"):
        with pytest.raises(UserError, match=f"unknown device '{name}': use auto, cpu, cuda"):
            parse({**SPEC, "device": name})


def test_workers_share_devices_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 2)
    found = []
    for number in range(3):
        monkeypatch.setenv(device.WORKER_VARIABLE, str(number))
        found.append(str(resolve("sim")))
    assert found == ["sim:0", "sim:1", "sim:0"]
    assert device.device_count("sim") == device.device_count("auto") == 2
    assert device.device_count("sim:1") == device.device_count("cpu") == 1


def test_a_clock_waits_for_the_device_that_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[torch.device] = []
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 2)
    monkeypatch.setattr(torch.accelerator, "synchronize", waited.append)
    with device.use(DeviceSettings(name="sim:1")):
        device.clock()
    assert waited == [torch.device("sim:1")]


def test_tf32_is_that_of_the_present_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch keeps it for the whole process, in which runs with other settings may follow."""
    switches = torch.backends.cuda.matmul, torch.backends.cudnn
    for switch in switches:
        monkeypatch.setattr(switch, "allow_tf32", switch.allow_tf32)
    monkeypatch.setattr(device, "_current", lambda name, environment: torch.device("cuda", 0))
    for allowed in (True, False, True):
        with device.use(DeviceSettings(name="cuda", tf32=allowed)):
            assert device.current().type == "cuda"
            assert [switch.allow_tf32 for switch in switches] == [allowed, allowed]


def test_a_precision_that_a_device_lacks_is_refused() -> None:
    """torch would warn and go on in single precision, and the card would not be true."""
    settings = DeviceSettings(name="sim", precision="bfloat16")
    with pytest.raises(UserError, match="device 'sim:0' does not compute in bfloat16"), device.use(settings):
        pass


def test_double_precision_is_computed_on_the_host_where_a_device_has_none() -> None:
    x = torch.tensor([1.0, 2.0**-30]).to("sim")
    assert to_double(x).tolist() == [1.0, 2.0**-30]
    assert to_double(x).dtype is torch.float64
    with device.use(SIM):
        moved = to_float_batch(np.array([[0.1]]))  # a table of numbers in double precision
    assert (moved.device.type, moved.dtype, moved.item()) == ("sim", torch.float32, np.float32(0.1))


def test_counting_a_pass_draws_nothing_from_the_generator_of_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """A resumed run counts again, and its later masks must be those of a run that was not interrupted."""
    module, state = torch.get_device_module("sim"), [0]
    monkeypatch.setattr(module, "get_rng_state", lambda device: list(state), raising=False)
    monkeypatch.setattr(module, "set_rng_state", lambda given, device: state.__setitem__(0, given[0]), raising=False)

    class Drawing(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            state[0] += 1
            return super().forward(x)

    with device.use(SIM):
        network = place(Drawing(2, 2))
        counter = MacCounter()
        counter.attach(network)
        network(to_device(torch.ones(1, 2)))
    assert (state, counter.forward) == ([1], 4)


def test_the_device_is_no_part_of_a_key_and_precision_is() -> None:
    def key(**settings: str) -> str:
        (job,) = parse({**SPEC, "device": settings}).jobs("mlp")
        return run_key(job, "f")

    assert key() == key(name="cpu") == key(name="cuda:1") == key(precision="float32")
    assert len({key(), key(precision="bfloat16"), key(precision="float16"), key(tf32=True)}) == 4  # type: ignore[arg-type]


def test_a_run_on_a_device_has_the_cpus_record_and_a_card_that_says_so(tmp_path: Path) -> None:
    on_cpu = run({**SPEC, "device": "cpu"}, runs=tmp_path / "cpu")
    on_sim = run({**SPEC, "device": "sim"}, runs=tmp_path / "sim")
    assert on_cpu.runs[0].key == on_sim.runs[0].key
    for name in ("answers.parquet", "probes.parquet", "scores.parquet"):
        assert (on_cpu.runs[0].folder / name).read_bytes() == (on_sim.runs[0].folder / name).read_bytes()
    expected = {"name": "sim:0", "hardware": "sim", "precision": "float32", "tf32": False, "compile": False}
    assert on_sim.runs[0].card.device.model_dump() == expected
    assert on_cpu.runs[0].card.device.name == "cpu"
    assert on_cpu.runs[0].card.compute == on_sim.runs[0].card.compute


def test_half_precision_changes_products_and_not_weights(tmp_path: Path) -> None:
    with device.use(DeviceSettings(name="cpu", precision="bfloat16")):
        layer = place(nn.Linear(8, 2))
        nn.init.zeros_(layer.weight), nn.init.zeros_(layer.bias)
        out = layer(torch.ones(1, 8))
        assert (out.dtype, layer.weight.dtype) == (torch.bfloat16, torch.float32)
        assert to_numpy(out).dtype == np.float32
        with torch.no_grad():
            layer.weight += 1
        assert torch.equal(layer(torch.ones(1, 8)), out + 8), "weights that were trained since are used"
    record = run({**SPEC, "device": {"name": "cpu", "precision": "bfloat16"}}, runs=tmp_path)
    assert record.runs[0].card.device.precision == "bfloat16"
    assert record.runs[0].card.run.device == {"precision": "bfloat16"}


def test_loss_scaling_keeps_small_gradients_and_skips_steps_that_overflow() -> None:
    def step(factor: float) -> float:
        weight = nn.Parameter(torch.ones(1))
        with device.use(DeviceSettings(name="cpu", precision="float16")):
            loss = (weight.half() * factor).float().sum()  # its gradient passes through float16
            optimizer_step(torch.optim.SGD([weight], lr=1.0), loss)
        return weight.item()

    assert step(1e-7) == float(np.float32(1 - 1e-7))
    assert step(60000.0) == 1.0  # 60,000 times the scale is infinite in float16: no step


OUT_OF_MEMORY = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.77 GiB. Try this."
TEST_TIME = {"benchmark": "test-time", "data": "color-digits", "model": "conv-1", "methods": "tent"}


@pytest.mark.parametrize(
    ("spec", "kind", "setting"),
    [
        (SPEC, StreamRun, "device.micro_batch=16"),
        ({**SPEC, "device": {"micro_batch": 8}}, StreamRun, "device.micro_batch=4"),
        (TEST_TIME, StreamRun, "test-time.batch=32"),  # which has no labels to accumulate gradients of
        (TEST_TIME, Pretrain, "device.micro_batch=16"),
    ],
)
def test_out_of_memory_on_a_device_names_what_to_change(
    spec: dict[str, Any], kind: type[Stage], setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any) -> None:
        raise torch.OutOfMemoryError(OUT_OF_MEMORY)

    monkeypatch.setattr(kind, "run", fail)
    stage: Any = object.__new__(kind)
    vars(stage).update(job=parse(spec).jobs("mlp")[0], key="k")
    context: Any = type("C", (), {"store": Store.create(tmp_path)})()
    with pytest.raises(StageFailed) as failed:
        run_stage(stage, context)
    assert str(failed.value) == (
        "out of memory: CUDA out of memory. Tried to allocate 2.00 GiB. Use --set "
        f"{setting}, --set device.checkpoint_activations=true, --precision bfloat16 or a smaller network"
    )


def test_gradients_are_accumulated_over_micro_batches() -> None:
    x, y = torch.randn(7, 3, generator=torch.Generator().manual_seed(0)), torch.zeros(7)
    sizes, weights = [], []
    for most in (None, 3):
        layer = nn.Linear(3, 1, bias=False)
        nn.init.ones_(layer.weight)
        layer.register_forward_hook(lambda layer, args, out: sizes.append(len(args[0])))

        def loss(x: torch.Tensor, y: torch.Tensor, layer: nn.Module = layer) -> torch.Tensor:
            return (layer(x)[:, 0] - y).square().mean()

        with device.use(DeviceSettings(name="cpu", micro_batch=most)):
            descend_on(torch.optim.SGD(layer.parameters(), lr=0.1), layer, loss, x, y)
        weights.append(layer.weight.detach())
    assert sizes == [7, 3, 3, 1]
    torch.testing.assert_close(weights[0], weights[1])
    gradient = 2 * (x.sum(1)[:, None] * x).mean(0)
    torch.testing.assert_close(weights[0][0], 1 - 0.1 * gradient)


NAMES_DEVICES = re.compile(r"""["'](?:cuda|cpu|mps|xpu)\b[^"' ]*["']|\.(?:cpu|cuda|xpu)\(|torch\.(?:cuda|mps|xpu)\b""")


def test_only_one_module_names_devices() -> None:
    """Others call `to_device`, `to_numpy` and `place`; the card names the default, and comments may give examples."""
    root = Path(device.__file__).parent
    named = [
        f"{path.relative_to(root)}: {line.strip()}"
        for path in sorted(root.rglob("*.py"))
        if path.name not in ("device.py", "_registry_index.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if NAMES_DEVICES.search(line)
    ]
    card = ['record/card.py: name: str = "cpu"', 'record/card.py: hardware: str = "cpu"']
    assert named == card


def test_a_calibration_on_a_device_has_the_cpus_accuracies(tmp_path: Path) -> None:
    spec = {"benchmark": "test-time", "data": "color-digits", "model": {"name": "conv-1", "width": 2}}
    options = {"order": "cin-c", "upstream_updates": 5}
    found = []
    for name in ("cpu", "sim"):
        (job,) = parse({**spec, "test-time": options, "methods": "frozen", "device": name}).jobs("conv-1")
        sim_device.copies.clear()
        settings: dict[str, Any] = {"images": 20, "levels": 2, "store": Store.create(tmp_path / name)}
        matrices = calibrate_model(job, ("contrast", "fog"), tmp_path / f"{name}.safetensors", **settings)
        found.append(matrices["contrast", "fog"])
        assert (sim_device.copies["h2d"] > 4) == (name == "sim")
    np.testing.assert_array_equal(found[0], found[1])


def test_a_spec_with_a_device_reads_back() -> None:
    spec = parse({**SPEC, "device": {"name": "cuda", "precision": "float16"}})
    assert parse(yaml.safe_load(spec.to_yaml())) == spec


NARROW = {name: {"width": 2} for name in ("conv", "dense", "res")}
OPTIONS: dict[str, dict[str, Any]] = {
    **{name: {"width": 4} for name in ("resnet18", "resnet34", "resnet50", "resnet20", "resnet56", "densenet121")},
    "small-bart": {"width": 16, "layers": 1, "heads": 2, "dropout": 0.0},
    "seq2seq": {"weights": "facebook/bart-base", "max_input_tokens": 16, "max_answer_tokens": 2},
    "minilm": {"weights": "distilbert/distilbert-base-uncased", "trainable": "all"},
    "huggingface-images": {"weights": "vit"},
    "efficientnet-lite0": {"head": "new"},
}
"""Small sizes of networks, and the folders of their weights."""
ESTIMATORS = {
    *("hist-gradient-boosting", "logistic-regression", "naive-bayes", "published-answers", "random-forest", "tfidf")
}
PACKAGES = {"efficientnet-lite0": "efficientnet_lite_pytorch"}
"""Packages that are not installed everywhere."""
TEXTS = ["who is it ?", "where is it ?", "who saw ann ?", "where was rome ?"]


def trained_weights(network: Any, learner: Any, data: Samples, task: Any = TASK) -> dict[str, np.ndarray]:
    learner.seed = Seed(0)
    learner.prepare(network, task, data)
    learner.train(data.x, data.y)
    return {name: to_numpy(value) for name, value in network.state_dict().items() if isinstance(value, torch.Tensor)}


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("weights")
    stand_ins.text_models(folder)
    config = {"image_size": 32, "patch_size": 16, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    labels = {"num_labels": TASK.width, "intermediate_size": 8}
    transformers.ViTForImageClassification(transformers.ViTConfig(**config, **labels)).save_pretrained(folder / "vit")
    return folder


def samples_for(name: str) -> tuple[Samples, Any, tuple[int, ...]]:
    """Return samples, task and shape of inputs that suit a model."""
    if name in ("seq2seq", "small-bart"):
        return Samples(TEXTS, np.array(["ann", "rome"] * 2, dtype=object)), TextToText(), ()
    if name in ("minilm", "hashed-ngrams"):
        return Samples(TEXTS, np.array([0, 1, 0, 1])), TASK, ()
    pixels = np.random.default_rng(0).integers(0, 256, (4, 32, 32, 3), np.uint8)
    return Samples(pixels, np.arange(4) % TASK.width), TASK, (32, 32, 3)


@pytest.mark.parametrize("name", sorted({*registry.names("model")} - ESTIMATORS))
def test_every_network_trains_as_on_the_cpu(name: str, weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name in PACKAGES:
        pytest.importorskip(PACKAGES[name])
    monkeypatch.chdir(weights)
    (data, task, shape), found = samples_for(name), []
    options = OPTIONS.get(name) or NARROW.get(name[:-2], {})
    for where in (device.ON_HOST, SIM):
        with device.use(where):
            network = models.build(name, shape=shape, outputs=task.width, **options)
            assert isinstance(network, nn.Module), "an estimator belongs to ESTIMATORS"
            monkeypatch.setattr(torch, "tensor", sim_device.tensor if where is SIM else sim_device.torch_tensor)
            sim_device.copies.clear()
            found.append(trained_weights(network, FineTune(updates=1, batch=2), data, task))
            found.append({"answers": torch_model(network).predict(data.x)})
            assert (sim_device.copies["ops"] > 0) == (where is SIM)
    assert found[0]
    for one, other in zip(found[:2], found[2:], strict=True):
        for key in one:
            np.testing.assert_array_equal(one[key], other[key], err_msg=key)


@pytest.mark.parametrize("name", registry.names("pretraining"))
def test_every_pretraining_ends_as_on_the_cpu(name: str) -> None:
    found = []
    for where in (device.ON_HOST, SIM):
        with device.use(where):
            settings = {
                "updates": 2,
                **({"way": 2, "shot": 1, "query": 1} if name not in ("supervised", "moco") else {}),
                **({"meta_updates": 2} if name == "meta-baseline" else {}),
            }
            network = place(small_network(SHAPE, TASK.width, Seed(1)))
            found.append(trained_weights(network, registry.get("pretraining", name)(**settings), samples(0)))
    assert found[0]
    for key in found[0]:
        close = (
            {"rtol": 1e-4, "atol": 1e-6} if name == "maml" else {"rtol": 0, "atol": 0}
        )  # it differentiates gradients
        np.testing.assert_allclose(found[0][key], found[1][key], err_msg=key, **close)


def test_workers_by_default_are_as_many_as_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("driftline.engine.run.device_count", lambda name: 2 if name == "cuda" else 1)
    on_two, on_one = (plan(parse({**SPEC, "device": name})) for name in ("cuda", "cpu"))
    assert _one_worker_per_device(ExecutorConfig(), on_two.stages) == ExecutorConfig("local", jobs=2)
    assert _one_worker_per_device(ExecutorConfig(), on_one.stages) == ExecutorConfig()
    assert _one_worker_per_device(ExecutorConfig(jobs=1), on_two.stages).jobs == 1
    sklearn = plan(parse({**SPEC, "device": "cuda", "model": "naive-bayes", "methods": ["ft"]}))
    assert _one_worker_per_device(ExecutorConfig(), sklearn.stages) == ExecutorConfig()


@pytest.mark.parametrize(("model", "accelerators"), [("mlp", ("sim:0",)), ("naive-bayes", ())])
def test_plan_profiles_networks_on_their_device_and_estimators_on_the_host(
    model: str, accelerators: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.accelerator, "synchronize", lambda device: None)
    small = {**SPEC, "data": {"name": "digits", "periods": 2}, "methods": ["ft"]}
    planned = plan(parse({**small, "model": model, "device": "sim"}))
    (stage,) = (stage for stage in planned.stages if stage.is_result)
    sim_device.copies.clear()
    cost = profile_stage(stage, Store.create(tmp_path), DatasetCache(), seconds=0.2)
    assert (cost.error, sim_device.copies["ops"] > 0) == ("", model == "mlp")
    assert _accelerators(planned.stages) == accelerators


def test_plan_refuses_a_device_that_is_not_here() -> None:
    with pytest.raises(UserError, match="'cuda' is not available"):
        _accelerators(plan(parse({**SPEC, "device": "cuda"})).stages)
    on_host = {**SPEC, "model": "naive-bayes", "methods": ["ft"]}
    assert _accelerators(plan(parse({**on_host, "device": "cuda"})).stages) == ()
