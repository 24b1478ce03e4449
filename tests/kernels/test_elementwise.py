"""Activations: against PyTorch where it is installed, native against NumPy always; special values; layouts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from rushlight import kernels as K
from rushlight.kernels import elementwise
from rushlight.kernels.native import loader

Array = np.ndarray[Any, Any]
inf, nan = math.inf, math.nan

FORMS = {"int": (1,), "float": (2.0, 5.0)}  # numbers beside a kernel's defaults, by what it takes


def numbers_of(name: str) -> tuple[float, ...]:
    """Numbers for a kernel that takes some; none for one that takes none."""
    notes = getattr(K, name).reference.__annotations__.values()
    return next((FORMS[note] for note in notes if note in FORMS), ())


def slope(name: str, *numbers: float) -> Callable[..., Array]:
    """The kernel of a gradient as a function of g and x."""
    kernel, forward = getattr(K, f"{name}_backward"), getattr(K, name)
    if "output" in kernel.reference.__annotations__:
        return lambda g, x: kernel(g, forward(x))
    return lambda g, x: kernel(g, x, *numbers)


NAMES = [name for name in elementwise.__all__ if not name.endswith("_backward")]
SLOPES = [name for name in NAMES if f"{name}_backward" in elementwise.__all__]
UNARY: dict[str, Callable[..., Array]] = {
    **{name: getattr(K, name) for name in NAMES},
    **{f"{name}*": lambda x, name=name: getattr(K, name)(x, *numbers_of(name)) for name in NAMES if numbers_of(name)},
}
BACKWARD: dict[str, Callable[..., Array]] = {
    **{name: slope(name) for name in SLOPES},
    **{f"{name}*": slope(name, *numbers_of(name)) for name in SLOPES if numbers_of(name)},
    "relu": K.relu_backward,
    "relu*": lambda g, x: K.relu_backward(g, x > 0),
}


def by_error_functions(name: str) -> bool:
    """Whether a kernel multiplies by 1 + erf, or 1 + tanh, whose error is absolute."""
    return name.rstrip("*") != "relu" and numbers_of(name.rstrip("*")) == FORMS["int"]


def torch_function(name: str) -> Callable[..., Any]:
    torch = pytest.importorskip("torch")
    plain = name.rstrip("*")
    found: Callable[..., Any] = getattr(torch, plain, None) or getattr(torch.nn.functional, plain)
    if plain == name or plain == "relu":
        return found
    return (lambda x: found(x, approximate="tanh")) if by_error_functions(name) else lambda x: found(x, *FORMS["float"])


def samples(rng: np.random.Generator, dtype: Any, count: int = 40_000) -> Array:
    return np.concatenate([rng.standard_normal(count) * 4, rng.uniform(-120, 120, 999), [0.0, -0.0]]).astype(dtype)


SPECIAL = np.array([nan, inf, -inf, 0.0, -0.0, 1e-40, -1e-40, 88.7, 89.5, -87.5, -103.9, -110.0, 1e30, -1e30])


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", UNARY)
def test_forward_agrees_with_torch(path: str, rng: np.random.Generator, name: str, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    x = samples(rng, dtype)
    x = np.abs(x) if name == "log" else x
    want = torch_function(name)(torch.from_numpy(x)).numpy()
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(UNARY[name](x), want, rtol=40 * eps, atol=(16 if by_error_functions(name) else 8) * eps)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", BACKWARD)
def test_backward_agrees_with_torch(path: str, rng: np.random.Generator, name: str, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    x = (rng.standard_normal(40_001) * 3).astype(dtype)
    g = rng.standard_normal(x.shape).astype(dtype)
    leaf = torch.from_numpy(x.copy()).requires_grad_()
    torch_function(name)(leaf).backward(torch.from_numpy(g))
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(BACKWARD[name](g, x), leaf.grad.numpy(), rtol=100 * eps, atol=64 * eps)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", [n for n in UNARY if not (n.endswith("*") and by_error_functions(n))])
def test_special_values_are_torchs(path: str, name: str, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    x = np.tile(SPECIAL, 7).astype(dtype)  # through the vector loop and its tail
    if by_error_functions(name) and dtype == "f4":
        x = x[x != inf]  # some builds of PyTorch say NaN there; infinity is right, as they say for float64
    want = torch_function(name)(torch.from_numpy(x)).numpy()
    tiny = np.finfo(dtype).tiny
    np.testing.assert_allclose(UNARY[name](x), want, rtol=1e-5 if dtype == "f4" else 1e-13, atol=tiny)


@pytest.mark.parametrize("name", UNARY)
def test_native_is_within_a_few_units_of_the_reference(rng: np.random.Generator, name: str) -> None:
    if not loader.tables():
        pytest.skip("no native kernels here")
    x = samples(rng, "f4")
    x = np.abs(x) if name == "log" else x
    fast = UNARY[name](x)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loader, "_tables", {})
        plain = UNARY[name](x.astype("f8"))
    eps = np.finfo("f4").eps
    with np.errstate(over="ignore"):
        bound = 4 * eps * np.maximum(1, np.minimum(np.abs(x), 6)) if by_error_functions(name) else 4 * eps
        finite = np.isfinite(plain.astype("f4"))
        np.testing.assert_array_equal(np.isfinite(fast), finite)
        assert (
            np.abs(fast[finite] - plain[finite])
            <= np.broadcast_to(bound, x.shape)[finite] + 4 * eps * np.abs(plain[finite])
        ).all()


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0, 2), (5, 7), (2, 3, 4, 5)])
@pytest.mark.parametrize("name", UNARY)
def test_shapes(path: str, rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> None:
    x = np.asarray(rng.uniform(0.1, 2, shape), dtype="f4")
    out = UNARY[name](x)
    assert isinstance(out, np.ndarray) and out.shape == shape and out.dtype == x.dtype


def test_any_layout_gives_the_same(path: str, rng: np.random.Generator) -> None:
    x = rng.standard_normal((40, 50, 6)).astype("f4")
    want = K.gelu(x)
    for view in (x.transpose(2, 0, 1), x[::2, ::-1], np.asfortranarray(x), np.broadcast_to(x[0], x.shape)):
        np.testing.assert_allclose(K.gelu(view), K.gelu(view.copy()), rtol=1e-6)
        g = np.ones(view.shape, "f4")
        np.testing.assert_allclose(K.gelu_backward(g, view), K.gelu_backward(g, view.copy()), rtol=1e-6)
    np.testing.assert_array_equal(K.gelu(x), want)


def test_out_may_be_the_input(path: str, rng: np.random.Generator) -> None:
    x = rng.standard_normal(50_000).astype("f4")
    want = K.silu(x)
    assert K.silu(x, out=x) is x
    np.testing.assert_array_equal(x, want)
    target = np.empty(100_000, "f4")[::2]
    assert K.silu(want, out=target) is target
    np.testing.assert_array_equal(target, K.silu(want))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_16_bits_round_once(path: str, rng: np.random.Generator, dtype: Any) -> None:
    x = rng.standard_normal(1000).astype(dtype)
    for f in UNARY.values():
        with np.errstate(all="ignore"):
            want = f(x.astype("f4")).astype(dtype)
        assert f(x).dtype == dtype
        np.testing.assert_array_equal(f(x).astype("f4"), want.astype("f4"))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", sorted(name for name in dir(elementwise) if name.endswith("_backward")))
def test_slopes_of_16_bits_round_once(path: str, rng: np.random.Generator, name: str, dtype: Any) -> None:
    f = getattr(elementwise, name)
    g, x = (rng.standard_normal((30, 50)).astype(dtype) for _ in range(2))
    g[0, :3] = np.inf, np.nan, -np.inf
    for a, b in ((g, x), (g.T, x.T), (g, x[:, ::-1]), (g[::2], x[::2])):
        with np.errstate(all="ignore"):
            want = f(a.astype("f4"), b.astype("f4")).astype(dtype)
            found = f(a, b)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found.astype("f4"), want.astype("f4"))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_slope_of_relu_by_a_mask_in_16_bits(path: str, rng: np.random.Generator, dtype: Any) -> None:
    g, mask = rng.standard_normal((40, 50)).astype(dtype), rng.random((40, 50)) < 0.5
    g[0, :3] = np.inf, np.nan, -np.inf
    found = elementwise.relu_backward(g, mask)
    np.testing.assert_array_equal(found.astype("f4"), np.where(mask, g.astype("f4"), 0))


def test_the_input_is_left_alone(path: str, rng: np.random.Generator) -> None:
    x = rng.standard_normal(1000).astype("f4")
    before = x.copy()
    for f in UNARY.values():
        f(x)
    for b in BACKWARD.values():
        b(x, x)
    np.testing.assert_array_equal(x, before)
