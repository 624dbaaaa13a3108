"""seq-to-final: a sequence of shifts with labels at every step, evaluated at the last step.

"Seq-to-Final" (Ji, Alaa, Sontag). Steps 0 to T each have a distribution of their own, made from one set of images by
shifts that accumulate, or real periods. Learners see all labels step by step and are evaluated once, after the last
step, on a test set of the final distribution that all methods share.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar, Literal

import pandas as pd
from pydantic import BeforeValidator, Field

from driftline import registry
from driftline.benchmarks import base, summary
from driftline.benchmarks.answer import Answer, Evidence
from driftline.benchmarks.seq_to_final import answer as own_answer
from driftline.data import Dataset
from driftline.errors import UserError, unknown_name
from driftline.learners.fit_plan import SearchSpace
from driftline.learners.settings import OptimizerName
from driftline.metrics.confidence import bootstrap_means, percentile_interval
from driftline.record.card import Card
from driftline.record.run import Run
from driftline.registry import register
from driftline.seeds import Seed
from driftline.streams import ShiftSequence, period_sequence, sequence
from driftline.types import JsonObject, Probe, Reveal, Settings, Step

# Table 3 of the paper: how many samples each step of a sequence of this length has.
SIZES = {
    2: (16000, 4000),
    3: (10000, 6000, 4000),
    4: (6000, 4000, 6000, 4000),
    5: (4000, 4000, 4000, 4000, 4000),
    6: (4000, 3000, 3000, 3000, 3000, 4000),
    7: (4000, 2000, 3000, 2000, 3000, 2000, 4000),
    8: (4000, 2000, 2000, 2000, 2000, 2000, 2000, 4000),
}
ORACLE_FACTOR = 5  # times as many samples of the final step
ROTATIONS = {f"rot{n}": "R" * (n - 1) for n in SIZES}


def _listed(given: object) -> object:
    """Return a tuple from a single number, or from a text such as `6000,4000` on a command line."""
    if isinstance(given, int | float):
        return (given,)
    return tuple(part.strip() for part in given.split(",")) if isinstance(given, str) else given


Sizes = Annotated[tuple[int, ...], BeforeValidator(_listed)]
Values = Annotated[tuple[Annotated[float, Field(ge=0)], ...], BeforeValidator(_listed), Field(min_length=1)]
Positive = Annotated[tuple[Annotated[float, Field(gt=0)], ...], BeforeValidator(_listed), Field(min_length=1)]
Fractions = Annotated[tuple[Annotated[float, Field(ge=0, lt=1)], ...], BeforeValidator(_listed), Field(min_length=1)]


class Options(base.Options):
    """The settings of a sequence, and of how hyper-parameters are chosen."""

    refused: ClassVar[Mapping[str, str]] = {
        "stream": "the steps of a sequence are its shifts, or the times in the data; use shifts, or other data",
    }
    fit_independent: ClassVar[tuple[str, ...]] = (
        *("lr", "weight_decay", "dropout", "adjacent", "fisher", "budget", "resamples"),
    )
    fit_cost_free: ClassVar[tuple[str, ...]] = (
        *("shifts", "row_order", "sizes", "test", "oracle"),
        *("lr", "weight_decay", "dropout", "adjacent", "fisher", "budget"),
    )
    oracle_options: ClassVar[tuple[str, ...]] = ("oracle",)
    phase_options: ClassVar[tuple[str, ...]] = ("lr", "weight_decay", "dropout", "adjacent", "fisher")

    shifts: str = "RCL"
    """The shifts of the later steps, a letter each (see `driftline list shifts`); rot2 to rot8; or "time" for the
    data's own periods."""
    sizes: Sizes | None = None
    """Samples per step, four fifths of them for training; the paper's if not given."""
    test: int = Field(default=5000, ge=1)
    """Number of test samples of the final step."""
    oracle: int | None = Field(default=None, ge=0)
    """Number of samples of the final step for the oracle. If not given, five times as many as for the others, or no
    oracle if the data have fewer; 0 for no oracle."""
    row_order: Literal["named", "reference"] = "named"
    """reference: the samples that the paper's code draws; not for sub-population shifts, which it draws wrongly."""
    period: str = "decade"
    """With shifts=time: how time is cut."""
    first: str | None = None
    """With shifts=time: the first period."""
    final: str | None = None
    """With shifts=time: the period from which on everything is the final step."""
    lr: Positive = SearchSpace.lr
    """Learning rates to try."""
    weight_decay: Values = SearchSpace.weight_decay
    """Weight decays to try."""
    dropout: Fractions = SearchSpace.dropout
    """Dropout rates to try."""
    adjacent: Values = SearchSpace.adjacent
    """Strength of the penalty between weights of neighboring steps."""
    fisher: Values = SearchSpace.fisher
    """Strength of the Fisher penalty."""
    budget: Literal["same", "method", "paper"] = SearchSpace.budget
    """same: a phase has at most as many candidates as lr x weight_decay x dropout; method: all phases of a method
    together have at most as many; paper: the paper's number."""
    optimizer: OptimizerName = SearchSpace.optimizer
    """Name of the optimizer."""
    epochs: int = Field(default=SearchSpace.epochs, ge=1)
    """Maximum number of epochs of a fit."""
    batch: int = Field(default=SearchSpace.batch, ge=2)
    """Size of a mini-batch."""
    patience: int = Field(default=SearchSpace.patience, ge=0)
    """Number of epochs without improvement after which a fit stops."""
    stopping: Literal["previous", "best"] = SearchSpace.stopping
    """What an epoch must exceed to go on: the one before it, as in the paper's code, or the best so far."""
    augment: bool = SearchSpace.augment
    """Whether training images are flipped, rotated by up to 10 degrees and shifted by up to 2 pixels."""
    fisher_examples: int | None = Field(default=SearchSpace.fisher_examples, ge=1)
    """Number of samples for the Fisher information; all if not given."""
    resamples: int = Field(default=1000, ge=1)
    """Bootstrap resamples of the test examples behind the interval."""
    role: Literal["test", "validation"] = "test"
    """validation: learn the training part of each step and be tested on the validation part of the last, to choose
    settings of methods that do not choose between fits of their own."""

    def training_budget(self) -> JsonObject:
        return {"epochs": self.epochs, "batch": self.batch}

    def validation_options(self) -> Options | None:
        """Return the options of the same sequence, tested on the validation part of its last step."""
        return self.model_copy(update={"role": "validation"})

    def describe_validation(self) -> str:
        return "the validation part of the final step"

    def selection(self) -> SearchSpace:
        shared = SearchSpace.__dataclass_fields__.keys() & type(self).model_fields.keys()
        return SearchSpace(**{name: getattr(self, name) for name in shared})


