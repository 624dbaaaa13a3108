"""A long open-world stream under methods on frozen features, against plain implementations that go one by one.

1,000 classes with heavy-tailed counts, floor(25000 / (25 + r)) for rank r, in random order; features are 512 numbers
around one center per class. Beside ours, on slices of the stream before, after and between rounds of ours:

- a plain learner one by one: the same method as one writes it down in torch, `predict` and `learn`, on the same loop,
  with labels through the same contract, the same passes counted and the same record on disk;
- ours without its fast route, asked about one sample after the other;
- a bare torch loop, which does none of that: it has all labels, counts nothing and keeps its answers in a list.

What is printed for the whole stream is the rate of the slice; for exemplar tuning an epoch of a plain training round
is timed too, because training costs all the same. The allocator is fixed alike for all.

    python bench/open_world.py [--samples 90000] [--slice 500] [--threads 1] [--only ncm] [--memory]
"""

from __future__ import annotations

import argparse
import ctypes
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize, softmax

from driftline import loop, models
from driftline.learners.base import Learner
from driftline.learners.prototypes.exemplar_tuning import ExemplarTuning
from driftline.learners.prototypes.ncm import NearestClassMean
from driftline.record.recorder import FileRecorder
from driftline.reveal import RevealPolicy
from driftline.seeds import Seed
from driftline.tasks import Classification, Task
from driftline.training.cached_features import extract_features
from driftline.training.mac_counter import MacCounter
from driftline.types import Answers, Probe, Reveal, Samples, Step

CLASSES, FEATURES, BLOCK = 1000, 512, 1000
EVERY, EPOCHS, BATCH = 5000, 4, 256
LIMITS = {"ncm": 60, "exemplar-tuning": 300}
ROUNDS = {"ncm": 3, "exemplar-tuning": 1}
TASK = Classification(tuple(map(str, range(CLASSES))))


