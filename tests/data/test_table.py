"""A user's own table: what it becomes, that the future does not leak, and the error of every mistake."""

import gzip
import os

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftline.data import load
from driftline.data.formats.table_file import check_duplicates
from driftline.data.table import table
from driftline.errors import UserError
from driftline.io import bounded_files
from driftline.tasks import Classification, Regression

FRAME = pd.DataFrame(
    {
        "when": ["2020-03-01", "2020-01-01", "2020-02-01", "2020-01-01"],
        "size": [1.5, 2.0, -3.0, 4.0],
        "count": [1, 2, 3, 4],
        "loud": [True, False, True, False],
        "shop": ["c", "b", "a", "a"],
        "sold": ["yes", "no", "yes", "yes"],
        "key": ["r0", "r1", "r2", "r3"],
    }
)


def save(frame, path):
    if path.name.endswith(".parquet"):
        frame.to_parquet(path, index=False)
    else:
        frame.to_csv(path, index=False)
    return str(path)


def csv(tmp_path, text, **options):
    (tmp_path / "t.csv").write_text(text)
    return table([], **{"path": str(tmp_path / "t.csv"), "time": "t", "target": "y", **options})


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
def test_every_form_gives_the_same_numbers(tmp_path, name):
    path = save(FRAME, tmp_path / name)
    data = load("table", {"path": path, "time": "when", "target": "sold", "id": "key"})
    s = data.samples
    assert s.id.tolist() == ["r1", "r3", "r2", "r0"]  # the two rows of January keep their order
    assert s.time.tolist() == pd.to_datetime(["2020-01-01", "2020-01-01", "2020-02-01", "2020-03-01"]).tolist()
    # The earliest tenth is one row, whose shop is b: the only category there is.
    assert s.x.tolist() == [[2, 2, 0, 1], [4, 4, 0, 0], [-3, 3, 1, 0], [1.5, 1, 1, 0]]
    assert s.x.dtype == np.float32
    assert data.task.classes == ("no", "yes")
    assert s.y.tolist() == [0, 1, 1, 1]
    assert data.notes == (
        f"4 rows of {name}; 4 inputs from 4 columns",
        "3 rows have a 'shop' that the earliest tenth does not; it is all zeros",
    )


def test_one_fingerprint_for_every_form(tmp_path):
    options = {"time": "when", "target": "sold"}
    names = ["t.csv", "t.csv.gz", "t.parquet"]
    assert len({table([], path=save(FRAME, tmp_path / n), **options).fingerprint for n in names}) == 1


def test_rows_are_numbered_and_columns_chosen(tmp_path):
    path = save(FRAME, tmp_path / "t.csv")
    s = table([], path=path, time="when", target="sold", features=["count", "size"]).samples
    assert s.id.tolist() == [1, 3, 2, 0]
    assert s.x.tolist() == [[2, 2], [4, 4], [3, -3], [1, 1.5]]


def test_a_path_is_also_looked_for_in_the_data_folders(tmp_path):
    save(FRAME, tmp_path / "mine.csv")
    options = {"path": "mine.csv", "time": "when", "target": "sold", "features": ["size"]}
    assert len(load("table", options, folders=[tmp_path]).samples) == 4


@pytest.mark.parametrize(
    ("written", "kind", "order"),
    [
        (["3", "1", "2"], "i", [1, 2, 0]),
        (["0.3", "0.1", "0.2"], "f", [1, 2, 0]),
        (["2020-01-03T10:00:00", "2020-01-03", "2020-01-03 09:00"], "M", [1, 2, 0]),
        (["2020-01-01T03:00+03:00", "2020-01-01T00:30Z", "2019-12-31T22:00-03:00"], "M", [0, 1, 2]),
        (["03/14/2020", "02/15/2020", "03/01/2020"], "M", [1, 2, 0]),
        (["Mar 2020", "Jan 2020", "Feb 2020"], "M", [1, 2, 0]),
    ],
)
def test_ways_to_write_time(tmp_path, written, kind, order):
    s = csv(tmp_path, "t,a,y\n" + "".join(f"{t},1,{i % 2}\n" for i, t in enumerate(written))).samples
    assert s.time.dtype.kind == kind
    assert s.id.tolist() == order


