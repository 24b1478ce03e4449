"""Reductions of few numbers and of few columns, softmax of short rows: every length around a vector's, against float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight as torch

LENGTHS = [1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 40, 63, 65, 130]
SHAPES = [(n, 3) for n in LENGTHS] + [(3, n) for n in LENGTHS] + [(2, 5, 3), (4, 1, 6), (5000, 3), (7, 900, 2)]
KINDS = [np.float32, np.float64]


def drawn(rng: np.random.Generator, shape: tuple[int, ...], kind: Any) -> np.ndarray[Any, Any]:
    return rng.uniform(0.5, 1.5, shape).astype(kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_reduction_of_every_dimension(rng: np.random.Generator, shape: tuple[int, ...], kind: Any) -> None:
    x = drawn(rng, shape, kind)
    t, wide = torch.from_numpy(x), x.astype(np.float64)
    rtol = 1e-5 if kind is np.float32 else 1e-12
    for dim in (None, *range(len(shape))):
        for keep in (False, True):
            want = {
                "sum": wide.sum,
                "mean": wide.mean,
                "prod": wide.prod,
                "amax": wide.max,
                "amin": wide.min,
                "var": wide.var,
            }
            for name, reference in want.items():
                if name == "prod" and (x.size > 400 or (dim is None and keep)):  # of many it has few digits
                    continue
                more = {"correction": 0} if name == "var" else {}
                dims = (
                    {}
                    if dim is None and name in ("prod",)
                    else {"dim": dim if dim is not None else (), "keepdim": keep}
                )
                found = getattr(t, name)(**dims, **more).numpy()
                expected = np.asarray(reference(axis=dim, keepdims=keep), kind)
                assert found.dtype == kind and found.shape == expected.shape, (name, dim, keep)
                np.testing.assert_allclose(
                    found, expected, rtol=rtol, atol=1e-6 * (name == "var"), err_msg=f"{name} {dim}"
                )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", LENGTHS)
def test_extremes_with_what_is_no_number(rng: np.random.Generator, n: int, kind: Any) -> None:
    x = drawn(rng, (6, n), kind)
    x[1, n // 2], x[2, -1], x[3], x[4], x[5] = np.nan, np.inf, -np.inf, 2, np.nan
    for a in (x, np.ascontiguousarray(x.T)):
        dim = 1 if a is x else 0
        for name, places, values in (("max", np.argmax, np.max), ("min", np.argmin, np.min)):
            found, where = getattr(torch.from_numpy(a), name)(dim)
            np.testing.assert_array_equal(where.numpy(), places(a, dim))
            np.testing.assert_array_equal(found.numpy(), values(a, dim))
            np.testing.assert_array_equal(getattr(torch.from_numpy(a), f"a{name}")(dim).numpy(), values(a, dim))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", LENGTHS)
def test_exponentials_of_rows(rng: np.random.Generator, n: int, kind: Any) -> None:
    x = (5 * rng.standard_normal((9, n))).astype(kind)
    x[1, 1:2], x[2], x[3, -1] = -np.inf, -np.inf, np.nan
    t, wide = torch.from_numpy(x), x.astype(np.float64)
    with np.errstate(all="ignore"):
        top = wide.max(1, keepdims=True)
        e = np.exp(wide - top)
        whole = e.sum(1, keepdims=True)
        rtol = 2e-6 if kind is np.float32 else 1e-13
        np.testing.assert_allclose(t.softmax(1).numpy(), e / whole, rtol=rtol)
        np.testing.assert_allclose(t.log_softmax(1).numpy(), wide - top - np.log(whole), rtol=rtol, atol=rtol)
        rows = [0, 1, 4, 5, 6, 7, 8]
        np.testing.assert_allclose(t.logsumexp(1).numpy()[rows], (np.log(whole) + top)[rows, 0], rtol=rtol, atol=rtol)
    assert t.logsumexp(1)[2] == -np.inf and t.logsumexp(1)[3].isnan()
    target = torch.from_numpy(rng.integers(0, n, 7))
    logits = t[rows].clone().requires_grad_()
    finite = torch.where(logits.isinf(), -9.0, logits)
    torch.nn.functional.cross_entropy(finite, target, reduction="sum").backward()
    again = torch.where(logits.isinf(), -9.0, logits).detach().double().softmax(1)
    again[torch.arange(7), target] -= 1
    np.testing.assert_allclose(logits.grad.numpy()[2:], again.numpy()[2:], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("k", [1, 3, 8, 16])
@pytest.mark.parametrize("n", [16, 17, 40, 200])
def test_the_first_of_a_row(rng: np.random.Generator, n: int, k: int) -> None:
    x = rng.integers(0, 9, (5, n)).astype(np.float32)
    for largest in (True, False):
        values, where = torch.from_numpy(x).topk(k, 1, largest)
        want = np.argsort(-x if largest else x, 1, kind="stable")[:, :k]
        np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, want, 1))
        np.testing.assert_array_equal(np.take_along_axis(x, where.numpy(), 1), values.numpy())
        assert all(len(set(row)) == k for row in where.tolist())


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 1), (0,), (0, 3)], ids=str)
def test_norms_and_spreads_of_few_and_of_numbers(shape: tuple[int, ...], kind: Any) -> None:
    x = np.full(shape, 3, kind)
    t, n = torch.from_numpy(x.copy()), x.size
    for p in (0, 1, 2, 3):
        want = float(n > 0 and (n if p == 0 else 3 * n ** (1 / p)))
        assert abs(float(t.norm(p)) - want) < 1e-5 and abs(float(torch.linalg.vector_norm(t, p)) - want) < 1e-5
    assert float(t.sum().real) == 3 * n and float(t.prod().real) == 3.0**n
    if n:
        assert float(t.var(correction=0)) == 0.0 == float(t.std(correction=0))
        assert float(t.norm(float("inf"))) == 3.0
