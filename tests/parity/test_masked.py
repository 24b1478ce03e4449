"""torch.masked: values, dtypes, gradients and refusals are PyTorch's, over dimensions, masks and dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]
RNG = np.random.default_rng(0)
NUMBERS, MASK = RNG.standard_normal((3, 4, 5)).astype(np.float32), RNG.random((3, 4, 5)) > 0.4
MASK[0, 0] = False
MASKS = {"none": None, "whole": MASK, "of the last": MASK[0], "of columns": MASK[:, :1], "of rows": MASK[:, :, :1]}
REDUCED = ("sum", "prod", "mean", "amax", "amin", "norm", "var", "std", "logsumexp")
ALONG = ("softmax", "log_softmax", "softmin", "cumsum", "cumprod", "argmax", "argmin", "median")


def reduced(name: str, dim: Any, keepdim: bool) -> Callable[..., Any]:
    def call(t: Any, x: Any, mask: Any) -> Any:
        more = {"norm": (2, dim), "var": (dim, False), "std": (dim, False)}.get(name, (dim,))
        return getattr(t.masked, name)(x, *more, keepdim=keepdim, mask=mask)

    return call


def along(name: str, dim: int) -> Callable[..., Any]:
    return lambda t, x, mask: getattr(t.masked, name)(x, dim, mask=mask)


CASES = {
    f"{n} {d} {k}": reduced(n, d, k)
    for n in REDUCED
    for d in (None, 0, -1, (0, 2), ())
    for k in (False, True)
    if not (n == "logsumexp" and d is None)
}
CASES |= {f"{n} {d}": along(n, d) for n in ALONG for d in (0, -1)}
CASES |= {f"norm of order {p}": lambda t, x, mask, p=p: t.masked.norm(x, p, 1, mask=mask) for p in (1, 3, 2.5, np.inf)}  # type: ignore[misc]
CASES["normalize"] = lambda t, x, mask: t.masked.normalize(x, 2.0, 1, mask=mask)
CASES["wider"] = lambda t, x, mask: t.masked.sum(x, 1, dtype=t.float64, mask=mask)
CASES["logaddexp"] = lambda t, x, mask: t.masked.logaddexp(x, x * 2, input_mask=mask, other_mask=mask)


def found(t: Any, case: str, dtype: str, mask: Any) -> Any:
    """The dtype, the shape, the numbers and the gradient; None where it is refused."""
    x = t.from_numpy(NUMBERS).to(getattr(t, dtype))
    if dtype.startswith("float"):
        x.requires_grad_()
    try:
        y = CASES[case](t, x, mask if mask is None else t.from_numpy(mask))
    except (RuntimeError, TypeError, ValueError):
        return None
    arrays = [y.detach().double().numpy()]
    if y.requires_grad:
        (y * 1.3).sum().backward()
        arrays.append(x.grad.double().numpy())
    return str(y.dtype), tuple(y.shape), arrays


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32"])
@pytest.mark.parametrize("case", CASES)
def test_what_is_left_out_changes_nothing_as_in_pytorch(case: str, dtype: str) -> None:
    for mask in MASKS.values():
        theirs, ours = found(torch, case, dtype, mask), found(rushlight, case, dtype, mask)
        assert (ours is None) == (theirs is None)
        if ours is None:
            continue
        assert ours[:2] == theirs[:2]
        close = 2e-3 if dtype == "float16" else 1e-5
        for a, b in zip(ours[2], theirs[2], strict=True):
            np.testing.assert_allclose(a, b, rtol=close, atol=close)


def test_extremes_of_bools_are_there_without_a_mask() -> None:
    for name in ("amax", "amin"):
        found = [
            getattr(t.masked, name)(t.tensor([[True, False], [True, True]]), 1).tolist() for t in (torch, rushlight)
        ]
        assert found[0] == found[1]