class Stream:
    """Blocks of samples that come one by one, made when they are asked for."""

    def __init__(self, samples: int) -> None:
        counts = [25000 // (25 + rank) for rank in range(1, CLASSES + 1)]
        drawn = np.random.default_rng(0).permutation(np.repeat(np.arange(CLASSES), counts))
        if samples > len(drawn):
            sys.exit(f"the stream has {len(drawn)} samples, not {samples}")
        self.y = drawn[:samples]

    @cached_property
    def centres(self) -> np.ndarray:
        return np.random.default_rng(1).normal(size=(CLASSES, FEATURES)).astype(np.float32)

    def __len__(self) -> int:
        return -(-len(self.y) // BLOCK)

    def __iter__(self) -> Iterator[Step]:
        return (self[k] for k in range(len(self)))

    def __getitem__(self, index: int) -> Step:
        y = self.y[index * BLOCK : (index + 1) * BLOCK]
        noise = np.random.default_rng((2, index)).standard_normal((len(y), FEATURES), np.float32)
        return Step(index, str(index), Samples(self.centres[y] + 3 * noise, y), one_by_one=True)

    def first(self, n: int) -> tuple[torch.Tensor, list[int]]:
        blocks = [self[k].samples for k in range(-(-n // BLOCK))]
        return torch.from_numpy(np.concatenate([b.x for b in blocks])[:n]), self.y[:n].tolist()


class NoProbes:
    def due(self, step: Step | None) -> Iterable[Probe]:
        return []


def network() -> torch.nn.Sequential:
    """A network without hidden layers: it standardizes its inputs, and these are the features."""
    made: torch.nn.Sequential = models.build("linear", (FEATURES,), CLASSES, Seed(0))
    return made


def method(name: str) -> Any:
    """The library's own."""
    return NearestClassMean() if name == "ncm" else ExemplarTuning(train_every=EVERY, epochs=EPOCHS, batch=BATCH)


def unhurried(name: str) -> Any:
    """The library's own without its fast route."""
    learner = method(name)
    learner.answer_one_by_one = partial(Learner.answer_one_by_one, learner)
    return learner


def record_of(learner: Any, stream: Any) -> np.ndarray:
    """A learner through the real loop; its predictions, read back from the record."""
    learner.seed = Seed(0)
    model = network()
    meter = MacCounter()
    meter.attach(model)
    learner.prepare(model, TASK)
    with tempfile.TemporaryDirectory() as folder:
        parts = Path(folder) / "parts"
        record = FileRecorder(TASK, parts, lambda: (meter.forward, meter.backward))
        reveal = RevealPolicy(TASK, Reveal.LABELS, Seed(1))
        loop.run(stream, learner, reveal, NoProbes(), record, on_step=lambda k: None if k % 10 else record.flush())
        record.finish(Path(folder))
        prediction: np.ndarray = pd.read_parquet(Path(folder) / "answers.parquet")["prediction"].to_numpy()
    return prediction


class PlainMeans(Learner):
    """Nearest class mean, or exemplar tuning between training rounds, as one writes it down: predict and learn."""

    def __init__(self, linear: bool) -> None:
        self.linear = linear

    def prepare(self, model: Any, task: Task, upstream: Samples | None = None) -> None:
        super().prepare(model, task, upstream)
        self.means, self.counts = torch.zeros(CLASSES, FEATURES), torch.zeros(CLASSES)
        self.residual = torch.zeros(CLASSES, FEATURES)

    @torch.no_grad()
    def predict(self, x: Any) -> Answers:
        logits = logits_of(extract_features(self.model, x)[0], self.means, self.residual, self.linear)
        logits = logits.masked_fill(self.counts == 0, -torch.inf) if self.counts.any() else torch.zeros(CLASSES)
        return self._task.decode(logits[None].numpy())

    @torch.no_grad()
    def learn(self, x: Any, y: Any) -> None:
        for features, label in zip(extract_features(self.model, x), y, strict=True):
            follow(features, int(label), self.means, self.counts, self.linear)


def logits_of(features: Tensor, means: Tensor, residual: Tensor, linear: bool) -> Tensor:
    """One sample with all classes: dot products with means and residuals, or minus the squared distances to means."""
    return (means + residual) @ features if linear else -((means - features) ** 2).sum(dim=1)


def follow(features: Tensor, label: int, means: Tensor, counts: Tensor, linear: bool) -> None:
    """The mean of one class, of features at length one or as they are, after one more sample."""
    counts[label] += 1
    means[label] += ((features / features.norm() if linear else features) - means[label]) / counts[label]


@torch.no_grad()
def bare(x: Tensor, y: list[int], linear: bool) -> list[dict[str, Any]]:
    """No learner, no loop, no contract, nothing counted, nothing on disk: tensors, and answers in a list."""
    means, residual, counts = torch.zeros(CLASSES, FEATURES), torch.zeros(CLASSES, FEATURES), torch.zeros(CLASSES)
    rows, body = [], network()[:-1]
    for k, label in enumerate(y):
        features = body(x[k : k + 1])[0]
        rows.append(row(logits_of(features, means, residual, linear), counts))
        follow(features, label, means, counts, linear)
    return rows


def row(logits: Tensor, counts: Tensor) -> dict[str, Any]:
    """What a record holds of an answer."""
    scores = softmax(logits.masked_fill(counts == 0, -torch.inf), dim=0).nan_to_num()
    best = scores.topk(5)
    return {
        "prediction": int(scores.argmax()),
        "confidence": float(best.values[0]),
        "distance": -float(logits.max()),
        "top": best.indices.tolist(),
        "top_scores": best.values.tolist(),
    }


def plain_lesson(x: torch.Tensor, y: list[int]) -> None:
    """One epoch of residuals over these samples."""
    targets = torch.tensor(y)
    means = torch.zeros(CLASSES, FEATURES).index_add_(0, targets, normalize(x, dim=1))
    residual = torch.zeros(CLASSES, FEATURES, requires_grad=True)
    optimizer = torch.optim.SGD([residual], lr=0.1, momentum=0.9, weight_decay=1e-4)
    for rows in torch.randperm(len(y)).split(BATCH):
        optimizer.zero_grad()
        cross_entropy(x[rows] @ (means + residual).T, targets[rows]).backward()
        optimizer.step()


def timed(work: Callable[[], Any]) -> np.ndarray:
    """Wall-clock and CPU seconds."""
    began = time.perf_counter(), time.process_time()
    work()
    return np.array([time.perf_counter() - began[0], time.process_time() - began[1]])


def seconds_text(seconds: np.ndarray) -> str:
    return f"{seconds[0]:.1f} s, {seconds[1]:.1f} s of CPU time"


def compare(name: str, samples: int, few: int) -> None:
    """All four ways; between the slow ones ours, in rounds, because a machine has faster and slower minutes."""
    stream = Stream(samples)
    steps = list(stream)
    slice_, linear = [Step(0, "0", steps[0].samples[:few], one_by_one=True)], name != "ncm"
    record_of(method(name), Stream(BLOCK))  # compiles the loops
    slow: dict[str, Callable[[], Any]] = {
        "a plain learner one by one": lambda: record_of(PlainMeans(linear), slice_),
        "ours without its fast route": lambda: record_of(unhurried(name), slice_),
        "a bare torch loop": lambda: bare(*stream.first(few), linear),
    }
    answers: list[np.ndarray] = []
    seconds = {what: [timed(work)] for what, work in slow.items()}
    fast = []
    for _ in range(ROUNDS[name]):
        fast.append(timed(lambda: answers.append(record_of(method(name), steps))))
        for what, work in slow.items():
            seconds[what].append(timed(work))
    wall = np.median(fast, axis=0)
    limit, load = LIMITS[name], os.getloadavg()[0]
    print(f"{name}: {samples} samples in {seconds_text(wall)} (limit for 90000: {limit} s); load {load:.1f}")
    right, same = answers[0] == stream.y, slow["a plain learner one by one"]() == answers[0][:few]
    print(f"  accuracy {right.mean():.3f}; {same.mean():.1%} of the first {few} answers are the plain one's")
    training = plain_training(stream, samples) if linear else np.zeros(2)
    for what, taken in seconds.items():
        whole = samples / few * np.median(taken, axis=0) + training
        ratio = whole / wall
        print(f"  {what}: {seconds_text(whole)}; {ratio[0]:.1f} x wall-clock, {ratio[1]:.1f} x CPU time", flush=True)


def plain_training(stream: Stream, samples: int) -> np.ndarray:
    """What all training rounds cost the plain way, from one epoch over the first samples."""
    rounds, many = samples // EVERY, min(EVERY, samples)
    passes = EPOCHS * EVERY * rounds * (rounds + 1) // 2
    seconds = passes / many * timed(partial(plain_lesson, *stream.first(many)))
    print(f"  plain training, {passes} sample passes: {seconds_text(seconds)}")
    return seconds


def peaks(name: str, samples: int, threads: int) -> None:
    """Peak memory of streams of several lengths, each in a process of its own."""
    found = {}
    for n in (BLOCK, samples // 4, samples // 2, samples):
        settings = ["--only", name, "--samples", str(n), "--threads", str(threads)]
        command = [sys.executable, __file__, *settings, "--peak"]
        found[n] = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    memory = ", ".join(f"{n} samples {kib / 1024:.0f} MiB" for n, kib in found.items())
    print(f"{name}: peak memory {memory}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=90_000, help="how long the stream is")
    parser.add_argument("--slice", type=int, default=500, help="how many samples the plain ones answer, twice")
    parser.add_argument("--threads", type=int, default=1, help="of torch, on both sides")
    parser.add_argument("--only", choices=LIMITS, help="one method alone")
    parser.add_argument("--memory", action="store_true", help="peak memory against the length of the stream instead")
    parser.add_argument("--peak", action="store_true", help="run ours once and print the peak memory in KiB")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if not arguments.peak:
        for setting, value in ((-1, 1 << 30), (-3, 1 << 25)):  # memory never goes back to the system, for all sides
            assert ctypes.CDLL(None).mallopt(setting, value), "the allocator of this system cannot be fixed"
    for name in [arguments.only] if arguments.only else LIMITS:
        if arguments.peak:
            record_of(method(name), Stream(arguments.samples))
            print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        elif arguments.memory:
            peaks(name, arguments.samples, arguments.threads)
        else:
            compare(name, arguments.samples, arguments.slice)


if __name__ == "__main__":
    main()
