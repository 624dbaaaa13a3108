"""What the loop itself costs: the whole of Driftline against a bare PyTorch loop that does the same work.

Both sides make the same updates and the same predictions, from the same initial weights, with the same batches, in
one process and on one thread, in turns. Driftline also answers for the record: every answer and probe goes into a
Recorder, labels come through a RevealPolicy, and a MacCounter counts all passes. The ratio is one of CPU time.

    python bench/overhead.py [--rounds 7] [--only yearbook-cnn]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

from driftline import loop, models
from driftline.learners.supervised.ft import FineTune
from driftline.record.recorder import FileRecorder
from driftline.reveal import RevealPolicy
from driftline.seeds import Seed
from driftline.tasks import Classification
from driftline.training.fit import fit_input_scaling
from driftline.training.mac_counter import MacCounter
from driftline.types import Probe, Reveal, Samples, Step

SEED = Seed(0).child("learner")


@dataclass(frozen=True)
class Case:
    """A protocol to time: a model, how it is trained per period, and how much it is asked."""

    model: str
    shape: tuple[int, ...]
    batch: int
    updates: int
    periods: int
    samples: int
    classes: int

    @property
    def name(self) -> str:
        return f"{self.model}, batch {self.batch}, {self.updates} updates, {self.samples} samples per period"


# Half of a Yearbook period (300 updates on about 400 portraits), so that what is paid per step weighs double here.
CASES = (
    Case("yearbook-cnn", (32, 32, 1), batch=32, updates=150, periods=2, samples=200, classes=2),
    Case("mlp", (8, 8, 1), batch=10, updates=300, periods=4, samples=200, classes=10),
    Case("mlp", (8, 8, 1), batch=128, updates=300, periods=4, samples=200, classes=10),
)


@dataclass(frozen=True)
class Later:
    """Every later period, after each period."""

    stream: list[Step]

    def due(self, step: Step | None) -> Iterable[Probe]:
        return [Probe(later.time, later.samples) for later in self.stream[step.index + 1 :]] if step else []


def make_stream(case: Case) -> list[Step]:
    rng = np.random.default_rng(0)
    steps = []
    for k in range(case.periods):
        x = rng.integers(0, 256, (case.samples, *case.shape), dtype=np.uint8)
        steps.append(Step(k, str(k), Samples(x=x, y=rng.integers(0, case.classes, case.samples))))
    return steps


def make_model(case: Case) -> nn.Module:
    model = models.build(case.model, case.shape, case.classes, Seed(0))
    assert isinstance(model, nn.Module)
    return model


def driftline(case: Case, stream: list[Step]) -> np.ndarray:
    """The library's own way."""
    model, task = make_model(case), Classification(tuple(map(str, range(case.classes))))
    meter = MacCounter()
    meter.attach(model)
    learner = FineTune(updates=case.updates, batch=case.batch)
    learner.seed = SEED
    learner.prepare(model, task)
    with tempfile.TemporaryDirectory() as folder:
        record = FileRecorder(task, Path(folder) / "parts", lambda: (meter.forward, meter.backward))
        loop.run(stream, learner, RevealPolicy(task, Reveal.LABELS, Seed(1)), Later(stream), record)
        record.finish(Path(folder))
    return learner.predict(stream[-1].samples.x).prediction


def bare(case: Case, stream: list[Step]) -> np.ndarray:
    """The same updates and predictions, and nothing else."""
    model = make_model(case)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    inputs = [torch.from_numpy(step.samples.x) for step in stream]
    targets = [torch.from_numpy(step.samples.y) for step in stream]
    for k in range(len(stream)):
        ask(model, inputs[k])
        fit_input_scaling(model, inputs[k])
        generator = SEED.child("lesson", k, "batches").torch()
        rows = torch.randint(len(targets[k]), (case.updates, case.batch), generator=generator)
        model.train()
        for chosen in rows:
            batch = inputs[k][chosen].permute(0, 3, 1, 2).float().div_(255)
            loss = nn.functional.cross_entropy(model(batch), targets[k][chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        for later in inputs[k + 1 :]:
            ask(model, later)
    return ask(model, inputs[-1])


def ask(model: nn.Module, x: torch.Tensor) -> np.ndarray:
    with torch.no_grad():
        parts = [model(part.permute(0, 3, 1, 2).float().div_(255)) for part in x.split(128)]
    return torch.cat(parts).argmax(1).numpy()


def cpu_seconds(work: Callable[[Case, list[Step]], np.ndarray], case: Case, stream: list[Step]) -> float:
    started = time.process_time()
    work(case, stream)
    return time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7, help="how often each side is timed")
    parser.add_argument("--only", default="", help="time only the models of this name")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for case in CASES:
        if arguments.only not in case.model:
            continue
        stream = make_stream(case)
        same = np.array_equal(driftline(case, stream), bare(case, stream))  # also the warm-up
        assert same, "the two sides must do the same work"
        ratios = []
        for k in range(arguments.rounds):
            sides = (driftline, bare) if k % 2 else (bare, driftline)
            seconds = {side: cpu_seconds(side, case, stream) for side in sides}
            ratios.append(seconds[driftline] / seconds[bare])
        ratios.sort()
        print(
            f"{case.name}: CPU time {statistics.median(ratios):.3f} x bare PyTorch "
            f"(median of {len(ratios)}; {ratios[0]:.3f} to {ratios[-1]:.3f})",
            flush=True,
        )


if __name__ == "__main__":
    main()
