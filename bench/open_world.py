"""A long open-world stream under methods on frozen features, against plain implementations that go one by one.

1,000 classes with heavy-tailed counts, floor(25000 / (25 + r)) for rank r, in random order; features are 512 numbers
around one centre per class. Ours goes through the real loop: labels through Revealing, every answer into a Recorder on
disk, all passes counted. The plain ones hold everything in tensors, pass one sample through the same network, answer,
keep what a record holds of an answer in a list, and take the label. They are timed on slices of the stream before,
after and between rounds of ours, and what is printed for the whole of it is that rate; for exemplar tuning an epoch of
a plain lesson is timed too, because training costs both the same. Third, our own code asked about one sample at a time.
The allocator is fixed alike for all.

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
import torch
from torch.nn.functional import cross_entropy, normalize, softmax

from driftline import loop, models
from driftline.learners.base import Learner
from driftline.learners.exemplar_tuning import ExemplarTuning
from driftline.learners.ncm import NearestClassMean
from driftline.record import Recorder, Run
from driftline.reveal import Revealing
from driftline.seeds import Seed
from driftline.tasks import Classification
from driftline.training.meter import Meter
from driftline.types import Probe, Reveal, Samples, Step

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
        return Step(index, str(index), Samples(self.centres[y] + 3 * noise, y), in_turn=True)

    def first(self, n: int) -> tuple[torch.Tensor, list[int]]:
        blocks = [self[k].samples for k in range(-(-n // BLOCK))]
        return torch.from_numpy(np.concatenate([b.x for b in blocks])[:n]), self.y[:n].tolist()


class NoProbes:
    def due(self, step: Step | None) -> Iterable[Probe]:
        return []


def network() -> torch.nn.Sequential:
    """A network without hidden layers: it standardises its inputs, and these are the features."""
    made: torch.nn.Sequential = models.build("linear", (FEATURES,), CLASSES, Seed(0))
    return made


def ours(name: str, stream: Any, one_by_one: bool = False) -> np.ndarray:
    """The library's own way, or its way without a fast route; its predictions, read back from the record."""
    learner: Any = NearestClassMean() if name == "ncm" else ExemplarTuning(every=EVERY, epochs=EPOCHS, batch=BATCH)
    learner.seed = Seed(0)
    if one_by_one:
        learner.in_turn = partial(Learner.in_turn, learner)
    model = network()
    meter = Meter()
    meter.attach(model)
    learner.prepare(model, TASK)
    with tempfile.TemporaryDirectory() as folder:
        parts = Path(folder) / "parts"
        record = Recorder(TASK, parts, lambda: (meter.forward, meter.backward))
        reveal = Revealing(TASK, Reveal.LABELS, Seed(1))
        loop.run(stream, learner, reveal, NoProbes(), record, after_step=lambda k: None if k % 10 else record.flush())
        record.finish(Path(folder))
        prediction: np.ndarray = Run(Path(folder)).table("answers")["prediction"].to_numpy()
    return prediction


def row(logits: torch.Tensor, counts: torch.Tensor) -> dict[str, Any]:
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


def plain_ncm(x: torch.Tensor, y: list[int]) -> list[int]:
    """One by one: squared distances to all means, softmax, the best, then the mean of the class that is told."""
    means, counts, body = torch.zeros(CLASSES, FEATURES), torch.zeros(CLASSES), network()[:-1]
    rows = []
    for k, label in enumerate(y):
        features = body(x[k : k + 1])[0]
        rows.append(row(-((means - features) ** 2).sum(dim=1), counts))
        counts[label] += 1
        means[label] += (features - means[label]) / counts[label]
    return [row["prediction"] for row in rows]


def plain_tuning(x: torch.Tensor, y: list[int]) -> list[int]:
    """One by one: dot products with all means and residuals, softmax, the best, then the mean."""
    means, residual, counts = torch.zeros(CLASSES, FEATURES), torch.zeros(CLASSES, FEATURES), torch.zeros(CLASSES)
    rows, body = [], network()[:-1]
    for k, label in enumerate(y):
        features = body(x[k : k + 1])[0]
        rows.append(row((means + residual) @ features, counts))
        counts[label] += 1
        means[label] += (features / features.norm() - means[label]) / counts[label]
    return [row["prediction"] for row in rows]


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


def said(seconds: np.ndarray) -> str:
    return f"{seconds[0]:.1f} s, {seconds[1]:.1f} s of CPU time"


def compare(name: str, samples: int, few: int) -> None:
    """All three ways; between the slow ones ours, in rounds, because a machine has faster and slower minutes."""
    stream = Stream(samples)
    steps = list(stream)
    ours(name, Stream(BLOCK))  # compiles the loops
    x, y = stream.first(few)
    plain = partial(plain_ncm if name == "ncm" else plain_tuning, x, y)
    single = [Step(0, "0", steps[0].samples[:few], in_turn=True)]
    answers: np.ndarray = np.empty(0)

    def go() -> None:
        nonlocal answers
        answers = ours(name, steps)

    fast, slow, alone = [], [timed(plain)], [timed(lambda: ours(name, single, one_by_one=True))]
    for _ in range(ROUNDS[name]):
        fast.append(timed(go))
        slow.append(timed(plain))
        alone.append(timed(lambda: ours(name, single, one_by_one=True)))
    wall = np.median(fast, axis=0)
    same = float(np.mean(np.array(plain()) == answers[:few]))
    print(
        f"{name}: {samples} samples in {said(wall)} (limit for 90000: {LIMITS[name]} s); load {os.getloadavg()[0]:.1f}"
    )
    print(f"  accuracy {np.mean(answers == stream.y):.3f}; {same:.1%} of the first {few} answers are the plain one's")
    training = plain_training(stream, samples) if name == "exemplar-tuning" else np.zeros(2)
    for what, seconds in (("plain", slow), ("ours one by one", alone)):
        whole = samples / few * np.median(seconds, axis=0) + training
        print(
            f"  {what}: {said(whole)}; {(whole / wall)[0]:.1f} x wall-clock, {(whole / wall)[1]:.1f} x CPU time",
            flush=True,
        )


def plain_training(stream: Stream, samples: int) -> np.ndarray:
    """What all lessons cost the plain way, from one epoch over the first samples."""
    lessons, many = samples // EVERY, min(EVERY, samples)
    passes = EPOCHS * EVERY * lessons * (lessons + 1) // 2
    seconds = passes / many * timed(partial(plain_lesson, *stream.first(many)))
    print(f"  plain training, {passes} sample passes: {said(seconds)}")
    return seconds


def peaks(name: str, samples: int, threads: int) -> None:
    """Peak memory of streams of several lengths, each in a process of its own."""
    found = {}
    for n in (BLOCK, samples // 4, samples // 2, samples):
        settings = ["--only", name, "--samples", str(n), "--threads", str(threads)]
        command = [sys.executable, __file__, *settings, "--peak"]
        found[n] = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    said = ", ".join(f"{n} samples {kib / 1024:.0f} MiB" for n, kib in found.items())
    print(f"{name}: peak memory {said}", flush=True)


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
            ours(name, Stream(arguments.samples))
            print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        elif arguments.memory:
            peaks(name, arguments.samples, arguments.threads)
        else:
            compare(name, arguments.samples, arguments.slice)


if __name__ == "__main__":
    main()