@dataclass(frozen=True)
class FinalProbe:
    """One probe: the final test set, after the learner has finished."""

    sequence: ShiftSequence

    def due(self, step: Step | None) -> Iterable[Probe]:
        return [Probe("final", self.sequence.test)] if step is None else []


@register("benchmark", "seq-to-final")
class SeqToFinal(base.Benchmark):
    """A sequence of shifts, and the score at its last step."""

    question: ClassVar[str] = "What of the past helps a model at the final step of a sequence of shifts?"
    reveals: ClassVar[Reveal] = Reveal.LABELS
    paper: ClassVar[str] = "Seq-to-Final (Ji, Alaa, Sontag)"
    departures: ClassVar[tuple[str, ...]] = (
        "Images are standardized per channel by the first training data of a network, and not augmented by default; "
        "the paper's code feeds raw pixels (and, on Portraits, pixels that are almost constant).",
        "Sub-populations are drawn in the proportions that the paper describes; its code shows all of them early.",
        "No phase has more candidates than lr x weight_decay x dropout, except where layers, schedules or the models "
        "of a beam compete; budget=paper has the paper's.",
        "I-FT and D-FT do not see the final step in their history. SFT chooses its learning rate at each step; with "
        "decay=chosen the paper's schedules compete on validation data, where its code lets them on test data.",
        "Batch norm of frozen layers stands still; IRM's scale is one number; Fisher information is per example.",
    )
    place: ClassVar[int] = 2
    headline_metrics: ClassVar[tuple[tuple[str, str], ...]] = (("final-accuracy", "mean"),)
    primary_metrics: ClassVar[tuple[tuple[str, str], ...]] = headline_metrics
    options: ClassVar[type[base.Options]] = Options
    full_scale: ClassVar[Settings] = {
        "model.width": 64,
        "test": 5000,
        "lr": [1e-3, 1e-4],
        "weight_decay": [1e-4, 1e-2],
        "dropout": [0.0, 0.5],
        "epochs": 100,
    }
    equivalent_settings: ClassVar[tuple[str, ...] | None] = ("decay", "ends", "reference_fisher")
    example: ClassVar[Settings] = {
        "data": "color-digits",
        "model": {"name": "conv-1", "width": 8},
        "methods": ["baseline", "seq-erm", "seq-ft"],
        "options": {
            **{"shifts": "RL", "sizes": [300, 200, 200], "test": 400, "oracle": 0, "epochs": 12, "batch": 16},
            **{"lr": [1e-2, 1e-3], "weight_decay": [0.0], "dropout": [0.0]},
        },
    }
    matrix_column: ClassVar[Settings] = {
        "data": "color-digits",
        "model": {"name": "conv-1", "width": 8},
        "options": {**example["options"], "oracle": 600, "adjacent": [0.1], "fisher": [1.0]},
    }
    quick: ClassVar[Mapping[str, float]] = {"updates": 100, "train_every": 200, "reset_every": 2}

    def build_scenario(self, dataset: Dataset, options: Options, seed: Seed) -> base.Scenario:
        """Make the sequence; the oracle's is the same with a larger final step."""
        steps = _sequence(dataset, options, seed)
        steps = steps.for_validation() if options.role == "validation" else steps
        protocol = {
            "protocol": options.shifts,
            "steps": list(steps.names),
            "samples_per_step": [len(rows.all) for rows in steps.rows],
            "test": len(steps.test_rows),
            "oracle": len(steps.oracle_rows.all) if steps.oracle_rows else None,
            "row_order": options.row_order,
            "selection": "validation-split: the best candidate of each phase on held-out fifths of its training "
            "samples; ties go to the earlier candidate",
        }
        return base.Scenario(
            stream=steps,
            probes=FinalProbe(steps),
            upstream=None,
            evaluated_at_end=True,
            protocol=protocol,
            selection=options.selection(),
            oracle_stream=steps.with_oracle() if steps.oracle_rows else None,
        )

    def metrics(self, options: Options, protocol: JsonObject) -> dict[str, JsonObject]:
        """Return the accuracy at the final step."""
        return {"final-accuracy": {}}

    def score(self, run: Run) -> pd.DataFrame:
        """Return the accuracy on the final test set, with a bootstrap interval over its examples."""
        options = Options(**run.card.run.options)
        probes = run.table("probes")
        correct = probes.loc[probes["probe"] == "final", "correct"].to_numpy(float)
        resampled = bootstrap_means(correct, options.resamples, Seed(run.seed).child("bootstrap").numpy())
        low, high = percentile_interval(resampled)
        value = registry.get("metric", "final-accuracy").compute(correct)
        row = {"metric": "final-accuracy", "stat": "mean", "value": value, "low": low, "high": high}
        return base.scores_frame([{**row, "n": len(correct), "unit": "examples"}])

    @classmethod
    def is_full_scale(cls, card: Card) -> bool:
        """Return whether sizes, network and grid are the paper's: its Table 3, and decades from 1930 to 2000."""
        options = card.run.options
        decades = (options.get("period"), str(options.get("first"))[:4], str(options.get("final"))[:4])
        in_time = options.get("shifts") != "time" or decades == ("decade", "1930", "2000")
        sizes = options.get("sizes")
        sized = sizes is None or tuple(sizes) == SIZES.get(len(sizes))
        oracle = options.get("oracle") in (None, ORACLE_FACTOR * 4000)
        return super().is_full_scale(card) and in_time and sized and oracle

    @classmethod
    def summary(cls, results: summary.Results) -> str:
        """Return the best method, beside training on the final step alone and on many more of its samples."""
        cells = results.scores(*cls.headline_metrics[0])
        beside = {"baseline": "the final step alone", "oracle": "many more of its samples"}
        others = [f"{summary.number(cells[name])} with {what}" for name, what in beside.items() if name in cells]
        return " ".join([super().summary(results), *([f"For comparison: {', '.join(others)}."] if others else [])])

    @classmethod
    def answer(cls, results: Evidence) -> Answer | None:
        return own_answer.answer(results)


