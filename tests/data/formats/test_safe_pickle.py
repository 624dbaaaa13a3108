"""A pickle is read for its data; no code in it ever runs."""

import contextlib
import enum
import os
import pickle
import struct
import sys
import types

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from driftline.data.formats import safe_pickle
from driftline.errors import UserError

ARRAYS = [
    np.arange(12, dtype=np.uint8).reshape(3, 4),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.array([1.5, -2.0], dtype=">f8"),
    np.array([True, False]),
    np.array(["ab", "c"]),
    np.array([b"xy"]),
    np.array(7, dtype=np.int32),
    np.zeros((0, 3), np.float32),
]


def write(path, content, protocol=4):
    path.write_bytes(pickle.dumps(content, protocol=protocol))
    return path


@pytest.mark.parametrize("protocol", range(6))
def test_every_protocol_gives_back_what_was_written(tmp_path, protocol):
    content = {"arrays": ARRAYS, b"k": (np.float64(0.1), np.int64(-3), "text", b"", b"\xff\x00", None, 2**80)}
    back = safe_pickle.load_pickle(write(tmp_path / "f", content, protocol), "anything")
    assert back[b"k"] == content[b"k"]
    for one, other in zip(back["arrays"], ARRAYS, strict=True):
        assert type(one) is np.ndarray
        assert one.dtype == other.dtype
        assert one.flags.writeable
        np.testing.assert_array_equal(one, other)


@settings(max_examples=60, deadline=None)
@given(
    array=hnp.arrays(
        st.one_of(hnp.integer_dtypes(), hnp.floating_dtypes(sizes=(32, 64)), hnp.boolean_dtypes()),
        hnp.array_shapes(min_dims=0, min_side=0, max_side=4),
    ),
    protocol=st.integers(0, 5),
)
def test_any_array_survives(tmp_path_factory, array, protocol):
    back = safe_pickle.load_pickle(write(tmp_path_factory.mktemp("p") / "f", [array, array], protocol), "an array")
    assert back[0] is back[1]
    assert back[0].dtype == array.dtype
    np.testing.assert_array_equal(back[0], array)


def test_object_arrays_hold_data_in_any_depth(tmp_path):
    content = np.empty((2, 2), object)
    content[0, 0], content[0, 1], content[1, 0] = "a", [np.arange(3)], {"k": np.float32(2)}
    back = safe_pickle.load_pickle(write(tmp_path / "f", content), "texts")
    assert back[0, 0] == "a"
    assert back[1, 0] == {"k": 2.0}
    assert back[1, 1] is None
    assert type(back[0, 1][0]) is np.ndarray
    assert back[0, 1][0].tolist() == [0, 1, 2]


def test_a_list_that_holds_itself_is_refused(tmp_path):
    content = [np.arange(2)]
    content.append(content)
    with pytest.raises(UserError, match="contains itself"):
        safe_pickle.load_pickle(write(tmp_path / "f", content), "a list")


PYTHON2 = (
    b"(dp1\nS'data'\np2\ncnumpy.core.multiarray\n_reconstruct\np3\n(cnumpy\nndarray\np4\n(I0\ntS'b'\ntRp5\n"
    b"(I1\n(I2\nI2\ntcnumpy\ndtype\np6\n(S'u1'\nI0\nI1\ntRp7\n(I3\nS'|'\nNNNI-1\nI-1\nI0\ntbI00\n"
    b"S'\\x01\\xff\\x00\\n'\ntbsS'labels'\n(lp8\nI6\naI9\nas."
)


def test_a_pickle_of_python_2_in_the_form_of_cifar(tmp_path):
    (tmp_path / "f").write_bytes(PYTHON2)
    back = safe_pickle.load_pickle(tmp_path / "f", "a batch")
    assert back["data"].tolist() == [[1, 255], [0, 10]]
    assert back["labels"] == [6, 9]
    back = safe_pickle.load_pickle(tmp_path / "f", "a batch", encoding="bytes")
    assert back[b"data"].tolist() == [[1, 255], [0, 10]]


def test_both_homes_of_numpy(tmp_path):
    raw = pickle.dumps(ARRAYS[0], protocol=2)
    for home in (b"numpy._core.multiarray", b"numpy.core.multiarray"):
        (tmp_path / "f").write_bytes(raw.replace(b"numpy._core.multiarray", home))
        np.testing.assert_array_equal(safe_pickle.load_pickle(tmp_path / "f", "an array"), ARRAYS[0])


