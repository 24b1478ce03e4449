"""einsum and tensordot against NumPy's, with gradients."""

import numpy as np
import pytest
from tests.ops.numeric import check_gradients

import rushlight as torch

RNG = np.random.default_rng(5)
SIZES = {"b": 2, "c": 3, "i": 2, "j": 3, "k": 4, "l": 2, "m": 5}
EQUATIONS = ["i->i", "ij->ji", "ij->", "ii->i", "ii->", "ij", "ba", "i,i->", "i,j->ij", "ij,jk->ik", "ij,jk", "bij,bjk->bik",
             "bij,bjk->bki", "ij,ij->ij", "ij,ij->i", "ij,kj->ik", "bij,kj->bik", "ijk,jl->kil", "bi,bj->bij", "ij,jk,kl->il",
             "bi,bj,bk->bijk", "ij,j,jk->k", "...ij,...jk->...ik", "...i->...", "b...,c->c...b", "iji,j->i", "bqhd,bkhd->bhqk",
             "ij,k->", "i,i,i->i", "ik,kj,jm,lm->il"]  # fmt: skip


def operands(equation):
    sizes = {**SIZES, "a": 2, "q": 2, "h": 2, "d": 3}
    terms = equation.split("->")[0].split(",")
    return [np.asarray(RNG.standard_normal([n for c in t.replace("...", "@")
                                            for n in ([2, 1] if c == "@" and i else [1, 3] if c == "@" else [sizes[c]])]))
            for i, t in enumerate(terms)]  # fmt: skip


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum(equation):
    arrays = operands(equation)
    found = torch.einsum(equation, *[torch.from_numpy(a) for a in arrays])
    np.testing.assert_allclose(found.numpy(), np.einsum(equation, *arrays), atol=1e-12)
    check_gradients(lambda *tensors: torch.einsum(equation, *tensors), *arrays)


def test_complex_operands():
    a, b = (RNG.standard_normal((2, 3)) + 1j * RNG.standard_normal((2, 3)) for _ in range(2))
    check_gradients(lambda a, b: torch.einsum("ij,kj->ik", a, b), a, b)


def test_sizes_of_one_stand_for_all():
    a, b = RNG.standard_normal((2, 1)), RNG.standard_normal((3, 4))
    found = torch.einsum("ij,jk->ik", torch.from_numpy(a), torch.from_numpy(b))
    np.testing.assert_allclose(found.numpy(), a @ b.sum(0, keepdims=True))
    check_gradients(lambda a, b: torch.einsum("ij,jk->ik", a, b), a, b)
    check_gradients(lambda a, b: torch.einsum("ij,ij->ij", a, b), a, RNG.standard_normal((2, 4)))


def test_bools_whose_products_are_not_summed():
    a = torch.tensor([[True, False], [True, True]])
    assert torch.einsum("ij,ij->ij", a, a).tolist() == a.tolist()
    assert torch.einsum("i,j->ij", a[0], a[1]).tolist() == [[True, True], [False, False]]
    assert torch.einsum("ij,jk->ik", a[:, :1], a[:1]).tolist() == [[True, False], [True, False]]
    assert torch.einsum("ij,jk->ik", a[:, :0], a[:0]).tolist() == [[False, False], [False, False]]


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64])
def test_sums_of_one_operand_alone_count(dtype):
    a = torch.tensor([[1, 0], [1, 1]], dtype=dtype)
    for equation, found in (("ij->i", [1, 2]), ("ij,kl->", 9), ("ij,kj->ik", [[1], [2]])):
        pair = (a,) if "," not in equation else (a, torch.ones(1, 1, dtype=dtype) if "kj" in equation else a)
        result = torch.einsum(equation, *pair)
        assert result.tolist() == found and result.dtype == torch.int64


def test_lists_of_subscripts():
    a, b = RNG.standard_normal((2, 3)), RNG.standard_normal((3, 4))
    t, u = torch.from_numpy(a), torch.from_numpy(b)
    np.testing.assert_allclose(torch.einsum(t, [0, 1], u, [1, 2], [0, 2]).numpy(), a @ b)
    np.testing.assert_allclose(torch.einsum(t, [..., 1], u, [1, 2]).numpy(), a @ b)
    np.testing.assert_allclose(torch.einsum("ij,jk", [t, u]).numpy(), a @ b)


def test_no_copies_are_saved():
    a, b = torch.zeros(2, 3, 4, 5, requires_grad=True), torch.zeros(2, 6, 4, 5, requires_grad=True)
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t.data_ptr()) or t, lambda t: t):
        torch.einsum("bqhd,bkhd->bhqk", a, b)
    assert set(saved) == {a.data_ptr(), b.data_ptr()}


@pytest.mark.parametrize("arguments", [
    (), ("ij",), ("ij", torch.zeros(3)), ("i,j", torch.zeros(2)), ("i", torch.zeros(2), torch.zeros(2)), ("i->ii", torch.zeros(2)),
    ("i->j", torch.zeros(2)), ("i.j", torch.zeros(2, 2)), ("......", torch.zeros(2)), ("i%", torch.zeros(2)),
    ("ii", torch.zeros(2, 3)), ("i,i", torch.zeros(2), torch.zeros(3)), ("i,i", torch.zeros(2), torch.zeros(2, dtype=torch.float64)),
    (torch.zeros(2), [99]),
])  # fmt: skip
def test_refusals(arguments):
    with pytest.raises((RuntimeError, ValueError)):
        torch.einsum(*arguments)


@pytest.mark.parametrize("dims", [0, 1, 2, ([1, 2], [0, 1]), ([0], [2])])
def test_tensordot(dims):
    a, b = RNG.standard_normal((3, 4, 3)), RNG.standard_normal((4, 3, 3))
    if dims == 2 or isinstance(dims, int):
        b = RNG.standard_normal((*a.shape[3 - dims :], 2))
    np.testing.assert_allclose(
        torch.tensordot(torch.from_numpy(a), torch.from_numpy(b), dims).numpy(), np.tensordot(a, b, dims)
    )
    check_gradients(lambda a, b: torch.tensordot(a, b, dims), a, b, second=False)


@pytest.mark.parametrize(
    "shapes", [((1, 70000, 3), (4, 1, 3)), ((4, 1, 3), (1, 70000, 3)), ((1, 70000, 3), (2, 70000, 3))]
)
def test_products_of_short_rows_that_are_broadcast(shapes: tuple[tuple[int, ...], ...]) -> None:
    a, b = (np.random.default_rng(3).random(shape).astype(np.float32) for shape in shapes)
    found = torch.einsum("...i,...i->...", torch.from_numpy(a), torch.from_numpy(b))
    np.testing.assert_allclose(found.numpy(), (a * b).sum(-1), 1e-5)


def test_gradients_where_each_operand_is_1_in_a_dimension_of_the_other() -> None:
    x, y = torch.ones(1, 3, requires_grad=True), torch.ones(2, 1, requires_grad=True)
    torch.einsum("ij,ij->i", x, y).sum().backward()
    assert x.grad.tolist() == [[2, 2, 2]]
    assert y.grad.tolist() == [[3], [3]]
