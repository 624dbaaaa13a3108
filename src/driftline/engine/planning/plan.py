"""Plan the stages that a spec needs, each once, and report every error that can be found before any work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from driftline.benchmarks.base import Scenario
from driftline.engine.build import DatasetCache, build_calibration, build_scenario
from driftline.engine.planning.calibration_stages import calibration_stages
from driftline.engine.planning.checks import check_methods
from driftline.engine.planning.search_stages import merge, search_stages
from driftline.engine.stages import Fit, Pretrain, Stage, StreamRun
from driftline.io.user_objects import UserObject
from driftline.learners.fit_plan import FitSpec
from driftline.spec import Spec
from driftline.spec.job import Job
from driftline.spec.keys import file_hashes, fit_key, pretrain_key, run_key
from driftline.spec.methods import method_facts
from driftline.spec.settings import with_defaults

NAMED = 5
"""Left-out periods that a note names."""


@dataclass(frozen=True)
class Plan:
    """Stages in an order in which every stage comes after those it needs."""

    stages: tuple[Stage, ...]
    notes: tuple[str, ...] = ()
    fit_specs: Mapping[str, FitSpec] = field(default_factory=dict)
    """What the fits do, by `Fit.fit_spec`."""
    objects: tuple[UserObject, ...] = ()
    """The Python objects that stages name: they are known as long as the plan is."""

    @property
    def run_keys(self) -> list[str]:
        """Keys of the runs that the spec asks for."""
        return [stage.key for stage in self.stages if stage.is_result]


def merged(plans: Iterable[Plan]) -> Plan:
    """Return several plans as one; stages that they share are computed once."""
    plans = list(plans)
    stages = merge(stage for plan in plans for stage in plan.stages)
    notes = tuple(dict.fromkeys(note for plan in plans for note in plan.notes))
    fit_specs = {key: fit_spec for plan in plans for key, fit_spec in plan.fit_specs.items()}
    return Plan(stages, notes, fit_specs, tuple(one for plan in plans for one in plan.objects))


def plan(
    spec: Spec, datasets: DatasetCache | None = None, is_finished: Callable[[str], bool] = lambda key: False
) -> Plan:
    """Return the stages that a spec needs.

    `datasets`: where data are read; what it holds is not read again. `is_finished`: whether the result of a key is in
    the store. A method all of whose runs are finished is not checked again.
    """
    datasets = datasets or DatasetCache()
    dataset = datasets.load(with_defaults("dataset", spec.data))
    jobs = spec.jobs(default_model=dataset.model)
    files = {label: file_hashes(job) for label, job in {job.label: job for job in jobs}.items()}  # once for all seeds
    keys = [run_key(job, dataset.fingerprint, files[job.label]) for job in jobs]
    finished = {job.label for job in jobs}
    finished -= {job.label for job, key in zip(jobs, keys, strict=True) if not is_finished(key)}
    fit_specs = check_methods(jobs[:: len(spec.seeds)], spec, datasets, finished)
    _, scenario = build_scenario(jobs[0], datasets)  # whether there is pretraining is the same for all of them
    pretrains = scenario.upstream is not None
    calibrated = list(calibration_stages(jobs[0], dataset, pretrained=pretrains))
    calibration = calibrated[-1].key if calibrated else None
    stages: list[Stage] = [*calibrated]
    last_round: dict[tuple[str, tuple[int, ...]], str | None] = {}  # seeds share a search, unless it is repeated
    for job, key in zip(jobs, keys, strict=True):
        searched = (job.label, job.search.seeds if job.search else ())
        if searched not in last_round:
            search = list(search_stages(job, dataset.fingerprint, pretrained=pretrains, calibration=calibration))
            stages += search
            last_round[searched] = search[-1].key if search else None
        planned = fit_specs[job.label] if job.search is None else []  # without selected settings, fits are not known
        fits = list(_fits(job, planned, dataset.fingerprint, files[job.label]))
        pretrained = None
        if pretrains:
            pretrained = pretrain_key(job, dataset.fingerprint)
            stages.append(Pretrain(pretrained, job))
        run = StreamRun(key, job, pretrained, tuple(fit.key for fit in fits), last_round[searched], calibration)
        stages += [*fits, run]
    every = {fit_spec.key: fit_spec for method in fit_specs.values() for fit_spec in method}
    notes = _notes(scenario)
    if calibrated and not is_finished(calibrated[-1].key):
        notes = (*notes, build_calibration(calibrated[-1].job, dataset).note)
    return Plan(merge(stages), notes, every, spec.objects)


def _fits(job: Job, fit_specs: list[FitSpec], fingerprint: str, files: Mapping[str, str]) -> Iterator[Fit]:
    """Yield the fits of a run, each after those it starts from and those that these started from."""
    is_oracle = method_facts(job.method.name).is_oracle
    with_starts: dict[str, tuple[str, ...]] = {}
    for fit_spec in fit_specs:
        starts = fit_spec.start.phase.fits if fit_spec.start else ()
        needs = tuple(dict.fromkeys(key for start in starts for key in with_starts[start.key]))
        key = fit_key(job, fingerprint, fit_spec.key, is_oracle, files)
        with_starts[fit_spec.key] = (*needs, key)
        yield Fit(key, job, fit_spec.key, fit_spec.name, needs)


def _notes(scenario: Scenario) -> tuple[str, ...]:
    """Return what a user should know before the numbers come."""
    left_out = scenario.protocol.get("left_out_periods", {})
    if not left_out:
        return ()
    named = ", ".join(f"{name} ({n})" for name, n in list(left_out.items())[:NAMED])
    more = ", ..." if len(left_out) > NAMED else ""
    return (f"{len(left_out)} period(s) with too few samples are left out: {named}{more}",)
