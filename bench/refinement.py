"""Whether an episode costs more the longer a stream has been: processor time early and late in 300 episodes.

Every episode shows the same number of labels, so that what changes with time is the memory alone; a method without one
is the measure. An episode with an examination is counted apart: it asks about a sample of past queries, never all.

    python bench/refinement.py [--episodes 300] [--methods cft,er,mir]
"""

from __future__ import annotations

import argparse
import copy
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from driftline import loop, models, registry
from driftline.benchmarks.base import Scenario
from driftline.benchmarks.refinement.benchmark import Options, Refinement
from driftline.data import Dataset, load
from driftline.learners.base import Learner
from driftline.learners.supervised.base import SupervisedLearner
from driftline.record.recorder import FileRecorder
from driftline.reveal import RevealPolicy
from driftline.seeds import Seed
from driftline.types import Reveal

SHOWN = 16


def upstream_model(dataset: Dataset, layout: Scenario) -> Any:
    model = models.build("mlp", dataset.samples.x.shape[1:], dataset.task.width, Seed(0), width=128)
    teacher = SupervisedLearner(**layout.pretrain_settings)
    teacher.prepare(model, dataset.task)
    teacher.train(layout.upstream.x, layout.upstream.y)  # type: ignore[union-attr]
    return model


def seconds_per_episode(name: str, dataset: Dataset, layout: Scenario, model: Any) -> np.ndarray:
    """Processor time of each episode: answering, learning and evaluation."""
    learner: Learner = registry.get("method", name)(epochs=3)
    learner.prepare(model, dataset.task, layout.upstream)
    moments = [time.process_time()]
    with tempfile.TemporaryDirectory() as folder:
        recorder = FileRecorder(dataset.task, Path(folder), lambda: (None, None))
        reveal = RevealPolicy(dataset.task, Reveal.LABELS, Seed(0), budget=SHOWN)
        loop.run(
            *(layout.stream, learner, reveal, layout.probes, recorder),
            on_step=lambda done: moments.append(time.process_time()),
        )
    return np.diff(moments)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=300)
    parser.add_argument("--methods", default="cft,online-ewc,er,maxloss,mir,mir+l2")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    dataset = load("digit-clusters")
    options = Options(episodes=arguments.episodes, upstream_updates=500)
    layout = Refinement().build_scenario(dataset, options, Seed(0))
    model = upstream_model(dataset, layout)
    fifth = arguments.episodes // 5
    evaluated = (np.arange(arguments.episodes) + 1) % options.period == 0
    early, late = np.arange(arguments.episodes) < 2 * fifth, np.arange(arguments.episodes) >= 4 * fifth
    early &= np.arange(arguments.episodes) >= fifth  # by then a memory of errors holds more than the candidates
    print(f"{arguments.episodes} episodes, medians of the second and the last fifth, {SHOWN} labels per episode")
    for name in arguments.methods.split(","):
        took = seconds_per_episode(name, dataset, layout, copy.deepcopy(model))
        plain = [float(np.median(took[part & ~evaluated])) for part in (early, late)]
        probes = [float(np.median(took[part & evaluated])) for part in (early, late)]
        print(
            f"{name}: {1e3 * plain[0]:.1f} ms, then {1e3 * plain[1]:.1f} ms (x {plain[1] / plain[0]:.2f}); "
            f"with probes {1e3 * probes[0]:.1f} ms, then {1e3 * probes[1]:.1f} ms (x {probes[1] / probes[0]:.2f})",
            flush=True,
        )


if __name__ == "__main__":
    main()
