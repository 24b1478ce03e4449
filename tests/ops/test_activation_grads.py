"""Activations: values, derivatives, what they keep, what they refuse."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.ops.memory import peak_bytes, saved_bytes
from tests.ops.numeric import check_gradients

import rushlight as torch
import rushlight.nn.functional as F
from rushlight.kernels.native import loader

DRAW = np.random.default_rng(3)
AWAY = DRAW.choice([-1, 1], (3, 4)) * DRAW.uniform(0.05, 0.45, (3, 4)) * DRAW.choice([1, 3, 9], (3, 4))
WITH_OPTIONS: dict[str, Any] = {
    "leaky_relu rising": lambda x: F.leaky_relu(x, 2.5), "leaky_relu falling": lambda x: F.leaky_relu(x, -0.5),
    "elu alpha": lambda x: F.elu(x, 0.3), "elu falling": lambda x: F.elu(x, -0.7), "celu": lambda x: F.celu(x, 1.7),
    "threshold": lambda x: F.threshold(x, 0.1, 2.0), "softshrink": lambda x: F.softshrink(x, 0.2),
    "hardshrink of none": lambda x: F.hardshrink(x, -1.0), "rrelu": F.rrelu,
    "softplus beta": lambda x: F.softplus(x, 2.0, 5.0), "glu rows": lambda x: F.glu(x[:2], 0),
}  # fmt: skip


@pytest.mark.parametrize("name", WITH_OPTIONS)
def test_derivatives(name: str) -> None:
    check_gradients(WITH_OPTIONS[name], AWAY)


@pytest.mark.parametrize("shape", [(), (4,), (3, 1)])
def test_prelu_derivatives(shape: tuple[int, ...]) -> None:
    x = AWAY if not shape or shape == (4,) else DRAW.uniform(-2, 2, (2, 3, 2))
    check_gradients(lambda x, w: torch.prelu(x, w.reshape(-1) if w.ndim > 1 else w), x, DRAW.uniform(0.1, 1.5, shape))


def formula(name: str, x: float) -> float:
    """The definition, in Python's own arithmetic."""
    sigmoid = 1 / (1 + math.exp(-x))
    return {
        "relu": max(x, 0), "relu6": min(max(x, 0), 6), "leaky_relu": x if x > 0 else 0.01 * x,
        "elu": x if x > 0 else math.expm1(x), "celu": x if x > 0 else math.expm1(x), "hardtanh": min(max(x, -1), 1),
        "selu": 1.0507009873554805 * (x if x > 0 else 1.6732632423543772 * math.expm1(x)),
        "hardsigmoid": min(max(x + 3, 0), 6) / 6, "hardswish": x * min(max(x + 3, 0), 6) / 6,
        "hardshrink": 0 if abs(x) <= 0.5 else x, "softshrink": math.copysign(max(abs(x) - 0.5, 0), x),
        "gelu": x * (1 + math.erf(x / math.sqrt(2))) / 2, "silu": x * sigmoid,
        "mish": x * math.tanh(math.log1p(math.exp(x))), "softplus": math.log1p(math.exp(x)),
        "logsigmoid": math.log(sigmoid), "softsign": x / (1 + abs(x)), "tanhshrink": x - math.tanh(x),
    }[name]  # fmt: skip


NAMES = ("relu relu6 leaky_relu elu celu selu hardtanh hardsigmoid hardswish hardshrink softshrink gelu silu mish softplus "
         "logsigmoid softsign tanhshrink").split()  # fmt: skip


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", NAMES)
def test_values(name: str, dtype: str) -> None:
    points = [-7.0, -3.0, -0.5, -0.25, 0.0, 0.25, 0.5, 3.0, 6.0, 8.0]
    got = getattr(F, name)(torch.tensor(points, dtype=getattr(torch, dtype)))
    assert str(got.dtype) == f"torch.{dtype}"
    tol = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-6, "float64": 1e-14}[dtype]
    np.testing.assert_allclose(got.double().numpy(), [formula(name, x) for x in points], rtol=tol, atol=tol)


@pytest.mark.parametrize("name", NAMES)
def test_special_values_and_shapes(name: str) -> None:
    fn = getattr(F, name)
    assert math.isnan(fn(torch.tensor(math.nan)).item())
    assert fn(torch.tensor(0.5)).shape == ()
    assert fn(torch.zeros(0, 3)).shape == (0, 3)
    x = torch.tensor(AWAY)
    np.testing.assert_allclose(fn(x.t()).numpy(), fn(x).numpy().T, rtol=1e-14)
    assert not math.isnan(fn(torch.tensor(math.inf)).item()) or name == "tanhshrink" or name == "softsign"


@pytest.mark.parametrize("name", ["relu", "relu6", "leaky_relu", "elu", "celu", "selu", "hardtanh", "hardsigmoid",
                                  "hardswish", "silu", "mish"])  # fmt: skip
def test_in_place(name: str) -> None:
    fn = getattr(F, name)
    expected = torch.tensor(AWAY, requires_grad=True)
    fn(expected).backward(torch.tensor(AWAY))
    leaf = torch.tensor(AWAY, requires_grad=True)
    x = leaf * 1
    assert fn(x, inplace=True) is x
    np.testing.assert_array_equal(x.detach().numpy(), fn(expected).detach().numpy())
    x.backward(torch.tensor(AWAY))
    np.testing.assert_allclose(leaf.grad.numpy(), expected.grad.numpy(), rtol=1e-14)
    with pytest.raises(RuntimeError, match="leaf Variable"):
        fn(leaf, inplace=True)


