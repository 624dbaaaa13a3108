"""Faster and smaller forward passes of networks: compilation, and activation checkpointing.

Both replace `forward` of an instance, so that names of weights stay as they are and copies of a network keep it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from driftline.errors import UserError

if TYPE_CHECKING:
    from torch import nn

BACKEND = "inductor"
MAX_GRAPHS = 64
"""Graphs of one network: one for each mode, set of frozen layers and kind of input that it meets."""

_compiles: ContextVar[bool] = ContextVar("compiles", default=True)
_checkpoints: ContextVar[bool] = ContextVar("checkpoints", default=True)


@contextmanager
def as_written(checkpointed: bool = False) -> Iterator[None]:
    """Run networks as they are written in this context, for hooks, operation counters and weights that are swapped.

    `checkpointed`: whether activation checkpointing stays as it is.
    """
    compiles, checkpoints = _compiles.set(False), _checkpoints.set(checkpointed and _checkpoints.get())
    try:
        yield
    finally:
        _compiles.reset(compiles)
        _checkpoints.reset(checkpoints)


def compile_network(network: nn.Module) -> None:
    """Compile a network at its next pass, for batches of any size."""
    if hasattr(network, "generate"):
        raise UserError("device.compile: networks that generate text cannot be compiled; leave it out")
    if "forward" in vars(network):
        return
    import torch

    options = {"fallback_random": True} if BACKEND == "inductor" else None  # masks of dropout stay the same
    limits = {"isolate_recompiles": True, "recompile_limit": MAX_GRAPHS}
    try:
        compiled = torch.compile(  # type: ignore[call-overload]
            type(network).forward, backend=BACKEND, options=options, **limits
        )
    except TypeError:
        raise UserError("device.compile needs torch 2.13 or newer") from None
    network.forward = functools.partial(_compiled_forward, compiled, network)


def _compiled_forward(compiled: Callable[..., Any], network: nn.Module, *args: Any, **kwargs: Any) -> Any:
    if not _compiles.get():
        return type(network).forward(network, *args, **kwargs)
    from torch._dynamo import maybe_mark_dynamic
    from torch._dynamo.exc import TorchDynamoException

    # Sizes of batches and texts are symbolic from the start: a partial batch and a resumed run meet the same graph.
    for value in args:
        if hasattr(value, "ndim"):
            maybe_mark_dynamic(value, [0, 1] if value.ndim == 2 else [0])
    try:
        return compiled(network, *args, **kwargs)
    except TorchDynamoException as error:
        reason = str(getattr(error, "inner_exception", error)).strip().partition("\n")[0]
        raise UserError(f"device.compile: torch.compile does not work here; leave it out: {reason}") from error


def checkpoint_activations(network: nn.Module) -> None:
    """Compute the activations inside each block of a network again in the backward pass instead of keeping them."""
    for block in blocks(network):
        if "forward" not in vars(block):
            block.forward = functools.partial(_checkpointed_forward, block)


def blocks(network: nn.Module) -> list[nn.Module]:
    """Return the blocks: elements of a sequence of modules that have layers, but no block, in them.

    >>> from torch import nn
    >>> network = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    >>> blocks(network) == [network[1]]
    True
    """
    from torch import nn

    containers = (nn.Sequential, nn.ModuleList, nn.ModuleDict)
    parts = [part for layer in network.modules() if isinstance(layer, containers) for part in layer.children()]
    found = {part for part in parts if any(part.children())}
    return [part for part in parts if part in found and not found & {*part.modules()} - {part}]


def _checkpointed_forward(block: nn.Module, *args: Any, **kwargs: Any) -> Any:
    import torch
    from torch.utils.checkpoint import checkpoint

    forward = type(block).forward
    if not (_checkpoints.get() and torch.is_grad_enabled()):
        return forward(block, *args, **kwargs)
    contexts = functools.partial(_contexts, block)
    return checkpoint(forward, block, *args, use_reentrant=False, context_fn=contexts, **kwargs)


def _contexts(block: nn.Module) -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """Return the contexts of the first pass and of its repetition."""
    return nullcontext(), _Repetition(block)


class _Repetition(AbstractContextManager[None]):
    """The repetition of a pass: with the modes and the frozen weights of the first one, and on copies of the buffers.

    So batch norm does not update its running statistics twice.
    """

    def __init__(self, block: nn.Module) -> None:
        self._layers, self._weights = list(block.modules()), list(block.parameters())
        self._flags = self._read_flags()

    def __enter__(self) -> None:
        self._before = self._read_flags()
        self._set_flags(self._flags)
        self._buffers = [dict(layer._buffers) for layer in self._layers]
        for layer in self._layers:
            for name, buffer in layer.named_buffers(recurse=False):
                layer._buffers[name] = buffer.clone()

    def __exit__(self, *error: object) -> None:
        self._set_flags(self._before)
        for layer, buffers in zip(self._layers, self._buffers, strict=True):
            layer._buffers.update(buffers)

    def _read_flags(self) -> list[bool]:
        return [layer.training for layer in self._layers] + [weight.requires_grad for weight in self._weights]

    def _set_flags(self, flags: list[bool]) -> None:
        for layer, flag in zip(self._layers, flags, strict=False):
            layer.training = flag
        for weight, flag in zip(self._weights, flags[len(self._layers) :], strict=True):
            weight.requires_grad_(flag)
