"""The spec: one validated model behind Python, YAML and the command line.

A spec names a benchmark, data, a model, methods, seeds and perhaps a grid of settings to select from. It expands to
jobs, one per method and seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import Field, PrivateAttr, model_validator

from driftline import models, registry
from driftline.device import DeviceSettings
from driftline.errors import UserError
from driftline.io.user_objects import UserObject
from driftline.learners.supervised.base import TRAINING_SETTINGS
from driftline.recipes import read_yaml
from driftline.seeds import first_seeds
from driftline.spec.job import BudgetMacs, Job, LabelPolicy, SearchSpace
from driftline.spec.methods import check_reveal_level, method_facts
from driftline.spec.objects import name_objects
from driftline.spec.search import Search
from driftline.spec.settings import (
    Choice,
    FrozenModel,
    MethodChoice,
    display_name,
    listed,
    validate,
    with_defaults,
)
from driftline.spec.training_budget import with_budget
from driftline.types import JsonObject

if TYPE_CHECKING:
    from driftline.benchmarks.base import Benchmark


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
    budget_macs: BudgetMacs | None = None
    """The multiply-accumulates that a run may spend, evenly over its steps; training stops there."""
    options: JsonObject = Field(default={})
    """The benchmark's own settings; in YAML under the benchmark's name."""
    _objects: tuple[UserObject, ...] = PrivateAttr(())

    @model_validator(mode="before")
    @classmethod
    def _expand_short_forms(cls, given: object) -> object:
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
        budget = options.training_budget()
        methods = [
            (display_name(method), with_defaults("method", self._budgeted(method, budget))) for method in self.methods
        ]
        reveal = self.reveal.with_defaults()
        labels = [label for label, _ in methods]
        if twice := sorted({label for label in labels if labels.count(label) > 1}):
            raise UserError(f"methods named twice: {', '.join(twice)}. Leave one out, or rename one of two classes")
        given_labels = [method.label for method in self.methods if method.label]
        if len(set(given_labels)) < len(given_labels):
            raise UserError(f"two methods have the same label: {', '.join(given_labels)}")
        searches = self._search_spaces(benchmark, options, model.name)
        return [
            Job(
                benchmark=self.benchmark,
                options=options.model_dump(mode="json"),
                data=data,
                model=model,
                method=method,
                lora=choice.lora,
                label=label,
                seed=seed,
                reveal=reveal,
                device=self.device,
                search=search.repeated(k % search.repeats) if search else None,
                budget_macs=self.budget_macs,
            )
            for choice, (label, method), search in zip(self.methods, methods, searches, strict=True)
            for k, seed in enumerate(self.seeds)
        ]

    def _search_spaces(self, benchmark: type[Benchmark], options: Any, model: str) -> list[SearchSpace | None]:
        """Return the candidates of each method; None for one that has nothing to select."""
        if self.selection is None or self._selects_in_phases(options):
            return [None] * len(self.methods)
        if self.selection.rule != "oracle" and options.validation_options() is None:
            advice = options.validation_advice or "the rule may be oracle"
            raise UserError(f"{self.benchmark} has no streams to choose settings by here: {advice}")
        if self.selection.repeats not in (1, len(self.seeds)):
            raise UserError(
                f"selection: repeats={self.selection.repeats}: each seed has its own selection, so give the number of "
                f"seeds, {len(self.seeds)}, or 1"
            )
        trained = TRAINING_SETTINGS if models.is_estimator(model) else ()
        unused = dict.fromkeys(trained, f"{model}, which is not trained by gradients")
        spaces = self.selection.search_spaces(self.methods, metrics=self.selection.metrics(benchmark), unused=unused)
        for method, space in zip(self.methods, spaces, strict=True):
            if space and space.rule != "oracle" and method_facts(method.name).plans_fits:
                raise UserError(
                    f"selection: {method.display_name} selects between its own fits: use the rule validation-split"
                )
        return spaces

    def _budgeted(self, method: Choice, budget: JsonObject) -> Choice:
        """Return a method with the benchmark's training budget where it has none of its own."""
        return with_budget(method, budget, self.selection.axes(method) if self.selection else ())

    def _selects_in_phases(self, options: Any) -> bool:
        """Return whether methods select while they train: by rule or, without one, if a method trains in phases."""
        rule = self.selection.rule if self.selection else None
        phased = bool(options.phase_options) and any(method_facts(one.name).plans_fits for one in self.methods)
        return rule == "validation-split" or (rule is None and phased)

    def _phase_options(self, options: Any) -> JsonObject:
        """Return the options that the selection sets: with validation-split, methods select while they train."""
        if self.selection is None or not self._selects_in_phases(options):
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
            **({"budget_macs": self.budget_macs} if self.budget_macs else {}),
            **({self.benchmark: self.options} if self.options else {}),
        }
        return yaml.safe_dump(content, sort_keys=False)

    def to_full_yaml(self, default_model: str) -> str:
        """Return the spec as YAML with every default filled in; it has the same jobs."""
        jobs = self.jobs(default_model)
        first = jobs[0]
        searched = self._phase_options(registry.get("benchmark", self.benchmark).options)
        content = {
            "benchmark": self.benchmark,
            "data": first.data.short(),
            "model": first.model.short(),
            "methods": self._full_methods(jobs),
            "seeds": list(self.seeds),
            "reveal": first.reveal.model_dump(),
            "device": self.device.model_dump(),
            **({"selection": self._selection_content(exclude_defaults=False)} if self.selection else {}),
            **({"budget_macs": self.budget_macs} if self.budget_macs else {}),
            self.benchmark: {name: value for name, value in first.options.items() if name not in searched},
        }
        return yaml.safe_dump(content, sort_keys=False)

    def _full_methods(self, jobs: list[Job]) -> list[Any]:
        """Return the methods with all their settings, without those that a search gives."""
        full = []
        for method, job in zip(self.methods, jobs[:: len(self.seeds)], strict=True):
            searched = job.search.candidates[0] if job.search else {}
            settings = {name: value for name, value in job.method.settings.items() if name not in searched}
            full.append(method.model_copy(update={"settings": settings}).short())
        return full

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
