"""The training budget that a benchmark gives to methods without one of their own.

A base class such as `SupervisedLearner` names the settings of its training rounds in `budget_settings`: the number of
updates or epochs, and the size of a mini-batch. A method that leaves their defaults to the base class has no budget of
its own, and gets the benchmark's, so that methods are compared at similar compute. A method that declares such a
setting keeps it; so does one for which a user gives or searches a value.
"""

from __future__ import annotations

from collections.abc import Collection

from driftline.spec.methods import method_facts
from driftline.spec.settings import Choice
from driftline.types import JsonObject, Settings

LENGTH = {"updates", "epochs"}
"""Two ways to set the length of a training round. A method that sets one does not get the other's default."""


def with_budget(method: Choice, budget: Settings, searched: Collection[str] = ()) -> Choice:
    """Return a method with the settings of a budget that it leaves open; a wrapped method gets them too.

    `searched`: settings that a hyper-parameter search gives.

    >>> refinement = {"epochs": 10, "batch": 8}
    >>> with_budget(Choice(name="ft"), refinement).settings, with_budget(Choice(name="er"), refinement).settings
    ({'epochs': 10, 'batch': 8}, {})
    >>> with_budget(Choice(name="ft", settings={"updates": 50}), refinement).settings
    {'updates': 50, 'batch': 8}
    """
    facts = method_facts(method.name)
    if (name := facts.wrapped(method.settings)) is not None:
        inner = with_budget(Choice(name=name, settings=method.settings.get("options") or {}), budget)
        return _with_settings(method, {"options": inner.settings} if inner.settings else {})
    left_open = set(facts.open_settings) - {*method.settings, *searched}
    if not left_open >= LENGTH:
        left_open -= LENGTH
    handed = {name: value for name, value in budget.items() if name in left_open}
    return _with_settings(method, {**handed, **method.settings})


def _with_settings(method: Choice, settings: JsonObject) -> Choice:
    return Choice(name=method.name, settings={**method.settings, **settings})
