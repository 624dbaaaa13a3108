from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch

from driftline.types import Reveal, Samples, concat_rows, take_rows


def values(x: object) -> list:
    if isinstance(x, list):
        return x
    if isinstance(x, pd.DataFrame):
        return x["a"].tolist()
    return (x.toarray() if scipy.sparse.issparse(x) else np.asarray(x))[:, 0].tolist()


KINDS = [
    np.array([[1.0], [2.0], [3.0]]),
    torch.tensor([[1.0], [2.0], [3.0]]),
    [1.0, 2.0, 3.0],
    pd.DataFrame({"a": [1.0, 2.0, 3.0]}, index=[5, 6, 7]),
    scipy.sparse.csr_matrix([[1.0], [2.0], [3.0]]),
]


@pytest.mark.parametrize("x", KINDS, ids=lambda x: type(x).__name__)
def test_rows_are_taken_and_joined_in_order(x: object) -> None:
    assert values(take_rows(x, np.array([2, 0, 2]))) == [3, 1, 3]
    assert values(take_rows(x, slice(1, None))) == [2, 3]
    assert values(concat_rows([take_rows(x, np.array([2])), x])) == [3, 1, 2, 3]


def test_samples_keep_their_columns_together() -> None:
    samples = Samples(np.arange(8).reshape(4, 2), np.array([0, 1, 0, 1]), time=np.array([3, 4, 5, 6]))
    few = samples[np.array([False, True, False, True])]
    assert few.x.tolist() == [[2, 3], [6, 7]]
    assert (few.id.tolist(), few.time.tolist(), few.group) == ([1, 3], [4, 6], None)
    assert len(samples[[]]) == 0
    both = Samples.concat([few, Samples(few.x, few.y, id=np.array([8, 9]))])
    assert both.id.tolist() == [1, 3, 8, 9]
    assert both.time is None


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="3 samples but 2 values of 'time'"):
        Samples(np.zeros((3, 1)), np.zeros(3), time=np.zeros(2))


def test_what_is_revealed_is_ordered() -> None:
    assert Reveal.INPUTS < Reveal.ERRORS < Reveal.LABELS