def test_dates_of_parquet(tmp_path):
    moments = pd.to_datetime(["2020-01-02", "2020-01-01"])
    for times in (moments, moments.tz_localize("Asia/Tokyo"), moments.date, moments.astype("datetime64[ns]")):
        path = save(pd.DataFrame({"t": times, "a": [1, 2], "y": [0, 1]}), tmp_path / "t.parquet")
        s = table([], path=path, time="t", target="y").samples
        assert s.time.dtype == "datetime64[us]"
        assert s.id.tolist() == [1, 0]


def test_the_index_of_a_saved_frame_is_no_feature(tmp_path):
    frame = pd.DataFrame({"t": [1, 2, 3], "a": [1, 2, 3], "y": [0, 1, 0]})[::2]
    frame.iloc[1, 2] = 1
    frame.to_parquet(tmp_path / "t.parquet", index=True)
    s = table([], path=str(tmp_path / "t.parquet"), time="t", target="y").samples
    assert s.x.tolist() == [[1], [3]]


@pytest.mark.parametrize(
    ("written", "classes", "y"),
    [
        (["10", "9", "10"], ("9", "10"), [1, 0, 1]),
        (["1.0", "0.0", "1.0"], ("0", "1"), [1, 0, 1]),
        (["True", "False", "True"], ("False", "True"), [1, 0, 1]),
        (["b", "a", "c"], ("a", "b", "c"), [1, 0, 2]),
        (["0.5", "1", "0.5"], ("0.5", "1.0"), [0, 1, 0]),
    ],
)
def test_kinds_of_classes(tmp_path, written, classes, y):
    data = csv(tmp_path, "t,a,y\n" + "".join(f"{i},1,{v}\n" for i, v in enumerate(written)))
    assert data.task.classes == classes
    assert data.samples.y.tolist() == y


def frame_of(shops, sizes, times):
    return pd.DataFrame({"t": times, "size": sizes, "shop": shops, "y": np.arange(len(times)) % 2})


@settings(max_examples=40, deadline=None)
@given(data=st.data(), n=st.integers(2, 60))
def test_the_future_does_not_change_the_past(tmp_path_factory, data, n):
    path = tmp_path_factory.mktemp("t") / "t.parquet"
    shops = st.lists(st.text("abcdef", min_size=1, max_size=1), min_size=n, max_size=n)
    sizes = st.lists(st.floats(-9, 9, width=32), min_size=n, max_size=n)
    times = data.draw(st.lists(st.integers(0, 20), min_size=n, max_size=n))
    one = frame_of(data.draw(shops), data.draw(sizes), times)
    other = frame_of(data.draw(shops), data.draw(sizes), times)
    order = np.argsort(times, kind="stable")
    early = -(-n // 10)
    past = order[: data.draw(st.integers(early, n))]
    other.iloc[past] = one.iloc[past]
    before, after = (table([], path=save(f, path), time="t", target="y").samples for f in (one, other))
    np.testing.assert_array_equal(before.x[: len(past)], after.x[: len(past)])
    assert before.x.shape[1] == 1 + one["shop"].iloc[order[:early]].nunique()


ROWS = "t,a,y\n1,1,0\n2,2,1\n"


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, r"t\.csv: expected a CSV file, but found: No columns"),
        ("t,a,y\n", {}, "at least two rows under the header, but found 0"),
        ("t,a,y\n1,1,0\n", {}, "at least two rows under the header, but found 1"),
        ("t,a,a,y\n1,1,1,0\n2,2,2,1\n", {}, "two columns called 'a'"),
        (ROWS, {"time": "T"}, "no column of t.csv 'T'"),
        (ROWS, {"target": "yy"}, "no column of t.csv 'yy'. Did you mean 'y'"),
        (ROWS, {"features": ["aa"]}, "no column of t.csv 'aa'. Did you mean 'a'"),
        (ROWS, {"id": "key"}, "no column of t.csv 'key'"),
        (ROWS, {"features": ["a", "y"]}, "without the target 'y'"),
        (ROWS, {"features": ["a", "a"]}, "different columns"),
        (ROWS, {"features": []}, "one or more different columns"),
        (ROWS, {"time": "y"}, "must be different columns"),
        ("t,a,y\n1,1,0\n2,2,1,9\n", {}, "expected a CSV file"),
        ("t,a,y\n1,1,0,5\n2,2,1,9\n", {}, "expected a CSV file"),
        ("t,a,y\n1,inf,0\n2,2,1\n", {}, "feature column 'a' has 1 missing or infinite"),
        ("t,a,y\n1,1e300,0\n2,2,1\n", {}, "feature column 'a' has 1 missing or infinite"),
        ("t,a,y\n1,1,\n2,2,1\n", {}, "target column 'y' has 1 missing"),
        ("t,a,y\n,1,0\n2,2,1\n", {}, "time column 't' has 1 missing"),
        ("t,a,y\ninf,1,0\n2,2,1\n", {}, "time column 't' has 1 missing or infinite"),
        ("t,a,y\nTrue,1,0\nFalse,2,1\n", {}, "time column 't' is true or false"),
        ("t,a,y\n1,1,0\n2,2,0\n", {}, "only one value, 0"),
        ("t,a,y\n1,1,0\n2,2,1\n", {"id": "a", "features": ["a"]}, None),
        ("t,a,y\n2020-01-01,1,0\n2020-13-01,2,1\n2020-01-02,2,1\n", {}, "has '2020-13-01' in row 2"),
        ("t,a,y\n1,1,0\n2,2,1\n3x,2,1\n", {}, "has '3x' in row 3"),
        ("t,a,y\n01/04/2020,1,0\n13/04/2020,2,1\n04/13/2020,2,1\n", {}, "has '13/04/2020' in row 2"),
        ("t,a,y\n01/01/2020,1,0\n01/02/2020,2,1\n", {}, "'01/02/2020' in row 2 .* is 2020-01-02 or 2020-02-01"),
        ("t,a,y\nsoon,1,0\nlater,2,1\n", {}, "has 'soon' in row 1"),
        ("t,a,k,y\n1,1,q,0\n2,2,q,1\n", {"id": "k"}, "id column 'k' has 'q' more than once"),
        ("t,a,k,y\n1,1,q,0\n2,2,,1\n", {"id": "k"}, "id column 'k' has 1 missing"),
    ],
)
def test_mistakes_and_what_they_are_told(tmp_path, text, options, message):
    if message is None:
        csv(tmp_path, text, **options)
    else:
        with pytest.raises(UserError, match=message):
            csv(tmp_path, text, **options)


