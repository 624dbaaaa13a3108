"""The watch file: all that a monitor remembers, as JSON. Rows are Parquet inside it, so that types survive.

Its size does not depend on the number of batches, apart from one line of history each.
"""

from __future__ import annotations

import base64
import io
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from pydantic import TypeAdapter

from driftline.auditing.estimate import Estimate
from driftline.errors import UserError
from driftline.io.atomic import write_json
from driftline.monitoring import evidence
from driftline.monitoring.bins import Bins
from driftline.monitoring.models import AnsweredRows, ModelChoice
from driftline.monitoring.result import BatchResult
from driftline.monitoring.rows import Columns, Rows
from driftline.types import Answers, JsonObject
from driftline.version import __version__

FORMAT = 2  # of the watch file; raised when its layout changes
QUESTIONS = ("staleness", "quality")


@dataclass(frozen=True)
class Reference:
    """What batches are compared with."""

    name: str
    rows: int
    first: str
    last: str
    quality: Estimate
    """Score of the model on held-out rows of the reference, or of the logged predictions."""
    lowest_score: float
    """Lower end of the 95 % interval of the mean row score; evidence of a loss of quality counts below it."""
    weights: tuple[float, ...]
    """Of classes, in row scores."""
    inputs: dict[str, Bins]
    predictions: Bins
    labels: Bins


@dataclass(frozen=True, eq=False)
class Watch:
    """All that a monitor remembers."""

    model: ModelChoice
    metric: str
    has_probabilities: bool
    """Whether the deployed model gives class probabilities."""
    reference: Reference
    training: Rows
    """Rows that train the deployed model; with logged predictions, the first challenger."""
    held_out: Rows
    """Rows of the reference that did not train the deployed model."""
    kept: tuple[Rows, ...]
    """Rows of the latest batches with labels, of which the reference gives the first."""
    new: int = 0
    """Number of kept batches that came after the reference."""
    pending: tuple[AnsweredRows, ...] = ()
    """Rows that wait for their labels, by batch."""
    evidence: dict[str, np.ndarray] = field(default_factory=lambda: {name: evidence.start() for name in QUESTIONS})
    history: tuple[BatchResult, ...] = ()

    @property
    def columns(self) -> Columns:
        return self.model.columns


def write(watch: Watch, path: Path) -> None:
    """Write a watch file."""
    content = {
        "format": FORMAT,
        "driftline": __version__,
        "columns": asdict(watch.columns),
        "model": watch.model.name,
        "seed": watch.model.seed,
        "metric": watch.metric,
        "new": watch.new,
        "has_probabilities": watch.has_probabilities,
        "reference": asdict(watch.reference),
        "evidence": {name: values.tolist() for name, values in watch.evidence.items()},
        "history": [asdict(result) for result in watch.history],
        "rows": {
            "training": _encode(watch.training.to_frame()),
            "held_out": _encode(watch.held_out.to_frame()),
            "kept": [_encode(rows.to_frame()) for rows in watch.kept],
            "pending": [_encode(_with_answers(part)) for part in watch.pending],
        },
    }
    write_json(path, content)


def read(path: Path) -> Watch:
    """Read a watch file; raise UserError if it is not one."""
    if not path.is_file():
        raise UserError(f"there is no watch file {path}; make one with driftline monitor fit")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise UserError(
                f"{path} has format {content['format']}, and this version reads {FORMAT}; fit the monitor again"
            )
        return _decode_watch(content)
    except (KeyError, TypeError, ValueError, OSError, RecursionError) as error:
        raise UserError(f"{path} is not a watch file, or it is damaged: {type(error).__name__} {error}") from error


def _decode_watch(content: JsonObject) -> Watch:
    columns = TypeAdapter(Columns).validate_python(content["columns"])
    features, rows = list(columns.kinds), content["rows"]
    return Watch(
        model=ModelChoice(content["model"], columns, content["seed"]),
        metric=content["metric"],
        has_probabilities=content["has_probabilities"],
        reference=TypeAdapter(Reference).validate_python(content["reference"]),
        training=Rows.from_frame(_decode(rows["training"]), features),
        held_out=Rows.from_frame(_decode(rows["held_out"]), features),
        new=content["new"],
        kept=tuple(Rows.from_frame(_decode(part), features) for part in rows["kept"]),
        pending=tuple(_decode_pending(part, features) for part in rows["pending"]),
        evidence={name: np.array(values, float) for name, values in content["evidence"].items()},
        history=TypeAdapter(tuple[BatchResult, ...]).validate_python(content["history"]),
    )


def _with_answers(part: AnsweredRows) -> pd.DataFrame:
    frame = part.rows.to_frame().assign(prediction=part.answers.prediction)
    scores = part.answers.scores
    return frame if scores is None else frame.assign(**{f"score{k}": scores[:, k] for k in range(scores.shape[1])})


def _decode_pending(text: str, features: list[str]) -> AnsweredRows:
    frame = _decode(text)
    names = [name for name in frame if str(name).startswith("score")]
    answers = Answers(frame["prediction"].to_numpy(), frame[names].to_numpy() if names else None)
    return AnsweredRows(Rows.from_frame(frame, features), answers)


def _encode(frame: pd.DataFrame) -> str:
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False)
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def _decode(text: str) -> pd.DataFrame:
    return pd.read_parquet(io.BytesIO(base64.b64decode(text, validate=True)))
