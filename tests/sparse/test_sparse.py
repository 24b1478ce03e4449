"""Sparse tensors against dense ones."""

import copy
import pickle

import numpy as np
import pytest

import rushlight as torch
from rushlight.sparse import product
from rushlight.sparse.kinds import of_dtype


@pytest.fixture
def matrix():
    values = torch.tensor([3.0, 4.0, 5.0, 1.0], dtype=torch.float64, requires_grad=True)
    return torch.sparse_coo_tensor([[0, 1, 1, 0], [2, 0, 2, 2]], values, (2, 3)), values


DENSE = [[0.0, 0.0, 4.0], [4.0, 0.0, 5.0]]


def test_places_and_values(matrix) -> None:
    s, _ = matrix
    assert s.to_dense().tolist() == DENSE and s.shape == (2, 3) and s.numel() == 6 and len(s) == 2 and s.dim() == 2
    assert s.is_sparse and s.layout is torch.sparse_coo and s.sparse_dim() == 2 and s.dense_dim() == 0 and s._nnz() == 4
    assert not s.is_coalesced() and s.requires_grad and isinstance(s, torch.Tensor) and s.dtype is torch.float64
    for ask in (s.indices, s.values):
        with pytest.raises(RuntimeError, match=r"call \.coalesce"):
            ask()
    c = s.coalesce()
    assert (
        c.indices().tolist() == [[0, 1, 1], [2, 0, 2]] and c.values().tolist() == [4.0, 4.0, 5.0] and c.coalesce() is c
    )


def test_rows_by_their_beginnings(matrix) -> None:
    csr = matrix[0].to_sparse_csr()
    assert csr.crow_indices().tolist() == [0, 1, 3] and csr.col_indices().tolist() == [2, 0, 2] and csr.is_sparse_csr
    assert csr.to_dense().tolist() == DENSE and csr.to_sparse().to_dense().tolist() == DENSE and not csr.is_sparse
    assert torch.sparse_csr_tensor([0, 1, 3], [2, 0, 2], [4.0, 4.0, 5.0]).to_dense().tolist() == DENSE
    with pytest.raises(RuntimeError, match="layout"):
        csr.indices()


