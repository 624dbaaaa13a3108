"""Count the multiply-accumulates of every forward and backward pass of a network.

A pass is counted once for each (input shapes, mode) by running it under torch's own operation counter on a copy of
the network, and from then on looked up, so that counting costs a dictionary access per pass. The copy sees two rows of
the batch where the work is proportional to the rows, which two and three rows show once for each network; so a batch
of another size is not counted again. Copies of a counted network report to the same counter. The backward pass counts
when it really happens.

Element-wise operations and normalization count as zero, as is usual. Estimators without tensors are not counted, nor
are layers that a method calls by themselves, past the network that holds them, unless it adds their cost (`add`).
A method that caches features adds the cost it saved, so that both costs can be shown.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from driftline.device import clock
from driftline.forward_pass import as_written
from driftline.seeds import same_random_state
from driftline.types import JsonObject, Network

Kind = tuple[type, int, tuple[Hashable, ...], tuple[bool, ...] | None]
"""What decides the work of a pass: the network's class and size, the arguments, and the mode if it is trained."""


class MacCounter:
    """A counter of multiply-accumulates."""

    def __init__(self) -> None:
        self.forward = 0
        self.backward = 0
        self.probe_macs = 0
        """Passes for probes; they are not part of the method's cost."""
        self.probing = False
        self.saved = 0
        """Forward passes saved by cached features."""
        self.allowance: int | None = None
        """What may be spent so far. Training loops stop there; None: no limit."""
        self.counting_seconds = 0.0
        """How long it took to count passes, each kind once."""
        self._cache: dict[Hashable, tuple[int, Callable[[object], None]]] = {}
        self._two_rows: dict[Hashable, tuple[int, int] | None] = {}
        """The count of two rows; None where the work is not proportional to the rows."""
        self._proportional: dict[Hashable, bool] = {}

    @property
    def is_spent(self) -> bool:
        """Whether the allowance is used up."""
        return self.allowance is not None and self.forward + self.backward >= self.allowance

    def attach(self, network: Network) -> None:
        """Count every pass of this network and of its copies from now on."""
        if getattr(network, "mac_counter", None) is None:
            network.register_forward_hook(_count_pass, with_kwargs=True)
        network.mac_counter = self

    def add(self, forward: int = 0, backward: int = 0, saved: int = 0) -> None:
        """Count work that no pass of the network shows."""
        if self.probing:
            self.probe_macs += forward + backward
            return
        self.forward += forward
        self.backward += backward
        self.saved += saved

    def __deepcopy__(self, memo: dict[int, object]) -> MacCounter:
        return self

    def state(self) -> dict[str, int]:
        names = ("forward", "backward", "probe_macs", "saved")
        return {name: getattr(self, name) for name in names}

    def restore(self, state: dict[str, int]) -> None:
        self.forward, self.backward = state["forward"], state["backward"]
        self.probe_macs, self.saved = state["probe_macs"], state["saved"]

    def passed(self, model: nn.Module, args: tuple[object, ...], kwargs: JsonObject, output: object) -> None:
        """Count one pass."""
        graph = isinstance(output, Tensor) and output.requires_grad and torch.is_grad_enabled()
        # The same network with other layers frozen, or in another mode, does other work.
        weights = _parameters(model)
        mode = (model.training, *[weight.requires_grad for weight in weights]) if graph else None
        given = tuple([_signature(value) for value in (args if not kwargs else (*args, *kwargs.values()))])
        key = (type(model), sum(map(Tensor.numel, weights)), given, mode)
        if (found := self._cache.get(key)) is None:
            began = clock()
            macs, backward = self._count(model, args, kwargs, key)
            found = self._cache[key] = macs, partial(self._after_backward, backward)
            self.counting_seconds += clock() - began
        forward, after_backward = found
        self.add(forward=forward)
        if graph:
            output.register_hook(after_backward)  # type: ignore[attr-defined]

    def _after_backward(self, macs: int, _: object) -> None:
        self.add(backward=macs)

    def _count(self, model: nn.Module, args: tuple[object, ...], kwargs: JsonObject, key: Kind) -> tuple[int, int]:
        """Return the multiply-accumulates of a pass forward and backward, from two of its rows if they tell."""
        network, size, given, mode = key
        graph, rows = mode is not None, {len(value) for value in (*args, *kwargs.values()) if _has_rows(value)}
        if len(rows) != 1 or (n := rows.pop()) < 3:
            return count_macs(model, args, kwargs, backward=graph)
        row = (network, size, tuple(map(_per_row, given)), mode)
        if row not in self._two_rows:
            two = count_macs(model, *_first_rows(args, kwargs, 2), backward=graph)
            kind = (network, size, graph, *kwargs)
            if kind not in self._proportional:
                three = count_macs(model, *_first_rows(args, kwargs, 3), backward=graph)
                self._proportional[kind] = all(3 * few == 2 * more for few, more in zip(two, three, strict=True))
            self._two_rows[row] = two if self._proportional[kind] else None
        if (two_rows := self._two_rows[row]) is None:
            return count_macs(model, args, kwargs, backward=graph)
        return two_rows[0] * n // 2, two_rows[1] * n // 2