@pytest.mark.skipif(not loader.tables(), reason="no native kernels here")
@pytest.mark.parametrize("name", ["relu", "relu6", "leaky_relu", "elu", "selu", "hardtanh", "hardsigmoid", "hardswish",
                                  "silu", "mish"])  # fmt: skip
def test_in_place_allocates_no_second_array(name: str) -> None:
    x = torch.ones(1 << 21)
    assert peak_bytes(lambda: getattr(F, name)(x, inplace=True)) < 0.25 * x.nbytes


@pytest.mark.parametrize("name", ["relu", "relu6", "leaky_relu", "elu", "celu", "selu", "hardtanh", "hardsigmoid"])
def test_rectifiers_share_what_the_next_layer_keeps(name: str) -> None:
    x, w = torch.ones(4, 8, requires_grad=True), torch.ones(8, 8, requires_grad=True)
    assert saved_bytes(lambda x, w: F.linear(getattr(F, name)(x), w), x, w) == x.nbytes


@pytest.mark.parametrize("name", ["gelu", "silu", "mish", "softplus", "logsigmoid", "softsign", "tanhshrink", "glu",
                                  "hardswish"])  # fmt: skip
def test_smooth_activations_keep_their_input_alone(name: str) -> None:
    x = torch.ones(4, 8, requires_grad=True)
    assert saved_bytes(getattr(F, name), x) == 0


def test_refusals_name_operator_argument_and_dtype() -> None:
    with pytest.raises(
        NotImplementedError, match=r"gelu\(\): argument 'input' must have a floating-point dtype.*int64"
    ):
        F.gelu(torch.tensor([1]))
    with pytest.raises(RuntimeError, match="bool"):
        F.relu(torch.tensor([True]))
    with pytest.raises(RuntimeError, match=r"approximate argument must be either none or tanh, got 'fast'"):
        F.gelu(torch.tensor([1.0]), approximate="fast")
    with pytest.raises(RuntimeError, match="Halving dimension must be even, but dimension 0 is size 3"):
        F.glu(torch.zeros(3))
    with pytest.raises(
        RuntimeError, match=r"lambda must be in range \[0, 3.40282e\+38\] for input dtype Float, but found -1"
    ):
        F.softshrink(torch.zeros(3), -1)
    with pytest.raises(ValueError, match="min_val=2 and max_val=1"):
        F.hardtanh(torch.zeros(3), 2, 1)
    with pytest.raises(RuntimeError, match="alpha cannot be 0"):
        F.celu(torch.zeros(3), 0)
    with pytest.raises(RuntimeError, match="parameter numbers = 2 and channel size = 3"):
        torch.prelu(torch.zeros(1, 3), torch.zeros(2))


def test_integers_stay_integers_where_pytorch_keeps_them() -> None:
    for fn in (F.relu, F.relu6, F.hardtanh):
        assert fn(torch.tensor([-7, 7])).dtype == torch.int64
    assert F.softsign(torch.tensor([3])).dtype == torch.float32


def test_second_derivatives_in_half_precision_do_not_overflow() -> None:
    x = torch.tensor([300.0, -300.0], dtype=torch.float16, requires_grad=True)
    (g,) = torch.autograd.grad(F.gelu(x, approximate="tanh").sum(), x, create_graph=True)
    np.testing.assert_array_equal(g.detach().float().numpy(), [1, 0])


def test_rrelu_draws_from_the_generator() -> None:
    x = -torch.ones(1000)
    torch.manual_seed(5)
    a = F.rrelu(x, 0.1, 0.3, training=True)
    torch.manual_seed(5)
    assert torch.equal(a, F.rrelu(x, 0.1, 0.3, training=True))
    values = -a.numpy()
    assert 0.1 <= values.min() < 0.11 and 0.29 < values.max() <= 0.3
    check_gradients(lambda x: (torch.manual_seed(1), F.rrelu(x, 0.1, 0.3, True))[1], AWAY)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("fn", [torch.nn.functional.elu, torch.selu, torch.celu])
def test_exponential_units_have_no_curve_at_zero(fn, dtype):
    x = torch.zeros(1, dtype=dtype, requires_grad=True)
    (g,) = torch.autograd.grad(fn(x).sum(), x, create_graph=True)
    assert torch.autograd.grad(g.sum(), x)[0].item() == 0


@pytest.mark.parametrize("name", ["relu", "hardtanh", "leaky_relu", "rrelu", "elu", "celu", "selu"])
@pytest.mark.parametrize("dtype", [torch.complex64, torch.bool])
def test_in_place_forms_refuse_what_the_others_do(name: str, dtype: Any) -> None:
    x = torch.ones(3, dtype=dtype)
    for fn in (getattr(F, name), getattr(F, f"{name}_")):
        with pytest.raises(RuntimeError, match="not implemented for"):  # NotImplementedError is one
            fn(x)
    assert torch.equal(x, torch.ones(3, dtype=dtype))
