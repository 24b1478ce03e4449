"""What programs look for in messages is in ours: PyTorch's words, with what was got behind them and the operator before."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

import rushlight

reference = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

CASES: dict[str, Callable[[Any], Any]] = {
    "mm": lambda t: t.mm(t.ones(2, 3), t.ones(2, 3)),
    "matmul": lambda t: t.ones(2, 3) @ t.ones(2, 3),
    "matmul of a batch": lambda t: t.ones(2, 3, 4) @ t.ones(3, 4),
    "matmul of a vector": lambda t: t.ones(3) @ t.ones(4, 2),
    "matmul of batches": lambda t: t.ones(2, 3, 4) @ t.ones(2, 3, 4),
    "bmm": lambda t: t.bmm(t.ones(2, 3, 4), t.ones(3, 4, 5)),
    "linear": lambda t: t.nn.Linear(3, 2)(t.ones(2, 5, 4)),
    "linear of a vector": lambda t: t.nn.Linear(3, 2)(t.ones(4)),
    "convolution": lambda t: t.nn.Conv2d(3, 8, 3)(t.ones(2, 4, 8, 8)),
    "transposed convolution": lambda t: t.nn.ConvTranspose2d(3, 2, 2)(t.ones(1, 4, 5, 5)),
    "convolution of dimensions": lambda t: t.nn.functional.conv1d(t.ones(2, 2, 2, 2), t.ones(2, 2, 2)),
    "convolution of a small image": lambda t: t.nn.Conv2d(3, 2, 7)(t.ones(1, 3, 5, 5)),
    "pooling of a small image": lambda t: t.nn.functional.max_pool2d(t.ones(1, 2, 2, 2), 5),
    "mm of two dtypes": lambda t: t.mm(t.ones(2, 2), t.ones(2, 2).bfloat16()),
    "mm of dimensions": lambda t: t.mm(t.ones(2), t.ones(2, 2)),
    "matmul of two dtypes": lambda t: t.ones(2, 2) @ t.ones(2, 2, dtype=t.complex64),
    "bmm of two dtypes": lambda t: t.bmm(t.ones(2, 2, 2), t.ones(2, 2, 2).long()),
    "bmm of dimensions": lambda t: t.bmm(t.ones(2, 2, 2), t.ones(2, 2)),
    "batches of two dtypes": lambda t: t.ones(2, 2, 2) @ t.ones(2, 2, 2).double(),
    "batches that do not broadcast": lambda t: t.ones(1, 2, 2, 3) @ t.ones(1, 3, 3, 2),
    "batches of four dimensions": lambda t: t.ones(1, 2, 2, 3) @ t.ones(1, 2, 2, 3),
    "a matrix and batches": lambda t: t.ones(2, 3) @ t.ones(2, 2, 3),
    "mv": lambda t: t.mv(t.ones(2, 3), t.ones(2)),
    "mv of vectors": lambda t: t.mv(t.ones(3), t.ones(3)),
    "mv of two dtypes": lambda t: t.mv(t.ones(2, 2), t.ones(2).double()),
    "a matrix and a vector": lambda t: t.ones(2, 3) @ t.ones(2),
    "batches and a vector": lambda t: t.ones(2, 2, 3) @ t.ones(2),
    "a vector and a matrix of two dtypes": lambda t: t.ones(2) @ t.ones(2, 2).double(),
    "dot": lambda t: t.dot(t.ones(2), t.ones(3)),
    "dot of two dtypes": lambda t: t.dot(t.ones(2), t.ones(2).half()),
    "vectors": lambda t: t.ones(2) @ t.ones(3),
    "vectors of two dtypes": lambda t: t.ones(2) @ t.ones(2).int(),
    "vdot": lambda t: t.vdot(t.ones(2), t.ones(3)),
    "outer": lambda t: t.outer(t.ones(2, 2), t.ones(2)),
    "addmm of two dtypes": lambda t: t.addmm(t.ones(2, 2), t.ones(2, 2), t.ones(2, 2).double()),
    "addmm of another dtype": lambda t: t.addmm(t.ones(2, 2), t.ones(2, 2).double(), t.ones(2, 2)),
    "addmm of dimensions": lambda t: t.addmm(t.ones(2, 2), t.ones(2), t.ones(2, 2)),
    "addmm to another size": lambda t: t.addmm(t.ones(3, 3), t.ones(2, 2), t.ones(2, 2)),
    "addmv": lambda t: t.addmv(t.ones(2), t.ones(2, 3), t.ones(2)),
    "addmv to another size": lambda t: t.addmv(t.ones(3), t.ones(2, 2), t.ones(2)),
    "addmv of dtypes": lambda t: t.addmv(t.ones(2), t.ones(2, 2), t.ones(2).double()),
    "addmv of dimensions": lambda t: t.addmv(t.ones(2), t.ones(2, 2), t.ones(2, 2)),
    "baddbmm of two dtypes": lambda t: t.baddbmm(t.ones(2, 2, 2), t.ones(2, 2, 2), t.ones(2, 2, 2).double()),
    "baddbmm to another dtype": lambda t: t.baddbmm(t.ones(2, 2, 2).double(), t.ones(2, 2, 2), t.ones(2, 2, 2)),
    "addbmm of two dtypes": lambda t: t.addbmm(t.ones(2, 2), t.ones(2, 2, 2), t.ones(2, 2, 2).double()),
    "addr to another size": lambda t: t.addr(t.ones(3, 3), t.ones(2), t.ones(2)),
    "linear of two dtypes": lambda t: t.nn.Linear(2, 2)(t.ones(2, 2).long()),
    "linear of two dtypes without bias": lambda t: t.nn.Linear(2, 2, bias=False)(t.ones(2, 2).double()),
    "linear with a bias of another dtype": lambda t: t.nn.functional.linear(
        t.ones(2, 2), t.ones(2, 2), t.ones(2).double()
    ),
    "convolution of bytes": lambda t: t.nn.Conv2d(3, 2, 3)(t.ones(1, 3, 5, 5).byte()),
    "convolution of float64": lambda t: t.nn.Conv1d(3, 2, 3)(t.ones(1, 3, 5).double()),
    "convolution of two dtypes": lambda t: t.nn.functional.conv2d(t.ones(1, 3, 5, 5).double(), t.ones(2, 3, 3, 3)),
    "convolution with another bias": lambda t: t.nn.functional.conv2d(
        t.ones(1, 3, 5, 5), t.ones(2, 3, 3, 3), t.ones(2).double()
    ),
    "transposed convolution of two dtypes": lambda t: t.nn.ConvTranspose2d(3, 2, 3)(t.ones(1, 3, 5, 5).double()),
    "inverse": lambda t: t.linalg.inv(t.ones(2, 2)),
    "inverse of a batch": lambda t: t.linalg.inv(t.stack([t.eye(2), t.zeros(2, 2)])),
    "inverse that is checked": lambda t: t.linalg.inv_ex(t.zeros(2, 2), check_errors=True),
    "inverse of integers": lambda t: t.linalg.inv(t.ones(2, 2).long()),
    "inverse of 16 bits": lambda t: t.linalg.inv(t.ones(2, 2).half()),
    "power": lambda t: t.linalg.matrix_power(t.zeros(2, 2), -1),
    "solve": lambda t: t.linalg.solve(t.zeros(2, 2), t.ones(2, 1)),
    "solve of a batch": lambda t: t.linalg.solve(t.zeros(3, 2, 2), t.ones(3, 2, 1)),
    "solve that is checked": lambda t: t.linalg.solve_ex(t.zeros(2, 2), t.ones(2), check_errors=True),
    "solve of sizes": lambda t: t.linalg.solve(t.eye(2), t.ones(3, 1)),
    "solve of two dtypes": lambda t: t.linalg.solve(t.eye(2), t.ones(2, 1).double()),
    "solve by triangles": lambda t: t.linalg.solve_triangular(t.ones(2, 2), t.ones(3, 1), upper=True),
    "power of no square": lambda t: t.linalg.matrix_power(t.ones(2, 3), 2),
    "einsum of sizes": lambda t: t.einsum("ij,jk->ik", t.ones(2, 3), t.ones(2, 3)),
    "einsum of dimensions": lambda t: t.einsum("ijk,jk->ik", t.ones(2, 3), t.ones(2, 3)),
    "einsum of too few": lambda t: t.einsum("ij,ij", t.ones(2, 3)),
    "cross": lambda t: t.cross(t.ones(2), t.ones(2), dim=0),
    "a result that is not stored": lambda t: t.ones(3).short().add_(1.5),
    "mask": lambda t: t.ones(3).masked_fill(t.ones(3).long(), 0),
    "mask of what is selected": lambda t: t.ones(3).masked_select(t.ones(3)),
    "mask of what is scattered": lambda t: t.ones(3).masked_scatter(t.ones(3), t.ones(3)),
    "condition": lambda t: t.where(t.ones(3).long(), 1.0, 2.0),
    "mean of integers": lambda t: t.ones(3).long().mean(),
    "mean as integers": lambda t: t.ones(3).mean(dtype=t.int64),
    "indices of an embedding": lambda t: t.nn.Embedding(3, 2)(t.tensor([1.5])),
    "classes": lambda t: t.nn.functional.cross_entropy(t.ones(2, 3), t.ones(2)),
    "a part that is set": lambda t: t.ones(3, 3).__setitem__(0, t.ones(2)),
    "parts that are set": lambda t: t.ones(3).__setitem__(t.tensor([0, 1]), t.ones(3)),
    "indices of two sizes": lambda t: t.ones(3, 4)[t.tensor([0, 1]), t.tensor([0, 1, 2])],
    "a fraction as an index": lambda t: t.ones(3)[1.5],
    "take": lambda t: t.ones(3).take(t.ones(1)),
    "copy": lambda t: t.ones(2, 3).copy_(t.ones(2)),
    "cholesky": lambda t: t.linalg.cholesky(t.stack([t.eye(2), -t.eye(2)])),
    "dropout": lambda t: t.nn.functional.dropout(t.ones(2), 2.0),
    "batch norm": lambda t: t.nn.BatchNorm1d(3)(t.ones(1, 3)),
    "instance norm": lambda t: t.nn.functional.instance_norm(t.ones(1, 3, 1)),
    "topk": lambda t: t.ones(2).topk(5),
    "kthvalue": lambda t: t.ones(2).kthvalue(5),
    "pad": lambda t: t.nn.functional.pad(t.ones(2, 2), (1,)),
    "negative size": lambda t: t.empty(2, -3),
    "broadcast": lambda t: t.ones(3) + t.ones(2),
    "view": lambda t: t.ones(2, 3).t().view(6),
    "backward of no scalar": lambda t: (t.ones(2, requires_grad=True) * 2).backward(),
    "overlapping memory": lambda t: t.ones(1).expand(3).add_(1),
}


@pytest.mark.parametrize("name", CASES)
def test_a_message_has_the_words_that_programs_look_for(name: str) -> None:
    with pytest.raises(Exception) as there:
        CASES[name](reference)
    with pytest.raises(Exception) as here:
        CASES[name](rushlight)
    assert type(here.value).__name__ == type(there.value).__name__
    assert str(there.value).rstrip(".") in str(here.value)


@pytest.mark.parametrize("refused", [lambda t: -t.ones(3).bool(), lambda t: t.ones(3).bool() - t.ones(3).bool(),
                                     lambda t: t.ones(3) - t.ones(3).bool()])  # fmt: skip
def test_of_bools_the_words_are_the_same(refused: Callable[[Any], Any]) -> None:
    with pytest.raises(RuntimeError) as there:
        refused(reference)
    with pytest.raises(RuntimeError) as here:
        refused(rushlight)
    assert str(there.value) in str(here.value)


def test_what_linear_algebra_raises_is_found_where_programs_look_for_it() -> None:
    for t in (reference, rushlight):
        assert t.linalg.LinAlgError is t._C._LinAlgError and issubclass(t.linalg.LinAlgError, RuntimeError)
    error = pickle.loads(pickle.dumps(rushlight.linalg.LinAlgError("why")))
    assert isinstance(error, rushlight.linalg.LinAlgError) and str(error) == "why"
