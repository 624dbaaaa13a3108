"""A part of a store's index: the cards and scores of many runs in one Parquet file, named by its format and its hash.

A row holds the signature of the run's files when they were read. What cards have in common is kept once.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from driftline.errors import DamagedFile
from driftline.record.card import OWN, Card, ComputeCard, join_card, split_card
from driftline.record.parquet import read_rows
from driftline.record.run import Run
from driftline.record.views import INDEXED, SCORES, VIEWS
from driftline.types import JsonObject

FORMAT = 2
"""To be raised when columns change, or what views of the scores hold: files of another format are not read."""
ROW_GROUP = 512
"""Runs in a row group: sorted by their settings, so that the scores of comparable runs are read together."""
Column = list[Any]
REPEATED = ("common", "protocol")
"""Columns whose values are long and few."""


@dataclass(frozen=True)
class IndexEntry:
    """What a part of the index holds of one run."""

    part: IndexPart
    row: int

    def __getitem__(self, column: str) -> Any:
        return self.part.column(column)[self.row]

    @property
    def key(self) -> str:
        return str(self["key"] or "")

    @property
    def seed(self) -> int:
        return self["seed"] or 0

    @property
    def common(self) -> Card:
        """The card without what is the run's own; runs with the same one share it."""
        return _parse(self["common"])

    @property
    def protocol(self) -> JsonObject:
        """What the benchmark says about the run's stream; not to be changed, because runs share it."""
        return _protocol(self["protocol"] or "{}")

    @property
    def compute(self) -> ComputeCard:
        """The compute of the run."""
        return ComputeCard.model_validate_json(self["compute"] or "{}")

    def rows(self, name: str) -> int:
        """Return the number of rows of a table of the run; 0 if it has none."""
        files = json.loads(self["files"] or "{}")
        return int(files.get(f"{name}.parquet", {}).get("rows", 0))

    @property
    def card(self) -> Card:
        """The whole card."""
        texts = {name: text for name in OWN if (text := self[name]) is not None}
        own = {name: text if name == "key" else json.loads(text) for name, text in texts.items()}
        return join_card(json.loads(self["common"]), own, self["seed"])

    @property
    def finished_at(self) -> datetime:
        """When the run was finished."""
        return datetime.fromisoformat(self["finished"])


@lru_cache(maxsize=4096)
def _parse(common: str) -> Card:
    return Card.model_validate_json(common)


@lru_cache(maxsize=4096)
def _protocol(text: str) -> JsonObject:
    found: JsonObject = json.loads(text)
    return found


def read_run(run: Run, signature: str, intact: bool) -> pa.Table:
    """Return a run as a row of a part. `intact`: verify all files. Raise DamagedFile if one is damaged."""
    run.verify(None if intact else SCORES)
    common, own, seed = split_card(run.card)
    texts = {"common": json.dumps(common, sort_keys=True), **_texts(own)}
    row = pa.table(
        {
            "signature": [signature],
            "intact": [intact],
            "finished": [run.finished_at.isoformat()],
            "seed": pa.array([seed], pa.int64()),
            **{name: pa.array([text], pa.string()) for name, text in texts.items()},
        }
    )
    tables = {name: read_rows(path) for name in SCORES if (path := run.file(name))}
    tables |= {name: view(tables["scores"]) for name, view in VIEWS.items() if "scores" in tables}
    for name, table in tables.items():
        row = row.append_column(name, _as_list(table))
    schemas = {name: table.schema.serialize().to_pybytes() for name, table in tables.items()}
    return row.replace_schema_metadata(schemas)


def _texts(own: JsonObject) -> dict[str, str | None]:
    texts = {name: json.dumps(own[name], sort_keys=True) if name in own else None for name in OWN}
    return {**texts, "key": own.get("key")}


def _as_list(table: pa.Table) -> pa.Array:
    """Return a table as one list of its rows."""
    rows = pa.concat_arrays([*table.to_struct_array().chunks, pa.array([], pa.struct(table.schema))])
    return pa.ListArray.from_arrays(pa.array([0, table.num_rows], pa.int32()), rows)


def part_name(content: bytes) -> str:
    """Return the name of the file of a part with this content."""
    return _name(hashlib.sha256(content).hexdigest())


def _name(content_hash: str) -> str:
    return f"{FORMAT}-{content_hash}.parquet"


def columns_of(part: pa.Schema) -> tuple[tuple[str, bytes], ...]:
    """Return the tables in a part with the columns of each; rows of one part have the same."""
    found = {name: part.metadata.get(name.encode()) for name in INDEXED}
    return tuple((name, columns) for name, columns in found.items() if columns)


