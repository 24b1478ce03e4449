"""Reductions: values, dimensions, dtypes, ties, special values and their gradients."""

from __future__ import annotations

import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
from tests.leaves import leaf
from tests.ops.numeric import check_gradients

import rushlight as torch

DRAW = np.random.default_rng(3)
X = DRAW.uniform(-2, 2, (2, 3, 2))
Z = X[:, :, 0] + 1j * X[:, :, 1]
ZEROS = np.array([[2.0, 0.0, 3.0], [0.0, 1.0, 0.0], [1.5, 2.0, -1.0]])
INF, NAN = math.inf, math.nan


# Derivatives ---------------------------------------------------------------------------------------

SMOOTH = {
    "sum": lambda x: x.sum((0, -1)), "mean": lambda x: x.mean(1, keepdim=True), "mean all": lambda x: x.mean(),
    "var": lambda x: x.var((0, 1)), "var all": lambda x: x.var(correction=0), "std": lambda x: x.std(1, keepdim=True),
    "prod": lambda x: x.prod(1), "prod all": lambda x: x.prod(), "norm": lambda x: x.norm(dim=1),
    "norm 1.5": lambda x: x.norm(1.5), "norm 3": lambda x: x.norm(3, (0, 2)), "norm 0.5": lambda x: x.norm(0.5, 1),
    "norm -1": lambda x: x.norm(-1.0), "cumsum": lambda x: x.cumsum(1), "cumprod": lambda x: x.cumprod(0),
    "logsumexp complex-able": lambda x: x.logsumexp((0, 2)), "logcumsumexp": lambda x: x.logcumsumexp(1),
    "var_mean": lambda x: torch.var_mean(x, 1), "std_mean": lambda x: torch.std_mean(x, (0, 1)),
}  # fmt: skip
REAL_ONLY = {
    "max": lambda x: x.max(1), "min": lambda x: x.min(-1, keepdim=True), "amax": lambda x: x.amax((0, 2)),
    "amin": lambda x: x.amin(), "aminmax": lambda x: torch.aminmax(x, dim=1), "max all": lambda x: x.max(),
    "sort": lambda x: x.sort(1, descending=True), "topk": lambda x: x.topk(2, 1),
    "kthvalue": lambda x: x.kthvalue(2, 1),
    "median": lambda x: x.median(1), "median all": lambda x: x.median(), "cummax": lambda x: x.cummax(1),
    "cummin": lambda x: x.cummin(0), "quantile": lambda x: x.quantile(0.3, dim=1), "norm inf": lambda x: x.norm(INF, 1),
    "norm -inf": lambda x: x.norm(-INF, 1), "norm 1": lambda x: x.norm(1), "nansum": lambda x: x.nansum(1),
    "nanmean": lambda x: x.nanmean(0), "renorm": lambda x: torch.renorm(x, 3, 1, 1.5),
    "trapezoid": lambda x: torch.trapezoid(x, dx=0.5, dim=1), "diff": lambda x: torch.diff(x, 2, 1),
    "gradient": lambda x: torch.gradient(x, dim=1, spacing=0.5, edge_order=2),
    "cumulative_trapezoid": lambda x: torch.cumulative_trapezoid(x, dim=1),
    "dist": lambda x: torch.dist(x, x.flip(0) * 2),
}  # fmt: skip


@pytest.mark.parametrize("name", [*SMOOTH, *REAL_ONLY])
def test_derivatives(name: str) -> None:
    check_gradients({**SMOOTH, **REAL_ONLY}[name], X, tol=1e-5)


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_of_complex_numbers(name: str) -> None:
    fn = SMOOTH[name]
    if name in ("sum", "mean", "var", "norm 3", "logsumexp complex-able", "std_mean"):
        check_gradients(fn, np.stack([Z, Z * 0.5j], -1), tol=1e-5)
    else:
        check_gradients(fn, Z, tol=1e-5)


def test_derivatives_of_the_places_of_samples() -> None:
    check_gradients(lambda y, x: torch.trapezoid(y, x), X[0, :, :], X[1, :, :])
    check_gradients(lambda x, w: torch.cov(x, aweights=w), X[0], np.array([0.5, 2.0]))
    check_gradients(torch.corrcoef, X[:, :, 0], tol=1e-5)
    check_gradients(lambda x, q: torch.quantile(x, q, dim=0), X[:, :, 0], np.array([0.2, 0.7]))


