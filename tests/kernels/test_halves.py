"""16-bit floats: to float32 and back, their products, and what is computed of them by blocks."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import rushlight
from rushlight.kernels import dispatch, products
from rushlight.kernels.matrices import matmul
from rushlight.tensor import wrap

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
HALVES = [np.dtype(np.float16), BFLOAT16]


def same(x: Any, y: Any) -> bool:
    """Whether the numbers are the same to the last bit; any NaN is like any other."""
    return x.dtype == y.dtype and bool(((x.view(f"u{x.itemsize}") == y.view(f"u{x.itemsize}")) | (np.isnan(x) & np.isnan(y))).all())  # fmt: skip


@pytest.mark.parametrize("half", HALVES, ids=str)
def test_every_number_widens_as_numpy_does_it(path: str, half: Any) -> None:
    numbers = np.arange(1 << 16, dtype=np.uint16).view(half)
    with np.errstate(invalid="ignore"):
        assert same(dispatch.widened(numbers), numbers.astype(np.float32))


@pytest.mark.parametrize("half", HALVES, ids=str)
def test_rounding_is_to_nearest_even(path: str, rng: np.random.Generator, half: Any) -> None:
    with np.errstate(all="ignore"):
        exact = np.arange(1 << 16, dtype=np.uint16).view(half).astype(np.float32)
        middles = exact.view(np.uint32) + np.uint32(1 << (12 if half.kind == "f" else 15))
        any_bits = rng.integers(0, 1 << 32, 1 << 17, dtype=np.uint64).astype(np.uint32)
        x = np.concatenate(
            [exact, *((middles + np.uint32(d)).view(np.float32) for d in (0, 1)), any_bits.view(np.float32)]
        )
        assert same(dispatch.rounded(x, half), x.astype(half))


@pytest.mark.parametrize("half", HALVES, ids=str)
def test_layouts(path: str, rng: np.random.Generator, half: Any) -> None:
    x = rng.standard_normal((40, 60, 3)).astype(np.float32)
    for lying in (x, x.T, x[::2], x[:, ::-1], x[..., :1], np.broadcast_to(x[:1], x.shape)):
        small = lying.astype(half)
        view = small if lying.flags.forc else np.ascontiguousarray(small)[:, ::-1][:, ::-1]
        assert same(np.ascontiguousarray(dispatch.widened(view)), np.ascontiguousarray(view.astype(np.float32)))
        assert same(np.ascontiguousarray(dispatch.rounded(lying, half)), np.ascontiguousarray(small))
        into = np.zeros((*lying.shape, 2), half)[..., 0]
        assert dispatch.rounded(lying, half, into) is into
        np.testing.assert_array_equal(into, small)


def test_rounding_of_axes_of_one_element_with_any_strides() -> None:
    x = np.lib.stride_tricks.as_strided(np.ones(2000, np.float32), (1, 2000), (12, 4))
    assert same(dispatch.rounded(x, BFLOAT16), np.ones((1, 2000), BFLOAT16))


@pytest.mark.parametrize("lead", [(), (3,), (2, 3), (5000,)], ids=str)
@pytest.mark.parametrize(("rows", "steps", "columns"), [(1, 1, 1), (3, 5, 7), (8, 2, 48), (100, 257, 130), (9, 64, 1)])
def test_products_round_once(
    way: products.Way, rng: np.random.Generator, lead: Any, rows: int, steps: int, columns: int
) -> None:
    if lead == (5000,) and rows * steps > 100:
        lead = (20,)
    for turned in range(4):
        shapes = (
            ((steps, rows) if turned & 1 else (rows, steps)),
            ((columns, steps) if turned & 2 else (steps, columns)),
        )
        a, b = (rng.standard_normal((*lead, *shape)).astype(BFLOAT16) for shape in shapes)
        a, b = a.swapaxes(-1, -2) if turned & 1 else a, b.swapaxes(-1, -2) if turned & 2 else b
        row = rng.standard_normal(columns).astype(BFLOAT16)
        for added in (None, row):
            found = products.product(a, b, added)
            assert found is not None and found.dtype == BFLOAT16
            wide_a, wide_b = a.astype(float), b.astype(float)
            want = wide_a @ wide_b + (0 if added is None else added.astype(float))
            error = abs(found.astype(float) - want)
            assert (error <= abs(want) * 2**-8 + abs(wide_a) @ abs(wide_b) * 1e-6 * steps**0.5).all()


@pytest.mark.parametrize("sizes", [(60, 1100, 40), (17, 1024, 33)], ids=str)
def test_sums_in_parts(way: products.Way, rng: np.random.Generator, sizes: tuple[int, int, int]) -> None:
    """Sums so long that they are made in parts, of integers: exact."""
    a, b = (rng.integers(-1, 2, shape).astype(BFLOAT16) for shape in (sizes[:2], sizes[1:]))
    np.testing.assert_array_equal(products.product(a, b), (a.astype(float) @ b.astype(float)).astype(BFLOAT16))


def test_a_row_may_be_misaligned(way: products.Way) -> None:
    row = np.zeros(7, np.uint8)[1:].view(BFLOAT16)
    row[...] = 1, 2, 3
    np.testing.assert_array_equal(
        products.product(np.ones((2, 4), BFLOAT16), np.ones((4, 3), BFLOAT16), row), [[5, 6, 7]] * 2
    )


def test_products_of_strided_matrices_and_special_numbers(way: products.Way, rng: np.random.Generator) -> None:
    x, y = (rng.integers(-4, 5, shape).astype(BFLOAT16) for shape in ((60, 80), (80, 90)))
    for a in (x, x[::2], x[:, ::-1], np.asfortranarray(x)[3:], np.broadcast_to(x[:1], x.shape)):
        for b in (y, y[:, 5:70], y[:, ::2], np.asfortranarray(y)):
            np.testing.assert_array_equal(products.product(a, b), a.astype(float) @ b.astype(float))
    x[0, 0], x[1, 0], x[2, 0] = np.inf, np.nan, -np.inf
    y[0] = 1
    found = products.product(x, y)
    assert found is not None
    assert (found[0] == np.inf).all() and np.isnan(found[1].astype(float)).all() and (found[2] == -np.inf).all()
    with pytest.raises(ValueError, match="mismatch"):
        matmul(x, y[:7])


@pytest.mark.parametrize("half", HALVES, ids=str)
def test_sums_and_arithmetic_by_blocks_equal_those_of_numbers(half: Any, rng: np.random.Generator) -> None:
    """What goes through float32 in blocks has the bits of what NumPy and ml_dtypes compute in 16 bits."""
    arrays = [rng.standard_normal(3000).astype(half) for _ in range(2)]
    x, y = (wrap(a.copy()) for a in arrays)
    with np.errstate(all="ignore"):
        for name in ("add", "subtract", "multiply", "divide", "maximum", "fmod"):
            found = getattr(rushlight, {"subtract": "sub", "multiply": "mul", "divide": "div"}.get(name, name))(x, y)
            assert same(found._array, getattr(np, name)(*arrays)), name
        for name in ("sqrt", "abs", "neg"):
            found = getattr(rushlight, name)(x)
            assert same(found._array, getattr(np, {"neg": "negative"}.get(name, name))(arrays[0])), name
    large = rng.random((300, 400)).astype(half)
    for dim in (0, 1):
        found = wrap(large).sum(dim)._array
        np.testing.assert_array_equal(found, large.astype(float).sum(dim).astype(np.float32).astype(half))


@pytest.mark.parametrize("sizes", [(64, 70, 33), (5, 3, 2), (1, 100, 200), (96, 200, 130)])
def test_a_product_and_what_is_added_are_rounded_once(sizes: tuple[int, int, int]) -> None:
    """alpha * a @ b + beta * c of bfloat16, beside the same in float32."""
    rng = np.random.default_rng(1)
    m, k, n = sizes
    a, b, c = (rushlight.tensor(rng.standard_normal(shape)).bfloat16() for shape in ((m, k), (k, n), (m, n)))
    found = rushlight.addmm(c, a, b, beta=0.75, alpha=1.25).float().numpy()
    exact = 0.75 * c.double().numpy() + 1.25 * (a.double().numpy() @ b.double().numpy())
    limit = 2.0**-8 * np.abs(exact) * (1 if products.ways() else 3) + 1e-5
    assert (np.abs(found - exact) <= limit).all()


@pytest.mark.parametrize("fn", [np.add, np.subtract, np.multiply, np.divide])
@pytest.mark.parametrize("half", [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)])
def test_pairs_of_halves_are_numpys(path: str, fn: np.ufunc, half: Any) -> None:
    """All numbers of 16 bits beside others, infinities and NaN among them."""
    every = np.arange(1 << 16, dtype=np.uint16)
    x, y = every.view(half), np.random.default_rng(0).permutation(every).view(half)
    with np.errstate(all="ignore"):
        want = fn(x, y)
    found = dispatch.of_halves(fn, x, y)
    if path == "reference":
        assert found is None
        return
    assert found is not None and found.dtype == half
    number = ~np.isnan(want.astype("f4"))
    np.testing.assert_array_equal(np.isnan(found.astype("f4")), ~number)
    np.testing.assert_array_equal(found.view(np.uint16)[number], want.view(np.uint16)[number])
    own = x.copy()
    assert dispatch.of_halves(fn, own, y, own) is own
    np.testing.assert_array_equal(own.view(np.uint16)[number], want.view(np.uint16)[number])


def test_what_is_not_alike_is_no_pair_of_halves() -> None:
    x = np.ones((40, 50), np.float16)
    for y in (x[:, :25].repeat(2, 1).T.copy().T, x[0], x.astype("f4"), 2.0, x.T.copy().reshape(40, 50)[:, ::-1]):
        assert dispatch.of_halves(np.multiply, x, y) is None
    assert dispatch.of_halves(np.maximum, x, x) is None and dispatch.of_halves(np.add, x[:, ::2], x[:, ::2]) is None
