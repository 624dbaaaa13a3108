"""What the tables of the five papers cost at full scale: every `*.full.yaml` of the recipes, on synthetic data.

python bench/full_scale.py [--recipes FOLDER] [--benchmarks NAMES] [--seconds 60] [--json | --write]

`--write` stores the forecasts with the recipes, where `driftline recipes` reads them; and those of the small recipes
(`*.cpu.yaml`) whose data are here, as `driftline plan` makes them.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from synthetic_data import ASSUMED, SIDE, TRUE_SIDE, NetworkCost, SyntheticData, profile_network, rescale, shrink_recipe

from driftline import recipes, registry
from driftline.cli.printing.forecast import format_amount, format_duration, text_table
from driftline.engine.costs.forecast import WORKERS, Forecast, build, forecast
from driftline.engine.costs.groups import StageGrouper
from driftline.engine.costs.profiler_process import ProfilerProcess
from driftline.engine.costs.profiler_process import main as serve_profiler
from driftline.engine.costs.stage_costs import StageCosts, stage_costs
from driftline.engine.planning.plan import Plan, merged, plan
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
class Paper:
    """A paper's tables: what they cost together, and each recipe by itself."""

    benchmark: str
    title: str
    together: Forecast
    recipes: dict[str, Forecast]


def papers(
    folder: Path, seconds: float, workers: Sequence[int] = WORKERS, benchmarks: Sequence[str] = ()
) -> Iterator[Paper]:
    """Yield the papers whose recipes are in a folder, each profiled for about so many seconds; by default all."""
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.glob("*/*.full.yaml")):
        benchmark = str(read_yaml(path).get("benchmark"))
        if benchmark in (benchmarks or (benchmark,)):
            found.setdefault(benchmark, []).append(path)
    if not found:
        raise UserError(f"no recipe at full scale in {folder}: give the folder of recipes with --recipes")
    for benchmark, paths in found.items():
        yield _paper(benchmark, paths, seconds, workers)


def _paper(benchmark: str, paths: Sequence[Path], seconds: float, workers: Sequence[int]) -> Paper:
    began, contents = time.process_time(), [read_yaml(path) for path in paths]
    plans: dict[str, Plan] = {}
    data = SyntheticData()
    for path, content in zip(paths, contents, strict=True):
        parse(content).jobs(default_model="mlp")  # the recipe itself must make sense as well
        plans[path.name.removesuffix(".full.yaml")] = plan(parse(shrink_recipe(content)), data)
    planning, began = time.process_time() - began, time.perf_counter()
    whole = merged(plans.values())
    with tempfile.TemporaryDirectory(prefix="driftline-plan-") as nowhere:
        store, grouper = Store(Path(nowhere)), StageGrouper(whole.trials, data)
        costs = _with_real_networks(_costs(whole, grouper, store, seconds), whole, contents, data)
        share = planning / len(plans)
        each = {name: build(one, costs, grouper, store, workers, share) for name, one in plans.items()}
        together = build(whole, costs, grouper, store, workers, planning)
    together = replace(together, profiling=time.perf_counter() - began)
    return Paper(benchmark, registry.get("benchmark", benchmark).paper, together, each)


def _costs(whole: Plan, grouper: StageGrouper, store: Store, seconds: float) -> StageCosts:
    """Profile the stages of each dataset and network by themselves: those of another are no guide to them."""
    by_network: dict[str, list[Stage]] = {}
    for stage in whole.stages:
        by_network.setdefault(_name(stage.job), []).append(stage)
    profiler, costs = partial(SyntheticProfiler, None), StageCosts({}, {})
    for stages in by_network.values():
        one = stage_costs(stages, grouper, store, profiler, seconds / len(by_network), bounded=False)
        costs = StageCosts(
            costs.by_group | one.by_group,
            costs.groups | one.groups,
            max(costs.start, one.start),
            costs.reading | one.reading,
            extrapolated=costs.extrapolated + one.extrapolated,
        )
    return costs


def _with_real_networks(
    costs: StageCosts, whole: Plan, contents: Sequence[dict[str, Any]], data: SyntheticData
) -> StageCosts:
    """Return the costs with the real networks, each measured once against the narrow one in its place."""
    real = {_name(parse(shrink_recipe(content))): parse(content) for content in contents}
    pairs: dict[str, tuple[NetworkCost, NetworkCost]] = {}
    rescaled = {}
    for stage in whole.stages:
        group = costs.groups.get(stage.key)
        if group is None or group in rescaled:
            continue
        spec = real[_name(stage.job)]
        key = _name(spec) + str(spec.model)
        if key not in pairs:
            pairs[key] = _networks(stage, spec, data)
        rescaled[group] = rescale(costs.by_group[group], stage, *pairs[key])
    return replace(costs, by_group=rescaled)


