"""The keyword `out` belongs to the forms of functions that have it in PyTorch: others refuse it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rushlight as torch

X, MASK = torch.tensor([[1.5, -2.0], [0.5, 3.0]]), torch.tensor([[True, False], [False, True]])
F = torch.nn.functional

WITHOUT: dict[str, Callable[..., Any]] = {
    "isnan": lambda **o: torch.isnan(X, **o),
    "isinf": lambda **o: torch.isinf(X, **o),
    "isfinite": lambda **o: torch.isfinite(X, **o),
    "isreal": lambda **o: torch.isreal(X, **o),
    "relu": lambda **o: torch.relu(X, **o),
    "rsub": lambda **o: torch.rsub(X, 1, **o),
    "softsign": lambda **o: F.softsign(X, **o),
    "tanhshrink": lambda **o: F.tanhshrink(X, **o),
    "masked_fill": lambda **o: torch.masked_fill(X, MASK, 0.0, **o),
    "masked_scatter": lambda **o: torch.masked_scatter(X, MASK, X, **o),
    "index_fill": lambda **o: torch.index_fill(X, 0, torch.tensor([0]), 1.0, **o),
    "argwhere": lambda **o: torch.argwhere(X, **o),
    "nonzero": lambda **o: torch.nonzero(X, as_tuple=True, **o),
    "constant_pad_nd": lambda **o: torch.constant_pad_nd(X, (1, 1), **o),
    "view_as_complex": lambda **o: torch.view_as_complex(X, **o),
    "view_as_real": lambda **o: torch.view_as_real(torch.complex(X, X), **o),
    "sum": lambda **o: torch.sum(X, **o),
    "prod": lambda **o: torch.prod(X, **o),
    "median": lambda **o: torch.median(X, **o),
    "nanmedian": lambda **o: torch.nanmedian(X, **o),
    "var": lambda **o: torch.var(X, False, **o),
    "std": lambda **o: torch.std(X, unbiased=False, **o),
    "argsort": lambda **o: torch.argsort(X, **o),
}
WITH: dict[str, Callable[..., Any]] = {
    "sum": lambda **o: torch.sum(X, None, **o),
    "sum of no dimensions": lambda **o: torch.sum(X, dim=(), **o),
    "sum by axis": lambda **o: torch.sum(X, axis=0, **o),
    "prod": lambda **o: torch.prod(X, 0, **o),
    "median": lambda **o: torch.median(X, dim=0, **o),
    "var": lambda **o: torch.var(X, **o),
    "std": lambda **o: torch.std(X, None, unbiased=False, **o),
    "std of a dimension": lambda **o: torch.std(X, 0, False, **o),
    "nonzero": lambda **o: torch.nonzero(X, as_tuple=False, **o),
    "argsort": lambda **o: torch.argsort(X, stable=True, **o),
    "native_batch_norm": lambda **o: torch.native_batch_norm(X, None, None, None, None, True, 0.1, 1e-5, **o),
    "_native_batch_norm_legit": lambda **o: torch._native_batch_norm_legit(X, None, None, True, 0.1, 1e-5, **o),
    "_chunk_cat": lambda **o: torch._chunk_cat([X], 0, 2, **o),
    "aten.isnan": lambda **o: torch.ops.aten.isnan.out(X, **o),
    "aten.masked_fill": lambda **o: torch.ops.aten.masked_fill.Scalar_out(X, MASK, 0.0, **o),
    "aten.silu": lambda **o: torch.ops.aten.silu.out(X, **o),
}


def empty(result: Any) -> Any:
    """What `out` is to be for a result."""
    return torch.empty(0, dtype=result.dtype) if isinstance(result, torch.Tensor) else tuple(map(empty, result))


@pytest.mark.parametrize("name", WITHOUT)
def test_a_form_without_out_refuses_it(name: str) -> None:
    run = WITHOUT[name]
    with pytest.raises(TypeError, match=rf"{name}\(\) got an unexpected keyword argument 'out'"):
        run(out=empty(run()))


@pytest.mark.parametrize("name", WITH)
def test_a_form_with_out_writes_its_result_there(name: str) -> None:
    run = WITH[name]
    wanted = run()
    out = empty(wanted)
    run(out=out)
    pairs = [(out, wanted)] if isinstance(out, torch.Tensor) else zip(out, wanted, strict=True)
    assert all(torch.equal(found, each) for found, each in pairs)
