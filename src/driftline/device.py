"""The device that networks run on. No other module names one.

Networks, their optimizers and what is computed with them live on the device; samples, records and checkpoints stay on
the host, and inputs are copied batch by batch. Random numbers are drawn on the host, so that a device changes results
by rounding alone.
"""

from __future__ import annotations

import functools
import logging
import os
import re
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar, cast

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, Field, model_validator

from driftline import forward_pass
from driftline.errors import UserError

if TYPE_CHECKING:
    import numpy as np
    import torch
    from torch import Tensor, nn

M = TypeVar("M")
log = logging.getLogger("driftline")
HOST = "cpu"
Precision = Literal["float32", "bfloat16", "float16"]
DEVICE_VARIABLE = "DRIFTLINE_DEVICE"
"""Environment variable with the default device."""
WORKER_VARIABLE = "DRIFTLINE_WORKER"
"""Environment variable with the number of a worker process: workers share the devices of a machine evenly."""
NAME = re.compile(r"([a-z]{1,16}(:\d{1,4})?)?")
KNOWN_NAMES = "use auto, cpu, cuda, cuda:0, mps or xpu"
WITHOUT_FLOAT64 = {"mps"}
"""Kinds of devices that have no double precision."""


class DeviceSettings(BaseModel):
    """Where networks run, and in what precision."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = ""
    """auto, cpu, cuda, cuda:1, mps, xpu; by default $DRIFTLINE_DEVICE, else auto: an accelerator if there is one."""
    precision: Precision = "float32"
    """Precision of matrix products and convolutions; weights and losses are float32 in any case."""
    tf32: bool = False
    """Whether float32 products may be rounded to TF32 by GPUs that can."""
    micro_batch: int | None = Field(default=None, ge=1)
    """Number of samples that pass at a time in training; gradients are accumulated over a batch. By default all."""
    compile: bool = False
    """Whether networks are compiled by torch.compile."""
    checkpoint_activations: bool = False
    """Whether activations inside blocks are computed again in the backward pass, and not kept: slower, less memory."""
    workers: int = Field(default=0, ge=0)
    """Number of processes that make the images of a stream ahead of time. By default, a thread makes them."""

    def decisive(self) -> dict[str, object]:
        """Return the settings that change results and are not defaults."""
        return self.model_dump(exclude={"name", "checkpoint_activations", "workers"}, exclude_defaults=True)

    @model_validator(mode="after")
    def _check(self) -> DeviceSettings:
        if not NAME.fullmatch(self.name):
            raise ValueError(f"unknown device '{self.name}': {KNOWN_NAMES}")
        if self.compile and self.checkpoint_activations:
            raise ValueError("compile and checkpoint_activations exclude each other")
        return self


ON_HOST = DeviceSettings(name=HOST)
_settings: ContextVar[DeviceSettings] = ContextVar("device_settings", default=ON_HOST)


@contextmanager
def use(settings: DeviceSettings) -> Iterator[None]:
    """Run networks with these settings in this context."""
    token = _settings.set(settings)
    try:
        with nullcontext() if settings.precision == "float32" else _half_precision(settings.precision):
            yield
    finally:
        _settings.reset(token)


def _half_precision(name: Precision) -> torch.autocast:
    """Return the context of a precision; refuse one that torch would silently leave out on this device."""
    import torch

    device = current()
    try:
        with warnings.catch_warnings(action="ignore"):
            # Without the cache: it would keep copies of weights that an optimizer has changed since.
            context = torch.autocast(device.type, getattr(torch, name), cache_enabled=False)
        with context:
            enabled = torch.is_autocast_enabled(device.type)
    except (RuntimeError, AssertionError):  # a GPU that is too old, a kind of device without autocast
        enabled = False
    if not enabled:
        raise UserError(f"device '{device}' does not compute in {name}: use another --precision")
    return context


def current() -> torch.device:
    """Return the device of this context."""
    settings = _settings.get()
    if settings.name == HOST:
        return _host()
    environment = (os.environ.get(DEVICE_VARIABLE), os.environ.get(WORKER_VARIABLE))
    device = _current(settings.name, environment)
    if device.type == "cuda":
        _set_tf32(settings.tf32)
    return device


@functools.cache
def _host() -> torch.device:
    import torch

    return torch.device(HOST)


@functools.lru_cache
def _current(name: str, environment: tuple[str | None, ...]) -> torch.device:
    """Resolve a device once for each change of the settings."""
    device = resolve(name)
    if device.type != HOST:
        _claim(device)
    return device


def _set_tf32(allowed: bool) -> None:
    """Set what torch keeps for the whole process, for the next run may have other settings."""
    import torch

    if torch.backends.cuda.matmul.allow_tf32 != allowed or torch.backends.cudnn.allow_tf32 != allowed:
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed


@functools.cache
def _claim(device: torch.device) -> FileLock:
    """Hold a lock on a device while this process lives; log a note if another process holds it."""
    user = getattr(os, "getuid", lambda: "user")()
    lock = FileLock(Path(tempfile.gettempdir()) / f"driftline-{user}-{device.type}-{device.index}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        log.warning(f"note: another driftline process uses {device}: both are slower, and memory may run out")
    return lock


def resolve(name: str) -> torch.device:
    """Return a device of this machine by name; raise UserError if it is not there."""
    import torch

    name = name or os.environ.get(DEVICE_VARIABLE) or "auto"
    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    try:
        device = (found or torch.device(HOST)) if name == "auto" else torch.device(name)
    except RuntimeError:
        raise UserError(f"unknown device '{name}': {KNOWN_NAMES}") from None
    if device.type == HOST:
        return torch.device(HOST)
    if found is None or found.type != device.type:
        have = HOST if found is None else f"{HOST} and {found.type}"
        raise UserError(f"device '{name}' is not available: this installation of torch finds {have}")
    count = torch.accelerator.device_count()
    if device.index is not None and device.index >= count:
        raise UserError(f"device '{name}' is not available: the last one is {device.type}:{count - 1}")
    index = int(os.environ.get(WORKER_VARIABLE, 0)) % count if device.index is None else device.index
    return torch.device(device.type, index)


def device_count(name: str) -> int:
    """Return the number of devices of a name: all accelerators of the kind for `auto` or `cuda`, else 1."""
    import torch

    name = name or os.environ.get(DEVICE_VARIABLE) or "auto"
    return torch.accelerator.device_count() if resolve(name).type != HOST and ":" not in name else 1


def describe() -> dict[str, str | bool]:
    """Return the description of the device of this context for the card."""
    import torch

    settings, device = _settings.get(), current()
    name_of = getattr(torch.get_device_module(device), "get_device_name", lambda device: device.type)
    chosen = settings.model_dump(include={"precision", "tf32", "compile"})
    return {"name": str(device), "hardware": name_of(device), **chosen}


def rounding() -> str:
    """Return what in this context changes the rounding of results; empty for single precision on the host."""
    usual = {"hardware": HOST, "precision": "float32", "tf32": False, "compile": False}
    found = describe()
    return ", ".join(f"{key} {found[key]}" for key in usual if found[key] != usual[key])


def micro_batch() -> int | None:
    """Return the number of samples that pass at a time in training; None for a whole batch."""
    return _settings.get().micro_batch


def workers() -> int:
    """Return the number of processes that make the images of a stream ahead of time; 0 for a thread."""
    return _settings.get().workers


def precision() -> Precision:
    """Return the precision of this context."""
    return _settings.get().precision


def place(model: M) -> M:
    """Move a network to the device of this context and prepare its passes; other models have no weights to move."""
    if not hasattr(model, "named_modules"):
        return model
    settings, device = _settings.get(), current()
    network = cast("nn.Module", model)
    if settings.checkpoint_activations:
        forward_pass.checkpoint_activations(network)
    if settings.compile:
        forward_pass.compile_network(network)
    if device.type == HOST:
        return model
    from torch import nn

    for layer in network.modules():
        if type(layer) is nn.Dropout:
            layer.forward = functools.partial(_host_dropout, layer)  # type: ignore[method-assign]
    return cast(M, network.to(device))


def to_device(tensor: Tensor) -> Tensor:
    """Copy a tensor to the device of this context; from pinned memory the copy does not wait for the device."""
    device = current()
    if tensor.device.type == device.type:
        return tensor
    if device.type == "cuda":
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)


def to_double(tensor: Tensor) -> Tensor:
    """Return a tensor in double precision, on the host if its device has none."""
    return (tensor.to(HOST) if tensor.device.type in WITHOUT_FLOAT64 else tensor).double()


def to_numpy(tensor: Tensor) -> np.ndarray:
    """Copy a tensor to an array on the host; half precision becomes float32."""
    half = tensor.is_floating_point() and tensor.dtype.itemsize == 2
    array: np.ndarray = (tensor.float() if half else tensor).detach().to(HOST).numpy()
    return array


def dropout(x: Tensor, probability: float) -> Tensor:
    """Drop out elements as torch does on a host, on any device: the mask is drawn on the host."""
    import torch

    keep = 1 - probability
    mask = torch.empty_like(x, device=HOST).bernoulli_(keep).div_(keep) if keep else torch.zeros(())
    return x * mask.to(x.device)


def _host_dropout(layer: nn.Dropout, x: Tensor) -> Tensor:
    return dropout(x, layer.p) if layer.training else x


def clock() -> float:
    """Return CPU seconds or, on an accelerator, seconds by the clock once it has done all its work."""
    if current().type == HOST:
        return time.process_time()
    import torch

    torch.accelerator.synchronize(current())
    return time.perf_counter()
