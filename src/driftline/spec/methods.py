"""What planning knows about a method: from the registry's index for built-in ones, which imports no method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from driftline import registry
from driftline.errors import RequirementError
from driftline.io.serialization import declared
from driftline.learners.base import Learner, Role, is_built_in
from driftline.spec.settings import Choice
from driftline.types import JsonObject, Reveal, Settings

LEVELS = {Reveal.INPUTS: "inputs only", Reveal.ERRORS: "the labels of its errors", Reveal.LABELS: "all labels"}


@dataclass(frozen=True)
class MethodFacts:
    """Class attributes of a method (`learners.base.Learner`) that decide how it is planned."""

    role: Role = "method"
    plans_fits: bool = False
    is_oracle: bool = False
    trains_network: bool = False
    quick: Mapping[str, str] = field(default_factory=dict)
    cost_free: tuple[str, ...] = ()
    """Its own, and those of the classes that it extends."""
    open_settings: tuple[str, ...] = ()
    """The settings of a training round whose defaults it leaves to its base class."""
    wraps: tuple[str, str] | None = None
    """The setting that names the method that it wraps, and its default."""

    @classmethod
    def of(cls, thing: Any) -> MethodFacts:
        """Return the facts about a class, or about a preset of one."""
        learner: type[Learner] = getattr(thing, "func", thing)
        return cls(
            role=learner.role,
            plans_fits=learner.plans_fits,
            is_oracle=learner.is_oracle,
            trains_network=learner.trains_network,
            quick=dict(learner.quick),
            cost_free=tuple(sorted(declared(learner, "cost_free"))),
            open_settings=tuple(sorted(_open_settings(learner, getattr(thing, "keywords", {})))),
            wraps=(learner.wraps, getattr(learner, learner.wraps)) if learner.wraps else None,
        )

    def as_entry(self) -> JsonObject:
        """Return the facts that differ from the defaults, for the index."""
        usual = asdict(MethodFacts())
        return {name: value for name, value in asdict(self).items() if value != usual[name]}

    def wrapped(self, settings: Settings) -> str | None:
        """Return the name of the method that it wraps with these settings."""
        return str(settings.get(*self.wraps)) if self.wraps else None


def _open_settings(learner: type[Learner], preset: Settings) -> set[str]:
    owner = next((base for base in learner.__mro__ if "budget_settings" in vars(base)), None)
    return {
        setting
        for setting in learner.budget_settings
        if setting not in preset and next((base for base in learner.__mro__ if setting in vars(base)), None) is owner
    }


def method_facts(name: str) -> MethodFacts:
    """Return what planning needs to know about a method."""
    entry = registry.describe("method", name)
    return MethodFacts(**entry.facts) if entry else MethodFacts.of(registry.get("method", name))


def learner_class(name: str) -> type[Learner]:
    """Return the class behind a method's name; a preset is a class with some settings filled in."""
    thing = registry.get("method", name)
    cls: type[Learner] = getattr(thing, "func", thing)
    return cls


def required_reveal(name: str, settings: Settings) -> Reveal:
    """Return the least that must be revealed to a method with these settings; one that wraps another needs as much."""
    wrapped = method_facts(name).wrapped(settings)
    return _reveal("method", wrapped or name)


def check_reveal_level(benchmark: str, choice: Choice) -> None:
    """Refuse a method that needs more than the benchmark reveals, and name the benchmarks that fit."""
    method, revealed = choice.display_name, registry.get("benchmark", benchmark).reveals
    needed = required_reveal(choice.name, choice.settings)
    if revealed >= needed:
        return
    homes = [name for name in registry.names("benchmark") if _reveal("benchmark", name) >= needed]
    fitting = [name for name in registry.names("method") if _reveal("method", name) <= revealed]
    built_in = registry.describe("method", choice.name) or is_built_in(learner_class(choice.name))
    advice = f" If {method} can do with that, set its class attribute min_reveal = Reveal.{revealed.name}."
    raise RequirementError(
        LEVELS[needed],
        f"{method} needs {LEVELS[needed]}, and {benchmark} reveals {LEVELS[revealed]}.{'' if built_in else advice} "
        f"{method} runs in: {', '.join(homes)}. Methods that fit {benchmark}: {', '.join(fitting)}",
    )


def _reveal(kind: str, name: str) -> Reveal:
    """Return what a benchmark reveals, or what a method needs with its defaults."""
    if entry := registry.describe(kind, name):
        return Reveal[entry.reveal]
    level: Reveal = registry.get(kind, name).reveals if kind == "benchmark" else learner_class(name).min_reveal
    return level
