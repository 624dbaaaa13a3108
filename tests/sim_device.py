"""A torch device "sim" for tests: it computes on the CPU, bit for bit, and refuses what an accelerator refuses.

Tensors of the device cannot be mixed with CPU tensors, except numbers without dimensions and indices; `.numpy()` and
generators of the CPU and double precision are refused; copies in both directions are counted. It has one device, no
streams and no autocast.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.utils._device import _device_constructors
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from driftline.device import WITHOUT_FLOAT64

NAME = "sim"
copies: Counter[str] = Counter()
"""Number of copies to the device (`h2d`) and to the host (`d2h`), and of operations (`ops`)."""
MAY_MIX = {"copy_", "_to_copy", "index", "index_put", "index_put_", "_index_put_impl_"}


class SimTensor(torch.Tensor):
    """A tensor of the device, around the CPU tensor that holds its numbers."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor, requires_grad: bool = False) -> SimTensor:
        kind = {"dtype": held.dtype, "device": torch.device(NAME, 0), "requires_grad": requires_grad}
        made = torch.Tensor._make_wrapper_subclass(cls, held.size(), strides=held.stride(), **kind)  # type: ignore[attr-defined]
        made.held = held
        return made  # type: ignore[no-any-return]

    def __init__(self, held: Tensor, requires_grad: bool = False) -> None: ...

    def __repr__(self, *, tensor_contents: object = None) -> str:
        return f"SimTensor({self.held})"

    def tolist(self) -> Any:
        return self.cpu().tolist()

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["held"], None

    @staticmethod
    def __tensor_unflatten__(parts: dict[str, Tensor], meta: Any, size: Any, stride: Any) -> SimTensor:
        return SimTensor(parts["held"])

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return compute(func, *args, **(kwargs or {}))


def compute(func: Any, *args: Any, **kwargs: Any) -> Any:
    """Run an operation on the CPU; its results are tensors of the device unless it copies them to the host."""
    name = func._schema.name.removeprefix("aten::")
    target = kwargs.pop("device", None)
    tensors: list[Tensor] = []
    given, named = _unwrap(args, tensors), _unwrap(kwargs, tensors)
    ours = [one for one in tensors if isinstance(one, SimTensor)]
    if ours and name not in MAY_MIX and any(not isinstance(one, SimTensor) and one.dim() for one in tensors):
        raise RuntimeError(f"Expected all tensors to be on the same device, but found sim:0 and cpu ({name})")
    if kwargs.get("dtype") is torch.float64:
        raise TypeError("Cannot convert a sim tensor to float64")
    if isinstance(kwargs.get("generator"), torch.Generator):
        raise RuntimeError("Expected a 'sim' device type for generator but found 'cpu'")
    copies["ops"] += 1
    to_host = target is not None and torch.device(target).type != NAME
    copies["d2h"] += name == "_local_scalar_dense" or (name == "_to_copy" and bool(ours) and to_host)
    copies["d2h"] += name == "copy_" and not isinstance(args[0], SimTensor)
    copies["h2d"] += name in ("copy_", "_to_copy") and not isinstance(args[-1], SimTensor)
    result = func(*given, **named)
    if to_host or (name == "copy_" and not isinstance(args[0], SimTensor)):
        return args[0] if name == "copy_" else result
    return _wrap(result, {id(one.held): one for one in ours})


def _wrap(result: Any, changed: dict[int, SimTensor]) -> Any:
    """Return the tensors of the device that hold a result: after an operation in place, those that it changed."""
    if isinstance(result, Tensor):
        if result.dtype is torch.float64:
            raise TypeError("Cannot convert a sim tensor to float64")
        return changed[id(result)] if id(result) in changed else SimTensor(result)
    if isinstance(result, list | tuple):
        return type(result)(_wrap(one, changed) for one in result)
    return result


def _unwrap(tree: Any, found: list[Tensor]) -> Any:
    """Return arguments with the CPU's tensors in place of the device's; add all tensors to those found."""
    if isinstance(tree, Tensor):
        found.append(tree)
        return tree.held if isinstance(tree, SimTensor) else tree
    if isinstance(tree, list | tuple):
        return type(tree)(_unwrap(one, found) for one in tree)
    return {name: _unwrap(one, found) for name, one in tree.items()} if isinstance(tree, dict) else tree


@cache
def install() -> None:
    """Register the device, once in a process."""
    WITHOUT_FLOAT64.add(NAME)
    _device_constructors()  # cached by torch, of its functions as they are now: `tensor` below may replace one
    _setup_privateuseone_for_python_backend(NAME)
    torch.accelerator.synchronize = lambda device=None: None  # every operation is complete when it returns
    library = torch.library.Library("_", "IMPL")
    library.fallback(compute, "PrivateUse1")
    _libraries.append(library)


def tensor(data: Any, *, device: Any = None, **kwargs: Any) -> Tensor:
    """Make a tensor on the CPU and copy it, which `torch.tensor` cannot for a device in Python."""
    made = torch_tensor(data, **kwargs)
    return made if device is None else made.to(device)


torch_tensor = torch.tensor


_libraries: list[torch.library.Library] = []
