"""Does making corrupted images hold the model up? Wall-clock throughput of the whole loop against the bare model's.

Bare: batches that were made before, and nothing but the method's answers. Whole: the same images made on the way by one
thread, the loop, the record. Rounds alternate between the two; medians of paired ratios.

    python bench/test_time.py --data-dir DATA [--method tent] [--batches 40] [--rounds 5]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from driftline import data, loop, models, registry
from driftline.benchmarks.base import NoProbes
from driftline.benchmarks.test_time.benchmark import Options
from driftline.benchmarks.test_time.streams import build_schedule
from driftline.engine.executors.process import keep_freed_memory
from driftline.learners.base import Learner
from driftline.record.recorder import FileRecorder
from driftline.reveal import RevealPolicy
from driftline.seeds import Seed
from driftline.streams import corruption_stream, prefetch
from driftline.streams.test_time.stream import source_images
from driftline.tasks import Task
from driftline.types import Reveal


def learner_of(method: str, name: str, weights: str | None, shape: tuple[int, ...], task: Task) -> Learner:
    settings = {} if weights is None else {"weights": weights}
    learner: Learner = registry.get("method", method)()
    learner.prepare(models.build(name, shape, task.width, Seed(0), **settings), task)
    return learner


def bare(learner: Learner, batches: list[Any]) -> float:
    began = time.perf_counter()
    for x in batches:
        learner.answer(x)
    return time.perf_counter() - began


def whole(learner: Learner, stream: Any, task: Task) -> float:
    with tempfile.TemporaryDirectory() as folder:
        recorder = FileRecorder(task, Path(folder), lambda: (None, None))
        reveal = RevealPolicy(task, Reveal.INPUTS, Seed(0))
        coming = prefetch(stream)
        began = time.perf_counter()
        loop.run(coming, learner, reveal, NoProbes(), recorder)
        took = time.perf_counter() - began
        coming.close()
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--data", default="cifar10")
    parser.add_argument("--model", default="resnet20")
    parser.add_argument("--weights")
    parser.add_argument("--method", default="tent")
    parser.add_argument("--batches", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    keep_freed_memory()
    torch.set_num_threads(1)
    dataset = data.load(arguments.data, {}, data.data_folders(arguments.data_dir))
    options = Options(order="gradual", images=64 * arguments.batches, images_per_point=64)
    stream = corruption_stream(
        source_images(dataset),
        build_schedule(options, 0)[0],
        n_images=options.images,
        batch=64,
        images_per_point=64,
        seed=Seed(0),
    )
    batches = [stream[t].samples.x for t in range(len(stream))]
    shape, ratios = batches[0].shape[1:], []
    for round_ in range(arguments.rounds + 1):
        learners = [
            learner_of(arguments.method, arguments.model, arguments.weights, shape, dataset.task) for _ in range(2)
        ]
        alone, together = bare(learners[0], batches), whole(learners[1], stream, dataset.task)
        if round_:  # the first one compiles
            ratios.append(alone / together)
            print(f"{options.images / alone:.0f} images/s bare, {options.images / together:.0f} whole", flush=True)
    low, middle, high = np.quantile(ratios, (0, 0.5, 1))
    print(f"{arguments.method} on {arguments.model}: whole is {middle:.2f} of bare ({low:.2f} to {high:.2f})")


if __name__ == "__main__":
    main()
