"""Few-shot episodes: k classes never seen together before, n samples of each to learn from, some to predict.

Vinyals et al., "Matching Networks for One Shot Learning", NeurIPS 2016. Accuracy over many episodes, with the 95 %
interval of their mean, is what few-shot papers print; Table 6 of Wallingford et al., 2020 (NED), is an example.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from driftline.device import to_device
from driftline.errors import UserError
from driftline.models.preprocessing import to_float_batch
from driftline.seeds import Seed
from driftline.training.cached_features import extract_features
from driftline.training.maml_inner_loop import InnerLoop
from driftline.training.modes import evaluating
from driftline.training.torch_model import torch_model
from driftline.types import Samples


@dataclass(frozen=True, eq=False)
class Episode:
    """Rows of samples: `support` (way, shot) to learn from, `query` (way, query) to predict."""

    classes: np.ndarray
    """The class that each line of rows is of; within the episode it is called by its place, 0 to way - 1."""
    support: np.ndarray
    query: np.ndarray

    @property
    def rows(self) -> np.ndarray:
        """All rows, class by class: first those to learn from, then the queries."""
        return np.concatenate([self.support.ravel(), self.query.ravel()])

    @property
    def query_labels(self) -> Tensor:
        """The class indices of the queries."""
        return _class_indices(self.query)

    @property
    def support_labels(self) -> Tensor:
        """The class indices of the support rows."""
        return _class_indices(self.support)


def _class_indices(rows: np.ndarray) -> Tensor:
    return to_device(torch.arange(len(rows)).repeat_interleave(rows.shape[1]))


def episodes(samples: Samples, way: int, shot: int, query: int, n: int, seed: Seed) -> Iterator[Episode]:
    """Draw n episodes; classes and rows are drawn without replacement within each.

    Episode k depends on the seed and k alone. Classes with fewer than shot + query samples are passed over.

    >>> few = Samples(np.zeros((12, 1)), np.repeat([3, 5, 9], 4))
    >>> one = next(episodes(few, way=2, shot=1, query=3, n=1, seed=Seed(0)))
    >>> one.support.shape, one.query.shape, (few.y[one.query] == one.classes[:, None]).all()
    ((2, 1), (2, 3), np.True_)
    """
    for name, given, least in (("way", way, 2), ("shot", shot, 1), ("query", query, 1)):
        if given < least:
            raise UserError(f"{name}={given}: an episode needs {least} or more")
    rows = {label: np.flatnonzero(samples.y == label) for label in classes_with_at_least(samples.y, shot + query)}
    if len(rows) < way:
        raise UserError(
            f"{way}-way episodes need {way} classes with {shot} + {query} samples or more, and there are {len(rows)}: "
            "ask for fewer classes or samples"
        )
    for k in range(n):
        rng = seed.child("episode", k).numpy()
        classes = rng.choice(np.array(list(rows)), way, replace=False)
        drawn = np.stack([rng.choice(rows[label], shot + query, replace=False) for label in classes.tolist()])
        yield Episode(classes, drawn[:, :shot], drawn[:, shot:])


def classes_with_at_least(y: np.ndarray, min_samples: int) -> list[int]:
    """Return the classes with enough samples, in order."""
    labels, counts = np.unique(y, return_counts=True)
    return [int(label) for label in labels[counts >= min_samples]]


def prototypes(features: Tensor, way: int) -> Tensor:
    """Return the mean feature of each class, from features ordered by class."""
    return features.reshape(way, -1, features.shape[1]).mean(1)


def squared_distance_logits(support: Tensor, query: Tensor, way: int) -> Tensor:
    """Return minus the squared distance of each query to the mean of each class.

    >>> squared_distance_logits(torch.tensor([[1.0, 0], [3, 0], [0, 1], [0, 1]]), torch.tensor([[1.5, 0.5]]), way=2)
    tensor([[-0.5000, -2.5000]])
    """
    means = prototypes(support, way)
    return -((query[:, None] - means[None]) ** 2).sum(2)


def cosine_logits(support: Tensor, query: Tensor, way: int) -> Tensor:
    """Return the cosine between each query and the mean of each class."""
    return normalize(query, dim=1) @ normalize(prototypes(support, way), dim=1).T


@dataclass(frozen=True, eq=False)
class EpisodeAccuracies:
    """The accuracy of each of many episodes."""

    accuracies: np.ndarray

    @property
    def mean(self) -> float:
        return float(self.accuracies.mean())

    @property
    def half_width(self) -> float:
        """Half the width of the 95 % interval of the mean: 1.96 standard errors; NaN for a single episode.

        >>> round(EpisodeAccuracies(np.array([0.2, 0.4, 0.6, 0.8])).half_width, 4)
        0.253
        """
        n = len(self.accuracies)
        return float(1.96 * self.accuracies.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")

    def __str__(self) -> str:
        return f"{100 * self.mean:.2f} ± {100 * self.half_width:.2f} %"


def nearest_mean_accuracy(
    model: nn.Module, samples: Samples, drawn: Iterable[Episode], *, cosine: bool = False
) -> EpisodeAccuracies:
    """Return the accuracy of the nearest class mean on a network's features; nothing is trained."""
    features = extract_features(model, samples.x)
    compare = cosine_logits if cosine else squared_distance_logits
    each = [
        _accuracy(compare(features[e.support.ravel()], features[e.query.ravel()], len(e.classes)), e.query_labels)
        for e in drawn
    ]
    return EpisodeAccuracies(np.array(each))


def fine_tuned_accuracy(
    model: nn.Module, samples: Samples, drawn: Iterable[Episode], *, steps: int = 10, lr: float = 0.1
) -> EpisodeAccuracies:
    """Return the accuracy after a few steps of gradient descent on each episode, as MAML is evaluated.

    Batch norm uses its running statistics, so that answers do not depend on the other queries.
    """
    inputs = torch_model(model).encode(samples.x)
    adapting = InnerLoop(model, steps=steps, lr=lr)
    each = []
    with evaluating(adapting.unhooked):
        for e in drawn:
            support, query = (to_float_batch(inputs[rows.ravel()]) for rows in (e.support, e.query))
            weights = adapting.adapt(support, e.support_labels, len(e.classes), second_order=False)
            with torch.no_grad():
                each.append(_accuracy(adapting.outputs(weights, query), e.query_labels))
    return EpisodeAccuracies(np.array(each))


def _accuracy(logits: Tensor, truth: Tensor) -> float:
    return float((logits.argmax(1) == truth).float().mean())
