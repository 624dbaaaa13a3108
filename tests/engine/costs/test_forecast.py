"""What a spec will cost, from Python and from the command line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import driftline
from driftline.cli.main import app
from driftline.engine.build import DatasetCache
from driftline.engine.costs import forecast
from driftline.engine.costs.forecast import PROFILING_SECONDS
from driftline.engine.costs.groups import StageGrouper
from driftline.engine.costs.profiler import Cost
from driftline.engine.costs.sharing import compute_sharing
from driftline.engine.costs.stage_costs import stage_costs
from driftline.engine.planning.plan import plan
from driftline.engine.stages import Fit, Pretrain, Stage
from driftline.errors import UserError
from driftline.spec import parse
from driftline.store.store import Store

SEQUENCE: dict[str, Any] = {
    "benchmark": "seq-to-final",
    "data": "color-digits",
    "model": {"name": "conv-1", "width": 4},
    "methods": ["baseline", "seq-ft", "lp-ft"],
    "seeds": 2,
    "seq-to-final": {
        **{"shifts": "RL", "sizes": [60, 40, 40], "test": 50, "epochs": 2, "batch": 20},
        **{"lr": [1e-2, 1e-3], "weight_decay": [0.0], "dropout": [0.0]},
    },
}
SEARCH: dict[str, Any] = {
    "benchmark": "open-world",
    "data": "digits",
    "model": {"name": "mlp", "width": 8},
    "methods": [{"name": "fine-tune", "train_every": 20}],
    "seeds": 3,
    "open-world": {"class_size_law": "30/(1+r)", "upstream_updates": 50, "resamples": 5},
    "selection": {"grid": {"lr": [0.01, 0.1]}, "seeds": 2},
}
TABLE = {
    "benchmark": "timeline",
    "data": {"name": "digits", "periods": 4},
    "model": "logistic-regression",
    "methods": ["erm"],
}


def test_stages_that_differ_in_seed_or_rate_alone_cost_the_same() -> None:
    planned = plan(parse(SEQUENCE))
    grouper = StageGrouper(planned.fit_specs, DatasetCache())
    fits = [stage for stage in planned.stages if isinstance(stage, Fit)]
    groups = {stage.cost_key(grouper) for stage in fits}
    assert len(fits) == 2 * 2 * (1 + 1 + 1 + 2)  # seeds, rates; final alone, history, tuning at once, in two phases
    assert len(groups) == 4, "baseline, history, the head, and all layers, whatever was tuned before"


def test_fits_are_called_by_what_they_learn() -> None:
    planned = plan(parse(SEQUENCE))
    grouper = StageGrouper(planned.fit_specs, DatasetCache())
    words = [stage.cost_title(grouper) for stage in planned.stages]
    assert (words.count("historical"), words.count("final"), words.count("probes and score")) == (4, 16, 6)


def test_sharing_by_hand() -> None:
    planned = plan(parse({**SEQUENCE, "seeds": 1}))
    fits = [stage.key for stage in planned.stages if isinstance(stage, Fit)]
    made = compute_sharing(planned.stages, dict.fromkeys(fits, 10))
    assert made is not None
    # baseline needs 2, seq-ft 2 + 2, lp-ft 2 + 2 + 2, and the history of the last two is the same.
    assert (made.fits, made.fits_without_sharing) == (10, 12)
    assert made.saved == pytest.approx(1 - 100 / 120)
    # Trained anew for each of the two last fits: 1, 2 + 1 and 2 + 2 + 1.
    assert made.fits_without_reuse == 2 * (1 + 3 + 5)
    assert made.saved_with_reuse == pytest.approx(1 - 100 / 180)


def test_a_forecast_counts_what_is_not_done_and_writes_nothing(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    before = driftline.plan(TABLE, runs=runs, seconds=2, workers=(1, 2))
    assert not runs.exists(), "the store is not even made"
    assert before.kinds["probes and score"].stages == 1
    assert before.kinds["probes and score"].done == 0
    assert before.seconds[2] > before.seconds[1], "a worker must start first"
    driftline.run(TABLE, runs=runs)
    kept = sorted(runs.rglob("*"))
    after = driftline.plan({**TABLE, "seeds": 3}, runs=runs, seconds=2)
    assert (after.kinds["probes and score"].stages, after.kinds["probes and score"].done) == (3, 1)
    assert (after.known, after.extrapolated) == (1, 0), "the finished run is evidence for the others"
    assert sorted(runs.rglob("*")) == kept


def test_trials_that_were_spared_are_not_to_be_done(tmp_path: Path) -> None:
    few = {
        "episodes": 4,
        "queries_per_episode": 32,
        "period": 4,
        "upstream_set": 64,
        "held_out": 32,
        "upstream_updates": 50,
    }
    model = {"name": "mlp", "width": 32}
    spec = {"benchmark": "refinement", "data": "digit-clusters", "model": model, "methods": ["cft"], "seeds": 1}
    spec |= {"selection": {"grid": {"lr": [1e-6, 1e-2]}, "seeds": 3}, "refinement": {**few, "resamples": 10}}
    (run,) = driftline.run(spec, runs=tmp_path).runs
    skipped = run.card.protocol["skipped_runs"]
    found = driftline.plan(spec, runs=tmp_path, seconds=1)
    assert skipped
    assert found.kinds["search"].done == 6 - skipped
    assert (found.macs, found.bytes, sum(kind.seconds for kind in found.kinds.values())) == (0, 0, 0)


@pytest.mark.parametrize("seeds", [3, 5])
def test_pretraining_is_counted_for_every_seed_of_a_search(seeds: int) -> None:
    planned = plan(parse({**SEARCH, "seeds": seeds}))
    grouper = StageGrouper(planned.fit_specs, DatasetCache())
    upstream = [stage for stage in planned.stages if isinstance(stage, Pretrain)]
    assert len(upstream) == seeds
    assert len({stage.cost_key(grouper) for stage in upstream}) == 1, (
        "validation or test streams: the same upstream model"
    )
    assert [stage.as_profiled("") for stage in upstream] == upstream


def test_a_search_is_forecast_as_it_runs(tmp_path: Path) -> None:
    found = driftline.plan(SEARCH, runs=tmp_path)
    assert found.notes == ()
    (upstream,) = {run.card.compute.upstream_macs for run in driftline.run(SEARCH, runs=tmp_path).runs}
    assert found.kinds["pretraining"].macs == pytest.approx(3 * upstream, rel=0.02)


class Profiler:
    """A profiling process in which all stages cost the same.

    A profile takes `overrun` times the time it is given, or `least` seconds if that is more. The first one of a kind
    takes `once` seconds more, and so does reading the data.
    """

    def __init__(
        self, stage_seconds: float = 10.0, overrun: float = 1.0, least: float = 0.0, once: float = 0.0
    ) -> None:
        self.start, self.spent, self.store, self.stage_seconds = 3.0, 3.0, Store(Path("none")), stage_seconds
        self.overrun, self.least, self.once = overrun, least, once
        self.profiled, self.seconds = 0, 0.0
        self.results: set[str] = set()

    def __enter__(self) -> Profiler:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is left behind."""

    def reading(self, stage: Stage) -> float:
        self.spent += self.once
        return self.once

    def cost(self, stage: Stage, inputs: Mapping[str, Path], seconds: float, first: bool) -> tuple[Cost, float]:
        assert {path.stem for path in inputs.values()} <= self.results, (
            f"{stage.title} starts from what was not profiled"
        )
        self.results.add(stage.key)
        taken, more = max(self.overrun * seconds, self.least), self.once if first else 0.0
        self.seconds, self.profiled = self.seconds + taken, self.profiled + 1
        self.spent += taken + more
        return Cost(self.stage_seconds, 0, 0), more


