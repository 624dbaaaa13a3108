"""An audit from end to end: read, cut, replay, compare, say."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from driftline.atomic import write_bytes, write_json
from driftline.auditing import change, gate, matrix, words
from driftline.auditing.baseline import baseline
from driftline.auditing.replay import DETECTED, compared, judged, policies, recommended, replay
from driftline.auditing.setting import HOLDOUT, Limits, Setting, setting
from driftline.auditing.work import carry_out
from driftline.data import frame as frames
from driftline.errors import UserError
from driftline.version import __version__


@dataclass(frozen=True, eq=False)
class Audit:
    """What an audit found: `answers` in plain words, `numbers` for programs."""

    numbers: dict[str, Any] = field(repr=False)
    answers: tuple[words.Answer, ...]

    def __str__(self) -> str:
        return "\n\n".join(f"{answer.question}\n{answer.text}" for answer in self.answers)

    @property
    def headline(self) -> dict[str, float | None]:
        """The numbers that a gate may name."""
        return dict(self.numbers["headline"])

    def fails(self, condition: str) -> bool:
        """Whether a condition such as "tas<0.9" holds."""
        return gate.fails(condition, self.headline)

    def told(self, condition: str) -> str:
        """The numbers that a condition is about."""
        return gate.told(condition, self.headline)

    def html(self) -> str:
        """The report as one self-contained page."""
        from driftline.auditing.page import page

        return page(self)

    def write(self, html: str | Path | None = None, json: str | Path | None = None) -> None:
        """Write the page, the numbers, or both; older files are replaced in one step."""
        if html is not None:
            write_bytes(Path(html), self.html().encode())
        if json is not None:
            write_json(Path(json), self.numbers)


def audit(
    frame: Any,
    *,
    time: str,
    target: str,
    model: Any = "boosting",
    prediction: str | None = None,
    period: str = "auto",
    features: Sequence[str] | None = None,
    columns: Mapping[str, str] | None = None,
    task: str = "auto",
    delay: int = 0,
    delta: float = 0.9,
    holdout: float = HOLDOUT,
    limits: Limits | None = None,
    seed: int = 0,
    jobs: int = 1,
    told: Callable[[str, int, int], None] = lambda name, done, of: None,
) -> Audit:
    """How long a model of this table stays good, what changed, and which retraining policy would have been right.

    `frame`: a frame of pandas or polars, or the path of a CSV or Parquet file. `model`: the name of a registered
    model, "module:factory", or any object with `fit` and `predict`; with `prediction`, a column of logged predictions
    is audited instead and nothing is trained. `period`: day, week, month, quarter, year, decade, each, "500 rows" or
    auto. `columns`: kinds of columns that are not guessed: number, category, text, date or ignore; of the time column,
    date or number. `delay`: how many periods late labels come. `task`: classes, number or auto. Results do not depend
    on `jobs`.

    >>> from driftline.auditing.examples import table
    >>> audit(table(rows=400), time="when", target="y", model="logistic", period="100 rows").headline["periods"]
    4
    """
    call = _call(dict(locals()))
    if delay < 0 or not 0 < delta <= 1 or jobs < 1 or not 0 < holdout < 1:
        raise UserError("delay is at least 0, jobs at least 1, delta and holdout are shares between 0 and 1")
    roles: dict[str, Any] = {"time": time, "target": target, "prediction": prediction}
    read = frames.read(frame, **roles, features=features, task=task, columns=columns)
    set_ = setting(read, model, period, delay, seed, limits or Limits(), holdout)
    done = _computed(set_, jobs, told)
    numbers = _numbers(set_, done, delta)
    numbers["data"] |= roles
    numbers["headline"] = words.headline(numbers)
    date = datetime.now(UTC).isoformat(timespec="seconds")
    made = {"driftline": __version__, "date": date, "command": call, "fingerprint": read.fingerprint}
    numbers = {"provenance": made, **numbers}
    return Audit(json.loads(json.dumps(numbers, allow_nan=False)), words.answers(numbers))


def _call(given: dict[str, Any]) -> str:
    """Return the call of `audit` as it would be written, without what is left at its default."""
    frame = repr(str(given["frame"])) if isinstance(given["frame"], str | Path) else "frame"
    options = [p for p in inspect.signature(audit).parameters.values() if p.name not in ("frame", "told")]
    said = [f"{p.name}={given[p.name]!r}" for p in options if given[p.name] != p.default]
    return " ".join(f"driftline.audit({', '.join([frame, *said])})".split())


def _computed(set_: Setting, jobs: int, told: Callable[[str, int, int], None]) -> dict[str, Any]:
    """All that takes time, side by side; the longest first."""
    pieces: dict[str, Callable[[], Any]] = {}
    if set_.frame.logged is None:
        set_.new_model()  # refuse a model that cannot be used before any work is done
        pieces["models"] = partial(matrix.examine, set_)
        for name, policy in policies(len(set_.cut)).items():
            pieces[f"policy {name}"] = partial(replay, set_, policy)
    if set_.frame.features:
        for tau in range(1, len(set_.cut)):
            pieces[f"change {tau}"] = partial(change.told_apart, set_, tau)
        pieces["distances"] = partial(change.distances, set_)
    counted: list[str] = []

    def heard(name: str) -> None:
        counted.append(name)
        told(_in_words(name, set_), len(counted), len(pieces))

    told(_begins(set_), 0, len(pieces))

    return carry_out(pieces, jobs, heard) if pieces else {}


def _begins(set_: Setting) -> str:
    """What is about to be audited, for somebody who waits."""
    by = "the logged predictions" if set_.frame.logged is not None else f"model {_model(set_)}"
    rows, names = len(set_.frame.samples), set_.names
    return f"{set_.frame.name}: {rows:,} rows in {len(names)} periods, {names[0]} to {names[-1]}; {by}"


def _in_words(piece: str, set_: Setting) -> str:
    """What a finished piece of work was."""
    kind, _, which = piece.partition(" ")
    return {
        "models": "a model of each period, examined in all later ones",
        "policy": f"retraining policy replayed: {which}",
        "change": f"inputs compared with the first period: {set_.names[int(which)] if kind == 'change' else ''}",
        "distances": "how far each feature moved",
    }[kind]


def _model(set_: Setting) -> str:
    return set_.model if isinstance(set_.model, str) else type(set_.model).__name__


def _numbers(set_: Setting, done: dict[str, Any], delta: float) -> dict[str, Any]:
    numbers: dict[str, Any] = {"data": _data(set_)}
    if set_.frame.logged is None:
        probes = done["models"]
        numbers["decay"] = matrix.decay(set_, probes, delta)
        replays = {k.removeprefix("policy "): v for k, v in done.items() if k.startswith("policy ")}
        rows = compared(set_, replays)
        numbers["policies"], numbers["recommendation"] = rows, recommended(rows)
        numbers["detectors"] = judged(set_, replays, rows, numbers["decay"]["matrix"]["ttr"])
        if not numbers["detectors"]:
            numbers["skipped"] = ['detector policies were not replayed: pip install "driftline[river]"']
    else:
        probes = matrix.logged(set_)
        numbers["decay"] = matrix.log_decay(set_, probes)
        numbers["log_alarms"], numbers["skipped"] = _log_alarms(set_, probes)
    numbers["baseline"] = baseline(set_, probes, delta)
    if set_.frame.features:
        apart = {int(k.split()[1]): v for k, v in done.items() if k.startswith("change ")}
        parts = change.conditional(set_, probes, apart)
        numbers["shift"] = {"features": done["distances"], "periods": parts, "overall": change.overall(parts)}
        numbers["shift"]["where"] = change.where(set_, probes)
    return numbers


def _log_alarms(set_: Setting, probes: Any) -> tuple[dict[str, list[str]], list[str]]:
    """The periods in which detectors would have fired on a log; nothing can be retrained, so no policy is replayed.

    A detector hears of an error when its label comes, so with late labels it fires that much later.
    """
    from importlib.util import find_spec

    sentence = [
        "a log of predictions has no model to retrain, so there is no A(t, τ), no TAS and no replay of policies"
    ]
    if find_spec("river") is None:
        return {}, [*sentence, 'detectors were not asked: pip install "driftline[river]"']
    from driftline.learners.detectors import alarms

    every = -(-len(probes) // 10_000)
    errors = 1 - probes["correct"].to_numpy()[::every]
    heard = probes["probe"].map({name: k + set_.delay for k, name in enumerate(set_.names)}).to_numpy()[::every]
    fired = {name: dict.fromkeys(heard[alarms(name, errors)].tolist()) for name in DETECTED}
    return {name: [set_.names[k] for k in at if k < len(set_.names)] for name, at in fired.items()}, sentence


def _data(set_: Setting) -> dict[str, Any]:
    frame, limits = set_.frame, set_.limits
    used = [len(set_.stream[k].samples) for k in range(len(set_.cut))]
    notes = list(frame.notes)
    if sum(used) < sum(set_.whole):
        notes.append(
            f"{sum(used):,} of {sum(set_.whole):,} rows were looked at: at most {limits.rows:,} per period, drawn at "
            "random"
        )
    if set_.cut.left_out:
        notes.append(f"left out for having too few rows: {', '.join(set_.cut.left_out)}")
    if set_.tied:
        notes.append(
            f"{set_.tied} of {len(set_.cut) - 1} cuts between periods fall among rows of the same time, whose order in "
            "the table decides"
        )
    held = "the last rows" if set_.ordered else "rows drawn at random, as it has too few different times,"
    notes.append(f"of each period {held} are held out, and give what a new model reaches")
    notes.append(
        f"no model was trained on more than {limits.trained:,} rows at once, and each is examined on at most "
        f"{limits.examined:,} rows per period"
    )
    return {
        "name": frame.name,
        "rows": len(frame.samples),
        "rows_looked_at": sum(used),
        "rows_per_period": used,
        "periods": list(set_.names),
        "period": set_.period,
        "unit": set_.unit,
        "length": set_.length,
        "task": "classes" if set_.classifies else "number",
        "classes": len(frame.labels) if frame.labels is not None else None,
        "features": list(frame.features),
        "columns": [asdict(column) for column in frame.columns],
        "model": _model(set_),
        "says_when": list(set_.frame.says_when),
        "label_delay": set_.delay,
        "seed": set_.seed.value,
        "fingerprint": frame.fingerprint,
        "notes": notes,
    }