def test_a_continuous_target_is_a_number_on_the_scale_of_the_earliest_tenth(tmp_path):
    data = csv(tmp_path, "t,a,y\n" + "".join(f"{i},1,{i / 7}\n" for i in range(80)))
    early = np.arange(8) / 7
    assert data.task == Regression(center=pytest.approx(early.mean()), scale=pytest.approx(early.std()))
    np.testing.assert_allclose(data.samples.y, np.arange(80) / 7)


def test_the_task_can_be_said(tmp_path):
    text = "t,a,y\n" + "".join(f"{i},1,{i % 3}\n" for i in range(30))
    assert isinstance(csv(tmp_path, text, task="number").task, Regression)
    assert csv(tmp_path, text).task == Classification(("0", "1", "2"))
    with pytest.raises(UserError, match="'y' holds texts, not numbers"):
        csv(tmp_path, "t,a,y\n1,1,x\n2,1,z\n", task="number")


def test_too_many_categories(tmp_path):
    rows = "".join(f"{i},name{i},{i % 2}\n" for i in range(600))
    with pytest.raises(UserError, match=r"category column 'a' has 60 categories .* listing the others as features"):
        csv(tmp_path, "t,a,y\n" + rows)


def test_columns_that_are_neither_numbers_nor_texts(tmp_path):
    for value in ([1, 2], b"raw"):
        path = save(pd.DataFrame({"t": [1, 2], "a": [value] * 2, "y": [0, 1]}), tmp_path / "t.parquet")
        with pytest.raises(UserError, match=r"'a' holds (mixed|bytes) values, which no model can use"):
            table([], path=path, time="t", target="y")


def test_nullable_and_categorical_columns(tmp_path):
    frame = pd.DataFrame({"t": [1, 2], "y": pd.Categorical(["u", "v"]), "c": pd.Categorical(["p", "q"])})
    frame["n"] = pd.array([1, 2], dtype="Int64")
    s = table([], path=save(frame, tmp_path / "t.parquet"), time="t", target="y").samples
    assert s.x.tolist() == [[1, 1], [0, 2]]
    assert s.y.tolist() == [0, 1]
    frame["n"] = pd.array([1, None], dtype="Int64")
    s = table([], path=save(frame, tmp_path / "t.parquet"), time="t", target="y").samples
    assert s.x.tolist() == [[1, 1], [0, 1]], "the median of the earliest tenth"


