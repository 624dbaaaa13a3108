"""The keys under which results are stored: hashes of everything that decides a number.

A key covers the job with all its defaults, the content of the data and of the files that the job names, and the
revisions of the code that decides the result (`driftline.revisions`). Of the metrics, only what a search reads counts:
other scores are computed again from the record.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from driftline import registry
from driftline.io import user_objects
from driftline.revisions import COMMON, SCORED, revision, revisions
from driftline.spec.files import files_of, named_files
from driftline.spec.job import Job, SearchSpace
from driftline.spec.methods import method_facts

PACKAGES = ("numpy", "scipy", "pandas", "pyarrow", "scikit-learn", "torch")


def run_key(job: Job, fingerprint: str, files: Mapping[str, str] | None = None) -> str:
    """Return the key of a run.

    `fingerprint`: the hash of the dataset's content. `files`: `file_hashes` of the job, the same for all seeds.
    """
    return stable_hash(
        {
            **job.content(),
            "fingerprint": fingerprint,
            "files": file_hashes(job) if files is None else files,
            "revisions": run_revisions(job),
        }
    )


def pretrain_key(job: Job, fingerprint: str) -> str:
    """Return the key of a pretrained model; of the method, it covers only the pretraining."""
    options = job.pretrain_options()
    return stable_hash(
        {
            **job.content({"benchmark", "data", "model", "seed"}),
            "stage": "pretrain",
            "options": options,
            "fingerprint": fingerprint,
            "files": _hashes(files_of(job.data.name, (job.model, job.pretraining), options)),
            "pretraining": job.pretraining.model_dump(mode="json"),
            "revisions": revisions([*_scenario_modules(job), *_modules("pretraining", job.pretraining.name)]),
        }
    )


def calibration_key(job: Job, fingerprint: str, part: str | None = None) -> str:
    """Return the key of a calibration, or of one of its parts; `job`: see `Job.calibration_job`."""
    return stable_hash(
        {
            "stage": "calibration",
            "options": job.options,
            "files": _hashes(files_of(job.data.name, (job.model, job.pretraining), job.options)),
            "model": pretrain_key(job, fingerprint),
            "part": part,
        }
    )


def fit_key(job: Job, fingerprint: str, fit_spec: str, is_oracle: bool, files: Mapping[str, str] | None = None) -> str:
    """Return the key of a fit; it does not cover the method, so methods share their fits."""
    options = registry.get("benchmark", job.benchmark).options
    unused = {*options.fit_independent, *(() if is_oracle else options.oracle_options)}
    families = (module.rpartition(".")[0] for module in _modules("method", job.method.name))
    return stable_hash(
        {
            **{name: value for name, value in job.content().items() if name != "method"},
            "stage": "fit",
            "options": {name: value for name, value in job.options.items() if name not in unused},
            "fingerprint": fingerprint,
            "files": file_hashes(job) if files is None else files,
            "trial": fit_spec,
            "privileged": is_oracle,
            "revisions": revisions([*_scenario_modules(job), *families, *_rule_modules(job)]),
        }
    )


def search_round_key(job: Job, search: SearchSpace, previous: str | None, runs: Sequence[str]) -> str:
    """Return the key of a round of a job's search; `runs`: the keys of its runs."""
    space, scores = search.model_dump(mode="json"), _search_revisions(job)
    content = {"stage": "search-round", "search": space, "previous": previous, "runs": list(runs)}
    return stable_hash({**content, "revisions": scores})


def run_revisions(job: Job) -> dict[str, int]:
    """Return the revisions of the code that decides what a run records."""
    method = [*_method_modules(job), *_modules("pretraining", job.pretraining.name)]
    modules = [*_scenario_modules(job), *method, *_rule_modules(job)]
    return {**revisions(modules), **_search_revisions(job)}


def score_revisions(benchmark: str, metrics: Iterable[str]) -> dict[str, int]:
    """Return the revisions of the code that decides a benchmark's scores, given the record."""
    return {**_metric_revisions(benchmark, metrics), SCORED: revision(SCORED)}


def _metric_revisions(benchmark: str, metrics: Iterable[str]) -> dict[str, int]:
    modules = [f"{module}.scores" for module in _modules("benchmark", benchmark)]
    return revisions([*modules, *(module for metric in metrics for module in _modules("metric", metric))])


def _search_revisions(job: Job) -> dict[str, int]:
    if job.search is None:
        return {}
    return _metric_revisions(job.benchmark, [metric for metric, _ in job.search.metrics])


def _scenario_modules(job: Job) -> list[str]:
    """Return the modules of everything but the method."""
    named = (("benchmark", job.benchmark), ("dataset", job.data.name), ("model", job.model.name))
    return [*COMMON, *(module for kind, name in named for module in _modules(kind, name))]


def _method_modules(job: Job) -> list[str]:
    """Return the modules of the method, of the classes that it extends and of the method that it wraps."""
    name, settings = job.method.name, job.method.settings
    wrapped = method_facts(name).wrapped(settings) if "options" in settings else None
    return [*_modules("method", name), *(_modules("method", wrapped) if wrapped else ())]


def _rule_modules(job: Job) -> list[str]:
    """Return the modules of the label rules."""
    return [module for rule in job.reveal.rules for module in _modules("label-rule", rule.name)]


def _modules(kind: str, name: str) -> tuple[str, ...]:
    """Return the modules of this package that a thing's code is in; a user's method may extend built-in classes."""
    if entry := registry.describe(kind, name):
        modules = (entry.module, *entry.inherits)
    else:
        classes = ("method", "benchmark", "pretraining", "label-rule")
        modules = registry.inherited_modules(registry.get(kind, name)) if kind in classes else ()
    return tuple(module.removesuffix(".benchmark") for module in modules)


def file_hashes(job: Job) -> dict[str, str]:
    """Return the hash of every file that a job names, and of a method that is an object.

    Folders may be huge and are left out.
    """
    version = user_objects.version(job.method.name)
    return {**_hashes(named_files(job)), **({job.method.display_name: version} if version else {})}


def _hashes(files: Mapping[str, Path]) -> dict[str, str]:
    return {name: content_hash(path) for name, path in files.items() if path.is_file()}


def content_hash(path: Path) -> str:
    """Return the hash of a file's content; a file that did not change is not read again."""
    stat = path.stat()
    return _content_hash(path, stat.st_mtime_ns, stat.st_size)


@functools.lru_cache
def _content_hash(path: Path, changed: int, size: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def stable_hash(content: object) -> str:
    """Return a short hash of canonical JSON."""
    text = json.dumps(content, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@functools.cache
def sources_hash() -> str:
    """Return a hash of this package's own source files."""
    digest = hashlib.sha256()
    root = Path(__file__).parent.parent
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return digest.hexdigest()[:16]


@functools.cache
def package_versions() -> dict[str, str]:
    """Return the versions of the packages that numbers depend on."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions
