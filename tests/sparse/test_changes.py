"""Sparse tensors of other sizes and contents, without elements, and the switch of what is checked: as PyTorch has them."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import rushlight

reference = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

PROGRAMS = """
torch.zeros(2, 3, layout=torch.sparse_coo)
torch.zeros((2, 3), layout=torch.sparse_csr, dtype=torch.int32)
torch.empty(2, 3, layout=torch.sparse_csc)
torch.empty(2, dtype=torch.double, layout=torch.sparse_coo)
torch.zeros_like(torch.ones(2, 2), layout=torch.sparse_csr)
torch.ones(2).new_zeros((2, 2), layout=torch.sparse_coo)
torch.ones(2).new_empty((2, 2), layout=torch.sparse_coo)
torch.tensor(3.0).to_sparse()
torch.tensor(0.0).to_sparse()
torch.eye(2).to_sparse(layout=torch.strided)
torch.eye(2).to_sparse().to_sparse(layout=torch.strided)
torch.eye(3).to_sparse().sparse_resize_((4, 5), 2, 0)
torch.eye(3).to_sparse().sparse_resize_and_clear_((3, 2), 1, 1)
torch.sparse_coo_tensor((2, 2)).sparse_resize_((3, 4, 2), 2, 1)
torch.eye(3).to_sparse().resize_as_sparse_(torch.eye(4).to_sparse())
torch.eye(3).to_sparse().copy_((2 * torch.eye(3)).double().to_sparse())
torch.eye(3).to_sparse().mv(torch.arange(3.0))
torch.addmv(torch.ones(3), torch.eye(3).to_sparse_csr(), torch.arange(3.0), beta=2)
torch.nn.functional.linear(torch.arange(6.0).reshape(2, 3), torch.eye(3).to_sparse())
torch.nn.functional.linear(torch.arange(12.0).reshape(2, 2, 3), torch.eye(3).to_sparse())
torch.nn.functional.linear(torch.arange(3.0), torch.eye(3).to_sparse_csr(), torch.ones(3))
torch.hstack([torch.eye(3).to_sparse()] * 2)
torch.vstack([torch.eye(3).to_sparse()] * 2)
torch.eye(3).to_sparse().floor_divide(2)
torch.eye(3).to_sparse().div(-2.0, rounding_mode="floor")
torch.eye(3).to_sparse().signbit()
bool(torch.sparse_coo_tensor([[0]], [1.0], (1,)))
torch.tensor([1.0]).to_sparse().is_nonzero()
torch.eye(3).to_sparse().is_contiguous()
torch.sparse.spdiags(torch.tensor([[1.0, 2], [3, 4]]), torch.tensor([0, -1]), (2, 2))
""".strip().splitlines()


def shown(value: Any) -> Any:
    if isinstance(value, (rushlight.Tensor, reference.Tensor)):
        return str(value.dtype), str(value.layout), tuple(value.shape), value.to_dense().tolist()
    return value


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_answer_is_pytorchs(program: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        there, here = (shown(eval(program, {"torch": library})) for library in (reference, rushlight))
    assert here == there


def test_what_is_checked_besides_is_switched() -> None:
    checks, places = rushlight.sparse.check_sparse_tensor_invariants, rushlight.tensor([[1, 0]])
    assert not checks.is_enabled()
    rushlight.sparse_coo_tensor(places, rushlight.ones(2), (2,), is_coalesced=True)
    with checks():
        assert checks.is_enabled()
        with pytest.raises(RuntimeError, match="uncoalesced"):
            rushlight.sparse_coo_tensor(places, rushlight.ones(2), (2,), is_coalesced=True)
        with checks(enable=False):
            assert not checks.is_enabled()
        assert checks.is_enabled()
    assert not checks.is_enabled()
    checks.enable()
    assert checks.is_enabled()
    checks.disable()
    again = checks()
    with again, pytest.raises(RuntimeError, match="already activated"), again:
        pass
    assert not checks.is_enabled()


def test_gradients_go_through_a_layer_of_sparse_weights() -> None:
    x, w = rushlight.ones(2, 3, requires_grad=True), rushlight.eye(3).to_sparse().requires_grad_()
    rushlight.nn.functional.linear(x, w).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [[1.0] * 3] * 2
    assert w.grad.to_dense().tolist() == (2 * rushlight.eye(3)).tolist()
