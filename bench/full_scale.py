"""What the recipes cost: runs, multiply-accumulates and time of every recipe, one recipe after another.

python bench/full_scale.py [NAME ...] [--benchmarks NAMES] [--seconds 20] [--formula] [--json | --write [--again]]

Full recipes are profiled on synthetic data, which takes minutes each, and small ones (`*.cpu.yaml`) whose data are here
are forecast as by `driftline plan`. Recipes of test-time whose data are not here, and with `--formula` all, are
estimated by the formulas of `estimate_costs.py`. `--write` stores each forecast with the recipes as soon as it is made,
where `driftline recipes` reads it, and leaves out recipes that have one: a run that was interrupted goes on. `--again`
replaces them.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import estimate_costs
from synthetic_data import ASSUMED, SIDE, NetworkCost, SyntheticData, profile_network, rescale, shrink_recipe

from driftline import recipes
from driftline.cli.printing.forecast import format_amount, format_duration
from driftline.engine.costs.forecast import WORKERS, Forecast, build, forecast
from driftline.engine.costs.groups import StageGrouper
from driftline.engine.costs.profiler_process import ProfilerProcess
from driftline.engine.costs.profiler_process import main as serve_profiler
from driftline.engine.costs.stage_costs import StageCosts, stage_costs
from driftline.engine.planning.plan import Plan, plan
from driftline.engine.stages import Stage
from driftline.errors import UserError
from driftline.io import atomic
from driftline.spec import parse, read_yaml
from driftline.store.store import Store

RUNS = ("search", "probes and score")


class SyntheticProfiler(ProfilerProcess):
    """Profiles stages on synthetic data."""

    command = (sys.executable, __file__, "--profiler")


@dataclass(frozen=True)
class Estimate:
    """What a recipe costs, and the fits behind it."""

    runs: int
    macs: int
    core_hours: float
    basis: recipes.Basis
    fits: int = 0
    disk: int = 0
    hours: tuple[float, ...] = ()
    """On as many workers as `WORKERS` says."""
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, found: Forecast) -> Estimate:
        """Return the totals of a forecast."""
        runs = sum(found.kinds[title].stages for title in RUNS if title in found.kinds)
        hours = tuple(seconds / 3600 for seconds in found.seconds.values())
        basis: recipes.Basis = "extrapolation" if found.extrapolated else "profile"
        fits = found.sharing.fits if found.sharing else 0
        return cls(runs, found.macs, float(f"{hours[0]:.2g}"), basis, fits, found.bytes, hours, found.notes)


def estimate(name: str, seconds: float, formula: bool) -> Estimate | None:
    """Return the cost of a recipe after some seconds of profiling; None for a small one whose data are not here."""
    about, small = recipes.describe(name), not name.endswith(".full")
    content = read_yaml(f"{recipes.PREFIX}{name}")
    if formula or (about.benchmark == "test-time" and not (small and about.present)):
        return Estimate(*estimate_costs.estimate(content), "formula")  # blank images would be answered without training
    if small:
        return _small(name, seconds) if about.present else None
    return Estimate.of(full(content, seconds))


def _small(name: str, seconds: float) -> Estimate:
    with tempfile.TemporaryDirectory(prefix="driftline-plan-") as nowhere:
        return Estimate.of(forecast(f"{recipes.PREFIX}{name}", runs=nowhere, seconds=seconds))


def full(content: dict[str, Any], seconds: float, workers: Sequence[int] = WORKERS) -> Forecast:
    """Return the forecast of a recipe at full scale, after about `seconds` of profiling on synthetic data."""
    began, data = time.process_time(), SyntheticData()
    parse(content).jobs(default_model="mlp")  # the recipe itself must make sense as well
    found = plan(parse(shrink_recipe(content)), data)
    planning, began = time.process_time() - began, time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="driftline-plan-") as nowhere:
        store, grouper = Store(Path(nowhere)), StageGrouper(found.fit_specs, data)
        profiler = partial(SyntheticProfiler, None)
        costs = stage_costs(found.stages, grouper, store, profiler, seconds, bounded=False)
        costs = _with_real_network(costs, found, content, data)
        return replace(build(found, costs, grouper, store, workers, planning), profiling=time.perf_counter() - began)


def _with_real_network(costs: StageCosts, found: Plan, content: dict[str, Any], data: SyntheticData) -> StageCosts:
    """Return the costs with the real network, measured once against the narrow one in its place."""
    spec, by_key = parse(content), {stage.key: stage for stage in found.stages}
    stages = {group: by_key[key] for key, group in costs.groups.items()}
    networks = _networks(next(iter(stages.values())), spec, data)
    return replace(
        costs, by_group={group: rescale(cost, stages[group], *networks) for group, cost in costs.by_group.items()}
    )


def _networks(stage: Stage, spec: Any, data: SyntheticData) -> tuple[NetworkCost, NetworkCost]:
    """Return the narrow network of a stage, and the real one of its recipe."""
    name, outputs = spec.data.name, data.load(stage.job.data).task.width
    narrow = profile_network(stage.job.model.model_dump(), name, SIDE, outputs)
    side = spec.data.settings.get("size", SIDE)
    return narrow, profile_network(spec.model.model_dump(), name, side, outputs)


def line(name: str, found: Estimate) -> str:
    """Return a recipe's cost in a line."""
    hours = found.hours or (found.core_hours,)
    times = ", ".join(f"{format_duration(3600 * each)} on {n:,}" for each, n in zip(hours, WORKERS, strict=False))
    amounts = f"{found.runs:,} runs, {found.fits:,} fits, {format_amount(found.macs)}MACs"
    return f"{name}: {amounts}, {format_amount(found.disk)}B, {times} ({found.basis})"


