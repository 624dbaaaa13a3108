"""Printing of registered names; separate from other printing, which imports pandas."""

from __future__ import annotations

from driftline import registry
from driftline.cli.printing.terminal import echo
from driftline.errors import unknown_name

KINDS = {"penalties" if kind == "penalty" else f"{kind}s": kind for kind in registry.KINDS}


def names(kinds: str) -> None:
    """Print all registered things of a kind, each with the first line of its description."""
    if kinds not in KINDS:
        raise unknown_name("list", kinds, [*KINDS, "runs"])
    kind = KINDS[kinds]
    known = registry.names(kind)
    width = max(map(len, known), default=0)
    for name in known:
        echo(f"{name:<{width}}  {registry.summary(kind, name)}")
