"""Which rows a sequence draws, how it splits them, and how its steps change."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftline.data import Dataset, data_folders, load, locate
from driftline.errors import UserError
from driftline.seeds import Seed
from driftline.shifts import apply, parse
from driftline.streams import period_sequence, sequence
from driftline.streams.seq_to_final.sampling import ClassProportions
from driftline.tasks import Classification, Regression
from driftline.testing import check_stream
from driftline.types import TRAIN, VALIDATION, Samples

PAPER = [6000, 4000, 6000, 4000]


def made(per_class=100, tests=40, classes=4, subclasses=0, official=True):
    """Images that name themselves: every pixel is the row's number modulo 200, plus 20."""
    n = classes * (per_class + (tests if official else 0))
    y = np.arange(n) % classes
    x = np.broadcast_to((np.arange(n) % 200 + 20).astype(np.uint8)[:, None, None, None], (n, 8, 8, 3)).copy()
    group = y * 10 + np.arange(n) // classes % subclasses if subclasses else None
    listed = tuple(tuple(10 * k + j for j in range(subclasses)) for k in range(classes)) if subclasses else None
    samples = Samples(x, y, id=np.arange(n) + 1000, time=np.zeros(n, int), group=group)
    test = np.arange(n) >= classes * per_class if official else None
    task = Classification(tuple("abcdefghij"[:classes]))
    return Dataset("made", samples, task, test=test, subclasses=listed)


DATA = made()


