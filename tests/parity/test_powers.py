"""`pow`, `ldexp` and `cross` where numbers, tensors without dimensions and tensors of one element mean different things."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity
SPECIAL = [-np.inf, -0.0, 0.0, np.inf, -1.0, 2.0, np.nan]
FLOATS = ["float32", "float64", "float16", "bfloat16"]
EXPONENTS: dict[str, Callable[[Any, float, Any], Any]] = {
    "number": lambda t, by, dtype: by,
    "no dimensions": lambda t, by, dtype: t.tensor(by, dtype=dtype),
    "float32 without dimensions": lambda t, by, dtype: t.tensor(by),
    "one element": lambda t, by, dtype: t.tensor([by], dtype=dtype),
    "each its own": lambda t, by, dtype: t.full((len(SPECIAL),), by, dtype=dtype),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize("by", [0.5, -0.5, 1.5, -1.5, 2.0, 3.0, -1.0, 0.25])
def test_only_numbers_take_roots_of_what_has_none(dtype: str, exponent: str, by: float) -> None:
    def call(t: Any) -> list[Any]:
        kind = getattr(t, dtype)
        x = t.tensor(SPECIAL, dtype=kind, requires_grad=True)
        power = EXPONENTS[exponent](t, by, kind)
        y = x.pow(power)
        changed = t.tensor(SPECIAL, dtype=kind).pow_(power)
        return [y, changed, *t.autograd.grad(y.sum(), x)]

    for ours, theirs in zip(call(rushlight), call(torch), strict=True):
        a, b = np.array(ours.tolist()), np.array(theirs.tolist())
        np.testing.assert_allclose(a, b, rtol=1e-2)
        known = ~np.isnan(b)  # whose sign says nothing
        np.testing.assert_array_equal(np.signbit(a[known]), np.signbit(b[known]))


@pytest.mark.parametrize("dtypes", [*itertools.product([*FLOATS, "complex64", "complex128"], FLOATS)])
@pytest.mark.parametrize("shape", [(), (3,)])
def test_ldexp_raises_an_exponent_without_dimensions_with_the_precision_of_both(dtypes: Any, shape: Any) -> None:
    def call(t: Any) -> list[Any]:
        input, other = (getattr(t, d) for d in dtypes)
        x, power = t.full(shape, 1.5, dtype=input), t.tensor(0.4, dtype=other)
        return [t.ldexp(x, power), x.clone().ldexp_(power)]

    for ours, theirs in zip(call(rushlight), call(torch), strict=True):
        assert str(ours.dtype).split(".")[-1] == str(theirs.dtype).split(".")[-1]
        rtol = 1e-13 if "64" in dtypes[0] and theirs.dtype in (torch.float64, torch.complex128) else 1e-6
        np.testing.assert_allclose(np.array(ours.tolist()), np.array(theirs.tolist()), rtol=rtol)


SHAPES = [(1, 3), (3, 3), (3, 1), (2, 3), (1, 1), (2, 1, 3), (1, 3, 3), (3, 3, 1), (1, 3, 1)]


@pytest.mark.parametrize("dim", [None, 0, -1])
def test_cross_goes_along_a_dimension_that_both_have(dim: int | None) -> None:
    def call(t: Any, shapes: Any) -> Any:
        a, b = (t.arange(1.0, 1 + np.prod(shape)).reshape(shape).square() for shape in shapes)
        try:
            return t.cross(a, b + 1) if dim is None else t.cross(a, b + 1, dim=dim)
        except RuntimeError:
            return None

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that dim should be given
        for shapes in itertools.product(SHAPES, repeat=2):
            ours, theirs = call(rushlight, shapes), call(torch, shapes)
            assert (ours is None) == (theirs is None), shapes
            if theirs is not None:
                np.testing.assert_array_equal(np.array(ours.tolist()), np.array(theirs.tolist()))
