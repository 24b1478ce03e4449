"""Forward mode: dual tensors through operators, views, changes in place, graphs and custom functions."""

from __future__ import annotations

import gc
import math
from typing import Any

import pytest

import rushlight as torch
import rushlight.autograd.forward_ad as fwd


def T(*values: float) -> Any:
    return torch.tensor(values, dtype=torch.float64)


def dual(values: Any, tangents: Any) -> Any:
    return fwd.make_dual(torch.tensor(values, dtype=torch.float64), torch.tensor(tangents, dtype=torch.float64))


def tangent(x: Any) -> Any:
    t = fwd.unpack_dual(x).tangent
    return None if t is None else t.tolist()


@pytest.fixture
def level() -> Any:
    with fwd.dual_level() as made:
        yield made


# Making and taking apart -------------------------------------------------------------------------------------------------


def test_nothing_is_dual_outside_of_levels() -> None:
    with pytest.raises(RuntimeError, match="no level exists, make sure to enter_dual_level"):
        fwd.make_dual(T(1.0), T(1.0))
    x = T(1.0)
    assert fwd.unpack_dual(x) == (x, None)
    with pytest.raises(RuntimeError, match="exit a forward AD level"):
        fwd.exit_dual_level()


def test_what_make_dual_refuses(level: Any) -> None:
    with pytest.raises(RuntimeError, match="different size than that of the original Tensor"):
        fwd.make_dual(T(1.0), T(1.0, 2.0))
    with pytest.raises(ValueError, match="Expected primal to be floating point or complex, but got: torch"):
        fwd.make_dual(torch.tensor([1]), T(1.0))
    with pytest.raises(ValueError, match="Expected tangent to be floating point or complex"):
        fwd.make_dual(T(1.0), torch.tensor([1]))
    with pytest.raises(RuntimeError, match="imaginary part would be lost"):
        fwd.make_dual(T(1.0), T(1.0).to(torch.complex128))
    with pytest.raises(TypeError, match="Expected tangent to be a Tensor"):
        fwd.make_dual(T(1.0), 1.0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must be Tensor, not float"):
        fwd.unpack_dual(1.0)  # type: ignore[arg-type]
    d = dual([1.0], [1.0])
    with pytest.raises(RuntimeError, match="already has a forward gradient at the same level"):
        fwd.make_dual(d, T(1.0))
    with pytest.raises(RuntimeError, match="itself has a forward gradient at the same level"):
        fwd.make_dual(T(1.0), d)


def test_the_parts_are_those_given(level: Any) -> None:
    x, t = T(2.0), T(1.0)
    d = fwd.make_dual(x, t)
    assert fwd.unpack_dual(d).tangent is t
    assert fwd.unpack_dual(d).primal.tolist() == [2.0]
    assert fwd.unpack_dual(x).tangent is None
    assert d._base is x
    assert fwd.make_dual(T(1.0), T(1.0).float()).dtype == torch.float64
    assert fwd.unpack_dual(fwd.make_dual(T(1.0), T(1.0).float())).tangent.dtype == torch.float64


def test_printing_shows_the_tangent(level: Any) -> None:
    d = fwd.make_dual(torch.tensor([1.0]), torch.tensor([3.0]))
    assert repr(d) == "tensor([1.], tangent=tensor([3.]))"
    assert repr(fwd.unpack_dual(d)) == "UnpackedDualTensor(primal=tensor([1.]), tangent=tensor([3.]))"


def test_levels_end_with_their_tangents() -> None:
    with fwd.dual_level():
        d = dual([2.0], [1.0])
        y = d * d
    with fwd.dual_level():
        assert tangent(d) is None
        assert tangent(y) is None
        assert tangent(y * y) is None
    assert "tangent" not in repr(d)


def test_levels_must_be_left_in_order() -> None:
    outer = fwd.enter_dual_level()
    inner = fwd.enter_dual_level()
    try:
        with pytest.raises(RuntimeError, match="not the last one that was created"):
            fwd.exit_dual_level(level=outer)
    finally:
        fwd.exit_dual_level(level=inner)
        fwd.exit_dual_level()


def test_a_level_decorates_functions() -> None:
    @fwd.dual_level()
    def slope(x: float) -> Any:
        return tangent(dual([x], [1.0]).exp())

    assert slope(0.0) == [1.0]


def test_levels_nest() -> None:
    with fwd.dual_level() as outer:
        x = dual([2.0], [1.0])
        with fwd.dual_level():
            y = fwd.make_dual(x, T(1.0))
            first = fwd.unpack_dual(y**4).tangent
        assert first.tolist() == [32.0]
        assert fwd.unpack_dual(first, level=outer).tangent.tolist() == [48.0]


# Where tangents go -------------------------------------------------------------------------------------------------------


def test_modes(level: Any) -> None:
    d = dual([2.0], [1.0])
    with torch.no_grad():
        assert tangent(d * d) == [4.0]
    with torch.inference_mode():
        assert tangent(d * d) is None
    with fwd.set_fwd_grad_enabled(False):
        y = d * d
        assert tangent(d) is None
        assert not fwd.is_fwd_grad_enabled()
    assert tangent(y) is None
    assert tangent(d) == [1.0]
    fwd.set_fwd_grad_enabled(False)
    try:
        assert tangent(d) is None
    finally:
        fwd.set_fwd_grad_enabled(True)
    assert fwd._is_fwd_grad_enabled()


@pytest.mark.usefixtures("level")
def test_decorating_does_not_switch() -> None:
    @fwd.set_fwd_grad_enabled(False)
    def without(x: Any) -> Any:
        return x * x

    assert fwd.is_fwd_grad_enabled()
    d = dual([2.0], [1.0])
    assert tangent(without(d)) is None
    assert fwd.is_fwd_grad_enabled()


def test_what_has_no_derivative_has_no_tangent(level: Any) -> None:
    d = dual([2.0, 5.0], [1.0, 3.0])
    assert tangent(d.long()) is None
    assert tangent(d > 1) is None
    assert tangent(d.detach()) is None
    assert tangent(torch.zeros_like(d)) is None
    assert tangent(d.floor()) == [0.0, 0.0]
    values, indices = d.max(0)
    assert (tangent(values), tangent(indices)) == (3.0, None)


def test_several_outputs(level: Any) -> None:
    d = dual([[2.0, 1.0], [5.0, 0.5]], [[1.0, 3.0], [2.0, 4.0]])
    assert [tangent(t) for t in d.unbind(1)] == [[1.0, 2.0], [3.0, 4.0]]
    assert [tangent(t) for t in d.split([2], 0)] == [[[1.0, 3.0], [2.0, 4.0]]]
    assert tangent(d.sort(1).values) == [[3.0, 1.0], [4.0, 2.0]]
    sign, logabs = torch.linalg.slogdet(d)
    slope = torch.autograd.functional.jvp(lambda a: torch.linalg.slogdet(a)[1], fwd.unpack_dual(d).primal,
                                          fwd.unpack_dual(d).tangent)[1]  # fmt: skip
    assert math.isclose(tangent(logabs), slope.item(), rel_tol=1e-12)
    assert tangent(sign) == 0.0


def test_products_and_numbers(level: Any) -> None:
    d, e = dual([2.0], [1.0]), dual([3.0], [10.0])
    assert tangent(d * e) == [23.0]
    assert tangent(d + 1) == [1.0]
    assert tangent(1 - d) == [-1.0]
    assert tangent(torch.add(d, e, alpha=2)) == [21.0]
    assert tangent(d @ e) == 23.0
    assert tangent(d * torch.tensor([[1], [2]])) == [[1.0], [2.0]]
    assert tangent(torch.nn.functional.linear(d, e.reshape(1, 1), dual([0.0], [7.0]))) == [30.0]
    w = torch.ones(1, 1, 1, dtype=torch.float64)
    assert tangent(torch.nn.functional.conv1d(d.reshape(1, 1, 1), w, dual([0.0], [7.0]))) == [[[8.0]]]


def test_out_is_refused(level: Any) -> None:
    d = dual([2.0], [1.0])
    with pytest.raises(NotImplementedError, match="sin_out that does not support it because it is an out= function"):
        torch.sin(d, out=T(0.0))
    with pytest.raises(NotImplementedError, match="out= function"):
        torch.sin(T(0.0), out=d)


# Views and changes in place ----------------------------------------------------------------------------------------------


def test_the_tangent_of_a_view_is_a_view(level: Any) -> None:
    d = dual([[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]])
    whole, part = fwd.unpack_dual(d).tangent, fwd.unpack_dual(d[1]).tangent
    assert part._base is whole
    assert tangent(d.t()) == [[5.0, 7.0], [6.0, 8.0]]
    assert tangent(d.expand(2, 2, 2)[1, 0]) == [5.0, 6.0]


def test_changes_of_a_dual_reach_its_views(level: Any) -> None:
    d = dual([2.0, 3.0], [1.0, 1.0])
    first, wide = d[0], d.expand(2, 2)
    d.mul_(3)
    assert (tangent(d), tangent(first), tangent(wide)) == ([3.0, 3.0], 3.0, [[3.0, 3.0]] * 2)
    assert first.item() == 6.0


def test_changes_of_a_view_reach_its_base_and_its_relatives(level: Any) -> None:
    d = dual([2.0, 3.0, 4.0], [1.0, 1.0, 1.0])
    some, last = d[:2], d[2]
    some.mul_(dual([10.0, 20.0], [1.0, 0.0]))
    assert tangent(d) == [12.0, 20.0, 1.0]
    assert (tangent(some), tangent(last)) == ([12.0, 20.0], 1.0)
    d[1:].zero_()
    assert tangent(d) == [12.0, 0.0, 0.0]
    assert tangent(some) == [12.0, 0.0]
    a, _, _ = d.unbind(0)
    with torch.no_grad():
        a.mul_(2)
    assert tangent(d) == [24.0, 0.0, 0.0]


def test_plain_tensors_become_dual_where_duals_are_written(level: Any) -> None:
    buffer = torch.zeros(2, 3, dtype=torch.float64)
    row, column = buffer[1], buffer[:, 0]
    assert tangent(buffer) is None
    row.copy_(dual([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]))
    assert tangent(buffer) == [[0.0, 0.0, 0.0], [4.0, 5.0, 6.0]]
    assert tangent(column) == [0.0, 4.0]
    buffer[0, 1:] = dual([1.0, 2.0], [7.0, 8.0])
    assert tangent(buffer) == [[0.0, 7.0, 8.0], [4.0, 5.0, 6.0]]
    assert tangent(buffer.as_strided((2,), (3,), 1)) == [7.0, 5.0]


@pytest.mark.parametrize(
    "make", [lambda b: b[5:15], lambda b: b[5:15].detach(), lambda b: b[::2], lambda b: b[::2].data]
)
@pytest.mark.parametrize("offset", [0, 3, 6, 12])
def test_memory_beyond_what_has_a_tangent_has_one_of_zeros(level: Any, make: Any, offset: int) -> None:
    base = torch.arange(20.0, dtype=torch.float64)
    x = make(base)
    found = fwd.unpack_dual(torch.as_strided(fwd.make_dual(x, x * 0 + 1), (2, 3), (1, 2), offset)).tangent
    expected = torch.zeros(20, dtype=torch.float64)
    make(expected).fill_(1)
    assert torch.equal(found, expected.as_strided((2, 3), (1, 2), offset))


@pytest.mark.parametrize("reach", [
    lambda d: d[0].as_strided((2, 2), (3, 1)), lambda d: d[1].as_strided((2, 2), (3, 1), 0),
    lambda d: d.t()[1].as_strided((2, 2), (3, 1), 0),
])  # fmt: skip
def test_strides_reach_the_tangents_of_memory_beyond_the_view(level: Any, reach: Any) -> None:
    d = dual([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], [[0.0, 10.0, 20.0], [30.0, 40.0, 50.0]])
    piece = reach(d)
    assert tangent(piece) == [[0.0, 10.0], [30.0, 40.0]]
    piece.mul_(2)
    assert tangent(d) == [[0.0, 20.0, 20.0], [60.0, 80.0, 50.0]]


def test_strides_over_real_parts_reach_the_tangents_of_imaginary_ones(level: Any) -> None:
    numbers = torch.tensor([1 + 1j, 2, 3], dtype=torch.complex128)
    d = fwd.make_dual(numbers, torch.full_like(numbers, 1 + 2j))
    pair = d.real.as_strided((2,), (1,))
    assert tangent(pair) == [1.0, 2.0]
    pair.mul_(torch.tensor([3.0, 4.0]))
    assert tangent(d) == [3 + 8j, 1 + 2j, 1 + 2j]


def test_memory_in_another_order(level: Any) -> None:
    base = torch.zeros(3, 2, dtype=torch.float64).t()
    base[0] = dual([1.0, 2.0, 3.0], [4.0, 5.0, 6.0])
    flat = base.t().view(-1)
    assert tangent(flat) == [4.0, 0.0, 5.0, 0.0, 6.0, 0.0]
    flat[1].add_(dual(1.0, 9.0))
    assert tangent(base) == [[4.0, 5.0, 6.0], [9.0, 0.0, 0.0]]


def test_what_was_given_is_not_written_to(level: Any) -> None:
    x, t = T(2.0), T(1.0)
    d = fwd.make_dual(x, t)
    d.mul_(3)
    assert t.tolist() == [1.0]
    assert x.tolist() == [6.0]  # the dual is a view of it
    assert tangent(x) is None


def test_errors_of_changes_in_place(level: Any) -> None:
    with pytest.raises(RuntimeError, match="can't be cast to"):
        torch.tensor([1]).add_(dual([1.0], [1.0]))
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        T(1.0).add_(dual([1.0, 2.0], [1.0, 1.0]))
    x = T(1.0).requires_grad_()
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        x.add_(dual([1.0], [1.0]))


def test_transposing_in_place(level: Any) -> None:
    d = dual([[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]])
    d.t_()
    assert tangent(d) == [[5.0, 7.0], [6.0, 8.0]]


# With the graph ----------------------------------------------------------------------------------------------------------


def test_reverse_over_forward() -> None:
    w = T(2.0).requires_grad_()
    with fwd.dual_level():
        y = fwd.unpack_dual((fwd.make_dual(T(3.0), w) ** 3) * w).tangent
        (g,) = torch.autograd.grad(y, w)
    assert g.tolist() == [2 * 27 * 2.0]  # d/dw of 3 * 9 * w * w


def test_forward_over_reverse() -> None:
    w = T(2.0).requires_grad_()
    with fwd.dual_level():
        d = fwd.make_dual(w, T(1.0))
        (g,) = torch.autograd.grad(d**3, w, create_graph=True)
        assert g.tolist() == [12.0]
        assert tangent(g) == [12.0]


def test_forward_over_reverse_through_changes_in_place() -> None:
    w = T(2.0).requires_grad_()
    with fwd.dual_level():
        d = fwd.make_dual(w, T(1.0))
        y = T(3.0, 1.0) * 1
        y.mul_(d)
        y[0].mul_(d.squeeze())
        (g,) = torch.autograd.grad(y.sum(), w, create_graph=True)
    assert g.tolist() == [13.0]  # of 3 w**2 + w
    assert y.tolist() == [12.0, 2.0]


def test_a_backward_leaves_plain_gradients() -> None:
    w = T(2.0).requires_grad_()
    with fwd.dual_level():
        (fwd.make_dual(w, T(1.0)) ** 3).sum().backward()
    assert w.grad.tolist() == [12.0]
    assert not w.grad.requires_grad


def test_tangents_are_not_recorded_without_need() -> None:
    with fwd.dual_level():
        t = fwd.unpack_dual(torch.linalg.inv(dual([[2.0]], [[1.0]]))).tangent
        assert not t.requires_grad
        with torch.no_grad():
            x = torch.eye(2, dtype=torch.float64, requires_grad=True)
            t = fwd.unpack_dual(torch.linalg.inv(fwd.make_dual(x, torch.eye(2, dtype=torch.float64)))).tangent
        assert not t.requires_grad


def test_memory_falls_by_reference_counts() -> None:
    gc.collect()
    gc.disable()
    try:
        with fwd.dual_level() as level:
            for _ in range(1000):
                d = dual([1.0], [1.0])
                d[0].mul_(2)
                del d
            alive = sum(ref() is not None for ref in level.holders)
            assert alive <= 2
            assert len(level.holders) < 2000
        assert gc.collect() == 0
    finally:
        gc.enable()


# Custom functions --------------------------------------------------------------------------------------------------------


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, y: Any, k: float) -> Any:
        ctx.save_for_backward(x, y)
        ctx.save_for_forward(x, y)
        ctx.k = k
        return x * y * k, x + y

    @staticmethod
    def backward(ctx: Any, g: Any, h: Any) -> Any:
        x, y = ctx.saved_tensors
        return g * y * ctx.k + h, g * x * ctx.k + h, None

    @staticmethod
    def jvp(ctx: Any, a: Any, b: Any, k: Any) -> Any:
        assert k is None
        x, y = ctx.saved_tensors
        return ctx.k * (a * y + b * x), a + b


