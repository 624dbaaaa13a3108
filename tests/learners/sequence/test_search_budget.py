"""Plans of several phases with as many fits as those of one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import driftline
from driftline import models, registry
from driftline.errors import UserError
from driftline.learners.fit_plan import SearchSpace, required_fits
from driftline.report.analysis.groups import groups
from driftline.report.analysis.result_table import tabulate
from driftline.report.tables.captions import notes
from driftline.seeds import Seed
from driftline.tasks import Classification

GRID: dict[str, Any] = {"lr": (1e-2, 1e-3), "weight_decay": (0.0, 1e-4), "dropout": (0.0,)}
SPEC: dict[str, Any] = {
    "benchmark": "seq-to-final",
    "data": "color-digits",
    "model": {"name": "conv-1", "width": 2},
    "methods": ["seq-erm", "lp-ft"],
    "seq-to-final": {"shifts": "RL", "sizes": [30, 20, 20], "test": 20, "epochs": 1, "batch": 20, **GRID},
}


def fits(name: str, budget: str, **grid: Any) -> list[Any]:
    learner = registry.get("method", name)()
    learner.set_search_space(SearchSpace(budget=budget, **{**GRID, **grid}))  # type: ignore[arg-type]
    task = Classification(("a", "b"))
    learner.prepare(models.build("conv-1", (8, 8, 3), task.width, Seed(0), width=2), task)
    return [fit_spec for fit_spec in required_fits(learner.within_budget(3)) if fit_spec.trains]


@pytest.mark.parametrize("name", ["baseline", "seq-erm", "seq-ft", "lp-ft", "sft", "seq-ewc", "st-1", "jm"])
def test_every_method_has_as_many_trials(name: str) -> None:
    found = fits(name, "method")
    assert len(found) == 4
    known = {fit_spec.key for fit_spec in found}
    starts = {fit_spec.key for one in found if one.start for fit_spec in one.start.phase.fits if fit_spec.trains}
    assert starts <= known, "phases start from fits of the same plan"


def test_phases_share_the_budget_evenly_and_the_last_has_what_is_left_over() -> None:
    assert len(fits("lp-ft", "same")) == 12
    found = fits("lp-ft", "method")
    assert [(fit_spec.train, fit_spec.layers) for fit_spec in found] == [
        ((0, 1), None),
        ((2,), ("fc",)),
        *[((2,), None)] * 2,
    ]
    assert {fit_spec.lr for fit_spec in found[-2:]} == set(GRID["lr"]), "evenly spaced points of the grid"


def test_a_budget_that_is_too_small_is_refused() -> None:
    with pytest.raises(UserError, match=r"trains in 3 phases, and budget=method allows 2 fit"):
        fits("lp-ft", "method", weight_decay=(0.0,))


def test_a_table_says_that_numbers_of_trials_differ(tmp_path: Path) -> None:
    same = driftline.run(SPEC, runs=tmp_path / "same")
    (line,) = [line for line in notes(tabulate(groups(same)[0])) if "Fits per run" in line]
    assert "lp-ft 12, seq-erm 4 (budget=method" in line
    equal = driftline.run(
        {**SPEC, "seq-to-final": {**SPEC["seq-to-final"], "budget": "method"}}, runs=tmp_path / "equal"
    )
    assert [card.protocol["trials"] for card in equal.cards] == [4, 4]
    assert not [line for line in notes(tabulate(groups(equal)[0])) if "Fits per run" in line]
