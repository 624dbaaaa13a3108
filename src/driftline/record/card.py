"""The protocol card of a run: everything a reader needs to interpret its numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from driftline.errors import DamagedFile
from driftline.io.checksums import file_hash, read_checked, write_checked
from driftline.io.user_objects import display_name
from driftline.types import JsonObject

CARD = "card.json"
OWN = ("key", "protocol", "compute", "files")
"""What may differ between the seeds of a method, besides the seed itself."""


def flatten(content: JsonObject, prefix: str = "") -> dict[str, object]:
    """Return nested settings by their path; an empty mapping is left out.

    >>> flatten({"run": {"seed": 1, "lr": [0.1, 1], "reveal": {}}, "key": "a"})
    {'run.seed': 1, 'run.lr': [0.1, 1], 'key': 'a'}
    """
    found: dict[str, object] = {}
    for name, value in content.items():
        found |= flatten(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return found


class CardPart(BaseModel):
    """A part of a card. Fields that were not written have their defaults and are not written again."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())

    def to_dict(self) -> JsonObject:
        """Return the content as JSON values."""
        return self.model_dump(mode="json", exclude_unset=True)


class Component(CardPart):
    """A dataset, model or method by name, with all its settings."""

    name: str = ""
    settings: JsonObject = {}

    @property
    def display_name(self) -> str:
        """The name, without the hash of a Python object."""
        return display_name(self.name)


class RunSettings(CardPart):
    """The settings of the run: its job without the label."""

    benchmark: str = ""
    options: JsonObject = {}
    data: Component = Field(default_factory=Component)
    model: Component = Field(default_factory=Component)
    method: Component = Field(default_factory=Component)
    lora: JsonObject | None = None
    seed: int = 0
    reveal: JsonObject = {}
    device: JsonObject = {}
    """Precision, if it is not float32."""
    search: JsonObject | None = None
    budget_macs: int | None = None
    purpose: str = "result"


class DataCard(CardPart):
    """The dataset that was loaded."""

    name: str = ""
    fingerprint: str = ""
    samples: int = 0
    samples_cut_short: int | None = None
    kind: str = ""
    task: str = ""
    notes: list[str] = []


class WeightsCard(CardPart):
    """The weights loaded into a model: which tensors were loaded, left out and initialized."""

    source: str = ""
    head: str = "keep"
    loaded: int = 0
    entry: str = ""
    """The entry of the file that held the weights; empty if the file itself did."""
    prefix: str = ""
    """The prefix that was stripped from their names."""
    left_out: dict[str, int] = {}
    """The tensors of the file that were not loaded: the start of their names, and how many there are."""
    initialized: list[str] = []
    """The tensors of the network that started at random."""


class ComputeCard(CardPart):
    """Multiply-accumulates of the method itself, of its evaluation, and of stages that it shares with others."""

    forward_macs: int | None = None
    backward_macs: int | None = None
    cached_macs: int | None = None
    probe_macs: int | None = None
    upstream_macs: int | None = None
    search_macs: int | None = None
    convention: str = ""

    @property
    def macs(self) -> int | None:
        """Forward and backward passes of the method itself; None if they were not counted."""
        return None if self.forward_macs is None else self.forward_macs + (self.backward_macs or 0)


class DeviceCard(CardPart):
    """The device on which the run was finished."""

    name: str = "cpu"
    hardware: str = "cpu"
    precision: str = "float32"
    tf32: bool = False
    compile: bool = False


class CodeVersion(CardPart):
    """Version, source hash and revisions of the code that made the run."""

    driftline: str = ""
    sources: str = ""
    revisions: dict[str, int] = {}
    """Of the parts that decide what is recorded; they are in the key."""
    score_revisions: dict[str, int] = {}
    """Of the parts that decide the scores, given the record."""


class TableFile(CardPart):
    """Hash and row count of a table beside the card."""

    sha256: str
    rows: int


class Card(CardPart):
    """The card of a finished run; two runs of the same job have the same card."""

    key: str = ""
    label: str = ""
    """The method's name, with the settings that differ from its defaults."""
    role: str = "method"
    run: RunSettings = Field(default_factory=RunSettings)
    question: str = ""
    paper: str = ""
    departures: list[str] = []
    protocol: JsonObject = {}
    """What the benchmark says about its stream, the revealed labels, and how settings were selected."""
    metrics: dict[str, JsonObject] = {}
    data: DataCard = Field(default_factory=DataCard)
    weights: WeightsCard = Field(default_factory=WeightsCard)
    compute: ComputeCard = Field(default_factory=ComputeCard)
    device: DeviceCard = Field(default_factory=DeviceCard)
    user_files: dict[str, str] = {}
    code: CodeVersion = Field(default_factory=CodeVersion)
    versions: dict[str, str] = {}
    tables: list[str] = []
    files: dict[str, TableFile] = {}


def write_card(folder: Path, card: Card) -> None:
    """Write the card of a run, with the hash and row count of each table, and a checksum."""
    tables = sorted(folder.glob("*.parquet"))
    files = {path.name: {"sha256": file_hash(path), "rows": pq.read_metadata(path).num_rows} for path in tables}
    write_checked(folder / CARD, {**card.to_dict(), "files": files})


def read_card(folder: Path) -> Card:
    """Return the card of a run. Raise DamagedFile if it is missing, its checksum differs or a field is invalid."""
    content = read_checked(folder / CARD)
    try:
        return Card.model_validate(content)
    except ValidationError as error:
        raise DamagedFile(folder / CARD, f"invalid field {error.errors()[0]['loc']}") from error


def split_card(card: Card) -> tuple[JsonObject, JsonObject, int | None]:
    """Return what a card has in common with those of other seeds, what is its own, and its seed."""
    content = card.to_dict()
    own = {name: content.pop(name) for name in OWN if name in content}
    return content, own, content["run"].pop("seed", None) if "run" in content else None


def common_text(card: Card) -> str:
    """Return what a card has in common with those of other seeds as text."""
    return json.dumps(split_card(card)[0], sort_keys=True)


def join_card(common: JsonObject, own: JsonObject, seed: int | None) -> Card:
    """Return the card that was split."""
    if seed is not None:
        common = {**common, "run": {**common["run"], "seed": seed}}
    return Card.model_validate({**common, **own})
