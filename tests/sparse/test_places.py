"""Sparse tensors cut, joined, normalized, changed in place and written to files, against dense ones."""

import io

import pytest

import rushlight as torch


@pytest.fixture
def s():
    return torch.tensor([[0.0, 2.0, 0.0], [3.0, 0.0, 4.0]], dtype=torch.float64).to_sparse()


def hybrid():
    return torch.sparse_coo_tensor(
        [[0, 2, 2, 0], [1, 0, 3, 1]], torch.arange(8.0, dtype=torch.float64).reshape(4, 2) + 1, (3, 4, 2)
    )


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_slices(dim: int) -> None:
    h = hybrid()
    d = h.to_dense()
    for k in range(-d.shape[dim], d.shape[dim]):
        assert torch.equal(h.select(dim, k).to_dense(), d.select(dim, k))
    at = torch.tensor([1, 0, 1, d.shape[dim] - 1])
    assert torch.equal(h.index_select(dim, at).to_dense(), d.index_select(dim, at))
    assert torch.equal(h.narrow_copy(dim, 1, 1).to_dense(), d.narrow(dim, 1, 1))
    assert torch.equal(h.unsqueeze(dim).to_dense(), d.unsqueeze(dim))


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_slices_one_by_one(dim: int) -> None:
    h = hybrid()
    for mine, own in zip(h.unbind(dim), h.to_dense().unbind(dim), strict=True):
        assert torch.equal(mine.to_dense(), own)
    with pytest.raises(IndexError, match="Dimension out of range"):
        h.unbind(3)


def test_iteration(s) -> None:
    assert (
        [row.to_dense().tolist() for row in s]
        == s.to_dense().tolist()
        == [r.to_dense().tolist() for r in s.to_sparse_csr()]
    )
    assert s.is_same_size(s * 2) and not s.is_same_size(s.t())
    w = s.clone().requires_grad_()
    first, second = torch.unbind(w, 0)
    (torch.sparse.sum(second) * 3 + torch.sparse.sum(first)).backward()
    assert w.grad.to_dense().tolist() == [[0, 1, 0], [3, 0, 3]]


def test_indexing(s) -> None:
    assert (
        s[0].to_dense().tolist() == [0, 2, 0]
        and s[:, 2].to_dense().tolist() == [0, 4]
        and s[1, 2].item() == 4
        and s[-1, 1].item() == 0
    )
    for index in (slice(0, 1), torch.tensor([1]), None):
        with pytest.raises(NotImplementedError, match="expected numbers and ':'"):
            s[index]
    with pytest.raises(IndexError, match="index 5 out of range for tensor of dimension 1 with size 3"):
        s.select(1, 5)
    with pytest.raises(IndexError, match="out of range"):
        s.index_select(1, torch.tensor([3]))
    with pytest.raises(RuntimeError, match="exceeds dimension size"):
        s.narrow_copy(1, 2, 2)


def test_joining_and_order(s) -> None:
    d = s.to_dense()
    for dim in (0, 1):
        assert torch.equal(torch.cat([s, s], dim).to_dense(), torch.cat([d, d], dim))
        assert torch.equal(torch.stack([s, s * 2], dim).to_dense(), torch.stack([d, d * 2], dim))
    assert torch.equal(s.permute(1, 0).to_dense(), d.t()) and torch.equal(
        hybrid().permute(1, 0, 2).to_dense(), hybrid().to_dense().permute(1, 0, 2)
    )
    with pytest.raises(RuntimeError, match="Sizes of tensors must match"):
        torch.cat([s, s.t()])
    with pytest.raises(RuntimeError, match="sparse tensors only"):
        torch.cat([s, d])


def test_gradients_of_slices_and_joins() -> None:
    values = torch.ones(3, dtype=torch.float64, requires_grad=True)
    s = torch.sparse_coo_tensor([[0, 1, 1], [1, 0, 2]], values, (2, 3))
    (torch.cat([s, s[1].unsqueeze(0)]).to_dense() * torch.arange(9.0).reshape(3, 3)).sum().backward()
    assert values.grad.tolist() == [1, 3 + 6, 5 + 8]


