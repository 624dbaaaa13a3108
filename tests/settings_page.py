"""Write `docs/settings.md`: every setting of benchmarks, datasets, models, methods, pretraining and label rules."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from driftline.spec.describe import Description

HEAD = """# Settings

`./dev index` generates this page from the code, and `driftline help NAME` prints the same. Options of a benchmark are
flags, such as `--upstream-lr 0.01`. Other settings are given as `--set er.lr=0.01`, `--set data.size=32`, `--set
model.width=8` or `--set reveal.delay=2`, and `--set '*.batch=16'` sets one value for all methods that have it. With
`--print-spec --full`, `driftline run` prints its spec with every default.
"""
SECTIONS = {
    "benchmark": "Benchmarks",
    "part": "Parts of a spec",
    "dataset": "Datasets",
    "model": "Models",
    "method": "Methods",
    "pretraining": "Pretraining",
    "label-rule": "Label rules",
}


def text() -> str:
    """Return the page."""
    from driftline.registry import index
    from driftline.spec.describe import PARTS, describe

    lines = [HEAD]
    for kind, title in SECTIONS.items():
        lines.append(f"## {title}\n")
        tables: dict[object, Description] = {}
        for name in PARTS if kind == "part" else index()[kind]:
            thing = describe(kind, name)
            schema = tuple(setting._replace(default="") for setting in thing.settings)
            lines += _lines(thing, tables.setdefault(schema, thing))
    return "\n".join(lines)


def _lines(thing: Description, like: Description) -> list[str]:
    """Return the section of a thing; one with the settings of an earlier thing lists only other defaults."""
    paper = f" Paper: {thing.paper.removesuffix('.')}." if thing.paper else ""
    lines = [f"### {thing.name}\n", f"{thing.summary.removesuffix('.')}.{paper}\n"]
    if not thing.settings:
        return lines
    if like is not thing:
        changed = [f"`{one.name}`: {one.default}" for one in thing.settings if one not in like.settings]
        return [*lines, f"Settings: as {like.name}{'; defaults: ' if changed else ''}{', '.join(changed)}.\n"]
    rows = [" | ".join(["", f"`{one.name}`", *map(_cell, one[1:]), ""]).strip() for one in thing.settings]
    return [*lines, "| setting | type | default | meaning |", "|---|---|---|---|", *rows, ""]


def _cell(content: str) -> str:
    r"""Return text for a cell of a table.

    >>> _cell("int | null")
    'int \\| null'
    """
    return content.replace("|", "\\|")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
    (Path(__file__).parents[1] / "docs" / "settings.md").write_text(text(), encoding="utf-8")
