"""gradcheck and gradgradcheck: what they accept, what they refuse, and how they say what is wrong."""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any

import numpy as np
import pytest
from tests.leaves import leaf

import rushlight as torch
from rushlight.autograd import gradcheck, gradgradcheck
from rushlight.autograd.gradcheck import GradcheckError
from rushlight.dispatch.declare import OPS


class Square(torch.autograd.Function):
    """x**2, with whatever faults a subclass plants."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * 2 * x

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        (x,) = ctx.saved_tensors
        return t * 2 * x


class WrongGradient(Square):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * 3 * x


class WrongTangent(Square):
    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        (x,) = ctx.saved_tensors
        return t * 3 * x


class WrongSecondOrder(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * 3 * x * x.detach()


def test_names_are_where_pytorch_has_them() -> None:
    module = importlib.import_module("rushlight.autograd.gradcheck")
    assert torch.autograd.gradcheck is module.gradcheck
    assert torch.autograd.gradgradcheck is module.gradgradcheck
    assert issubclass(module.GradcheckError, RuntimeError)


@pytest.mark.parity
def test_signatures_are_those_of_pytorch() -> None:
    pt = pytest.importorskip("torch").autograd
    for name in ("gradcheck", "gradgradcheck"):
        ours, theirs = (inspect.signature(getattr(lib, name)).parameters for lib in (torch.autograd, pt))
        assert list(ours) == list(theirs)
        assert [(p.kind, p.default) for p in ours.values()] == [(p.kind, p.default) for p in theirs.values()]


@pytest.mark.parametrize("fast_mode", [False, True])
def test_right_derivatives_pass(fast_mode: bool) -> None:
    x, z = leaf(0.3, 0.7), leaf(1 + 2j, 3 - 1j, dtype=torch.complex128)
    assert gradcheck(torch.sin, x, fast_mode=fast_mode, check_forward_ad=True)
    assert gradcheck(lambda a, b: (a * b, a @ b), [x, leaf(1.0, 2.0)], fast_mode=fast_mode, check_forward_ad=True)
    assert gradcheck(lambda a: (a.abs(), a.angle(), a * a.conj(), torch.view_as_real(a)), z, fast_mode=fast_mode,
                     check_forward_ad=True)  # fmt: skip
    assert gradcheck(lambda a: torch.complex(a, a * 2).exp(), x, fast_mode=fast_mode, check_forward_ad=True)
    assert gradgradcheck(torch.sin, x, fast_mode=fast_mode, check_fwd_over_rev=True)
    assert gradgradcheck(lambda a: a.abs(), z, fast_mode=fast_mode, check_fwd_over_rev=True)
    assert gradcheck(Square.apply, x, check_forward_ad=True, fast_mode=fast_mode)


def test_what_is_checked_of_the_arguments() -> None:
    x = leaf(0.3)
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(torch.sin, x.detach())
    with pytest.raises(AssertionError, match="at least one of check_forward_ad or check_backward_ad"):
        gradcheck(torch.sin, x, check_backward_ad=False)
    with pytest.raises(AssertionError, match="check_batched_grad=True requires check_backward_ad"):
        gradcheck(torch.sin, x, check_backward_ad=False, check_forward_ad=True, check_batched_grad=True)
    with pytest.raises(AssertionError, match="check_batched_forward_grad=True requires check_forward_ad"):
        gradcheck(torch.sin, x, check_batched_forward_grad=True)
    with pytest.raises(AssertionError, match="check_rev_over_rev"):
        gradgradcheck(torch.sin, x, check_rev_over_rev=False)
    with pytest.raises(RuntimeError, match="The 0th input has a dimension with stride 0"):
        gradcheck(torch.sin, torch.ones(1, dtype=torch.float64).expand(3).requires_grad_())
    with pytest.raises(TypeError):
        gradcheck(torch.sin, x, 1e-6)


def test_single_precision_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="Input #0 requires gradient and is not a double precision"):
        assert gradcheck(torch.sin, leaf(0.3, dtype=torch.float32), eps=1e-2, atol=1e-2, rtol=1e-2)


def test_the_message_shows_both_jacobians_and_the_place() -> None:
    with pytest.raises(GradcheckError) as found:
        gradcheck(lambda a, b: (a * 2, WrongGradient.apply(b)), (leaf(1.0, 2.0), leaf(3.0, 4.0)))
    text = str(found.value)
    assert "Jacobian mismatch for output 1 with respect to input 1" in text
    assert "numerical:tensor([[6.0000, 0.0000],\n        [0.0000, 8.0000]], dtype=torch.float64)" in text
    assert "analytical:tensor([[ 9.,  0.],\n        [ 0., 12.]], dtype=torch.float64)" in text
    assert "element [1] of output 1 and element [1] of input 1: numerical 8, analytical 12" in text
    assert re.search(r"suspect are the custom functions, WrongGradient \(called at .*test_gradcheck.py:\d+\)", text)


def test_complex_outputs_name_the_part() -> None:
    z = leaf(1 + 2j, dtype=torch.complex128)
    with pytest.raises(GradcheckError, match="While considering the imaginary part of complex outputs only"):
        gradcheck(WrongGradient.apply, z)
    with pytest.raises(GradcheckError, match="Jacobian computed with forward mode mismatch"):
        gradcheck(WrongTangent.apply, z, check_forward_ad=True, check_backward_ad=False)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_planted_faults_are_found_and_named(fast_mode: bool) -> None:
    x = leaf(1.0, 2.0)
    options = {"fast_mode": fast_mode}
    with pytest.raises(GradcheckError, match=r"(?s)Jacobian mismatch for output 0.*WrongGradient"):
        gradcheck(WrongGradient.apply, x, **options)
    with pytest.raises(GradcheckError, match=r"(?s)computed with forward mode.*WrongTangent"):
        gradcheck(WrongTangent.apply, x, check_forward_ad=True, **options)
    assert gradcheck(WrongSecondOrder.apply, x, **options)
    with pytest.raises(GradcheckError, match=r"(?s)output 0 with respect to input 0.*WrongSecondOrder"):
        gradgradcheck(WrongSecondOrder.apply, x, **options)
    assert gradcheck(WrongGradient.apply, x, raise_exception=False, **options) is False
    assert gradgradcheck(WrongSecondOrder.apply, x, raise_exception=False, **options) is False


def deep(x: Any) -> Any:
    return (x * 2).sin().tanh().exp().sum()


def plant(monkeypatch: pytest.MonkeyPatch, name: str, formula: Any) -> None:
    """Replace the gradient formula of an operator, compiled plans included."""
    op = OPS[name]
    monkeypatch.setattr(op.formulas[0], "fn", formula)
    monkeypatch.setattr(op.formulas[0], "raw", None)
    monkeypatch.setitem(vars(op), "inline", {})
    monkeypatch.setitem(vars(op), "plans", {})


def test_the_operator_at_fault_is_found_deep_in_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, "tanh", lambda g, out: g * (1 - out))
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):  # off the fast paths, which keep formulas
        with pytest.raises(GradcheckError, match=r"(?s)At fault is the operator tanh, called at .*test_gradcheck.py:\d+: its own "
                                                 "gradient is wrong"):  # fmt: skip
            gradcheck(deep, leaf(0.2, 0.4))
        with pytest.raises(GradcheckError, match=r"(?s)At fault is the operator tanh, .*its own tangent is wrong"):
            gradcheck(deep, leaf(0.2, 0.4), check_backward_ad=False, check_forward_ad=True)


def test_a_formula_that_is_wrong_in_second_order_only_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, "tanh", lambda g, out: g * (1 - out * (out.detach() if hasattr(out, "detach") else out)))
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        assert gradcheck(deep, leaf(0.2, 0.4))
        with pytest.raises(
            GradcheckError, match=r"(?s)the operator tanh, called at .*its own second derivative is wrong"
        ):
            gradgradcheck(deep, leaf(0.2, 0.4))


def test_fast_mode_tells_the_jacobians_too() -> None:
    with pytest.raises(
        GradcheckError, match=r"(?s)computed in fast mode.*Numerical:.*Analytical:.*max per-element difference"
    ):
        gradcheck(WrongGradient.apply, leaf(1.0, 2.0), fast_mode=True)


class Nondeterministic(torch.autograd.Function):
    runs = 0

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        Nondeterministic.runs += 1
        return g * (2 + Nondeterministic.runs * 1e-9)


def test_backwards_that_differ_need_a_tolerance() -> None:
    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(Nondeterministic.apply, leaf(1.0))
    assert gradcheck(Nondeterministic.apply, leaf(1.0), nondet_tol=1e-6)


class Additive(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2 if g.any() else g + 1


def test_gradients_are_multiplied_by_those_of_the_outputs() -> None:
    with pytest.raises(GradcheckError, match="backward not multiplied by grad_output"):
        gradcheck(Additive.apply, leaf(1.0))


class NeedsBoth(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx: Any, g: Any, h: Any) -> Any:
        return g * 2 if h is None else g * 2 + h * 3


def test_outputs_without_a_gradient_count_as_zeros() -> None:
    with pytest.raises((GradcheckError, TypeError)):
        gradcheck(NeedsBoth.apply, leaf(1.0))


class WrongSize(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return torch.ones(7, dtype=torch.float64)


def test_other_errors_are_not_swallowed() -> None:
    with pytest.raises(RuntimeError, match="shape"):
        gradcheck(WrongSize.apply, leaf(1.0, 2.0), raise_exception=False)
    with pytest.raises(ZeroDivisionError):
        gradcheck(lambda x: 1 / 0, leaf(1.0))


def test_functions_without_gradients_may_not_depend_on_inputs() -> None:
    assert gradcheck(lambda x: x > 1, leaf(0.5))
    with pytest.raises(GradcheckError, match="Numerical gradient for function expected to be zero"):
        gradcheck(lambda x: x.detach() * 2, leaf(0.5))
    assert gradcheck(lambda x: (x.argmax(), x * 2), leaf(0.5, 0.7))


def test_batched_checks() -> None:
    x = leaf(0.3, 0.7)
    assert gradcheck(lambda a: (a.sin(), a.sum()), x, check_batched_grad=True, check_forward_ad=True,
                     check_batched_forward_grad=True)  # fmt: skip
    assert gradgradcheck(torch.exp, x, check_batched_grad=True)


class NotBatched(Square):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return torch.from_numpy(np.asarray(g.detach().numpy() * 2 * x.detach().numpy()))


def test_what_does_not_run_inside_vmap_is_said() -> None:
    with pytest.raises(GradcheckError, match="check_batched_grad=True"):
        gradcheck(NotBatched.apply, leaf(0.3, 0.7), check_batched_grad=True)


def test_gradients_of_outputs_may_be_given() -> None:
    x = leaf(0.3, 0.7)
    assert gradgradcheck(torch.sin, x, leaf(1.0, 2.0))
    assert gradgradcheck(torch.sin, (x,), (torch.ones(2, dtype=torch.float64),))
    assert gradgradcheck(torch.sin, x, gen_non_contig_grad_outputs=True)


def test_inputs_of_any_layout_and_size_are_restored() -> None:
    base = torch.rand(3, 4, dtype=torch.float64)
    x = base.t()[1:].requires_grad_()
    before = base.numpy().copy()
    assert gradcheck(lambda a: a.exp(), x)
    assert np.array_equal(base.numpy(), before)
    assert gradcheck(torch.sin, torch.zeros(0, 3, dtype=torch.float64, requires_grad=True))
    assert gradcheck(lambda a, b: a * b, (leaf(2.0),) * 2)


def test_dtypes_of_gradients() -> None:
    assert gradcheck(lambda a, b: a * b, (leaf(2.0), leaf(1j, dtype=torch.complex128)), check_grad_dtypes=True)
