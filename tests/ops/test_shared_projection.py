"""Attention whose queries, keys and values are slices of one product: their gradients are slices of one array."""

import numpy as np
import pytest

import rushlight as torch
from rushlight.nn import functional as F
from rushlight.ops.shape.splitting import whole


def parts(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    q, k, v = x.view(2, 5, 3, 2, 4).permute(2, 0, 3, 1, 4)
    return q, k, v


@pytest.mark.parametrize("causal", [False, True])
def test_gradient_is_that_of_separate_projections(causal: bool) -> None:
    x = torch.randn(2, 5, 24, requires_grad=True)
    apart = x.detach().clone().requires_grad_()
    kept = []
    q, k, v = parts(x)
    q.register_hook(kept.append)
    out = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    weight = torch.randn(*out.shape)
    (out * weight).sum().backward()
    reference = F.scaled_dot_product_attention(*(t.clone() for t in parts(apart)), is_causal=causal)
    (reference * weight).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), apart.grad.numpy(), rtol=1e-5, atol=1e-6)
    before = kept[0].numpy().copy()
    x.grad.zero_()
    np.testing.assert_array_equal(kept[0].numpy(), before)


def test_whole_finds_slices_at_equal_distances_only() -> None:
    base = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(whole([base[:, i] for i in range(3)], 1), base)
    np.testing.assert_array_equal(whole([base[0], base[1]], 0), base)
    assert whole([base[:, 0], base[:, 2], base[:, 1]], 1) is None
    assert whole([base[:, 0], base[:, 0]], 1) is None
    assert whole([base[:, 0], base[:, 1].copy()], 1) is None
    assert whole([base[:, 0], None], 1) is None
