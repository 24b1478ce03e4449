"""What gradcheck gives a function beside the derivative it looks at: undefined gradients, zero tangents, plain inputs."""

import pytest

import rushlight as torch
from rushlight.autograd import forward_ad, gradcheck, gradgradcheck
from rushlight.autograd.gradcheck import GradcheckError


def point(n=2):
    return torch.rand(n, dtype=torch.float64).add(0.5).requires_grad_()


class Doubled(torch.autograd.Function):
    """Twice its argument; what backward makes of its gradient is the class's own matter."""

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return None if g is None else g * 2


class Careless(Doubled):
    @staticmethod
    def backward(ctx, g):
        return g * 2


class Inventive(Doubled):
    @staticmethod
    def backward(ctx, g):
        return torch.ones(2, dtype=torch.float64) if g is None else g * 2


@pytest.mark.parametrize("after", [lambda y: y, torch.sum, lambda y: (y.sin(), y.sum())])
def test_a_lone_output_is_also_given_no_gradient(after):
    x = point()
    assert gradcheck(lambda x: after(Doubled.apply(x)), x)
    with pytest.raises(GradcheckError, match="Expected backward function to handle undefined output grads"):
        gradcheck(lambda x: after(Careless.apply(x)), x)
    with pytest.raises(GradcheckError, match="Expected all input grads to be undefined or zero"):
        gradcheck(lambda x: after(Inventive.apply(x)), x)
    assert gradcheck(lambda x: after(Careless.apply(x)), x, check_undefined_grad=False)


def test_what_goes_nowhere_is_not_looked_at():
    """A gradient for an input that asks for none, of an integral for its infinite bound, may be anything."""

    class Bounded(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, bound):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2, g.sum() * float("inf")

    bound = torch.tensor(float("inf"), dtype=torch.float64)
    assert gradcheck(lambda x: Bounded.apply(x, bound), point())


def test_behind_a_function_that_gives_zeros_gradients_are_defined():
    class Zeros(Doubled):
        @staticmethod
        def backward(ctx, g):
            return torch.zeros(2, dtype=torch.float64) if g is None else g * 2

    assert gradcheck(lambda x: Zeros.apply(Careless.apply(x)), point())


class Product(torch.autograd.Function):
    """A product whose jvp is the class's own matter."""

    @staticmethod
    def forward(x, y):
        return x * y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return (None, None) if g is None else (g * y, g * x)

    @classmethod
    def jvp(cls, ctx, tx, ty):
        return cls.tangent(*ctx.saved_tensors, tx, ty)


def right(x, y, tx, ty):
    return (0 if tx is None else tx * y) + (0 if ty is None else x * ty)


def test_every_input_has_a_tangent_in_forward_mode():
    class Right(Product):
        tangent = staticmethod(right)

    class Forgetful(Product):
        @staticmethod
        def tangent(x, y, tx, ty):  # right where there is one tangent alone
            return x * ty if tx is None else tx * y

    assert gradcheck(Right.apply, (point(), point()), check_forward_ad=True)
    with pytest.raises(
        GradcheckError, match="Jacobian computed with forward mode mismatch for output 0 with respect to input 1"
    ):
        gradcheck(Forgetful.apply, (point(), point()), check_forward_ad=True)


