"""Continual learning beside Avalanche: what each framework costs over a bare loop that fine-tunes on the same data.

Each side runs in a process of its own, with a bare loop of its own in the same process: the same network, data, epochs
and mini-batches, on one thread. A method's number is its CPU time over that of the bare loop, so that the two sides may
have different versions of torch. Both sides do what the methods add in their own way: the Fisher information of EWC is
over samples here and over mini-batches there. Avalanche's replay and LwF have no counterpart here in this protocol.

    python bench/peers.py --avalanche /path/to/python [--rounds 5] [--save]

`--avalanche`: a Python with avalanche-lib 0.6; without one, only our side runs. `--save`: write the numbers to the
table of docs/performance.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

METHODS = ("naive", "EWC", "SI", "A-GEM")
TASKS, SAMPLES, CLASSES, BATCH = 5, 500, 10, 10
NETWORKS = ("conv", "mlp")
Task = tuple[Tensor, Tensor]
Train = Callable[[nn.Module, list[Task]], None]


def tasks() -> list[Task]:
    """Random images with labels; what they show costs nothing."""
    random = torch.Generator().manual_seed(0)
    shape = (SAMPLES, 3, 32, 32)
    return [
        (torch.rand(shape, generator=random), torch.randint(CLASSES, (SAMPLES,), generator=random))
        for _ in range(TASKS)
    ]


def network(name: str) -> nn.Module:
    torch.manual_seed(0)
    if name == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(3072, 64), nn.ReLU(), nn.Linear(64, CLASSES))
    layers: list[nn.Module] = []
    for before, after in ((3, 16), (16, 32), (32, 64)):
        layers += [nn.Conv2d(before, after, 3, stride=2, padding=1), nn.ReLU()]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * 16, CLASSES))


def bare(model: nn.Module, data: list[Task]) -> None:
    """Fine-tuning as one writes it down."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    model.train()
    for x, y in data:
        for rows in torch.randperm(len(y)).split(BATCH):
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def ours(name: str, model: nn.Module, data: list[Task]) -> None:
    """The library's own: its loop, its record, its counter."""
    import tempfile
    from pathlib import Path

    from driftline import loop, registry
    from driftline.benchmarks.base import NoProbes
    from driftline.record.recorder import FileRecorder
    from driftline.reveal import RevealPolicy
    from driftline.seeds import Seed
    from driftline.tasks import Classification
    from driftline.training.mac_counter import MacCounter
    from driftline.types import Reveal, Samples, Step

    method = {"naive": "ft", "EWC": "ewc", "SI": "si", "A-GEM": "a-gem"}[name]
    task, meter = Classification(tuple(map(str, range(CLASSES)))), MacCounter()
    meter.attach(model)
    learner = registry.get("method", method)(epochs=1, batch=BATCH, optimizer="sgd", lr=0.01)
    learner.prepare(model, task)
    steps = [Step(k, str(k), Samples(x.numpy(), y.numpy())) for k, (x, y) in enumerate(data)]
    with tempfile.TemporaryDirectory() as folder:
        recorder = FileRecorder(task, Path(folder), lambda: (meter.forward, meter.backward))
        loop.run(steps, learner, RevealPolicy(task, Reveal.LABELS, Seed(0)), NoProbes(), recorder)  # type: ignore[arg-type]
        recorder.finish(Path(folder))


def avalanche(name: str, model: nn.Module, data: list[Task]) -> None:
    """Avalanche's strategies without metrics and loggers, which cost it more."""
    from avalanche.benchmarks import tensors_benchmark
    from avalanche.training import supervised
    from avalanche.training.plugins import EvaluationPlugin

    known: dict[str, Any] = {
        "naive": supervised.Naive,
        "EWC": partial(supervised.EWC, ewc_lambda=0.5, mode="online", decay_factor=1.0),
        "SI": partial(supervised.SynapticIntelligence, si_lambda=0.1),
        "A-GEM": partial(supervised.AGEM, patterns_per_exp=200, sample_size=BATCH),
    }
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    settings = {"train_mb_size": BATCH, "train_epochs": 1, "evaluator": EvaluationPlugin(loggers=[])}
    strategy = known[name](model=model, optimizer=optimizer, criterion=nn.CrossEntropyLoss(), **settings)
    scenario = tensors_benchmark(train_tensors=data, test_tensors=data, task_labels=[0] * len(data))
    for experience in scenario.train_stream:
        strategy.train(experience, num_workers=0)


def side(train: Callable[..., None], rounds: int) -> dict[str, list[float]]:
    """Return the CPU time of each method over that of the bare loop beside it, in rounds."""
    torch.set_num_threads(1)
    data, found = tasks(), {}
    for kind in NETWORKS:
        for method in METHODS:
            ways: dict[str, Train] = {"bare": bare, "method": partial(train, method)}
            ratios = []
            for k in range(rounds + 1):
                spent = {}
                for way in sorted(ways, reverse=bool(k % 2)):
                    model, began = network(kind), time.process_time()
                    ways[way](model, data)
                    spent[way] = time.process_time() - began
                ratios.append(spent["method"] / spent["bare"])
            found[f"{method}, {kind}"] = ratios[1:]  # the first round imports
    return found


def ask(python: str, name: str, rounds: int) -> dict[str, list[float]] | None:
    """Return what one side measures in a process of its own; None if it cannot be imported there."""
    package = "avalanche" if name == "avalanche" else "driftline"
    if subprocess.run([python, "-W", "ignore", "-c", f"import {package}"], capture_output=True).returncode:
        print(f"{name}: left out, because {python} has no {package}")
        return None
    command = [python, "-W", "ignore", __file__, "--side", name, "--rounds", str(rounds)]
    answer = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    measured: dict[str, list[float]] = json.loads(answer.splitlines()[-1])
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--avalanche", default=sys.executable, help="a Python that has avalanche-lib")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--side", choices=("ours", "avalanche"), help=argparse.SUPPRESS)
    parser.add_argument("--save", action="store_true", help="write the numbers to docs/performance.md")
    given = parser.parse_args()
    if given.side:
        print(json.dumps(side({"ours": ours, "avalanche": avalanche}[given.side], given.rounds)))
        return
    import performance

    here, there = ask(sys.executable, "ours", given.rounds), ask(given.avalanche, "avalanche", given.rounds)
    rows = []
    for name, ratios in (here or {}).items():
        other = sorted(there[name])[given.rounds // 2] if there else 1.0
        against = "Avalanche" if there else "bare loop"
        rows.append(performance.measured(f"{name}, over bare fine-tuning", "×", ratios, other, "peers.py", against))
        print(rows[-1], flush=True)
    if given.save:
        performance.add(rows)


if __name__ == "__main__":
    main()
