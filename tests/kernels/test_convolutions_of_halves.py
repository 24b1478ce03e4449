"""Convolutions of 16-bit numbers: sums in float32, rounded once, by every way of multiplying that this processor has."""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import kernels
from rushlight.kernels import products
from rushlight.kernels.reference import windows as reference

BFLOAT16, FLOAT16 = np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16)
EPS = {FLOAT16: 2.0**-11, BFLOAT16: 2.0**-8}

Shape = tuple[int, ...]
Given = tuple[Shape, Shape, Shape, Shape, Shape, int]  # input, weight, stride, padding, dilation, groups
GIVEN: list[Given] = [
    ((2, 32, 14, 14), (32, 32, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((1, 64, 40, 37), (33, 64, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    ((3, 33, 9, 20), (17, 33, 3, 3), (2, 2), (1, 1), (1, 1), 1),
    ((2, 8, 20, 21), (65, 8, 2, 2), (2, 3), (0, 1), (1, 1), 1),
    ((2, 16, 33, 9), (16, 16, 5, 3), (1, 2), (4, 2), (2, 1), 1),
    ((1, 3, 45, 45), (64, 3, 7, 7), (2, 2), (3, 3), (1, 1), 1),
    ((2, 1, 28, 28), (16, 1, 5, 5), (1, 1), (2, 2), (1, 1), 1),
    ((2, 40, 12, 12), (3, 40, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((1, 32, 300), (24, 32, 5), (1,), (2,), (1,), 1),
    ((2, 34, 15), (40, 34, 3), (3,), (0,), (2,), 1),
    ((1, 12, 5, 8, 9), (20, 12, 3, 3, 3), (1, 2, 1), (1, 1, 0), (1, 1, 2), 1),
    ((2, 32, 10, 11), (32, 16, 3, 3), (1, 1), (1, 1), (1, 1), 2),
    ((1, 16, 11, 11), (16, 16, 1, 1), (3, 3), (0, 0), (1, 1), 1),  # between whose strides the input has no gradient
    ((1, 8, 200, 200), (8, 8, 3, 3), (1, 1), (1, 1), (1, 1), 1),  # some rows at a time
    ((1, 300, 2000), (16, 300, 3), (1,), (1,), (1,), 1),  # some columns at a time
    ((1, 70, 3, 3000), (9, 70, 3, 3), (1, 2), (1, 0), (1, 1), 1),
    ((1, 300, 64, 64), (8, 300, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((2, 4, 12, 12), (4, 1, 3, 3), (1, 1), (1, 1), (1, 1), 4),
    ((2, 16, 3, 3), (8, 16, 3, 3), (1, 1), (0, 0), (1, 1), 1),
]


def numbers(rng: np.random.Generator, shape: Shape, half: Any) -> Any:
    return rng.standard_normal(shape).astype(half)


def near(found: Any, make: Any, *factors: Any) -> None:
    """Whether a convolution is what float64 gives, rounded once after sums in float32."""
    exact, size = make(*(x.astype(float) for x in factors)), make(*(abs(x.astype(float)) for x in factors))
    limit = abs(exact) * EPS[found.dtype] + size * 2.0**-20 + 1e-7
    assert found.shape == exact.shape
    np.testing.assert_array_less(abs(found.astype(float) - exact), limit + 1e-30)


@pytest.mark.parametrize("half", [BFLOAT16, FLOAT16], ids=str)
@pytest.mark.parametrize("given", GIVEN, ids=str)
def test_of_every_shape(rng: np.random.Generator, half: Any, given: Given, way: products.Way) -> None:
    shape, kernel, *geometry, groups = given
    x, w = numbers(rng, shape, half), numbers(rng, kernel, half)
    g = numbers(rng, (shape[0], kernel[0], *reference.out_sizes(shape[2:], (kernel[2:], *geometry))), half)
    more: Any = (*geometry, groups)
    near(kernels.conv(x, w, *more), lambda x, w: reference.conv(x, w, *more), x, w)
    near(kernels.conv_input(g, w, shape, *more), lambda g, w: reference.conv_input(g, w, shape, *more), g, w)
    near(kernels.conv_weight(g, x, kernel, *more), lambda g, x: reference.conv_weight(g, x, kernel, *more), g, x)


@pytest.mark.parametrize("half", [BFLOAT16, FLOAT16], ids=str)
def test_a_bias_is_added_before_rounding(rng: np.random.Generator, half: Any, way: products.Way) -> None:
    x, w, b = numbers(rng, (2, 32, 9, 9), half), numbers(rng, (40, 32, 3, 3), half), numbers(rng, (40,), half)
    more: Any = ((1, 1), (1, 1), (1, 1), 1)
    near(kernels.conv(x, w, *more, b), lambda x, w, b: reference.conv(x, w, *more) + b[:, None, None], x, w, b)


@pytest.mark.parametrize("given", GIVEN[:4], ids=str)
def test_the_same_bits_on_any_number_of_threads(rng: np.random.Generator, given: Given, way: products.Way) -> None:
    shape, kernel, *geometry, groups = given
    x, w = numbers(rng, shape, BFLOAT16), numbers(rng, kernel, BFLOAT16)
    more: Any = (*geometry, groups)
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            y = kernels.conv(x, w, *more)
            found.append((y, kernels.conv_input(y, w, shape, *more), kernels.conv_weight(y, x, kernel, *more)))
    finally:
        torch.set_num_threads(before)
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one.view(np.uint16), other.view(np.uint16))


def test_what_is_not_finite_stays_where_it_is_seen(rng: np.random.Generator, way: products.Way) -> None:
    x, w = numbers(rng, (1, 32, 40, 10), BFLOAT16), numbers(rng, (16, 32, 3, 3), BFLOAT16)
    more: Any = ((1, 1), (1, 1), (1, 1), 1)
    whole = kernels.conv(x, w, *more)
    x[0, 3, 20, 0] = np.inf
    seen = np.zeros((40, 10), bool)
    seen[19:22, :2] = True
    found = kernels.conv(x, w, *more)
    assert not np.isfinite(found[0][:, seen].astype(float)).any()
    np.testing.assert_array_equal(found[0][:, ~seen].view(np.uint16), whole[0][:, ~seen].view(np.uint16))


def test_an_infinite_number_of_an_image_makes_gradients_of_weights_infinite(
    rng: np.random.Generator, way: products.Way
) -> None:
    x, g = numbers(rng, (1, 32, 40, 10), BFLOAT16), numbers(rng, (1, 16, 40, 10), BFLOAT16)
    more: Any = ((1, 1), (1, 1), (1, 1), 1)
    whole = kernels.conv_weight(g, x, (16, 32, 3, 3), *more).astype(np.float32)
    x[0, 3, 20, 9] = np.inf  # at the end of a row, where zeros of the gradient begin
    found = kernels.conv_weight(g, x, (16, 32, 3, 3), *more).astype(np.float32)
    seen = np.zeros((32, 3, 3), bool)
    seen[3, :, 1:] = True
    assert not np.isfinite(found[:, seen]).any() and np.isinf(found[:, seen]).mean() > 0.9
    np.testing.assert_allclose(found[:, ~seen], whole[:, ~seen], rtol=2.0**-7, atol=1e-2)


def test_gradients_of_a_layer_are_those_of_float32_rounded(rng: np.random.Generator, way: products.Way) -> None:
    x, w, b = (torch.from_numpy(rng.standard_normal(s)).float() for s in ((2, 16, 12, 12), (32, 16, 3, 3), (32,)))
    found = []
    for dtype in (torch.float32, torch.bfloat16):
        leaves = [each.bfloat16().to(dtype).requires_grad_() for each in (x, w, b)]
        y = functools.partial(F.conv2d, stride=2, padding=1)(*leaves)
        y.backward(torch.ones_like(y))
        found.append([y.detach().float(), *(each.grad.float() for each in leaves)])
    for wide, half in zip(*found, strict=True):
        torch.testing.assert_close(half, wide, rtol=2.0**-7, atol=2e-3 * float(wide.abs().max()))
