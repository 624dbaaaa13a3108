"""What the loop itself costs: the whole of Driftline against a bare PyTorch loop that does the same work.

Both sides make the same updates and the same predictions, from the same initial weights, with the same batches, in
one process and on one thread, in turns. Driftline also answers for the record: every answer and probe goes into a
Recorder, labels come through a RevealPolicy, and a MacCounter counts all passes. The ratio is one of CPU time. Cases:
fine-tuning per period (timeline), continual fine-tuning on the errors of each episode (refinement), and fine-tuning at
intervals on all samples so far, which come one by one (open-world).

    python bench/overhead.py [--rounds 7] [--only yearbook-cnn] [--save]

`--save`: write the numbers to the table of docs/performance.md.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import performance
import torch
from torch import nn

from driftline import loop, models
from driftline.benchmarks.base import NoProbes
from driftline.learners.base import Learner
from driftline.learners.online.base import zero_rows
from driftline.learners.online.standard_training import StandardTraining
from driftline.learners.replay.cft import CFT
from driftline.learners.supervised.ft import FineTune
from driftline.record.recorder import FileRecorder
from driftline.reveal import RevealPolicy
from driftline.seeds import Seed
from driftline.tasks import Classification
from driftline.training.batches import shuffled_batches
from driftline.training.cached_features import classifier_layer
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


# Episodes of 64 queries, as many as in the paper, of random labels: nearly all of them are errors.
EPISODES = Case("mlp", (8, 8, 1), batch=8, updates=0, periods=24, samples=64, classes=10)
EPOCHS = 10

# Samples that come one by one, with a training on all so far after each period: about as many updates as above.
ONE_BY_ONE = Case("mlp", (8, 8, 1), batch=32, updates=0, periods=8, samples=250, classes=10)
EPOCHS_ON_ALL = 4


@dataclass(frozen=True)
class Again:
    """The errors of each step again."""

    def due(self, step: Step | None) -> Iterable[Probe]:
        return [Probe("now", step.samples, errors_only=True)] if step else []


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
    return run(case, stream, FineTune(updates=case.updates, batch=case.batch), Reveal.LABELS, Later(stream))


def refinement(case: Case, stream: list[Step]) -> np.ndarray:
    """The library's own way, on errors."""
    return run(case, stream, CFT(batch=case.batch, epochs=EPOCHS), Reveal.ERRORS, Again())


def open_world(case: Case, stream: list[Step]) -> np.ndarray:
    """The library's own way, one by one."""
    learner = StandardTraining(train_every=case.samples, epochs=EPOCHS_ON_ALL, batch=case.batch)
    return run(case, [replace(step, one_by_one=True) for step in stream], learner, Reveal.LABELS, NoProbes())


def run(case: Case, stream: list[Step], learner: Learner, level: Reveal, probes: loop.Probes) -> np.ndarray:
    """A learner on the loop, counted and recorded."""
    model, task = make_model(case), Classification(tuple(map(str, range(case.classes))))
    meter = MacCounter()
    meter.attach(model)
    learner.seed = SEED
    learner.prepare(model, task)
    with tempfile.TemporaryDirectory() as folder:
        record = FileRecorder(task, Path(folder) / "parts", lambda: (meter.forward, meter.backward))
        loop.run(stream, learner, RevealPolicy(task, level, Seed(1)), probes, record)
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


def bare_refinement(case: Case, stream: list[Step]) -> np.ndarray:
    """The same updates and predictions on errors, and nothing else."""
    model = make_model(case)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    rounds = 0
    for step in stream:
        x, y = torch.from_numpy(step.samples.x), torch.from_numpy(step.samples.y)
        wrong = torch.from_numpy(ask(model, x)) != y
        if wrong.any():
            fit_input_scaling(model, x[wrong])
            inputs, targets = x[wrong].permute(0, 3, 1, 2).float().div_(255), y[wrong]
            model.train()
            for epoch in range(EPOCHS):
                order = SEED.child("lesson", rounds).child("order", epoch)
                for rows in shuffled_batches(len(targets), case.batch, order):
                    loss = nn.functional.cross_entropy(model(inputs[rows]), targets[rows])
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
            model.eval()
            ask(model, x[wrong])
            rounds += 1
    return ask(model, torch.from_numpy(stream[-1].samples.x))


def bare_open_world(case: Case, stream: list[Step]) -> np.ndarray:
    """The same updates and predictions on all samples so far, and nothing else."""
    model = make_model(case)
    zero_rows(classifier_layer(model), np.ones(case.classes, bool))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    x, y = torch.zeros((0, *case.shape), dtype=torch.uint8), torch.zeros(0, dtype=torch.long)
    for k, step in enumerate(stream):
        ask(model, torch.from_numpy(step.samples.x))
        x, y = (torch.cat([old, torch.from_numpy(new)]) for old, new in ((x, step.samples.x), (y, step.samples.y)))
        fit_input_scaling(model, x)
        inputs = x.permute(0, 3, 1, 2).float().div_(255)
        model.train()
        for epoch in range(EPOCHS_ON_ALL):
            for rows in shuffled_batches(len(y), case.batch, SEED.child("lesson", k, epoch, "order")):
                loss = nn.functional.cross_entropy(model(inputs[rows]), y[rows])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        model.eval()
    return ask(model, torch.from_numpy(stream[-1].samples.x))


def ask(model: nn.Module, x: torch.Tensor) -> np.ndarray:
    with torch.no_grad():
        parts = [model(part.permute(0, 3, 1, 2).float().div_(255)) for part in x.split(128)]
    return torch.cat(parts).argmax(1).numpy()


Side = Callable[[Case, list[Step]], np.ndarray]


def cpu_seconds(work: Side, case: Case, stream: list[Step]) -> float:
    started = time.process_time()
    work(case, stream)
    return time.process_time() - started


def compare(name: str, case: Case, ours: Side, plain: Side, rounds: int) -> performance.Measure:
    """Print and return the ratio of CPU times."""
    stream = make_stream(case)
    same = np.array_equal(ours(case, stream), plain(case, stream))  # also the warm-up
    assert same, "the two sides must do the same work"
    ratios = []
    for k in range(rounds):
        sides = (ours, plain) if k % 2 else (plain, ours)
        seconds = {side: cpu_seconds(side, case, stream) for side in sides}
        ratios.append(seconds[ours] / seconds[plain])
    found = performance.measured(f"overhead: {name}", "×", ratios, 1.03, "overhead.py")
    print(
        f"{name}: CPU time {found.ours:.3f} x bare PyTorch (median of {len(ratios)}; {found.low:.3f} to "
        f"{found.high:.3f}; load {found.load:.1f})",
        flush=True,
    )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7, help="how often each side is timed")
    parser.add_argument("--only", default="", help="time only the cases with this in their names")
    parser.add_argument("--save", action="store_true", help="write the numbers to docs/performance.md")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    title = f"refinement, {EPISODES.model}, batch {EPISODES.batch}, {EPISODES.samples} queries per episode"
    cases = [(f"timeline, {case.name}", case, driftline, bare) for case in CASES]
    cases.append((title, EPISODES, refinement, bare_refinement))
    title = f"open-world, {ONE_BY_ONE.model}, batch {ONE_BY_ONE.batch}, {EPOCHS_ON_ALL} epochs of all samples so far"
    cases.append((title, ONE_BY_ONE, open_world, bare_open_world))
    found = [compare(*case, arguments.rounds) for case in cases if arguments.only in case[0]]
    if arguments.save:
        performance.add(found)


if __name__ == "__main__":
    main()