def test_an_input_without_a_tangent_counts_as_one_with_zeros():
    class Twice(Product):
        @staticmethod
        def tangent(x, y, tx, ty):
            return right(x, y, tx, ty) * (1 if tx is not None and ty is not None else 2)

    class Needy(Product):
        @staticmethod
        def tangent(x, y, tx, ty):
            return tx * y + x * ty

    with pytest.raises(GradcheckError, match="Expected undefined tangents to count as zeros"):
        gradcheck(Twice.apply, (point(), point()), check_forward_ad=True)
    with pytest.raises(GradcheckError, match="Expected forward mode to handle undefined tangents"):
        gradcheck(Needy.apply, (point(), point()), check_forward_ad=True)
    for made in (Twice, Needy):
        assert gradcheck(made.apply, (point(), point()), check_forward_ad=True, check_undefined_grad=False)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_in_forward_mode_inputs_do_not_require_grad(fast_mode):
    seen = set()

    def f(x, y):
        if forward_ad.unpack_dual(x).tangent is not None:
            seen.add((x.requires_grad, y.requires_grad, forward_ad.unpack_dual(y).tangent is not None))
        return x * y

    options = {"check_forward_ad": True, "check_undefined_grad": False, "fast_mode": fast_mode}
    assert gradcheck(f, (point(), point()), **options) and seen == {(False, False, True)}


def test_forward_over_reverse_still_finds_what_to_differentiate():
    assert gradgradcheck(lambda x, y: x.sin() * y, (point(), point()), check_fwd_over_rev=True)
    assert gradgradcheck(lambda x, y: x.sin() * y, (point(), point().detach()), check_fwd_over_rev=True)


class Shifted(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g + 1


class ShiftedAtZero(Shifted):
    @staticmethod
    def backward(ctx, g):
        return 2 * g if g.any() else g + 1


@pytest.mark.parametrize("fast_mode", [False, True])
def test_jacobians_are_compared_before_gradients_of_zero(fast_mode):
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradcheck(Shifted.apply, point(), fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match="backward not multiplied by grad_output"):
        gradcheck(ShiftedAtZero.apply, point(), fast_mode=fast_mode)


def test_what_differs_from_run_to_run_is_said_before_what_it_gives():
    class Drifting(Shifted):
        runs = 0

        @staticmethod
        def backward(ctx, g):
            Drifting.runs += 1
            return 2 * g * (1 + 0.1 * Drifting.runs)

    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(Drifting.apply, point())


CHANGES = {
    "shape": lambda x: x.repeat(2) if x[0] > 1 else x * 1,
    "dtype": lambda x: x.to(torch.complex128) if x[0] > 1 else x * 1,
}


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("options", [{}, {"fast_mode": True}, {"raise_exception": False}, {"check_forward_ad": True}])
def test_outputs_that_change_their_kind_raise_whatever_is_asked(what, options):
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    with pytest.raises(AssertionError, match=f"Expected `func` to return outputs with the same {what}"):
        gradcheck(CHANGES[what], x, **options)


@pytest.mark.parametrize("options", [{}, {"fast_mode": True}, {"raise_exception": False}])
@pytest.mark.parametrize("result", [lambda x: 3, lambda x: None, lambda x: (x.sum(), 3)])
def test_what_gives_no_tensor_is_not_taken_for_right(result, options):
    with pytest.raises(
        TypeError, match="gradcheck expects a function that returns a tensor or several, but it returned"
    ):
        gradcheck(result, point(), **options)


def test_second_order_without_backward_takes_no_checks_of_backward():
    assert gradgradcheck(
        torch.sin, point(), check_fwd_over_rev=True, check_rev_over_rev=False, check_undefined_grad=False
    )
    with pytest.raises(AssertionError, match="Setting check_undefined_grad=True requires check_rev_over_rev"):
        gradgradcheck(torch.sin, point(), check_fwd_over_rev=True, check_rev_over_rev=False)
    with pytest.raises(AssertionError, match="Setting check_batched_grad=True requires check_rev_over_rev"):
        gradgradcheck(torch.sin, point(), check_fwd_over_rev=True, check_rev_over_rev=False, check_undefined_grad=False,
                      check_batched_grad=True)  # fmt: skip


def test_what_looks_for_the_operator_at_fault_warns_of_nothing(recwarn):
    x = torch.ones(3, dtype=torch.float64, requires_grad=True)
    with pytest.raises(GradcheckError):
        gradcheck(lambda x: x * torch.rand(3), x)
    assert not [w for w in recwarn if "double precision" in str(w.message)]
