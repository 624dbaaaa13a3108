"""The list of datasets: what each is, its size and license, and where its files are or where to get them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from driftline import registry
from driftline.cli.printing.terminal import echo
from driftline.data.source import Source
from driftline.io.locate import data_folders

INDENT = "  "


def print_datasets(data_dir: Path | None) -> None:
    """Print all datasets: first those that need no files, then the published ones."""
    sources = {name: _source(name) for name in registry.names("dataset")}
    echo("Generated, or from files and folders that you name:")
    for name in (name for name, source in sources.items() if source is None):
        echo(f"{INDENT}{name}  {registry.summary('dataset', name)}")
    folders = data_folders(data_dir)
    echo(f"Published, searched in {', '.join(map(str, folders))}:")
    for name, source in sources.items():
        for line in () if source is None else _lines(name, source, folders):
            echo(line)


def _source(name: str) -> Source | None:
    """Return where a dataset comes from, from the index where it has an entry."""
    entry = registry.describe("dataset", name)
    if entry is None:
        return getattr(registry.get("dataset", name), "source", None)
    return Source(**entry.facts) if entry.facts else None


def _lines(name: str, source: Source, folders: list[Path]) -> Iterator[str]:
    path = source.found(folders)
    yield f"{INDENT}{name}  {registry.summary('dataset', name)}"
    yield f"{INDENT * 3}{source.size}; license: {source.license}"
    yield f"{INDENT * 3}files found: {path}" if path else f"{INDENT * 3}not found here. {source.where}"
