"""Operators that move, join, pick and place elements: values against NumPy, derivatives against differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.ops.numeric import check_gradients

import rushlight as torch

pytestmark = pytest.mark.filterwarnings("ignore:torch.chain_matmul is deprecated")

DRAW = np.random.default_rng(5)
X = DRAW.uniform(-2, 2, (2, 3, 4))
M = DRAW.uniform(-2, 2, (3, 4))
V = DRAW.uniform(-2, 2, 4)
MASK = DRAW.uniform(size=(2, 3, 4)) > 0.4
ROWS = np.array([2, 0, 2])
PICK = DRAW.integers(0, 4, (2, 3, 2))
SOURCE = DRAW.uniform(-2, 2, (2, 3, 2))


def t(array: Any) -> Any:
    """A tensor on a copy of an array."""
    return torch.from_numpy(np.array(array))


def put_along(array: Any, index: Any, values: Any, axis: int) -> Any:
    out = array.copy()
    np.put_along_axis(out, index, values, axis)
    return out


def add_along(array: Any, index: Any, values: Any, axis: int, fn: Any = np.add) -> Any:
    """`fn.at` with an index along one axis."""
    out = array.copy()
    places = list(np.indices(index.shape))
    places[axis] = index
    fn.at(out, tuple(places), values)
    return out


def assigned(array: Any, key: Any, value: Any) -> Any:
    out = np.array(array)
    out[key] = value
    return out


# name: (on a tensor, the same in NumPy)
OF_3D: dict[str, tuple[Any, Any]] = {
    "view": (lambda x: x.view(6, 4), lambda a: a.reshape(6, 4)),
    "view -1": (lambda x: x.view(2, -1), lambda a: a.reshape(2, 12)),
    "view_as": (lambda x: x.view_as(torch.empty(4, 6)), lambda a: a.reshape(4, 6)),
    "reshape": (lambda x: x.transpose(0, 1).reshape(-1), lambda a: a.swapaxes(0, 1).reshape(-1)),
    "reshape_as": (lambda x: x.reshape_as(torch.empty(12, 2)), lambda a: a.reshape(12, 2)),
    "permute": (lambda x: x.permute(2, 0, 1), lambda a: a.transpose(2, 0, 1)),
    "permute list": (lambda x: torch.permute(x, (1, -1, 0)), lambda a: a.transpose(1, 2, 0)),
    "transpose": (lambda x: x.transpose(-1, 0), lambda a: a.swapaxes(-1, 0)),
    "swapaxes": (lambda x: torch.swapaxes(x, 0, 1), lambda a: a.swapaxes(0, 1)),
    "swapdims": (lambda x: x.swapdims(1, 2), lambda a: a.swapaxes(1, 2)),
    "movedim": (lambda x: x.movedim(0, -1), lambda a: np.moveaxis(a, 0, -1)),
    "movedim several": (lambda x: torch.movedim(x, (0, 1), (2, 0)), lambda a: np.moveaxis(a, (0, 1), (2, 0))),
    "moveaxis": (lambda x: torch.moveaxis(x, 1, 0), lambda a: np.moveaxis(a, 1, 0)),
    "mT": (lambda x: x.mT, lambda a: a.swapaxes(-1, -2)),
    "unsqueeze": (lambda x: x.unsqueeze(-2), lambda a: np.expand_dims(a, -2)),
    "squeeze": (lambda x: x[:1].squeeze(), lambda a: a[:1].squeeze()),
    "squeeze dim": (lambda x: x[:, :1].squeeze(1), lambda a: a[:, 0]),
    "squeeze of a size above 1": (lambda x: x.squeeze(1), lambda a: a),
    "squeeze dims": (lambda x: x[:1, :, :1].squeeze((0, 2)), lambda a: a[0, :, 0]),
    "expand": (lambda x: x[:, :1].expand(-1, 5, 4), lambda a: np.broadcast_to(a[:, :1], (2, 5, 4))),
    "expand new": (lambda x: x.expand(2, 2, 3, 4), lambda a: np.broadcast_to(a, (2, 2, 3, 4))),
    "expand_as": (lambda x: x[:1].expand_as(torch.empty(3, 3, 4)), lambda a: np.broadcast_to(a[:1], (3, 3, 4))),
    "broadcast_to": (lambda x: torch.broadcast_to(x, (2, 2, 3, 4)), lambda a: np.broadcast_to(a, (2, 2, 3, 4))),
    "flatten": (lambda x: x.flatten(1), lambda a: a.reshape(2, 12)),
    "flatten part": (lambda x: torch.flatten(x, 0, 1), lambda a: a.reshape(6, 4)),
    "ravel": (lambda x: x.ravel(), lambda a: a.ravel()),
    "unflatten": (lambda x: x.unflatten(2, (2, -1)), lambda a: a.reshape(2, 3, 2, 2)),
    "narrow": (lambda x: x.narrow(2, 1, 2), lambda a: a[:, :, 1:3]),
    "narrow_copy": (lambda x: torch.narrow_copy(x, 1, 1, 2), lambda a: a[:, 1:3]),
    "select": (lambda x: x.select(1, -1), lambda a: a[:, -1]),
    "slice": (lambda x: x[:, 1:, ::2], lambda a: a[:, 1:, ::2]),
    "slice with None and ...": (lambda x: x[..., None, 1], lambda a: a[..., None, 1]),
    "diagonal": (lambda x: x.diagonal(), lambda a: a.diagonal()),
    "diagonal of dims": (lambda x: torch.diagonal(x, 1, 1, 2), lambda a: a.diagonal(1, 1, 2)),
    "unfold": (
        lambda x: x.unfold(2, 2, 1),
        lambda a: np.lib.stride_tricks.sliding_window_view(a, 2, 2),
    ),
    "unfold overlapping by step": (
        lambda x: x.unfold(1, 2, 1),
        lambda a: np.lib.stride_tricks.sliding_window_view(a, 2, 1),
    ),
    "as_strided": (
        lambda x: x.as_strided((2, 3), (4, 2), 1),
        lambda a: np.array([[a.ravel()[1 + 4 * i + 2 * j] for j in range(3)] for i in range(2)]),
    ),
    "unbind": (lambda x: x.unbind(1), lambda a: [a[:, i] for i in range(3)]),
    "split": (lambda x: x.split(2, 1), lambda a: [a[:, :2], a[:, 2:]]),
    "split sizes": (lambda x: torch.split(x, [1, 3], 2), lambda a: [a[..., :1], a[..., 1:]]),
    "split_with_sizes": (lambda x: x.split_with_sizes([3, 1], -1), lambda a: [a[..., :3], a[..., 3:]]),
    "chunk": (lambda x: x.chunk(3, 2), lambda a: [a[..., :2], a[..., 2:]]),
    "tensor_split": (lambda x: torch.tensor_split(x, 3, 2), lambda a: np.array_split(a, 3, 2)),
    "tensor_split at": (lambda x: x.tensor_split((1, 2), 1), lambda a: np.split(a, (1, 2), 1)),
    "hsplit": (lambda x: torch.hsplit(x, 3), lambda a: np.hsplit(a, 3)),
    "vsplit": (lambda x: torch.vsplit(x, 2), lambda a: np.vsplit(a, 2)),
    "dsplit": (lambda x: x.dsplit((1, 3)), lambda a: np.dsplit(a, (1, 3))),
    "cat": (lambda x: torch.cat([x, 2 * x[:1]]), lambda a: np.concatenate([a, 2 * a[:1]])),
    "cat dim": (lambda x: torch.cat((x, x[..., :1], x), -1), lambda a: np.concatenate((a, a[..., :1], a), -1)),
    "concat": (lambda x: torch.concat((x, x), 1), lambda a: np.concatenate((a, a), 1)),
    "stack": (lambda x: torch.stack((x, 3 * x), 1), lambda a: np.stack((a, 3 * a), 1)),
    "hstack": (lambda x: torch.hstack((x, x[:, :1])), lambda a: np.hstack((a, a[:, :1]))),
    "vstack": (lambda x: torch.vstack((x, x[:1])), lambda a: np.vstack((a, a[:1]))),
    "dstack": (lambda x: torch.dstack((x, x[..., :2])), lambda a: np.dstack((a, a[..., :2]))),
    "column_stack": (lambda x: torch.column_stack((x, x)), lambda a: np.hstack((a, a))),
    "row_stack": (lambda x: torch.row_stack((x, x)), lambda a: np.vstack((a, a))),
    "tile": (lambda x: x.tile((2, 1)), lambda a: np.tile(a, (2, 1))),
    "repeat": (lambda x: x.repeat(2, 1, 1, 2), lambda a: np.tile(a, (2, 1, 1, 2))),
    "repeat_interleave": (lambda x: x.repeat_interleave(2, 1), lambda a: a.repeat(2, 1)),
    "repeat_interleave counts": (
        lambda x: torch.repeat_interleave(x, torch.tensor([1, 0, 2]), dim=1),
        lambda a: a.repeat([1, 0, 2], 1),
    ),
    "repeat_interleave flat": (lambda x: x.repeat_interleave(2), lambda a: a.repeat(2)),
    "roll": (lambda x: x.roll(1, 2), lambda a: np.roll(a, 1, 2)),
    "roll several": (lambda x: torch.roll(x, (1, -2), (0, 1)), lambda a: np.roll(a, (1, -2), (0, 1))),
    "roll flat": (lambda x: x.roll(5), lambda a: np.roll(a, 5)),
    "flip": (lambda x: x.flip(0, 2), lambda a: np.flip(a, (0, 2))),
    "fliplr": (lambda x: torch.fliplr(x), lambda a: np.fliplr(a)),
    "flipud": (lambda x: torch.flipud(x), lambda a: np.flipud(a)),
    "rot90": (lambda x: torch.rot90(x, 3, (0, 2)), lambda a: np.rot90(a, 3, (0, 2))),
    "tril": (lambda x: x.tril(-1), lambda a: np.tril(a, -1)),
    "triu": (lambda x: torch.triu(x, 1), lambda a: np.triu(a, 1)),
    "broadcast_tensors": (
        lambda x: torch.broadcast_tensors(x, x[:1, :1]),
        lambda a: np.broadcast_arrays(a, a[:1, :1]),
    ),
    "atleast_1d": (lambda x: torch.atleast_1d(x), lambda a: a),
    "atleast_3d": (lambda x: torch.atleast_3d(x[0]), lambda a: np.atleast_3d(a[0])),
    "gather": (lambda x: x.gather(2, t(PICK)), lambda a: np.take_along_axis(a, PICK, 2)),
    "take_along_dim": (lambda x: torch.take_along_dim(x, t(PICK), 2), lambda a: np.take_along_axis(a, PICK, 2)),
    "take": (lambda x: torch.take(x, t([[0, 23], [-1, 5]])), lambda a: np.take(a, [[0, 23], [-1, 5]])),
    "put": (
        lambda x: x.put(t([1, 22]), torch.tensor([7.0, 8.0], dtype=x.dtype)),
        lambda a: assigned(a.ravel(), [1, 22], [7.0, 8.0]).reshape(a.shape),
    ),
    "put accumulate": (
        lambda x: x.put(t([1, 1]), torch.tensor([7.0, 8.0], dtype=x.dtype), accumulate=True),
        lambda a: assigned(a.ravel(), 1, a.ravel()[1] + 15).reshape(a.shape),
    ),
    "index_select": (lambda x: x.index_select(1, t(ROWS)), lambda a: a[:, ROWS]),
    "index_add": (
        lambda x: x.index_add(1, t(ROWS), 2 * x, alpha=0.5),
        lambda a: np.stack([a[:, 0] + a[:, 1], a[:, 1], a[:, 2] + a[:, 0] + a[:, 2]], 1),
    ),
    "index_copy": (
        lambda x: x.index_copy(1, t([2, 0]), 3 * x[:, :2]),
        lambda a: np.stack([3 * a[:, 1], a[:, 1], 3 * a[:, 0]], 1),
    ),
    "index_fill": (lambda x: x.index_fill(1, t([2, 0]), 1.5), lambda a: assigned(a, np.s_[:, [2, 0]], 1.5)),
    "index one array": (lambda x: x[:, t(ROWS)], lambda a: a[:, ROWS]),
    "index two arrays": (lambda x: x[t([0, 1, 1]), :, t([3, 0, 3])], lambda a: a[[0, 1, 1], :, [3, 0, 3]]),
    "index by mask": (lambda x: x[t(MASK)], lambda a: a[MASK]),
    "index by mask of rows": (lambda x: x[t(MASK[:, :, 0])], lambda a: a[MASK[:, :, 0]]),
    "index_put": (
        lambda x: x.index_put((t([0, 1]), t([2, 2])), torch.tensor(9.0, dtype=x.dtype)),
        lambda a: assigned(a, ([0, 1], [2, 2]), 9),
    ),
    "index_put accumulate": (
        lambda x: x.index_put((t([1, 1]), t([2, 2])), x[0, :2], accumulate=True),
        lambda a: assigned(a, (1, 2), a[1, 2] + a[0, 0] + a[0, 1]),
    ),
    "masked_fill": (lambda x: x.masked_fill(t(MASK), 0.5), lambda a: np.where(MASK, 0.5, a)),
    "masked_select": (lambda x: x.masked_select(t(MASK)), lambda a: a[MASK]),
    "masked_scatter": (
        lambda x: x.masked_scatter(t(MASK), x.flip(0).flatten()),
        lambda a: assigned(a, MASK, a[::-1].ravel()[: MASK.sum()]),
    ),
    "where": (lambda x: torch.where(t(MASK), x, -2 * x[:1]), lambda a: np.where(MASK, a, -2 * a[:1])),
    "scatter": (
        lambda x: x.scatter(2, t(PICK[..., :1]), 3 * x),
        lambda a: put_along(a, PICK[..., :1], 3 * a[..., :1], 2),
    ),
    "scatter value": (lambda x: x.scatter(2, t(PICK), 1.5), lambda a: put_along(a, PICK, 1.5, 2)),
    "scatter_add": (
        lambda x: x.scatter_add(2, t(PICK), 2 * x),
        lambda a: add_along(a, PICK, 2 * a[..., :2], 2),
    ),
    "select_scatter": (
        lambda x: x.select_scatter(2 * x[:, 0], 1, 2),
        lambda a: assigned(a, np.s_[:, 2], 2 * a[:, 0]),
    ),
    "slice_scatter": (
        lambda x: x.slice_scatter(2 * x[:, :, :2], 2, 0, 4, 2),
        lambda a: assigned(a, np.s_[:, :, ::2], 2 * a[:, :, :2]),
    ),
    "diagonal_scatter": (
        lambda x: x.diagonal_scatter(x[:, 0, :3], 0, 1, 2),
        lambda a: assigned(a, np.s_[:, range(3), range(3)], a[:, 0, :3]),
    ),
    "as_strided_scatter": (
        lambda x: x.as_strided_scatter(2 * x[0, :2, :2], (2, 2), (12, 1), 4),
        lambda a: assigned(a, np.s_[:, 1, :2], 2 * a[0, :2, :2]),
    ),
}
REAL_3D: dict[str, tuple[Any, Any]] = {
    "scatter_reduce sum": (
        lambda x: x.scatter_reduce(2, t(PICK), t(SOURCE), "sum"),
        lambda a: add_along(a, PICK, SOURCE, 2),
    ),
    "scatter_reduce prod": (
        lambda x: x.scatter_reduce(2, t(PICK), t(SOURCE), "prod"),
        lambda a: add_along(a, PICK, SOURCE, 2, np.multiply),
    ),
    "scatter_reduce amax": (
        lambda x: x.scatter_reduce(2, t(PICK), t(SOURCE), "amax"),
        lambda a: add_along(a, PICK, SOURCE, 2, np.maximum),
    ),
    "scatter_reduce amin": (
        lambda x: x.scatter_reduce(2, t(PICK), t(SOURCE), "amin"),
        lambda a: add_along(a, PICK, SOURCE, 2, np.minimum),
    ),
    "scatter_reduce mean": (
        lambda x: x.scatter_reduce(2, t(PICK), t(SOURCE), "mean"),
        lambda a: add_along(a, PICK, SOURCE, 2) / add_along(np.ones_like(a), PICK, 1.0, 2),
    ),
    "scatter_reduce without self": (
        lambda x: x.scatter_reduce(2, t(PICK), 3 * x, "sum", include_self=False),
        lambda a: add_along(put_along(a, PICK, 0.0, 2), PICK, 3 * a[..., :2], 2),
    ),
    "index_reduce prod": (
        lambda x: x.index_reduce(1, t(ROWS), t(X + 3), "prod"),
        lambda a: np.stack([a[:, 0] * (X + 3)[:, 1], a[:, 1], a[:, 2] * (X + 3)[:, 0] * (X + 3)[:, 2]], 1),
    ),
    "index_reduce amax": (
        lambda x: x.index_reduce(1, t(ROWS), t(X), "amax"),
        lambda a: np.stack(
            [np.maximum(a[:, 0], X[:, 1]), a[:, 1], np.maximum(a[:, 2], np.maximum(X[:, 0], X[:, 2]))], 1
        ),
    ),
    "index_reduce mean": (
        lambda x: x.index_reduce(1, t(ROWS), t(X), "mean"),
        lambda a: np.stack([(a[:, 0] + X[:, 1]) / 2, a[:, 1], (a[:, 2] + X[:, 0] + X[:, 2]) / 3], 1),
    ),
}
OF_2D: dict[str, tuple[Any, Any]] = {
    "t": (lambda m: m.t(), lambda a: a.T),
    "T": (lambda m: m.T, lambda a: a.T),
    "diag": (lambda m: torch.diag(m, 1), lambda a: np.diag(a, 1)),
    "diag_embed": (lambda m: torch.diag_embed(m), lambda a: np.stack([np.diag(row) for row in a])),
    "diag_embed dims": (
        lambda m: torch.diag_embed(m, 1, 0, 2),
        lambda a: np.stack([np.diag(row, 1) for row in a], 1),
    ),
    "diagflat": (lambda m: torch.diagflat(m, -1), lambda a: np.diagflat(a, -1)),
    "block_diag": (
        lambda m: torch.block_diag(m, m[0, 0], m[:1]),
        lambda a: np.block(
            [
                [a, np.zeros((3, 5))],
                [np.zeros((1, 4)), a[:1, :1], np.zeros((1, 4))],
                [np.zeros((1, 5)), a[:1]],
            ]
        ),
    ),
    "kron": (lambda m: torch.kron(m, m[:2, :1]), lambda a: np.kron(a, a[:2, :1])),
    "meshgrid": (
        lambda m: torch.meshgrid(m[0], m[:, 1], indexing="ij"),
        lambda a: np.meshgrid(a[0], a[:, 1], indexing="ij"),
    ),
    "meshgrid xy": (
        lambda m: torch.meshgrid(m[0], m[:, 1], indexing="xy"),
        lambda a: np.meshgrid(a[0], a[:, 1], indexing="xy"),
    ),
    "cartesian_prod": (
        lambda m: torch.cartesian_prod(m[0], m[:2, 0]),
        lambda a: np.array([[x, y] for x in a[0] for y in a[:2, 0]]),
    ),
    "combinations": (
        lambda m: torch.combinations(m[0], 2),
        lambda a: np.array([[a[0, i], a[0, j]] for i in range(4) for j in range(i + 1, 4)]),
    ),
    "trace": (lambda m: torch.trace(m), lambda a: np.trace(a)),
    "mm": (lambda m: torch.mm(m, m.t()), lambda a: a @ a.T),
    "matmul vector": (lambda m: m @ m[0], lambda a: a @ a[0]),
    "vector matmul": (lambda m: m[:, 0] @ m, lambda a: a[:, 0] @ a),
    "matmul broadcast": (
        lambda m: m.reshape(1, 3, 4) @ m.t().expand(2, 4, 3),
        lambda a: a[None] @ np.broadcast_to(a.T, (2, 4, 3)),
    ),
    "mv": (lambda m: torch.mv(m, m[1]), lambda a: a @ a[1]),
    "dot": (lambda m: torch.dot(m[0], m[1]), lambda a: a[0] @ a[1]),
    "vdot": (lambda m: torch.vdot(m[0], m[1]), lambda a: np.vdot(a[0], a[1])),
    "inner": (lambda m: torch.inner(m, m[:2]), lambda a: np.inner(a, a[:2])),
    "outer": (lambda m: torch.outer(m[0], m[:, 1]), lambda a: np.outer(a[0], a[:, 1])),
    "ger": (lambda m: torch.ger(m[:, 0], m[1]), lambda a: np.outer(a[:, 0], a[1])),
    "bmm": (lambda m: torch.bmm(m[None], m.t()[None]), lambda a: (a @ a.T)[None]),
    "addmm": (
        lambda m: torch.addmm(m[:, :3], m, m.t(), beta=0.5, alpha=2),
        lambda a: 0.5 * a[:, :3] + 2 * a @ a.T,
    ),
    "addmv": (lambda m: torch.addmv(m[:, 1], m, m[0], beta=2), lambda a: 2 * a[:, 1] + a @ a[0]),
    "addr": (lambda m: torch.addr(m, m[:, 0], m[1], alpha=3), lambda a: a + 3 * np.outer(a[:, 0], a[1])),
    "addbmm": (
        lambda m: torch.addbmm(m[:, :3], m[None], m.t()[None]),
        lambda a: a[:, :3] + a @ a.T,
    ),
    "baddbmm": (
        lambda m: torch.baddbmm(m[None, :, :3], m[None], m.t()[None], beta=0.5),
        lambda a: (0.5 * a[:, :3] + a @ a.T)[None],
    ),
    "tensordot": (lambda m: torch.tensordot(m, m, ([0], [0])), lambda a: np.tensordot(a, a, ([0], [0]))),
    "tensordot count": (lambda m: torch.tensordot(m, m.t(), 1), lambda a: a @ a.T),
    "einsum": (lambda m: torch.einsum("ij,kj->ik", m, m), lambda a: a @ a.T),
    "einsum trace": (lambda m: torch.einsum("ii", m[:, :3]), lambda a: np.trace(a[:, :3])),
    "einsum three": (
        lambda m: torch.einsum("ij,jk,k->i", m, m.t(), m[:, 0]),
        lambda a: a @ (a.T @ a[:, 0]),
    ),
    "einsum ...": (
        lambda m: torch.einsum("...j,j->...", m, m[0]),
        lambda a: a @ a[0],
    ),
    "chain_matmul": (lambda m: torch.chain_matmul(m, m.t(), m), lambda a: a @ a.T @ a),
    "linear": (
        lambda m: torch.nn.functional.linear(m, m[:2], m[0, :2]),
        lambda a: a @ a[:2].T + a[0, :2],
    ),
    "cross": (lambda m: torch.linalg.cross(m[:, :3], m[:, 1:]), lambda a: np.cross(a[:, :3], a[:, 1:])),
    "addcmul": (lambda m: torch.addcmul(m, m, m[0], value=2), lambda a: a + 2 * a * a[0]),
    "matrix_power": (lambda m: torch.matrix_power(m[:, :3], 3), lambda a: np.linalg.matrix_power(a[:, :3], 3)),
}
ALL = {
    **{f"3d {k}": (X, v) for k, v in {**OF_3D, **REAL_3D}.items()},
    **{f"2d {k}": (M, v) for k, v in OF_2D.items()},
}


def same(result: Any, wanted: Any) -> None:
    """A tensor or a sequence of them equals an array or a sequence of those, shapes included."""
    if isinstance(result, (tuple, list)):
        assert len(result) == len(wanted)
        for r, w in zip(result, wanted, strict=True):
            same(r, w)
        return
    found = result.numpy(force=True)
    assert found.shape == np.shape(wanted)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ALL)
def test_values(name: str) -> None:
    array, (ours, numpys) = ALL[name]
    before = array.copy()
    same(ours(t(array)), numpys(array))
    assert np.array_equal(array, before)


@pytest.mark.parametrize("name", ALL)
def test_derivatives(name: str) -> None:
    array, (ours, _) = ALL[name]
    check_gradients(ours, array, second=array.ndim == 2, tol=1e-5)


@pytest.mark.parametrize("name", [f"3d {k}" for k in OF_3D] + [f"2d {k}" for k in OF_2D])
def test_complex_numbers(name: str) -> None:
    array, (ours, numpys) = ALL[name]
    z = array + 1j * array[::-1]
    same(ours(t(z)), numpys(z))
    check_gradients(ours, z, second=False, tol=1e-5)


@pytest.mark.parametrize("name", ALL)
def test_layout_of_the_input_does_not_matter(name: str) -> None:
    """The same from memory in another order, and with a gap between elements."""
    array, (ours, numpys) = ALL[name]
    if "view" in name or "as_strided" in name:
        pytest.skip("asks for the layout")
    gapped = np.repeat(array, 2, axis=-1)[..., ::2]
    for other in (np.asfortranarray(array), gapped):
        same(ours(torch.from_numpy(other)), numpys(array))


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.bool_, np.float32])
@pytest.mark.parametrize("name", [k for k in OF_3D if "_add" not in k and "scatter" not in k and "put" not in k])
def test_other_dtypes_keep_theirs(name: str, dtype: Any) -> None:
    array = (np.abs(X) * 3).astype(dtype)
    if name in ("masked_fill", "index_fill", "cat", "stack", "where", "index_copy"):
        return  # numbers in them are of another kind
    result = OF_3D[name][0](t(array))
    for out in result if isinstance(result, (tuple, list)) else [result]:
        assert out.numpy().dtype == dtype
    same(result, OF_3D[name][1](array))


# In place ----------------------------------------------------------------------------------------------------------

IN_PLACE = {
    "index_add_": lambda x: x.index_add_(1, t(ROWS), torch.ones(2, 3, 4, dtype=x.dtype)),
    "index_copy_": lambda x: x.index_copy_(1, t([2, 0]), torch.ones(2, 2, 4, dtype=x.dtype)),
    "index_fill_": lambda x: x.index_fill_(1, t([2, 0]), 1.5),
    "index_put_": lambda x: x.index_put_((t([0, 1]), t([2, 2])), torch.ones((), dtype=x.dtype)),
    "masked_fill_": lambda x: x.masked_fill_(t(MASK), 0.5),
    "masked_scatter_": lambda x: x.masked_scatter_(t(MASK), torch.arange(24.0, dtype=x.dtype)),
    "scatter_": lambda x: x.scatter_(2, t(PICK), 1.5),
    "scatter_add_": lambda x: x.scatter_add_(2, t(PICK), t(SOURCE)),
    "scatter_reduce_": lambda x: x.scatter_reduce_(2, t(PICK), t(SOURCE), "amax"),
    "index_reduce_": lambda x: x.index_reduce_(1, t(ROWS), t(X), "amin"),
    "put_": lambda x: x.put_(t([1, 22]), torch.tensor([7.0, 8.0], dtype=x.dtype)),
    "tril_": lambda x: x.tril_(),
    "triu_": lambda x: x.triu_(1),
    "transpose_": lambda x: x.transpose_(0, 1),
    "swapaxes_": lambda x: x.swapaxes_(0, 2),
    "unsqueeze_": lambda x: x.unsqueeze_(0),
    "squeeze_": lambda x: x.squeeze_(),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_is_the_same_as_out_of_place(name: str) -> None:
    """The method changes its tensor and returns it; values and gradients are those of the other form."""

    class Plain:
        """Calls the out-of-place form where the in-place one is asked for."""

        def __init__(self, tensor: Any) -> None:
            self.tensor, self.dtype = tensor, tensor.dtype

        def __getattr__(self, method: str) -> Any:
            return getattr(self.tensor, method.rstrip("_"))

    first, second = (t(X).requires_grad_() for _ in "12")
    target = first * 2
    changed = IN_PLACE[name](target)
    wanted = IN_PLACE[name](Plain(second * 2))
    assert changed is target
    same(changed, wanted.numpy(force=True))
    weights = torch.arange(float(wanted.numel()), dtype=torch.float64).reshape(wanted.shape)
    (changed * weights).sum().backward()
    (wanted * weights).sum().backward()
    same(first.grad, second.grad.numpy())


def test_assignment_is_recorded() -> None:
    """Every kind of key on the left of `=`, with gradients into both sides."""
    keys = [
        1, np.s_[:, 1], np.s_[..., ::2], np.s_[0, 1, 2], t(MASK), t([0, 1]), np.s_[:, t(ROWS[:2])],
        np.s_[None, 0], (t([0, 1]), slice(None), t([3, 0])), ...,
    ]  # fmt: skip
    for key in keys:

        def fn(x: Any, v: Any, key: Any = key) -> Any:
            y = x * 1
            y[key] = v
            return y

        check_gradients(fn, X, np.array(1.5), second=False)
        plain = tuple(k.numpy() if isinstance(k, torch.Tensor) else k for k in key) if isinstance(key, tuple) else key
        plain = plain.numpy() if isinstance(plain, torch.Tensor) else plain
        same(fn(t(X), t(1.5)), assigned(X, plain, 1.5))


# Refusals ----------------------------------------------------------------------------------------------------------

WRONG = {
    "view size": (lambda x: x.view(5, 5), RuntimeError),
    "view of other strides": (lambda x: x.transpose(0, 1).view(24), RuntimeError),
    "two -1": (lambda x: x.view(-1, -1), RuntimeError),
    "permute repeated": (lambda x: x.permute(0, 0, 1), RuntimeError),
    "permute too few": (lambda x: x.permute(0, 1), RuntimeError),
    "transpose dim": (lambda x: x.transpose(0, 3), IndexError),
    "expand size": (lambda x: x.expand(2, 5, 4), RuntimeError),
    "unsqueeze dim": (lambda x: x.unsqueeze(5), IndexError),
    "narrow length": (lambda x: x.narrow(0, 1, 2), RuntimeError),
    "select index": (lambda x: x.select(0, 2), IndexError),
    "index out of range": (lambda x: x[5], IndexError),
    "too many indices": (lambda x: x[0, 0, 0, 0], IndexError),
    "negative step": (lambda x: x[::-1], ValueError),
    "mask of another shape": (lambda x: x[torch.ones(3, 3, dtype=torch.bool)], IndexError),
    "split sizes": (lambda x: x.split([1, 1], 2), RuntimeError),
    "chunk zero": (lambda x: x.chunk(0), RuntimeError),
    "cat nothing": (lambda x: torch.cat([]), (RuntimeError, ValueError)),
    "cat shapes": (lambda x: torch.cat([x, x[0]]), RuntimeError),
    "stack shapes": (lambda x: torch.stack([x, x[:1]]), RuntimeError),
    "roll dims": (lambda x: x.roll((1, 2), 0), RuntimeError),
    "gather dtype": (lambda x: x.gather(2, torch.zeros(1, 1, 1)), RuntimeError),
    "gather index": (lambda x: x.gather(2, torch.full((1, 1, 1), 9)), RuntimeError),
    "gather rank": (lambda x: x.gather(2, torch.zeros(1, dtype=torch.int64)), RuntimeError),
    "index_select index": (lambda x: x.index_select(1, torch.tensor([7])), IndexError),
    "index_select dtype": (lambda x: x.index_select(1, torch.tensor([0.5])), (RuntimeError, IndexError)),
    "take index": (lambda x: torch.take(x, torch.tensor([99])), IndexError),
    "scatter index": (lambda x: x.scatter(2, torch.full((1, 1, 1), 9), 1.0), RuntimeError),
    "scatter_reduce name": (lambda x: x.scatter_reduce(2, t(PICK), t(SOURCE), "median"), RuntimeError),
    "masked_fill dtype": (lambda x: x.masked_fill(torch.ones(2, 3, 4), 1.0), RuntimeError),
    "mm shapes": (lambda x: torch.mm(x[0], x[0]), RuntimeError),
    "mm rank": (lambda x: torch.mm(x, x), RuntimeError),
    "mm dtypes": (lambda x: torch.mm(x[0], x[0].t().float()), RuntimeError),
    "bmm batch": (lambda x: torch.bmm(x, x[:1].mT), RuntimeError),
    "dot sizes": (lambda x: torch.dot(x[0, 0], x[0, :, 0]), RuntimeError),
    "einsum letters": (lambda x: torch.einsum("ij->i", x), RuntimeError),
    "einsum sizes": (lambda x: torch.einsum("ij,jk", x[0], x[0]), RuntimeError),
    "diagonal dims": (lambda x: x.diagonal(0, 1, 1), RuntimeError),
    "unfold size": (lambda x: x.unfold(2, 9, 1), RuntimeError),
}


@pytest.mark.parametrize("name", WRONG)
def test_refusals(name: str) -> None:
    fn, error = WRONG[name]
    with pytest.raises(error):
        fn(t(X))