def stored() -> dict[str, Any]:
    """Return the stored forecasts by recipe."""
    path = recipes.FOLDER / recipes.COSTS
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def write(name: str, found: Estimate) -> None:
    """Store the cost of a recipe, and forget recipes that are gone."""
    fields = {key: getattr(found, key) for key in ("runs", "macs", "core_hours", "basis")}
    costs = stored() | {name: {**fields, "machine": _processor(), "date": time.strftime("%Y-%m-%d")}}
    atomic.write_json(recipes.FOLDER / recipes.COSTS, {one: costs[one] for one in recipes.names() if one in costs})


def _processor() -> str:
    """Return the name of the processor, or of its architecture."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def chosen(given: argparse.Namespace) -> Iterator[str]:
    """Yield the recipes to forecast."""
    known = stored() if given.write and not given.again else {}
    for name in given.names or recipes.names():
        if name not in known and (not given.benchmarks or name.partition("/")[0] in given.benchmarks):
            yield name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="recipes, such as refinement/qa.full; by default all")
    parser.add_argument("--seconds", type=float, default=20.0, help="of profiling per recipe")
    parser.add_argument("--benchmarks", nargs="*", default=(), help="those to forecast; by default all")
    parser.add_argument("--formula", action="store_true", help="estimate without profiling")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--again", action="store_true", help="replace stored forecasts")
    given, failed = parser.parse_args(), []
    for name in list(chosen(given)):
        try:
            found = estimate(name, given.seconds, given.formula)
        except UserError as error:
            failed.append(f"{name}: {error}")
            continue
        if found is None:
            continue
        if given.write:
            write(name, found)
        print(json.dumps({"name": name, **asdict(found)}) if given.json else line(name, found), flush=True)
    if not given.json:
        print("\nTime by number of workers, each a core like this machine's. Assumed:", *ASSUMED, sep="\n- ")
    if failed:
        sys.exit("\n".join(failed))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--profiler"]:
        del sys.argv[1]
        serve_profiler(SyntheticData())
    else:
        main()
