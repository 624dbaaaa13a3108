"""Stages that stand for others where what they compute does not matter."""

from __future__ import annotations

from typing import Any

from driftline.engine.stages import Pretrain, StreamRun
from driftline.spec.job import Job, LabelPolicy
from driftline.spec.settings import Choice


def job(label: str = "erm", **changes: Any) -> Job:
    parts: dict[str, Any] = {"benchmark": "timeline", "options": {}, "data": Choice(name="digits"), "label": label}
    parts |= {"model": Choice(name="linear"), "method": Choice(name="erm"), "seed": 0, "reveal": LabelPolicy()}
    return Job(**{**parts, **changes})


def run(key: str) -> StreamRun:
    """A run called as its key."""
    return StreamRun(key, job(key))


def pretraining(key: str) -> Pretrain:
    return Pretrain(key, job(key))