@pytest.mark.parametrize("layout", ["to_sparse_coo", "to_sparse_csr"])
@pytest.mark.parametrize("scipy", [True, False])
def test_products_have_gradients_of_both(matrix, layout: str, scipy: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not scipy:
        monkeypatch.setitem(__import__("sys").modules, "scipy.sparse", None)
    s, values = matrix
    d = torch.arange(12.0, dtype=torch.float64).reshape(3, 4).requires_grad_()
    weight = torch.arange(8.0, dtype=torch.float64).reshape(2, 4)
    out = getattr(s, layout)() @ d
    found = torch.autograd.grad((out * weight).sum(), (values, d))
    expected = s.to_dense() @ d
    assert torch.equal(out, expected)
    for a, b in zip(found, torch.autograd.grad((expected * weight).sum(), (values, d)), strict=True):
        assert torch.equal(a, b)


def test_every_way_to_write_a_product(matrix) -> None:
    s, d = matrix[0].detach(), torch.randn(3, 4, dtype=torch.float64)
    expected = s.to_dense() @ d
    for found in (torch.mm(s, d), torch.matmul(s, d), torch.sparse.mm(s, d), s.mm(d), torch.matmul(d.t(), s.t()).t(), (d.t() @ s.t()).t(),
                  torch.stack([s @ column for column in d.t()], 1)):  # fmt: skip
        torch.testing.assert_close(found, expected)
    counts = torch.tensor([[1.0], [2.0]], dtype=torch.float64)
    torch.testing.assert_close(torch.sparse.mm(s.coalesce(), d, "mean"), expected / counts)
    with pytest.raises(RuntimeError, match="'amax' or 'amin', got 'prod'"):
        torch.sparse.mm(s, d, "prod")
    base = torch.ones(2, 4, dtype=torch.float64)
    for add in (torch.addmm, torch.sparse.addmm):
        torch.testing.assert_close(add(base, s, d, beta=2, alpha=3), 2 + 3 * expected)
    torch.testing.assert_close(torch.sparse.mm(s, s.t()).to_dense(), s.to_dense() @ s.to_dense().t())
    with pytest.raises(RuntimeError, match=r"cannot be multiplied \(2x3 and 2x4\)"):
        s @ base


def test_second_derivatives_of_products() -> None:
    values = torch.randn(3, dtype=torch.float64, requires_grad=True)
    d = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    places = torch.tensor([[0, 1, 1], [3, 0, 2]])
    assert torch.autograd.gradgradcheck(lambda v, d: product.product(places, v, d, 2), (values, d))


def test_arithmetic(matrix) -> None:
    s = matrix[0]
    dense = s.to_dense()
    for found, expected in ((2 * s, 2 * dense), (s / 2, dense / 2), (-s, -dense), (s + s, 2 * dense), (s - s, 0 * dense), (s.t(), dense.t()),
                            (s * torch.full((2, 3), 2.0), 2 * dense), (s.sqrt(), dense.sqrt()), (torch.abs(s), dense), (s.pow(2), dense**2),
                            (torch.sparse.sum(s, 1), dense.sum(1)), (torch.sparse.sum(s, 0), dense.sum(0)), (s.clone(), dense),
                            (copy.deepcopy(s.detach()), dense), (s.float(), dense.float())):  # fmt: skip
        torch.testing.assert_close(found.to_dense(), expected)
    assert s.sum().item() == 13 and torch.sum(s).item() == 13 and torch.equal(torch.ones(2, 3) + s, dense + 1)
    torch.testing.assert_close(pickle.loads(pickle.dumps(s.detach())).to_dense(), dense.detach())


def test_dense_dimensions_behind_the_sparse_ones() -> None:
    s = torch.sparse_coo_tensor([[1, 0]], [[1.0, 2.0], [3.0, 4.0]], (3, 2))
    assert s.to_dense().tolist() == [[3.0, 4.0], [1.0, 2.0], [0.0, 0.0]] and s.dense_dim() == 1
    assert torch.sparse.sum(s, 1).to_dense().tolist() == [7.0, 3.0, 0.0] and torch.sparse.sum(s, 0).tolist() == [
        4.0,
        6.0,
    ]


def test_of_dense_tensors_and_back() -> None:
    x = torch.tensor([[0.0, 2.0], [3.0, 0.0]], requires_grad=True)
    s = x.to_sparse()
    assert s.indices().tolist() == [[0, 1], [1, 0]] and x.to_sparse_csr().values().tolist() == [2.0, 3.0]
    assert x.to_dense() is x and x.to_sparse(layout=torch.sparse_csr).is_sparse_csr and x.to_sparse(1).dense_dim() == 1
    s.to_dense().square().sum().backward()
    assert x.grad.tolist() == [[0.0, 4.0], [6.0, 0.0]]
    assert x.to_sparse(layout=torch.sparse_csc).ccol_indices().tolist() == [0, 1, 2]
    found = torch.sparse.spdiags(torch.arange(6.0).reshape(2, 3), torch.tensor([0, 1]), (3, 3))
    assert found.to_dense().tolist() == [[0.0, 4.0, 0.0], [0.0, 1.0, 5.0], [0.0, 0.0, 2.0]]
    assert torch.sparse_coo_tensor((2, 3)).to_dense().tolist() == [[0.0] * 3] * 2


def test_leaves_have_sparse_gradients() -> None:
    s = torch.sparse_coo_tensor([[0], [1]], [2.0], (2, 2), requires_grad=True)
    (s @ torch.ones(2, 1)).sum().backward()
    assert s.is_leaf and s.grad.to_dense().tolist() == [[0.0, 1.0], [0.0, 0.0]]


def test_parts_that_do_not_fit_are_refused() -> None:
    for make, words in ((lambda: torch.sparse_coo_tensor([[0, 5], [0, 0]], [1.0, 2.0], (2, 3)), "for dim 0, size is 2 but found index 5"),
                        (lambda: torch.sparse_coo_tensor([[0, 1]], [1.0], (2,)), "must have same nnz"),
                        (lambda: torch.sparse_coo_tensor([[0]], [1.0], (2, 3)), "number of dimensions"),
                        (lambda: torch.sparse_csr_tensor([0, 2], [0], [1.0], (1, 1)), "== nnz")):  # fmt: skip
        with pytest.raises(RuntimeError, match=words):
            make()
    for name in ("csc", "bsr", "bsc"):
        with pytest.raises(RuntimeError, match=f"sparse_{name}_tensor"):
            getattr(torch, f"sparse_{name}_tensor")([0], [0], [1.0])


def test_what_is_not_written_for_them_is_refused_by_name(matrix) -> None:
    s = matrix[0]
    for ask, name in ((torch.exp, "exp"), (lambda s: s[:1], "indexing"), (lambda s: s.cumsum(0), "cumsum"), (torch.linalg.inv, "inv"),
                      (lambda s: s.view(6), "view"), (lambda s: torch.softmax(s, 1), "softmax"),
                      (lambda s: s.argmax(), "argmax"), (np.asarray, "sparse")):  # fmt: skip
        with pytest.raises(NotImplementedError, match=name):
            ask(s)


def test_older_types_make_them_and_know_them() -> None:
    """`torch.sparse.FloatTensor` and its relatives, by which older programs make sparse tensors."""
    places, values = torch.tensor([[0, 1], [2, 0]]), torch.tensor([3.0, 4.0])
    kind = torch.sparse.FloatTensor
    assert of_dtype(torch.float32) is kind and of_dtype(torch.bool) is of_dtype(torch.bool)
    found = kind(places, values, torch.Size([2, 3]))
    assert found.to_dense().tolist() == [[0.0, 0.0, 3.0], [4.0, 0.0, 0.0]] and kind(places, values).shape == (2, 3)
    assert isinstance(found, kind) and not isinstance(found, torch.sparse.DoubleTensor) and not isinstance(values, kind)
    assert found.type() == torch.typename(found) == "torch.sparse.FloatTensor"
    assert found.type("torch.sparse.DoubleTensor").dtype is found.type(torch.sparse.DoubleTensor).dtype is torch.float64
    for empty in (kind(2, 3), kind(torch.Size([2, 3])), torch.sparse.LongTensor(2, 3)):
        assert empty._nnz() == 0 and empty.shape == (2, 3)
    assert kind().shape == (0,) and torch.sparse.LongTensor(2).dtype is torch.int64
    with pytest.raises(TypeError, match="FloatTensor: expected indices, values and a size"):
        kind(places)


def test_attributes_that_need_no_values(matrix) -> None:
    s = matrix[0]
    assert s.ndimension() == 2 and s.nelement() == 6 and s.itemsize == 8 and s._base is None and s.output_nr == 0
    assert s.mT.to_dense().tolist() == s.mH.to_dense().tolist() == s.to_dense().mT.tolist()
    with pytest.raises(NotImplementedError, match="nbytes: not implemented for sparse"):
        _ = s.nbytes


def test_new_tensors_like_a_sparse_one(matrix) -> None:
    s = matrix[0]
    assert s.new(s._indices(), s._values().detach(), s.size()).to_dense().tolist() == DENSE
    for empty, shape in ((s.new(), (0,)), (s.new(2, 3), (2, 3)), (s.new_zeros(2), (2,)), (s.new_empty((4, 5)), (4, 5)),
                         (torch.empty_like(s), (2, 3))):  # fmt: skip
        assert empty.is_sparse and empty.shape == shape and empty.dtype is s.dtype and empty._nnz() == 0
    assert s.new_zeros(2, dtype=torch.int64).dtype is torch.int64
    dense = s.new_tensor([1])
    assert dense.layout is torch.strided and dense.dtype is s.dtype


def test_whether_places_occur_once_can_be_said() -> None:
    s = torch.sparse_coo_tensor([[1, 0, 1], [0, 1, 0]], torch.tensor([1.0, 2.0, 3.0]), (2, 2))
    assert s._coalesced_(True) is s and s.is_coalesced() and s.coalesce() is s
    assert s.values().tolist() == [1.0, 2.0, 3.0] and s.to_dense().tolist() == [[0.0, 2.0], [4.0, 0.0]]
    assert not s._coalesced_(False).is_coalesced() and s.coalesce().values().tolist() == [2.0, 4.0]
    with pytest.raises(RuntimeError, match="layout"):
        torch.eye(2).to_sparse_csr()._coalesced_(True)


def test_angles_of_zeros_are_zeros() -> None:
    x = torch.tensor([[-1.0, 0.0], [2.0, 0.0]])
    for made in (x.to_sparse_csr(), x.to_sparse(), x.to(torch.complex64).to_sparse_csr()):
        assert made.angle().layout is made.layout
        torch.testing.assert_close(made.angle().to_dense(), x.angle())