def test_elements_multiplied_and_masked(s) -> None:
    other = torch.sparse_coo_tensor([[0, 1, 1], [1, 1, 2]], torch.tensor([5.0, 6.0, 7.0], dtype=torch.float64), (2, 3))
    assert torch.equal((s * other).to_dense(), s.to_dense() * other.to_dense())
    assert (s.to_sparse_csr() * other.to_sparse_csr()).layout is torch.sparse_csr
    dense = torch.arange(6.0).reshape(2, 3)
    assert dense.sparse_mask(s).values().tolist() == [1, 3, 5] and other.sparse_mask(s).values().tolist() == [5, 0, 7]
    with pytest.raises(RuntimeError, match="incompatible sizes"):
        dense.t().sparse_mask(s)


@pytest.mark.parametrize("convert", ["to_sparse_csr", "to_sparse_csc", "to_sparse_bsr", "to_sparse_bsc"])
def test_what_is_masked_has_the_layout_of_the_mask(convert) -> None:
    mask = getattr(torch.eye(4), convert)(*[(2, 2)] * ("bs" in convert))
    masked = torch.arange(16.0).reshape(4, 4).sparse_mask(mask)
    assert masked.layout is mask.layout and masked.values().shape == mask.values().shape
    assert masked.to_dense().diagonal().tolist() == [0, 5, 10, 15]


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("log", [False, True])
def test_softmax_is_over_the_elements_there_are(dim: int, log: bool) -> None:
    h = hybrid().coalesce()
    values = h.values().clone().requires_grad_()
    function = torch.sparse.log_softmax if log else torch.sparse.softmax
    out = function(torch.sparse_coo_tensor(h.indices(), values, h.shape), dim)
    dense = torch.full(h.shape, -torch.inf, dtype=torch.float64)
    dense[tuple(h.indices())] = h.values()
    dense.requires_grad_()
    reference = torch.log_softmax(dense, dim) if log else torch.softmax(dense, dim)
    there = tuple(h.indices())
    assert torch.allclose(out.values(), reference[there])
    weight = torch.arange(6.0, dtype=torch.float64).reshape(3, 2)
    (found,) = torch.autograd.grad((out.values() * weight).sum(), values)
    (expected,) = torch.autograd.grad((reference[there] * weight).sum(), dense)
    assert torch.allclose(found, expected[there])


def test_softmax_refuses(s) -> None:
    with pytest.raises(TypeError, match="expected a sparse tensor"):
        torch.sparse.softmax(torch.ones(2), 0)
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.sparse.softmax(s, 2)


def test_products_at_given_places(s) -> None:
    csr = s.to_sparse_csr()
    a, b = (
        torch.randn(2, 4, dtype=torch.float64, requires_grad=True),
        torch.randn(4, 3, dtype=torch.float64, requires_grad=True),
    )
    out = torch.sparse.sampled_addmm(csr, a, b, beta=0.5, alpha=2.0)
    full = (0.5 * s.to_dense() + 2 * (a @ b)) * (s.to_dense() != 0)
    assert out.layout is torch.sparse_csr and torch.allclose(out.to_dense(), full)
    for x, y in zip(
        torch.autograd.grad(out.values().sum(), (a, b)), torch.autograd.grad(full.sum(), (a, b)), strict=True
    ):
        assert torch.allclose(x, y)
    with pytest.raises(RuntimeError, match="sparse csr layout"):
        torch.sparse.sampled_addmm(s, a, b)
    with pytest.raises(RuntimeError, match=r"\(N, K\)"):
        torch.sparse.sampled_addmm(csr, b, a)


