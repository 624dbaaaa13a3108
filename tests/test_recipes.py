"""Every recipe is a valid spec whose names and settings exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from driftline import published
from driftline.report.layouts import BOTTOM, TOP, VARIANTS
from driftline.spec import Spec, read

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


def recipe(name: str) -> Spec:
    """The recipe of this file name."""
    return read(next(path for path in RECIPES if path.name == name))


def printed_methods(spec: Spec) -> list[str]:
    """The names under which the methods of a recipe were printed, in its order."""
    seeds = sorted(spec.seeds)
    jobs = [job for job in spec.jobs(default_model="") if job.seed == seeds[0]]
    return [published.printed_as(job.benchmark, job.label) for job in jobs]


TABLE_1 = {"cin-c": "cin-c", "cin-3dcc": "cin-3dcc", **{f"ccc-{d}": f"ccc {d}" for d in ("easy", "medium", "hard")}}


@pytest.mark.parametrize("name", TABLE_1)
def test_test_time_recipes_have_the_rows_and_the_stream_of_table_1(name: str) -> None:
    spec = recipe(f"{name}.full.yaml")
    found = published.numbers("test-time", "imagenet-val", TABLE_1[name], "resnet50")
    assert set(printed_methods(spec)) == {n.method for n in found if n.source == "RDumb Table 1"}
    options = spec.jobs(default_model="")[0].options
    shown = {option: options[option] for option in ("order", "severity", "images", "speed", "batch", "crop", "jpeg")}
    ccc = {"order": "ccc", "images": 7_500_000, "speed": 1000, "crop": True, "jpeg": 85}
    cin = {"order": name, "speed": 50_000}
    expected = {
        "cin-c": {**cin, "images": 15 * 50_000, "crop": False, "jpeg": 85},
        "cin-3dcc": {**cin, "images": 12 * 50_000, "crop": None, "jpeg": None},
    }
    assert shown == {"severity": 5.0, "batch": 64, **expected.get(name, ccc)}
    assert (options["frost"] is None) == (name == "cin-3dcc") == (options["files"] is not None)
    assert len(spec.seeds) == (3 if name.startswith("ccc") else 10)
