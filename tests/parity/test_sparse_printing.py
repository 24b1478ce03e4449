"""Sparse tensors print as PyTorch's, but for the names of nodes, which are rushlight's own."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]


def coo(t: Any, values: Any, size: Any = (2, 3), **options: Any) -> Any:
    return t.sparse_coo_tensor(t.tensor([[0, 1, 1], [2, 0, 2]]), values, size, **options)


CASES: dict[str, Callable[[Any], Any]] = {
    "dtypes": lambda t: [
        coo(t, t.tensor(v), dtype=d)
        for v, d in (([3.0, 4, 5], None), ([3.0, 4, 5], t.float64), ([3, 4, 5], None), ([3, 4, 5], t.int32), ([True, False, True], None))
    ],
    "complex": lambda t: [coo(t, t.tensor([3.0, 4, 5j])), coo(t, t.tensor([3.0, 4, 5j]), dtype=t.complex128)],
    "gradients": lambda t: [
        coo(t, t.ones(3), requires_grad=True),
        coo(t, t.ones(3), requires_grad=True) * 2,
        t.eye(2).to_sparse_csr().requires_grad_(),
        t.nn.Parameter(t.eye(2).to_sparse()),
        t.eye(3).requires_grad_().to_sparse_csr(),
    ],
    "empty": lambda t: [t.sparse_coo_tensor((2, 3)), t.zeros(2, 3).to_sparse_csr(), coo(t, t.zeros(3, 0), (2, 3, 0))],
    "dense dimensions": lambda t: [
        coo(t, t.arange(6.0).reshape(3, 2), (2, 3, 2)),
        t.sparse_coo_tensor(t.arange(3)[None], t.zeros(3, 2, 2), (3, 2, 2)),
    ],
    "long": lambda t: [
        t.eye(30).to_sparse(),
        t.eye(1200).to_sparse_csr(),
        t.sparse_coo_tensor(t.arange(2000)[None] % 7, t.ones(2000), (7,)),
    ],
    "csr": lambda t: [
        t.sparse_csr_tensor(t.tensor([0, 1, 2]), t.tensor([0, 1]), t.tensor([1.0, 2])),
        t.eye(3, dtype=t.float64).to_sparse_csr(),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_text_is_that_of_pytorch(name: str) -> None:
    for ours, theirs in zip(CASES[name](rushlight), CASES[name](torch), strict=True):
        shown, wanted = (re.sub(r"grad_fn=<(?!Mul)\w+>", "grad_fn=<...>", repr(x)) for x in (ours, theirs))
        assert shown == wanted
