"""Recipes: specs of the papers' tables, `*.full.yaml` as published and `*.cpu.yaml` for two cores.

`recipe:refinement/qa.full` is `refinement/qa.full.yaml` in this folder. A recipe begins with a comment: the table, a
colon, what is run, and a line for each thing that it reads, `# Needs FILE or FILE (where to get it)`. A FILE is a name
in a data folder, a path or a pattern; `data.files` stands for all files of that setting.

`base: recipe:NAME` starts from another recipe, or `base: FILE` from another file in the same folder: the benchmark's
options are merged, every other key replaces that of the base. It needs the same files unless it says what it needs.

The folder `matrix` has recipes of matrices, which are listed apart.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import yaml

from driftline.errors import UserError, unknown_name
from driftline.io import safe_yaml
from driftline.io.locate import data_folders
from driftline.io.user_files import check_regular

if TYPE_CHECKING:
    from driftline.types import JsonObject

FOLDER = Path(__file__).parent
PREFIX = "recipe:"
MATRICES = "matrix"
"""The folder of recipes that `driftline run` takes as a matrix, and that are no paper's table."""
COSTS = "costs.json"
"""The forecasts of recipes, each with the machine and the date."""
NEEDS = re.compile(r"^# Needs (.+?) \((.+)\)$", re.MULTILINE)


Basis = Literal["profile", "extrapolation", "formula"]
"""How a cost was found: all kinds of stages were profiled, some were estimated from similar ones, or by a formula."""


class Need(NamedTuple):
    """Something that a recipe reads."""

    files: tuple[str, ...]
    """Names or patterns of files; one of them is enough."""
    source: str
    """Where to get it."""
    present: bool


class Cost(NamedTuple):
    """The cost of a recipe as forecast by `bench/full_scale.py`."""

    runs: int
    macs: int
    core_hours: float
    basis: Basis
    machine: str
    """The processor that one core is of."""
    date: str


@dataclass(frozen=True)
class Recipe:
    """The runs and the data of a recipe."""

    name: str
    table: str
    """The table of a paper, and whether it is at small scale."""
    description: str
    benchmark: str
    data: str
    model: str
    """Empty for the model that suits the data."""
    methods: tuple[str, ...]
    seeds: int
    needs: tuple[Need, ...]
    """Empty if the data are generated or come with a package."""
    text: str
    """The YAML file, with the content of its base."""
    cost: Cost | None
    """None if there is no forecast: `driftline plan` makes one, given the data."""

    @property
    def present(self) -> bool:
        """Whether everything that it needs is here."""
        return all(need.present for need in self.needs)


def names() -> list[str]:
    """Return the names of the recipes of papers' tables, sorted."""
    return [name for name in _all_names() if not name.startswith(f"{MATRICES}/")]


def matrices() -> list[str]:
    """Return the names of the recipes of matrices, sorted."""
    return [name for name in _all_names() if name.startswith(f"{MATRICES}/")]


def _all_names() -> list[str]:
    return sorted(path.relative_to(FOLDER).as_posix().removesuffix(".yaml") for path in FOLDER.rglob("*.yaml"))


def is_recipe(what: str) -> bool:
    """Return whether a text is `recipe:NAME` or the path of a YAML file.

    >>> is_recipe("recipe:refinement/qa.full"), is_recipe("mine.yaml"), is_recipe("refinement")
    (True, True, False)
    """
    return what.startswith(PREFIX) or what.endswith((".yaml", ".yml"))


def path_of(what: str | Path) -> Path:
    """Return the file of `recipe:NAME`; a path stays as it is."""
    if not str(what).startswith(PREFIX):
        return Path(what)
    name = str(what).removeprefix(PREFIX)
    if name not in _all_names():
        raise unknown_name("recipe", name, _all_names())
    return FOLDER / f"{name}.yaml"


def read_yaml(path: str | Path, derived: tuple[Path, ...] = ()) -> JsonObject:
    """Read a YAML file that should be a spec, or the recipe of `recipe:NAME`; `derived` are the files based on it."""
    path = path_of(path)
    try:
        check_regular(path)
        content = deepcopy(_packaged(path)) if FOLDER in path.parents else _load(path)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise UserError(f"{path} is not YAML: {error}") from error
    if not isinstance(content, dict):
        raise UserError(f"{path}: a spec is a mapping with the keys benchmark, data and methods")
    file = _base_file(path, content.pop("base", None))
    if file is None:
        return content
    if file in (*derived, path):
        raise UserError(f"{path}: its base {file} is based on it")
    return _merged(read_yaml(file, (*derived, path)), content)