def test_jvp_of_a_custom_function(level: Any) -> None:
    d, e = dual([2.0], [1.0]), dual([3.0], [5.0])
    assert [tangent(t) for t in Product.apply(d, e, 2)] == [[26.0], [6.0]]
    assert [tangent(t) for t in Product.apply(d, T(3.0), 2)] == [[6.0], [1.0]]
    assert [tangent(t) for t in Product.apply(T(2.0), T(3.0), 2)] == [None, None]


def test_custom_functions_pass_gradcheck_in_both_modes() -> None:
    x, y = T(2.0, 1.0).requires_grad_(), T(3.0, 0.5).requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: Product.apply(a, b, 2), (x, y), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(lambda a, b: Product.apply(a, b, 2), (x, y), check_fwd_over_rev=True)


def test_nested_levels_call_jvp_for_each() -> None:
    with fwd.dual_level() as outer:
        x = dual([2.0], [1.0])
        with fwd.dual_level():
            y, _ = Product.apply(fwd.make_dual(x, T(1.0)), fwd.make_dual(x, T(1.0)), 1)
            first = fwd.unpack_dual(y).tangent
        assert first.tolist() == [4.0]
        assert fwd.unpack_dual(first, level=outer).tangent.tolist() == [2.0]


def function(forward: Any, jvp: Any) -> Any:
    return type("Custom", (torch.autograd.Function,), {"forward": staticmethod(forward), "jvp": staticmethod(jvp),
                                                       "backward": staticmethod(lambda ctx, g: g)})  # fmt: skip


