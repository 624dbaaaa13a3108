"""How sequences are written, and the error if they cannot be read."""

import textwrap

import numpy as np
import pytest

from driftline import registry, shifts
from driftline.errors import UserError
from driftline.shifts import Shift, apply, parse
from driftline.shifts.base import LABELS, SAMPLING
from driftline.shifts.rotation import Rotation

BLUR = '''
"""A block of one's own."""
from dataclasses import dataclass

from driftline.shifts import Shift


@dataclass(frozen=True)
class Fade(Shift):
    amount: float = 10
    amount_range = (1, 100)

    def images(self, images, labels, rng, white):
        return images * (1 - self.amount / 100)


class Cut(Shift):
    def images(self, images, labels, rng, white):
        return images[:, 1:]


NotAShift = int
'''


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("CLR", [["uniform noise"], ["label flip"], ["rotation"]]),
        ("R45L", [["rotation 45"], ["label flip"]]),
        ("CR,L", [["uniform noise", "rotation"], ["label flip"]]),
        ("C+R", [["uniform noise", "rotation"]]),
        (" T60 r15 ", [["tint 60"], ["conditional rotation 15"]]),
        ("t20 C5 l0.2", [["conditional tint 20"], ["uniform noise 5"], ["label shift 0.2"]]),
        ("R=45,L", [["rotation 45"], ["label flip"]]),
        ("", []),
        (["CR", ["L", "T60"], []], [["uniform noise", "rotation"], ["label flip", "tint 60"], []]),
        ([Rotation(45), [Rotation(15), "C"]], [["rotation 45"], ["rotation 15", "uniform noise"]]),
        ("sss", [["subpopulation shift"]] * 3),
    ],
)
def test_steps(text, steps):
    assert [[str(shift) for shift in step] for step in parse(text)] == steps


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("CXR", r"no shift 'X'.* Known: C, L, R, T, l, r, s, t"),
        ("LLLL", "four flips restore the labels, so that the change would be reversed"),
        ("L,CL,LL", "label flip occurs 4 times"),
        ("ssss", "subpopulation shift occurs 4 times; the maximum is 3"),
        ("R-400", "'R' has the amount -400: give a number from -359.9 to 359.9"),
        ("R360", "'R' has the amount 360"),
        ("T999", "'T' has the amount 999: give a number from -255 to 255"),
        ("C0", "'C' has the amount 0"),
        ("l2", "'l' has the amount 2: give a number from 0.001 to 1"),
        ("L2", "'L' takes no number"),
        ("s1", "'s' takes no number"),
        ("C,,R", "empty step"),
        ("30R", "cannot read '30R'"),
        ("C?", r"cannot read '\?'"),
        ("R=x", "'R' has the amount x"),
    ],
)
def test_what_cannot_be_read(text, sentence):
    with pytest.raises(UserError, match=sentence) as caught:
        parse(text)
    assert len(str(caught.value).splitlines()) == 1


def test_a_block_of_ones_own(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(BLUR)
    monkeypatch.chdir(tmp_path)
    assert [len(step) for step in parse("C+mine.py:Fade,R")] == [2, 1]
    images = np.full((2, 4, 4, 1), 103, np.uint8)
    faded, _ = apply(images, np.array([0, 1]), "mine.py:Fade=50", 0)
    assert faded.dtype == np.uint8
    assert (faded == 52).all()  # 51.5, rounded
    once, twice = (
        apply(images, np.array([0, 1]), text, 0)[0] for text in ("mine.py:Fade", "mine.py:Fade,mine.py:Fade")
    )
    assert (once.max(), twice.max()) == (93, 83)  # 92.7 and 83.43
    for text, sentence in (
        ("mine.py:Cut", "made images of shape"),
        ("mine.py:NotAShift", "is not a driftline.shifts.base.Shift"),
        ("mine.py:Nothing", "has no 'Nothing'"),
        ("mine.py:Cut=3", "takes no number"),
        ("other.py:Fade", "cannot import"),
    ):
        with pytest.raises(UserError, match=sentence):
            apply(images, np.array([0, 1]), text, 0)


def test_a_block_of_ones_own_comes_after_rotation_and_before_labels(tmp_path):
    (tmp_path / "mine.py").write_text(BLUR)
    images = np.full((1, 8, 8, 3), 200, np.uint8)
    faded, labels = apply(images, np.array([0]), f"{tmp_path}/mine.py:Fade=50,TL", 0, classes=4)
    assert faded[0, 0, 0].tolist() == [115, 100, 100]
    assert labels.tolist() == [3]


@pytest.mark.parametrize("name", registry.names("shift"))
def test_every_block_says_what_it_is(name):
    kind = registry.get("shift", name)
    assert issubclass(kind, Shift)
    assert kind.__doc__
    assert kind.target == {LABELS: "labels", SAMPLING: "sampling"}.get(kind.priority, "images")
    if kind.amount_range is not None:
        assert kind.amount_range[0] <= kind().amount <= kind.amount_range[1]
    shape, labels = (3, 8, 8, 3), np.arange(3)
    images = np.full(shape, 128, np.uint8)
    x, y = apply(images, labels, [[kind()]], 0)
    assert (kind.target == "images") == bool((x != images).any())
    assert (kind.target == "labels") == bool((y != labels).any())


def test_the_example_of_the_package_runs(tmp_path):
    code = textwrap.dedent(shifts.__doc__.partition(":\n\n")[2].rpartition("\n\n")[0])
    (tmp_path / "fade.py").write_text(
        f"from dataclasses import dataclass\nfrom driftline.shifts import Shift\n\n{code}\n"
    )
    x, _ = apply(np.full((1, 2, 2, 1), 100.0), np.array([0]), f"{tmp_path}/fade.py:Fade=20", 0)
    assert x.ravel().tolist() == pytest.approx([80.0] * 4)
