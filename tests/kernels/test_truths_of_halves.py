"""Truth values of 16-bit numbers and back: NumPy's, by bits and comparisons where NumPy converts one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

import rushlight as torch
from rushlight.kernels import dispatch
from rushlight.kernels.reference import gather as reference

EACH = pytest.mark.parametrize("kind", [bfloat16, np.float16])
NUMBERS = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 6e-8, 1, -2], np.float32)


@EACH
def test_there_and_back(kind: Any) -> None:
    x = np.tile(NUMBERS, 200).astype(kind).reshape(40, 40)
    for a in (x, x.T, x[:, ::2], np.broadcast_to(x[:1], (700, 40)), x[0, 0:1].reshape(())):
        truths = dispatch.recast(a, np.dtype(bool))
        np.testing.assert_array_equal(truths, a.astype(bool))
        assert truths.dtype == bool
        found = dispatch.recast(truths, np.dtype(kind))
        assert found.dtype == kind
        np.testing.assert_array_equal(found.astype(np.float32), a.astype(bool).astype(np.float32))


@EACH
def test_scaled_by_bits(kind: Any) -> None:
    x = np.tile(NUMBERS, 1000).astype(kind)
    coins = np.random.default_rng(1).integers(0, 256, 1000, np.uint8)
    kept = np.unpackbits(coins, bitorder="little")
    with np.errstate(all="ignore"):
        want = (x.astype(np.float32) * (kept * np.float32(kind(1 / 0.7)))).astype(kind)
        np.testing.assert_array_equal(
            reference.scale_by_bits(x, coins, 1 / 0.7).view(np.uint16) & 0x7FFF, want.view(np.uint16) & 0x7FFF
        )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_of_tensors(dtype: Any) -> None:
    x = torch.tensor(np.tile(NUMBERS, 300), dtype=dtype).reshape(60, 40)
    wide = x.float()
    assert (
        torch.equal(x.bool(), wide.bool()) and torch.equal(x.any(1), wide.any(1)) and torch.equal(x.all(0), wide.all(0))
    )
    assert torch.equal(x.count_nonzero(1), wide.count_nonzero(1)) and torch.equal(
        x.bool().to(dtype), wide.bool().to(dtype)
    )
    y = torch.arange(2400, dtype=torch.float32).remainder(7).reshape(60, 40).to(dtype).requires_grad_()
    y.amax(1).sum().backward()
    z = y.detach().float().requires_grad_()
    z.amax(1).sum().backward()
    assert torch.equal(y.grad, z.grad.to(dtype))
