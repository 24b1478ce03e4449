"""What copies elements to other places: joining, repeating, turning, triangles, parts replaced."""

import numpy as np
import pytest
from tests.ops.numeric import check_gradients

import rushlight as torch

RNG = np.random.default_rng(1)
A, B = RNG.standard_normal((2, 3, 4)), RNG.standard_normal((2, 3, 4))
M = RNG.standard_normal((3, 4))


def tensor(a):
    return torch.from_numpy(np.array(a))


MOVES = {
    "repeat": (lambda t: t.repeat(2, 1, 3, 1), lambda a: np.tile(a, (2, 1, 3, 1))),
    "repeat none": (lambda t: t.repeat(0, 1, 1), lambda a: np.tile(a, (0, 1, 1))),
    "tile": (lambda t: t.tile(2), lambda a: np.tile(a, 2)),
    "repeat_interleave": (lambda t: t.repeat_interleave(2, 1), lambda a: np.repeat(a, 2, 1)),
    "repeat_interleave counts": (lambda t: t.repeat_interleave(torch.tensor([1, 0, 2]), 1),
                                 lambda a: np.repeat(a, [1, 0, 2], 1)),
    "flip": (lambda t: t.flip(0, 2), lambda a: np.flip(a, (0, 2))),
    "fliplr": (lambda t: t.fliplr(), np.fliplr),
    "roll": (lambda t: t.roll((1, -2), (0, 2)), lambda a: np.roll(a, (1, -2), (0, 2))),
    "roll flat": (lambda t: t.roll(5), lambda a: np.roll(a, 5)),
    "rot90": (lambda t: t.rot90(1, (1, 2)), lambda a: np.rot90(a, 1, (1, 2))),
    "rot90 thrice": (lambda t: t.rot90(3, (1, 2)), lambda a: np.rot90(a, 3, (1, 2))),
    "tril": (lambda t: t.tril(-1), lambda a: np.tril(a, -1)),
    "triu": (lambda t: t.triu(1), lambda a: np.triu(a, 1)),
    "diag_embed": (lambda t: t[0, 0].diag_embed(1), lambda a: np.diag(a[0, 0], 1)),
    "diag": (lambda t: t[0].diag(-1), lambda a: np.diag(a[0], -1)),
    "diagflat": (lambda t: t[0, :2].diagflat(), lambda a: np.diagflat(a[0, :2])),
    "trace": (lambda t: t[0].trace(), lambda a: np.trace(a[0])),
    "combinations": (lambda t: torch.combinations(t[0, 0], 2), lambda a: a[0, 0][[[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]]),
}  # fmt: skip


@pytest.mark.parametrize("name", MOVES)
def test_moves(name):
    ours, theirs = MOVES[name]
    t = tensor(A)
    made = ours(t)
    np.testing.assert_allclose(made.numpy(), theirs(A))
    made.zero_()
    np.testing.assert_array_equal(t.numpy(), A)
    check_gradients(ours, A)


JOINS = {
    "cat": (lambda a, b: torch.cat([a, b], 1), lambda a, b: np.concatenate([a, b], 1)),
    "cat back": (lambda a, b: torch.concat((a, b[..., :1]), dim=-1), lambda a, b: np.concatenate([a, b[..., :1]], -1)),
    "stack": (lambda a, b: torch.stack([a, b, a], -1), lambda a, b: np.stack([a, b, a], -1)),
    "hstack": (lambda a, b: torch.hstack((a, b)), lambda a, b: np.hstack((a, b))),
    "vstack": (lambda a, b: torch.vstack((a, b)), lambda a, b: np.vstack((a, b))),
    "dstack": (lambda a, b: torch.dstack((a, b)), lambda a, b: np.dstack((a, b))),
    "column_stack": (lambda a, b: torch.column_stack((a[0, 0], b[0, 0])), lambda a, b: np.column_stack((a[0, 0], b[0, 0]))),
    "block_diag": (lambda a, b: torch.block_diag(a[0], b[1, 0]),
                   lambda a, b: np.block([[a[0], np.zeros((3, 4))], [np.zeros((1, 4)), b[1, :1]]])),
    "slice_scatter": (lambda a, b: a.slice_scatter(b[..., :2], 2, 0, 4, 2), lambda a, b: put(a, np.s_[..., ::2], b[..., :2])),
    "select_scatter": (lambda a, b: a.select_scatter(b[0], 0, 1), lambda a, b: put(a, 1, b[0])),
    "diagonal_scatter": (lambda a, b: a[0].diagonal_scatter(b[0, 0, :3]),
                         lambda a, b: put(a[0], (range(3), range(3)), b[0, 0, :3])),
    "as_strided_scatter": (lambda a, b: torch.as_strided_scatter(a, b[0, :2, :2], (2, 2), (1, 4), 3),
                           lambda a, b: put(a.reshape(-1), [[3, 7], [4, 8]], b[0, :2, :2]).reshape(a.shape)),
    "kron": (lambda a, b: torch.kron(a[0, :2, :2], b[0, :, :2]), lambda a, b: np.kron(a[0, :2, :2], b[0, :, :2])),
}  # fmt: skip


def put(a, index, value):
    a = a.copy()
    a[index] = value
    return a


@pytest.mark.parametrize("name", JOINS)
def test_joins(name):
    ours, theirs = JOINS[name]
    np.testing.assert_allclose(ours(tensor(A), tensor(B)).numpy(), theirs(A, B))
    check_gradients(ours, A, B)


def test_cat_promotes_and_skips_empty_vectors():
    joined = torch.cat([torch.tensor([1]), torch.tensor([0.5])])
    assert joined.dtype == torch.float32 and joined.tolist() == [1.0, 0.5]
    assert torch.cat([torch.zeros(0), torch.ones(2, 2)], 1).shape == (2, 2)
    out = torch.empty(3)
    assert torch.cat([torch.ones(1), torch.zeros(2)], out=out) is out and out.tolist() == [1.0, 0.0, 0.0]
    with pytest.raises(RuntimeError, match="refer to a single memory"):
        torch.cat([out[:1], out[1:]], out=out)


@pytest.mark.parametrize("fn, error", [
    (lambda: torch.cat([]), (RuntimeError, ValueError)), (lambda: torch.cat(torch.zeros(2)), TypeError),
    (lambda: torch.cat([torch.zeros(2, 2), torch.zeros(3, 3)]), RuntimeError),
    (lambda: torch.cat([torch.zeros(2), torch.zeros(2, 2)]), RuntimeError), (lambda: torch.cat([torch.tensor(1.0)]), RuntimeError),
    (lambda: torch.cat([torch.zeros(2)], 1), IndexError), (lambda: torch.stack([torch.zeros(2), torch.zeros(3)]), RuntimeError),
    (lambda: torch.cat([torch.zeros(2), 1.0]), TypeError), (lambda: torch.zeros(2, 2).repeat(2), RuntimeError),
    (lambda: torch.zeros(2).flip(0, 0), RuntimeError), (lambda: torch.zeros(2).roll((1, 2), 0), RuntimeError),
    (lambda: torch.zeros(2).rot90(), RuntimeError), (lambda: torch.zeros(2).tril(), RuntimeError),
    (lambda: torch.zeros(2).trace(), RuntimeError), (lambda: torch.zeros(2).hsplit(3), RuntimeError),
    (lambda: torch.zeros(3).repeat_interleave(torch.tensor([1, 2])), RuntimeError),
    (lambda: torch.meshgrid(torch.zeros(2, 2), indexing="ij"), RuntimeError),
    (lambda: torch.zeros(3).select_scatter(torch.zeros(2), 0, 0), RuntimeError),
])  # fmt: skip
def test_refusals(fn, error):
    with pytest.raises(error):
        fn()


def test_grids():
    x, y = torch.tensor([1, 2, 3]), torch.tensor([4, 5])
    for indexing in ("ij", "xy"):
        for got, want in zip(
            torch.meshgrid(x, y, indexing=indexing), np.meshgrid([1, 2, 3], [4, 5], indexing=indexing), strict=True
        ):
            np.testing.assert_array_equal(got.numpy(), want)
    with pytest.warns(UserWarning, match="indexing"):
        torch.meshgrid([x, y])
    assert torch.cartesian_prod(x, y).tolist() == [[1, 4], [1, 5], [2, 4], [2, 5], [3, 4], [3, 5]]
    assert torch.combinations(y, with_replacement=True).tolist() == [[4, 4], [4, 5], [5, 5]]
    assert [i.tolist() for i in torch.unravel_index(torch.tensor([5, 7]), (2, 4))] == [[1, 1], [1, 3]]
    there = torch.unravel_index(torch.tensor([5, 7], dtype=torch.int32, device="meta"), (2, 4))
    assert [(i.device.type, i.shape, i.dtype) for i in there] == [("meta", (2,), torch.int64)] * 2


@pytest.mark.parametrize("k", [-4, -1, 0, 2, 9])
def test_triangles_in_place(k):
    for name in ("tril", "triu"):
        t = torch.from_numpy(np.stack([M, 2 * M])).requires_grad_()
        out = t * 1
        assert getattr(out, f"{name}_")(k) is out
        np.testing.assert_array_equal(out.detach().numpy(), getattr(np, name)(np.stack([M, 2 * M]), k))
        out.sum().backward()
        np.testing.assert_array_equal(t.grad.numpy(), getattr(np, name)(np.ones((2, 3, 4)), k))


def test_least_dimensions():
    zero, one = torch.tensor(1.0), torch.zeros(3)
    assert [tuple(t.shape) for t in torch.atleast_1d(zero, one)] == [(1,), (3,)]
    assert torch.atleast_2d(one).shape == (1, 3) and torch.atleast_3d(one).shape == (1, 3, 1)
    assert torch.atleast_3d(torch.zeros(2, 3)).shape == (2, 3, 1)