def to_parquet(rows: Iterable[pa.Table]) -> bytes:
    """Return rows with the same columns as the content of a part."""
    table = pa.concat_tables(rows)
    table = table.take(pc.sort_indices(table, [("common", "ascending"), ("seed", "ascending")]))
    output = io.BytesIO()
    texts = [
        f"{name}.list.element.{field.name}"
        for name in INDEXED
        if name in table.column_names
        for field in table.schema.field(name).type.value_type
        if not pa.types.is_floating(field.type)
    ]
    with pq.ParquetWriter(output, table.schema, compression="zstd", use_dictionary=[*REPEATED, *texts]) as writer:
        writer.write_table(table, row_group_size=ROW_GROUP)
    return output.getvalue()


@dataclass(eq=False)
class IndexPart:
    """A part of the index."""

    path: Path
    source: pa.NativeFile
    file: pq.ParquetFile
    _columns: dict[str, Column] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path) -> IndexPart:
        """Open a part. Raise FileNotFoundError if it is gone, DamagedFile if its content is not what its name says."""
        source = pa.OSFile(str(path))  # it can be read even if another process merges the part into a new one
        if path.name != _name(hashlib.file_digest(source, "sha256").hexdigest()):
            raise DamagedFile(path, "its checksum differs")
        return cls.of(path, source)

    @classmethod
    def of(cls, path: Path, source: pa.NativeFile) -> IndexPart:
        """Return the part with this content."""
        return cls(path, source, pq.ParquetFile(source, read_dictionary=REPEATED))

    def columns(self, name: str, names: Sequence[str], rows: Sequence[int]) -> pa.Table:
        """Return columns of a table of the runs in these rows, and `run`, their keys; texts are codes of few values.

        For queries: a row group at a time, and of it these columns alone.
        """
        paths = [f"{name}.list.element.{column}" for column in names]
        file = pq.ParquetFile(self.source, read_dictionary=[*paths, "key"])
        wanted, found = np.asarray(rows), []
        for group in np.unique(wanted // ROW_GROUP).tolist():
            here = pa.array(wanted[wanted // ROW_GROUP == group] % ROW_GROUP)
            table = file.read_row_group(group, [*paths, "key"], use_threads=False)
            table = table if len(here) == len(table) else table.take(here)
            lists, keys = (pa.concat_arrays(table[column].chunks) for column in (name, "key"))
            runs = pc.take(keys, pc.list_parent_indices(lists))
            inside = dict(zip((field.name for field in lists.type.value_type), lists.flatten().flatten(), strict=True))
            found.append(pa.table({**{column: inside[column] for column in names}, "run": runs}))
        return pa.concat_tables(found)

    @property
    def schema(self) -> pa.Schema:
        """Its columns, and those of its tables."""
        return self.file.schema_arrow

    def __len__(self) -> int:
        return int(self.file.metadata.num_rows)

    def column(self, name: str) -> Column:
        """Return a column; runs that have a long text in common have the same object."""
        if name not in self._columns:
            column = self.file.read(columns=[name], use_threads=False)[name]
            if name in REPEATED:
                column = pa.concat_arrays(column.unify_dictionaries().chunks)
                texts = column.dictionary.to_pylist()
                self._columns[name] = [texts[code] for code in column.indices.to_pylist()]
            else:
                self._columns[name] = column.to_pylist()
        return self._columns[name]

    def table(self, name: str, rows: Sequence[int]) -> tuple[pa.Table, np.ndarray] | None:
        """Return a table of the runs in these rows, one after the other, and the number of rows of each."""
        if name not in self.schemas:
            return None
        wanted = np.asarray(rows)
        groups = np.unique(wanted // ROW_GROUP)
        places = np.searchsorted(groups, wanted // ROW_GROUP) * ROW_GROUP + wanted % ROW_GROUP
        lists = pa.concat_arrays(self.file.read_row_groups(groups.tolist(), [name], use_threads=False)[name].chunks)
        if len(places) != len(lists) or (places != np.arange(len(lists))).any():
            lists = lists.take(pa.array(places))
        counts = lists.value_lengths().to_numpy(zero_copy_only=False)
        return pa.Table.from_arrays(lists.flatten().flatten(), schema=self.schemas[name]), counts

    @cached_property
    def schemas(self) -> dict[str, pa.Schema]:
        """The columns of its tables, as the runs' own files have them."""
        return {name: pa.ipc.read_schema(pa.py_buffer(text)) for name, text in columns_of(self.schema)}

    def rows(self, rows: Sequence[int]) -> pa.Table:
        """Return whole rows, to be written into another part."""
        table = self.file.read(use_threads=False).take(pa.array(rows, pa.int64()))
        for name in REPEATED:
            table = table.set_column(table.column_names.index(name), name, table[name].cast(pa.string()))
        return table
