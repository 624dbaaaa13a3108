"""Single images in a sliding window: the method's own answers and updates on batches of the window, by hand."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

import driftline
from driftline.errors import UserError
from driftline.learners.sliding_window import SlidingWindow
from driftline.learners.test_time.bn import BN
from driftline.learners.test_time.tent import Tent
from driftline.testing import check_learner, digest

from .tiny import BATCHES, far, ready, weights_of

IMAGES = np.concatenate(BATCHES)
WINDOW, LR = 6, 0.1


def window(method: str = "tent", **options: object) -> SlidingWindow:
    return ready(SlidingWindow(method=method, options=dict(options) or None, window=WINDOW))


def test_it_adapts_as_the_method_does_in_batches_of_the_window() -> None:
    learner, tent = window(lr=LR), ready(Tent(lr=LR))
    for start in range(0, 18, WINDOW):
        answers = [learner.answer(IMAGES[k : k + 1]) for k in range(start, start + WINDOW)]
        expected = tent.answer(IMAGES[start : start + WINDOW])
        np.testing.assert_allclose(answers[-1].scores[0], expected.scores[-1], rtol=1e-5)
        for name, weight in weights_of(tent.model).items():
            torch.testing.assert_close(weights_of(learner.model)[name], weight)
    eager = ready(Tent(lr=LR))  # a step with each image is another method
    for k in range(2, 18):
        eager.answer(IMAGES[max(0, k - WINDOW) : k])
    assert far(weights_of(eager.model), weights_of(tent.model)) > 0.01


def test_each_image_is_answered_with_the_statistics_of_the_window_that_ends_with_it() -> None:
    learner, bn = window("bn"), ready(BN())
    for k in range(15):
        answer = learner.answer(IMAGES[k : k + 1])
        batch = IMAGES[max(0, k + 1 - WINDOW) : k + 1] if k else IMAGES[[0, 0]]
        assert len(answer) == 1
        np.testing.assert_allclose(answer.scores[0], bn.predict(batch).scores[-1], rtol=1e-5)
    alone = bn.predict(IMAGES[[14, 14]]).scores[-1]
    assert np.abs(answer.scores[0] - alone).max() > 1e-3, "an image's own statistics are others"


def test_larger_batches_are_their_own_window() -> None:
    learner, tent = window(lr=LR), ready(Tent(lr=LR))
    for batch in BATCHES[:3]:  # nine images
        np.testing.assert_allclose(learner.answer(batch).scores, tent.answer(batch).scores, rtol=1e-6)


def test_predictions_change_nothing_and_it_keeps_its_contract() -> None:
    learner = window(lr=LR)
    learner.answer(IMAGES[:4])
    before = digest(learner.state())
    learner.predict(IMAGES[4:5])
    assert digest(learner.state()) == before
    check_learner(partial(SlidingWindow, method="tent", window=5))


def test_batch_norm_meets_a_stream_of_single_images(tmp_path: Path) -> None:
    spec = {
        "benchmark": "test-time",
        "data": "color-digits",
        "model": {"name": "conv-1", "width": 4},
        "methods": [{"name": "sliding-window", "method": "bn", "window": 8}, "frozen"],
        "test-time": {"order": "gradual", "batch": 1, "images": 24, "images_per_point": 8, "upstream_updates": 5},
    }
    record = driftline.run(spec, runs=tmp_path)
    assert [len(run.table("answers")) for run in record.runs] == [24, 24]
    with pytest.raises(UserError, match="bn needs at least 2 inputs per batch"):
        driftline.run({**spec, "methods": ["bn"]}, runs=tmp_path)
