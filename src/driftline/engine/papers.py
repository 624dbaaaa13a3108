"""What the tables of the five papers cost at full scale: every `*.full.yaml` of the recipes, on blank data."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from driftline import registry
from driftline.engine import matrix
from driftline.engine.alike import Alike
from driftline.engine.blank import SIDE, TRUE_SIDE, Weights, exchanged, lend, small, weigh
from driftline.engine.costs import Costs, costs
from driftline.engine.forecast import WORKERS, Forecast, summed
from driftline.engine.plan import Plan, plan
from driftline.engine.stages import Stage, dataset_for
from driftline.errors import UserError
from driftline.jobs import Job
from driftline.spec import mapping, parse
from driftline.store import Store

Watch = Callable[[str], None]


@dataclass(frozen=True)
class Paper:
    """A paper's tables: what they cost together, and each recipe by itself."""

    benchmark: str
    title: str
    together: Forecast
    recipes: dict[str, Forecast]


def papers(
    folder: Path, seconds: float, workers: Sequence[int] = WORKERS, watch: Watch = lambda text: None
) -> Iterator[Paper]:
    """The papers whose recipes are in a folder, each tried out for about so many seconds."""
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.glob("*/*.full.yaml")):
        found.setdefault(str(mapping(path).get("benchmark")), []).append(path)
    if not found:
        raise UserError(f"no recipe at full scale in {folder}: give the folder of recipes with --recipes")
    for benchmark, paths in found.items():
        yield _paper(benchmark, paths, seconds, workers, watch)


def _paper(benchmark: str, paths: Sequence[Path], seconds: float, workers: Sequence[int], watch: Watch) -> Paper:
    began, contents = time.process_time(), [mapping(path) for path in paths]
    plans: dict[str, Plan] = {}
    for path, content in zip(paths, contents, strict=True):
        watch(f"{benchmark}: planning {path.stem}")
        parse(content).jobs(default_model="mlp")  # the recipe itself must make sense as well
        lend(content["data"] if isinstance(content["data"], dict) else {"name": content["data"]})
        plans[path.name.removesuffix(".full.yaml")] = plan(parse(small(content)), None)
    planning, began = time.process_time() - began, time.perf_counter()
    whole = matrix.together(plans.values())
    with tempfile.TemporaryDirectory(prefix="driftline-plan-") as nowhere:
        store, alike = Store(Path(nowhere)), Alike(whole.trials, None)
        told = costs(
            whole.stages, alike, store, None, seconds, lambda d, n, name: watch(f"{benchmark}: {d}/{n} {name}"), True
        )
        watch(f"{benchmark}: weighing networks")
        told = _in_earnest(told, whole, contents)
        each = {name: summed(one, told, alike, store, workers, planning / len(plans)) for name, one in plans.items()}
        together = summed(whole, told, alike, store, workers, planning)
    together = replace(together, calibration=time.perf_counter() - began)
    return Paper(benchmark, registry.get("benchmark", benchmark).paper, together, each)


def _in_earnest(told: Costs, whole: Plan, contents: Sequence[dict[str, Any]]) -> Costs:
    """The same with the true networks, each weighed once against the narrow one in its place."""
    true = {_named(parse(small(content))): parse(content) for content in contents}
    pairs: dict[str, tuple[Weights, Weights]] = {}
    made = {}
    for stage in whole.stages:
        group = told.groups.get(stage.key)
        if group is None or group in made:
            continue
        spec = true[_named(Job.model_validate(stage.job))]
        key = _named(spec) + str(spec.model)
        if key not in pairs:
            pairs[key] = _weighed(stage, spec)
        made[group] = exchanged(told.by_group[group], stage, *pairs[key])
    return replace(told, by_group=made)


def _named(spec: Any) -> str:
    """What tells recipes with different networks apart."""
    return f"{spec.data.name} {spec.model.name}"


def _weighed(stage: Stage, spec: Any) -> tuple[Weights, Weights]:
    """The narrow network of a stage, and the true one of its recipe."""
    name, outputs = spec.data.name, dataset_for(Job.model_validate(stage.job), None).task.width
    narrow = weigh(stage.job["model"], name, SIDE, outputs)
    return narrow, weigh(spec.model.model_dump(), name, TRUE_SIDE.get(name, SIDE), outputs)
