"""Order, sets, bins and quantiles."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as torch

DRAW = np.random.default_rng(11)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "uint8", "bfloat16"])
def test_sort_is_stable(dtype: str, descending: bool) -> None:
    array = DRAW.integers(0, 2 if dtype == "bool" else 5, (4, 50))
    x = torch.from_numpy(array).to(getattr(torch, dtype))
    values, indices = torch.sort(x, dim=1, descending=descending, stable=True)
    want = np.argsort(-array if descending else array, axis=1, kind="stable")
    assert np.array_equal(indices.numpy(), want)
    assert values.tolist() == torch.gather(x, 1, indices).tolist()
    assert np.array_equal(torch.argsort(x, 1, descending, stable=True).numpy(), want)


def test_topk_agrees_with_sort() -> None:
    array = DRAW.standard_normal((3, 100))
    x = torch.from_numpy(array)
    for k in (0, 1, 3, 60, 100):
        for largest in (True, False):
            found = torch.topk(x, k, 1, largest)
            want = x.sort(1, descending=largest)
            assert found.values.tolist() == want.values[:, :k].tolist()
            assert found.indices.tolist() == want.indices[:, :k].tolist()
    assert torch.tensor(2.0).topk(1).indices == 0


def test_kthvalue_and_medians() -> None:
    x = torch.tensor([[3.0, 1.0, 2.0, 4.0], [float("nan"), 5.0, 6.0, 7.0]])
    assert x[0].kthvalue(2).values == 2 and x[0].median() == 2
    assert x.median(1).indices.tolist() == [2, 0] and x.nanmedian(1).values.tolist() == [2, 6]
    assert x.nanmedian() == 4
    with pytest.raises(RuntimeError, match="out of range"):
        x.kthvalue(5)


def test_mode() -> None:
    x = torch.tensor([[2, 1, 2, 1, 3], [5, 5, 5, 1, 1]])
    values, indices = torch.mode(x, 1)
    assert values.tolist() == [1, 5] and [x[i, j] for i, j in enumerate(indices.tolist())] == [1, 5]


def test_quantiles() -> None:
    x = DRAW.standard_normal((4, 9))
    t, q = torch.from_numpy(x), [0.0, 0.1, 0.5, 1.0]
    for way in ("linear", "lower", "higher", "midpoint", "nearest"):
        found = torch.quantile(t, torch.tensor(q, dtype=torch.float64), dim=1, interpolation=way)
        np.testing.assert_allclose(found.numpy(), np.quantile(x, q, axis=1, method=way))
    assert t.quantile(0.5).shape == () and t.quantile(0.5, 0, keepdim=True).shape == (1, 9)
    nan = torch.tensor([1.0, float("nan"), 3.0])
    assert nan.quantile(0.5).isnan() and nan.nanquantile(0.5) == 2
    with pytest.raises(RuntimeError, match="range"):
        t.quantile(2.0)
    with pytest.raises(RuntimeError, match="float or double"):
        torch.tensor([1]).quantile(0.5)


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_unique_of_integers_near_each_other_and_far(name: str) -> None:
    rng, kind = np.random.default_rng(0), np.iinfo(name)
    for size in (1, 5, 300):
        for low, high in ((0, 1), (kind.min, kind.min + 100), (kind.max - 100, kind.max), (kind.min, kind.max)):
            x = rng.integers(low, high, size, dtype=name, endpoint=True)
            want = np.unique(x, return_inverse=True, return_counts=True)
            found = torch.unique(torch.from_numpy(x.copy()), return_inverse=True, return_counts=True)
            assert found[0].numpy().dtype == x.dtype and found[1].numpy().dtype == found[2].numpy().dtype == np.int64
            for one, other in zip(found, want, strict=True):
                np.testing.assert_array_equal(one.numpy(), other)
            np.testing.assert_array_equal(torch.unique(torch.from_numpy(x)).numpy(), want[0])


def test_unique() -> None:
    x = torch.tensor([[3, 1], [1, 3], [3, 1]])
    values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
    assert values.tolist() == [1, 3] and inverse.tolist() == [[1, 0], [0, 1], [1, 0]] and counts.tolist() == [3, 3]
    rows, inverse, counts = x.unique(dim=0, return_inverse=True, return_counts=True)
    assert rows.tolist() == [[1, 3], [3, 1]] and inverse.tolist() == [1, 0, 1] and counts.tolist() == [1, 2]
    line = torch.tensor([1, 1, 2, 2, 1])
    values, inverse, counts = line.unique_consecutive(return_inverse=True, return_counts=True)
    assert values.tolist() == [1, 2, 1] and inverse.tolist() == [0, 0, 1, 1, 2] and counts.tolist() == [2, 2, 1]
    assert torch.unique(torch.zeros(0)).tolist() == []


def test_searches() -> None:
    edges = torch.tensor([1.0, 3.0, 5.0])
    assert torch.searchsorted(edges, torch.tensor([[0.0, 3.0], [4.0, 9.0]])).tolist() == [[0, 1], [2, 3]]
    assert torch.searchsorted(edges, 3.0, right=True) == 2
    assert torch.bucketize(torch.tensor([3.0]), edges, right=True, out_int32=True).dtype is torch.int32
    rows = torch.tensor([[1.0, 2.0], [5.0, 6.0]])
    assert torch.searchsorted(rows, torch.tensor([[1.5], [7.0]])).tolist() == [[1], [2]]
    sorter = torch.tensor([1, 0])
    assert torch.searchsorted(torch.tensor([2.0, 1.0]), 1.5, sorter=sorter) == 1
    for wrong in ({"side": "middle"}, {"side": "left", "right": True}):
        with pytest.raises(RuntimeError):
            torch.searchsorted(edges, 1.0, **wrong)
    assert torch.searchsorted(edges, torch.tensor([3])) == 1
    assert torch.bucketize(1.5, torch.tensor([1, 2])) == 1
    assert torch.isin(torch.tensor([1, 2, 3]), torch.tensor([2, 5])).tolist() == [False, True, False]
    assert torch.isin(torch.tensor([1, 2]), 2, invert=True).tolist() == [True, False]


def test_counts() -> None:
    x = torch.tensor([1, 1, 3])
    assert x.bincount().tolist() == [0, 2, 0, 1] and x.bincount(minlength=5).tolist() == [0, 2, 0, 1, 0]
    assert x.bincount(torch.tensor([0.5, 1.0, 2.0])).tolist() == [0, 1.5, 0, 2]
    for wrong in (torch.tensor([-1]), torch.tensor([1.0]), torch.tensor([[1]])):
        with pytest.raises(RuntimeError):
            wrong.bincount()
    data = torch.tensor([0.0, 0.5, 1.0, 2.0])
    assert torch.histc(data, 2).tolist() == [2, 2] and torch.histc(data, 2, 0, 1).tolist() == [1, 2]
    hist, edges = torch.histogram(data, 2)
    assert hist.tolist() == [2, 2] and edges.tolist() == [0, 1, 2]
    hist, edges = torch.histogram(data, torch.tensor([0.0, 1.0, 2.0]), density=True)
    assert hist.tolist() == [0.5, 0.5]
    grid, sides = torch.histogramdd(torch.tensor([[0.0, 0.0], [1.0, 1.0]]), 2)
    assert grid.tolist() == [[1, 0], [0, 1]] and len(sides) == 2
    assert data.count_nonzero() == 3 and torch.ones(2, 3).count_nonzero((0, 1)) == 6
    with pytest.raises(RuntimeError):
        torch.histc(data, 0)


def test_running_extrema() -> None:
    x = torch.tensor([1.0, 1.0, 2.0, 2.0, 1.0])
    assert x.cummax(0).indices.tolist() == [0, 1, 3, 3, 3] or x.cummax(0).indices.tolist() == [0, 1, 2, 3, 3]
    assert x.cummin(0).values.tolist() == [1, 1, 1, 1, 1] and x.cummin(0).indices.tolist() == [0, 1, 1, 1, 4]


def test_running_results_in_place() -> None:
    x = torch.ones(3, dtype=torch.float64, requires_grad=True)
    y = (x * 2).cumsum_(0)
    y.sum().backward()
    assert y.tolist() == [2, 4, 6] and x.grad.tolist() == [6, 4, 2]
    assert torch.tensor([2, 3]).cumprod_(0).tolist() == [2, 6]
    with pytest.raises(RuntimeError, match="dtype"):
        torch.tensor([1]).cumsum_(0, dtype=torch.float32)


def test_differences() -> None:
    x = torch.tensor([1.0, 4.0, 9.0])
    assert torch.diff(x).tolist() == [3, 5] and torch.diff(x, 2).tolist() == [2] and torch.diff(x, 5).tolist() == []
    assert torch.diff(x, prepend=torch.zeros(1)).tolist() == [1, 3, 5]
    assert torch.diff(torch.tensor([True, False, False])).tolist() == [True, False]
    assert torch.trapz(x) == 9 and torch.trapezoid(x, dx=2) == 18
    assert torch.trapezoid(x, torch.tensor([0.0, 1.0, 3.0])) == 15.5
    assert torch.cumulative_trapezoid(x).tolist() == [2.5, 9]
    (slope,) = torch.gradient(x)
    assert slope.tolist() == [3, 4, 5]
    (slope,) = torch.gradient(x, spacing=(torch.tensor([1.0, 2.0, 3.0]),), edge_order=2)
    assert slope.tolist() == [2, 4, 6]
    with pytest.raises(RuntimeError):
        torch.gradient(x, edge_order=3)


def test_covariances() -> None:
    x = DRAW.standard_normal((3, 8))
    t = torch.from_numpy(x)
    np.testing.assert_allclose(torch.cov(t).numpy(), np.cov(x))
    np.testing.assert_allclose(torch.corrcoef(t).numpy(), np.corrcoef(x))
    f, a = DRAW.integers(1, 4, 8), DRAW.uniform(0.1, 1, 8)
    found = torch.cov(t, correction=0, fweights=torch.from_numpy(f), aweights=torch.from_numpy(a))
    np.testing.assert_allclose(found.numpy(), np.cov(x, ddof=0, fweights=f, aweights=a))
    with pytest.raises(RuntimeError, match="negative"):
        torch.cov(t, aweights=torch.from_numpy(-a))


def test_renorm() -> None:
    x = torch.tensor([[3.0, 4.0], [0.3, 0.4]])
    found = torch.renorm(x, 2, 0, 1.0)
    np.testing.assert_allclose(found.numpy(), [[0.6, 0.8], [0.3, 0.4]], rtol=1e-6)
    assert x.renorm_(2, 0, 1.0) is x
    with pytest.raises(RuntimeError):
        torch.renorm(x, -1, 0, 1.0)


def test_hash() -> None:
    assert torch.hash_tensor(torch.tensor([1, 2])) == 3
    assert torch.hash_tensor(torch.tensor([[1, 2], [1, 7]]), 0).tolist() == [0, 5]


def test_what_has_no_derivative_says_so() -> None:
    x = torch.tensor([1.0, 2.0, 2.0], requires_grad=True)
    assert not torch.histc(x, 2).requires_grad
    for found in (x.unique(), torch.histogram(x, 2).hist, torch.tensor([0, 1, 1]).bincount(x)):
        assert found.requires_grad
        with pytest.raises(NotImplementedError, match="derivative"):
            found.sum().backward()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_slices_of_16_bits_are_in_order_beside_nan(dtype: torch.dtype) -> None:
    x = torch.tensor([[2.0, float("nan"), 3.0, -1.0, 1.0, 2.0, float("nan")]], dtype=dtype)
    found, inverse = x.unique(dim=1, return_inverse=True)
    assert found[0, :4].tolist() == [-1, 1, 2, 3] and found[0, 4:].isnan().all() and found.shape == (1, 6)
    assert found.index_select(1, inverse).float().allclose(x.float(), equal_nan=True)


def test_nan_differs_from_itself_to_mode() -> None:
    nan = float("nan")
    assert torch.tensor([nan, nan, nan, 2.0]).mode().values.item() == 2
    assert torch.tensor([nan, 3.0, nan, 3.0, 1.0]).mode().values.item() == 3
    assert torch.tensor([nan, nan]).mode().values.isnan()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("low", "high"), [(0, 1), (-5, 3), (1e6, 1e6 + 10)])
@pytest.mark.parametrize("bins", [3, 100, 999])
def test_bins_of_even_edges_are_those_of_a_search(dtype: type, low: float, high: float, bins: int) -> None:
    edges = np.linspace(low, high, bins + 1).astype(dtype)
    beside = [np.nextafter(edges, dtype(side)) for side in (low - 1, high + 1)]
    x = np.concatenate([edges, *beside, DRAW.uniform(low, high, 3000).astype(dtype), [np.nan, np.inf, -np.inf]])
    inside = x[(x >= edges[0]) & (x <= edges[-1])]
    place = np.minimum(np.searchsorted(edges, inside, "right") - 1, bins - 1)
    hist = torch.histogram(torch.from_numpy(x.astype(dtype)), torch.from_numpy(edges)).hist
    assert np.array_equal(hist.numpy(), np.bincount(place, minlength=bins))


def test_truths_are_searched_beside_numbers() -> None:
    """As 0 and 1; two operands of truths are refused, as in PyTorch."""
    truths, numbers = torch.tensor([False, True]), torch.tensor([0.0, 0.5, 1.0])
    assert torch.searchsorted(numbers, truths).tolist() == [0, 2] and torch.searchsorted(truths, numbers).tolist() == [
        0,
        1,
        1,
    ]
    assert torch.bucketize(truths, numbers, right=True).tolist() == [1, 3] and torch.searchsorted(
        truths, truths[:0]
    ).shape == (0,)
    with pytest.raises(NotImplementedError, match="not implemented for 'Bool'"):
        torch.searchsorted(truths, truths)
