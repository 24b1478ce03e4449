"""Attention whose scores a function changes, against attention written out."""

import math

import pytest

import rushlight as torch
from rushlight._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
from rushlight.nn.attention import flex_attention as flex


def test_scores_changed_by_a_function_and_masked() -> None:
    q, k, v = (torch.randn(2, heads, 9, 4, dtype=torch.float64, requires_grad=True) for heads in (4, 2, 2))
    slopes = torch.arange(4, dtype=torch.float64)
    mask = flex.create_block_mask(lambda b, h, i, j: (i >= j) & (j > 1), None, None, 9, 9, BLOCK_SIZE=4)
    out, lse = flex.flex_attention(
        q, k, v, lambda s, b, h, i, j: s + slopes[h] * (i - j), mask, enable_gqa=True, return_lse=True
    )
    i, j = torch.arange(9)[:, None], torch.arange(9)[None]
    scores = q @ k.repeat_interleave(2, 1).mT / 2 + slopes[:, None, None] * (i - j)
    scores = scores.masked_fill(~((i >= j) & (j > 1)), -math.inf)
    expected = scores.softmax(-1).nan_to_num(0.0) @ v.repeat_interleave(2, 1)
    torch.testing.assert_close(out, expected)
    torch.testing.assert_close(lse, scores.logsumexp(-1))
    assert mask.to_dense().sum() == 6 and mask.shape == (1, 1, 9, 9)
    found = torch.autograd.grad(out.square().sum(), (q, k, v))
    assert all(bool(g.isfinite().all()) and bool(g.any()) for g in found)


def test_plain_flex_attention_is_attention() -> None:
    q = torch.randn(1, 2, 5, 4)
    torch.testing.assert_close(flex.flex_attention(q, q, q), torch.nn.functional.scaled_dot_product_attention(q, q, q))


def test_masks_combined() -> None:
    either = flex.or_masks(lambda b, h, i, j: i == j, lambda b, h, i, j: (j == 0) & (h == 1))
    assert flex.create_mask(either, 1, 2, 3, 3).int().tolist() == [
        [[[1, 0, 0], [0, 1, 0], [0, 0, 1]], [[1, 0, 0], [1, 1, 0], [1, 0, 1]]]
    ]
    both = flex.and_masks(flex.noop_mask, lambda b, h, i, j: i > j)
    assert flex.create_mask(both, None, None, 2, 2).tolist() == [[[[False, False], [True, False]]]]
    with pytest.raises(RuntimeError, match="callable"):
        flex.or_masks(1)


def test_what_flex_attention_refuses() -> None:
    q, k = torch.ones(1, 4, 3, 2), torch.ones(1, 2, 3, 2)
    with pytest.raises(ValueError, match="as many heads"):
        flex.flex_attention(q, k, k)
    with pytest.raises(ValueError, match="4D"):
        flex.flex_attention(q[0], q[0], q[0])
    with pytest.raises(ValueError, match="make it anew"):
        flex.flex_attention(q, q, q, block_mask=flex.create_block_mask(flex.noop_mask, None, None, 2, 2))


def test_numbers_that_differ_from_sample_to_sample_index() -> None:
    seen = torch.tensor([[1, 2], [3, 4]])
    with TransformGetItemToIndex():
        found = torch.vmap(lambda i, j: seen[i, j])(torch.tensor([0, 1, 1]), torch.tensor([1, 0, 1]))
    assert found.tolist() == [2, 3, 4]
    with TransformGetItemToIndex():
        assert seen[torch.tensor(1)].tolist() == [3, 4] and seen[:, 0].tolist() == [1, 3]
