"""What `device.compile` gains here: CPU time of a pass as written over that of a compiled one, and time to compile.

One thread, batches of 64 images of 32 pixels, rounds interleaved; the gain is the median of the ratios within a round.

    python bench/compile.py [mlp conv-1 resnet20 ...]
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

os.environ.update({name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")})

import numpy as np
import torch
from torch import nn

from driftline import device, models
from driftline.device import DeviceSettings
from driftline.engine.executors.process import keep_freed_memory
from driftline.seeds import Seed

ROUNDS, BATCH, SIDE = 15, 64, 32


def training_step(network: nn.Module, x: torch.Tensor) -> None:
    network.train().zero_grad()
    network(x).logsumexp(1).sum().backward()


def evaluation(network: nn.Module, x: torch.Tensor) -> None:
    with torch.no_grad():
        network.eval()(x)


def seconds(run: Callable[[], None]) -> float:
    began = time.process_time()
    run()
    return time.process_time() - began


def measure(name: str) -> None:
    network = models.build(name, (SIDE, SIDE, 3), 10, Seed(0))
    with device.use(DeviceSettings(name="cpu", compile=True)):
        compiled = models.build(name, (SIDE, SIDE, 3), 10, Seed(0))
    x = torch.rand(BATCH, 3, SIDE, SIDE)
    for run in (training_step, evaluation):
        began = time.perf_counter()
        run(compiled, x)
        taken = time.perf_counter() - began
        run(network, x)
        ratios = [seconds(lambda: run(network, x)) / seconds(lambda: run(compiled, x)) for _ in range(ROUNDS)]  # noqa: B023
        low, gain, high = np.quantile(ratios, [0.25, 0.5, 0.75])
        print(f"{name:10} {run.__name__:14} {gain:5.2f} [{low:.2f}, {high:.2f}]  compiled in {taken:.0f} s", flush=True)


if __name__ == "__main__":
    keep_freed_memory()
    torch.set_num_threads(1)
    for name in sys.argv[1:] or ["mlp", "conv-1", "resnet20"]:
        measure(name)
