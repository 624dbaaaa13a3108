"""The benchmarks of a matrix in miniature: embedded data, and a network that most methods can work with.

The network has a last linear layer, whose inputs class means are taken of, named layers, which methods in phases tune
one by one, and, but for open-world, batch norm, which adaptation without labels moves. Methods that were made for a
few large lessons get small ones where labels come one by one, and those made for 5,000 labels between lessons get
lessons that come in time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

TRAINED = (
    *("a-gem", "all-history", "coral-t", "erm", "erm-all", "every-k", "ewc", "ft", "groupdro-t", "irm-t", "lisa"),
    *("mixup", "never", "on-detector", "on-online-tas", "si", "simclr", "swa", "swav", "window"),
)
REFINING = (
    *("cft", "er", "er+ewc", "er+l2", "maxloss", "maxloss+ewc", "maxloss+l2", "mir", "mir+ewc", "mir+l2"),
    *("online-ewc", "online-l2"),
)
LIFELONG = ("exemplar-tuning", "fine-tune", "lwf", "maml", "oltr", "standard-training", "weight-imprinting")
ADAPTING = ("cpl", "eta", "eata", "rdumb", "rpl", "slr", "tent")
RESETTING = ("rdumb", "resetting")
NETWORK = {"name": "conv-1", "width": 16}


def each(names: Iterable[str], **settings: Any) -> dict[str, dict[str, Any]]:
    """The same settings for several methods.

    >>> each(("er", "mir"), epochs=2)
    {'er': {'epochs': 2}, 'mir': {'epochs': 2}}
    """
    return {name: dict(settings) for name in names}


def several(*parts: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Settings of methods from several sources; a method may be in more than one.

    >>> several({"rdumb": {"lr": 0.1}}, {"rdumb": {"every": 5}})
    {'rdumb': {'lr': 0.1, 'every': 5}}
    """
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: {key: value for part in parts for key, value in part.get(name, {}).items()} for name in names}


COLUMNS: dict[str, dict[str, Any]] = {
    "timeline": {
        "data": {"name": "digits", "periods": 6, "rotation": 45.0},
        "model": NETWORK,
        "timeline": {"upstream": 1},  # methods that are never shown a label start from a trained model, as all do here
        "settings": several(
            each(TRAINED, updates=100), each(LIFELONG, every=250), each(ADAPTING, lr=1e-3), each(RESETTING, every=2)
        ),
    },
    "seq-to-final": {
        "data": "colour-digits",
        "model": {"name": "conv-1", "width": 8},
        "seq-to-final": {
            **{"shifts": "RL", "sizes": [300, 200, 200], "test": 400, "oracle": 600, "epochs": 12},
            **{"batch": 16},
            **{"lr": [1e-2, 1e-3], "weight_decay": [0.0], "dropout": [0.0], "adjacent": [0.1], "fisher": [1.0]},
        },
        "settings": several(each(TRAINED, updates=100), each(LIFELONG, every=200), each(RESETTING, every=2)),
    },
    "refinement": {
        "data": "digit-clusters",
        "model": NETWORK,
        "refinement": {"episodes": 20, "upstream_set": 256, "held_out": 64, "upstream_updates": 1000},
        "settings": several(each(ADAPTING, lr=1e-3), each(RESETTING, every=5)),
    },
    "test-time": {
        "data": "colour-digits",
        "model": NETWORK,
        "test-time": {
            **{"order": "gradual", "corruptions": "gaussian_noise,contrast,defocus_blur,saturate"},
            **{"images": 2304, "speed": 64, "upstream_updates": 1000},
        },
        "settings": several(each(ADAPTING, lr=1e-3), each(RESETTING, every=9)),
    },
    "open-world": {
        "data": "digit-turns",
        "model": {"name": "mlp", "width": 128},  # where labels come one by one, a batch is one sample: no batch norm
        "open-world": {"law": "300/(4+r)", "upstream_updates": 1000, "head": 20},
        "settings": several(
            each(TRAINED, updates=1),
            each(REFINING, epochs=2),
            each(LIFELONG, every=100),
            each(RESETTING, every=200),
        ),
    },
}
"""A column for each benchmark: a spec without methods and seeds, and the settings that methods have in it."""