def test_gaps_are_filled_from_the_earliest_tenth_alone(tmp_path):
    numbers = ["", 4, 2, *range(100, 117)]  # the earliest tenth are the first two: one gap, and a 4
    texts = ["", "p", "", *["q"] * 17]
    rows = "".join(f"{t},{a},{b},{t % 2}\n" for t, (a, b) in enumerate(zip(numbers, texts, strict=True)))
    data = csv(tmp_path, "t,a,b,y\n" + rows)
    assert data.samples.x[:4].tolist() == [[4, 1, 1, 0], [4, 0, 0, 1], [2, 0, 1, 0], [100, 0, 0, 0]]
    assert "1 rows have no 'a' and get the earliest tenth's median" in data.notes


def test_a_gap_that_comes_later_makes_no_column(tmp_path):
    rows = "".join(f"{t},{'' if t == 15 else 3},{t % 2}\n" for t in range(20))
    assert csv(tmp_path, "t,a,y\n" + rows).samples.x.tolist() == [[3]] * 20


@pytest.mark.parametrize("dates", [("03/04/2020", "02/05/2020", "13/06/2020"), ("03.04.2020", "2.5.2020", "13.6.2020")])
def test_days_that_cannot_be_months_say_which_comes_first(tmp_path, dates):
    data = csv(tmp_path, "t,a,y\n" + "".join(f"{date},{k},{k % 2}\n" for k, date in enumerate(dates)))
    assert data.samples.time.astype("datetime64[D]").astype(str).tolist() == ["2020-04-03", "2020-05-02", "2020-06-13"]


def test_every_cut_of_a_compressed_file_is_a_user_error(tmp_path):
    for name, form in (("t.csv.gz", "a gzipped CSV file"), ("t.parquet", "a Parquet file")):
        path = tmp_path / name
        save(FRAME, path)
        raw = path.read_bytes()
        for cut in np.linspace(0, len(raw) - 1, 50).astype(int):
            path.write_bytes(raw[:cut])
            with pytest.raises(UserError, match=f"{name}: expected {form}"):
                table([], path=str(path), time="when", target="sold")


@settings(max_examples=100, deadline=None)
@given(raw=st.binary(max_size=80), name=st.sampled_from(["t.csv", "t.csv.gz", "t.parquet"]))
def test_noise_is_a_user_error(tmp_path_factory, raw, name):
    path = tmp_path_factory.mktemp("t") / name
    path.write_bytes(raw)
    with pytest.raises(UserError):
        table([], path=str(path), time="when", target="sold")


def test_bytes_that_are_not_utf8(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"t,a,y\n1,\xff,0\n2,b,1\n")
    with pytest.raises(UserError, match="not UTF-8: give --encoding latin-1"):
        table([], path=str(tmp_path / "t.csv"), time="t", target="y")


def test_wrong_names_of_files(tmp_path):
    (tmp_path / "t.xlsx").write_bytes(b"")
    with pytest.raises(UserError, match=r"t\.xlsx: expected a file whose name ends in \.csv, \.csv\.gz, \.tsv"):
        table([], path=str(tmp_path / "t.xlsx"), time="t", target="y")
    for name in ("x" * 5000 + ".csv", "\0.csv"):
        with pytest.raises(UserError, match="dataset 'table' not found"):
            table([tmp_path], path=name, time="t", target="y")
    with pytest.raises(UserError, match=r"none of nowhere\.csv"):
        load("table", {"path": "nowhere.csv", "time": "t", "target": "y"}, folders=[tmp_path])
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(UserError, match=r"folder\.csv: expected a CSV file"):
        table([], path=str(tmp_path / "folder.csv"), time="t", target="y")
    with gzip.open(tmp_path / "plain.csv", "wb") as file:
        file.write(b"t,a,y\n1,1,0\n2,2,1\n")
    with pytest.raises(UserError, match=r"plain\.csv: expected a CSV file"):
        table([], path=str(tmp_path / "plain.csv"), time="t", target="y")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_that_may_not_be_read(tmp_path):
    path = save(FRAME, tmp_path / "t.csv")
    os.chmod(path, 0)
    with pytest.raises(UserError, match="Permission denied"):
        table([], path=path, time="when", target="sold")