def _count_pass(network: Network, args: object, kwargs: object, output: object) -> None:
    """Report a pass to the counter of a network, which its copies share."""
    if network.mac_counter is not None:
        network.mac_counter.passed(network, args, kwargs, output)


def uncounted(network: Network) -> nn.Module:
    """Take a network's counter away, which its copies keep, and return the network."""
    network.mac_counter = None
    bare: nn.Module = network
    return bare


@contextmanager
def without_counting(network: Network) -> Iterator[None]:
    """Count no pass of a network in this context."""
    counter = vars(network).get("mac_counter")
    network.mac_counter = None
    try:
        yield
    finally:
        network.mac_counter = counter


def mac_counter_of(model: nn.Module) -> MacCounter:
    """Return the counter attached to a network, or an unused one."""
    found: MacCounter = getattr(model, "mac_counter", None) or MacCounter()
    return found


def is_spent(model: nn.Module) -> bool:
    """Return whether the run of this network may spend no more on training now."""
    counter: MacCounter | None = getattr(model, "mac_counter", None)
    return counter is not None and counter.is_spent


def count_macs(model: nn.Module, args: tuple[Any, ...], kwargs: JsonObject, backward: bool) -> tuple[int, int]:
    """Return the multiply-accumulates of one forward and optionally one backward pass; the network does not change."""
    twin = uncounted(copy.deepcopy(model))
    args, kwargs = (_detached(args), _detached(kwargs))
    with as_written(), same_random_state(), torch.set_grad_enabled(backward):
        with CountedOperations() as counted:
            output = twin(*args, **kwargs)
        forward = counted.macs
        if not backward:
            return forward, 0
        with CountedOperations() as counted:
            output.sum().backward()
        return forward, counted.macs


class CountedOperations(TorchDispatchMode):
    """The multiply-accumulates of all operations in this context, by torch's formulas.

    It counts as torch's FlopCounterMode, which also keeps a table of modules, and imports a compiler for seconds.
    """

    def __init__(self) -> None:
        super().__init__()
        self.flops = 0

    @property
    def macs(self) -> int:
        return self.flops // 2

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Say that torch need not keep its compiler away from this class."""
        return False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        """Count an operation, or those that it is made of, and do it."""
        kwargs = kwargs or {}
        with self:
            parts = func.decompose(*args, **kwargs)
        if parts is not NotImplemented:
            return parts
        output = func(*args, **kwargs)
        if (formula := flop_registry.get(func._overloadpacket)) is not None:
            self.flops += formula(*args, **kwargs, out_val=output)
        return output


def _signature(value: object) -> Hashable:
    """Return the part of an argument that decides the work: the shape of a tensor, or a plain value itself."""
    if isinstance(value, Tensor):
        return value.shape, value.requires_grad
    return value if isinstance(value, Hashable) else None


def _per_row(signature: Hashable) -> Hashable:
    """Return the signature of a tensor without the number of its rows; of other arguments, as it is."""
    if isinstance(signature, tuple) and len(signature) == 2 and isinstance(signature[0], torch.Size):
        return signature[0][1:], signature[1]
    return signature


def _has_rows(value: object) -> bool:
    return isinstance(value, Tensor) and value.ndim > 0


def _first_rows(args: tuple[object, ...], kwargs: JsonObject, n: int) -> tuple[tuple[object, ...], JsonObject]:
    """Return the arguments of a pass on its first n rows."""
    first = [value[:n] if _has_rows(value) else value for value in (*args, *kwargs.values())]
    return tuple(first[: len(args)]), dict(zip(kwargs, first[len(args) :], strict=True))


def _parameters(module: nn.Module) -> list[nn.Parameter]:
    """Return all parameters, faster than `parameters()` does, and in another order: this runs in every pass."""
    modules, found = [module], list[nn.Parameter | None]()
    for one in modules:  # which grows
        found += one._parameters.values()
        modules += [child for child in one._modules.values() if child is not None]
    return [weight for weight in found if weight is not None]


def _detached(tree: object) -> Any:
    """Return the inputs detached from the graph."""
    if isinstance(tree, Tensor):
        return tree.detach().clone().requires_grad_(tree.requires_grad)
    if isinstance(tree, tuple):
        return tuple(_detached(item) for item in tree)
    return {key: _detached(value) for key, value in tree.items()} if isinstance(tree, dict) else tree
