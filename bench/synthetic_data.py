"""Stand-ins for data and networks that are too large to profile: the tables of the papers at full scale.

Data are blank: as many samples, classes and years as in the real dataset, all pixels zero and stored once. A network is
a narrow one of the same architecture, if possible. It makes as many passes over as many samples as the real one; their
cost is measured on one mini-batch of each (`NetworkCost`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from driftline import models
from driftline.data import Dataset
from driftline.engine.build import DatasetCache, dataset_key
from driftline.engine.costs.profiler import Cost
from driftline.engine.stages import Stage, StreamRun
from driftline.errors import UserError
from driftline.spec.keys import stable_hash
from driftline.spec.settings import Choice
from driftline.tasks import Classification, TextToText
from driftline.types import Samples

if TYPE_CHECKING:
    from torch import Tensor, nn

SIDE = 32
NARROW = 4
UPSTREAM = 20
BATCH, TEXTS = 8, 1
"""Samples in the mini-batches that are measured."""
TOKENS, ANSWER = 256, 8
"""How long a question with its context is, and an answer."""
BLANK_TOKENS, BLANK_ANSWER = 16, 4
"""How long blank ones are for a narrow network, padding included."""
TEXT_TOKENS = 32
"""How long a headline or a title is."""
BART = {"width": 768, "layers": 6, "heads": 12, "vocab_size": 50265}
SMALL_BART = {"width": 32, "layers": 1, "heads": 2, "vocab_size": 300}
ASSUMED = (
    "data are blank, of these sizes: Yearbook 37,189 portraits, FMoW-Time 118,886 pictures at 224 pixels, CIFAR "
    "60,000, ImageNet-22k 5,000 classes of 1,000 pictures at 224 "
    "pixels, HuffPost 63,907 and arXiv 2,057,952 texts of 32 tokens, "
    f"questions of {TOKENS} tokens with answers of {ANSWER}",
    "networks cost what a mini-batch of the real one does; the other seconds are those of a narrow one",
    "a model that is never trained on upstream data answers wrongly more often than a good one, so that refinement has "
    "more errors to learn from, and takes longer, than in a real run",
)


class SyntheticData(DatasetCache):
    """Blank datasets in place of all real ones."""

    def __init__(self) -> None:
        super().__init__(size=100)

    def load(self, choice: Choice) -> Dataset:
        if self.fingerprint(choice) is None:
            if choice.name not in MADE:
                raise UserError(f"no synthetic data in place of '{choice.name}'; there are {', '.join(MADE)}")
            dataset = MADE[choice.name]()
            vars(dataset)["fingerprint"] = stable_hash([*dataset_key(choice), "blank"])  # there are no pixels to hash
            self.add(choice, dataset)
        return super().load(choice)


def _pictures(name: str, per_class: int, classes: int, test: int = 0, years: tuple[int, ...] = (0,)) -> Dataset:
    """Blank pictures, classes in turn, in time order."""
    n, channels = per_class * classes, 1 if name == "yearbook" else 3
    x = np.broadcast_to(np.zeros((1, SIDE, SIDE, channels), np.uint8), (n, SIDE, SIDE, channels))
    when = np.sort(np.resize(np.array(years), n))
    samples = Samples(x, np.resize(np.arange(classes), n), time=when)
    mask = np.arange(n) >= n - test if test else None
    return Dataset(name, samples, Classification(tuple(map(str, range(classes)))), test=mask)


def _cifar100() -> Dataset:
    fine = _pictures("cifar100", 600, 100, test=10_000)
    samples = replace(fine.samples, y=fine.samples.y // 5, group=fine.samples.y)
    task, parts = Classification(tuple(map(str, range(20)))), tuple(tuple(range(5 * k, 5 * k + 5)) for k in range(20))
    return replace(fine, samples=samples, task=task, subclasses=parts)


def _questions() -> Dataset:
    """Short questions; how long true ones are is part of what a network weighs. Costs do not hang on how many."""
    clusters = ("squad", "nq", "trivia", "hotpot", "news", "search")
    group = np.concatenate([np.zeros(8000, np.int64), np.repeat(np.arange(1, 6), 2000)])
    x = [f"what is {k % 97} of {k % 89} and {k}?" for k in range(len(group))]
    y = np.array([str(k % 97) for k in range(len(group))], dtype=object)
    samples = Samples(x, y, time=np.zeros(len(group), np.int64), group=group)
    return Dataset("qa", samples, TextToText(), model="small-bart", clusters=clusters)


def _texts(name: str, n: int, classes: int, years: range) -> Dataset:
    """The same text again and again: only its length and the number of texts matter."""
    y, when = np.resize(np.arange(classes), n), np.sort(np.resize(np.array(years), n))
    return Dataset(name, Samples(["a headline"] * n, y, time=when), Classification(tuple(map(str, range(classes)))))


MADE: dict[str, Callable[[], Dataset]] = {
    "yearbook": lambda: _pictures("yearbook", 37_189 // 2, 2, years=tuple(range(1930, 2014))),
    "fmow": lambda: _pictures("fmow", 118_886 // 62, 62, years=tuple(range(2002, 2018))),
    "cifar10": lambda: _pictures("cifar10", 6000, 10, test=10_000),
    "cifar100": _cifar100,
    "image-folders": lambda: _pictures("image-folders", 1000, 5000),
    "qa": _questions,
    "huffpost": lambda: _texts("huffpost", 63_907, 11, range(2012, 2019)),
    "arxiv": lambda: _texts("arxiv", 2_057_952, 172, range(2007, 2023)),
}


def shrink_recipe(content: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe with a narrow network, and without files that only the true data have."""
    model = Choice.model_validate(content["model"])
    narrow: dict[str, Any] = {"name": model.name, "width": NARROW}
    if model.name == "seq2seq":
        narrow = {"name": "small-bart", **SMALL_BART, "width": 16 if "t5" in model.settings["weights"] else 32}
    elif model.name == "minilm":
        narrow = {"name": "hashed-ngrams", "width": NARROW}
    elif content["benchmark"] == "open-world" and not any("n_layers" in choice for choice in content["methods"]):
        network = "Pretrained" if "weights" in model.settings else "Narrow"  # 90,000 samples per run, one by one
        narrow = {"name": f"{Path(__file__).with_name('narrow_network.py')}:{network}", "width": NARROW}
    made = {**content, "model": narrow}
    if content["benchmark"] == "open-world":  # how many samples there are to train on changes no number of updates
        drawn = {k: v for k, v in content["open-world"].items() if k != "stream"}
        made["open-world"] = {**drawn, "upstream_each": UPSTREAM}
    return made