@pytest.mark.parametrize(
    "fn", [lambda x: x.prod(1), lambda x: x.prod(), lambda x: x.cumprod(1), lambda x: x.cumprod(0)]
)
def test_products_with_zeros_are_exact(fn: Any) -> None:
    check_gradients(fn, ZEROS, tol=1e-5)
    check_gradients(fn, ZEROS * (1 + 0.5j), tol=1e-5)


# Dimensions and dtypes -----------------------------------------------------------------------------


def test_dimensions() -> None:
    x = torch.from_numpy(X)
    np.testing.assert_allclose(x.sum((0, -1)).numpy(), X.sum((0, 2)))
    np.testing.assert_allclose(x.sum(()).numpy(), X.sum())
    np.testing.assert_allclose(x.mean([1], keepdim=True).numpy(), X.mean(1, keepdims=True))
    np.testing.assert_allclose(torch.sum(x, axis=1, keepdims=True).numpy(), X.sum(1, keepdims=True))
    assert torch.max(x, axis=1, keepdims=True).values.shape == (2, 1, 2)
    assert x.amax().shape == () and x.amax((), keepdim=True).shape == (1, 1, 1)
    zero = torch.tensor(3.0)
    assert zero.sum(0) == zero.mean(-1) == zero.max(0).values == zero.prod(0) == 3
    with pytest.raises(IndexError, match="out of range"):
        x.sum(3)
    with pytest.raises(RuntimeError, match="multiple times"):
        x.sum((0, 0))
    for wrong in ("a", 1.5):
        with pytest.raises(TypeError):
            x.sum(wrong)


def test_dtypes() -> None:
    for kind in (torch.bool, torch.uint8, torch.int32):
        x = torch.ones(3, dtype=kind)
        assert x.sum().dtype is x.prod().dtype is x.cumsum(0).dtype is torch.int64 and x.sum() == 3
    assert torch.ones(3).sum(dtype=torch.float64).dtype is torch.float64
    assert torch.ones(2, dtype=torch.uint8).any().dtype is torch.uint8
    assert torch.ones(2).all().dtype is torch.bool
    for refused in (torch.ones(2, dtype=torch.int64).mean, torch.ones(2, dtype=torch.bool).var):
        with pytest.raises(RuntimeError):
            refused()
    assert torch.ones(2, dtype=torch.int64).mean(dtype=torch.float32) == 1
    assert torch.tensor([1, 2]).logsumexp(0).dtype is torch.float32


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_are_added_in_float32(dtype: str) -> None:
    x = torch.full((4096,), 1.0, dtype=getattr(torch, dtype))
    assert x.sum() == 4096 and x.mean() == 1 and x.norm() == 64 and x.sum().dtype is x.dtype


def test_empty_reductions() -> None:
    e = torch.zeros(0, 3)
    assert e.sum() == 0 and e.prod() == 1 and bool(e.all()) and not bool(e.any()) and math.isnan(e.mean())
    assert e.sum(0).tolist() == [0, 0, 0] and e.max(1).values.shape == (0,) and e.cummax(0).values.shape == (0, 3)
    assert math.isnan(e.median())
    for name in ("max", "min", "amax", "amin", "median", "mode", "kthvalue"):
        with pytest.raises((IndexError, RuntimeError), match=r"non-zero size|dim"):
            getattr(e, name)(*((1, 0) if name == "kthvalue" else (0,)))
    for name in ("max", "min", "amax", "amin", "aminmax"):
        with pytest.raises(RuntimeError, match=r"numel|has no identity"):
            getattr(e, name)()
    for name in ("argmax", "argmin"):
        with pytest.raises(IndexError):
            getattr(e, name)()
    assert torch.logsumexp(e, 0).tolist() == [-INF] * 3
    with pytest.raises(RuntimeError, match="identity"):
        e.norm(INF, 0)


# Ties and special values ---------------------------------------------------------------------------


