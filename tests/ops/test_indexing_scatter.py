"""gather, scatter, slices at indices, masks, take and put: against plain loops, with gradients and errors."""

import itertools

import numpy as np
import pytest
from tests.ops.numeric import check_gradients

import rushlight as torch

RNG = np.random.default_rng(3)
A, S = RNG.standard_normal((3, 4)), RNG.standard_normal((3, 4))
INDEX = np.array([[0, 2, 1, 0], [2, 2, 0, 1]])
MASK = RNG.random((3, 4)) > 0.5
REDUCE = {"sum": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


def tensor(a):
    return torch.from_numpy(np.array(a))


def places(index, dim):
    for at in np.ndindex(index.shape):
        yield at, tuple(index[at] if d == dim else at[d] for d in range(len(at)))


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_gather(dim):
    index = INDEX if dim == 0 else INDEX[:, :3]
    want = np.empty(index.shape)
    for at, there in places(index, dim % 2):
        want[at] = A[there]
    np.testing.assert_array_equal(tensor(A).gather(dim, tensor(index)).numpy(), want)
    check_gradients(lambda t: t.gather(dim, tensor(index)), A)


def test_take_along_dim():
    order = np.argsort(A, 1)
    np.testing.assert_array_equal(torch.take_along_dim(tensor(A), tensor(order), 1).numpy(), np.sort(A, 1))
    np.testing.assert_array_equal(tensor(A).take_along_dim(tensor(np.array([3, 0]))).numpy(), A.reshape(-1)[[3, 0]])
    # Counted from the end along a dimension alone, as in PyTorch.
    with pytest.raises(RuntimeError, match="out of bounds"):
        tensor(A).take_along_dim(tensor(np.array([-1, 0])))
    check_gradients(lambda t: torch.take_along_dim(t, tensor(order[:1]), 1), A)


def test_scatter():
    unique = np.array([[0, 1, 2, 0], [1, 2, 0, 2]])
    want, one = A.copy(), A.copy()
    for at, there in places(unique, 0):
        want[there], one[there] = S[at], 1.5
    t = tensor(A)
    np.testing.assert_array_equal(t.scatter(0, tensor(unique), tensor(S)).numpy(), want)
    np.testing.assert_array_equal(t.scatter(0, tensor(unique), 1.5).numpy(), one)
    np.testing.assert_array_equal(t.scatter(0, tensor(unique), value=1.5).numpy(), one)
    assert t.scatter_(0, tensor(unique), tensor(S)) is t
    np.testing.assert_array_equal(t.numpy(), want)
    check_gradients(lambda t, s: t.scatter(0, tensor(unique), s), A, S)
    check_gradients(lambda t: t.scatter(0, tensor(unique), 2.0), A)


@pytest.mark.parametrize("kind, ufunc", REDUCE.items())
@pytest.mark.parametrize("include", [True, False])
def test_scatter_reduce(kind, ufunc, include):
    want, seen = A.copy(), set()
    for at, there in places(INDEX, 0):
        fresh = not include and there not in seen
        want[there] = S[at] if fresh else ufunc(want[there], S[at])
        seen.add(there)
    t, i, s = tensor(A), tensor(INDEX), tensor(S)
    np.testing.assert_allclose(t.scatter_reduce(0, i, s, kind, include_self=include).numpy(), want)
    np.testing.assert_allclose(t.scatter_reduce_(0, i, s, kind, include_self=include).numpy(), want)
    check_gradients(lambda t, s: t.scatter_reduce(0, i, s, kind, include_self=include), A, S)


@pytest.mark.parametrize("include", [True, False])
def test_scatter_mean(include):
    total, count = A * include, np.full(A.shape, float(include))
    for at, there in places(INDEX, 0):
        total[there] += S[at]
        count[there] += 1
    want = np.where(count == 0, A, total / np.maximum(count, 1))
    found = tensor(A).scatter_reduce(0, tensor(INDEX), tensor(S), "mean", include_self=include)
    np.testing.assert_allclose(found.numpy(), want)
    check_gradients(lambda t, s: t.scatter_reduce(0, tensor(INDEX), s, "mean", include_self=include), A, S)


@pytest.mark.parametrize("zeros", [1, 2, 3])
def test_products_with_zeros_have_exact_derivatives(zeros):
    s = np.array([2.0, 3.0, 5.0, 7.0])
    s[:zeros] = 0
    index = tensor(np.zeros(4, np.int64))
    check_gradients(lambda t, s: t.scatter_reduce(0, index, s, "prod"), np.array([1.5]), s)


def test_scatter_add_and_its_other_names():
    want = A.copy()
    for at, there in places(INDEX, 0):
        want[there] += S[at]
    t, i, s = tensor(A), tensor(INDEX), tensor(S)
    for found in (t.scatter_add(0, i, s), t.scatter(0, i, s, reduce="add"), t.clone().scatter_add_(0, i, s)):
        np.testing.assert_allclose(found.numpy(), want)
    check_gradients(lambda t, s: t.scatter_add(0, i, s), A, S)
    flipped = tensor(A.T.copy()).t()  # not contiguous
    np.testing.assert_allclose(flipped.scatter_add_(0, i, s).numpy(), want)


SLICES = {
    "index_select": (lambda t, s: t.index_select(1, AT), lambda a, s: a[:, [0, 2, 2]]),
    "index_add": (lambda t, s: t.index_add(1, AT, s, alpha=2), lambda a, s: added(a, 2 * s)),
    "index_copy": (lambda t, s: t.index_copy(1, AT[:2], s[:, :2]), lambda a, s: replaced(a, s[:, :2])),
    "index_fill": (lambda t, s: t.index_fill(1, AT, 0.5), lambda a, s: replaced(a, 0.5)),
    "index_fill tensor": (lambda t, s: t.index_fill(1, AT, s[0, 0]), lambda a, s: replaced(a, s[0, 0])),
    "index_reduce": (lambda t, s: t.index_reduce(1, AT, s, "amax"), lambda a, s: replaced(a, np.maximum(
        a[:, [0, 2]], np.stack([s[:, 0], np.maximum(s[:, 1], s[:, 2])], 1)))),
}  # fmt: skip
AT = torch.tensor([0, 2, 2])


def added(a, s):
    a = a.copy()
    np.add.at(a, (slice(None), [0, 2, 2]), s)
    return a


def replaced(a, value):
    a = a.copy()
    a[:, [0, 2]] = value
    return a


@pytest.mark.parametrize("name", SLICES)
def test_slices(name):
    fn, want = SLICES[name]
    np.testing.assert_allclose(fn(tensor(A), tensor(S[:, :3])).numpy(), want(A, S[:, :3]))
    check_gradients(fn, A, S[:, :3])


def test_slices_in_place():
    t = torch.zeros(3)
    i = torch.tensor([1, 1])
    assert t.index_add_(0, i, torch.ones(2)).tolist() == [0.0, 2.0, 0.0]
    assert t.index_fill_(0, i, 7.0).index_copy_(0, torch.tensor([0]), torch.tensor([1.0])).tolist() == [1.0, 7.0, 0.0]
    assert t.index_reduce_(0, i, torch.tensor([2.0, 3.0]), "prod").tolist() == [1.0, 42.0, 0.0]
    zero = torch.tensor(1.0)
    assert zero.index_add(0, torch.tensor([0]), torch.tensor(2.0)).item() == 3.0
    assert (
        zero.index_fill_(0, torch.tensor(0), 5.0).item() == 5.0 and zero.index_select(0, torch.tensor([0])).shape == ()
    )


def test_masks():
    t, m, s = tensor(A), tensor(MASK), tensor(S)
    np.testing.assert_array_equal(t.masked_fill(m, -1.0).numpy(), np.where(MASK, -1, A))
    np.testing.assert_array_equal(t.masked_fill(m[0], torch.tensor(2.0)).numpy(), np.where(MASK[0], 2, A))
    np.testing.assert_array_equal(t.masked_select(m).numpy(), A[MASK])
    want = A.copy()
    want[MASK] = S.reshape(-1)[: MASK.sum()]
    np.testing.assert_array_equal(t.masked_scatter(m, s).numpy(), want)
    assert t[:1].masked_fill(m, 0.0).shape == (3, 4)  # out of place, both broadcast
    assert t.masked_fill_(m, 0.0).masked_scatter_(m, s) is t
    np.testing.assert_array_equal(t.numpy(), want)
    check_gradients(lambda t: t.masked_fill(m, 2.0), A)
    check_gradients(lambda t, v: t.masked_fill(m, v), A, np.asarray(1.5))
    check_gradients(lambda t: t.masked_select(m[0]), A)
    check_gradients(lambda t, s: t.masked_scatter(m, s), A, S)


def test_where_nonzero():
    m = tensor(MASK)
    np.testing.assert_array_equal(torch.nonzero(m).numpy(), np.argwhere(MASK))
    for got, want in zip(m.nonzero(as_tuple=True), MASK.nonzero(), strict=True):
        np.testing.assert_array_equal(got.numpy(), want)
    assert torch.argwhere(torch.tensor(3.0)).shape == (1, 0) and torch.tensor(0).nonzero().shape == (0, 0)
    assert torch.tensor([0.0, 2.0], dtype=torch.bfloat16).nonzero().tolist() == [[1]]


def test_nonzero_of_a_fixed_size():
    t = torch.tensor([0, 3, 0, 4])
    assert t.nonzero_static(size=1).tolist() == [[1]] and t.nonzero_static(size=3).tolist() == [[1], [3], [-1]]
    with pytest.raises(RuntimeError, match="non-negative"):
        t.nonzero_static(size=-1)


def test_take_and_put():
    flat = np.array([[0, -1], [5, 5]])
    np.testing.assert_array_equal(tensor(A).take(tensor(flat)).numpy(), A.reshape(-1)[flat])
    check_gradients(lambda t: t.take(tensor(flat)), A)
    want = A.reshape(-1).copy()
    np.add.at(want, flat, S[:2, :2])
    np.testing.assert_allclose(tensor(A).put(tensor(flat), tensor(S[:2, :2]), True).numpy().reshape(-1), want)
    check_gradients(lambda t, s: t.put(tensor(flat), s, True), A, S[:2, :2])
    check_gradients(lambda t, s: t.put(tensor(flat[:1]), s), A, S[:1, :2])
    t = tensor(A.T).t()
    t.put_(torch.tensor([1]), torch.tensor([9.0], dtype=torch.float64))
    assert t[0, 1].item() == 9.0


F, L, B = torch.zeros(3, 4), torch.zeros(2, 2, dtype=torch.int64), torch.zeros(3, 4, dtype=torch.bool)


@pytest.mark.parametrize("fn, error", [
    (lambda: F.gather(0, L + 3), RuntimeError), (lambda: F.gather(0, L - 1), RuntimeError), (lambda: F.gather(0, L[0]), RuntimeError),
    (lambda: F.gather(0, torch.zeros(2, 9, dtype=torch.int64)), RuntimeError), (lambda: F.gather(0, L.float()), RuntimeError),
    (lambda: F.gather(2, L), IndexError), (lambda: F.scatter(0, L, torch.zeros(1, 2)), RuntimeError),
    (lambda: F.scatter(0, L, torch.zeros(2, 2, dtype=torch.float64)), RuntimeError), (lambda: F.scatter(0, L), TypeError),
    (lambda: F.scatter(0, L, 1.0, reduce="max"), RuntimeError), (lambda: F.scatter_reduce(0, L, F, "max"), RuntimeError),
    (lambda: F.index_select(0, torch.tensor([3])), IndexError), (lambda: F.index_select(0, L), IndexError),
    (lambda: F.index_select(0, L[0].float()), RuntimeError), (lambda: F.index_add(0, L[0], F), (IndexError, RuntimeError)),
    (lambda: F.index_fill(0, L[0], F), RuntimeError), (lambda: L.index_fill(0, L[0], 0.5j), RuntimeError),
    (lambda: L.index_add(0, L[0], L, alpha=0.5), RuntimeError), (lambda: F.index_reduce(0, L[0], F[:2], "sum"), RuntimeError),
    (lambda: F.masked_fill(F, 1.0), RuntimeError), (lambda: F.masked_fill(B[:2], 1.0), RuntimeError),
    (lambda: L.masked_fill(L > 0, float("nan")), RuntimeError), (lambda: F[:1].masked_fill_(B, 1.0), RuntimeError),
    (lambda: F.masked_scatter(~B, F[0]), RuntimeError), (lambda: F.masked_select(F), RuntimeError),
    (lambda: F.take(torch.tensor([12])), IndexError), (lambda: F.take(F), RuntimeError), (lambda: F.put(L, F), IndexError),
    (lambda: F.masked_fill([True], 1.0), TypeError), (lambda: F.gather(0, [0]), TypeError),
])  # fmt: skip
def test_refusals(fn, error):
    with pytest.raises(error):
        fn()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int32, torch.uint8, torch.complex128])
