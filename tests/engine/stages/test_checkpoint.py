"""Checkpoints: a run that is resumed ends as if it had never been interrupted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from driftline.data import load
from driftline.engine.stages import checkpoint
from driftline.engine.stages.checkpoint import Checkpoint
from driftline.lazy_rows import LazyRows
from driftline.learners.online.standard_training import StandardTraining
from driftline.models import build
from driftline.seeds import Seed


class Recorder:
    """A recorder without records."""

    def flush(self) -> None:
        pass

    def state(self) -> dict[str, int]:
        return {}

    def restore(self, saved: object) -> None:
        pass


@pytest.mark.parametrize("augment", ["none", "crop-flip"])
def test_images_in_files_are_saved_by_row_and_cropped_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, augment: str
) -> None:
    monkeypatch.setattr(checkpoint, "CHECKPOINT_SECONDS", 0)
    rng = np.random.default_rng(0)
    for name in "ab":
        (tmp_path / name).mkdir()
        for k in range(10):
            Image.fromarray(rng.integers(0, 256, (40, 50, 3), np.uint8)).save(tmp_path / name / f"{k}.png")
    data = load("image-folders", {"path": str(tmp_path), "size": 32})
    order = rng.permutation(20)

    def prepared() -> tuple[StandardTraining, Checkpoint]:
        learner = StandardTraining(train_every=10, epochs=2, batch=4, augment=augment)
        learner.prepare(build("conv-1", (32, 32, 3), 2, Seed(0), width=2), data.task)
        parts = {"learner": learner, "recorder": Recorder()}
        return learner, Checkpoint(tmp_path / "checkpoint", parts, data.samples.x)

    whole, saved = prepared()
    whole.learn(data.samples.x.take(order[:10]), data.samples.y[order[:10]])
    saved.save_if_due(1)
    resumed, found = prepared()
    assert found.resume() == 1
    assert isinstance(resumed.buffer.x, LazyRows)
    assert (tmp_path / "checkpoint").stat().st_size < 10 * 32 * 32 * 3, "no image is in it"
    for learner in (whole, resumed):
        learner.learn(data.samples.x.take(order[10:]), data.samples.y[order[10:]])
    for a, b in zip(whole.model.parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(a, b)