def learners_split(y):
    """The rule by which a learner splits the labels of a step: of each class, the first floor(0.8 n) rows train."""
    train = np.zeros(len(y), bool)
    for k in np.unique(y):
        rows = np.flatnonzero(y == k)
        train[rows[: 4 * len(rows) // 5]] = True
    return train


def same(one, other):
    for name in ("x", "y", "id", "time"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("data", [DATA, made(official=False), made(subclasses=5)], ids=["official", "own", "sub"])
@pytest.mark.parametrize("shifts", ["CLR", "R,CT,r"])
def test_the_contract_of_a_stream(data, shifts):
    check_stream(sequence(data, shifts, [60, 40, 60, 40], 20, oracle=80))


def test_steps_carry_all_shifts_so_far():
    steps = sequence(DATA, "TTL", [40, 40, 40, 40], 20)
    red = []
    for t in range(4):
        samples = steps[t].samples
        original = DATA.samples[samples.id - 1000]
        red.append(np.unique(samples.x[..., 0].astype(int) - original.x[..., 0]).tolist())
        np.testing.assert_array_equal(samples.x[..., 1:], original.x[..., 1:])
        assert (samples.y == (original.y if t < 3 else 3 - original.y)).all()
        assert samples.time.tolist() == [t] * 40
    assert red[0] == [0]
    assert red[1] == [30]
    assert max(red[2]) == max(red[3]) == 60
    assert [steps[t].time for t in range(4)] == ["0 source", "1 tint", "2 tint", "3 label flip"]
    assert (steps.test.y == 3 - DATA.samples.y[steps.test.id - 1000]).all()


def test_several_shifts_in_one_step():
    steps = sequence(DATA, "TL,R", [40, 40, 40], 20)
    samples = steps[1].samples
    original = DATA.samples[samples.id - 1000]
    for got, expected in zip((samples.x, samples.y), apply(original.x, original.y, "TL", 0, classes=4), strict=True):
        np.testing.assert_array_equal(got, expected)
    assert steps[1].time == "1 tint, label flip"


@given(
    st.lists(st.integers(20, 238), min_size=4, max_size=4),
    st.sampled_from(["CLR", "LLL", "rrr", "lLl"]),
    st.integers(0, 5),
)
@settings(max_examples=30, deadline=None)
def test_a_learner_splits_a_step_as_the_sequence_does(sizes, shifts, seed):
    steps = sequence(DATA, shifts, sizes, 20, seed=Seed(seed))
    assert len(steps) == len(sizes) == 4
    for t, size in enumerate(sizes):
        samples, rows = steps[t].samples, steps.rows[t]
        assert len(samples) == size
        train = learners_split(samples.y)
        assert train[: len(rows.train)].all()
        assert not train[len(rows.train) :].any()
        assert samples.split.tolist() == np.where(train, TRAIN, VALIDATION).tolist()
        assert len(np.unique(samples.id)) == len(samples)


def test_classes_are_balanced_and_the_last_takes_the_remainder():
    steps = sequence(DATA, "R", [43, 42], 23)
    assert np.bincount(DATA.samples.y[steps.rows[0].all]).tolist() == [10, 10, 10, 13]
    assert np.bincount(DATA.samples.y[steps.rows[0].train]).tolist() == [8, 8, 8, 10]
    assert np.bincount(DATA.samples.y[steps.test_rows]).tolist() == [5, 5, 5, 8]
    many = made(per_class=9, classes=7)
    assert np.bincount(many.samples.y[sequence(many, "R", [49, 49], 7).rows[0].all]).tolist() == [7] * 7


def test_a_label_shift_moves_the_shares_of_the_classes():
    steps = sequence(DATA, "ll", [200, 200, 200], 40)
    counts = [np.bincount(DATA.samples.y[rows.all]).tolist() for rows in steps.rows]
    assert counts == [[50, 50, 50, 50], [35, 65, 35, 65], [20, 80, 20, 80]]
    assert np.bincount(DATA.samples.y[steps.test_rows]).tolist() == [4, 16, 4, 16]
    with pytest.raises(UserError, match="nothing of the even classes"):
        sequence(DATA, "llll", [40] * 5, 20)
    three = ClassProportions.of(made(classes=3), parse("l")[0], False).classes
    assert sum(three) == 1
    assert three == [Fraction(7, 27), Fraction(13, 27), Fraction(7, 27)]


def test_test_rows_are_official_or_set_aside():
    steps = sequence(DATA, "CLR", [300] * 4, 100)
    assert DATA.test[steps.test_rows].all()
    assert not any(DATA.test[rows.all].any() for rows in steps.rows)
    own = made(official=False)
    steps = sequence(own, "CLR", [300] * 4, 100)
    assert len(np.unique(steps.test_rows)) == 100
    assert np.bincount(own.samples.y[steps.test_rows]).tolist() == [25] * 4
    for rows in steps.rows:
        assert not np.isin(rows.all, steps.test_rows).any()
        assert set(rows.all) == set(range(400)) - set(steps.test_rows)


def test_sizes_move_neither_the_test_set_nor_the_rows_that_stay():
    for data in (DATA, made(official=False)):
        small = sequence(data, "CLR", [40, 40, 40, 40], 40)
        large = sequence(data, "CLR", [80, 60, 90, 120], 40, oracle=200)
        same(small.test, large.test)
        assert len(small.rows) == 4
        for one, other in zip(small.rows, large.rows, strict=True):
            assert set(one.all) <= set(other.all)


def test_the_oracle_holds_the_final_step_noise_and_all():
    steps = sequence(DATA, "CLR", [40, 40, 40, 40], 40, oracle=200)
    oracle, final = steps.oracle, steps[3].samples
    assert len(oracle) == 200
    place = {one: k for k, one in enumerate(oracle.id.tolist())}
    same(oracle[[place[one] for one in final.id.tolist()]], final)
    assert (oracle.id - 1000).tolist() == steps.oracle_rows.all.tolist()
    train = learners_split(oracle.y)
    assert train[:160].all()
    assert not train[160:].any()
    richer = steps.with_oracle()
    check_stream(richer)
    same(richer[3].samples, oracle)
    same(richer[2].samples, steps[2].samples)
    assert sequence(DATA, "R", [40, 40], 40).oracle is None
    with pytest.raises(UserError, match="no oracle"):
        sequence(DATA, "R", [40, 40], 40).with_oracle()[1]


def test_noise_is_drawn_anew_in_each_step():
    few = made(per_class=10)  # so few that every image is in every step
    steps = sequence(few, "CL", [40, 40, 40], 20)
    noise = {}
    for t in (1, 2):
        samples = steps[t].samples
        noise[t] = samples.x.astype(int) - few.samples.x[samples.id - 1000]
    one, two = (noise[t][np.argsort(steps.rows[t].all)] for t in (1, 2))
    for first, second in ((noise[1], noise[2]), (one, two)):  # by place in the step, and by image
        assert 0.1 < (first == second).mean() < 0.25  # one in six by chance
    test = steps.test.x.astype(int) - few.samples.x[steps.test.id - 1000]
    assert 0.1 < (test == noise[2][:20]).mean() < 0.25


def test_the_same_three_shifts_in_another_order_end_in_the_same_data():
    one, other = (sequence(DATA, text, [60, 40, 60, 40], 20, oracle=80) for text in ("CLR", "RCL"))
    same(one[3].samples, other[3].samples)
    same(one.test, other.test)
    same(one.oracle, other.oracle)
    assert (one[1].samples.x != other[1].samples.x).any()


def test_seeds_and_names():
    one, again, other = (sequence(DATA, "CLR", [40] * 4, 20, seed=Seed(k)) for k in (0, 0, 1))
    for t in range(4):
        same(one[t].samples, again[t].samples)
        assert set(one.rows[t].all) != set(other.rows[t].all)
        assert t == 0 or set(one.rows[t].all) != set(one.rows[0].all)
    assert set(one.test_rows) != set(other.test_rows)


def test_only_the_step_asked_for_last_is_kept():
    steps = sequence(DATA, "RR", [40] * 3, 20)
    assert steps[1].samples is steps[1].samples
    first = steps[1].samples
    steps[2]
    assert steps[1].samples is not first
    assert len(steps._cached_step) == 1


def shares_of(data, rows):
    """For the first class, how many rows of each sub-class."""
    mine = rows[data.samples.y[rows] == 0]
    return np.bincount(data.samples.group[mine], minlength=5).tolist()


def test_sub_populations_enter_and_leave():
    data = made(per_class=1000, tests=250, subclasses=5)
    steps = sequence(data, "sss", [800, 800, 800, 800], 400, oracle=1600)
    assert [shares_of(data, rows.all) for rows in steps.rows] == [
        [100, 100, 0, 0, 0],
        [66, 66, 68, 0, 0],
        [0, 66, 66, 68, 0],
        [0, 0, 66, 66, 68],
    ]
    assert [shares_of(data, rows.train) for rows in steps.rows] == [
        [80, 80, 0, 0, 0],
        [53, 53, 54, 0, 0],
        [0, 53, 53, 54, 0],
        [0, 0, 53, 53, 54],
    ]
    assert shares_of(data, steps.rows[1].valid) == [13, 13, 14, 0, 0]
    assert shares_of(data, steps.oracle_rows.all) == [0, 0, 133, 133, 134]
    assert set(steps.rows[3].all) <= set(steps.oracle_rows.all)
    for t in range(4):
        train = learners_split(steps[t].samples.y)
        assert train[:640].all()
        assert not train[640:].any()


def test_sub_populations_of_the_test_set():
    data = made(per_class=300, tests=500, subclasses=5)
    steps = sequence(data, "sss", [200] * 4, 1000)
    assert shares_of(data, steps.test_rows) == [0, 0, 83, 83, 84]


def test_without_sub_population_shifts_all_sub_classes_are_drawn():
    data = made(per_class=100, subclasses=5)
    assert shares_of(data, sequence(data, "R", [400, 40], 40).rows[0].all) == [20] * 5


@pytest.mark.parametrize(
    ("arguments", "options", "sentence"),
    [
        (("CLR", [40, 40], 20), {}, "2 sizes are given, and there are 4 steps"),
        (("R", [40, 500], 20), {}, "step 1 asks for 125 samples of class 'a', and there are 100"),
        (("R", [40, 40], 400), {}, "the test set asks for 100 samples of class 'a', and there are 40"),
        (("R", [40, 40], 20), {"oracle": 404}, "the oracle asks for 101 samples of class 'a'"),
        (("R", [40, 40], 20), {"oracle": 39}, "the oracle has 39 samples, fewer than the 40"),
        (("R", [7, 40], 20), {}, "step 0 of 7 samples has 1 of class 'a'"),
        (("R", [40, 40], 3), {}, "the test set of 3 samples has 0 of class 'a'"),
        (("R", [40, 0], 20), {}, "the size of step 1 is 0"),
        (("R", [40, 4.5], 20), {}, "the size of step 1 is 4.5"),
        (("R", [40, 40], -1), {}, "the size of test is -1"),
        (("s", [40, 40], 20), {}, "no sub-classes"),
        (("RX", [40, 40], 20), {}, "no shift 'X'"),
        (("R", [40, 40], 20), {"row_order": "named!"}, "no row_order 'named!'. Did you mean 'named'"),
    ],
)
def test_what_cannot_be_drawn(arguments, options, sentence):
    with pytest.raises(UserError, match=sentence):
        sequence(DATA, *arguments, **options)


def test_data_that_do_not_suit():
    own = made(official=False)
    with pytest.raises(UserError, match="needs an official test set"):
        sequence(own, "R", [40, 40], 20, row_order="reference")
    with pytest.raises(UserError, match="the test set asks for 101 samples of class 'a', and there are 100"):
        sequence(own, "R", [40, 40], 404)
    with pytest.raises(UserError, match="step 0 asks for 90 samples of class 'a', and there are 75"):
        sequence(own, "R", [360, 40], 100)
    numbers = Dataset("n", Samples(np.zeros((9, 2)), np.zeros(9), time=np.zeros(9)), Regression())
    with pytest.raises(UserError, match="no classes"):
        sequence(numbers, "R", [4, 4], 1)
    table = Dataset("t", Samples(np.zeros((40, 2)), np.arange(40) % 2, time=np.zeros(40)), Classification(("a", "b")))
    with pytest.raises(UserError, match="images of shape"):
        sequence(table, "R", [4, 4], 2)
    assert sequence(table, "L", [4, 4], 2)[1].samples.y.sum() == 2
    three = made(subclasses=3)
    with pytest.raises(UserError, match="3 sub-classes, and all of them have entered"):
        sequence(three, "ss", [48, 48, 48], 48)
    with pytest.raises(UserError, match="has 0 of a sub-class of class 'a'"):
        sequence(made(subclasses=5), "s", [40, 8], 48)


def decades():
    """Two classes, 1925 to 2008; the 2000s have 21 of one and 11 of the other."""
    time = np.concatenate(
        [np.full(n, year) for year, n in ((1925, 6), (1931, 20), (1939, 10), (1990, 40), (2003, 12), (2012, 20))]
    )
    y = np.arange(len(time)) % 3 == 0
    return Dataset("d", Samples(np.zeros((len(time), 2)), y.astype(int), time=time), Classification(("m", "f")))


def test_decades_as_steps():
    data = decades()
    steps = period_sequence(data, "decade", first="1930", final="2000")
    check_stream(steps)
    assert steps.names == ("1930s", "1990s", "2000s on")
    assert [len(rows.all) for rows in steps.rows] == [30, 40, 16]
    assert len(steps.test_rows) == 16
    assert data.samples.time[steps.test_rows].min() == 2003
    assert set(steps[0].samples.time) == {1931, 1939}
    final = set(np.flatnonzero(data.samples.time >= 2000))
    assert set(steps.test_rows) | set(steps.rows[2].all) == final
    assert not set(steps.test_rows) & set(steps.rows[2].all)
    for t in range(3):
        train = learners_split(steps[t].samples.y)
        assert train[: len(steps.rows[t].train)].all()
        assert not train[len(steps.rows[t].train) :].any()
    assert steps.oracle is None
    assert period_sequence(data).names == ("1920s", "1930s", "1990s", "2000s", "2010s")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"first": "1880"}, "no period '1880'"),
        ({"first": "1990", "final": "1930"}, "must come after"),
        ({"test": 1.0}, "between 0 and 1"),
        ({"test": 0.01}, "test=0.01 of the 20 sample.* is 0"),
        ({"test": 0.99, "final": "2000"}, "2000s on has 1 sample.* too few"),
    ],
)
def test_decades_that_cannot_be_had(options, sentence):
    with pytest.raises(UserError, match=sentence):
        period_sequence(decades(), **{"period": "decade", **options})


