"""What full recipes cost, by a formula: samples × passes × multiply-accumulates of a forward pass.

A backward pass counts as two forward passes. Upper bounds: every query of refinement is answered wrongly and learned,
every layer is trained in open-world, every image is selected in test-time, and every fit uses all its epochs. Methods
with several networks count as one. A core is assumed to compute at the rate of an earlier profile of a like network.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import transformers
from synthetic_data import ANSWER, BART, MADE, TEXT_TOKENS, TOKENS, SyntheticData, shrink_recipe
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from driftline import models
from driftline.engine.costs.groups import StageGrouper
from driftline.engine.planning.plan import plan
from driftline.engine.stages.fit import Fit
from driftline.spec import Spec, parse
from driftline.spec.job import Job

TRAINING = 3
"""Passes per sample that is trained on."""
TEST_TIME_PASSES = {"frozen": 1, "bn": 1, "cotta": 26}
"""Passes per image; all other methods train on it.

CoTTA's number is what an earlier forecast of ten methods leaves after the other nine. It depends on how often the
teacher is unsure and averages over augmentations.
"""
RATES = {"seq2seq": 12e9, "minilm": 25e9, **dict.fromkeys(("res-4", "conv-4", "resnet20", "efficientnet-lite0"), 7e9)}
RATE = 19e9
"""Multiply-accumulates per second of one core, from profiles: BART, DistilBERT, small networks on CIFAR; ResNet-50."""
PUBLISHED_MACS = {"efficientnet-lite0": 407_000_000}
"""Of an image; the network is in a package of its own."""
NED_STREAM = sum(25_000 // (25 + rank) for rank in range(1, 1001))
CLASSES = {"cifar10": 10, "cifar100": 20, "yearbook": 2, "fmow": 62, "huffpost": 11, "arxiv": 172}
"""Outputs of a network; others have 1,000."""
SIDES = {"imagenet-val": 224}
EPISODE = {"way": 30, "shot": 5, "query": 15, "steps": 5}
"""Defaults of episodic pretraining; MAML has 5 classes."""
ONCE = ("erm-all", "groupdro-t", "coral-t", "irm-t", "swa")
"""Methods of Wild-Time that train once, at the split, and not after every period."""


def estimate(content: dict[str, Any]) -> tuple[int, int, float]:
    """Return the runs, multiply-accumulates and core hours of a recipe."""
    spec = parse(content)
    assert spec.model is not None
    jobs = spec.jobs(default_model="")
    searched = (one for job in jobs for candidate in job.search_jobs() for one in candidate)
    runs = [*jobs, *{one.model_dump_json(): one for one in searched}.values()]
    passes = _upstream(runs) + sum(RUN[spec.benchmark](job) for job in runs)
    if spec.benchmark == "seq-to-final":
        passes += _fits(content)
    macs = passes * forward_macs(spec)
    return len(runs), macs, float(f"{macs / RATES.get(spec.model.name, RATE) / 3600:.2g}")


def _upstream(jobs: Sequence[Job]) -> int:
    """Return the passes of all pretrainings: one for each way and seed."""
    each = {(job.pretraining.model_dump_json(), job.seed): job for job in jobs if job.purpose == "result"}
    return sum(_pretraining(job) for job in each.values())


def _pretraining(job: Job) -> int:
    updates, settings = job.options.get("upstream_updates", 0), job.pretraining.settings
    name, batch = job.pretraining.name, job.options.get("upstream_batch", 0)
    way, shot, query, steps = (settings.get(key, default) for key, default in EPISODE.items())
    if name == "moco":
        return int(updates * batch * (TRAINING + 1))  # one pass more, of the key encoder
    if name == "prototypical":
        return int(updates * way * (shot + query) * TRAINING)
    if name == "maml":  # second-order gradients: twice a training pass for each inner step
        return int(updates * 5 * (2 * steps * shot + query) * TRAINING)
    return int(updates * batch * TRAINING)


def _refinement(job: Job) -> int:
    """Answers, evaluations, errors and replayed samples of every episode, and the candidates of MIR and MaxLoss."""
    options, settings = job.options, job.method.settings
    episodes, size, measured = (
        options["episodes"],
        options["queries_per_episode"],
        -(-options["episodes"] // options["period"]),
    )
    passes = 2 * episodes * size  # each episode is answered before and after it is learned
    passes += measured * (options["upstream_set"] + options["past"] + 5 * options["held_out"])
    if job.method.name == "frozen":
        return int(passes)
    replays = episodes // settings["replay_every"] if "replay_every" in settings else 0
    learned = episodes * size + replays * settings.get("replay_size", 0)
    if job.method.name == "offline":
        learned *= 2  # as many upstream samples as errors
    passes += learned * settings["epochs"] * TRAINING
    if "n_candidates" in settings:  # a virtual update, then the losses of candidates from two buffers
        losses = {"mir": 2, "reverse": 2}.get(settings["ranking"], 1)  # before and after it
        passes += replays * (size * TRAINING + 2 * settings["n_candidates"] * losses)
    return int(passes)


def _open_world(job: Job) -> int:
    """One answer per sample; every `train_every` labels, some epochs on all samples so far."""
    settings = job.method.settings
    if not (every := settings.get("train_every", 0)):
        return NED_STREAM
    rounds, warm = NED_STREAM // every, settings.get("warmup_labels", 0) // settings.get("warmup_every", 1)
    trained = every * rounds * (rounds + 1) // 2 + settings.get("warmup_every", 0) * warm * (warm + 1) // 2
    return int(NED_STREAM + trained * settings["epochs"] * TRAINING)


def _test_time(job: Job) -> int:
    return int(job.options["images"] * TEST_TIME_PASSES.get(job.method.name, TRAINING))


def _timeline(job: Job) -> int:
    """One answer per sample, and the updates at the split or after each period before it."""
    when = MADE[job.data.name]().samples.time
    periods = len({*when[when <= int(job.options["split"])].tolist()})
    rounds = 1 if job.method.name in ONCE else periods
    return int(len(when) + rounds * job.method.settings["updates"] * job.method.settings["batch"] * TRAINING)


def _fits(content: dict[str, Any]) -> int:
    """Return the passes of all fits of a recipe of seq-to-final, each computed once for all methods that share it."""
    spec, data = parse(content), SyntheticData()
    found = plan(parse({**shrink_recipe(content), "seeds": 1}), data)
    grouper = StageGrouper(found.fit_specs, data)
    fits = [stage for stage in found.stages if isinstance(stage, Fit) and grouper.fit_spec(stage.fit_spec).trains]
    epochs = len(spec.seeds) * spec.jobs(default_model="")[0].options["epochs"]
    return int(sum(grouper.epoch_samples(stage) for stage in fits) * epochs * TRAINING)


RUN: dict[str, Callable[[Job], int]] = {
    "open-world": _open_world,
    "refinement": _refinement,
    "seq-to-final": lambda job: 0,  # its fits are counted instead
    "test-time": _test_time,
    "timeline": _timeline,
}


def forward_macs(spec: Spec) -> int:
    """Return the multiply-accumulates of one sample; of an image, without computing them."""
    assert spec.model is not None
    name, kind = spec.data.name, spec.model.name
    if kind in PUBLISHED_MACS:
        return PUBLISHED_MACS[kind]
    side, channels = spec.data.settings.get("size", SIDES.get(name, 32)), 1 if name == "yearbook" else 3
    with FlopCounterMode(display=False) as counted, torch.no_grad():
        if kind in ("seq2seq", "minilm"):
            _pass_texts(spec)
        else:
            with torch.device("meta"):
                _image_network(kind, side, channels, CLASSES.get(name, 1000)).eval()(
                    torch.zeros(1, channels, side, side)
                )
    return counted.get_total_flops() // 2


def _image_network(kind: str, side: int, channels: int, outputs: int) -> nn.Module:
    if kind.startswith("timm:vit_base_patch16"):
        config = transformers.ViTConfig(num_labels=outputs, attn_implementation="eager")
        return transformers.ViTForImageClassification(config)
    return models.build(kind, (side, side, channels), outputs)


def _pass_texts(spec: Spec) -> None:
    assert spec.model is not None
    eager = {"attn_implementation": "eager"}
    if spec.model.name == "minilm":
        config = transformers.DistilBertConfig(num_labels=CLASSES[spec.data.name], **eager)
        transformers.DistilBertForSequenceClassification(config)(torch.ones(1, TEXT_TOKENS).long())
        return
    given = {"input_ids": torch.ones(1, TOKENS).long(), "labels": torch.ones(1, ANSWER).long()}
    if "t5" in str(spec.model.settings["weights"]):
        config = transformers.T5Config(
            d_model=768, d_ff=3072, num_layers=12, num_heads=12, decoder_start_token_id=0, **eager
        )
        transformers.T5ForConditionalGeneration(config)(**given)
        return
    half = {"layers": BART["layers"], "attention_heads": BART["heads"], "ffn_dim": 4 * BART["width"]}
    sizes = {f"{part}_{key}": value for part in ("encoder", "decoder") for key, value in half.items()}
    config = transformers.BartConfig(vocab_size=BART["vocab_size"], d_model=BART["width"], **sizes, **eager)
    transformers.BartForConditionalGeneration(config)(**given)