@pytest.fixture
def quick_profiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process is started to profile stages, where what they cost is not what is tested."""
    monkeypatch.setattr(forecast, "ProfilerProcess", lambda data_dir: Profiler())


@pytest.mark.parametrize(
    ("stage_seconds", "limit", "least", "most"),
    [(10.0, 2.0, 1.3, 2.0), (10.0, 100.0, 2.0, 8.0), (1000.0, PROFILING_SECONDS, 5.0, 20.0)],
)
def test_profiling_is_bounded_by_a_tenth_of_the_work(
    stage_seconds: float, limit: float, least: float, most: float, tmp_path: Path
) -> None:
    planned = plan(parse({**TABLE, "methods": ["erm", "erm-all"], "seeds": 4}))  # eight stages of two kinds
    profiler: Any = Profiler(stage_seconds)
    grouper = StageGrouper(planned.fit_specs, DatasetCache())
    found = stage_costs(planned.stages, grouper, Store(tmp_path), lambda: profiler, limit)
    assert least < profiler.spent - profiler.start <= most
    assert found.extrapolated == 0


@pytest.mark.parametrize(
    ("stage_seconds", "least", "once", "profiled"),
    [
        (2.0, 0.9, 0.0, 2),  # 20 s of work: 2 s of profiling
        (2.0, 0.9, 50.0, 2),  # what a worker does only once is not profiling
        (200.0, 7.0, 0.0, 2),  # 2000 s of work: 20 s
        (20.0, 3.0, 0.0, 6),
        (0.1, 0.4, 0.0, 2),  # 1 s at least
        (0.1, 5.0, 0.0, 1),  # one stage of each class in any case
    ],
)
def test_no_profile_begins_that_would_exceed_a_tenth_of_the_work(
    stage_seconds: float, least: float, once: float, profiled: int, tmp_path: Path
) -> None:
    methods = [{"name": "retrain-every-k", "k": k} for k in range(1, 11)]
    planned = plan(parse({**TABLE, "methods": methods}))  # ten stages of ten kinds
    profiler: Any = Profiler(stage_seconds, least=least, once=once)
    grouper = StageGrouper(planned.fit_specs, DatasetCache())
    found = stage_costs(planned.stages, grouper, Store(tmp_path), lambda: profiler, PROFILING_SECONDS)
    assert (profiler.profiled, found.extrapolated) == (profiled, 10 - profiled)
    assert profiled == 1 or profiler.seconds <= min(PROFILING_SECONDS, max(1.0, 0.1 * 10 * stage_seconds))


def test_stages_for_which_no_time_is_left_cost_what_similar_ones_do(tmp_path: Path) -> None:
    planned = plan(parse({**TABLE, "methods": ["erm", "erm-all"]}))
    profiler: Any = Profiler(5.0, overrun=100.0)
    grouper = StageGrouper(planned.fit_specs, DatasetCache())
    found = stage_costs(planned.stages, grouper, Store(tmp_path), lambda: profiler, 20.0)
    assert (profiler.profiled, found.extrapolated) == (1, 1)
    assert [found.of(stage).seconds for stage in planned.stages] == [5.0, 5.0]


def test_the_only_search_run_is_profiled_after_the_upstream_model_that_it_starts_from(tmp_path: Path) -> None:
    """There is no time for a second upstream model, but the plan must not report that it is missing."""
    options = {**SEARCH["open-world"], "class_size_law": "60/(1+r)"}
    selection = {"grid": {"maml.lr": [0.01, 0.1]}, "seeds": 2}
    changes = {"data": "digit-symmetries", "methods": ["ncm", "maml"], "open-world": options, "selection": selection}
    spec = {**SEARCH, **changes}
    planned = plan(parse(spec))
    profiler: Any = Profiler(5.0, overrun=100.0)
    grouper = StageGrouper(planned.fit_specs, DatasetCache())
    found = stage_costs(planned.stages, grouper, Store(tmp_path), lambda: profiler, 20.0)
    assert set(found.by_group) == set(found.groups.values())
    assert profiler.profiled + found.extrapolated == len(found.by_group)


@pytest.mark.usefixtures("quick_profiler")
def test_several_specs_share_their_stages(tmp_path: Path) -> None:
    found = driftline.plan(TABLE, {**TABLE, "seeds": 2}, runs=tmp_path, seconds=2)
    kind = found.kinds["probes and score"]
    assert (kind.stages, kind.seconds) == (2, 20.0)


def test_what_cannot_run_is_refused_as_by_run(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="continues training"):
        driftline.plan({**TABLE, "methods": ["ft"]}, runs=tmp_path)


@pytest.mark.usefixtures("quick_profiler")
def test_the_command_says_it_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = [
        "plan",
        "timeline",
        "--data",
        "digits",
        "--model",
        "logistic-regression",
        "--methods",
        "erm",
        "--period",
        "year",
    ]
    words += ["--profile-seconds", "2"]
    output = CliRunner().invoke(app, words, catch_exceptions=False).stdout
    assert "probes and score" in output
    assert [line.split()[0] for line in output.splitlines() if line[:1].isdigit()] == ["1", "8", "64", "512"]
    revealed = json.loads(CliRunner().invoke(app, [*words, "--format", "json"], catch_exceptions=False).stdout)
    assert set(revealed["seconds"]) == {"1", "8", "64", "512"}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [([], "give a benchmark, matrix, or recipes"), (["x", "--format", "xml"], "text or json")],
)
def test_mistakes_are_told(words: list[str], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        CliRunner().invoke(app, ["plan", *words], catch_exceptions=False)