def test_ties() -> None:
    x = leaf(1.0, 3.0, 3.0)
    for reduce, want in ((lambda t: t.max(), [0, 0.5, 0.5]), (lambda t: t.amax(), [0, 0.5, 0.5]),
                         (lambda t: t.max(0).values, [0, 1, 0]), (lambda t: t.norm(INF), [0, 0.5, 0.5]),
                         (lambda t: t.median(), [0, 0.5, 0.5]),
                         (lambda t: torch.aminmax(t).max, [0, 0.5, 0.5])):  # fmt: skip
        (g,) = torch.autograd.grad(reduce(x), x)
        assert g.tolist() == want


def test_nan() -> None:
    x = leaf(1.0, NAN, 3.0)
    for name in ("sum", "mean", "max", "min", "amax", "prod", "var", "median", "norm"):
        assert math.isnan(getattr(x, name)())
    assert x.nansum() == 4 and x.nanmean() == 2 and x.nanmedian() == 1
    assert x.max(0).indices == x.argmax() == 1
    assert torch.autograd.grad(x.max(), x)[0].tolist() == [0, 1, 0]
    assert torch.autograd.grad(x.nansum(), x)[0].tolist() == [1, 0, 1]
    assert x.sort().indices.tolist() == [0, 2, 1] and x.sort(descending=True).indices.tolist() == [1, 2, 0]
    assert x.topk(2).indices.tolist() == [1, 2]
    assert x.cummax(0).indices.tolist() == [0, 1, 1]


def test_norms_at_zero_have_a_zero_gradient() -> None:
    for p in (0, 0.5, 1, 1.5, 2, 3, INF, -INF, -1):
        x = leaf(0.0, 0.0)
        (g,) = torch.autograd.grad(x.norm(p), x, allow_unused=True)
        assert g is None or g.tolist() == [0, 0]
    x = leaf(1.0, 1.0)
    assert torch.autograd.grad(x.std(), x)[0].tolist() == [0, 0]


def test_norms_of_every_order() -> None:
    x = torch.tensor([3.0, -4.0, 0.0])
    want = {0: 2, 1: 7, 2: 5, INF: 4, -INF: 0, -1: 0, 3: 91 ** (1 / 3)}
    for p, value in want.items():
        assert x.norm(p).item() == pytest.approx(value)
    assert x.norm("fro") == 5 and torch.tensor([3 + 4j]).norm() == 5
    with pytest.raises(RuntimeError):
        x.norm("spectral")
    with pytest.raises(RuntimeError, match="floating point"):
        torch.tensor([1]).norm()


def test_infinities_do_not_become_nan() -> None:
    x = leaf(-INF, 1.0, -INF)
    assert x.logsumexp(0) == 1 and x.logcumsumexp(0).tolist() == [-INF, 1, 1]
    assert torch.autograd.grad(x.logsumexp(0), x)[0].tolist() == [0, 1, 0]
    assert torch.autograd.grad(x.logcumsumexp(0).sum(), x)[0].tolist() == [0, 2, 0]
    assert torch.tensor([INF, 1.0]).logsumexp(0) == INF and torch.tensor([-INF]).logsumexp(0) == -INF


def test_variance_without_degrees_of_freedom_warns() -> None:
    with pytest.warns(UserWarning, match="degrees of freedom"):
        assert math.isnan(torch.ones(1).var())
    with pytest.warns(UserWarning, match="degrees of freedom"):
        assert torch.tensor([1.0, 2.0]).var(correction=2) == INF


def test_numpy_warnings_are_not_shown() -> None:
    e = torch.zeros(0)
    assert math.isnan(e.mean()) and math.isnan(e.median())
    assert torch.tensor([INF, -INF]).sum().isnan()
    assert torch.tensor([3.0e38] * 2).sum() == INF
    assert torch.tensor([INF, 1.0]).var().isnan()


def test_variance_arguments() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    assert (
        x.var(0, False).tolist() == x.var(0, unbiased=False).tolist() == x.var(0, correction=0).tolist() == [2.25] * 3
    )
    assert x.var(False) == x.var(correction=0) == x.var(unbiased=False)
    with pytest.raises(TypeError):
        x.var(0, unbiased=True, correction=1)


# What is saved -------------------------------------------------------------------------------------


