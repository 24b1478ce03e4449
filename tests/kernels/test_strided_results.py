"""Results that are put into strided memory (`out=`, in place) are those of a new tensor, whatever the strides of both are.

NumPy 2.4's negative puts them elsewhere where input and result have strides that its vector loop does not expect.
"""

from typing import Any

import numpy as np
import pytest
from tests.ops.declared import unary

import rushlight as torch

UNARY = ["round", *(op.name for op in unary() if op.takes_out and not set(op.refuse) & set("fi"))]
CHANGED = [
    op.writes
    for op in unary()
    if op.promote in ("arith", "float") and hasattr(torch.Tensor, op.writes) and "f" not in op.refuse
]
BINARY = (
    "add",
    "sub",
    "mul",
    "div",
    "maximum",
    "minimum",
    "pow",
    "atan2",
    "eq",
    "lt",
    "logical_and",
    "fmod",
    "floor_divide",
)
WIDTH = 19


def inputs(dtype: Any, step: int, count: int) -> list[Any]:
    """Tensors (4, WIDTH) whose last stride is `step` elements."""
    rng = np.random.default_rng(step)
    return [torch.from_numpy((rng.random((4, WIDTH * step)) * 3 + 1).astype(dtype))[:, ::step] for _ in range(count)]


def results(like: Any) -> list[Any]:
    """Places for a result at strides of their own, with what lies between them."""
    found = []
    for step in (1, 2, 3, 4, 8, 16):
        whole = torch.zeros(4, WIDTH * step, dtype=like.dtype)
        turned = torch.zeros(WIDTH, 4 * step, dtype=like.dtype)
        found += [(whole[:, ::step], whole), (turned[:, ::step].t(), turned)]
    return found


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8"])
@pytest.mark.parametrize(("names", "count"), [(UNARY, 1), (BINARY, 2)])
def test_results_in_strided_memory(names: Any, count: int, dtype: str) -> None:
    for name in names:
        for step in (1, 2, 3, 4, 8, 16):
            given = inputs(dtype, step, count)
            want = getattr(torch, name)(*(t.clone() for t in given))
            for out, whole in results(want):
                getattr(torch, name)(*given, out=out)
                np.testing.assert_allclose(
                    out.numpy(), want.numpy(), rtol=1e-6, err_msg=f"{name} {step} {out.stride()}"
                )
                out.zero_()
                assert not bool(whole.any()), f"{name} wrote between the elements of its result"


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", CHANGED)
def test_strided_tensors_changed_in_place(name: str, dtype: str) -> None:
    for step in (1, 2, 3, 4, 8, 16):
        (x,) = inputs(dtype, step, 1)
        want = getattr(x.clone(), name)()
        getattr(x, name)()
        np.testing.assert_allclose(x.numpy(), want.numpy(), rtol=1e-6)