def _name(spec: Any) -> str:
    """Return what tells recipes with different networks apart."""
    return f"{spec.data.name} {spec.model.name} {spec.model.settings.get('width')}"


def _networks(stage: Stage, spec: Any, data: SyntheticData) -> tuple[NetworkCost, NetworkCost]:
    """Return the narrow network of a stage, and the real one of its recipe."""
    name, outputs = spec.data.name, data.load(stage.job.data).task.width
    narrow = profile_network(stage.job.model.model_dump(), name, SIDE, outputs)
    side = spec.data.settings.get("size", TRUE_SIDE.get(name, SIDE))
    return narrow, profile_network(spec.model.model_dump(), name, side, outputs)


def text(found: Sequence[Paper]) -> str:
    """Return a row for each paper, and one for each of its recipes."""
    workers = list(found[0].together.seconds)
    fits = ("fits", "by run", "by trial", "saved by run", "by trial")
    head = ("paper", "runs", *fits, "MACs", "disk", *(f"on {n:,}" for n in workers))
    rows = [row for paper in found for row in _rows(paper)]
    lines = [*text_table(head, [_row(paper.title, paper.together) for paper in found]), ""]
    lines += [*text_table(("recipe", *head[1:]), rows), ""]
    assumed = "".join(f"\n- {line}" for line in ASSUMED)
    notes = {note for paper in found for note in paper.together.notes}
    return "\n".join([*lines, f"Time by number of workers, each a core like this machine's. Assumed:{assumed}", *notes])


def _rows(paper: Paper) -> Iterable[Sequence[str]]:
    return (_row(f"{paper.benchmark}/{name}", found) for name, found in paper.recipes.items())


def _row(name: str, found: Forecast) -> Sequence[str]:
    sharing, runs = found.sharing, sum(found.kinds[title].stages for title in RUNS if title in found.kinds)
    fits: tuple[str, ...] = ("0", "0", "0", "", "")
    if sharing is not None:
        counts = (sharing.fits, sharing.fits_without_sharing, sharing.fits_without_reuse)
        fits = (*map("{:,}".format, counts), f"{100 * sharing.saved:.0f} %", f"{100 * sharing.saved_with_reuse:.0f} %")
    times = (format_duration(seconds) for seconds in found.seconds.values())
    return (name, f"{runs:,}", *fits, format_amount(found.macs), f"{format_amount(found.bytes)}B", *times)


def as_json(paper: Paper) -> dict[str, Any]:
    each = {name: json.loads(found.to_json()) for name, found in paper.recipes.items()}
    return {"title": paper.title, "together": json.loads(paper.together.to_json()), "recipes": each}


def small_recipes(benchmarks: Sequence[str], seconds: float) -> Iterator[tuple[str, Forecast]]:
    """Yield the small recipes whose data are here, with their forecasts."""
    for name in recipes.names():
        about = recipes.describe(name)
        if name.endswith(".cpu") and about.present and about.benchmark in (benchmarks or (about.benchmark,)):
            with tempfile.TemporaryDirectory(prefix="driftline-plan-") as nowhere:
                yield name, forecast(f"{recipes.PREFIX}{name}", runs=nowhere, seconds=seconds)


def write(name: str, found: Forecast, rough: bool) -> None:
    """Store runs, multiply-accumulates and core hours of a recipe, and whether some of them are guessed."""
    path = recipes.FOLDER / recipes.COSTS
    costs = json.loads(path.read_text(encoding="utf-8"))["recipes"] if path.exists() else {}
    runs = sum(found.kinds[title].stages for title in RUNS if title in found.kinds)
    hours = float(f"{found.seconds[1] / 3600:.2g}")
    costs[name] = {"runs": runs, "macs": int(found.macs), "core_hours": hours, "rough": rough}
    content = {"machine": _processor(), "date": time.strftime("%Y-%m-%d"), "recipes": dict(sorted(costs.items()))}
    atomic.write_json(path, content)


def _processor() -> str:
    """Return the name of the processor, or of its architecture."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recipes", type=Path, default=recipes.FOLDER)
    parser.add_argument("--seconds", type=float, default=60.0, help="of profiling per paper")
    parser.add_argument("--benchmarks", nargs="*", default=(), help="those to forecast; by default all")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    found = list(papers(given.recipes, given.seconds, benchmarks=given.benchmarks))
    if given.write:
        for paper in found:
            for name, one in paper.recipes.items():
                write(f"{paper.benchmark}/{name}.full", one, paper.together.extrapolated > 0)
        for name, one in small_recipes(given.benchmarks, given.seconds):
            write(name, one, one.extrapolated > 0)
    print(json.dumps({paper.benchmark: as_json(paper) for paper in found}, indent=1) if given.json else text(found))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--profiler"]:
        del sys.argv[1]
        serve_profiler(SyntheticData())
    else:
        main()
