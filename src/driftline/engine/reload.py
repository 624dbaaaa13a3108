"""The networks of a finished run, rebuilt from the fits in the store, and the networks on the line between two of them.

Nothing is trained here: a fit that is not in the store is an error. What is asked of these networks is on no meter.

`between` is the path of Seq-to-Final's Figure 1. The reference code keeps the batch norm of the first network all along
it, and scales the weights of side modules but not their batch norm, so that neither end is the network it stands for.
Here every number is interpolated, and side modules are scaled in their outputs. Statistics of batch norm are
interpolated too or, since activations in between are those of neither end, re-estimated (`re_estimate`), but only where
the last step moved them: frozen layers keep theirs, as they did in training.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from driftline.benchmarks.base import Layout
from driftline.data import Dataset
from driftline.engine.build import DatasetCache, build_learner, build_model, build_scenario
from driftline.engine.stages.fit import recall, training_rounds
from driftline.errors import UserError
from driftline.learners.staged import Outcome, Recall, Staged
from driftline.models.blocks import BlockNetwork, Layered, weights
from driftline.models.inputs import as_input, as_tensor
from driftline.models.joint import JointNetwork, LayerInTime, LowRank, Separate, Shared, Sides
from driftline.models.lowrank import Adapter, adapted_weights
from driftline.record import Run
from driftline.seeds import Seed
from driftline.spec.job import Job
from driftline.spec.keys import fit_key
from driftline.spec.settings import Choice, learner_class, with_defaults
from driftline.store import Store
from driftline.training.attempt import Lesson
from driftline.training.epochs import shuffled
from driftline.training.fit import evaluating, outputs
from driftline.training.trials import Pick, Selection
from driftline.types import Samples


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A run's network as it was after a step."""

    step: int
    key: str
    """The same for the same network, and for no other: methods share their fits."""
    network: Any


@dataclass(frozen=True, eq=False)
class Visit:
    """A finished run, opened again."""

    job: Job
    store: Store
    where: Path | None
    dataset: Dataset
    layout: Layout
    learner: Staged

    @cached_property
    def snapshots(self) -> list[Snapshot]:
        """The networks that led to the final one, one per step at most, the final one last.

        A joint network holds one for every step; a method that trains only once has one.
        """
        found: dict[int, Snapshot] = {}
        pick: Pick | None = self.learner.within_budget(self.learner.served).best
        while pick is not None:
            trial = self.learner.chosen(pick)
            step = max(trial.train)
            if trial.trains and step not in found:  # of several fits on one step the last counts
                key = fit_key(self.job, self.dataset.fingerprint, trial.key, self.learner.privileged)
                found[step] = Snapshot(step, key, _unwatched(self.learner.network_of(pick)))
            pick = trial.start
        models = [found[step] for step in sorted(found)]
        whole = models[-1]
        if len(models) > 1 or not isinstance(whole.network, JointNetwork):
            return models
        return [Snapshot(t, f"{whole.key}/{t}", up_to(whole.network, t)) for t in range(whole.network.steps)]

    @property
    def final(self) -> Any:
        """The network that the run ended with."""
        return self.snapshots[-1].network

    @cached_property
    def test(self) -> Samples:
        """What the run was examined on at its end."""
        for probe in self.layout.probes.due(None):
            return probe.samples
        raise UserError(f"{self.job.benchmark} does not examine at the end")

    @property
    def lesson(self) -> Lesson:
        """What the last step showed."""
        return Lesson.of(*self.learner.lessons[-1], self.selection.holdout)

    @property
    def selection(self) -> Selection:
        return self.layout.selection or Selection()

    def answers(self, network: Any) -> np.ndarray:
        """What a network answers on the test set."""
        return np.asarray(self.dataset.task.decode(outputs(network, self.test.x)).prediction)

    def accuracy(self, network: Any) -> float:
        """The share of the test set that a network answers correctly."""
        return float(self.dataset.task.correct(self.answers(network), self.test.y).mean())

    def with_method(self, name: str) -> Visit:
        """Another method under the same settings and seed; its fits must be in the store."""
        job = self.job.model_copy(update={"method": with_defaults("method", Choice(name=name)), "label": name})
        return _visit(job, self.store, self.where)


def revisit(run: Run, where: Path | None = None) -> Visit:
    """Open a finished run again; `where` is the folder of data."""
    visit = _visit(Job.model_validate({**run.card["run"], "label": run.method}), Store(run.folder.parents[1]), where)
    if visit.dataset.fingerprint != run.card["data"]["fingerprint"]:
        raise UserError(f"the data behind '{run.method}' are not those it was run on: run it again")
    return visit


def can_revisit(run: Run) -> bool:
    """Whether a run's networks are kept: those of methods that are plans of fits, in benchmarks that plan ahead."""
    return issubclass(learner_class(run.card["run"]["method"]["name"]), Staged) and run.card["protocol"]["trials"] > 0


def _visit(job: Job, store: Store, where: Path | None) -> Visit:
    datasets = DatasetCache(where)
    dataset, layout = build_scenario(job, datasets)
    learner = build_learner(job, build_model(job, dataset), dataset, layout)
    assert isinstance(learner, Staged)
    learner.look_up(_known(job, recall(job, dataset.fingerprint, store, None), store))
    learner.lessons = training_rounds(job, dataset, layout, datasets)
    learner.served = len(learner.lessons)
    return Visit(job, store, where, dataset, layout, learner)


