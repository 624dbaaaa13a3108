"""The order of corruptions and labels: which image comes when, against direct counts and loops."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from driftline.errors import UserError
from driftline.seeds import Seed
from driftline.streams.test_time.arrangement import Arrangement, next_of_class, practical_order
from driftline.streams.test_time.image_files import image_files
from driftline.streams.test_time.markov import MarkovChain
from driftline.streams.test_time.schedule import random_mixture, sequential
from driftline.streams.test_time.stream import CorruptionStream, corruption_stream
from driftline.testing import check_stream
from driftline.types import Samples

N, CLASSES, PER_POINT = 120, 4, 60
SOURCE = Samples(np.zeros((N, 2, 2, 3), np.uint8), np.arange(N) % CLASSES)
STICKY = MarkovChain(CLASSES, 0.9, 3)


def stream(arrangement: Arrangement, n_images: int = 300, batch: int = 16, seed: int = 5) -> CorruptionStream:
    names = ("fog", "snow", "frost")
    schedule = random_mixture(names) if arrangement.domains else sequential(names)
    made = corruption_stream(
        SOURCE,
        schedule,
        n_images=n_images,
        batch=batch,
        images_per_point=PER_POINT,
        seed=Seed(seed),
        crop=False,
        corrupt=lambda images, name, severity, keys: images,
    )
    return made if arrangement == Arrangement() else replace(made, places=arrangement.places(made))


def columns(made: CorruptionStream) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return points, source images and labels of all positions, from the steps."""
    steps = [made[k].samples for k in range(len(made))]
    positions = np.concatenate([step.id for step in steps])
    labels = np.concatenate([step.y for step in steps])
    assert np.array_equal(labels, SOURCE.y[made.rows(positions)])
    return np.concatenate([step.group for step in steps]), made.rows(positions), labels


ALL = {
    "classes": Arrangement("chain", classes=STICKY),
    "one class after another": Arrangement("chain", classes=MarkovChain(CLASSES, 1)),
    "practical": Arrangement("practical", concentration=0.1),
    "domains": Arrangement(domains=MarkovChain(3, 0.8, 2)),
    "both": Arrangement("chain", STICKY, domains=MarkovChain(3, 0.8, 2, "unitta")),
    "practical domains": Arrangement("practical", None, 0.5, MarkovChain(3, 1)),
}


@pytest.mark.parametrize("name", ALL)
def test_streams_keep_their_contract_and_depend_on_the_seed_and_not_on_batches(name: str) -> None:
    made = stream(ALL[name])
    check_stream(made)
    found = columns(made)
    for one, same, other in zip(
        found, columns(stream(ALL[name], batch=7)), columns(stream(ALL[name], seed=6)), strict=True
    ):
        assert np.array_equal(one, same)
        assert not np.array_equal(one, other) or name == "one class after another" or one is found[0]


