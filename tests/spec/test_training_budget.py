"""The training budget of a benchmark: handed to methods without one of their own, and to no other."""

from dataclasses import dataclass

import pytest

from driftline import registry
from driftline.errors import UserError
from driftline.learners import SupervisedLearner
from driftline.learners.settings import Count, CountOrZero
from driftline.spec import parse
from driftline.spec.methods import method_facts
from driftline.types import Reveal

OPEN = {
    *("erm", "erm-all", "ft", "ewc", "si", "a-gem", "mixup", "lisa", "swa", "coral-t", "groupdro-t", "irm-t"),
    *("der", "der++", "er-ace", "gdumb", "gem", "icarl", "mas"),
    *("simclr", "swav", "moco-sml", "moco-hat", "moco-arf", "moco-nb"),
}


@dataclass
class Own(SupervisedLearner):
    """A method without a budget of its own."""

    min_reveal = Reveal.ERRORS


@dataclass
class Longer(Own):
    """A method that states its number of updates."""

    updates: CountOrZero = 300


@dataclass
class Batched(SupervisedLearner):
    """A method that states its mini-batch."""

    batch: Count = 4

    min_reveal = Reveal.ERRORS


def settings(method, benchmark="refinement", **more):
    (job,) = parse({"benchmark": benchmark, "data": "digit-clusters", "methods": [method], **more}).jobs("mlp")
    return {name: job.method.settings.get(name) for name in ("updates", "epochs", "batch")}


def test_a_method_of_the_base_class_gets_the_budget_of_the_benchmark():
    assert settings(Own) == {"updates": 300, "epochs": 10, "batch": 8}
    assert settings("er") == {"updates": 0, "epochs": 10, "batch": 8}, "refinement's own methods have that much"
    assert settings(Own, "timeline") == {"updates": 300, "epochs": None, "batch": 32}
    assert settings(Own, "open-world") == {"updates": 300, "epochs": 4, "batch": 32}
    sequence = {"seq-to-final": {"epochs": 7, "batch": 16}}
    assert settings(Own, "seq-to-final", **sequence) == {"updates": 300, "epochs": 7, "batch": 16}


def test_what_a_method_or_a_user_states_is_kept():
    assert settings(Longer) == {"updates": 300, "epochs": None, "batch": 8}
    assert settings(Batched) == {"updates": 300, "epochs": 10, "batch": 4}
    assert settings({"name": Own, "updates": 20}) == {"updates": 20, "epochs": None, "batch": 8}
    assert settings({"name": Own, "epochs": 2, "batch": 64}) == {"updates": 300, "epochs": 2, "batch": 64}
    searched = {"selection": {"grid": {"updates": [20, 50]}}}
    assert settings(Own, **searched) == {"updates": 300, "epochs": None, "batch": 8}, "the search decides"


def test_a_method_inside_another_gets_it_too():
    method = {"name": "periodic-reset", "method": "ft"}
    (job,) = parse({"benchmark": "open-world", "data": "digit-symmetries", "methods": [method]}).jobs("mlp")
    assert job.method.settings["options"] == {"epochs": 4, "batch": 32}


def test_the_methods_of_this_package_without_a_budget_are_known():
    """Those that docs/fair-compute.md names: their numbers depend on the benchmark's budget."""
    every = registry.names("method")
    found = {name for name in every if {"updates", "epochs"} <= set(method_facts(name).open_settings)}
    policies = {name for name in found - OPEN if "retraining" in (registry.describe("method", name) or ("",))[0]}
    assert found - policies == OPEN


def test_a_full_spec_has_the_same_jobs():
    spec = parse(
        {
            "benchmark": "open-world",
            "data": "digit-symmetries",
            "methods": ["ft", "er"],
            "selection": {"grid": {"lr": [1e-3, 1e-2]}, "seeds": 1},
            "budget_macs": "1e9",
        }
    )
    import yaml

    again = parse(yaml.safe_load(spec.to_full_yaml("mlp")))
    assert [job.content() for job in again.jobs("mlp")] == [job.content() for job in spec.jobs("mlp")]
    assert again.budget_macs == 10**9


@pytest.mark.parametrize("budget", [0, -1, "lots", "nan", float("inf")])
def test_a_budget_that_is_no_number_of_macs_is_refused(budget):
    with pytest.raises(UserError, match="budget_macs"):
        parse({"benchmark": "timeline", "data": "digits", "methods": "ft", "budget_macs": budget})