@dataclass(frozen=True)
class NetworkCost:
    """What a network costs per sample: MACs and seconds forward and backward; and its number of parameters."""

    forward: int
    backward: int
    forward_seconds: float
    backward_seconds: float
    parameters: int


def rescale(cost: Cost, stage: Stage, narrow: NetworkCost, true: NetworkCost) -> Cost:
    """Return what a stage would cost with the real network."""
    forward, backward = (cost.macs - cost.backward) / narrow.forward, cost.backward / max(narrow.backward, 1)
    longer = forward * (true.forward_seconds - narrow.forward_seconds)
    longer += backward * (true.backward_seconds - narrow.backward_seconds)
    size = 1.0 if isinstance(stage, StreamRun) else true.parameters / narrow.parameters
    return replace(
        cost,
        seconds=cost.seconds + max(longer, 0.0),
        macs=int(forward * true.forward + backward * true.backward),
        backward=int(backward * true.backward),
        bytes=int(cost.bytes * size),
    )


def profile_network(model: Mapping[str, Any], data: str, side: int, outputs: int) -> NetworkCost:
    """One mini-batch forward and backward, by the clock of the processor and by counting."""
    import torch
    import transformers

    choice = Choice.model_validate(model)
    if choice.name in ("seq2seq", "small-bart"):
        return _profile_writer(choice)
    channels = 1 if data == "yearbook" else 3
    inputs = torch.zeros(BATCH, channels, side, side)
    if choice.name == "minilm":
        encoder = transformers.DistilBertForSequenceClassification(transformers.DistilBertConfig(num_labels=outputs))
        return _profiled(encoder, BATCH, (torch.ones(BATCH, TEXT_TOKENS).long(),), {}, lambda out: out.logits.sum())
    settings = {k: v for k, v in choice.settings.items() if k not in ("weights", "head")}
    shape = () if choice.name == "hashed-ngrams" else (side, side, channels)
    network = models.build(choice.name, shape, outputs, **settings)
    texts = ["a headline"] * BATCH
    return _profiled(network, BATCH, (inputs if shape else network.encode(texts).float(),), {}, lambda out: out.sum())


def _profile_writer(choice: Choice) -> NetworkCost:
    """BART's base model at its true lengths, or the small one at those of blank questions."""
    import torch
    import transformers

    true = choice.name == "seq2seq"
    size: Mapping[str, int] = BART if true else SMALL_BART
    half = {
        "layers": size["layers"],
        "attention_heads": size["heads"],
        "ffn_dim": (4 if true else 2) * size["width"],
    }
    sizes: dict[str, Any] = {
        "vocab_size": size["vocab_size"],
        "d_model": size["width"],
        "attn_implementation": "eager",
    }
    sizes |= {f"{part}_{name}": value for part in ("encoder", "decoder") for name, value in half.items()}
    if "t5" in str(choice.settings.get("weights")):
        base = transformers.T5Config(d_model=768, d_ff=3072, num_layers=12, num_heads=12, decoder_start_token_id=0)
        given = {"input_ids": torch.ones(TEXTS, TOKENS).long(), "labels": torch.ones(TEXTS, ANSWER).long()}
        return _profiled(transformers.T5ForConditionalGeneration(base), TEXTS, (), given, lambda out: out.loss)
    config = transformers.BartConfig(**sizes)
    tokens, answer = (TOKENS, ANSWER) if true else (BLANK_TOKENS, BLANK_ANSWER)
    given = {"input_ids": torch.ones(TEXTS, tokens).long(), "labels": torch.ones(TEXTS, answer).long()}
    return _profiled(transformers.BartForConditionalGeneration(config), TEXTS, (), given, lambda out: out.loss)


def _profiled(
    network: nn.Module, batch: int, args: tuple[Any, ...], kwargs: dict[str, Any], loss: Callable[[Any], Tensor]
) -> NetworkCost:
    from torch.utils.flop_counter import FlopCounterMode

    from driftline.engine.executors.process import one_thread

    network.train()
    with one_thread():
        with FlopCounterMode(display=False) as ahead:  # which is a first time as well
            out = network(*args, **kwargs)
        with FlopCounterMode(display=False) as back:
            loss(out).backward()
        began = time.process_time()
        out = network(*args, **kwargs)
        between = time.process_time()
        loss(out).backward()
        ended = time.process_time()
    macs = (ahead.get_total_flops() // 2 // batch, back.get_total_flops() // 2 // batch)
    seconds = ((between - began) / batch, (ended - between) / batch)
    return NetworkCost(*macs, *seconds, sum(weight.numel() for weight in network.parameters()))
