"""Which corruption follows which: the published orders, and schedules made of paths."""

import hashlib
import json
from itertools import islice, pairwise

import numpy as np
import pytest

from driftline.errors import UserError
from driftline.seeds import Seed
from driftline.streams import AccuracyMatrices, corruption_path
from driftline.streams.test_time.schedule import (
    EASY_SUBSET,
    SUBSETS,
    TARGET_ACCURACIES,
    CorruptionPair,
    Schedule,
    all_orders,
    constant_difficulty,
    corruption_names,
    gradual,
    random_mixture,
    random_permutation,
    reference_order,
    sequential,
)

PUBLISHED = {  # difficulty and seed: a hash of the 800 corruptions that are published of its order, and the first three
    ("easy", 43): ("e80d8400335ff75e", "gaussian_noise glass_blur elastic"),
    ("easy", 44): ("12f44a2e00e14e86", "zoom_blur frost elastic"),
    ("easy", 45): ("6e418bc0aac1c038", "glass_blur zoom_blur snow"),
    ("medium", 43): ("755f7cadbfb64acc", "gaussian_noise glass_blur elastic"),
    ("medium", 44): ("e92621fd5c24298e", "zoom_blur frost elastic"),
    ("medium", 45): ("084b6f7afb43addb", "glass_blur zoom_blur snow"),
    ("hard", 43): ("a2af3299e8346784", "gaussian_noise impulse_noise shot_noise"),
    ("hard", 44): ("57a0c6a452caf1be", "contrast gaussian_noise shot_noise"),
    ("hard", 45): ("cacacc052110b0a2", "impulse_noise contrast impulse_noise"),
}
UNIFORM = SUBSETS["uniform"]
SEVERITIES = np.arange(21) / 4


def decaying(names, clean=76.0):
    """A matrix for every pair, each corruption with a decay of its own."""
    scale = {name: 2.6 + 2.0 * k / len(names) for k, name in enumerate(names)}
    lost = {name: np.exp(-((SEVERITIES / s) ** 1.8)) for name, s in scale.items()}
    return AccuracyMatrices({(a, b): clean * np.outer(lost[a], lost[b]) for a in names for b in names if a != b})


@pytest.mark.parametrize(("difficulty", "seed"), PUBLISHED)
def test_the_orders_are_those_of_the_released_generator(difficulty, seed):
    hashed, first = PUBLISHED[difficulty, seed]
    order = list(islice(reference_order(SUBSETS[difficulty], seed), 800))
    assert " ".join(order[:3]) == first
    assert hashlib.sha256(" ".join(order).encode()).hexdigest()[:16] == hashed


def test_the_subsets_are_those_of_the_released_generator():
    assert [len(SUBSETS[name]) for name in ("easy", "medium", "hard", "uniform", "holdout")] == [14, 13, 4, 15, 4]
    assert set(UNIFORM) - set(EASY_SUBSET) == {"brightness"}
    assert set(EASY_SUBSET) - set(SUBSETS["medium"]) == {"jpeg"}
    assert TARGET_ACCURACIES == {"easy": 40, "medium": 20, "hard": 0}


def test_no_corruption_follows_itself():
    order = list(islice(reference_order(("a", "b", "c"), 0), 300))
    assert all(a != b for a, b in pairwise(order))
    assert set(order) == {"a", "b", "c"}
    with pytest.raises(UserError, match="at least two"):
        next(reference_order(("a",), 0))


def test_transitions_follow_the_paths_of_their_pairs():
    names = ("fog", "snow", "frost")
    matrices = decaying(names)
    schedule = constant_difficulty(matrices, 40, names, 7, 100)
    assert len(schedule.points) == 100
    order, at = list(islice(reference_order(names, 7), 10)), 0
    for first, second in pairwise(order):
        path = corruption_path(matrices[first, second], 40)
        expected = [CorruptionPair(first, i / 4, second, j / 4) for i, j in path]
        assert list(schedule.points[at : at + len(path)]) == expected[: 100 - at]
        at += len(path)
        if at >= 100:
            return
    raise AssertionError("the order was used up")


