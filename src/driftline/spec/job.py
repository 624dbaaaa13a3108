"""One run, fully described: a method with all its settings, the data, the model, the benchmark and a seed."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, SerializerFunctionWrapHandler, model_serializer

from driftline import registry
from driftline.device import DeviceSettings
from driftline.errors import UserError
from driftline.spec.settings import Choice, FrozenModel, LoRA, format_settings, listed, with_defaults
from driftline.types import JsonObject


class LabelPolicy(FrozenModel):
    """When and how many of the labels that the benchmark reveals arrive."""

    delay: int = Field(default=0, ge=0)
    """Steps between an answer and its label."""
    budget: int | None = Field(default=None, ge=1)
    """Maximum number of labels per step, drawn at random."""
    missing: float = Field(default=0.0, ge=0, lt=1)
    """The share of labels that never arrive, drawn at random."""
    rules: Annotated[tuple[Choice, ...], BeforeValidator(listed)] = ()
    """Names of label rules, each with its settings: delays, queries, noise, actions."""

    @model_serializer(mode="wrap")
    def _without_empty_rules(self, serialize: SerializerFunctionWrapHandler) -> JsonObject:
        """Leave out what is empty, so that keys and cards of runs without rules are those of before there were any."""
        content: JsonObject = serialize(self)
        if self.rules:
            content["rules"] = [rule.short() for rule in self.rules]
        else:
            content.pop("rules", None)
        return content

    def with_defaults(self) -> LabelPolicy:
        """Return the policy with every setting of its rules; refuse rules that do not exist or come twice."""
        rules = tuple(with_defaults("label-rule", rule) for rule in self.rules)
        names = [rule.name for rule in rules]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise UserError(f"label rules named twice: {', '.join(twice)}")
        return self.model_copy(update={"rules": rules})


def _whole(given: object) -> object:
    """Return a number such as 1e9, which YAML reads as a text, as a whole number; other values as they are."""
    try:
        number = float(given) if isinstance(given, str | float) else given
    except ValueError:
        return given
    return int(number) if isinstance(number, float) and math.isfinite(number) else number


BudgetMacs = Annotated[int, BeforeValidator(_whole), Field(ge=1)]
"""A number of multiply-accumulates."""
TieBreak = Literal["smaller-lr", "best"]


class SearchSpace(FrozenModel):
    """Candidate settings of a method, and the rule that selects one of them."""

    rule: Literal["validation-streams", "oracle"]
    candidates: tuple[JsonObject, ...]
    seeds: tuple[int, ...]
    """In ascending order, so that searches share their runs."""
    metrics: tuple[tuple[str, str], ...]
    """A candidate's score is the mean of these (metric, statistic) pairs over its runs."""
    tie_break: TieBreak = "smaller-lr"
    """The candidate that wins if the best is not better than it by more than one standard error."""
    repeats: int = 1
    """Number of selections; if there are several, each seed of the result has its own."""

    def repeated(self, number: int) -> SearchSpace:
        """Return the selection with this number: the same candidates on other validation seeds.

        >>> space = SearchSpace(rule="oracle", candidates=(), seeds=(0, 1, 2), metrics=(), repeats=2)
        >>> space.repeated(0).seeds, space.repeated(1).seeds
        ((0, 1, 2), (3, 4, 5))
        """
        offset = number * (max(self.seeds) + 1)
        return self.model_copy(update={"seeds": tuple(seed + offset for seed in self.seeds)})


class Job(FrozenModel):
    """One run: a method with all its settings, and one seed."""

    benchmark: str
    options: JsonObject
    data: Choice
    model: Choice
    method: Choice
    lora: LoRA | None = None
    """The adapters that the method trains; None: it trains the network."""
    label: str
    seed: int
    reveal: LabelPolicy
    device: DeviceSettings = DeviceSettings()
    search: SearchSpace | None = None
    """If given, the selected candidate's settings replace the method's."""
    budget_macs: BudgetMacs | None = None
    """The multiply-accumulates that the run may spend, evenly over its steps."""
    purpose: Literal["result", "search"] = "result"
    """A search run only serves to select settings."""

    def content(self, include: set[str] | None = None) -> JsonObject:
        """Return the fields that decide results, by default all: the label and the name of the device do not."""
        names = set(type(self).model_fields) if include is None else include
        fields = self.model_dump(mode="json", include=names - {"label", "device"})
        for name in ("budget_macs", "lora"):
            if getattr(self, name) is None:
                fields.pop(name, None)
        device = self.device.decisive()
        return {**fields, **({"device": device} if device else {})}

    def search_jobs(self) -> list[list[Job]]:
        """Return the runs of the search: one list per candidate, one run per seed."""
        if self.search is None:
            return []
        options = registry.get("benchmark", self.benchmark).options(**self.options)
        if self.search.rule == "validation-streams":
            options = options.validation_options()
        common = {"options": options.model_dump(mode="json"), "search": None, "purpose": "search"}
        jobs = []
        for candidate in self.search.candidates:
            label = f"{self.label} with {format_settings(candidate)}"
            job = self.with_settings(candidate).model_copy(update={**common, "label": label})
            jobs.append([job.model_copy(update={"seed": seed}) for seed in self.search.seeds])
        return jobs

    def calibration_job(self) -> Job | None:
        """Return the job whose initial model is calibrated before this one runs; None if nothing is to be calibrated.

        It is the same for all methods and seeds, so that all have the same stream.
        """
        options = registry.get("benchmark", self.benchmark).options(**self.options).calibration_options()
        if options is None:
            return None
        return self.model_copy(update={"options": options.model_dump(mode="json"), "seed": 0, "search": None})

    def with_settings(self, settings: JsonObject) -> Job:
        """Return the job with these settings of its method replaced."""
        method = Choice(name=self.method.name, settings={**self.method.settings, **settings})
        return self.model_copy(update={"method": with_defaults("method", method)})

    def pretrain_options(self) -> JsonObject:
        """Return the benchmark options that the pretrained model depends on."""
        decisive = registry.get("benchmark", self.benchmark).options.pretrain_options
        return {name: value for name, value in self.options.items() if decisive is None or name in decisive}

    @property
    def pretraining(self) -> Choice:
        """The pretraining of the model on upstream samples."""
        choice = self.method.settings.get("pretraining", "supervised")
        if isinstance(choice, dict) and not isinstance(choice.get("name"), str):
            raise UserError(f"pretraining {choice} has no name: write {{name: prototypes, way: 20}}, for example")
        return Choice.model_validate(choice)
