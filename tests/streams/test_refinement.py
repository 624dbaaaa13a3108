"""Episodes are made up as Algorithm 1 says, in the paper's and in the code's variant, and never repeat a query."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftline.errors import UserError
from driftline.metrics.refinement import composition
from driftline.seeds import Seed
from driftline.streams import QueryStream, pools, queries
from driftline.streams.refinement import episode_counts, major_clusters
from driftline.testing import check_stream
from driftline.types import Samples

RELEASED = "nli/cmr_nli_submission_stream.T=100,b=64,alpha=0.9,beta=0.5,gamma=0.8.json.gz"


def source(n: int, k: int) -> Samples:
    """Samples whose x and id both tell group and row."""
    ids = 10_000 * k + np.arange(n)
    return Samples(ids[:, None].astype(float), ids % 3, ids, time=np.arange(n) % 7, group=np.full(n, 99))


def world(*sizes: int) -> tuple[Samples, dict[str, Samples]]:
    return source(sizes[0], 0), {"abcdefg"[k - 1]: source(n, k) for k, n in enumerate(sizes[1:], 1)}


LARGE = world(400, 300, 300, 300, 300, 300)


def major_and_others(stream: QueryStream) -> tuple[np.ndarray, np.ndarray]:
    """Per episode, the count of the major cluster and those of the others in falling order."""
    counts = stream.composition
    steps = np.arange(len(stream))
    rest = np.array([np.delete(row[1:], major - 1) for row, major in zip(counts, stream.majors, strict=True)])
    return counts[steps, stream.majors], -np.sort(-rest, axis=1)


@pytest.mark.parametrize(
    ("t", "floor", "nearest"),
    [
        (1, (64, 0, 0), (64, 0, 0)),
        (2, (57, 5, 2), (58, 5, 1)),
        (3, (51, 10, 3), (52, 10, 2)),
        (5, (41, 18, 5), (42, 18, 4)),
        (10, (24, 32, 8), (25, 31, 8)),
        (20, (8, 44, 12), (9, 44, 11)),
        (30, (3, 48, 13), (3, 49, 12)),
        (47, (0, 51, 13), (1, 50, 13)),
        (50, (0, 51, 13), (0, 51, 13)),
        (100, (0, 51, 13), (0, 51, 13)),
    ],
)
def test_the_table_of_shares(t: int, floor: tuple[int, ...], nearest: tuple[int, ...]) -> None:
    assert episode_counts(t, 64, 0.9, 0.8) == floor
    assert episode_counts(t, 64, 0.9, 0.8, "round") == nearest
    for others in ("pooled", "equal"):
        for rounding, expected in (("floor", floor), ("round", nearest)):
            stream = queries(*LARGE, rounding=rounding, others=others)
            major, rest = major_and_others(stream)
            found = stream.composition[t - 1, 0], major[t - 1], rest[t - 1].sum()
            assert found == expected


def test_how_many_upstream_queries_a_stream_has() -> None:
    assert queries(*LARGE).composition[:, 0].sum() == 612
    assert queries(*LARGE, rounding="round").composition[:, 0].sum() == 640


def test_floors_do_not_fall_for_floating_point() -> None:
    assert episode_counts(2, 100, 0.29, 1.0) == (29, 71, 0)  # 100 * .29 is 28.999999999999996
    assert episode_counts(1, 64, 0.0, 0.5) == (0, 32, 32)
    assert episode_counts(9, 64, 1.0, 0.5) == (64, 0, 0)
    assert episode_counts(2, 5, 0.0, 0.5, "round") == (0, 2, 3)  # ties go to the even number


@pytest.mark.parametrize(("gamma", "expected"), [(0.8, [4, 3, 3, 3]), (0.2, [15, 12, 12, 12])])
def test_equal_split_and_what_is_left_over(gamma: float, expected: list[int]) -> None:
    """13 is 3 + 3 + 3 + 3 and one more of one cluster; 51 is 12 of each and 3 more."""
    stream = queries(*LARGE, gamma=gamma, others="equal", rounding="round")
    _, rest = major_and_others(stream)
    assert {tuple(row) for row in rest[60:]} == {tuple(expected)}
    late = zip(stream.composition[60:], stream.majors[60:], strict=True)
    extra = {int(np.argmax(np.where(np.arange(1, 6) == major, 0, row[1:]))) for row, major in late}
    assert len(extra) > 2


def test_pooled_others_are_drawn_in_proportion_to_their_size() -> None:
    sizes = (200, 900, 300, 150)
    stream = queries(*world(*sizes), episodes=400, alpha=0.0, beta=0.0, gamma=0.5)
    counts = stream.composition[stream.majors == 2]
    assert counts[:, 1].sum() / counts[:, [1, 3]].sum() == pytest.approx(900 / 1050, abs=0.02)
    equal = queries(*world(*sizes), episodes=400, alpha=0.0, beta=0.0, gamma=0.5, others="equal")
    assert set(equal.composition[equal.majors == 2][:, 1]) == {16}


@pytest.mark.parametrize(("beta", "length"), [(0.1, 1.11), (0.5, 2.0), (0.9, 10.0)])
def test_the_chain_stays_as_often_as_it_should(beta: float, length: float) -> None:
    majors = major_clusters(5, 60_000, beta, np.random.default_rng(3))
    stays = majors[1:] == majors[:-1]
    assert stays.mean() == pytest.approx(beta, abs=0.01)
    assert len(majors) / (1 + (~stays).sum()) == pytest.approx(length, rel=0.03)
    law = np.bincount(majors, minlength=6)[1:] / len(majors)
    np.testing.assert_allclose(law, 0.2, atol=0.02)
    moves = (majors[1:] - majors[:-1])[~stays] % 5  # every other cluster is as likely
    np.testing.assert_allclose(np.bincount(moves, minlength=5)[1:] / len(moves), 0.25, atol=0.02)


def test_the_first_cluster_is_uniform_and_the_ends_of_beta_hold() -> None:
    first = [major_clusters(4, 1, 0.5, Seed(k).numpy())[0] for k in range(4000)]
    np.testing.assert_allclose(np.bincount(first, minlength=5)[1:] / 4000, 0.25, atol=0.03)
    assert len(set(major_clusters(4, 50, 1.0, Seed(0).numpy()))) == 1
    never = major_clusters(4, 500, 0.0, Seed(0).numpy())
    assert (never[1:] != never[:-1]).all()


@settings(max_examples=40, deadline=None)
@given(
    size=st.integers(1, 24),
    alpha=st.floats(0, 1),
    beta=st.floats(0, 1),
    gamma=st.floats(0, 1),
    rounding=st.sampled_from(["floor", "round"]),
    others=st.sampled_from(["pooled", "equal"]),
    seed=st.integers(0, 2**32),
)
def test_episodes_are_full_and_no_query_comes_twice_in_one(size: int, seed: int, **setting: Any) -> None:
    stream = queries(*world(24, 24, 24, 24), episodes=6, queries_per_episode=size, seed=Seed(seed), **setting)
    assert len(stream) == 6
    for step in stream:
        samples = step.samples
        assert len(samples) == size
        assert len(np.unique(samples.id)) == size
        np.testing.assert_array_equal(samples.group, samples.id // 10_000)
        np.testing.assert_array_equal(samples.x[:, 0], samples.id)
        np.testing.assert_array_equal(samples.y, samples.id % 3)
        np.testing.assert_array_equal(np.bincount(samples.group, minlength=4), stream.composition[step.index])


def test_episodes_are_shuffled() -> None:
    assert (np.diff(queries(*LARGE)[9].samples.group) != 0).sum() > 10


def test_the_same_seed_and_number_give_the_same_stream() -> None:
    def ids(**setting: Any) -> np.ndarray:
        return np.concatenate([step.samples.id for step in queries(*LARGE, episodes=20, **setting)])

    np.testing.assert_array_equal(ids(seed=Seed(4)), ids(seed=Seed(4)))
    assert not np.array_equal(ids(seed=Seed(4)), ids(seed=Seed(5)))
    assert not np.array_equal(ids(number=0), ids(number=1))
    assert len({tuple(queries(*LARGE, episodes=20, number=k).majors) for k in range(8)}) == 8


def test_later_episodes_do_not_move_earlier_ones() -> None:
    short, long = queries(*LARGE, episodes=5), queries(*LARGE, episodes=50)
    assert short[4].samples.id.tolist() == long[4].samples.id.tolist()


def test_queries_come_again_only_where_they_may() -> None:
    given = world(200, 300, 300, 300)
    for repeats in (True, False):
        stream = queries(*given, episodes=10, queries_per_episode=30, alpha=0.7, repeats=repeats)
        seen = np.unique(np.concatenate([step.samples.id for step in stream]))
        assert (len(seen) < 300) == repeats
    with pytest.raises(UserError, match=r"episode 2 needs \d+ queries of 'upstream', and \d+ are left.*repeats=True"):
        queries(*world(40, 300, 300), episodes=10, queries_per_episode=30, repeats=False)
    with pytest.raises(UserError, match="the other clusters together"):
        queries(*world(40, 90, 90), episodes=9, queries_per_episode=30, alpha=0, beta=1, gamma=0, repeats=False)


@pytest.mark.parametrize("x", ["array", "list"])
def test_the_stream_keeps_the_contract(x: str) -> None:
    upstream, clusters = LARGE
    if x == "list":
        upstream = Samples([f"text {i}" for i in upstream.id], upstream.y, upstream.id)
        clusters = {k: Samples([f"text {i}" for i in v.id], v.y, v.id) for k, v in clusters.items()}
    stream = queries(upstream, clusters, episodes=12)
    check_stream(stream)
    assert stream.names == ("upstream", "a", "b", "c", "d", "e")
    assert (stream[0].time, stream[-1].time, stream[-1].index) == ("1", "12", 11)
    if x == "list":
        assert stream[5].samples.x == [f"text {i}" for i in stream[5].samples.id]


@pytest.mark.parametrize(
    ("sizes", "setting", "sentence"),
    [
        ((99, 99, 99), {"alpha": 1.1}, "alpha is 1.1: give a number from 0 to 1"),
        ((99, 99, 99), {"beta": -0.1}, "beta is -0.1"),
        ((99, 99, 99), {"gamma": float("nan")}, "gamma is nan"),
        ((99, 99, 99), {"episodes": 0}, "episodes is 0"),
        ((99, 99, 99), {"queries_per_episode": 6.5}, "queries_per_episode is 6.5"),
        ((99, 99, 99), {"rounding": "ceil"}, "no rounding 'ceil'"),
        ((99, 99, 99), {"others": "pool"}, "Did you mean 'pooled'"),
        ((99,), {}, "at least one cluster"),
        ((99, 99), {"gamma": 1.0}, "beta = 0.5 and gamma = 1.0 need at least two clusters"),
        ((99, 99), {"beta": 1.0}, "need at least two clusters"),
        ((63, 99, 99), {}, "'upstream' has 63 samples, and an episode may need 64"),
        ((99, 50, 99), {}, "'a' has 50 samples, and an episode may need 51"),
        ((99, 99, 12), {"gamma": 0.1}, "the clusters other than 'a' have 12 samples"),
        ((0, 70, 70, 14), {"alpha": 0.0, "gamma": 0.55, "others": "equal"}, "'c' has 14 samples, .* need 35"),
    ],
)
def test_what_cannot_be_drawn_is_refused(sizes: tuple[int, ...], setting: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        queries(*world(*sizes), **setting)


def test_whether_a_configuration_is_accepted_is_not_luck() -> None:
    for number in range(5):
        with pytest.raises(UserError, match="'a' has 50 samples"):
            queries(*world(99, 50, 99, 99, 99, 99), beta=1.0, number=number)


def test_one_cluster_and_no_upstream_are_enough_where_no_other_is_asked_for() -> None:
    assert queries(*world(64, 64), beta=1.0, gamma=1.0).composition[:, 1].max() == 64
    assert queries(*world(0, 64), alpha=0.0, beta=1.0, gamma=1.0).composition[0].tolist() == [0, 64]


def test_ids_must_tell_samples_apart() -> None:
    with pytest.raises(UserError, match="the id 0 occurs more than once, in 'upstream' and 'b'"):
        queries(source(99, 0), {"a": source(99, 1), "b": source(99, 0)})
    with pytest.raises(UserError, match="the id 1 occurs more than once, in 'a':"):
        queries(source(99, 0)[2:], {"a": Samples(np.zeros(60), np.zeros(60), np.ones(60, int)), "b": source(99, 2)})
    with pytest.raises(UserError, match="cannot be called 'upstream'"):
        queries(source(99, 0), {"upstream": source(99, 1), "b": source(99, 2)})


def test_pools_are_disjoint_and_lose_nothing() -> None:
    upstream, clusters = world(1000, 500, 600)
    divided = pools(upstream, clusters)
    assert len(divided.upstream_set) == 512
    assert np.bincount(divided.held_out.group).tolist() == [0, 256, 256]
    np.testing.assert_array_equal(divided.held_out.group, divided.held_out.id // 10_000)
    assert [len(divided.validation.upstream), len(divided.test.upstream)] == [122, 366]
    assert [len(divided.validation.clusters["b"]), len(divided.test.clusters["b"])] == [86, 258]
    streams = [samples for s in (divided.validation, divided.test) for samples in (s.upstream, *s.clusters.values())]
    parts = [divided.upstream_set, divided.held_out, *streams]
    ids = np.concatenate([part.id for part in parts])
    assert len(ids) == len(np.unique(ids)) == 2100
    stream = queries(*divided.test, episodes=5)
    seen = np.concatenate([step.samples.id for step in stream])
    kept = np.concatenate([divided.test.upstream.id, *(s.id for s in divided.test.clusters.values())])
    assert np.isin(seen, kept).all()


def test_pools_are_shared_on_request_and_depend_on_the_seed() -> None:
    given = world(1000, 500, 600)
    shared = pools(*given, validation=None)
    assert shared.validation.upstream.id.tolist() == shared.test.upstream.id.tolist()
    assert len(shared.test.upstream) == 488
    assert pools(*given).held_out.id.tolist() == shared.held_out.id.tolist()
    assert pools(*given, seed=Seed(1)).held_out.id.tolist() != shared.held_out.id.tolist()


def test_samples_of_one_original_have_one_use() -> None:
    upstream, clusters = world(1000, 1000, 1000)
    base = {one: one % 10_000 for samples in (upstream, *clusters.values()) for one in samples.id.tolist()}
    divided = pools(upstream, clusters, upstream_set=100, held_out=60, base=base)
    streams = [
        np.concatenate([s.upstream.id, *(c.id for c in s.clusters.values())])
        for s in (divided.validation, divided.test)
    ]
    originals = [set((ids % 10_000).tolist()) for ids in (divided.upstream_set.id, divided.held_out.id, *streams)]
    assert [len(one) for one in originals] == [100, 60, 210, 630]
    assert len(set.union(*originals)) == 1000
    assert np.bincount(divided.held_out.group).tolist() == [0, 60, 60]
    assert [len(s) for s in (divided.validation.upstream, divided.test.clusters["b"])] == [210, 630]
    shared = pools(upstream, clusters, upstream_set=100, held_out=60, validation=None, base=base)
    assert len(shared.validation.upstream) == len(shared.test.clusters["a"]) == 840
    with pytest.raises(UserError, match="'upstream' has 1,000 samples: 1,000 are held out"):
        pools(upstream, clusters, upstream_set=900, held_out=100, base=base)


@pytest.mark.parametrize(
    ("sizes", "setting", "sentence"),
    [
        ((400, 500), {}, "'upstream' has 400 samples: 512 are held out"),
        ((600, 256), {}, "'a' has 256 samples: 256 are held out"),
        ((600, 500), {"held_out": 0}, "but at least 1"),
        ((600, 500), {"validation": 1.0}, "between 0 and 1, not 1.0"),
        ((600,), {}, "at least one cluster"),
    ],
)
def test_pools_that_cannot_be_divided_are_refused(sizes: tuple[int, ...], setting: Any, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        pools(*world(*sizes), **setting)


def released(folders: list[Path]) -> list[list[dict[str, Any]]]:
    for folder in folders:
        if (folder / RELEASED).is_file():
            with gzip.open(folder / RELEASED) as file:
                return list(json.load(file))
    pytest.skip(f"no {RELEASED} in the data folders: set DRIFTLINE_DATA to one that holds it")


def test_the_released_stream_is_of_the_round_and_equal_variant(real_data: list[Path]) -> None:
    episodes = released(real_data)
    names = ["snli", "multi_nli_matched", "multi_nli_mismatched", "scitail", "anli"]
    theirs = composition([[names.index(query["data_name"]) for query in episode] for episode in episodes], 5)
    ours, floor = (queries(*world(400, 300, 300, 300, 300), rounding=r, others="equal") for r in ("round", "floor"))
    major, rest = major_and_others(ours)
    made = np.column_stack([ours.composition[:, 0], major, rest])
    np.testing.assert_array_equal(theirs[:, 0], ours.composition[:, 0])
    by_size = np.column_stack([theirs[:, 0], -np.sort(-theirs[:, 1:], axis=1)])
    # The major cluster is always the largest, so falling order separates it from the others.
    np.testing.assert_array_equal(by_size, made)
    assert (theirs[:, 0] != floor.composition[:, 0]).sum() > 20
    stays = np.mean(np.diff(theirs[2:, 1:].argmax(axis=1)) == 0)
    assert stays == pytest.approx(0.5, abs=0.15)
