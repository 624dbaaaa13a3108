"""Where stages are computed: in this process, in worker processes, or on a Ray cluster. Results are the same."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from driftline.engine.execute import Executor, Here
from driftline.engine.local import Worker
from driftline.errors import UserError, unknown
from driftline.store import Store

Name = Literal["serial", "local", "ray"]
LONGEST = 1e9  # seconds, 31 years; the system's clocks know no much longer wait
UNITS = {"KB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}


@dataclass(frozen=True)
class Engine:
    """Who computes stages, how many at once, and what each may use."""

    name: Name | None = None
    """serial, local or ray. If nothing is said: ray with an address, local for several at once, else serial."""
    jobs: int | None = None
    """How many stages at once. On Ray, as many as fit if nothing is said."""
    address: str | None = None
    """Of a Ray cluster, for example auto; without it one is started on this machine, and ended."""
    timeout: float | None = None
    """Seconds after which a stage has failed."""
    retries: int = 2
    """How often a stage is tried again whose worker or machine was lost."""
    cpus: float = 1.0
    """CPUs that Ray sets aside for a stage; a stage uses one thread."""
    gpus: float = 0.0
    """GPUs that Ray sets aside for a stage."""
    memory: int | None = None
    """Bytes of memory that Ray sets aside for a stage."""

    def __post_init__(self) -> None:
        if self.name is None:
            object.__setattr__(self, "name", self._fitting())
        if self.name not in get_args(Name):
            raise unknown("engine", str(self.name), get_args(Name))
        if self.name == "ray" and self.address is None:
            object.__setattr__(self, "address", os.environ.get("RAY_ADDRESS"))
        for name, least in {"jobs": 1, "retries": 0, "gpus": 0, "memory": 1}.items():
            if (value := getattr(self, name)) is not None and value < least:
                raise UserError(f"--{name} {value:g}: give a number from {least}")
        for name in ("timeout", "cpus"):
            if (value := getattr(self, name)) is not None and not 0 < value <= LONGEST:
                raise UserError(f"--{name} {value:g}: give a number above 0, and at most {LONGEST:g}")
        self._must_make_sense()

    def _fitting(self) -> Name:
        if self.address is not None:
            return "ray"
        return "local" if (self.jobs or 1) > 1 or self.timeout else "serial"

    def _must_make_sense(self) -> None:
        usual = Engine.__dataclass_fields__
        for name in ("address", "cpus", "gpus", "memory"):
            if self.name != "ray" and getattr(self, name) != usual[name].default:
                raise UserError(f"--{name} is for Ray: add --engine ray, or leave it out")
        if self.name == "serial" and (self.jobs or 1) > 1:
            raise UserError(f"--engine serial computes one stage after another: leave out --jobs {self.jobs}")
        if self.name == "serial" and self.timeout:
            raise UserError("--timeout ends a stage that hangs, which takes a process of its own: use --engine local")


@contextmanager
def executors(engine: Engine, store: Store, where: Path | None) -> Iterator[list[Executor]]:
    """Those who compute; they stay for several plans, since to start one costs seconds."""
    if engine.name == "serial":
        yield [Here(store, where)]
    elif engine.name == "local":
        workers = [Worker(store, where, engine.timeout, engine.retries) for _ in range(engine.jobs or 1)]
        try:
            yield list(workers)
        finally:
            for worker in workers:
                worker.close()
    else:
        from driftline.engine.on_ray import on_ray

        with on_ray(engine, store, where) as tasks:
            yield tasks


def size_of(text: str) -> int:
    """A number of bytes.

    >>> size_of("1.5GB"), size_of("1000")
    (1610612736, 1000)
    """
    number, unit = text.strip().upper(), 1
    for name, factor in UNITS.items():
        if number.endswith(name):
            number, unit = number.removesuffix(name), factor
    try:
        return int(float(number) * unit)
    except (ValueError, OverflowError):
        raise UserError(f"{text} is no size: write it as 4GB or 500MB") from None