def test_sums_keep_nothing_alive() -> None:
    n = 1 << 20
    for reduce in (lambda t: t.sum(), lambda t: t.mean(0), lambda t: t.max(0).values, lambda t: t.cumsum(0).sum()):
        x = torch.ones(n, requires_grad=True)
        tracemalloc.start()
        y = reduce(x * 2)
        size, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert size < n, (reduce, size)
        y.backward()


# Overloads -----------------------------------------------------------------------------------------


def test_pairs() -> None:
    a, b = torch.tensor([1.0, 5.0]), torch.tensor([2.0, 3.0])
    assert (
        torch.max(a, b).tolist() == [2, 5] and a.min(b).tolist() == [1, 3] and torch.max(a, other=b).tolist() == [2, 5]
    )


def test_out() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    out = torch.empty(3)
    assert torch.sum(x, 0, out=out) is out and out.tolist() == [3, 5, 7]
    values, indices = torch.empty(2), torch.empty(2, dtype=torch.int64)
    found = torch.max(x, 1, out=(values, indices))
    assert found.values is values and indices.tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="dtype"):
        torch.aminmax(x, dim=0, out=(torch.empty(3), torch.empty(3).double()))


def test_refusals_name_what_was_got() -> None:
    for name in ("max", "argmin", "sort", "median", "cummax", "amin"):
        with pytest.raises(RuntimeError, match="ComplexFloat"):
            getattr(torch, name)(torch.tensor([1j]), *((0,) if name == "cummax" else ()))
    with pytest.raises(TypeError, match="list"):
        torch.sum([1, 2])
    with pytest.raises(RuntimeError, match="got 4"):
        torch.ones(3).topk(4)


def test_masked() -> None:
    x, mask = torch.arange(6.0).reshape(2, 3), torch.tensor([[True, False, True], [False] * 3])
    m = torch.masked
    assert m.sum(x, 1, mask=mask).tolist() == [2, 0] and m.prod(x, 1, mask=mask).tolist() == [0, 1]
    assert m.amax(x, 1, mask=mask).tolist() == [2, -INF] and m.mean(x, mask=mask) == 1
    assert m.norm(x, 2.0, 1, mask=mask).tolist() == [2, 0] and m.median(x, 1, mask=mask)[0] == 0
    assert m.softmax(x, 1, mask=mask)[0, 1] == 0 and m.cumsum(x, 1, mask=mask)[0].tolist() == [0, 0, 2]
    assert m.var(x, 1, False, mask=mask)[0] == 1 and m.argmax(x, mask=mask) == 2
    leafs = x.clone().requires_grad_()
    m.sum(leafs, mask=mask).backward()
    assert leafs.grad.tolist() == [[1, 0, 1], [0, 0, 0]]
    with pytest.raises(NotImplementedError):
        m.amax(x.bool(), mask=mask)
    with pytest.raises(ValueError):
        m.median(x.int(), 1, mask=mask)


def test_gradient_of_logcumsumexp_of_one_number():
    x = torch.tensor(0.5, requires_grad=True)
    torch.logcumsumexp(x, 0).backward()
    assert x.grad.item() == 1


@pytest.mark.parametrize("of", ["bool", "uint8", "int32", "int64"])
def test_sums_of_integers(of: str) -> None:
    """In int64, or in the dtype that is asked for, which wraps."""
    x = (torch.arange(600).reshape(2, 300) % 7).to(getattr(torch, of))
    for dim in (None, 0, 1):
        want = x.long().numpy().sum(dim)
        for dtype in (None, "bool", "uint8", "int32", "int64", "float32"):
            options = {} if dtype is None else {"dtype": getattr(torch, dtype)}
            for found in (x.sum(dim, **options), x.nansum(dim, **options)):
                if dtype == "bool":
                    assert found.dtype is torch.bool and found.numpy().tolist() == (want != 0).tolist()
                else:
                    assert found.dtype is options.get("dtype", torch.int64)
                    np.testing.assert_array_equal(found.numpy(), want.astype(dtype or "int64"))


def test_a_mask_is_counted_as_it_is() -> None:
    mask = torch.ones(1000, 1000, dtype=torch.bool)
    tracemalloc.start()
    try:
        assert mask.sum().item() == 1_000_000 and mask.sum(1).tolist() == [1000] * 1000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < mask.nbytes // 2  # no copy in int64