def test_other_dtypes_add_up(dtype):
    t, i = torch.zeros(3, dtype=dtype), torch.tensor([1, 1, 0])
    ones = torch.ones(3, dtype=dtype)
    for found in (
        t.scatter_add(0, i, ones),
        t.index_add(0, i, ones),
        t.index_put((i,), ones, accumulate=True),
        t.put(i, ones, True),
    ):
        assert found.dtype is dtype and torch.equal(found, torch.tensor([1, 2, 0], dtype=dtype))


def test_sizes_of_zero():
    for shape, n in itertools.product([(0, 3), (3, 0)], [0, 2]):
        t, i = torch.zeros(shape, requires_grad=True), torch.zeros(n, dtype=torch.int64)
        if shape[1] == 0:
            t.index_select(0, i).sum().backward()
            t[i].sum().backward()
        t.gather(1, torch.zeros(0, 3, dtype=torch.int64)).sum().backward() if shape[0] == 0 else None
        t.masked_select(t.detach() > 0).sum().backward()
        assert t.grad.shape == shape


def test_the_source_of_index_add_has_as_many_dimensions_as_the_input():
    i = torch.tensor([0])
    for x, source in ((torch.zeros(()), torch.ones(1)), (torch.zeros(1), torch.ones(()))):
        with pytest.raises(RuntimeError, match=r"source tensor shape must match self tensor shape"):
            x.index_add_(0, i, source)
        with pytest.raises(RuntimeError, match=r"source tensor shape must match self tensor shape"):
            x.index_reduce_(0, i, source, "prod")
    assert torch.zeros(()).index_add(0, i, torch.tensor(2.0)).item() == 2.0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("include_self", [True, False])
def test_extremes_of_16_bits_share_gradients_as_those_of_float32(dtype, include_self):
    torch.manual_seed(0)
    x, y, index = torch.randint(0, 4, (30, 40)), torch.randint(0, 4, (30, 90)), torch.randint(0, 40, (30, 90))
    found = []
    for kind in (dtype, torch.float32):
        a, b = (v.to(kind).requires_grad_() for v in (x, y))
        a.scatter_reduce(1, index, b, "amax", include_self=include_self).backward(torch.full((30, 40), 0.5, dtype=kind))
        found.append([g.to(dtype) for g in (a.grad, b.grad)])
    for half, wide in zip(*found, strict=True):
        assert torch.equal(half, wide)