def test_the_split_names_of_wild_time_become_numbers(tmp_path, monkeypatch):
    module = types.ModuleType("data.utils")
    module.Mode = enum.Enum("Mode", {"TRAIN": 0, "TEST_ID": 1}, module="data.utils")
    monkeypatch.setitem(sys.modules, "data", types.ModuleType("data"))
    monkeypatch.setitem(sys.modules, "data.utils", module)
    path = write(tmp_path / "f", {module.Mode.TRAIN: "a", module.Mode.TEST_ID: "b"})
    assert safe_pickle.load_pickle(path, "splits") == {0: "a", 1: "b"}


class Runs:
    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


def text(value):
    return b"X" + struct.pack("<I", len(value)) + value


def hostile(mark):
    """Pickles that would leave the file `mark` behind, or reach for something that could."""
    touch = f"open({str(mark)!r}, 'w').close()"
    inside = np.empty(1, object)
    inside[0] = Runs(exec, touch)
    shell = f"touch {mark}".encode()
    return {
        "os.system": pickle.dumps(Runs(os.system, f"touch {mark}")),
        "exec": pickle.dumps(Runs(exec, touch), protocol=0),
        "eval": pickle.dumps({"data": [Runs(eval, touch)]}, protocol=2),
        "in an object array": pickle.dumps(inside),
        "nested name": b"\x80\x04" + text(b"numpy") + text(b"dtype.__class__") + b"\x93.",
        "dotted way to os": b"\x80\x04" + text(b"numpy") + text(b"os.system") + b"\x93" + text(shell) + b"\x85R.",
        "getattr": b"cbuiltins\ngetattr\n(cnumpy\nndarray\nS'__class__'\ntR.",
        "python 2 getattr": b"c__builtin__\ngetattr\n(cnumpy\nndarray\nS'__class__'\ntR.",
        "inst": b"(S'touch " + str(mark).encode() + b"'\nios\nsystem\n.",
        "obj": b"(cos\nsystem\nS'touch " + str(mark).encode() + b"'\no.",
        "persistent": b"Pos.system\n.",
        "extension": b"\x80\x02\x82\x01.",
        "numpy's own loader": b"cnumpy\nload\n(S'x'\ntR.",
        "codec": b"c_codecs\nencode\n(S'abc'\nS'zlib'\ntR.",
        "many bytes": b"cbuiltins\nbytes\n(I99\ntR.",
        "state of a function": b"c_codecs\nencode\n}S'__defaults__'\nNsb.",
        "slots of a function": b"cnumpy.core.multiarray\nscalar\n(N}S'run'\nNstb.",
        "slots of a class": b"cnumpy\ndtype\n(N}S'plain'\nNstb.",
        "pointers": b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntS'b'\ntR"
        b"(I1\n(I1\ntcnumpy\ndtype\n(S'O8'\nI0\nI1\ntR(I3\nS'|'\nNNNI-1\nI-1\nI0\ntbI00\nS'AAAAAAAA'\ntb.",
        "pointer scalar": b"cnumpy.core.multiarray\nscalar\n(cnumpy\ndtype\n(S'O8'\nI0\nI1\ntRS'AAAAAAAA'\ntR.",
        "fields": b"cnumpy\ndtype\n(S'V8'\nI0\nI1\ntR.",
        "array of another class": b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\ndtype\n(I0\ntS'b'\ntR.",
        "array that was never filled": b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntS'b'\ntR.",
        "array as a key": pickle.dumps(0)[:-2] + b"}cnumpy.core.multiarray\n_reconstruct\n"
        b"(cnumpy\nndarray\n(I0\ntS'b'\ntRI1\ns.",
    }


@pytest.mark.parametrize("name", hostile("mark"))
def test_hostile_pickles_are_refused_and_do_nothing(tmp_path, name):
    mark = tmp_path / "mark"
    (tmp_path / "evil.pkl").write_bytes(hostile(mark)[name])
    before = {key: getattr(value, "run", None) for key, value in safe_pickle.ALLOWED.items()}
    with pytest.raises(UserError, match=r"evil\.pkl: expected a batch of CIFAR, but found: "):
        safe_pickle.load_pickle(tmp_path / "evil.pkl", "a batch of CIFAR")
    assert not mark.exists()
    assert before == {key: getattr(value, "run", None) for key, value in safe_pickle.ALLOWED.items()}


def test_the_hostile_samples_do_bite_an_ordinary_reader(tmp_path):
    mark = tmp_path / "mark"
    for name in ("os.system", "exec", "eval", "in an object array", "inst", "obj"):
        pickle.loads(hostile(mark)[name])
        assert mark.exists(), name
        mark.unlink()


def test_the_message_names_what_was_asked_for(tmp_path):
    path = write(tmp_path / "f", Runs(os.system, "true"))
    with pytest.raises(UserError, match=r"system, which is not data; do not trust this file"):
        safe_pickle.load_pickle(path, "a batch")


@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_every_cut_is_refused(tmp_path, protocol):
    raw = pickle.dumps({"images": ARRAYS[0], "labels": [1, 2], "name": np.float64(1)}, protocol=protocol)
    for cut in range(len(raw)):
        (tmp_path / "f").write_bytes(raw[:cut])
        with pytest.raises(UserError, match="expected a dict"):
            safe_pickle.load_pickle(tmp_path / "f", "a dict")


@settings(max_examples=300, deadline=None)
@given(raw=st.binary(max_size=60) | st.binary(max_size=20).map(lambda b: PYTHON2[:80] + b + PYTHON2[90:]))
def test_noise_is_data_or_a_user_error(tmp_path_factory, raw):
    path = tmp_path_factory.mktemp("p") / "f"
    path.write_bytes(raw)
    with contextlib.suppress(UserError):
        safe_pickle.load_pickle(path, "a dict")


def test_deep_nesting_is_a_user_error(tmp_path):
    (tmp_path / "f").write_bytes(b"]" * 100_000 + b"a" * 99_999 + b".")
    with pytest.raises(UserError, match="recursion"):
        safe_pickle.load_pickle(tmp_path / "f", "a list")


def test_missing_and_unreadable_files(tmp_path):
    for path in (tmp_path / "none.pkl", tmp_path):
        with pytest.raises(UserError, match="expected a dict"):
            safe_pickle.load_pickle(path, "a dict")


def test_a_few_bytes_cannot_take_gigabytes_or_minutes(tmp_path):
    nested, key, shared = [0], (0,), ["x" * 10**6] * 10**6
    for _ in range(60):
        nested, key = [nested, nested], (key, key)
    for content, reason in (
        (b"N" + pickle.LONG_BINPUT + struct.pack("<I", 2**31 - 1) + b".", None),  # would need 32 GB for its memo
        (pickle.dumps(nested), "once unpacked"),
        (pickle.dumps(shared), "once unpacked"),
        (b"(" + pickle.dumps(key)[2:-1] + b"Nd.", "a dict with a tuple as a key"),
        (b"}" + pickle.dumps(key)[2:-1] + b"Ns.", "a dict with a tuple as a key"),
        (pickle.dumps({1, 2}), "a set"),
    ):
        (tmp_path / "f").write_bytes(content)
        if reason is None:
            assert safe_pickle.load_pickle(tmp_path / "f", "a dict") is None
        else:
            with pytest.raises(UserError, match=reason):
                safe_pickle.load_pickle(tmp_path / "f", "a dict")


@pytest.mark.parametrize("array", ARRAYS)
def test_an_array_file_gives_back_the_array(tmp_path, array):
    np.save(tmp_path / "a.npy", array)
    back = safe_pickle.load_npy(tmp_path / "a.npy", "an array")
    assert (type(back), back.dtype, back.flags.writeable) == (np.ndarray, array.dtype, True)
    np.testing.assert_array_equal(back, array)


def test_objects_in_an_array_file_are_read_as_those_of_a_pickle(tmp_path):
    np.save(tmp_path / "map.npy", np.array({"n01": np.int64(3)}, dtype=object), allow_pickle=True)
    assert safe_pickle.load_npy(tmp_path / "map.npy", "a dict").item() == {"n01": 3}
    np.save(tmp_path / "texts.npy", np.array(["a", "b"], dtype=object), allow_pickle=True)
    assert safe_pickle.load_npy(tmp_path / "texts.npy", "texts").tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("descr", "shape", "rest"),
    [
        ("'<i8'", "(10**12,)", b""),
        ("'<i8'", f"({10**12},)", b"\0" * 8),
        ("'|S0'", f"({10**12},)", b""),
        ("'|O'", "(2,)", pickle.dumps([1, 2, 3])),
        ("'|O'", "(1,)", b""),
        ("[('a', '<i8')]", "(3,)", b"\0"),
    ],
)
def test_an_array_file_with_a_false_header_is_refused(tmp_path, descr, shape, rest):
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + rest)
    with pytest.raises(UserError, match=r"cannot read .*: expected an array, but found"):
        safe_pickle.load_npy(tmp_path / "a.npy", "an array")
