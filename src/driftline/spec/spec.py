"""The spec: one validated model behind Python, YAML and the command line.

A spec names a benchmark, data, a model, methods, seeds and perhaps a grid of settings to select from. It expands to
jobs, one per method and seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, PrivateAttr, model_validator

from driftline import models, registry
from driftline.device import DeviceSettings
from driftline.errors import UserError
from driftline.io.user_objects import UserObject
from driftline.learners.supervised.base import CumulativeLearner
from driftline.recipes import read_yaml
from driftline.seeds import first_seeds
from driftline.spec.job import Job, LabelPolicy, SearchSpace
from driftline.spec.objects import name_objects
from driftline.spec.search import Search
from driftline.spec.settings import (
    Choice,
    FrozenModel,
    MethodChoice,
    check_reveal_level,
    display_name,
    listed,
    validate,
    with_defaults,
)
from driftline.types import JsonObject


class Spec(FrozenModel):
    """A benchmark, data, a model, methods and seeds to run."""

    benchmark: str
    data: Choice
    model: Choice | None = None
    """By default, the one that suits the data."""
    methods: tuple[MethodChoice, ...] = Field(min_length=1)
    seeds: tuple[int, ...] = Field(default=(0,), min_length=1)
    reveal: LabelPolicy = LabelPolicy()
    device: DeviceSettings = DeviceSettings()
    """Where networks run; a name, or a mapping of the settings."""
    selection: Search | None = None
    """Hyper-parameter search before the runs; by default, methods run as written."""
    options: JsonObject = Field(default={})
    """The benchmark's own settings; in YAML under the benchmark's name."""
    _objects: tuple[UserObject, ...] = PrivateAttr(())

    @model_validator(mode="before")
    @classmethod
    def _expand_short_forms(cls, given: object) -> Any:
        if not isinstance(given, dict):
            raise UserError("a spec is a mapping with the keys benchmark, data and methods")
        given = dict(given)
        name = given.get("benchmark")
        if isinstance(name, str) and name in given:
            given["options"] = given.pop(name) or {}
        if isinstance(given.get("seeds"), int):
            given["seeds"] = first_seeds(given["seeds"])
        if isinstance(given.get("device"), str):
            given["device"] = {"name": given["device"]}
        return {**given, "methods": listed(given.get("methods"))}

    @property
    def objects(self) -> tuple[UserObject, ...]:
        """The Python objects that it names: they are known as long as the spec is."""
        return self._objects

    def jobs(self, default_model: str) -> list[Job]:
        """Return one job per method and seed, with every default filled in."""
        benchmark = registry.get("benchmark", self.benchmark)
        given = {**self.options, **self._phase_options(benchmark.options)}
        options = validate(benchmark.options, given, self.benchmark)
        model = with_defaults("model", self.model or Choice(name=default_model))
        data = with_defaults("dataset", self.data)
        for method in self.methods:
            check_reveal_level(self.benchmark, method)
        methods = [(display_name(method), with_defaults("method", method)) for method in self.methods]
        if len({label for label, _ in methods}) < len(methods):
            raise UserError(f"methods named twice: {', '.join(label for label, _ in methods)}")
        given_labels = [method.label for method in self.methods if method.label]
        if len(set(given_labels)) < len(given_labels):
            raise UserError(f"two methods have the same label: {', '.join(given_labels)}")
        searches = self._search_spaces(benchmark.primary_metrics, options, model.name)
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
                device=self.device,
                search=search,
            )
            for (label, method), search in zip(methods, searches, strict=True)
            for seed in self.seeds
        ]

    def _search_spaces(
        self, metrics: tuple[tuple[str, str], ...], options: Any, model: str
    ) -> list[SearchSpace | None]:
        """Return the candidates of each method; None for one that has nothing to select."""
        if self.selection is None or self.selection.rule == "validation-split":
            return [None] * len(self.methods)
        if self.selection.rule == "validation-streams" and options.validation_options() is None:
            other = "validation-split or oracle" if options.phase_options else "oracle"
            raise UserError(f"{self.benchmark} has no streams to choose settings by here: the rule may be {other}")
        trained = CumulativeLearner.__dataclass_fields__ if models.is_estimator(model) else ()
        unused = dict.fromkeys(trained, f"{model}, which is not trained by gradients")
        return self.selection.search_spaces(self.methods, metrics=metrics, unused=unused)

    def _phase_options(self, options: Any) -> JsonObject:
        """Return the options that the selection sets: with validation-split, methods select while they train."""
        if self.selection is None or self.selection.rule != "validation-split":
            return {}
        grid = self.selection.phases(self.benchmark, self.methods, options.phase_options)
        for name in grid:
            if name in self.options:
                raise UserError(f"{name} is given twice: in {self.benchmark} and in selection.grid")
        return grid

    def to_yaml(self) -> str:
        """Return the spec as YAML; reading it back gives the same spec."""
        content = {
            "benchmark": self.benchmark,
            "data": self.data.short(),
            **({"model": self.model.short()} if self.model else {}),
            "methods": [method.short() for method in self.methods],
            "seeds": list(self.seeds),
            **({"reveal": self.reveal.model_dump()} if self.reveal != LabelPolicy() else {}),
            **({"device": self.device.model_dump(exclude_defaults=True)} if self.device != DeviceSettings() else {}),
            **({"selection": self._selection_content()} if self.selection else {}),
            **({self.benchmark: self.options} if self.options else {}),
        }
        return yaml.safe_dump(content, sort_keys=False)

    def to_full_yaml(self, default_model: str) -> str:
        """Return the spec as YAML with every default filled in; it has the same jobs."""
        first = self.jobs(default_model)[0]
        searched = self._phase_options(registry.get("benchmark", self.benchmark).options)
        content = {
            "benchmark": self.benchmark,
            "data": first.data.short(),
            "model": first.model.short(),
            "methods": [with_defaults("method", method).short() for method in self.methods],
            "seeds": list(self.seeds),
            "reveal": self.reveal.model_dump(),
            "device": self.device.model_dump(),
            **({"selection": self._selection_content(exclude_defaults=False)} if self.selection else {}),
            self.benchmark: {name: value for name, value in first.options.items() if name not in searched},
        }
        return yaml.safe_dump(content, sort_keys=False)

    def _selection_content(self, exclude_defaults: bool = True) -> JsonObject:
        assert self.selection is not None
        return self.selection.model_dump(mode="json", exclude_defaults=exclude_defaults, by_alias=True)


def read(path: str | Path) -> Spec:
    """Read a spec from a YAML file, or the recipe of `recipe:NAME`."""
    return parse(read_yaml(path))


def parse(content: object, *, cache: bool = True) -> Spec:
    """Return the spec of a mapping of names and objects; errors name the key at fault.

    `cache`: whether results are kept, so that every object must have a hash.
    """
    objects: tuple[UserObject, ...] = ()
    if isinstance(content, Mapping):
        content, objects = name_objects(content, cache)
    keys = [*Spec.model_fields, *([str(content.get("benchmark"))] if isinstance(content, dict) else [])]
    spec: Spec = validate(Spec, content, "the spec", keys=[key for key in keys if key != "options"])
    spec._objects = objects
    return spec
