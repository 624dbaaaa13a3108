"""`driftline few-shot`: few-shot accuracy of a network on classes it was never trained on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from driftline.cli.options import DataFolder
from driftline.cli.printing.terminal import echo
from driftline.errors import UserError

if TYPE_CHECKING:
    import numpy as np

    from driftline.data import Dataset
    from driftline.seeds import Seed
    from driftline.types import JsonObject, Network, Samples


def few_shot(
    data: Annotated[str, typer.Option(help="Name of a dataset.")],
    model: Annotated[str | None, typer.Option(help="Name of a network. [default: the one that suits the data]")] = None,
    pretraining: Annotated[
        str, typer.Option(help="Kind of pretraining: supervised, prototypes, meta-baseline, maml or moco.")
    ] = "prototypes",
    way: Annotated[int, typer.Option(help="Classes in an episode.", min=2)] = 5,
    shot: Annotated[int, typer.Option(help="Labeled samples of each class.", min=1)] = 5,
    query: Annotated[int, typer.Option(help="Query samples of each class.", min=1)] = 15,
    episodes: Annotated[int, typer.Option("--episodes", "-n", help="Number of episodes.", min=2)] = 600,
    novel: Annotated[int | None, typer.Option(help="Number of novel classes. [default: half]", min=2)] = None,
    steps: Annotated[int, typer.Option(help="Gradient steps on each episode; 0: none.", min=0)] = 0,
    step_size: Annotated[float, typer.Option("--lr", help="Learning rate of these steps.")] = 0.1,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="part.key=value, e.g. pretraining.updates=500 or model.width=32")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the network, the classes and the episodes.", min=0)] = 0,
    data_dir: DataFolder = None,
) -> None:
    """Evaluate a network in few-shot episodes of novel classes.

    The network is trained on other classes first. `--set pretraining.updates=0` evaluates a network without training,
    for example with weights from a file.
    """
    from driftline.seeds import Seed
    from driftline.training import few_shot as few

    parts = _parts(data, model, pretraining, set_ or [])
    dataset, training, held_out = _split_classes(parts["data"], novel, Seed(seed), data_dir)
    network = _train_network(parts, dataset, training, Seed(seed))
    drawn = list(few.episodes(held_out, way, shot, query, episodes, Seed(seed).child("episodes")))
    echo(f"{way}-way {shot}-shot on {len(set(held_out.y.tolist()))} novel classes, {episodes} episodes, 95 % interval")
    echo(f"nearest class mean        {few.nearest_mean_accuracy(network, held_out, drawn)}")
    echo(f"nearest by cosine         {few.nearest_mean_accuracy(network, held_out, drawn, cosine=True)}")
    if steps:
        reached = few.fine_tuned_accuracy(network, held_out, drawn, steps=steps, lr=step_size)
        echo(f"after {steps:3d} gradient steps  {reached}")


def _parts(data: str, model: str | None, pretraining: str, assignments: list[str]) -> dict[str, JsonObject]:
    """Return the settings of the data, the model and its pretraining, as mappings with a name each."""
    from driftline import spec

    settings = {"data": {"name": data}, "model": {"name": model}, "pretraining": {"name": pretraining}}
    # A spec's own part is its benchmark; here that is the training.
    content = spec.apply_overrides({"benchmark": "pretraining", **settings}, assignments)
    return {name: content[name] for name in settings}


def _split_classes(
    settings: JsonObject, novel: int | None, seed: Seed, data_dir: Path | None
) -> tuple[Dataset, Samples, Samples]:
    """Return the data, the samples to train on, and all samples of the novel classes."""
    import numpy as np

    from driftline import data
    from driftline.tasks import Classification

    options = {key: value for key, value in settings.items() if key != "name"}
    dataset = data.load(settings["name"], options, data.data_folders(data_dir))
    if not isinstance(dataset.task, Classification):
        raise UserError(f"episodes are made of classes, and {settings['name']} has none")
    classes = seed.child("classes").numpy().permutation(np.unique(dataset.samples.y))
    n_novel = len(classes) // 2 if novel is None else novel
    if not 2 <= n_novel <= len(classes) - 2:
        raise UserError(
            f"novel={n_novel}: {settings['name']} has {len(classes)} classes; two or more must be left for each"
        )
    episodic = np.flatnonzero(np.isin(dataset.samples.y, classes[:n_novel]))
    return dataset, dataset.samples[_training_rows(dataset, classes[n_novel:])], dataset.samples[episodic]


def _training_rows(dataset: Dataset, classes: np.ndarray) -> np.ndarray:
    """Return the rows of these classes that are not in an official test set."""
    import numpy as np

    tests = np.zeros(len(dataset.samples), bool) if dataset.test is None else dataset.test
    return np.flatnonzero(np.isin(dataset.samples.y, classes) & ~tests)


def _train_network(parts: dict[str, JsonObject], dataset: Dataset, samples: Samples, seed: Seed) -> Network:
    """Return a network trained on these samples."""
    from driftline.engine.build import initial_model, new_pretrainer
    from driftline.spec.settings import Choice, with_defaults
    from driftline.training.model import as_model

    settings = {**parts["model"], "name": parts["model"]["name"] or dataset.model}
    choice = with_defaults("model", Choice.model_validate(settings))
    network = initial_model(choice, dataset, seed)
    if not as_model(network).is_network:
        raise UserError(f"episodes need the features of a network, and {choice.name} is not a network: try --model mlp")
    pretrainer = new_pretrainer(Choice.model_validate(parts["pretraining"]), seed)
    pretrainer.prepare(network, dataset.task)
    pretrainer.train(samples.x, samples.y)
    return network
