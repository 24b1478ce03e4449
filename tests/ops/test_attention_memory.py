"""Attention: values, derivatives in every form, what it keeps and allocates, what it refuses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.ops.memory import peak_bytes, saved_bytes
from tests.ops.numeric import check_gradients

import rushlight as torch
import rushlight.nn.functional as F

DRAW = np.random.default_rng(31)


def draw(*shape: int) -> Any:
    return DRAW.standard_normal(shape)


def plain(q: Any, k: Any, v: Any, mask: Any = None, causal: bool = False, scale: Any = None) -> Any:
    scores = q @ np.swapaxes(k, -1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True) @ v


SHAPES = {
    "2-D": ((3, 4), (5, 4), (5, 6)),
    "3-D": ((2, 3, 4), (2, 5, 4), (2, 5, 4)),
    "4-D": ((2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 2)),
    "5-D": ((2, 1, 2, 3, 4), (2, 1, 2, 5, 4), (2, 1, 2, 5, 4)),
    "broadcast": ((2, 3, 4), (2, 2, 5, 4), (1, 2, 5, 4)),
    "broadcast 5-D": ((2, 3, 4), (2, 1, 2, 5, 4), (3, 1, 5, 4)),
}
MASKS: dict[str, Any] = {"none": None, "bool": draw(3, 5) > -0.5, "added": draw(3, 5), "heads": draw(2, 3, 5)}
MASKS["bool"][:, 0] = True


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shape", list(SHAPES))
def test_shapes(shape: str, causal: bool) -> None:
    q, k, v = (draw(*s) for s in SHAPES[shape])
    got = F.scaled_dot_product_attention(*(torch.tensor(a) for a in (q, k, v)), is_causal=causal, scale=0.7)
    np.testing.assert_allclose(got.numpy(), plain(q, k, v, None, causal, 0.7), rtol=1e-10, atol=1e-12)
    check_gradients(lambda *a: F.scaled_dot_product_attention(*a, is_causal=causal), q, k, v, tol=1e-5)


@pytest.mark.parametrize("mask", ["bool", "added", "heads"])
def test_a_mask_beside_is_causal_holds_with_it(mask: str) -> None:
    q, k, v, m = draw(2, 2, 3, 4), draw(2, 2, 5, 4), draw(2, 2, 5, 4), torch.tensor(MASKS[mask])
    got = F.scaled_dot_product_attention(*(torch.tensor(a) for a in (q, k, v)), m, is_causal=True)
    np.testing.assert_allclose(got.numpy(), plain(q, k, v, MASKS[mask], True), rtol=1e-10, atol=1e-12)
    check_gradients(lambda *a: F.scaled_dot_product_attention(*a, m, is_causal=True), q, k, v, tol=1e-5)
    if mask == "added":
        check_gradients(lambda m: F.scaled_dot_product_attention(*map(torch.tensor, (q, k, v)), m, is_causal=True),
                        MASKS[mask], tol=1e-5)  # fmt: skip


def test_rows_that_mask_and_is_causal_leave_nothing_to_are_zero() -> None:
    x, later = torch.ones(1, 1, 3, 4), torch.ones(3, 3).tril(-1).bool()
    got = F.scaled_dot_product_attention(x, x, x, later, is_causal=True)
    assert got[0, 0].tolist() == [[0.0] * 4, [1.0] * 4, [1.0] * 4]
    sampled = torch.vmap(lambda a: F.scaled_dot_product_attention(a, a, a, later, is_causal=True))(x)
    assert torch.equal(sampled, got)


@pytest.mark.parametrize("mask", list(MASKS))
def test_masks(mask: str) -> None:
    q, k, v = draw(2, 2, 3, 4), draw(2, 2, 5, 4), draw(2, 2, 5, 4)
    m = MASKS[mask]
    given = None if m is None else torch.tensor(m)
    got = F.scaled_dot_product_attention(*(torch.tensor(a) for a in (q, k, v)), given)
    np.testing.assert_allclose(got.numpy(), plain(q, k, v, m), rtol=1e-10, atol=1e-12)
    if m is not None and m.dtype != bool:
        check_gradients(lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m), q, k, v, m, tol=1e-5)


@pytest.mark.parametrize("mask", ["none", "rows", "heads", "batch"])
def test_grouped_heads(mask: str) -> None:
    q, k, v = draw(2, 6, 3, 4), draw(2, 2, 5, 4), draw(2, 2, 5, 4)
    m = {"none": None, "rows": draw(3, 5), "heads": draw(6, 3, 5), "batch": draw(2, 1, 3, 5)}[mask]
    many = np.repeat(k, 3, 1), np.repeat(v, 3, 1)

    def fn(q: Any, k: Any, v: Any, m: Any = None) -> Any:
        return F.scaled_dot_product_attention(q, k, v, m, enable_gqa=True)

    given = [torch.tensor(a) for a in (q, k, v, m) if a is not None]
    np.testing.assert_allclose(fn(*given).numpy(), plain(q, *many, m), rtol=1e-10, atol=1e-12)
    check_gradients(fn, *(a for a in (q, k, v, m) if a is not None), tol=1e-5)


def test_rows_that_see_nothing_are_zero() -> None:
    q, k, v = (torch.tensor(draw(1, 2, 3, 4), requires_grad=True) for _ in range(3))
    for m in (torch.zeros(3, 3, dtype=torch.bool), torch.full((3, 3), -math.inf, dtype=torch.float64)):
        out = F.scaled_dot_product_attention(q, k, v, m)
        assert not out.detach().numpy().any()
        for g in torch.autograd.grad(out.sum(), (q, k, v), create_graph=True):
            assert not g.detach().numpy().any()
    assert F.scaled_dot_product_attention(torch.zeros(2, 3, 4), torch.zeros(2, 0, 4), torch.zeros(2, 0, 4)).sum() == 0


def test_dropout_drops_the_same_in_the_backward_and_above() -> None:
    q, k, v = draw(2, 2, 4, 3), draw(2, 2, 5, 3), draw(2, 2, 5, 3)

    def fn(q: Any, k: Any, v: Any) -> Any:
        torch.manual_seed(4)
        return F.scaled_dot_product_attention(q, k, v, dropout_p=0.4, is_causal=True)

    check_gradients(fn, q, k, v, tol=1e-5)
    torch.manual_seed(0)
    ones = torch.ones(4, 4, 64, 64)
    weights = F.scaled_dot_product_attention(torch.zeros(4, 4, 64, 8), torch.zeros(4, 4, 64, 8), ones, dropout_p=0.25)
    assert abs(weights.mean().item() - 1) < 0.02
    assert 0.01 < weights.std().item() < 0.1


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_the_probabilities_are_never_in_memory(dropout: float) -> None:
    q, k, v = (torch.zeros(1, 4, 1024, 8, requires_grad=True) for _ in range(3))
    scores = 4 * 1024 * 1024 * 4

    def run() -> Any:
        out = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout)
        return torch.autograd.grad(out, (q, k, v), torch.zeros(1, 4, 1024, 8))

    assert peak_bytes(run) < 0.45 * scores
    rows = 4 * 1024 * 4
    out = 4 * 1024 * 8 * 4
    assert (
        saved_bytes(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, dropout_p=dropout), q, k, v) <= out + rows
    )


def test_refusals() -> None:
    x = torch.zeros(2, 3, 4)
    attend = F.scaled_dot_product_attention
    with pytest.raises(RuntimeError, match=r"at least 2 dimensional, but got query.dim: 1, key.dim: 3"):
        attend(torch.zeros(4), x, x)
    with pytest.raises(RuntimeError, match=r"same dtype, but got query.dtype: torch.float32, key.dtype: torch.float64"):
        attend(x, x.double(), x)
    with pytest.raises(RuntimeError, match=r"attn_mask.dtype: torch.int64 and query.dtype: torch.float32"):
        attend(x, x, x, torch.zeros(3, 3).long())
    with pytest.raises(RuntimeError, match=r"attn_mask \[3, 4\] must match or be 1"):
        attend(x, x, x, torch.zeros(3, 4))
    with pytest.raises(RuntimeError, match="must divide the number of heads in query, got 3, 3 and 4"):
        attend(torch.zeros(1, 4, 2, 2), torch.zeros(1, 3, 2, 2), torch.zeros(1, 3, 2, 2), enable_gqa=True)
    with pytest.raises(RuntimeError, match=r"Expected query \(\*, L, E\)"):
        attend(x, torch.zeros(2, 3, 5), x)


# Of several heads ---------------------------------------------------------------------------------------------------


def attention(**changes: Any) -> Any:
    """multi_head_attention_forward of fixed inputs, with arguments changed."""
    e, heads = 4, 2
    x, key = torch.tensor(draw(3, 2, e)), torch.tensor(draw(5, 2, e))
    given: dict[str, Any] = {
        "query": x, "key": key, "value": key, "embed_dim_to_check": e, "num_heads": heads,
        "in_proj_weight": torch.tensor(draw(3 * e, e)), "in_proj_bias": torch.tensor(draw(3 * e)), "bias_k": None,
        "bias_v": None, "add_zero_attn": False, "dropout_p": 0.0, "out_proj_weight": torch.tensor(draw(e, e)),
        "out_proj_bias": torch.tensor(draw(e)), **changes,
    }  # fmt: skip
    return given, F.multi_head_attention_forward


@pytest.mark.parametrize("extra", [{}, {"add_zero_attn": True}, {"bias": True}, {"padding": True}, {"mask": True}])
def test_with_and_without_weights_agree(extra: dict[str, Any]) -> None:
    given, fn = attention(add_zero_attn=extra.get("add_zero_attn", False))
    if "bias" in extra:
        given.update(bias_k=torch.tensor(draw(1, 1, 4)), bias_v=torch.tensor(draw(1, 1, 4)))
    if "padding" in extra:
        given["key_padding_mask"] = torch.tensor([[False] * 4 + [True], [False] * 5])
    if "mask" in extra:
        given["attn_mask"] = torch.tensor(np.triu(np.ones((3, 5), bool), 3))
    out, weights = fn(**given)
    quick, none = fn(**given, need_weights=False)
    assert none is None
    columns = 5 + ("bias" in extra) + ("add_zero_attn" in extra)
    assert weights.shape == (2, 3, columns) and out.shape == (3, 2, 4)
    np.testing.assert_allclose(out.numpy(), quick.numpy(), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(weights.sum(-1).numpy(), 1, rtol=1e-12)
    by_head = fn(**given, average_attn_weights=False)[1]
    np.testing.assert_allclose(by_head.mean(1).numpy(), weights.numpy(), rtol=1e-12)


def test_without_a_batch_and_with_weights_apart() -> None:
    given, fn = attention()
    one = {**given, **{n: given[n][:, 0] for n in ("query", "key", "value")}}
    np.testing.assert_allclose(fn(**one)[0].numpy(), fn(**given)[0][:, 0].numpy(), rtol=1e-12)
    wq, wk, wv = given["in_proj_weight"].chunk(3)
    apart = {**given, "in_proj_weight": None, "use_separate_proj_weight": True, "q_proj_weight": wq, "k_proj_weight": wk,
             "v_proj_weight": wv}  # fmt: skip
    np.testing.assert_allclose(fn(**apart)[0].numpy(), fn(**given)[0].numpy(), rtol=1e-12)
    with pytest.raises(AssertionError, match="was expecting embedding dimension of 8, but got 4"):
        fn(**{**given, "embed_dim_to_check": 8})
    with pytest.raises(
        RuntimeError, match=r"The shape of the 2D attn_mask is torch.Size\(\[3, 4\]\), but should be \(3, 5\)"
    ):
        fn(**given, attn_mask=torch.zeros(3, 4))
    with pytest.raises(RuntimeError, match="Need attn_mask if specifying the is_causal hint"):
        fn(**given, is_causal=True)


def test_derivatives_of_several_heads() -> None:
    given, fn = attention()
    names = ("in_proj_weight", "in_proj_bias", "out_proj_weight")
    arrays = [given["query"].numpy(), *(given[n].numpy() for n in names)]

    def run(x: Any, *parameters: Any) -> Any:
        own = {**given, "query": x, "key": x, "value": x, **dict(zip(names, parameters, strict=True))}
        return fn(**own, need_weights=False)[0]

    check_gradients(run, *arrays, second=False, tol=1e-5)