def _known(job: Job, look_up: Recall, store: Store) -> Recall:
    """Look a fit up; a learner that finds none would train it."""

    def known(key: str, whole: bool) -> Outcome | None:
        outcome = look_up(key, whole)
        if outcome is None:
            raise UserError(
                f"the fits of {job.label}, seed {job.seed}, are not in {store.folder}: run it with the same settings, "
                "and in another store if this one has the finished run "
                f"(`driftline run {job.benchmark} --data {job.data.name} --model {job.model.name} "
                f"--methods {job.method.name} ...`)"
            )
        return outcome

    return known


def _unwatched(network: nn.Module) -> nn.Module:
    """The network without the meter that its training was counted by."""
    network._forward_hooks.clear()
    return network.eval()


def up_to(network: JointNetwork, step: int) -> JointNetwork:
    """A copy of a network in time as it is at a step, without what came later."""
    network = copy.deepcopy(network)
    for layer in _in_time(network).values():
        layer.steps = layer.steps[: step + 1]
    return network


def activations(network: Layered, x: Any, batch: int = 500) -> dict[str, np.ndarray]:
    """What each layer gives for these inputs in evaluation mode, one row per input; of the head, the logits."""
    caught: dict[str, list[Tensor]] = {name: [] for name in network.layers}
    hooks = [
        layer.register_forward_hook(lambda _, args, out, name=name: caught[name].append(out.flatten(1)))
        for name, layer in network.layers.items()
    ]
    inputs = as_tensor(x, network)
    try:
        with evaluating(network), torch.no_grad():
            for rows in torch.arange(len(inputs)).split(batch):
                network(as_input(inputs[rows]))
    finally:
        for hook in hooks:
            hook.remove()
    return {name: torch.cat(parts).numpy() for name, parts in caught.items()}


def layer_weights(network: Layered) -> dict[str, np.ndarray] | None:
    """Each layer's weights without batch norm, in one row; None if the network sums modules, so that it has no such."""
    layers = {name: _plain(layer, -1) for name, layer in network.layers.items()}
    if any(layer is None for layer in layers.values()):
        return None
    kept = {name: weights(cast(nn.Module, layer)).values() for name, layer in layers.items()}
    return {name: torch.cat([w.detach().flatten() for w in parts]).numpy() for name, parts in kept.items()}


def between(before: Any, after: Any, s: float) -> tuple[Any, list[nn.BatchNorm2d]]:
    """The network at `s` on the line from one step's network (0) to the next one's (1), and the batch norm that moved.

    Of a network in time the step before is a part, and `before` is not looked at: separate layers are interpolated with
    those one step earlier, low-rank ones in the weights they come to, and the latest side modules are scaled.
    """
    network = copy.deepcopy(after)
    if isinstance(network, BlockNetwork):
        return network, _blend(network, before, s)
    network.scale_of_last = s
    moved: list[nn.BatchNorm2d] = []
    for name, layer in _in_time(network).items():
        if isinstance(layer, Sides):
            moved += [part for part in layer.steps[-1].modules() if isinstance(part, nn.BatchNorm2d)]
        elif not isinstance(layer, Shared):
            now, then = (cast(nn.Module, _plain(layer, step)) for step in (-1, -2))
            moved += _blend(now, then, s)
            network.layers[name] = _for_all_steps(now, layer)
    return network, moved


def re_estimate(network: nn.Module, norms: list[nn.BatchNorm2d], x: Any, batch: int) -> None:
    """Give batch norm the statistics of these inputs: the mean over one pass of batches, each normalised by itself."""
    if not norms:
        return
    inputs = as_tensor(x, network)
    with evaluating(network), torch.no_grad():
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None  # a plain mean over batches
            norm.train()
        for rows in shuffled(len(inputs), batch, Seed(0)):
            network(as_input(inputs[rows]))


def _blend(network: nn.Module, start: nn.Module, s: float) -> list[nn.BatchNorm2d]:
    """Move a network back towards its start, all the way at 0; the batch norm that differs between the two."""
    first, last = start.state_dict(), network.state_dict()
    moved = [
        part
        for path, part in network.named_modules()
        if isinstance(part, nn.BatchNorm2d)
        and any(not torch.equal(first[f"{path}.{name}"], value) for name, value in part.state_dict().items())
    ]
    mixed = {name: torch.lerp(first[name], w, s) if w.is_floating_point() else w for name, w in last.items()}
    network.load_state_dict(mixed)
    return moved


def _plain(layer: nn.Module, step: int) -> nn.Module | None:
    """The one module that a layer is at a step; None if it is a sum of several."""
    if not isinstance(layer, LayerInTime):
        return layer
    step %= len(layer.steps)
    if step == 0 or isinstance(layer, Shared):
        return layer.steps[0]
    if isinstance(layer, LowRank):
        adapters = cast(list[Adapter], list(layer.steps)[1 : step + 1])
        changed = adapted_weights(layer.steps[0], adapters, layer.multiply)
        module = copy.deepcopy(layer.steps[0])
        module.load_state_dict({**adapters[-1].shell.state_dict(), **changed})
        return module
    return layer.steps[step] if isinstance(layer, Separate) else None


def _for_all_steps(module: nn.Module, like: LayerInTime) -> Shared:
    """A layer that is this module at every step."""
    made = Shared(module, like.family, like.name)
    while len(made.steps) < len(like.steps):
        made.grow(Seed(0), False)
    return made.eval()


def _in_time(network: JointNetwork) -> dict[str, LayerInTime]:
    return cast(dict[str, LayerInTime], dict(network.layers.items()))