def _sequence(dataset: Dataset, options: Options, seed: Seed) -> ShiftSequence:
    if options.shifts == "time":
        _check_period_options(options)
        return period_sequence(
            dataset, period=options.period, first=options.first, final=options.final, seed=seed.child("sequence")
        )
    _check_shift_options(options)
    if options.shifts.startswith("rot") and options.shifts not in ROTATIONS:
        raise unknown_name("sequence", options.shifts, ROTATIONS)
    shifts = ROTATIONS.get(options.shifts, options.shifts)
    sizes = options.sizes
    if sizes is None:
        from driftline.shifts import parse

        steps = len(parse(shifts)) + 1
        if steps not in SIZES:
            raise UserError(f"the paper has no sizes for {steps} steps: give them with --sizes")
        sizes = SIZES[steps]
    make = partial(
        sequence, dataset, shifts, sizes, options.test, seed=seed.child("sequence"), row_order=options.row_order
    )
    if options.oracle is not None:
        return make(oracle=options.oracle or None)
    try:
        return make(oracle=ORACLE_FACTOR * sizes[-1])
    except UserError:  # too few samples, or something that is wrong without an oracle too
        return make(oracle=None)


def _check_period_options(options: Options) -> None:
    """Refuse options that have no effect with shifts=time."""
    for name in ("sizes", "test", "oracle", "row_order"):
        if getattr(options, name) not in (Options.model_fields[name].default, 0):
            raise UserError(f"{name} has no effect with shifts=time: each period has its own samples")


def _check_shift_options(options: Options) -> None:
    """Refuse options that have no effect without shifts=time."""
    for name in ("period", "first", "final"):
        if getattr(options, name) != Options.model_fields[name].default:
            raise UserError(f"{name} has no effect on a sequence of shifts: use shifts=time")