def test_labels_and_corruptions_are_the_states_of_their_chains() -> None:
    points, _, labels = columns(stream(ALL["both"]))
    chains = ALL["both"]
    assert chains.classes is not None
    assert chains.domains is not None
    assert np.array_equal(labels, chains.classes.states(300, Seed(5).child("labels")))
    assert np.array_equal(points, chains.domains.states(300, Seed(5).child("domains")))
    points, _, labels = columns(stream(ALL["classes"]))
    assert np.array_equal(points, np.arange(300) // PER_POINT)
    assert np.array_equal(labels, chains.classes.states(300, Seed(5).child("labels")))


def test_no_image_of_a_class_repeats_in_a_point_before_all_have_occurred() -> None:
    points, rows, labels = columns(stream(ALL["both"], 2000))
    assert np.bincount(points * CLASSES + labels).max() > N // CLASSES, "there are repeats"
    for point in range(3):
        for label in range(CLASSES):
            counts = np.bincount(rows[(points == point) & (labels == label)], minlength=N)[SOURCE.y == label]
            assert np.ptp(counts) <= 1


def test_one_class_after_another_begins_anew_with_each_corruption() -> None:
    _, _, labels = columns(stream(ALL["one class after another"], 180))
    assert labels.tolist() == np.repeat(np.arange(CLASSES), 15).tolist() * 3
    over_blocks = Arrangement("chain", MarkovChain(CLASSES, 1), domains=MarkovChain(3, 1, 2))
    points, _, labels = columns(stream(over_blocks, 70))
    assert np.bincount(points).tolist() == [32, 22, 16], "shares proportional to 2, sqrt 2 and 1"
    assert labels.tolist() == np.repeat(list(range(4)) * 3, [8] * 4 + [6, 5, 5, 6] + [4] * 4).tolist()
    over_all = Arrangement("chain", MarkovChain(CLASSES, 1), domains=MarkovChain(3, 0.5))
    assert columns(stream(over_all, 80))[2].tolist() == np.repeat(np.arange(CLASSES), 20).tolist()


def test_the_practical_stream_has_the_same_images_in_another_order() -> None:
    _, rows, labels = columns(stream(ALL["practical"]))
    _, plain, _ = columns(stream(Arrangement()))
    for start in range(0, 300, PER_POINT):
        part = slice(start, start + PER_POINT)
        assert sorted(rows[part]) == sorted(plain[part])
        blocks = 1 + np.count_nonzero(np.diff(labels[part]))
        assert blocks <= CLASSES**2 < PER_POINT // 2
    assert not np.array_equal(rows, plain)


@pytest.mark.parametrize(
    ("concentration", "same", "classes"), [(0.01, 0.998, 1.1), (0.1, 0.994, 1.4), (1.0, 0.990, 1.6), (10.0, 0.990, 1.6)]
)
def test_the_concentration_hardly_sets_the_correlation(concentration: float, same: float, classes: float) -> None:
    """Shares of neighbors with one label, and classes among 64 images, for ten classes of 1,000 images."""
    rng, labels = np.random.default_rng(0), np.arange(10_000) % 10
    follows, among = [], []
    for _ in range(10):
        order = labels[practical_order(labels, concentration, rng)]
        assert np.array_equal(np.sort(order), np.sort(labels))
        follows.append((np.diff(order) == 0).mean())
        among.append(np.mean([len(np.unique(part)) for part in np.split(order[:9984], 156)]))
    assert np.mean(follows) == pytest.approx(same, abs=0.0011)
    assert np.mean(among) == pytest.approx(classes, abs=0.11)


def test_the_classes_of_a_slot_come_in_random_order() -> None:
    """Of few images with large concentrations each of two classes has a part of each of the two slots."""
    labels, found = np.arange(400) % 2, Counter[tuple[int, ...]]()
    for seed in range(200):
        order = labels[practical_order(labels, 100.0, np.random.default_rng(seed))]
        found[tuple(order[[0, -1]].tolist())] += 1  # the first class of the first slot, the last of the last
    assert len(found) == 4
    assert min(found.values()) > 25


def test_a_chain_of_classes_is_far_less_correlated() -> None:
    labels = MarkovChain(10, 0.95).states(64_000, Seed(0))
    assert np.mean([len(np.unique(part)) for part in np.split(labels, 1000)]) == pytest.approx(3.5, abs=0.2)


def test_the_next_image_of_a_class_against_a_loop() -> None:
    rng = np.random.default_rng(7)
    labels, wanted = rng.integers(0, 5, 40), rng.integers(0, 5, 200)
    mixed = np.random.default_rng(1).permutation(40)
    queues = {k: [row for row in mixed if labels[row] == k] for k in range(5)}
    seen: Counter[int] = Counter()
    expected = []
    for k in wanted.tolist():
        expected.append(queues[k][seen[k] % len(queues[k])])
        seen[k] += 1
    assert next_of_class(wanted, labels, np.random.default_rng(1)).tolist() == expected
    with pytest.raises(UserError, match="class 7 of the data has no image"):
        next_of_class(np.array([0, 7]), labels, rng)


def test_the_card_has_the_shares() -> None:
    card = ALL["both"].to_card()
    assert card["label_order"] == "chain"
    assert card["domain_chain"]["shares"] == [0.453082, 0.320377, 0.226541]
    assert card["domain_chain"]["stay"] == [0.8, 0.717157, 0.6]
    assert ALL["practical"].to_card() == {"label_order": "practical", "label_concentration": 0.1}


def test_published_images_follow_the_chains_too(tmp_path: Path) -> None:
    """Arrays as of CIFAR-10-C, whose pixels name corruption and row; a batch has several corruptions."""
    n, names = 40, ("fog", "snow")
    for k, name in enumerate(names):
        x = np.zeros((5 * n, 4, 4, 3), np.uint8)
        x[..., 0], x[..., 1] = k, (np.arange(5 * n) % n)[:, None, None]
        np.save(tmp_path / f"{name}.npy", x)
    np.save(tmp_path / "labels.npy", np.tile(np.arange(n) % CLASSES, 5))
    settings = {"n_images": 200, "batch": 16, "images_per_point": 50, "seed": Seed(1)}
    plain = image_files(tmp_path, random_mixture(names), tuple("abcd"), **settings)
    chains = Arrangement("chain", STICKY, domains=MarkovChain(2, 0.7))
    made = replace(plain, places=chains.places(plain))
    check_stream(made)
    samples = Samples.concat([made[k].samples for k in range(len(made))])
    assert chains.domains is not None
    assert samples.group is not None
    assert np.array_equal(samples.group, chains.domains.states(200, Seed(1).child("domains")))
    assert np.array_equal(samples.x[:, 0, 0, 0], samples.group)
    assert np.array_equal(samples.y, STICKY.states(200, Seed(1).child("labels")))
    assert np.array_equal(samples.x[:, 0, 0, 1] % CLASSES, samples.y)
