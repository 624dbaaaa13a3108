"""Label rules against numbers worked out by hand, and against plausible wrong versions."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from driftline import registry
from driftline.errors import UserError
from driftline.label_rules import LabelRule, Query, RuleChain, Tally
from driftline.label_rules.acted_on import ActedOn
from driftline.label_rules.base import ThresholdQuery
from driftline.label_rules.class_noise import ClassNoise
from driftline.label_rules.drift_query import DriftQuery
from driftline.label_rules.geometric_delay import GeometricDelay
from driftline.label_rules.lognormal_delay import LognormalDelay
from driftline.label_rules.margin_query import MarginQuery
from driftline.label_rules.random_query import RandomQuery
from driftline.label_rules.symmetric_noise import SymmetricNoise
from driftline.label_rules.uncertainty_query import UncertaintyQuery
from driftline.label_rules.weibull_delay import WeibullDelay
from driftline.reveal import RevealPolicy
from driftline.seeds import Seed
from driftline.tasks import Classification, Regression, Task
from driftline.testing import check_label_rule
from driftline.types import Answers, Reveal, Samples, Step

TASK = Classification(("a", "b", "c", "d"))
GRID = (np.arange(100_000) + 0.5) / 100_000


def prepared(rule: Any, task: Task = TASK, seed: int = 0) -> Any:
    rule.prepare(task, Seed(seed))
    return rule


def on_grid(rule: Any) -> Any:
    """A rule whose random numbers are evenly spaced."""
    prepared(rule)
    rule.draws = lambda positions: GRID[positions]
    return rule


def certain(*largest: float) -> Answers:
    """Answers whose largest score is given, the rest on the second class."""
    scores = np.array([[p, 1 - p, 0, 0] for p in largest])
    return Answers(scores.argmax(axis=1), scores)


@pytest.mark.parametrize("name", registry.names("label-rule"))
def test_every_label_rule_keeps_the_contract(name: str) -> None:
    check_label_rule(registry.get("label-rule", name))


@pytest.mark.parametrize(
    "make",
    [
        partial(DriftQuery, share=0.6, burst=30),
        partial(UncertaintyQuery, share=0.3, randomized=True),
        partial(ActedOn, classes=("low",), threshold=0.6, explore=0.2),
        partial(RandomQuery, share=1.0),
    ],
)
def test_rules_with_other_settings_keep_the_contract(make: Any) -> None:
    check_label_rule(make)


class IgnoresItsBudget(RandomQuery):
    def selects(self, answers: Answers, positions: np.ndarray) -> np.ndarray:
        return self.draws(positions) < 3 * self.share


class Forgets(MarginQuery):
    def state(self) -> dict[str, Any]:
        return {**super().state(), "asked": 0}


class LeastCertainOfTheStep(LabelRule):
    """It knows the answers to samples that come later in its step."""

    uses_answers = True

    def selects(self, answers: Answers, positions: np.ndarray) -> np.ndarray:
        largest = answers.scores.max(axis=1)  # type: ignore[union-attr]
        return largest <= np.sort(largest)[len(largest) // 10]


class LateByClass(LabelRule):
    """Its delays depend on labels that nobody has seen."""

    delays = True

    def shown(self, y: np.ndarray, positions: np.ndarray) -> np.ndarray:
        self.y = y
        return y

    def delay(self, positions: np.ndarray) -> np.ndarray:
        return 200 * self.y


class GlobalNoise(LabelRule):
    def shown(self, y: np.ndarray, positions: np.ndarray) -> np.ndarray:
        return np.where(np.random.random(len(y)) < 0.2, 0, y)


class NoiseByStep(SymmetricNoise):
    """Its numbers are drawn by place in the step."""

    def shown(self, y: np.ndarray, positions: np.ndarray) -> np.ndarray:
        return super().shown(y, positions - positions[0] if len(positions) else positions)


class NoClass(LabelRule):
    def shown(self, y: np.ndarray, positions: np.ndarray) -> np.ndarray:
        return y + 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (IgnoresItsBudget, "with a budget of 10%"),
        (Forgets, "does not continue in the same way"),
        (LeastCertainOfTheStep, "labels depend on the size of steps"),
        (LateByClass, "labels that never arrive decide"),
        (GlobalNoise, "random"),
        (NoiseByStep, "labels depend on the size of steps"),
        (NoClass, "is not a class"),
    ],
)
def test_wrong_rules_break_the_contract(wrong: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_label_rule(wrong)


def test_geometric_delays_have_their_distribution() -> None:
    delays = on_grid(GeometricDelay(mean=5.0)).delay(np.arange(len(GRID)))
    assert (delays == 0).mean() == pytest.approx(1 / 6, abs=1e-4)
    assert (delays > 10).mean() == pytest.approx((5 / 6) ** 11, abs=1e-4)  # .1346
    assert delays.mean() == pytest.approx(5, abs=0.01)
    in_time = sum((delays <= 99 - k).mean() for k in range(100))
    assert in_time == pytest.approx(95.0, abs=0.05)
    assert not prepared(GeometricDelay(mean=0.0)).delay(np.arange(9)).any()


def test_heavy_tailed_delays_have_their_quantiles() -> None:
    lognormal = on_grid(LognormalDelay(median=10.0, sigma=1.0)).delay(np.arange(len(GRID)))
    assert (lognormal < 10).mean() == pytest.approx(0.5, abs=1e-4)
    assert (lognormal < 27).mean() == pytest.approx(0.8397, abs=1e-4)  # Phi(ln 2.7)
    weibull = on_grid(WeibullDelay(scale=10.0, shape=0.5)).delay(np.arange(len(GRID)))
    assert (weibull < 10).mean() == pytest.approx(1 - np.exp(-1), abs=1e-4)
    assert (weibull >= 40).mean() == pytest.approx(np.exp(-2), abs=1e-4)


def test_a_label_is_usable_at_the_question_after_its_delay() -> None:
    policy = RevealPolicy(TASK, Reveal.LABELS, Seed(3), delay=2, rules={"late": GeometricDelay(mean=3.0)})
    delays = policy.chain.delay(np.arange(60))
    feed = policy.feed(Step(0, "0", Samples(np.arange(60)[:, None], np.zeros(60, int)), one_by_one=True))
    usable = {}
    for question in range(60):
        shown = feed.reveal_next(0)
        for position in () if shown is None else shown.positions:
            usable[position] = question + 1
        assert shown is None or list(shown.positions) == sorted(shown.positions, key=lambda s: (s + delays[s], s))
    assert usable == {s: s + delays[s] + 3 for s in range(60) if s + delays[s] + 2 < 60}


def test_the_variable_threshold_follows_the_worked_example() -> None:
    rule = prepared(UncertaintyQuery(share=1.0))
    limits = []
    for p in (0.6, 0.95, 0.99, 0.999):
        asked = rule.selects(certain(p), np.array([rule.seen]))[0]
        limits.append((bool(asked), round(rule.limit, 4)))
    assert limits == [(True, 0.99), (True, 0.9801), (False, 0.9899), (False, 0.9998)]


def test_a_threshold_stays_while_the_budget_is_spent() -> None:
    class AlwaysMoves(UncertaintyQuery):
        """Wrong: the threshold rises as well where the budget forbids a question."""

        def selects(self, answers: Answers, positions: np.ndarray) -> np.ndarray:
            chosen = []
            for p in self.certainty(answers, positions):
                self.seen += 1
                asked = self.asks(p, 0.0)
                chosen.append(asked and self.asked < self.share * self.seen)
                self.asked += chosen[-1]
            return np.array(chosen)

    answers, positions = certain(*[0.7] * 40), np.arange(40)
    right, wrong = prepared(UncertaintyQuery(share=0.1)), prepared(AlwaysMoves(share=0.1))
    assert right.selects(answers, positions).sum() == 4
    assert right.limit == pytest.approx(0.99**4)
    wrong.selects(answers, positions)
    assert wrong.limit < 0.8


def test_the_randomized_threshold_is_that_of_the_definition() -> None:
    rule = on_grid(UncertaintyQuery(share=1.0, threshold=0.8, adjustment=0.0, randomized=True))
    certainty = rule.certainty(certain(*[0.9] * len(GRID)), np.arange(len(GRID)))
    assert (certainty < 0.8).mean() == pytest.approx(0.4503, abs=2e-4)  # 0.609 if a negative eta counts


def test_margins_are_of_the_two_largest_scores() -> None:
    answers = Answers(np.zeros(2, int), np.array([[0.5, 0.1, 0.1, 0.3], [0.4, 0.3, 0.2, 0.1]]))
    assert prepared(MarginQuery()).certainty(answers, np.arange(2)) == pytest.approx([0.2, 0.1])


def test_random_queries_take_one_of_each_block_evenly() -> None:
    counts = np.zeros(4)
    for seed in range(800):
        rule = prepared(RandomQuery(share=0.25), seed=seed)
        chosen = np.flatnonzero(rule.selects(Answers(np.zeros(20, int)), np.arange(20)))
        assert (chosen // 4).tolist() == [0, 1, 2, 3, 4]
        counts += np.bincount(chosen % 4, minlength=4)
    assert np.abs(counts / counts.sum() - 0.25).max() < 3 * np.sqrt(0.25 * 0.75 / counts.sum())


def test_ddm_fires_at_the_error_worked_out_by_hand() -> None:
    rule = prepared(DriftQuery(share=0.5, at_random=0.5, burst=10))
    rule.observe(np.ones(48))
    assert (rule.lowest_rate, rule.lowest_spread) == (1 / 50, np.sqrt(0.02 * 0.98 / 48))
    level = 0.02 + 3 * np.sqrt(0.02 * 0.98 / 48)
    expected = next(
        k for k in range(1, 20) if (1 + k) / (50 + k) + np.sqrt((1 + k) / (50 + k) * 49 / (50 + k) / (48 + k)) > level
    )
    for _ in range(expected):
        assert rule.alarms == 0
        rule.observe(np.zeros(1))
    assert (rule.alarms, rule.labels, rule.burst_end) == (1, 0, 10)


def test_a_burst_spends_what_was_saved_and_no_more() -> None:
    rule = prepared(DriftQuery(share=0.4, at_random=0.25, burst=50))
    answers = Answers(np.zeros(100, int))
    assert rule.selects(answers, np.arange(100)).sum() == 10
    rule.burst_end = rule.seen + 50
    burst = rule.selects(answers[:50], np.arange(100, 150))
    assert rule.asked == 60  # share * 150
    assert burst[:49].all()  # 30 saved, and 20 that become due meanwhile
    assert rule.selects(answers[:40], np.arange(150, 190)).sum() == 4


@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_symmetric_noise_has_its_transition_matrix(rate: float) -> None:
    n, k = 40_000, 4
    y = np.arange(n) % k
    shown = prepared(SymmetricNoise(rate=rate)).shown(y, np.arange(n))
    found = np.array([[np.mean(shown[y == a] == b) for b in range(k)] for a in range(k)])
    expected = np.where(np.eye(k, dtype=bool), 1 - rate, rate / (k - 1))
    error = np.sqrt(expected * (1 - expected) / (n / k))
    assert (np.abs(found - expected) <= 3.5 * error).all()
    uniform = np.where(np.eye(k, dtype=bool), 1 - rate + rate / k, rate / k)  # wrong: over all classes
    assert rate == 0 or not (np.abs(found - uniform) <= 3.5 * error).all()


def test_class_noise_flips_the_pairs_alone() -> None:
    y = np.arange(40_000) % 4
    shown = prepared(ClassNoise(rate=0.2, pairs=("a>b", "c>a:0.5"))).shown(y, np.arange(len(y)))
    assert set(shown[y == 0]) == {0, 1}
    assert set(shown[y == 2]) == {0, 2}
    assert np.mean(shown[y == 0] == 1) == pytest.approx(0.2, abs=0.012)
    assert np.mean(shown[y == 2] == 0) == pytest.approx(0.5, abs=0.015)
    assert (shown[y % 2 == 1] == y[y % 2 == 1]).all()
    to_the_next = prepared(ClassNoise(rate=0.5)).shown(y, np.arange(len(y)))
    assert set(((to_the_next - y) % 4).tolist()) == {0, 1}


@pytest.mark.parametrize(
    ("rule", "task", "message"),
    [
        (ClassNoise(pairs=("a>z",)), TASK, "no class 'z'"),
        (ClassNoise(pairs=("a-b",)), TASK, "no class"),
        (ClassNoise(pairs=("a>b:2",)), TASK, "rate in 'a>b:2'"),
        (SymmetricNoise(), Regression(), "needs a classification task"),
        (MarginQuery(), Regression(), "needs a classification task"),
        (ActedOn(classes=("z",)), TASK, "no class 'z'"),
        (ActedOn(), Regression(), "give a threshold and no classes"),
    ],
)
def test_rules_that_do_not_fit_a_task_are_refused(rule: LabelRule, task: Task, message: str) -> None:
    with pytest.raises(UserError, match=message):
        rule.prepare(task, Seed(0))


def test_a_query_of_scores_refuses_answers_without_them() -> None:
    policy = RevealPolicy(TASK, Reveal.LABELS, Seed(0), rules={"margin-query": MarginQuery()})
    samples = Samples(np.zeros((2, 1)), np.zeros(2, int))
    with pytest.raises(UserError, match="margin-query needs a score per class"):
        policy(Step(0, "0", samples), Answers(np.zeros(2, int)))
    feed = policy.feed(Step(1, "1", samples, one_by_one=True))
    assert feed.needs_scores
    with pytest.raises(UserError, match="margin-query needs a score per class"):
        feed.reveal_next(0)


def test_the_labels_of_what_was_acted_on_are_revealed_and_no_others() -> None:
    scores = np.array([[0.9, 0.1, 0, 0], [0.2, 0.8, 0, 0], [0.3, 0.0, 0.7, 0], [0.3, 0.1, 0.6, 0]])
    answers, positions = Answers(scores.argmax(axis=1), scores), np.arange(4)
    assert prepared(ActedOn()).selects(answers, positions).tolist() == [False, True, True, True]
    assert prepared(ActedOn(classes=("a", "c"), threshold=0.65)).selects(answers, positions).tolist() == [1, 0, 1, 0]
    assert prepared(ActedOn()).propensity(answers) is None
    assert prepared(ActedOn(explore=0.2)).propensity(answers).tolist() == [0.2, 1, 1, 1]
    numbers = Answers(np.array([1.0, 2.5, 3.0]))
    assert prepared(ActedOn(threshold=2.5), Regression()).selects(numbers, np.arange(3)).tolist() == [0, 1, 1]


def test_accuracy_on_labels_is_corrected_as_worked_out_by_hand() -> None:
    """Ten rows revealed with probability .8, of which 8 come and 1 is an error; ten with .2, of which 2 and 1."""
    tally = Tally()
    tally.add(np.array([1.0] * 7 + [0] + [1, 0]), 0, np.array([0.8] * 8 + [0.2] * 2))
    found = tally.diagnostics()
    assert found["accuracy on labels"] == pytest.approx(1 - 0.20)
    assert found["weighted accuracy"] == pytest.approx(1 - 0.3125)
    assert found["weight of labels"] == pytest.approx(20)


def test_the_weighted_accuracy_finds_the_truth_that_the_plain_one_misses() -> None:
    """Answers of the first class are right in half of all cases, the others in nine of ten."""
    random = np.random.default_rng(0)
    predicted = random.integers(0, 2, 400)
    right = random.random(400) < np.where(predicted == 0, 0.5, 0.9)
    samples = Samples(np.zeros((400, 1)), np.where(right, predicted, 1 - predicted))
    plain, weighted = [], []
    for seed in range(300):
        policy = RevealPolicy(TASK, Reveal.LABELS, Seed(seed), rules={"acted-on": ActedOn(explore=0.2)})
        policy(Step(0, "0", samples), Answers(predicted))
        found = policy.diagnostics()
        plain.append(found["accuracy on labels"])
        weighted.append(found["weighted accuracy"])
    error = np.std(weighted) / np.sqrt(len(weighted))
    assert abs(np.mean(weighted) - right.mean()) < 3 * error
    assert np.mean(plain) - right.mean() > 20 * error


def test_rules_go_one_after_another() -> None:
    rules = {"acted-on": ActedOn(classes=("b",)), "random-query": RandomQuery(share=0.5)}
    chain = RuleChain(rules, TASK, Seed(0))
    answers = Answers(np.tile([0, 1], 20))
    chosen, _ = chain.select(answers, np.arange(40), 0)
    assert (chosen % 2 == 1).all()
    assert len(chosen) == 10  # half of those that were acted on
    assert issubclass(RandomQuery, Query)
    assert not issubclass(RandomQuery, ThresholdQuery)


def test_probabilities_multiply_and_are_unknown_after_a_query_of_answers() -> None:
    answers = Answers(np.tile([0, 1, 2, 3], 200), np.full((800, 4), 0.25))
    both: dict[str, LabelRule] = {"b": ActedOn(classes=("b",), explore=0.5), "c": ActedOn(classes=("c",), explore=0.25)}
    chosen, propensity = RuleChain(both, TASK, Seed(0)).select(answers, np.arange(800), 0)
    assert propensity is not None
    expected = np.array([0.5 * 0.25, 0.25, 0.5, 0.5 * 0.25])  # of answers a to d
    np.testing.assert_array_equal(propensity, expected[answers.prediction[chosen]])
    assert len(chosen) == pytest.approx(200 * expected.sum(), abs=60)
    for more, is_known in ((RandomQuery(share=0.5), True), (MarginQuery(share=0.5), False), (ActedOn(), False)):
        chain = RuleChain({"b": ActedOn(classes=("b",), explore=0.5), "more": more}, TASK, Seed(0))
        assert (chain.select(answers, np.arange(800), 0).propensity is not None) == is_known


def test_errors_are_decided_on_the_truth_and_shown_with_noise() -> None:
    policy = RevealPolicy(TASK, Reveal.ERRORS, Seed(0), rules={"class-noise": ClassNoise(rate=0.999)})
    y = np.arange(8) % 4
    shown = policy(Step(0, "0", Samples(np.arange(8)[:, None], y)), Answers(np.zeros(8, int)))
    assert shown is not None
    assert shown.x[:, 0].tolist() == [1, 2, 3, 5, 6, 7]
    assert shown.y.tolist() == [2, 3, 0, 2, 3, 0]
    assert policy.diagnostics()["labels wrong"] == 6