def test_changes_in_place_change_the_tensor_itself(s) -> None:
    d = s.to_dense()
    kept = s
    s += s
    s *= 2
    assert s is kept and torch.equal(s.to_dense(), 4 * d)
    assert s.mul_(0.5) is s and s.add_(s, alpha=2) is s and torch.equal(s.to_dense(), 6 * d)
    assert s.neg_() is s and s.abs_() is s and torch.equal(s.to_dense(), 6 * d)
    x = torch.ones(2, 3, dtype=torch.float64)
    assert x.add_(s, alpha=0.5) is x and torch.equal(x, 1 + 3 * d)
    x -= s
    assert torch.equal(x, 1 - 3 * d)
    assert x.mul_(s) is x and torch.equal(x, (1 - 3 * d) * 6 * d)
    with pytest.raises(NotImplementedError, match="pow_"):
        x.pow_(s)
    assert s.zero_() is s and s._nnz() == 0
    leaf = torch.sparse_coo_tensor([[0], [1]], [1.0], (2, 3), requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        leaf.mul_(2)


def test_spmm_and_numbers_of_a_whole(s) -> None:
    assert torch.equal(
        torch.spmm(s, torch.ones(3, 2, dtype=torch.float64)), s.to_dense() @ torch.ones(3, 2, dtype=torch.float64)
    )
    assert s.norm().item() == pytest.approx(29**0.5) and s.any().item() and not torch.isnan(s).any().item()
    assert torch.sparse_coo_tensor(size=(2, 3))._nnz() == 0 and torch.zeros_like(s).to_dense().abs().sum().item() == 0


@pytest.mark.parametrize("weights_only", [True, False])
def test_files_hold_them(s, weights_only: bool) -> None:
    file = io.BytesIO()
    torch.save(
        {"coo": s, "twice": torch.sparse_coo_tensor([[0, 0], [1, 1]], [1.0, 2.0], (2, 3)), "csr": s.to_sparse_csr()},
        file,
    )
    file.seek(0)
    kept = torch.load(file, weights_only=weights_only)
    assert (
        torch.equal(kept["coo"].to_dense(), s.to_dense())
        and kept["coo"].is_coalesced()
        and not kept["twice"].is_coalesced()
    )
    assert kept["csr"].layout is torch.sparse_csr and torch.equal(kept["csr"].to_dense(), s.to_dense())


def test_printing(s) -> None:
    assert repr(s.float()) == ("tensor(indices=tensor([[0, 1, 1],\n                       [1, 0, 2]]),\n"
                               "       values=tensor([2., 3., 4.]),\n       size=(2, 3), nnz=3, layout=torch.sparse_coo)")  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bool, torch.uint8])
def test_places_of_the_layout_coo_may_be_of_any_dtype(dtype: torch.dtype) -> None:
    made = torch.sparse_coo_tensor(torch.tensor([[0.0, 1.0], [1.0, 0.0]]).to(dtype), torch.tensor([3.0, 4.0]), (2, 2))
    assert made._indices().dtype is torch.int64 and made.to_dense().tolist() == [[0.0, 3.0], [4.0, 0.0]]
    assert torch.sparse_coo_tensor([[0.0, 1.7]], [1.0, 2.0])._indices().tolist() == [[0, 1]]


def test_places_that_are_complex_or_of_rows_that_are_no_integers_are_refused() -> None:
    with pytest.raises(RuntimeError, match="must be an int64 tensor"):
        torch.sparse_coo_tensor(torch.zeros(1, 1, dtype=torch.complex64), torch.ones(1), (2,))
    with pytest.raises(RuntimeError, match="must be an int64 tensor"):
        torch.sparse_csr_tensor(torch.tensor([0.0, 1.0]), torch.tensor([0]), torch.ones(1), (1, 1))


def test_native_norm_is_of_all_elements(s) -> None:
    assert torch.native_norm(s).item() == pytest.approx(29**0.5)
    assert torch.native_norm(s, 1).item() == 9 and torch.native_norm(s, 2, [1, 0], False).item() == pytest.approx(
        29**0.5
    )
    for more in ([2, [0]], [2, [], True], [2, [], False, torch.float64]):
        with pytest.raises(RuntimeError, match="norm_sparse"):
            torch.native_norm(s, *more)
    with pytest.raises(NotImplementedError, match="expected a sparse tensor"):
        torch.native_norm(torch.ones(2))


def test_a_batch_of_dense_matrices_times_a_sparse_one(s) -> None:
    batch = torch.arange(8, dtype=torch.float64).reshape(2, 2, 2).requires_grad_()
    for made in (batch @ s, torch.matmul(batch, s), batch @ s.to_sparse_csr()):
        assert torch.equal(made, batch @ s.to_dense())
    (batch @ s).sum().backward()
    assert torch.equal(batch.grad, s.to_dense().sum(1).expand(2, 2, 2))
