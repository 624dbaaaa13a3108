from __future__ import annotations

import pytest
import torch

from driftline.errors import UserError
from driftline.seeds import MAX_SEEDS, Seed, first_seeds

# These numbers must never change: every published record depends on them.
GOLDEN = {
    "init": 3038139617124118876,
    "lesson 3": 9074711563245376960,
    "largest": 3744358606850983185,
    "numpy": [32, 825, 131, 146, 651],
    "torch": [259, 420, 10, 205, 977],
}


def test_children_are_fixed_forever() -> None:
    assert Seed(0).child("init").value == GOLDEN["init"]
    assert Seed(0).child("lesson", 3).value == GOLDEN["lesson 3"]
    assert Seed(2**64 - 1).child("x").value == GOLDEN["largest"]


def test_generators_are_fixed_forever() -> None:
    assert Seed(0).child("stream").numpy().integers(0, 1000, 5).tolist() == GOLDEN["numpy"]
    rows = torch.randint(1000, (5,), generator=Seed(0).child("batches").torch())
    assert rows.tolist() == GOLDEN["torch"]


def test_a_path_is_its_steps() -> None:
    assert Seed(7).child("a", 1, "b") == Seed(7).child("a").child(1).child("b")


def test_names_parents_and_order_all_matter() -> None:
    seeds = [
        Seed(s).child(*path) for s in (0, 1) for path in (("a",), ("b",), ("a", "b"), ("b", "a"), ("a", 0), ("a", 1))
    ]
    assert len({seed.value for seed in seeds}) == 12


def test_generators_start_anew_each_time_and_leave_the_global_ones_alone() -> None:
    before = torch.random.get_rng_state()
    seed = Seed(2**64 - 1)
    assert seed.numpy().random() == seed.numpy().random()
    assert torch.equal(torch.rand(3, generator=seed.torch()), torch.rand(3, generator=seed.torch()))
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_number_of_seeds_is_refused_before_their_list_fills_the_memory() -> None:
    assert len(first_seeds(MAX_SEEDS)) == MAX_SEEDS
    with pytest.raises(UserError, match="at most 100,000"):
        first_seeds(MAX_SEEDS + 1)
