"""Hugging Face datasets in Arrow and Parquet files, read with pyarrow alone.

`save_to_disk` of the package `datasets`, and its cache, write Arrow streams; they are mapped into memory, not read. The
hub has Parquet files. Both carry the features of their columns, such as the names of classes, in their schema.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from driftline.data import file_errors
from driftline.data.formats import images, json_lines
from driftline.data.formats.decoded_images import ResizedImages, files_signature
from driftline.io import bounded_files
from driftline.io.atomic import write_then_rename
from driftline.types import JsonObject

EXPECTED = "a Hugging Face dataset: a folder written by save_to_disk, or Parquet files"
PARQUET = ".parquet"
COPIED_ROWS = 64
"""Rows of a Parquet file that are in memory at a time while it is copied."""
SPLIT_NAME = re.compile(r"(.+?)-\d+-of-\d+")


def list_splits(path: Path) -> dict[str, list[Path]]:
    """Return the files of each split of a dataset in a folder or in one Parquet file."""
    with file_errors(path, EXPECTED):
        if (path / "dataset_dict.json").is_file():
            names = json_lines.load_json(path / "dataset_dict.json")["splits"]
            splits = {str(name): _saved_files(path / _plain(name)) for name in names}
        elif (path / "state.json").is_file():
            splits = {"": _saved_files(path)}
        else:
            splits = _parquet_splits(path)
        if not splits or not all(splits.values()):
            raise ValueError("no file with data")
        return splits


def _parquet_splits(path: Path) -> dict[str, list[Path]]:
    splits: dict[str, list[Path]] = {}
    for file in sorted(path.rglob(f"*{PARQUET}")) if path.is_dir() else [path]:
        match = SPLIT_NAME.fullmatch(file.stem)
        name = match[1] if match else file.parent.name if file.stem.isdigit() else file.stem
        splits.setdefault(name, []).append(file)
    for name, files in splits.items():
        if len(folders := sorted({file.parent for file in files})) > 1:
            configs = ", ".join(folder.relative_to(path).as_posix() for folder in folders)
            raise ValueError(f"the split {name} in each of {configs}: choose one with --set data.config=...")
    if not splits:
        raise ValueError("neither dataset_dict.json, state.json nor a Parquet file")
    return splits


def _saved_files(folder: Path) -> list[Path]:
    listed = json_lines.load_json(folder / "state.json")["_data_files"]
    return [folder / _plain(one["filename"]) for one in listed]


def _plain(name: str) -> str:
    if Path(name).name != name:
        raise ValueError(f"the name {name!r}, which is not of a file in the folder itself")
    return name


def read_features(file: Path) -> dict[str, JsonObject]:
    """Return the metadata of each column of a file, in their order; nothing for columns without any."""
    with file_errors(file, EXPECTED):
        bounded_files.max_unpacked_bytes(file)
        if file.suffix == PARQUET:
            with bounded_files.open_parquet(file) as parquet:
                schema = parquet.schema_arrow
        else:
            schema = _stream(file).schema
        metadata = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
        known = metadata.get("info", {}).get("features", {})
        return {name: known.get(name, {}) for name in schema.names}


def read_column(files: Sequence[Path], name: str) -> pa.ChunkedArray:
    """Return a column of some files, one after another; of Arrow files it is mapped, not read."""
    parts = []
    for file in files:
        with file_errors(file, EXPECTED):
            bounded_files.max_unpacked_bytes(file)
            if file.suffix == PARQUET:
                with bounded_files.open_parquet(file) as parquet:
                    parts.append(parquet.read([name]).column(name))
            else:
                parts.append(_stream(file).read_all().column(name))
            parts[-1].validate(full=True)  # offsets of a damaged file point anywhere
    return pa.chunked_array([chunk for part in parts for chunk in part.chunks], parts[0].type)


def _stream(file: Path) -> Any:
    return pa.ipc.open_stream(pa.memory_map(str(file)))


class ArrowImages(ResizedImages):
    """Rows of a column of images, each a record of its bytes or its path, squeezed to a square."""

    def __init__(self, files: Sequence[Path], column: str, rows: np.ndarray, size: int, gray: bool) -> None:
        super().__init__(len(rows), (size, size, 1 if gray else 3))
        self.files, self.column, self.rows, self.size, self.gray = files, column, rows, size, gray

    @cached_property
    def _images(self) -> pa.ChunkedArray:
        return read_column([as_arrow(file, self.column) for file in self.files], self.column)

    def decode(self, row: int) -> np.ndarray:
        return self._read(row, self.size)

    def original(self, row: int) -> np.ndarray:
        return self._read(row, None)

    def _read(self, row: int, size: int | None) -> np.ndarray:
        place = int(self.rows[row])
        with file_errors(self.files[0], f"a picture in row {place} of the column {self.column}"):
            value = self._images[place].as_py()
            content = value["bytes"] if isinstance(value, dict) else value
            with images.open_image(self.files[0].parent / value["path"] if content is None else content) as image:
                return images.to_square(image, size, self.gray)

    def signature(self) -> str | None:
        with file_errors(self.files[0], EXPECTED):
            named = pa.types.is_struct(self._images.type) and pc.struct_field(self._images, "bytes").null_count
        return None if named else f"{self.column} {self.size} {self.gray} {files_signature(self.files)}"

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in super().__getstate__().items() if name != "_images"}


def as_arrow(file: Path, column: str) -> Path:
    """Return an Arrow file itself, or a copy of a column of a Parquet file as one, in the user's cache folder.

    A row of a Parquet file cannot be read without those around it.
    """
    if file.suffix != PARQUET:
        return file
    from platformdirs import user_cache_path

    name = hashlib.sha256(f"{column} {files_signature([file])}".encode()).hexdigest()[:32]
    copy = user_cache_path("driftline") / "arrow" / f"{name}.arrow"
    if not copy.is_file():
        with (
            file_errors(file, EXPECTED),
            bounded_files.open_parquet(file) as parquet,
            write_then_rename(copy) as temporary,
        ):
            batches = parquet.iter_batches(COPIED_ROWS, columns=[column])
            schema = pa.schema([parquet.schema_arrow.field(column)])
            with pa.ipc.new_stream(str(temporary), schema) as writer:
                for batch in batches:
                    writer.write_batch(batch)
    return copy
