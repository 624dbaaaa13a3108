"""`driftline new`: write a file to start from."""

from __future__ import annotations

import importlib.util
import keyword
import re
from pathlib import Path
from typing import Annotated

import typer

from driftline.cli.printing.terminal import echo
from driftline.errors import UserError, unknown_name
from driftline.io.atomic import write_bytes

METHOD = '''"""{title}: fine-tuning with a penalty on large outputs."""

from dataclasses import dataclass

from torch import Tensor

from driftline import check_learner
from driftline.learners import SupervisedLearner
from driftline.types import Inputs, Reveal, Targets


@dataclass
class {title}(SupervisedLearner):
    """Fine-tuning with a penalty on large outputs."""

    strength: float = 0.1  # weight of the penalty

    requires = "network"
    min_reveal = Reveal.ERRORS  # or LABELS for all labels, INPUTS for none

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Return the loss of a mini-batch from the network's outputs and the targets."""
        return super().loss(outputs, y) + self.strength * outputs.square().mean()

    def learn(self, x: Inputs, y: Targets) -> None:
        """Train on revealed labels."""
        self.train(x, y)


if __name__ == "__main__":
    check_learner({title})
    print("{title} keeps the contract of a method")
'''
TEMPLATES = {"method": METHOD}


def new(
    kind: Annotated[str, typer.Argument(help="method")],
    name: Annotated[str, typer.Argument(help="Name such as half-way, for the class HalfWay in half_way.py.")],
) -> None:
    """Write a file with a new method to start from.

    The method runs as it is; the file is in the current folder.
    """
    if kind not in TEMPLATES:
        raise unknown_name("template", kind, TEMPLATES)
    words = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])", name)
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name) or not words:
        raise UserError(f"'{name}' is not a valid name: use letters, digits and hyphens, for example half-way")
    path, title = Path(f"{'_'.join(words).lower()}.py"), "".join(word[0].upper() + word[1:] for word in words)
    if path.exists():
        raise UserError(f"{path} exists already: choose another name")
    if keyword.iskeyword(path.stem) or keyword.iskeyword(title):
        raise UserError(f"'{name}' is a keyword of Python: choose another name")
    if importlib.util.find_spec(path.stem) is not None:
        raise UserError(f"{path} would hide the module {path.stem}, which others import: choose another name")
    write_bytes(path, TEMPLATES[kind].format(title=title).encode())
    echo(f"{path} has the method {title}. Test it: python {path}. Run it, for example:")
    echo(f"driftline run timeline --data digits --model linear --methods ft,{path}:{title}")