def test_options_that_are_needed():
    with pytest.raises(UserError, match=r"needs time, target: --set data\.time=\.\.\. --set data\.target"):
        load("table", {"path": "t.csv"})


def parquet(path, **columns):
    pyarrow.parquet.write_table(pyarrow.table(columns), path / "t.parquet")
    return {"path": str(path / "t.parquet"), "time": "when", "target": "y"}


def test_bytes_and_broken_texts_of_parquet_are_refused(tmp_path):
    numbers, raw = list(range(6)), [b"\xff%d" % (k % 2) for k in range(6)]
    broken = pyarrow.array(raw, pyarrow.binary()).view(pyarrow.string())
    lists = [[k] for k in numbers]
    for when, y, reason in (
        (raw, numbers, "time column 'when' holds bytes"),
        (numbers, raw, "target column 'y' holds bytes"),
        (broken, numbers, "Invalid UTF8"),
        (numbers, broken, "Invalid UTF8"),
        (numbers, lists, "target column 'y' holds mixed"),
    ):
        with pytest.raises(UserError, match=reason):
            load("table", parquet(tmp_path, when=when, y=y, x=numbers), [])


def test_a_parquet_file_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    options = parquet(tmp_path, when=np.zeros(10**6, int), y=np.arange(10**6) % 2, x=np.zeros(10**6))
    assert len(load("table", options, []).samples) == 10**6
    monkeypatch.setattr(bounded_files, "ALWAYS_ALLOWED_BYTES", 1000)
    with pytest.raises(UserError, match="once unpacked"):
        load("table", options, [])


def test_names_of_many_columns_are_compared_in_one_pass():
    compared = []

    class Name(str):
        __hash__ = str.__hash__

        def __eq__(self, other):
            compared.append(other)
            return str(self) == str(other)

    with pytest.raises(ValueError, match="two columns called '7'"):
        check_duplicates([Name(k) for k in [*range(1000), 7]])
    assert len(compared) < 1000


def test_codes_of_a_csv_file_keep_their_zeros(tmp_path):
    """As in Parquet: digits with a leading zero are a category, an id or a time, whatever pandas makes of them."""
    rows = "".join(f"{k},{(7, 123)[k % 2]:05d},0.{k}, 0{k % 9}:30,{k % 2},{k:03d}\n" for k in range(20))
    (tmp_path / "t.csv").write_text("t,zip,share,clock,y,key\n" + rows)
    options = {"time": "t", "target": "y", "id": "key"}
    data = table([], path=str(tmp_path / "t.csv"), **options)
    assert data.samples.x[:2, 0:2].tolist() == [[1, 0], [0, 1]], "zip is a category of two levels"
    np.testing.assert_allclose(data.samples.x[:2, 2:], [[0, 0.5 / 24], [0.1, 1.5 / 24]], rtol=1e-6)
    assert data.samples.id[:2].tolist() == ["000", "001"]
    pd.read_csv(tmp_path / "t.csv", dtype={"zip": str, "key": str}).to_parquet(tmp_path / "t.parquet")
    assert table([], path=str(tmp_path / "t.parquet"), **options).fingerprint == data.fingerprint


def test_a_target_with_leading_zeros_is_a_number(tmp_path):
    data = csv(tmp_path, "t,a,y\n" + "".join(f"{i},1,{i:03d}\n" for i in range(80)))
    assert isinstance(data.task, Regression)
    assert data.samples.y.tolist() == list(range(80))


def test_a_table_with_very_many_columns_is_refused_unless_features_are_chosen(tmp_path):
    names = [f"c{k}" for k in range(10_001)]
    text = ",".join(["t", "y", *names]) + "\n" + "".join(f"{i},{i}" + ",1" * len(names) + "\n" for i in range(2))
    with pytest.raises(UserError, match=r"10,001 feature columns are more than 10,000; choose fewer"):
        csv(tmp_path, text)
    assert csv(tmp_path, text, features=["c7", "c9"]).samples.x.shape == (2, 2)


def test_a_header_is_read_in_one_pass(tmp_path, monkeypatch):
    """A frame of one row takes pandas 20 s for 500,000 columns, and a list of names less than 0.1 s."""
    read, calls = pd.read_csv, []
    monkeypatch.setattr(pd, "read_csv", lambda *args, **more: calls.append(more) or read(*args, **more))
    csv(tmp_path, ROWS)
    assert len(calls) == 1
