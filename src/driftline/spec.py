"""What to run: one validated model behind Python, YAML and the command line.

A spec names a benchmark, data, a model, methods and seeds, and perhaps a grid of settings to choose from. It expands to
jobs, one per method and seed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, model_validator

from driftline import models, registry, yaml_text
from driftline.errors import UserError, unknown
from driftline.jobs import Choice, Contest, Job, Labels, Strict, filled, label_of, must_reveal_enough, validated
from driftline.learners.pooled import Pooled
from driftline.search import Search
from driftline.seeds import first_seeds


class Spec(Strict):
    """What to run."""

    benchmark: str
    data: Choice
    model: Choice | None = None
    """If none is given, the one that suits the data."""
    methods: tuple[Choice, ...] = Field(min_length=1)
    seeds: tuple[int, ...] = Field(default=(0,), min_length=1)
    reveal: Labels = Labels()
    selection: Search | None = None
    """Settings to choose from before the runs proper; if none is given, methods run as they are written."""
    options: dict[str, Any] = Field(default={})
    """The benchmark's own settings; in YAML under the benchmark's name."""

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            raise UserError("a spec is a mapping with the keys benchmark, data and methods")
        given = dict(given)
        name = given.get("benchmark")
        if isinstance(name, str) and name in given:
            given["options"] = given.pop(name) or {}
        if isinstance(given.get("seeds"), int):
            given["seeds"] = first_seeds(given["seeds"])
        return {**given, "methods": _listed(given.get("methods"))}

    def jobs(self, default_model: str) -> list[Job]:
        """One job per method and seed, every default filled in."""
        benchmark = registry.get("benchmark", self.benchmark)
        said = {**self.options, **self._phases(benchmark.options)}
        options = validated(benchmark.options, said, self.benchmark)
        model = filled("model", self.model or Choice(name=default_model))
        data = filled("dataset", self.data)
        for method in self.methods:
            must_reveal_enough(self.benchmark, method)
        methods = [(label_of(method), filled("method", method)) for method in self.methods]
        if len({label for label, _ in methods}) < len(methods):
            raise UserError(f"methods named twice: {', '.join(label for label, _ in methods)}")
        contests = self._contests(benchmark.primary_metrics, options, model.name)
        return [
            Job(
                benchmark=self.benchmark,
                options=options.model_dump(mode="json"),
                data=data,
                model=model,
                method=method,
                label=label,
                seed=seed,
                reveal=self.reveal,
                contest=contest,
            )
            for (label, method), contest in zip(methods, contests, strict=True)
            for seed in self.seeds
        ]

    def _contests(self, metrics: tuple[tuple[str, str], ...], options: Any, model: str) -> list[Contest | None]:
        """The settings among which each method chooses, if it does."""
        if self.selection is None or self.selection.rule == "final-valid":
            return [None] * len(self.methods)
        if self.selection.rule == "validation-streams" and options.for_choosing() is None:
            other = "final-valid or oracle" if options.phase_grid else "oracle"
            raise UserError(f"{self.benchmark} has no streams to choose settings by here: the rule may be {other}")
        trained = Pooled.__dataclass_fields__ if models.is_estimator(model) else ()
        idle = dict.fromkeys(trained, f"{model}, which is not trained by gradients")
        return self.selection.contests(self.methods, metrics=metrics, idle=idle)

    def _phases(self, options: Any) -> dict[str, Any]:
        """Options that the selection sets: with final-valid, methods choose while they train."""
        if self.selection is None or self.selection.rule != "final-valid":
            return {}
        found = self.selection.phases(self.benchmark, self.methods, options.phase_grid)
        for name in found:
            if name in self.options:
                raise UserError(f"{name} is said twice: in {self.benchmark} and in selection.grid")
        return found

    def to_yaml(self) -> str:
        """As it would be written by hand; reading it back gives the same spec."""
        content = {
            "benchmark": self.benchmark,
            "data": self.data.short(),
            **({"model": self.model.short()} if self.model else {}),
            "methods": [method.short() for method in self.methods],
            "seeds": list(self.seeds),
            **({"reveal": self.reveal.model_dump()} if self.reveal != Labels() else {}),
            **({"selection": self._selection()} if self.selection else {}),
            **({self.benchmark: self.options} if self.options else {}),
        }
        return yaml.safe_dump(content, sort_keys=False)

    def _selection(self) -> dict[str, Any]:
        assert self.selection is not None
        return self.selection.model_dump(mode="json", exclude_defaults=True, by_alias=True)


def read(path: Path) -> Spec:
    """A spec from a YAML file."""
    return parse(mapping(path))


def mapping(path: Path) -> dict[str, Any]:
    """The content of a YAML file that is to be a spec."""
    try:
        content = yaml_text.load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise UserError(f"{path} is not YAML: {error}") from error
    if not isinstance(content, dict):
        raise UserError(f"{path}: a spec is a mapping with the keys benchmark, data and methods")
    return content


def parse(content: Any) -> Spec:
    """A spec from a mapping; what is wrong with it is said in a sentence."""
    keys = [*Spec.model_fields, *([str(content.get("benchmark"))] if isinstance(content, dict) else [])]
    spec: Spec = validated(Spec, content, "the spec", keys=[key for key in keys if key != "options"])
    return spec


def with_settings(content: dict[str, Any], assignments: list[str]) -> dict[str, Any]:
    """The mapping with `part.key=value` applied; parts are data, model, reveal, selection, the benchmark, methods."""
    content = {**content, "methods": [_mapping(method) for method in _listed(content.get("methods"))]}
    parts = {"reveal", "data", "model", "selection", str(content.get("benchmark"))}
    methods = {str(method.get("name")) for method in content["methods"]}
    for assignment in assignments:
        target, equals, text = assignment.partition("=")
        # A file's name has dots too, so the part is the longest known one.
        part = max((p for p in parts | methods if target.startswith(f"{p}.")), key=len, default=None)
        if not equals or "." not in target:
            raise UserError(f"--set takes part.key=value, for example ft.lr=1e-3; got '{assignment}'")
        if part is None:
            raise unknown("part", target.partition(".")[0], parts | methods, f" (in --set {assignment})")
        key = target[len(part) + 1 :].strip()
        if part in methods:
            for method in content["methods"]:
                if method["name"] == part:
                    method[key] = _value(text)
        else:
            content[part] = {**_mapping(content.get(part) or {}), key: _value(text)}
    return content


def _value(text: str) -> Any:
    """A value as it is written in JSON, or else a plain text: 1e-3 is a number and `on` is a word.

    >>> _value("[a, b.csv, 3]"), _value("[0-9].csv")
    (['a', 'b.csv', 3], '[0-9].csv')
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        text = text.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return text
    if any(mark in text[1:-1] for mark in '[]{}"'):
        raise UserError(f'{text} is not JSON: put texts in double quotes, as in \'[["a", 1], ["b", 2]]\'')
    return [_value(part) for part in text[1:-1].split(",")]


def _mapping(given: Any) -> dict[str, Any]:
    return dict(given) if isinstance(given, dict) else {"name": given}


def _listed(given: Any) -> list[Any]:
    """Methods as a list, however they were written."""
    if isinstance(given, str):
        return [name.strip() for name in given.split(",") if name.strip()]
    return list(given) if isinstance(given, list | tuple) else [] if given is None else [given]
