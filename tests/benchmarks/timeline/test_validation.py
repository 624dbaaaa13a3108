"""Selection on a timeline: what settings are selected on is never what they are tested on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import driftline
from driftline.benchmarks.timeline.benchmark import Options, Timeline
from driftline.data import Dataset, load
from driftline.errors import UserError
from driftline.learners import Learner
from driftline.seeds import Seed
from driftline.tasks import Classification
from driftline.types import Answers, Reveal, Samples

CASES: list[dict[str, Any]] = [
    {"validation": 2},
    {"validation": 2, "upstream": 1},
    {"validation": 0.2},
    {"validation": 0.2, "upstream": 1, "horizon": 2},
    {"protocol": "fix", "split": "3"},
    {"protocol": "fix", "split": "3", "validation": 2, "upstream": 1},
    {"protocol": "fix"},
]


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return load("digits", {"periods": 6})


def seen(scenario: Any) -> tuple[set[int], set[int]]:
    """Return the ids of what a run learns from, upstream included, and of what it is probed on."""
    steps = [scenario.stream[k] for k in range(len(scenario.stream))]
    learned = [step.samples for step in steps] + ([scenario.upstream] if scenario.upstream is not None else [])
    probed = [probe.samples for step in [*steps, None] for probe in scenario.probes.due(step)]
    return tuple({int(one) for samples in part for one in samples.id} for part in (learned, probed))  # type: ignore


@pytest.mark.parametrize("given", CASES, ids=str)
def test_no_sample_of_a_validation_run_is_tested_on(dataset: Dataset, given: dict[str, Any]) -> None:
    names = load("digits", {"periods": 6}).samples.time
    periods = [str(name) for name in dict.fromkeys(np.asarray(names).tolist())]
    given = {**given, **({"split": periods[int(given["split"])]} if "split" in given else {})}
    options = Options(**given)
    selecting = options.validation_options()
    assert selecting is not None
    for seed in (0, 1):
        _, tested = seen(Timeline().build_scenario(dataset, options, Seed(seed)))
        learned, probed = seen(Timeline().build_scenario(dataset, selecting, Seed(seed)))
        assert tested
        assert probed
        assert not (learned | probed) & tested
        assert not learned & probed or options.protocol == "stream", "later periods are tested before they are learned"


def test_models_after_the_validation_periods_score_as_they_do_without(tmp_path: Any) -> None:
    """Two routes: the first two periods are left out of the scores, and nothing else changes."""
    spec = {"benchmark": "timeline", "data": {"name": "digits", "periods": 6}, "model": "logistic-regression"}
    more = {"methods": ["erm"], "runs": tmp_path}
    (plain,) = driftline.run(**spec, **more, timeline={"resamples": 5}).runs
    (cut,) = driftline.run(**spec, **more, timeline={"resamples": 5, "validation": 2}).runs

    def cells(run: Any) -> dict[tuple[str, str], float]:
        rows = run.table("scores").query("metric == 'accuracy'")
        return dict(zip(zip(rows["time"], rows["tau"], strict=True), rows["value"], strict=True))

    early = cut.card.protocol["untested_periods"]
    assert early == plain.card.protocol["periods"][:2]
    assert cells(cut) == {pair: value for pair, value in cells(plain).items() if pair[0] not in early}
    assert len(cells(cut)) == 4 * 5 / 2


@dataclass
class Constant(Learner):
    """Always the same answer: the best one in validation is the worst in the test."""

    guess: int = 0

    min_reveal = Reveal.INPUTS

    def predict(self, x: Any) -> Answers:
        return Answers(np.full(len(x), self.guess))


def changing(periods: int = 6, n: int = 20) -> Dataset:
    """Class 0 is frequent in the first three periods, class 1 from then on."""
    time = np.repeat(np.arange(periods), n)
    y = np.where(np.arange(len(time)) % 4 == 0, 1, 0)
    y = np.where(time < 3, y, 1 - y)
    return Dataset(
        "changing", Samples(np.zeros((len(y), 2), np.float32), y, np.arange(len(y)), time), Classification(("a", "b"))
    )


def test_a_candidate_that_only_the_test_labels_favor_is_not_selected(tmp_path: Any) -> None:
    """The oracle takes the guess that the later periods reward; early periods know nothing of them."""
    chosen = {}
    for rule in ("validation-streams", "oracle"):
        record = driftline.run(
            benchmark="timeline",
            data=changing(),
            model="mlp",
            methods=[Constant],
            runs=tmp_path,
            selection={"grid": {"guess": [0, 1]}, "rule": rule, "seeds": 1},
            timeline={"validation": 2, "upstream": 1, "upstream_updates": 1, "resamples": 5},
        )
        chosen[rule] = record.runs[0].card.protocol["chosen"][0]["guess"]
    assert chosen == {"validation-streams": 0, "oracle": 1}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"validation": 1}, "Eval-Stream needs at least two periods to select by"),
        ({"validation": 0.1, "protocol": "fix"}, "Eval-Fix selects on whole periods; give their number"),
        ({"validation": 5}, "the next 5 for choosing settings leave fewer than two to deploy in"),
    ],
)
def test_validation_that_cannot_be_is_refused_in_a_sentence(
    dataset: Dataset, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(UserError, match=words):
        Timeline().build_scenario(dataset, Options(**options), Seed(0))


def test_a_split_without_periods_before_it_is_refused(dataset: Dataset) -> None:
    first = str(np.asarray(dataset.samples.time)[0])
    options = Options(protocol="fix", split=first).validation_options()
    with pytest.raises(UserError, match="none is left to train on: use a later split"):
        Timeline().build_scenario(dataset, options, Seed(0))  # type: ignore[arg-type]
