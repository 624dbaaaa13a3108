"""Networks as models: adapters for networks with raw outputs and for networks that generate text.

A network for texts brings `encode`; one that generates text brings all of `tasks.TextGenerator`.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from driftline.device import micro_batch, to_device, to_numpy
from driftline.errors import UserError
from driftline.models.preprocessing import to_float_batch, to_tensor
from driftline.models.weights import LoadedWeights
from driftline.training.batches import map_batches
from driftline.training.features import forward_with_features, has_features
from driftline.training.mac_counter import MacCounter
from driftline.training.modes import evaluating
from driftline.types import Inputs, Network, State, Targets


@dataclass(frozen=True, eq=False)
class TorchModel:
    """A network whose outputs are numbers."""

    module: Network
    is_network: ClassVar[bool] = True
    generates_text: ClassVar[bool] = False
    supports_partial_fit: ClassVar[bool] = True

    @property
    def is_pretrained(self) -> bool | None:
        found: bool | None = getattr(self.module, "pretrained", None)
        return found

    @property
    def loaded_weights(self) -> LoadedWeights | None:
        found: LoadedWeights | None = getattr(self.module, "loaded_weights", None)
        return found

    @property
    def mac_counter(self) -> MacCounter | None:
        found: MacCounter | None = getattr(self.module, "mac_counter", None)
        return found

    @property
    def micro_batch(self) -> int | None:
        """The number of samples of a mini-batch that pass at a time; None for all."""
        return vars(self.module).get("micro_batch") or micro_batch()

    @property
    def reads_text(self) -> bool:
        """Whether its inputs are texts."""
        return hasattr(self.module, "encode")

    def encode(self, x: Inputs) -> Tensor:
        """Return inputs as a tensor, without a copy where possible; a network for texts makes tokens of them."""
        encoded: Tensor = self.module.encode(x) if self.reads_text else to_tensor(x)
        return encoded

    def targets(self, y: Targets) -> Tensor:
        """Return a task's targets as a tensor."""
        return to_device(torch.as_tensor(y))

    def fit_vocabulary(self, x: Inputs, y: Targets) -> None:
        """Take a vocabulary from the first training samples; only text generators have one."""

    def training_outputs(self, x: Tensor, y: Tensor) -> Tensor:
        """Return raw outputs to compare with targets."""
        outputs: Tensor = self.module(x)
        return outputs

    def predict(self, x: Inputs, batch: int = 128) -> np.ndarray:
        """Return raw outputs in evaluation mode; the network is left as it was."""
        inputs = self.encode(x)
        with evaluating(self.module), torch.no_grad():
            return to_numpy(map_batches(lambda rows: self.module(to_float_batch(rows)), inputs, batch))

    def features(self, x: Inputs) -> np.ndarray | None:
        if not has_features(self.module):
            return None
        with evaluating(self.module), torch.no_grad():
            _, seen = forward_with_features(self.module, to_float_batch(self.encode(x)))
        return to_numpy(seen)

    def truncated(self, x: Inputs) -> int | None:
        found: int | None = self.module.count_truncated(x) if hasattr(self.module, "count_truncated") else None
        return found

    def fit(self, x: Inputs, y: np.ndarray) -> None:
        raise UserError(f"{type(self.module).__name__} is a network: a learner trains it")

    def partial_fit(self, x: Inputs, y: np.ndarray) -> None:
        self.fit(x, y)

    def clone(self) -> nn.Module:
        copied: nn.Module = copy.deepcopy(self.module)
        return copied

    def state(self) -> State:
        return dict(self.module.state_dict())

    def restore(self, state: object) -> None:
        self.module.load_state_dict(state)


class TextGenerator(TorchModel):
    """A network that generates its answers, token by token (`tasks.TextGenerator`)."""

    generates_text: ClassVar[bool] = True

    def targets(self, y: Targets) -> Tensor:
        """Return answers as rows of tokens."""
        return to_device(self.module.targets(y))

    def fit_vocabulary(self, x: Inputs, y: Targets) -> None:
        self.module.build_vocabulary(x, y)

    def training_outputs(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the logits of each token of the right answers, given those before it."""
        outputs: Tensor = self.module.teacher_forced(x, y)
        return outputs

    def predict(self, x: Inputs, batch: int = 128) -> np.ndarray:
        """Return an answer for each text."""
        with evaluating(self.module), torch.no_grad():
            written: np.ndarray = self.module.generate(x)
        return written


def torch_model(module: nn.Module) -> TorchModel:
    """Return the adapter of a network."""
    return TextGenerator(module) if hasattr(type(module), "generate") else TorchModel(module)