def real(name, file, **options):
    try:
        folder = locate(data_folders(), [file], name, "").parent
    except UserError:
        pytest.skip(f"{file} is not in $DRIFTLINE_DATA or the cache folder")
    return load(name, options, [folder])


def test_the_rows_of_the_reference_on_cifar():
    data = real("cifar10", "cifar-10-batches-py")
    steps = sequence(data, "CLR", PAPER, 5000, oracle=20000, row_order="reference")
    assert [rows.train.sum() for rows in steps.rows] == [119013374, 79769104, 120544804, 81101130]
    assert [rows.valid.sum() for rows in steps.rows] == [30626081, 20283906, 30319404, 19685012]
    assert (steps.test_rows - 50000).sum() == 24934608
    assert steps.oracle_rows.train.sum() == 399517183
    assert set(steps.rows[3].all) <= set(steps.oracle_rows.all)


def test_the_counts_of_the_paper_on_cifar():
    data = real("cifar10", "cifar-10-batches-py")
    steps = sequence(data, "RCL", PAPER, 5000, oracle=20000)
    counts = [(len(rows.train), len(rows.valid)) for rows in (*steps.rows, steps.oracle_rows)]
    assert counts == [(4800, 1200), (3200, 800), (4800, 1200), (3200, 800), (16000, 4000)]
    assert np.bincount(steps.test.y).tolist() == [500] * 10
    final = steps[3].samples
    assert final.x.dtype == np.uint8
    assert final.x.shape == (4000, 32, 32, 3)
    assert (final.x[:, 0, 0] == 0).all()  # a corner of a turned image
    assert (final.y == 9 - data.samples.y[final.id]).all()


