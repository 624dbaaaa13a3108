"""What an upgrade of this package, of the data or of the user's files makes out of date, and why."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from driftline.data import using_data_folder
from driftline.engine.build import DatasetCache
from driftline.engine.costs.forecast import SpecLike, plans_for
from driftline.engine.planning.plan import merged
from driftline.engine.stages import Stage
from driftline.record.card import Card, RunSettings, flatten
from driftline.record.run import Run
from driftline.revisions import changed, changed_scores, describe
from driftline.spec.keys import file_hashes
from driftline.store.store import Store

NEW = "not in the store"
Action = Literal["keep", "score", "run"]


@dataclass(frozen=True)
class Outdated:
    """A run of a spec: whether it is kept, scored again from its record or computed again, and why."""

    label: str
    seed: int
    action: Action
    why: str = ""


def upgrade(spec: SpecLike, *, runs: str | Path | None = None, data_dir: str | Path | None = None) -> list[Outdated]:
    """Return what `run` would do with each run of a spec. Nothing is computed or written."""
    datasets, store = DatasetCache(Path(data_dir) if data_dir else None), Store.open(runs)
    with using_data_folder(datasets.data_dir):
        planned = merged(plans_for(spec, datasets))
        earlier = _earlier(store)
        stages = [stage for stage in planned.stages if stage.is_result]
        found = [_outlook(stage, store, earlier, datasets) for stage in stages]
    benchmarks = [stage.job.benchmark for stage in stages]
    if len(set(benchmarks)) < 2:
        return found
    return [replace(run, label=f"{run.label} in {name}") for run, name in zip(found, benchmarks, strict=True)]


def _outlook(stage: Stage, store: Store, earlier: dict[str, list[Run]], datasets: DatasetCache) -> Outdated:
    job, run = stage.job, Run(store.run_folder(stage.key))
    if not run.is_intact():
        damaged = "its files are damaged" if store.finished(stage.key) else None
        settings = RunSettings.model_validate(job.content())
        fingerprint = datasets.load(job.data).fingerprint
        reasons = [_difference(old.card, settings, fingerprint, file_hashes(job)) for old in earlier[_name(settings)]]
        return Outdated(job.label, job.seed, "run", damaged or next((why for why in reasons if why), NEW))
    if rescored := changed_scores(run.card.code.score_revisions):
        return Outdated(job.label, job.seed, "score", describe(rescored))
    return Outdated(job.label, job.seed, "keep")


def _earlier(store: Store) -> dict[str, list[Run]]:
    """Return the intact runs of a store by what they ran, the latest first."""
    found: dict[str, list[Run]] = defaultdict(list)
    for run in sorted(filter(Run.is_intact, store.runs()), key=lambda run: run.finished_at, reverse=True):
        found[_name(run.card.run)].append(run)
    return found


def _name(run: RunSettings) -> str:
    """Return what identifies a run except for its settings."""
    names = (run.benchmark, run.data.display_name, run.model.display_name, run.method.display_name)
    return " ".join([*names, str(run.seed), run.purpose])


def _difference(card: Card, now: RunSettings, fingerprint: str, files: dict[str, str]) -> str:
    """Return why a run is not the result of what is asked for now; empty if other settings are asked for."""
    before, after = flatten(card.run.to_dict()), flatten(now.to_dict())
    if any(before[name] != after[name] for name in before.keys() & after.keys()):
        return ""
    added = [*(after.keys() - before.keys()), *(before.keys() - after.keys())]
    reasons = [f"{', '.join(sorted(added))}: a setting that one version has and the other has not"] if added else []
    reasons += ["the data changed"] if card.data.fingerprint != fingerprint else []
    reasons += [f"{name} changed" for name in sorted(files) if card.user_files.get(name) != files[name]]
    outdated = changed(card.code.revisions)
    return "; ".join([*reasons, *([describe(outdated)] if outdated else [])])
