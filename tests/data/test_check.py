"""What no dataset may be: one sentence for each."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from driftline.data import Dataset, validate
from driftline.errors import UserError
from driftline.tasks import Classification
from driftline.types import Samples

GOOD = Samples(x=np.zeros((3, 2)), y=np.array([0, 1, 0]), time=np.array([1, 1, 2]))


def made(**columns):
    return Dataset("mine", replace(GOOD, **columns), Classification(("a", "b")))


def test_good_data_in_every_form_of_x():
    for x in (GOOD.x, ["a", "b", "c"], pd.DataFrame({"a": [1, 2, 3], "b": list("xyz")}), scipy.sparse.eye(3)):
        validate(made(x=x))


HOLE = np.array([[0.0, np.nan], [0, 0], [0, 0]])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"x": HOLE}, "missing or infinite numbers in x"),
        ({"x": pd.DataFrame(HOLE)}, "missing or infinite numbers in x"),
        ({"x": scipy.sparse.csr_matrix(HOLE)}, "missing or infinite numbers in x"),
        ({"x": np.full((3, 1), np.inf, np.float32)}, "missing or infinite numbers in x"),
        ({"id": np.array(["p", "q", "q"])}, "2 samples with the id q"),
        ({"y": np.array([0, 1, 2])}, r"outside 0\.\.1"),
        ({"y": np.array([0, -1, 1])}, r"outside 0\.\.1"),
        ({"y": np.array([0.0, 1.0, 0.5])}, r"outside 0\.\.1"),
        ({"time": None}, "without a time"),
        ({"time": np.array([0.0, np.nan, 1.0])}, "without a time"),
        ({"time": np.array(["2020", "NaT", "2021"], "M8[D]")}, "without a time"),
        ({"time": np.array([1, 3, 2])}, "not in time order"),
    ],
)
def test_bad_data(columns, message):
    with pytest.raises(UserError, match=f"dataset 'mine' has .*{message}|dataset 'mine' is {message}"):
        validate(made(**columns))


def test_empty_data():
    with pytest.raises(UserError, match="dataset 'mine' is empty"):
        validate(Dataset("mine", GOOD[:0], Classification(("a", "b"))))


def test_a_sparse_matrix_has_a_fingerprint_of_its_content():
    one, other = (made(x=scipy.sparse.csr_matrix(np.eye(3) * k)).fingerprint for k in (1, 2))
    assert one == made(x=scipy.sparse.csr_matrix(np.eye(3))).fingerprint != other
