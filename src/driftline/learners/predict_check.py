"""Check that `predict` does not change a learner."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from driftline.errors import UserError
from driftline.io import serialization
from driftline.io.serialization import digest
from driftline.learners.base import Learner
from driftline.types import Answers, Inputs


def fingerprint(learner: Learner) -> dict[str, str]:
    """Return a digest of each part of a learner: its state, and the weights and modes of the networks it holds."""
    parts = {name: digest(value) for name, value in learner.state().items()}
    for name, value in vars(learner).items():
        if hasattr(value, "named_modules"):
            modes = [(path, module.training) for path, module in value.named_modules()]
            grads = [(path, weight.requires_grad) for path, weight in value.named_parameters()]
            parts[f"the weights of {name}"] = digest(serialization.to_tree(value))
            parts[f"the train or eval mode of {name}"] = digest([modes, grads])
    return parts


def changed_parts(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return the names of the parts that differ between two fingerprints."""
    return [name for name in {**before, **after} if before.get(name) != after.get(name)]


def check_purity_once(learner: Learner) -> Callable[[Inputs], Answers]:
    """Return `learner.predict`; its first call refuses a learner that it changes.

    Methods of this package are checked by their tests. A learner whose state cannot be saved is not checked here.
    """
    if not isinstance(learner, Learner) or type(learner).__module__.startswith("driftline."):
        return learner.predict
    checked = False

    def predict(x: Inputs) -> Answers:
        nonlocal checked
        before = None if checked else _fingerprint_or_none(learner)
        answers = learner.predict(x)
        if before is not None and (moved := changed_parts(before, _fingerprint_or_none(learner) or {})):
            raise UserError(
                f"{type(learner).__name__}.predict changed {', '.join(moved)}: predict must change nothing, because "
                "it is called for evaluation too. Change the learner in adapt or learn"
            )
        checked = True
        return answers

    return predict


def _fingerprint_or_none(learner: Learner) -> dict[str, str] | None:
    try:
        return fingerprint(learner)
    except TypeError:  # an attribute that cannot be saved; checkpoints refuse it
        return None