def test_transitions_keep_the_accuracy_near_the_target():
    names = SUBSETS["medium"]
    matrices = decaying(names)
    schedule = constant_difficulty(matrices, 20, names, 43, 500, "least-squares")
    accuracy = [matrices[p.first, p.second][round(4 * p.s1), round(4 * p.s2)] for p in schedule.points]
    assert abs(np.mean(accuracy) - 20) < 1
    assert np.sqrt(np.mean((np.array(accuracy) - 20) ** 2)) < 4


def test_coarse_matrices_are_made_finer_first():
    names = ("fog", "snow")
    fine = decaying(names)
    coarse = AccuracyMatrices({pair: matrix[::2, ::2] for pair, matrix in fine.by_pair.items()})
    points = constant_difficulty(coarse, 40, names, 1, 60).points
    assert any(4 * p.s1 % 2 or 4 * p.s2 % 2 for p in points), "steps of a quarter, not of a half"
    path = corruption_path(coarse.at(21)["snow", "fog"], 40)
    assert [(p.s1, p.s2) for p in points if p.first == "snow"][: len(path)] == [(i / 4, j / 4) for i, j in path]


def test_a_schedule_describes_itself_without_repeating_paths():
    names = ("fog", "snow")
    schedule = constant_difficulty(decaying(names), 40, names, 3, 60)
    revealed = schedule.to_card()
    laid = [[s1, s2] for name in revealed["order"] for s1, s2 in revealed["paths"][name]]
    assert laid == [[p.s1, p.s2] for p in schedule.points]
    for made in (schedule, sequential(UNIFORM), gradual(names), random_mixture(names)):
        assert Schedule.from_card(json.loads(json.dumps(made.to_card()))) == made
    assert len(revealed["paths"]) <= 3, "two pairs, one of which was cut off at the end"
    assert revealed["order"][0] in ("fog > snow", "snow > fog")


def test_concatenated_gradual_and_mixed():
    names = ("fog", "snow")
    assert sequential(names).points == (CorruptionPair("fog", 5, "", 0), CorruptionPair("snow", 5, "", 0))
    assert [p.s1 for p in gradual(names).points] == [1, 2, 3, 4, 5, 4, 3, 2, 1] * 2
    assert [p.first for p in gradual(names).points] == ["fog"] * 9 + ["snow"] * 9
    assert random_mixture(names).mixed
    assert sequential(names).point(5) == CorruptionPair("snow", 5, "", 0), "after the last comes the first"
    assert sequential(names).to_card() == {
        "order": ["fog", "snow"],
        "paths": {"fog": [[5.0, 0.0]], "snow": [[5.0, 0.0]]},
        "mixed": False,
    }


def test_ten_drawn_orders_and_all_orders_of_the_held_out():
    ten = [random_permutation(UNIFORM, k) for k in range(10)]
    assert len(set(ten)) == 10
    assert all(sorted(order) == sorted(UNIFORM) for order in ten)
    assert random_permutation(UNIFORM, 3) == ten[3]
    assert random_permutation(UNIFORM, 3, Seed(1)) != ten[3]
    assert len(set(all_orders(SUBSETS["holdout"]))) == 24


def test_names_are_checked():
    assert corruption_names("hard") == SUBSETS["hard"]
    assert corruption_names("fog, snow") == ("fog", "snow")
    assert corruption_names(["brightness", "spatter"]) == ("brightness", "spatter")
    with pytest.raises(UserError, match="Did you mean 'snow'"):
        corruption_names("snwo")
    with pytest.raises(UserError, match="each corruption once"):
        corruption_names("fog,fog")


def test_points_read_well():
    assert str(CorruptionPair("fog", 0.25, "snow", 5.0)) == "fog 0.25 + snow 5"
    assert str(CorruptionPair("fog", 0.0, "snow", 5.0)) == "snow 5"
    assert str(CorruptionPair("fog", 0.0, "snow", 0.0)) == "clean"


def test_a_pair_that_was_not_calibrated_is_named():
    with pytest.raises(UserError, match=r"no matrix for (fog|jpeg) followed by (fog|jpeg)"):
        constant_difficulty(decaying(("fog", "snow")), 40, ("fog", "jpeg"), 0, 10)
