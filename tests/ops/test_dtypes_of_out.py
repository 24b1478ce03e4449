"""Which dtypes `out=` may have: arithmetic converts its result safely, what moves, chooses or multiplies matrices does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rushlight as torch

X = torch.tensor([[1.5, -2.0], [0.5, 3.0]])
DOUBLE = torch.float64

SAME: dict[str, Callable[[Any], Any]] = {
    "neg": lambda o: torch.neg(X, out=o),
    "floor": lambda o: torch.floor(X, out=o),
    "abs": lambda o: torch.abs(X, out=o),
    "hardshrink": lambda o: torch.nn.functional.hardshrink(X, out=o),
    "softshrink": lambda o: torch.nn.functional.softshrink(X, out=o),
    "gelu": lambda o: torch.nn.functional.gelu(X, out=o),
    "softplus": lambda o: torch.nn.functional.softplus(X, out=o),
    "logsigmoid": lambda o: torch.nn.functional.logsigmoid(X, out=o),
    "slice_scatter": lambda o: torch.slice_scatter(X, X, out=o),
    "hash_tensor": lambda o: torch.hash_tensor(X, out=o),
    "ldl_factor": lambda o: torch.linalg.ldl_factor(X, out=(o, torch.empty(0).int())),
    "linalg.lu": lambda o: torch.linalg.lu(X, out=(torch.empty(0), torch.empty(0), o)),
    "native_batch_norm": lambda o: torch.native_batch_norm(
        X, None, None, None, None, True, 0.1, 1e-5, out=(o, torch.empty(0), torch.empty(0))
    ),
    "round": lambda o: torch.round(X, out=o),
    "nan_to_num": lambda o: torch.nan_to_num(X, out=o),
    "heaviside": lambda o: torch.heaviside(X, X, out=o),
    "tril": lambda o: torch.tril(X, out=o),
    "where": lambda o: torch.where(X > 0, X, X, out=o),
    "amax": lambda o: torch.amax(X, 0, out=o),
    "norm": lambda o: torch.norm(X, out=o),
    "softmax": lambda o: torch.softmax(X, 0, out=o),
    "mm": lambda o: torch.mm(X, X, out=o),
    "addmm": lambda o: torch.addmm(X, X, X, out=o),
    "linalg.inv": lambda o: torch.linalg.inv(X, out=o),
    "linalg.cholesky": lambda o: torch.linalg.cholesky(X @ X.T, out=o),
    "linalg.vecdot": lambda o: torch.linalg.vecdot(X, X, out=o),
    "index_select": lambda o: torch.index_select(X, 0, torch.tensor([0]), out=o),
    "scatter_add": lambda o: torch.scatter_add(X, 0, torch.zeros(1, 2).long(), X, out=o),
    "argmax": lambda o: torch.argmax(X, 0, out=o),
    "nonzero": lambda o: torch.nonzero(X, out=o),
    "searchsorted": lambda o: torch.searchsorted(X[0].sort()[0], X, out=o),
    "isposinf": lambda o: torch.isposinf(X, out=o),
    "indices of sort": lambda o: torch.sort(X, out=(torch.empty(0), o)),
    "values of max": lambda o: torch.max(X, 0, out=(o, torch.empty(0).long())),
    "qr": lambda o: torch.linalg.qr(X, out=(o, torch.empty(0))),
}
SAFE: dict[str, Callable[[Any], Any]] = {
    "exp": lambda o: torch.exp(X, out=o),
    "square": lambda o: torch.square(X, out=o),
    "add": lambda o: torch.add(X, X, out=o),
    "gt": lambda o: torch.gt(X, X, out=o),
    "maximum": lambda o: torch.max(X, X, out=o),
    "mean": lambda o: torch.mean(X, 0, out=o),
    "cat": lambda o: torch.cat([X, X], out=o),
    "clamp": lambda o: torch.clamp(X, X, X, out=o),
}


@pytest.mark.parametrize("name", SAME)
def test_of_the_dtype_of_the_result_alone(name: str) -> None:
    with pytest.raises(RuntimeError, match=r"Expected out tensor to have dtype .*, but got double"):
        SAME[name](torch.empty(0, dtype=DOUBLE))


@pytest.mark.parametrize("name", SAFE)
def test_of_every_dtype_that_holds_the_result(name: str) -> None:
    assert SAFE[name](torch.empty(0, dtype=DOUBLE)).dtype == DOUBLE


def test_sums_are_computed_in_the_dtype_that_is_given() -> None:
    for fn, expected in ((torch.sum, [1, 1]), (torch.prod, [0, -6]), (torch.cumsum, [[1, -2], [1, 1]])):
        assert fn(X, 0, out=torch.empty(0, dtype=torch.int64)).tolist() == expected
    assert torch.cumprod(X, 0, out=torch.empty(0, dtype=torch.int32)).tolist() == [[1, -2], [0, -6]]


def test_truth_is_written_into_bools_and_bytes() -> None:
    assert torch.all(X > -9, 0, out=torch.empty(0, dtype=torch.uint8)).tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="any only supports bool tensor for result, got: float"):
        torch.any(X, 0, out=torch.empty(0))
