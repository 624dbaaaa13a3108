"""One run, described: a method with all its settings, the data, the model, the benchmark and a seed.

A job with all its defaults filled in, as canonical JSON, is what a run is keyed by.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, model_validator

from driftline import handed, models, registry
from driftline.data import weights_file
from driftline.errors import UserError, unknown
from driftline.learners.base import Learner
from driftline.types import Reveal
from driftline.version import __version__

# A class may be called 1 and a column 2024: such names come as numbers from a command line.
SETTINGS = ConfigDict(extra="forbid", protected_namespaces=(), coerce_numbers_to_str=True)


class Strict(BaseModel):
    """Refuses what it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Choice(Strict):
    """A registered thing by name, with the settings that were given for it."""

    name: str = Field(min_length=1)
    settings: dict[str, Any] = {}

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, given: Any) -> Any:
        """`ft`, or `{name: ft, lr: 0.001}`."""
        if isinstance(given, str):
            return {"name": given}
        if isinstance(given, dict) and "settings" not in given:
            return {"name": given.get("name"), "settings": {k: v for k, v in given.items() if k != "name"}}
        return given

    def short(self) -> Any:
        return {"name": self.name, **self.settings} if self.settings else self.name


class Labels(Strict):
    """When and how many of the labels that the benchmark reveals arrive."""

    delay: int = Field(default=0, ge=0)
    """Steps between an answer and its label."""
    budget: int | None = Field(default=None, ge=1)
    """At most so many labels per step, drawn at random."""
    missing: float = Field(default=0.0, ge=0, lt=1)
    """The share of labels that never arrive, drawn at random."""


class Contest(Strict):
    """Settings of a method that compete before it is run."""

    rule: Literal["validation-streams", "oracle"]
    points: tuple[dict[str, Any], ...]
    seeds: tuple[int, ...]
    """In rising order, so that contests which share trials have them in the same one."""
    metrics: tuple[tuple[str, str], ...]
    """A setting's score is the mean of these (metric, statistic) pairs over its trials."""


class Job(Strict):
    """One run: a method with all its settings, and one seed."""

    benchmark: str
    options: dict[str, Any]
    data: Choice
    model: Choice
    method: Choice
    label: str
    seed: int
    reveal: Labels
    contest: Contest | None = None
    """If there is one, its winner's settings take the place of the method's."""
    purpose: Literal["result", "trial"] = "result"
    """A trial is run to choose settings, and no result of its own."""

    def trials(self) -> list[list[Job]]:
        """The runs that decide the contest: one list per point, one run per seed."""
        if self.contest is None:
            return []
        options = registry.get("benchmark", self.benchmark).options(**self.options)
        if self.contest.rule == "validation-streams":
            options = options.for_choosing()
        said = {"options": options.model_dump(mode="json"), "contest": None, "purpose": "trial"}
        chosen = [(point, self.with_settings(point)) for point in self.contest.points]
        return [
            [
                job.model_copy(update={**said, "seed": seed, "label": f"{self.label} trying {told(point)}"})
                for seed in self.contest.seeds
            ]
            for point, job in chosen
        ]

    def with_settings(self, point: dict[str, Any]) -> Job:
        """The same with these settings of its method."""
        method = Choice(name=self.method.name, settings={**self.method.settings, **point})
        return self.model_copy(update={"method": filled("method", method)})

    def key(self, fingerprint: str, files: dict[str, str] | None = None) -> str:
        """The hash of all that decides the outcome: this job, the data's content and the version of the code.

        `files`: what `files()` gave for the same job with another seed, so that it need not look again.
        """
        parts = self.model_dump(mode="json", exclude={"label"})
        return hash_of({**parts, "fingerprint": fingerprint, "files": self.files() if files is None else files})

    def upstream_key(self, fingerprint: str) -> str:
        """The hash of what the common starting model depends on; of the method, only its pretraining is among it."""
        parts = self.model_dump(mode="json", include={"benchmark", "data", "model", "seed"})
        options = self.upstream_options()
        files = _files(self.data, (self.model, self.pretraining), options)
        said = {"options": options, "fingerprint": fingerprint, "files": files, "stage": "upstream"}
        return hash_of({**parts, **said, "pretraining": self.pretraining.model_dump(mode="json")})

    def upstream_options(self) -> dict[str, Any]:
        """The options that the upstream model depends on."""
        decisive = registry.get("benchmark", self.benchmark).options.decide_upstream
        return {name: value for name, value in self.options.items() if decisive is None or name in decisive}

    @property
    def pretraining(self) -> Choice:
        """How the model is trained on upstream samples before the method takes it."""
        said = self.method.settings.get("pretraining", "supervised")
        if isinstance(said, dict) and not isinstance(said.get("name"), str):
            raise UserError(f"pretraining {said} has no name: write {{name: prototypes, way: 20}}, for example")
        return Choice.model_validate(said)

    def trial_key(self, fingerprint: str, trial: str, privileged: bool) -> str:
        """The hash of what a fit depends on; the method is not among it, so methods share their fits."""
        parts = self.model_dump(mode="json", exclude={"method", "label"})
        options = registry.get("benchmark", self.benchmark).options
        idle = {*options.said_by_trials, *(() if privileged else options.privileged)}
        parts["options"] = {name: value for name, value in self.options.items() if name not in idle}
        said = {"fingerprint": fingerprint, "files": self.files(), "trial": trial, "privileged": privileged}
        return hash_of({**parts, **said, "stage": "fit"})

    def files(self) -> dict[str, str]:
        """The content of the files it names."""
        return _files(self.data, (self.model, self.method), self.options)


