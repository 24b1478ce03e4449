"""A row added to every row, and sums of rows."""

import itertools
from typing import Any

import numpy as np
import pytest

import rushlight
from rushlight import kernels as K
from rushlight.kernels import matrices
from rushlight.kernels.rows import across


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "c16"])
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (5, 7), (700, 129), (3, 70_000)])
def test_rows(path: str, rng: np.random.Generator, shape: Any, dtype: str) -> None:
    x, row = (rng.integers(-9, 9, s).astype(dtype) for s in (shape, shape[1:]))
    np.testing.assert_array_equal(K.sum_rows(x), x.sum(0))
    turned = x.copy(order="F")
    np.testing.assert_array_equal(K.sum_rows(turned), x.sum(0))
    want = x + row
    assert K.add_row(x, row) is x
    np.testing.assert_array_equal(x, want)
    np.testing.assert_array_equal(K.add_row(turned, row), want)


BROADCAST = [
    ((200, 1, 16), (1, 200, 16)),
    ((16384, 1), (64,)),
    ((16384, 64), (64,)),
    ((16384, 64), (16384, 1)),
    ((64, 1, 32, 40), (1, 9, 1, 40)),
    ((100, 4, 1, 20), (1, 4, 9, 1)),
    ((1, 300, 5), (200, 1, 5)),
    ((40000,), (5, 1)),
    ((7, 1), (1, 7)),
    ((2, 1, 1, 2, 1, 2, 1, 2, 1000), (1, 2, 2, 1, 2, 1, 2, 1, 1)),
    ((0, 1, 60000), (4, 60000)),
]


@pytest.mark.parametrize(
    ("ufunc", "dtype"),
    [(np.add, "f4"), (np.subtract, "f8"), (np.multiply, "f4"), (np.true_divide, "f4"), (np.add, "i8")],
)
@pytest.mark.parametrize(("left", "right"), BROADCAST)
def test_broadcast(path: str, rng: np.random.Generator, left: Any, right: Any, ufunc: np.ufunc, dtype: str) -> None:
    kernel = K.across(ufunc)
    x, y = (rng.integers(1, 99, shape).astype(dtype) for shape in (left, right))
    for a in (x, x.copy(order="F"), np.repeat(x, 2, -1)[..., ::2], x[..., ::-1], x[:1]):
        np.testing.assert_array_equal(kernel(a, y), ufunc(a, y))
        np.testing.assert_array_equal(kernel(y, a), ufunc(y, a))
        assert kernel(a, y).strides == ufunc(a, y).strides
    np.testing.assert_array_equal(kernel(x, 3), ufunc(x, 3))


@pytest.mark.parametrize("ufunc", [np.add, np.subtract, np.multiply, np.true_divide])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    "shape",
    [
        (200, 130),
        (131, 257),
        (5, 70, 65),
        (17, 40, 31),
        (3, 4, 50, 40),
        (1000, 17),
        (17, 1000),
        (4, 5000),
        (300, 1, 70),
    ],
)
def test_axes_in_another_order(path: str, rng: np.random.Generator, shape: Any, ufunc: np.ufunc, dtype: str) -> None:
    kernel, y = K.across(ufunc), rng.standard_normal(shape).astype(dtype)
    for order in itertools.permutations(range(len(shape))):
        x = rng.standard_normal([shape[i] for i in order]).astype(dtype).transpose(np.argsort(order))
        for a, b in ((x, y), (y, x), (x, x), (x[::-1], y), (np.repeat(x, 2, -1)[..., ::2], y)):
            found, wanted = kernel(a, b), ufunc(a, b)
            np.testing.assert_array_equal(found, wanted)
            assert found.strides == wanted.strides
        z = y.copy()
        np.testing.assert_array_equal(kernel(z, x, out=z), ufunc(y, x))


@pytest.mark.parametrize("order", ["C", "F"])
def test_broadcast_into_the_first(path: str, rng: np.random.Generator, order: Any) -> None:
    kernel, others = K.across(np.subtract), (rng.standard_normal(70), rng.standard_normal((400, 1)))
    parts = (lambda x: x[3], lambda x: x[:, :1], lambda x: x[::400])
    for pick in (*parts, *(lambda x, other=other: other for other in others)):
        x = np.asarray(rng.standard_normal((400, 70)), order=order)
        want = x - pick(x)
        assert kernel(x, pick(x), out=x) is x
        np.testing.assert_array_equal(x, want)
    with pytest.raises(ValueError, match=r"mismatch|broadcast"):
        kernel(x, x[0, :3])


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("ufunc", [np.subtract, np.divide])
@pytest.mark.parametrize(
    ("shape", "order"), [((3, 96, 96), (1, 2, 0)), ((2, 64, 40, 40), (0, 2, 3, 1)), ((70, 3, 90), (2, 0, 1))]
)
def test_channels_that_lie_innermost(
    path: str, rng: np.random.Generator, shape: Any, order: Any, ufunc: np.ufunc, dtype: str
) -> None:
    x = rng.random([shape[i] for i in order]).astype(dtype).transpose(np.argsort(order))
    for axes in itertools.product((False, True), repeat=len(shape)):
        y = rng.random([n if keep else 1 for n, keep in zip(shape, axes, strict=True)]).astype(dtype) + 1
        want, kernel = ufunc(x, y), across(ufunc)
        found, same = kernel(x, y), x.copy("K")
        assert kernel(same, y, out=same) is same
        assert found.strides == x.strides or sum(axes) > 1  # of more axes NumPy asks both operands how to lie
        np.testing.assert_array_equal(found, want)
        np.testing.assert_array_equal(same, want)


def test_large_tensors_add() -> None:
    a, b = rushlight.rand(600, 1000), rushlight.rand(600, 1000)
    np.testing.assert_array_equal((a + b).numpy(), a.numpy() + b.numpy())
    np.testing.assert_array_equal((a + b[0]).numpy(), a.numpy() + b[0].numpy())
    np.testing.assert_array_equal((a + 1.5).numpy(), a.numpy() + np.float32(1.5))
    with pytest.raises(RuntimeError, match="must match the size"):
        a + b.t()


def test_what_blas_takes_as_it_lies_is_not_copied() -> None:
    x = np.zeros((4, 6), np.float32)
    for lies in (x, x.T, x[1:], x[:, :3], x[:, 1:5].T, x[0]):
        assert matrices._ready(lies) is lies
    stack = np.zeros((2, 3, 4), np.float32)
    for apart in (x[:, ::2], x[::2, ::2].T, stack.T):
        assert matrices._ready(apart).flags.c_contiguous