def _load(path: Path) -> Any:
    return safe_yaml.load(path.read_text(encoding="utf-8"))


_packaged = cache(_load)  # files of the package do not change, and a list of recipes reads their bases again and again


def _base_file(path: Path, base: object) -> Path | None:
    """Return the file that a spec is based on; a name without `recipe:` is a file beside it."""
    if base is None:
        return None
    if not isinstance(base, str):
        raise UserError(f"{path}: base is recipe:NAME or the name of a YAML file, not {base!r}")
    return path_of(base) if base.startswith(PREFIX) else path.parent / base


def _merged(base: JsonObject, content: JsonObject) -> JsonObject:
    """Return a spec based on another one.

    >>> _merged({"benchmark": "timeline", "seeds": 3, "timeline": {"horizon": 6}}, {"timeline": {"delta": 0.6}})
    {'benchmark': 'timeline', 'seeds': 3, 'timeline': {'horizon': 6, 'delta': 0.6}}
    """
    benchmark = str(base.get("benchmark"))
    options = {**(base.get(benchmark) or {}), **(content.get(benchmark) or {})}
    return {**base, **content, **({benchmark: options} if options else {})}


def describe(name: str, data_dir: Path | None = None) -> Recipe:
    """Return a recipe's description; what it needs is looked for in the data folders."""
    path = path_of(f"{PREFIX}{name}")
    text, content = path.read_text(encoding="utf-8"), read_yaml(path)
    comment = " ".join(line[1:].strip() for line in NEEDS.sub("", text).splitlines() if line.startswith("#"))
    table, _, description = comment.partition(": ")
    return Recipe(
        name,
        table,
        description,
        content["benchmark"],
        _name(content["data"]),
        _name(content.get("model") or ""),
        tuple(_name(method) for method in content["methods"]),
        content["seeds"] if isinstance(content["seeds"], int) else len(content["seeds"]),
        tuple(_needs(path, content["data"], data_folders(data_dir))),
        _full_text(text, content),
        _costs().get(name),
    )


def _full_text(text: str, content: JsonObject) -> str:
    """Return the text of a recipe; with a base, its comment and the merged content."""
    if "\nbase: " not in text:
        return text
    comment = "".join(f"{line}\n" for line in text.splitlines() if line.startswith("#"))
    kept = {key: value for key, value in content.items() if value is not None}
    return comment + yaml.safe_dump(kept, sort_keys=False, default_flow_style=None, width=120)


@cache
def _costs() -> dict[str, Cost]:
    """Return the stored forecasts by recipe."""
    stored = json.loads((FOLDER / COSTS).read_text(encoding="utf-8"))
    return {name: Cost(**one) for name, one in stored.items()}


def _name(choice: str | JsonObject) -> str:
    return choice if isinstance(choice, str) else str(choice["name"])


def _needs(path: Path, data: str | JsonObject, folders: Sequence[Path]) -> Iterable[Need]:
    for listed, source in _listed_needs(path):
        if listed == "data.files" and not isinstance(data, str):
            yield from (Need((file,), source, _is_found(file, folders)) for file in data["files"])
        else:
            files = tuple(listed.split(" or "))
            yield Need(files, source, any(_is_found(file, folders) for file in files))


def _listed_needs(path: Path) -> list[tuple[str, str]]:
    """Return what a recipe says that it needs, or else its base."""
    text = path.read_text(encoding="utf-8")
    base = _base_file(path, _packaged(path).get("base"))
    return NEEDS.findall(text) or (_listed_needs(base) if base else [])


def _is_found(file: str, folders: Sequence[Path]) -> bool:
    """Return whether a file is where a run looks for it: here, in a data folder or among its weights."""
    others = [] if file.startswith("./") else [place for folder in folders for place in (folder, folder / "weights")]
    return any(any(place.glob(file)) for place in (Path(), *others))
