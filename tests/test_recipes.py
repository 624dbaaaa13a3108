"""Every recipe is a valid spec whose names and settings exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from driftline.spec import read

RECIPES = sorted((Path(__file__).parent.parent / "recipes").rglob("*.yaml"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_recipe_expands_to_jobs(path: Path) -> None:
    spec = read(path)
    jobs = spec.jobs(default_model="mlp")
    assert len(jobs) == len(spec.methods) * len(spec.seeds)
    assert len({job.key("") for job in jobs}) == len(jobs)


def test_there_are_recipes() -> None:
    assert RECIPES