def test_misuse_of_jvp(level: Any) -> None:
    d = dual([2.0, 3.0], [1.0, 1.0])

    def double(ctx: Any, x: Any) -> Any:
        return x * 2

    with pytest.raises(
        RuntimeError, match=r"Custom.jvp returned an incorrect number of tangents: forward has 1 outputs, got 2"
    ):
        function(double, lambda ctx, t: (t, t)).apply(d)
    with pytest.raises(RuntimeError, match=r"tangent of output 0 has size \[\], expected that of the output, \[2\]"):
        function(double, lambda ctx, t: t.sum()).apply(d)
    with pytest.raises(TypeError, match="expected a Tensor or None as the tangent of output 0, got float"):
        function(double, lambda ctx, t: 1.0).apply(d)
    assert tangent(function(double, lambda ctx, t: None).apply(d)) is None
    without = type("Without", (torch.autograd.Function,), {"forward": staticmethod(double)})
    with pytest.raises(NotImplementedError, match="You must implement the jvp function"):
        without.apply(d)


def test_custom_functions_in_place_and_on_views(level: Any) -> None:
    def triple(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(3)

    Triple = function(triple, lambda ctx, t: t * 3)
    d = dual([2.0, 4.0], [1.0, 1.0])
    assert tangent(Triple.apply(d[0])) == 3.0
    assert tangent(d) == [3.0, 1.0]
    assert Triple.apply(d) is d
    assert tangent(d) == [9.0, 3.0]
    Flat = function(lambda ctx, x: x.view(-1), lambda ctx, t: t.view(-1))
    assert tangent(Flat.apply(d)) == [9.0, 3.0]


def test_materializing_and_marking(level: Any) -> None:
    seen = []

    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.set_materialize_grads(False)
        fixed = x * 2
        ctx.mark_non_differentiable(fixed)
        return x * 1, fixed

    def jvp(ctx: Any, a: Any, b: Any) -> Any:
        seen.append(b)
        return a, None

    found = function(forward, jvp).apply(dual([2.0], [1.0]), T(1.0))
    assert [tangent(t) for t in found] == [[1.0], None]
    assert seen == [None]


@pytest.mark.parametrize("fn", [torch.nn.functional.elu, torch.celu, torch.selu])
def test_rectifiers_of_infinity_keep_the_tangent(fn: Any, level: Any) -> None:
    assert tangent(fn(dual([math.inf, 2.0], [0.5, 0.5]))) == pytest.approx([0.5, 0.5], rel=0.06)


@pytest.mark.parametrize("shapes", [((1, 1), (1,)), ((1, 4), (3, 1)), ((2, 3), (3,))])
def test_a_loss_of_operands_that_broadcast_either_way(shapes: Any) -> None:
    given, other = (torch.full(shape, 0.25, dtype=torch.float64, requires_grad=True) for shape in shapes)
    loss = torch.nn.functional.kl_div(given, other, reduction="sum")
    want = sum(g.sum() for g in torch.autograd.grad(loss, [given, other]))
    with fwd.dual_level():
        duals = [fwd.make_dual(x.detach(), torch.ones_like(x)) for x in (given, other)]
        found = fwd.unpack_dual(torch.nn.functional.kl_div(*duals, reduction="sum")).tangent
    assert found.item() == pytest.approx(want.item())


@pytest.mark.parametrize(
    ("name", "function"),
    [("igamma", lambda x: torch.igamma(x, x)), ("zeta", lambda x: torch.special.zeta(x, x))],
)
def test_operators_without_a_derivative_say_so_of_forward_mode(name, function):
    with pytest.raises(NotImplementedError, match=f"Trying to use forward AD with {name} that does not support it"):
        torch.func.jvp(function, (torch.ones(2) * 2,), (torch.ones(2),))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
@pytest.mark.parametrize("operator", [
    lambda x, y: torch.where(x > 0, x, y), lambda x, y: torch.maximum(x, y), lambda x, y: x * y, lambda x, y: torch.lerp(x, y, y),
    lambda x, y: torch.stack([x, y]).sum(0), lambda x, y: torch.addcmul(x, x, y), lambda x, y: torch.nn.functional.huber_loss(x, y),
    lambda x, y: x.view(2) @ y, lambda x, y: x.clone().mul_(x).add_(y), lambda x, y: torch.nn.functional.prelu(x, y[:1]),
])  # fmt: skip
def test_tangents_of_what_requires_grad_where_nothing_is_recorded(operator: Any, mode: Any) -> None:
    x, y = torch.ones(2, requires_grad=True), torch.tensor([0.5, 1.0])
    with mode():
        _, found = torch.func.jvp(operator, (x, y), (y, x.detach()))
    assert torch.equal(found, torch.func.jvp(operator, (x.detach(), y), (y, x.detach()))[1])
    assert found.abs().sum() > 0


def test_a_complex_tangent_that_a_custom_function_returns_for_a_real_output_is_refused() -> None:
    function = type("Mixed", (torch.autograd.Function,), {
        "forward": staticmethod(lambda x, y: x * 1), "setup_context": staticmethod(lambda ctx, inputs, output: None),
        "jvp": staticmethod(lambda ctx, a, b: b),
    })  # fmt: skip
    x, y = torch.tensor(1.0), torch.tensor(1 + 2j)
    with pytest.raises(
        RuntimeError, match=r"tangent of output 0 has dtype torch\.complex64, expected that of the output"
    ):
        torch.func.jvp(function.apply, (x, y), (x, y))
    assert torch.func.jvp(function.apply, (x, x.double()), (x, x.double()))[1].dtype == torch.float32
