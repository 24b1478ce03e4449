"""Reductions, scans and order give PyTorch's values, dtypes, gradients and refusals, special values included."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

INF, NAN = math.inf, math.nan
VALUES = {
    "ties": [1.0, 3.0, 3.0, -2.0], "zeros": [0.0, 2.0, 0.0, 3.0], "all zero": [0.0, 0.0, 0.0], "one": [2.0],
    "nan": [1.0, NAN, 3.0], "inf": [INF, 1.0, 2.0], "minus inf": [-INF, 1.0, -INF], "both": [INF, -INF, 0.0],
    "empty": [], "large": [3e38, 3e38, 1.0], "small": [1e-30, -1e-30, 1e-38],
}  # fmt: skip
CALLS = [
    "x.sum()", "x.mean()", "x.prod()", "x.max()", "x.min()", "x.amax()", "x.amin(0)", "x.var()", "x.std(0)",
    "x.var(correction=0)", "x.norm()", "x.norm(1)", "x.norm(math.inf)", "x.norm(-math.inf)", "x.norm(0.5)", "x.norm(3)",
    "x.logsumexp(0)", "x.cumsum(0)", "x.cumprod(0)", "x.cummax(0).values", "x.cummin(0).values", "x.median()",
    "x.median(0).values", "x.nanmedian()", "x.nansum()", "x.nanmean()", "x.sort().values",
    "x.sort(descending=True).values", "x.argmax()", "x.argmin(0)", "x.max(0).values", "x.min(0).values", "x.any()",
    "x.all()", "x.count_nonzero()", "T.unique(x)", "x.quantile(0.4)", "x.nanquantile(0.4)", "x.topk(1).values",
    "x.kthvalue(1).values", "T.aminmax(x).max", "T.aminmax(x, dim=0).min", "x.diff()", "T.trapezoid(x)", "x.histc(3)",
    "T.histogram(x, 2).hist", "x.isnan().sum()", "x.mode().values", "T.var_mean(x)[1]",
    "x.unsqueeze(0).renorm(2, 0, 1.0)",
]  # fmt: skip
FREE = {  # what PyTorch leaves open, or this project answers better: (call, values)
    ("x.cumprod(0)", "both"), ("x.cumprod(0)", "inf"), ("x.logsumexp(0)", "both"), ("T.unique(x)", "nan"),
    ("x.mode().values", "nan"), ("T.trapezoid(x)", "inf"), ("T.trapezoid(x)", "minus inf"), ("T.var_mean(x)[1]", "inf"),
    ("T.var_mean(x)[1]", "minus inf"), ("x.kthvalue(1).values", "zeros"), ("x.kthvalue(1).values", "all zero"),
    ("x.kthvalue(1).values", "minus inf"), ("x.unsqueeze(0).renorm(2, 0, 1.0)", "large"),
}  # fmt: skip


def outcome(t: Any, call: str, values: list[float], dtype: str) -> Any:
    """The result, dtype and gradient of a call, or the class of its error."""
    x = t.tensor(values, dtype=getattr(t, dtype), requires_grad=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            y = eval(call, {"T": t, "x": x, "math": math})
        except (RuntimeError, IndexError, ValueError, TypeError) as error:
            kind = (
                IndexError
                if isinstance(error, IndexError)
                else TypeError
                if isinstance(error, TypeError)
                else RuntimeError
            )
            return kind
        grad: Any = None
        if y.requires_grad and y.numel():
            try:
                (grad,) = t.autograd.grad(y.sum(), x, allow_unused=True)
            except RuntimeError as error:  # NotImplementedError is one
                assert "not implemented" in str(error)
                grad = "none"
    warned = any(issubclass(w.category, UserWarning) and "freedom" in str(w.message) for w in caught)
    return (
        np.asarray(y.detach()),
        str(y.dtype),
        grad if grad is None or isinstance(grad, str) else np.asarray(grad),
        warned,
    )


def cases() -> Iterator[Any]:
    for call in CALLS:
        for name in VALUES:
            if (call, name) not in FREE:
                yield pytest.param(call, name, id=f"{call}-{name}")


@pytest.mark.parametrize(("call", "name"), list(cases()))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_agrees(call: str, name: str) -> None:
    theirs, ours = (outcome(t, call, VALUES[name], "float64") for t in (torch, rushlight))
    if isinstance(theirs, type) or isinstance(ours, type):
        assert ours == theirs
        return
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-12)
    assert ours[1] == theirs[1] and ours[3] == theirs[3]
    if isinstance(theirs[2], str):
        assert ours[2] == theirs[2]
    elif theirs[2] is not None and ours[2] is not None:
        np.testing.assert_allclose(ours[2], theirs[2], rtol=1e-8)


CREATE = [
    "T.tensor(2**63)", "T.tensor(['a'])", "T.tensor('a')", "T.tensor(None)", "T.tensor([[1, 2], [3]])",
    "T.tensor([1, [2]])",
    "T.tensor({1: 2})", "T.tensor(300, dtype=T.uint8)", "T.tensor(1j, dtype=T.float32)",
    "T.tensor([1], requires_grad=True)",
    "T.tensor(1.0, device='cuda')", "T.zeros(-1)", "T.zeros(2.0)", "T.zeros()", "T.zeros((2,), (3,))", "T.full(2, 3)",
    "T.arange(5, 1)", "T.arange(0, 1, 0)", "T.linspace(0, 1, -1)", "T.linspace(T.tensor([0.0]), 1, 3)", "T.eye(-1)",
    "T.randint(5, 5, (2,))", "T.randint(1, 5, 2)", "T.from_numpy([1])", "T.ones(2).to('cuda')", "T.ones(2).item()",
    "T.ones(2).numpy().dtype.name", "T.ones(2).type('foo')", "T.randperm(-1)", "T.ones(2).normal_(0, -1)",
    "T.multinomial(T.ones(3), 4)", "T.bernoulli(T.ones(2) * 2)", "T.ones(3).topk(5)", "T.ones(3).kthvalue(4)",
    "T.ones(2).sum(2)", "T.ones(2, 2).sum((0, 0))", "T.ones(2).long().mean()", "T.ones(2).long().var()",
    "T.bincount(T.tensor([-1]))", "T.searchsorted(T.ones(3), T.ones(1).long())", "T.ones(2).quantile(2.0)",
    "T.tril_indices(-1, 2)", "T.empty_strided((2,), (1, 2))", "T.frombuffer(bytearray(3), dtype=T.int16)",
    "T.complex(T.ones(2), T.ones(2).double())", "T.ones(2).resize_(-2)", "float(T.ones(2))", "[1, 2][T.tensor(1.0)]",
    "T.Tensor(2.5)", "T.LongTensor(T.ones(2))", "T.ones(3).copy_(T.ones(2))", "T.ones(3).fill_(T.ones(2))",
]  # fmt: skip


if torch.version.cuda is not None:  # a PyTorch that is built for CUDA misses the driver, and not CUDA
    CREATE = [call for call in CREATE if "cuda" not in call]


@pytest.mark.parametrize("call", CREATE)
def test_refusals_are_of_the_same_class(call: str) -> None:
    found = []
    for t in (torch, rushlight):
        try:
            found.append(repr(eval(call, {"T": t})))
        except Exception as error:
            found.append(RuntimeError if isinstance(error, (ValueError, RuntimeError)) else type(error))
    assert found[1] == found[0]