def test_sub_populations_of_cifar_in_the_counts_of_the_paper():
    """The labels of all 60,000 images, without the images."""
    try:
        file = locate(data_folders(), ["cifar-100-python-subset/all_labels.npz"], "cifar100", "")
    except UserError:
        pytest.skip("cifar-100-python-subset/all_labels.npz is not in $DRIFTLINE_DATA or the cache folder")
    few = load("cifar100", folders=[file.parent.parent])
    with np.load(file) as labels:
        y, group = (
            np.concatenate([labels[f"{part}_{kind}"] for part in ("train", "test")]) for kind in ("coarse", "fine")
        )
    y, group = y.astype(int), group.astype(int)
    samples = Samples(np.zeros((60000, 1)), y, time=np.zeros(60000), group=group)
    data = Dataset("cifar100", samples, few.task, test=np.arange(60000) >= 50000, subclasses=few.subclasses)
    steps = sequence(data, "sss", PAPER, 5000, oracle=20000)
    assert [(len(rows.train), len(rows.valid)) for rows in steps.rows] == [(4800, 1200), (3200, 800)] * 2
    present = [150, 150], [66, 66, 68], [100, 100, 100], [66, 66, 68]
    for t, (rows, counts) in enumerate(zip(steps.rows, present, strict=True)):
        drawn = np.bincount(group[rows.all], minlength=100)
        for listed in data.subclasses:
            assert drawn[list(listed)].tolist() == [0] * (t - 1) + counts + [0] * (5 - max(t - 1, 0) - len(counts))
    tested = np.bincount(group[steps.test_rows], minlength=100)
    assert all(tested[list(listed)].tolist() == [0, 0, 83, 83, 84] for listed in data.subclasses)
    assert set(steps.rows[3].all) <= set(steps.oracle_rows.all)
    with pytest.raises(UserError, match="row_order='reference' is not possible with a sub-population shift"):
        sequence(data, "sss", PAPER, 5000, row_order="reference")


def test_portraits_by_decade():
    data = real("yearbook", "yearbook_32x32.npz")
    steps = period_sequence(data, "decade", first="1930", final="2000")
    assert len(steps) == 8
    years = data.samples.time
    sizes = [((years >= start) & (years < start + 10)).sum() for start in range(1930, 2000, 10)]
    assert [len(rows.all) for rows in steps.rows[:-1]] == sizes
    last = int((years >= 2000).sum())
    assert len(steps.test_rows) == last // 2
    assert abs(len(steps.rows[7].train) - 0.4 * last) <= 2
    assert abs(len(steps.rows[7].valid) - 0.1 * last) <= 2
