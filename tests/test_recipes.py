"""Every recipe is a valid spec whose names and settings exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from driftline import published
from driftline.report.layouts import BOTTOM, TOP, VARIANTS
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


SEQ_TO_FINAL = [path for path in RECIPES if path.parent.name == "seq-to-final"]


@pytest.mark.parametrize("path", SEQ_TO_FINAL, ids=lambda path: path.stem)
def test_every_method_of_a_paper_recipe_has_a_printed_number(path: Path) -> None:
    for job in read(path).jobs(default_model="conv-2"):
        found = published.numbers(job.benchmark, job.data.name, job.options["shifts"], job.model.name)
        name = published.printed_as(job.benchmark, job.label)
        assert name in {number.method for number in found}


def test_the_paper_recipes_cover_its_columns() -> None:
    def labels(name: str) -> set[str]:
        path = next(path for path in SEQ_TO_FINAL if path.name == name)
        return {published.printed_as(job.benchmark, job.label) for job in read(path).jobs(default_model="")}

    for number in (8, 9, 10, 11, 12, 14):
        assert labels(f"table-{number}.full.yaml") == {*TOP, *BOTTOM}
    assert labels("table-13.full.yaml") == {*TOP, *BOTTOM} - {"oracle"}
    assert labels("table-15.full.yaml") == set(VARIANTS)
    assert labels("RCL.cpu.yaml") == labels("conv.full.yaml") == {*TOP, *BOTTOM} - {"st-b", "sst-b", "jst-b"}
