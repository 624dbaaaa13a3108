"""That a spec was carried out whole: asked for again, it need not be planned again.

To plan a sweep of thousands of runs means to build every method, which takes longer than to see that all are there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from driftline import handed, state, uses
from driftline.checksums import read_checked, write_checked
from driftline.data import Dataset, weights_file
from driftline.engine import card
from driftline.engine.execute import Summary
from driftline.engine.plan import Plan
from driftline.engine.sharing import saved_by_sharing
from driftline.errors import Damaged, DiskError
from driftline.jobs import content_hash, hash_of
from driftline.spec import Spec
from driftline.store import Store


@dataclass(frozen=True)
class Receipt:
    """The results of a spec, and what they were made from."""

    runs: list[str]
    """Keys of the runs that are results."""
    trials: list[str]
    """Keys of those that were made to choose settings."""
    stages: list[str]
    """Keys of what runs share."""
    notes: list[str]
    sharing: str
    """What sharing saved, in words."""
    spared: int
    """Trials that were not called for."""

    @property
    def reused(self) -> int:
        return len(self.runs) + len(self.trials) + len(self.stages)


def find(spec: Spec, dataset: Dataset, store: Store) -> Receipt | None:
    """The receipt of this spec on these data, if all it names is still there; its runs are then marked as used."""
    path = _path(spec, dataset, store)
    if store.mirror is not None or not path.exists():
        return None
    try:
        found = Receipt(**read_checked(path))
    except (Damaged, TypeError):  # or of another version
        return None
    runs = all(_settled(key, store) for key in (*found.runs, *found.trials))
    if not runs or not all(state.readable(store.stage_path(key)) for key in found.stages):
        return None
    uses.mark(store, (*found.runs, *found.trials))
    return found


def _settled(key: str, store: Store) -> bool:
    """Whether a run is there and nothing of its making; if its maker died in between, somebody must clear up."""
    return store.intact(key) and not store.work_folder(key).exists()


def keep(spec: Spec, dataset: Dataset, store: Store, planned: Plan, summary: Summary) -> None:
    """Write the receipt of a spec, if nothing failed; without one it is planned again, so a full disk does no harm."""
    if summary.failed or summary.excluded:
        return
    saved = saved_by_sharing(planned, store)
    trials = {stage.key for stage in planned.stages if stage.kind == "trial"}
    there = {stage.key for stage in planned.stages if stage.kind != "deploy" and store.has(stage.key)}
    spared = [key for key in trials - there if store.failure(key) is None]  # by this command, or by an earlier one
    stages = [stage.key for stage in planned.stages if not stage.is_run and stage.key in there]
    sharing = saved.said("saved") if saved else ""
    made = Receipt(planned.run_keys, sorted(trials & there), stages, list(planned.notes), sharing, len(spared))
    with suppress(DiskError):
        write_checked(_path(spec, dataset, store), asdict(made))


def _path(spec: Spec, dataset: Dataset, store: Store) -> Path:
    """Named by all that decides the plan: the spec, the data's content, the files that it names, and the code."""
    said = spec.model_dump(mode="json")
    files = {str(path): content_hash(path) for text in handed.texts(said) for path in _files(text)}
    name = hash_of({"spec": said, "data": dataset.fingerprint, "files": files, "code": card.sources_hash()})
    return store.folder / "receipts" / f"{name}.json"


def _files(text: str) -> Iterator[Path]:
    """The files that a text names: weights, or a user's own code."""
    sources = handed.sources(text)
    yield from map(handed.file_of, sources)
    if text and not sources and (weights := weights_file(text)):
        yield weights