def _files(data: Choice, choices: Iterable[Choice], options: dict[str, Any]) -> dict[str, str]:
    """The content of files that were named: editing a method, or other weights, makes it another run.

    Of data, the fingerprint says what they hold, so their files may be gone by the time a stage is computed.
    """
    texts = list(handed.texts([options, *(choice.settings for choice in choices)]))
    own = [choice.name.rpartition(":")[0] for choice in (data, *choices)]
    own = [path for path in own if path.endswith(".py")]
    own += [path for text in texts for path in handed.sources(text)]  # as that of a method around another
    found = {text: weights_file(text) for text in texts if text}
    named = {**{path: handed.file_of(path) for path in own}, **found}
    return {name: content_hash(path) for name, path in named.items() if path}


def content_hash(path: Path) -> str:
    """A hash of a file's content; a file that did not change since is not read again."""
    seen = path.stat()
    return _read_and_hashed(path, seen.st_mtime_ns, seen.st_size)


@functools.lru_cache
def _read_and_hashed(path: Path, changed: int, size: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def told(settings: dict[str, Any]) -> str:
    """Settings in a line."""
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def hash_of(content: Any) -> str:
    """A short hash of canonical JSON and the version of this package."""
    text = json.dumps({"content": content, "driftline": __version__}, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def validated(model: type[Any], content: Any, where: str, keys: list[str] | None = None) -> Any:
    """A pydantic model from a mapping, or an error in words with the nearest valid key."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(str(part) for part in first["loc"])
        if first["type"] in ("too_short", "missing"):
            raise UserError(f"{where}: '{path}' is empty") from None
        if first["type"] == "extra_forbidden":
            raise unknown("setting", path, keys or list(model.model_fields), f" (in {where})") from None
        raise UserError(
            f"{where}: '{path}' {first['msg'][0].lower()}{first['msg'][1:]}; got {first['input']!r}"
        ) from None


def settings_model(kind: str, name: str) -> type[BaseModel] | None:
    """The settings that a registered thing takes, as a pydantic model; None if it takes anything."""
    entry = registry.describe(kind, name)
    if entry and entry.settings is not None:
        known: dict[str, Any] | None = {key: (*given, ...)[:2] for key, given in entry.settings.items()}
    else:
        known = settings_of(kind, name)
    return None if known is None else create_model(name, __config__=SETTINGS, **known)


def settings_of(kind: str, name: str) -> dict[str, Any] | None:
    """Return the type and default of each setting, `...` for one without a default; None if it takes anything."""
    thing = models.maker(name) if kind == "model" else registry.get(kind, name)
    fields: dict[str, Any] = {}
    types = registry.types_of(name, thing)
    for parameter in inspect.signature(thing).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            return None
        if kind in ("method", "pretraining") or parameter.kind is parameter.KEYWORD_ONLY:
            default = ... if parameter.default is parameter.empty else parameter.default
            fields[parameter.name] = (types.get(parameter.name, Any), default)
    return fields


def learner_class(name: str) -> type[Learner]:
    """The class behind a method's name; a preset is a class with some settings filled in."""
    thing = registry.get("method", name)
    found: type[Learner] = getattr(thing, "func", thing)
    return found


def must_reveal_enough(benchmark: str, choice: Choice) -> None:
    """Refuse a method that needs to see more than a benchmark shows, and say where it fits."""
    method, shown = choice.name, registry.get("benchmark", benchmark).reveals
    needed = learner_class(method).needs(choice.settings)
    if shown >= needed:
        return
    homes = [name for name in registry.names("benchmark") if _reveal("benchmark", name) >= needed]
    fitting = [name for name in registry.names("method") if _reveal("method", name) <= shown]
    raise UserError(
        f"{method} needs {_said(needed)}, and {benchmark} reveals {_said(shown)}. {method} runs in: "
        f"{', '.join(homes)}. Methods that fit {benchmark}: {', '.join(fitting)}"
    )


def _reveal(kind: str, name: str) -> Reveal:
    """Return what a benchmark reveals, or what a method needs with its defaults."""
    if entry := registry.describe(kind, name):
        return Reveal[entry.reveal]
    found: Reveal = registry.get(kind, name).reveals if kind == "benchmark" else learner_class(name).sees
    return found


def _said(level: Reveal) -> str:
    return {Reveal.INPUTS: "inputs only", Reveal.ERRORS: "the labels of its errors", Reveal.LABELS: "all labels"}[level]


def filled(kind: str, choice: Choice) -> Choice:
    """The same choice with every default said."""
    schema = settings_model(kind, choice.name)
    if schema is None:
        return choice
    lacking = [name for name, field in schema.model_fields.items() if field.is_required()]
    lacking = [name for name in lacking if name not in choice.settings]
    if lacking:
        part = {"dataset": "data", "model": "model"}.get(kind, choice.name)
        ways = " ".join(f"--set {part}.{name}=..." for name in lacking)
        raise UserError(f"{kind} '{choice.name}' needs {', '.join(lacking)}: {ways}")
    settings = validated(schema, choice.settings, choice.name).model_dump(mode="json")
    return Choice(name=choice.name, settings=settings)


def label_of(method: Choice) -> str:
    """The method's name, with the settings in which it differs from its defaults."""
    schema = settings_model("method", method.name)
    if schema is None or not method.settings:
        return method.name
    given, usual = (
        validated(schema, method.settings, method.name).model_dump(mode="json"),
        schema().model_dump(mode="json"),
    )
    changed = {key: value for key, value in given.items() if value != usual[key]}
    return f"{method.name}({told(changed)})" if changed else method.name
