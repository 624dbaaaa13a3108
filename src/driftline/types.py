"""The data of the loop: samples, the steps they arrive in, and the learner's answers."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, Protocol, Self, TypeAlias

import numpy as np

from driftline.lazy_rows import LazyRows

Inputs: TypeAlias = Any
"""Rows of inputs: an array, a tensor, a sparse matrix, a table, a list of texts or rows that are not yet read."""
Targets: TypeAlias = Any
"""Class indices, numbers or texts, as an array or a tensor."""
Network: TypeAlias = Any
"""What a learner trains: a torch module, or a scikit-learn estimator with its adapter."""
Head: TypeAlias = Literal["keep", "new"]
"""Whether a network takes the head of its weights, or only the rest and a new head."""
OnProgress: TypeAlias = Callable[[int, int], None]
"""Called with the number of steps done and of all steps."""
State: TypeAlias = dict[str, Any]
"""What a checkpoint keeps of an object: arrays, tensors, numbers, texts, and lists and dictionaries of them."""
Settings: TypeAlias = Mapping[str, Any]
"""Values of settings or options by name."""
JsonObject: TypeAlias = dict[str, Any]
"""A JSON object, or a row of a table by column."""
JsonRow: TypeAlias = list[Any]
"""A row of a table: numbers and texts in the order of its columns."""

Score: TypeAlias = Any
"""The value of a metric: a number, or an array of one per leading index of the data."""
TrainingRound: TypeAlias = tuple[Any, ...]
"""Inputs, labels and, if there is one, the split of one training round."""

TRAIN, VALIDATION = 0, 1
"""The values of `Samples.split`."""


class Reveal(enum.IntEnum):
    """How much of a step is revealed to a learner after it has answered, from least to most."""

    INPUTS = 0
    ERRORS = 1
    LABELS = 2


def take_rows(x: Inputs, index: Any) -> Inputs:
    """Return rows of an array, tensor, sparse matrix, table or list; lazy rows stay unread."""
    if isinstance(x, LazyRows):
        return x.take(index)
    if hasattr(x, "iloc"):
        return x.iloc[index]
    if isinstance(x, list):
        return x[index] if isinstance(index, slice) else [x[i] for i in np.arange(len(x))[index]]
    return x[index]


def concat_rows(parts: Sequence[Inputs]) -> Inputs:
    """Concatenate the rows of arrays, tensors, sparse matrices, tables or lists."""
    first = parts[0]
    if len(parts) == 1:
        return first
    if any(isinstance(part, LazyRows) for part in parts):
        return LazyRows.concat(parts)
    if isinstance(first, list):
        return [row for part in parts for row in part]
    if isinstance(first, np.ndarray):
        return np.concatenate(parts)
    if hasattr(first, "iloc"):
        import pandas

        return pandas.concat(parts, ignore_index=True)
    if type(first).__module__.startswith("torch"):
        import torch

        return torch.cat(list(parts))
    import scipy.sparse

    return scipy.sparse.vstack(parts).tocsr()


class Columnar:
    """Rows of columns: the fields of a dataclass, of which some may be None."""

    def __getitem__(self, index: object) -> Self:
        index = index if isinstance(index, slice) else np.asarray(index)
        if isinstance(index, np.ndarray) and index.size == 0:  # numpy takes an empty list for floats
            index = index.astype(int)
        columns = {name: getattr(self, name) for name in self.__dataclass_fields__}  # type: ignore[attr-defined]
        return type(self)(**{k: None if v is None else take_rows(v, index) for k, v in columns.items()})

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        """Concatenate; a column is kept only if every part has it."""
        names = cls.__dataclass_fields__  # type: ignore[attr-defined]
        columns = {name: [getattr(part, name) for part in parts] for name in names}
        return cls(**{k: None if any(v is None for v in vs) else concat_rows(vs) for k, vs in columns.items()})


@dataclass(frozen=True, eq=False)
class Samples(Columnar):
    """Inputs with labels and, per sample, an id and optionally a time, a group, a split and when its label is known.

    `x` is an array, a tensor, lazy rows, a list of strings or a table; `y` holds class indices, numbers or texts.
    `split` is TRAIN or VALIDATION for samples that a benchmark divides itself; it is revealed with the labels. `known`
    is the time at which each label became known, on the clock of `time`; NaT or NaN: never.

    >>> few = Samples(x=np.array([[1.0], [2.0], [3.0]]), y=np.array([0, 1, 0]))[[0, 2]]
    >>> len(few), few.y.tolist(), few.id.tolist()
    (2, [0, 0], [0, 2])
    """

    x: Any
    y: np.ndarray
    id: np.ndarray = None  # type: ignore[assignment]  # filled in below: a sample always has one
    time: np.ndarray | None = None
    group: np.ndarray | None = None
    split: np.ndarray | None = None
    known: np.ndarray | None = None

    def __post_init__(self) -> None:
        if self.id is None:
            object.__setattr__(self, "id", np.arange(len(self.y)))
        n = self.x.shape[0] if hasattr(self.x, "shape") else len(self.x)
        for field in fields(self)[1:]:
            column = getattr(self, field.name)
            if column is not None and len(column) != n:
                raise ValueError(f"{n} samples but {len(column)} values of '{field.name}'")
        if self.known is not None and self.time is None:
            raise ValueError("samples whose labels have times need times themselves")

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True, eq=False)
class Step:
    """One time step: the samples that arrive, and the name of the time."""

    index: int
    time: str
    samples: Samples
    one_by_one: bool = False
    """Whether samples come one by one: each is answered, and its label revealed, before the next one arrives."""


class Stream(Protocol):
    """Steps in time order. Asking twice for the same step gives the same step."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Step: ...


@dataclass(frozen=True, eq=False)
class Answers(Columnar):
    """A learner's answers: one prediction per input and, optionally, a score per class."""

    prediction: np.ndarray
    scores: np.ndarray | None = None
    distance: np.ndarray | None = None
    """Distance of each input to the nearest known class, or minus the largest similarity."""

    def __len__(self) -> int:
        return len(self.prediction)

    def rows(self) -> Iterator[Answers]:
        """Answers of one row each."""
        columns = [None if c is None else np.asarray(c) for c in (self.prediction, self.scores, self.distance)]
        for k in range(len(self)):
            yield Answers(*(None if column is None else column[k : k + 1] for column in columns))  # type: ignore[arg-type]

    def copy(self) -> Answers:
        """Return an independent copy."""
        return Answers(*(None if c is None else np.array(c) for c in (self.prediction, self.scores, self.distance)))  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Probe:
    """A named set of samples that a learner is evaluated on and never learns from."""

    name: str
    samples: Samples
    errors_only: bool = False
    """Whether it is about the samples of the step that were answered wrong; the others are then not asked again."""


def ignore_progress(done: int, total: int) -> None:
    """Report nothing."""
