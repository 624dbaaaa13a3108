"""The settings of executors: in this process, in worker processes, or on a Ray cluster. Results are the same."""

from __future__ import annotations

import os
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Literal, get_args

from driftline.errors import UserError, unknown_name

Name = Literal["serial", "local", "ray"]
LONGEST = 1e9  # seconds; timers do not support much longer waits
UNITS = {"KB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}


@dataclass(frozen=True)
class ExecutorConfig:
    """Which executors compute stages, how many, and what each may use."""

    name: Name | None = None
    """serial, local or ray. By default ray with an address, local for several jobs, else serial."""
    jobs: int | None = None
    """Number of parallel stages. By default 1, and on Ray as many as fit."""
    address: str | None = None
    """Address of a Ray cluster, for example auto; without it one is started on this machine, and stopped."""
    timeout: float | None = None
    """Seconds after which a stage has failed."""
    retries: int = 2
    """Number of retries of a stage whose worker or machine was lost."""
    cpus: float = 1.0
    """CPUs that Ray reserves for a stage; a stage uses one thread."""
    gpus: float = 0.0
    """GPUs that Ray reserves for a stage."""
    memory: int | None = None
    """Bytes of memory that Ray reserves for a stage."""

    def __post_init__(self) -> None:
        for name in ("jobs", "timeout", "retries", "cpus", "gpus", "memory"):
            whole = name in ("jobs", "retries", "memory")
            if (value := getattr(self, name)) is not None and not isinstance(value, Integral if whole else Real):
                raise UserError(f"--{name} {value!r}: give a {'whole ' if whole else ''}number")
        if self.name is None:
            object.__setattr__(self, "name", self._default_name())
        if self.name not in get_args(Name):
            raise unknown_name("engine", str(self.name), get_args(Name))
        if self.name == "ray" and self.address is None:
            object.__setattr__(self, "address", os.environ.get("RAY_ADDRESS"))
        for name, least in {"jobs": 1, "retries": 0, "gpus": 0, "memory": 1}.items():
            if (value := getattr(self, name)) is not None and value < least:
                raise UserError(f"--{name} {value:g}: give a number from {least}")
        for name in ("timeout", "cpus"):
            if (value := getattr(self, name)) is not None and not 0 < value <= LONGEST:
                raise UserError(f"--{name} {value:g}: give a number above 0, and at most {LONGEST:g}")
        self._validate()

    def _default_name(self) -> Name:
        if self.address is not None:
            return "ray"
        return "local" if (self.jobs or 1) > 1 or self.timeout else "serial"

    def _validate(self) -> None:
        usual = ExecutorConfig.__dataclass_fields__
        for name in ("address", "cpus", "gpus", "memory"):
            if self.name != "ray" and getattr(self, name) != usual[name].default:
                raise UserError(f"--{name} is for Ray: add --engine ray, or leave it out")
        if self.name == "serial" and (self.jobs or 1) > 1:
            raise UserError(f"--engine serial computes one stage after another: leave out --jobs {self.jobs}")
        if self.name == "serial" and self.timeout:
            raise UserError("--timeout needs a separate process for each stage: use --engine local")


def parse_bytes(text: str) -> int:
    """Return the number of bytes that a text gives.

    >>> parse_bytes("1.5GB"), parse_bytes("1000")
    (1610612736, 1000)
    """
    number, unit = text.strip().upper(), 1
    for name, factor in UNITS.items():
        if number.endswith(name):
            number, unit = number.removesuffix(name), factor
    try:
        return int(float(number) * unit)
    except (ValueError, OverflowError):
        raise UserError(f"{text} is not a size: write it as 4GB or 500MB") from None
