"""What the figures of a sequence show, as tables: examples, paths, projections, similarities, strengths and a map.

Every function takes a record and the folder of data, and returns one row per thing to draw. `panel` is what may be
compared with each other (as in result tables), `method` the name there. Runs that a figure has no place for are left
out, and `frame.attrs["notes"]` says why. Networks are rebuilt from the store (`engine.reload`); nothing is trained.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from driftline.errors import MissingExtra, UserError
from driftline.metrics.representation import directions, map_models, project, svcca
from driftline.record import Record, Run
from driftline.report.groups import Group, groups
from driftline.spec.keys import stable_hash

if TYPE_CHECKING:
    from driftline.engine.reload import ReloadedRun, Snapshot

Rows = Iterable[dict[str, Any]]
Statistics = Literal["re-estimated", "interpolated"]
SHARES = (0.5, 0.9)
WHOLE = "all layers"
SAID = ("strength", "lr", "weight_decay", "dropout", "score", "picked")
MOST_CLASSES = 20
PIXELS = 64  # the least height of a picture


class LeftOut(Exception):
    """A figure has no place for this run."""


def examples(record: Record, *, where: Path | None = None) -> pd.DataFrame:
    """A picture per class and step, with the label it has at that step: of the same originals where that is possible.

    Where steps differ in what is drawn, or are real periods, they have no originals in common: then it is the first
    sample of each label. `picture` is a PNG as a data URI.
    """
    rows, refused = [], []
    for group in groups(record):
        run = group.runs[0]
        try:
            rows += [{"panel": group.title, "seed": run.seed, **row} for row in _pictures(run, where)]
        except UserError as error:  # runs without pictures may lie beside those that have some
            refused.append(error)
    if not rows:
        raise refused[0]
    return pd.DataFrame(rows)


def path(
    record: Record, *, where: Path | None = None, points: int = 21, statistics: Statistics = "re-estimated"
) -> pd.DataFrame:
    """Accuracy on the final test set along the line from the network before the last step (s = 0) to the final one.

    Statistics of batch norm that moved are re-estimated on the final step's training samples at every s, or
    interpolated. `statistics` is "own" in the two rows of the networks as they are.
    """
    if points < 2:
        raise UserError(f"a path has two ends: {points} point(s) are too few")
    if statistics not in ("re-estimated", "interpolated"):
        raise UserError(f"statistics of batch norm are re-estimated or interpolated, not '{statistics}'")

    def rows(visit: ReloadedRun, run: Run) -> Rows:
        from driftline.training.interpolation import interpolate, reestimate_batch_norm

        if len(visit.snapshots) < 2:
            raise LeftOut("no model before the last step")
        before, after = (snapshot.network for snapshot in visit.snapshots[-2:])
        train, n = visit.lesson.train_x, len(visit.test)
        for s, network in ((0.0, before), (1.0, after)):
            yield {"s": s, "statistics": "own", "accuracy": visit.accuracy(network), "n": n}
        for s in np.linspace(0, 1, points).tolist():
            network, moved = interpolate(before, after, s)
            if statistics == "re-estimated":
                reestimate_batch_norm(network, moved, train, visit.selection.batch)
            yield {"s": s, "statistics": statistics, "accuracy": visit.accuracy(network), "n": n}

    return _of_each_run(record, where, rows)


def weights(record: Record, *, where: Path | None = None) -> pd.DataFrame:
    """Where each model lies from the oracle: along d_H towards ERM on history, and along d_T towards the baseline.

    By each layer's weights and by all of them; batch norm is left out. (The reference leaves out the shortcuts of
    residual networks as well.) Networks with side modules have no weights to compare.
    """
    memo: dict[str, Any] = {}

    def rows(visit: ReloadedRun, run: Run) -> Rows:
        from driftline.training.interpolation import layer_weights

        marks = _once(memo, _setting(visit), lambda: [layer_weights(m) for m in _landmarks(visit)])
        placed = [(snapshot.step, layer_weights(snapshot.network)) for snapshot in visit.snapshots]
        if any(flat is None for _, flat in placed):
            raise LeftOut("side modules, which have no counterpart among the oracle's weights")
        for step, flat in placed:
            found = project(flat, *marks)  # type: ignore[arg-type]
            for layer, point in {**found.layers, WHOLE: found.whole}.items():
                yield {"step": step, "layer": layer, "historical": point.historical, "final": point.final}

    return _of_each_run(record, where, rows)


def similarity(record: Record, *, where: Path | None = None) -> pd.DataFrame:
    """SVCCA of each layer's activations with the oracle's on the final test set, keeping shares of .5 and of .9.

    "all layers" is the mean over layers, as in the reference code.
    """
    memo: dict[str, Any] = {}

    def bases(visit: ReloadedRun, network: Any) -> dict[tuple[str, float], np.ndarray]:
        from driftline.training.interpolation import activations

        acts = activations(network, visit.test.x)
        return {(layer, share): directions(values, share) for layer, values in acts.items() for share in SHARES}

    def compared(visit: ReloadedRun, snapshot: Snapshot) -> dict[str, tuple[float, ...]]:
        oracle = _once(memo, _setting(visit), lambda: bases(visit, _oracle(visit).final))
        mine = bases(visit, snapshot.network)
        # Directions are orthonormal: comparing all of them is comparing the activations they were kept of.
        each = {key: svcca(mine[key], oracle[key], 1.0) for key in mine}
        layers = {layer: tuple(each[layer, share] for share in SHARES) for layer in snapshot.network.layers}
        return {**layers, WHOLE: tuple(np.mean(list(layers.values()), axis=0).tolist())}

    def rows(visit: ReloadedRun, run: Run) -> Rows:
        for snapshot in visit.snapshots:
            known = _once(memo, _setting(visit) + snapshot.key, partial(compared, visit, snapshot))
            for layer, values in known.items():
                yield {
                    "step": snapshot.step,
                    "layer": layer,
                    "half": values[0],
                    "most": values[1],
                    "n": len(visit.test),
                }

    return _of_each_run(record, where, rows)


def adjacent(record: Record, *, where: Path | None = None) -> pd.DataFrame:
    """Validation accuracy of every trial of joint models, by the strength that ties neighbouring steps together.

    The baseline and ERM on all steps, if they are in the record, have no strength: untied and fully tied steps should
    come to them.
    """
    rows: list[dict[str, Any]] = []
    for group in groups(record):
        for run in group.runs:
            trials = run.table("trials")
            if trials.empty:
                continue
            joint = trials[(trials["objective"] == "joint") & (trials["structure"] == "separate")]
            ends = run.card["run"]["method"]["name"] in ("baseline", "seq-erm")
            kept = trials[trials["picked"]].assign(strength=np.nan) if ends else joint
            rows += [{**_named(group, run), **{name: row[name] for name in SAID}} for _, row in kept.iterrows()]
    if not any(row["strength"] == row["strength"] for row in rows):
        raise UserError("no run of a joint model with separate layers is among these: run method jm")
    return pd.DataFrame(rows)


def over_time(record: Record, *, where: Path | None = None) -> pd.DataFrame:
    """A map of the models of every step, as far apart as they disagree on the final test set; it has no origin.

    One map for each panel and seed, since seeds have test sets of their own. `explained` and `stress` say how well two
    dimensions hold the distances.
    """
    memo: dict[Any, np.ndarray] = {}

    def rows(visit: ReloadedRun, run: Run) -> Rows:
        for snapshot in visit.snapshots:
            given = _once(memo, snapshot.key, partial(visit.answers, snapshot.network))
            right = visit.dataset.task.correct(given, visit.test.y)
            yield {"step": snapshot.step, "answers": given, "accuracy": float(right.mean()), "n": len(right)}

    frame = _of_each_run(record, where, rows)
    maps = []
    for _, models in frame.groupby(["panel", "seed"], sort=False):
        found = map_models(np.stack(list(models["answers"])))
        x, y = found.points.T
        maps.append(models.assign(x=x, y=y, explained=found.explained, stress=found.stress))
    placed = pd.concat(maps, ignore_index=True).drop(columns="answers")
    placed.attrs["notes"] = frame.attrs["notes"]
    return placed


def _of_each_run(record: Record, where: Path | None, rows: Callable[[ReloadedRun, Run], Rows]) -> pd.DataFrame:
    """The rows of all runs that can be opened again, and a note for each that cannot or has no place here."""
    try:
        from driftline.engine.executors.process import one_thread
        from driftline.engine.reload import has_saved_networks, reload_run
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingExtra("a figure of networks", "deep") from None
    found: list[dict[str, Any]] = []
    reasons: dict[str, dict[str, None]] = {}
    for group in groups(record):
        for run in group.runs:
            try:
                if not has_saved_networks(run):
                    raise LeftOut("no networks are kept")
                with one_thread():  # as in training, so that answers are the same to the last bit
                    found += [{**_named(group, run), **row} for row in rows(reload_run(run, where), run)]
            except LeftOut as reason:
                reasons.setdefault(str(reason), {})[group.labels[run.key]] = None
    notes = [f"left out ({reason}): {', '.join(labels)}" for reason, labels in reasons.items()]
    if not found:
        raise UserError(f"there is nothing to draw. {'; '.join(notes)}")
    frame = pd.DataFrame(found)
    frame.attrs["notes"] = notes
    return frame


def _named(group: Group, run: Run) -> dict[str, Any]:
    return {"panel": group.title, "method": group.labels[run.key], "seed": run.seed, "run": run.key}


def _once(memo: dict[Any, Any], key: Any, make: Callable[[], Any]) -> Any:
    if key not in memo:
        memo[key] = make()
    return memo[key]


def _setting(visit: ReloadedRun) -> str:
    """What runs of different methods share, the oracle and the grid included."""
    return stable_hash(visit.job.model_dump(mode="json", exclude={"method", "label"}))


def _oracle(visit: ReloadedRun) -> ReloadedRun:
    if visit.layout.richer is None:
        raise LeftOut("this sequence has no oracle; models-over-time needs none")
    return visit.with_method("oracle")


def _landmarks(visit: ReloadedRun) -> list[Any]:
    """The networks that the origin and the two axes come from: oracle, ERM on history, baseline."""
    if visit.learner.served < 2:
        raise LeftOut("this sequence has no history")
    oracle = _oracle(visit).final
    return [oracle, visit.with_method("seq-ft").snapshots[-2].network, visit.with_method("baseline").final]


def _pictures(run: Run, where: Path | None) -> Iterator[dict[str, Any]]:
    from driftline.engine.build import DatasetCache, build_scenario
    from driftline.spec.job import Job
    from driftline.tasks import Classification

    job = Job.model_validate({**run.card["run"], "label": run.method})
    dataset, layout = build_scenario(job, DatasetCache(where))
    images, task = dataset.samples.x, dataset.task
    if getattr(images, "ndim", 0) != 4 or not isinstance(task, Classification):
        raise UserError(f"dataset '{dataset.name}' does not hold images of classes, so there are no examples to draw")
    white = 1.0 if images.dtype.kind == "f" and images.max(initial=0) <= 1 else 255.0
    for step, time, x, y, origin in _steps(dataset, layout.stream):
        for k in range(len(y)):
            place = {"step": step, "time": time, "column": int(origin[k]), "label": str(task.classes[y[k]])}
            yield {**place, "picture": f"data:image/png;base64,{base64.b64encode(png(x[k], white)).decode()}"}


def _steps(dataset: Any, stream: Any) -> Iterator[tuple[int, str, Any, np.ndarray, np.ndarray]]:
    """Of each step its number, name, images, their labels, and the columns they stand in."""
    from driftline.shifts import alter, relabel, white

    carried = getattr(stream, "shifts", None)
    if not carried or getattr(stream, "keeps_time", False) or any(s.changes == "draws" for s in carried[-1]):
        for t in range(len(stream)):
            first = _first_of_each(stream[t].samples.y)
            shown = stream[t].samples[first]
            yield t, stream[t].time, shown.x, shown.y, shown.y
        return
    rows = stream.rows[0].train
    originals = dataset.samples[rows[_first_of_each(dataset.samples.y[rows])]]
    for t, shifts in enumerate(carried):
        noise = stream.seed.child("noise", t).numpy()
        x = alter(shifts, originals.x, originals.y, noise, white(dataset.samples.x))
        yield t, stream.names[t], x, relabel(shifts, originals.y, dataset.task.width), originals.y


def _first_of_each(labels: np.ndarray) -> np.ndarray:
    return np.unique(labels, return_index=True)[1][:MOST_CLASSES]


def png(image: np.ndarray, white: float = 255.0) -> bytes:
    """An image (height, width, 1 or 3 channels) as a PNG; small ones are enlarged pixel by pixel."""
    pixels = np.rint(image * (255.0 / white)).clip(0, 255).astype(np.uint8)
    times = max(1, -(-PIXELS // len(pixels)))
    pixels = pixels.repeat(times, axis=0).repeat(times, axis=1)
    height, width, channels = pixels.shape
    colour = {1: 0, 3: 2}[channels]
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in ((b"IHDR", header), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    )
