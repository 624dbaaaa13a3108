"""How inputs become tensors."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from driftline.lazy_rows import LazyRows
from driftline.models.preprocessing import Standardize, StandardizeChannels, to_float_batch, to_tensor


def test_images_become_fractions_with_channels_first() -> None:
    images = torch.arange(2 * 3 * 4 * 2, dtype=torch.uint8).reshape(2, 3, 4, 2)
    x = to_float_batch(images)
    assert (x.shape, x.dtype) == ((2, 2, 3, 4), torch.float32)
    assert x[1, 0, 2, 3].item() == pytest.approx(images[1, 2, 3, 0].item() / 255)
    assert to_float_batch(torch.tensor([[255]], dtype=torch.uint8)).item() == 255  # a table of bytes is not a picture
    assert to_float_batch(torch.tensor([[1.5]], dtype=torch.float64)).dtype == torch.float32
    floats = torch.rand(1, 2, 3, 3)
    assert torch.equal(to_float_batch(floats), floats)


def test_tensors_share_memory_where_they_can() -> None:
    x = np.zeros((2, 2), np.float32)
    to_tensor(x)[0, 0] = 1
    assert x[0, 0] == 1
    assert to_tensor(x.T[::-1]).shape == (2, 2)


def test_a_feature_that_never_varied_keeps_its_scale() -> None:
    layer = Standardize(2)
    layer.fit(torch.tensor([[1.0, 5.0], [3.0, 5.0]]))
    assert layer.mean.tolist() == [2, 5]
    assert layer.scale.tolist() == [1, 1]
    assert layer(torch.tensor([[3.0, 6.0]])).tolist() == [[1, 1]]
    layer.fit(torch.zeros(2, 2))
    assert layer.mean.tolist() == [2, 5]


def test_a_tensor_is_standardized_by_its_own_mean_and_deviation_to_the_bit() -> None:
    x = torch.rand(1000, 5, generator=torch.manual_seed(0)) * torch.tensor([1, 1e3, 1e-3, 7, 0]) + 3
    layer = Standardize(5)
    layer.fit(x)
    assert torch.equal(layer.mean, x.mean(0))
    assert torch.equal(layer.scale[:4], x.std(0, correction=0)[:4])


def test_lazy_images_are_standardized_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    images = (
        np.random.default_rng(0).integers(0, 99, (50, 4, 4, 3), np.uint8)
        + np.arange(50, dtype=np.uint8)[:, None, None, None]
    )
    most = []

    class Source:
        shape, dtype = images.shape, images.dtype

        def __getitem__(self, rows: np.ndarray, /) -> np.ndarray:
            most.append(len(rows))
            return images[rows]

    monkeypatch.setattr("driftline.lazy_rows.BLOCK_BYTES", 8 * 48)
    lazy, whole = StandardizeChannels(3), StandardizeChannels(3)
    lazy.fit(LazyRows.all_of(Source()))
    whole.fit(torch.from_numpy(images))
    torch.testing.assert_close(lazy.mean, whole.mean, rtol=1e-6, atol=0)
    torch.testing.assert_close(lazy.scale, whole.scale, rtol=1e-6, atol=0)
    assert (max(most), len(most)) == (8, 7)
