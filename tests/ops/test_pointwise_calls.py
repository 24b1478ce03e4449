"""What is said of every function of one tensor, element by element, from the calls that reach every operator."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tools.calls import ACTIVATIONS, POINTWISE
from tools.replaying.cases import SPACE, runner

import rushlight as torch
from rushlight.autograd.gradcheck import GradcheckError

PLAIN = [(found[1], found[2]) for call in POINTWISE if (found := re.fullmatch(r"([TS])\.((?!frexp)\w+)\(x\)", call))]
OF_ONE = [
    call for call in (*POINTWISE, *ACTIVATIONS) if re.search(r"\bx\b", call) and not re.search(r"\b[a-wyzn]\b", call)
]
# Random, of several results, of fewer digits, or of a shape that elements with values alone do not have.
APART = {
    "x.to(T.float32)", "F.rrelu(x - 0.5, 0.1, 0.1, training=True)", "F.dropout(x, 1.0)",
    "T.fake_quantize_per_tensor_affine(x, 0.1, 2, 0, 8)", "T.fake_quantize_per_channel_affine(x, T.full((3,), 0.1), T.ones(3), 1, 0, 8)", "T.fake_quantize_per_tensor_affine(x, T.tensor(0.1), T.tensor(2), 0, 8)",
    "F.alpha_dropout(x, 1.0, True)", "T.frexp(x)", "T.view_as_complex(x.unflatten(-1, (2, 2)))",
}  # fmt: skip


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def function(space: str, name: str) -> Callable[..., Any]:
    return getattr(SPACE[space], name)  # type: ignore[no-any-return]


def alike(got: torch.Tensor, want: torch.Tensor) -> bool:
    return got.dtype is want.dtype and np.array_equal(got.float().numpy(), want.float().numpy(), equal_nan=True)


def test_the_calls_are_many() -> None:
    assert len(PLAIN) > 60 and len(OF_ONE) > 90


@pytest.mark.parametrize("size", [4, 5000])
def test_out_takes_the_same_values(size: int) -> None:
    x = torch.linspace(0.2, 0.9, size)
    for space, name in PLAIN:
        fn = function(space, name)
        want = fn(x)
        out = torch.empty(size, dtype=want.dtype)
        try:
            assert fn(x, out=out) is out, name
        except TypeError as error:
            assert "'out'" in str(error), name
        else:
            assert alike(out, want), name


@pytest.mark.parametrize("size", [4, 5000])
def test_in_place_forms_give_the_same_values(size: int) -> None:
    x = torch.linspace(0.2, 0.9, size)
    for space, name in PLAIN:
        if hasattr(torch.Tensor, f"{name}_"):
            want, y = function(space, name)(x), x.clone()
            assert getattr(y, f"{name}_")() is y, name
            assert alike(y, want.float()), name


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_rounded_once(dtype: torch.dtype) -> None:
    x = torch.tensor([0.25, 0.5, 0.75, 0.875], dtype=dtype)
    for space, name in PLAIN:
        fn = function(space, name)
        try:
            got = fn(x)
        except (RuntimeError, NotImplementedError) as error:
            assert "implemented" in str(error), name
            continue
        want = fn(x.float())
        assert alike(got, want.to(dtype) if want.is_floating_point() else want), name


def spread(call: str, turn: complex) -> torch.Tensor:
    """Numbers of many signs and sizes at which a function has values; of one that shapes anew, all or none."""
    draw, shape = np.random.default_rng(len(call)), (2, 3, 8)
    x = draw.uniform(0.2, 0.9, shape) * draw.choice([-1, 1], shape) * draw.choice([1, 2, 5], shape) * turn
    (out,) = runner(call, ["x"])(torch.from_numpy(x))
    there = np.isfinite(out.numpy())
    if there.all():
        return torch.from_numpy(x)
    assert there.any() and there.shape == shape
    return torch.from_numpy(x[there])


@pytest.mark.parametrize("turn", [1, 0.8 + 0.6j], ids=["real", "complex"])
@pytest.mark.parametrize("call", [call for call in OF_ONE if call not in APART])
def test_derivatives_where_signs_and_sizes_differ(call: str, turn: complex) -> None:
    """Of the first and second order, against differences."""
    run = runner(call, ["x"])

    def tracked(x: torch.Tensor) -> torch.Tensor:
        return run(x)[0]  # type: ignore[no-any-return]

    try:
        x = spread(call, turn).requires_grad_()
        if tracked(x).requires_grad:
            assert torch.autograd.gradcheck(tracked, (x,), fast_mode=True)
            assert torch.autograd.gradgradcheck(tracked, (x,), fast_mode=True)
    except NotImplementedError as error:
        assert turn != 1 or "the derivative of" in str(error)
    except (RuntimeError, TypeError, ValueError) as error:
        assert turn != 1 and not isinstance(error, GradcheckError), error
