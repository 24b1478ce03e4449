"""What a custom function may return: inputs as they are, views, one tensor twice; and what is made of that."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import rushlight as torch
from rushlight.autograd import Function, forward_ad


def function(
    forward: Callable[[Any, Any], Any], backward: Callable[..., Any] = lambda ctx, *g: g[0], jvp: Any = None
) -> Any:
    return type("F", (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward),
                                   **({} if jvp is None else {"jvp": staticmethod(jvp)})})  # fmt: skip


def doubled(ctx: Any, x: Any) -> Any:
    ctx.mark_dirty(x)
    return x.mul_(2), x.sum()


def test_a_dirty_view_of_bools_may_be_one_of_several_outputs() -> None:
    def flipped(ctx: Any, x: Any, y: Any) -> Any:
        ctx.mark_dirty(x)
        return x.logical_not_(), y * 2

    bools, w = torch.tensor([True, False]), torch.ones(2, requires_grad=True)
    out, twice = function(flipped, lambda ctx, g, h: (None, h * 2)).apply(bools[...], w)
    assert out.tolist() == bools.tolist() == [False, True] and not out.requires_grad
    twice.sum().backward()
    assert w.grad is not None and w.grad.tolist() == [2, 2]


def test_a_dirty_view_must_be_the_only_output() -> None:
    a = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="cannot return more than one Tensor"):
        function(doubled).apply(a.clone()[:2])
    assert function(doubled).apply(torch.ones(3)[:2])[0].tolist() == [2, 2]  # nothing is recorded
    y = function(lambda ctx, x: doubled(ctx, x)[0], lambda ctx, g: g * 2).apply(a.clone()[:2])
    assert y.tolist() == [2, 2]


@pytest.mark.parametrize("forward", [lambda ctx, x: (x * 2,) * 2, lambda ctx, x: (x.view(-1),) * 2,
                                     lambda ctx, x: (doubled(ctx, x)[0],) * 2], ids=["result", "view", "dirty"])  # fmt: skip
def test_one_tensor_returned_twice_is_one_tensor_and_the_last_output(forward: Any) -> None:
    a = torch.ones(3, requires_grad=True)
    y, z = function(forward, lambda ctx, g, h: g * 2 + h * 20).apply(a * 1)
    assert y is z
    assert y.output_nr == 1
    (y + z).sum().backward()
    assert a.grad.tolist() == [40, 40, 40]


def test_an_input_returned_twice_is_two_views_of_it() -> None:
    a = torch.ones(3, requires_grad=True)
    y, z = function(lambda ctx, x: (x, x), lambda ctx, g, h: g * 2 + h * 20).apply(a)
    assert y is not z
    (y + z * 3).sum().backward()
    assert a.grad.tolist() == [62, 62, 62]


def saving(ctx: Any, x: Any) -> Any:
    ctx.save_for_backward(x)
    return x


def squared_slope(ctx: Any, g: Any) -> Any:
    return g * ctx.saved_tensors[0] * 2


def test_an_input_returned_as_it_is_and_saved_stays_the_input() -> None:
    a = torch.full((1,), 3.0, requires_grad=True)
    (g,) = torch.autograd.grad(function(saving, squared_slope).apply(a).sum(), a, create_graph=True)
    assert g.tolist() == [6]
    assert torch.autograd.grad(g.sum(), a)[0].tolist() == [2]


@pytest.mark.parametrize("requires_grad", [True, False])
def test_with_setup_context_that_is_refused(requires_grad: bool) -> None:
    class Same(Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(output)

    with pytest.raises(
        RuntimeError, match="An input that has been returned as-is as output is being saved for backward"
    ):
        Same.apply(torch.ones(2, requires_grad=requires_grad))


def test_a_view_that_forward_changed_in_place_is_a_result_like_any() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        y = x[:2]
        y.mul_(3)
        return y

    a = torch.ones(3, requires_grad=True)
    y = function(forward, lambda ctx, g: torch.cat([g * 3, torch.zeros(1)])).apply(a * 1)
    assert "grad_fn=<FBackward>" in repr(y)
    y.sum().backward()
    assert a.grad.tolist() == [3, 3, 0]


def test_an_input_returned_as_it_is_without_a_graph_is_no_tensor_to_change_in_one() -> None:
    a = torch.ones(3, requires_grad=True)
    y = function(lambda ctx, x: x).apply(torch.ones(3))
    with pytest.raises(RuntimeError, match="This view was created inside a custom Function"):
        y.mul_(a)


def test_a_gradient_is_summed_to_the_shape_of_its_input_and_never_expanded() -> None:
    x = torch.ones(4, 3, requires_grad=True)
    with pytest.raises(
        RuntimeError, match=r"invalid gradient at index 0 - got \[1, 3\] but expected shape compatible with"
    ):
        function(lambda ctx, x: x * 1, lambda ctx, g: g[:1]).apply(x).sum().backward()
    function(lambda ctx, x: x * 1, lambda ctx, g: g.expand(2, 4, 3)).apply(x).sum().backward()
    assert x.grad.sum() == 24


# Forward mode ----------------------------------------------------------------------------------------


def tangents(forward: Any, jvp: Any, change: Any = None) -> tuple[Any, Any]:
    with forward_ad.dual_level():
        d = forward_ad.make_dual(torch.ones(3), torch.full((3,), 5.0))
        y = function(forward, jvp=jvp).apply(d)
        if change is not None:
            change(d, y)
        return tuple(forward_ad.unpack_dual(t).tangent.reshape(-1).tolist() for t in (y, d))  # type: ignore[return-value]


VIEWS = {"view": (lambda ctx, x: x.view(3, 1), lambda ctx, t: t.view(3, 1)),
         "as it is": (lambda ctx, x: x, lambda ctx, t: t.view_as(t))}  # fmt: skip


@pytest.mark.parametrize("kind", VIEWS)
@pytest.mark.parametrize("which", [0, 1])
def test_tangents_of_an_input_and_of_a_view_of_it_follow_each_other(kind: str, which: int) -> None:
    assert tangents(*VIEWS[kind]) == ([5, 5, 5], [5, 5, 5])
    assert tangents(*VIEWS[kind], lambda d, y: (d, y)[which].mul_(2)) == ([10, 10, 10], [10, 10, 10])


def test_the_tangent_of_a_view_of_a_view_reaches_the_base() -> None:
    with forward_ad.dual_level():
        d = forward_ad.make_dual(torch.ones(4), torch.full((4,), 5.0))
        y = function(lambda ctx, x: x.view(2, 1), jvp=lambda ctx, t: t.view(2, 1)).apply(d[:2])
        y.mul_(3)
        assert forward_ad.unpack_dual(d).tangent.tolist() == [15, 15, 5, 5]


@pytest.mark.parametrize("kind", VIEWS)
def test_a_jvp_must_return_a_view_where_forward_does(kind: str) -> None:
    with pytest.raises(RuntimeError, match="but the jvp is not returning a view"):
        tangents(VIEWS[kind][0], lambda ctx, t: VIEWS[kind][1](ctx, t) * 0.5)


def test_a_tangent_for_an_output_without_a_gradient_is_refused() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2, x > 0

    with (
        pytest.raises(RuntimeError, match=r"position 1.*You should return None at that position"),
        forward_ad.dual_level(),
    ):
        function(forward, jvp=lambda ctx, t: (t * 2, t)).apply(forward_ad.make_dual(torch.ones(3), torch.ones(3)))


def test_detach_in_place_drops_the_tangent() -> None:
    with forward_ad.dual_level():
        d = forward_ad.make_dual(torch.ones(2), torch.ones(2)) * 1
        v = d[:1]
        d.detach_()
        assert forward_ad.unpack_dual(d).tangent is None
        assert forward_ad.unpack_dual(v).tangent is not None


def test_an_input_returned_without_a_gradient_is_an_alias_that_requires_none() -> None:
    x = torch.ones(2, requires_grad=True) * 1
    constant = function(lambda ctx, t: (ctx.mark_non_differentiable(t), t)[1])
    for apply in (constant.apply, torch.no_grad()(function(lambda ctx, t: t).apply)):
        out = apply(x)
        assert not out.requires_grad and out._base is None and x.requires_grad
        before = x._version
        out.add_(1)
        assert x._version == out._version == before + 1 and torch.equal(x.detach(), out)


def test_an_input_changed_without_a_gradient_keeps_its_history() -> None:
    def forward(ctx: Any, t: Any) -> Any:
        ctx.mark_dirty(t)
        ctx.mark_non_differentiable(t)
        return t.mul_(2)

    leaf = torch.ones(2, requires_grad=True)
    out = function(forward).apply(leaf)  # not refused: nothing of it is recorded
    assert not out.requires_grad and leaf.requires_grad and leaf.tolist() == [2.0, 2.0]
    x = leaf * 3
    node = x.grad_fn
    assert not function(forward).apply(x).requires_grad and x.grad_fn is node


def test_an_input_returned_without_a_gradient_may_be_saved_by_setup_context() -> None:
    class F(torch.autograd.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)
            ctx.mark_non_differentiable(output)

    assert not F.apply(torch.ones(2, requires_grad=True)).requires_grad


@pytest.mark.parametrize("changed", [False, True])
@pytest.mark.parametrize("of_view", [False, True])
@pytest.mark.parametrize("save", ["save_for_forward", "save_for_backward"])
def test_outputs_that_are_saved_close_no_cycle(save: str, of_view: bool, changed: bool) -> None:
    def forward(ctx: Any, t: Any) -> Any:
        out = t.mul_(2) if changed else t * 2
        if changed:
            ctx.mark_dirty(t)
        getattr(ctx, save)(out)
        return out

    gc.disable()
    try:
        leaf = torch.ones(2, requires_grad=True)
        x = leaf * 1
        out = function(forward).apply(x.view(2) if of_view else x)
        refs = weakref.ref(out), weakref.ref(leaf)
        del leaf, x, out
        assert [ref() for ref in refs] == [None, None]
    finally:
        gc.enable()


def test_derivatives_of_a_function_that_changes_a_view_and_saves_it() -> None:
    def forward(ctx: Any, t: Any) -> Any:
        ctx.mark_dirty(t)
        ctx.save_for_backward(t.exp_())
        return t

    exp = function(forward, lambda ctx, g: g * ctx.saved_tensors[0])

    def f(x: Any) -> Any:
        base = x * 2
        exp.apply(base.t()[0])
        return base.sin()

    x = torch.tensor([[0.5, 0.2], [0.1, 0.3]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(f, x) and torch.autograd.gradgradcheck(f, x)


def test_what_is_saved_is_looked_at_where_the_call_is_recorded() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(7)
        return x * 2

    assert function(forward).apply(torch.ones(1)).item() == 2
    with pytest.raises(TypeError, match="argument 0 is of type int"):
        function(forward).apply(torch.ones(1, requires_grad=True))


def test_an_input_returned_as_it_is_cannot_be_saved_for_forward_by_setup_context() -> None:
    class F(Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_forward(*inputs)

    with pytest.raises(RuntimeError, match="returned as-is"):
        F.apply(torch.ones(1))


def test_a_tangent_for_an_output_that_is_none_is_passed_over() -> None:
    both = function(lambda ctx, x: (x * 2, None), jvp=lambda ctx, t: (t * 2, t))
    x = torch.ones(1)
    assert torch.func.jvp(lambda x: both.apply(x)[0], (x,), (x,))[1].item() == 2


def test_a_call_that_saves_what_it_cannot_changes_no_history() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        ctx.save_for_backward(x, 7)
        return x

    leaf = torch.ones(2, requires_grad=True)
    x = leaf * 3
    node, ref = x.grad_fn, weakref.ref(x)
    with pytest.raises(TypeError, match="argument 1 is of type int"):
        function(forward).apply(x)
    assert x.grad_fn is node
    del x
    assert ref() is None


def test_a_changed_view_without_a_gradient_may_be_one_of_several_outputs() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        ctx.mark_non_differentiable(x)
        return x.mul_(2), x.sum()

    view = (torch.ones(3, requires_grad=True) * 1)[:2]
    changed, total = function(forward, lambda ctx, g, h: h.expand(2)).apply(view)
    assert changed.tolist() == [2.0, 2.0] and not changed.requires_grad and total.requires_grad


def test_a_transformation_looks_at_no_gradient_of_what_it_captured() -> None:
    product = function(lambda ctx, x, y: x * y.sum(), lambda ctx, g: (g * 2, g))  # a gradient of y of another shape
    y = torch.ones(2, 2, requires_grad=True)
    assert torch.func.grad(lambda x: product.apply(x, y))(torch.tensor(3.0)).item() == 2
    with pytest.raises(RuntimeError, match="invalid gradient at index 1"):
        product.apply(torch.tensor(3.0, requires_grad=True), torch.ones(2, 3, requires_grad=True).sum(1)).backward()


def test_an_inference_tensor_that_is_returned_as_it_is():
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g

    with torch.inference_mode():
        x = torch.ones(2)
    y = Same.apply(x)
    assert y.is_inference() and y.data_ptr() == x.data_ptr() and not y.requires_grad


class Twice(Function):
    """One tensor returned twice, and saved."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: torch.Tensor) -> Any:
        y = x.sum()
        return y, y

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(output[0])

    @staticmethod
    def backward(ctx: Any, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        return ctx.saved_tensors[0] * second + 0 * first


@pytest.mark.filterwarnings("ignore:Using backward")
def test_a_saved_output_that_was_returned_twice_is_the_last_of_them() -> None:
    x = torch.tensor(3.0, requires_grad=True)
    y, _ = Twice.apply(x)
    (g,) = torch.autograd.grad(y, x, torch.tensor(1.0), create_graph=True)
    assert g == 3
    g.backward()
    assert x.grad == 3  # of the saved output, whose gradient comes as that of the second


def test_inside_of_transformations_a_tensor_returned_twice_is_two_outputs() -> None:
    x = torch.tensor(3.0)
    assert torch.func.grad(lambda x: Twice.apply(x)[0])(x) == 0
    assert torch.func.grad(lambda x: Twice.apply(x)[1])(x) == 3


def test_a_gradient_for_what_a_transformation_saw_alone_need_not_fit() -> None:
    class Wrong(Function):
        @staticmethod
        def forward(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x + y

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, g: torch.Tensor) -> Any:
            return torch.zeros(7), g

    y = torch.ones(2, requires_grad=True)
    result, pullback = torch.func.vjp(Wrong.apply, torch.ones(2), y)
    result.sum().backward()
    assert y.grad is not None and y.grad.tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="invalid gradient at index 0"):
        pullback(torch.ones(2))


def test_a_jvp_that_fails_leaves_no_cycle() -> None:
    class Changes(Function):
        @staticmethod
        def forward(x: torch.Tensor) -> torch.Tensor:
            return x.mul_(2)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.mark_dirty(*inputs)
            ctx.save_for_forward(*inputs)

    gc.disable()
    try:
        x = torch.ones(2, requires_grad=True)
        y = x * 1
        with pytest.raises(RuntimeError, match="jvp"):
            torch.func.jvp(Changes.apply, (y,), (y,))
        refs = weakref.ref(x), weakref.ref(y)
        del x, y
        assert [ref() for ref in refs] == [None, None]
    finally:
        gc.enable()


def test_an_output_without_a_gradient_that_is_saved_closes_no_cycle_when_it_is_changed() -> None:
    class Marked(Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> Any:
            y = x * 2
            ctx.save_for_backward(y)
            ctx.mark_non_differentiable(y)
            return y, x * 3

        @staticmethod
        def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
            return ctx.saved_tensors[0] * grads[1]

    gc.disable()
    try:
        x = torch.ones(2, requires_grad=True)
        y, z = Marked.apply(x)
        assert torch.autograd.grad(z.sum(), x, retain_graph=True)[0].tolist() == [2, 2]
        y.mul_(z)
        ref = weakref.ref(x)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.sum().backward()
        del x, y, z
        assert ref() is None
    finally:
        gc.enable()


def test_no_gradient_at_all_is_sent_through_operators_of_several_results() -> None:
    class Nothing(Function):
        @staticmethod
        def forward(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x + y

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, g: torch.Tensor) -> Any:
            return g, None

    x = torch.ones(2, 2, requires_grad=True)
    for parts in (x.unbind(), x.sort(), torch.linalg.slogdet(x + torch.eye(2))):
        Nothing.apply(torch.ones(2, 2), parts[0]).sum().backward()
        assert x.grad is None
    (g,) = torch.autograd.grad(Nothing.apply(torch.ones(2, 2), x.unbind()[0]).sum(), x, create_graph=True,
                               allow_unused=True)  # fmt: skip
    assert g is None


def test_a_view_that_forward_marked_as_not_differentiable_is_no_root_of_a_backward() -> None:
    class Marked(Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            y = x.view_as(x)
            ctx.mark_non_differentiable(y)
            return y

    y = Marked.apply(torch.ones(1, requires_grad=True))
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        y.backward()


def test_where_nothing_is_recorded_a_view_with_a_forbidden_history_is_an_argument_like_any() -> None:
    x = torch.ones(2, requires_grad=True) * 1
    with torch.no_grad():
        v = x.view(2)
    x.mul_(2)
    seen = []

    def forward(ctx: Any, v: torch.Tensor) -> torch.Tensor:
        seen.append(ctx.needs_input_grad)
        return v * 3

    with torch.no_grad():
        assert function(forward).apply(v).tolist() == [6, 6]
    assert seen == [(True,)]
    with pytest.raises(RuntimeError, match="forbidden"):
        function(forward).apply(v)


def test_a_view_that_forward_marked_is_outside_of_the_graph_of_a_transformation() -> None:
    class Marked(Function):
        @staticmethod
        def forward(x: torch.Tensor) -> torch.Tensor:
            return x.view_as(x)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.mark_non_differentiable(output)

    result, _ = torch.func.vjp(Marked.apply, torch.ones(1))
    assert not result.requires_grad


def test_an_input_that_is_changed_and_returned_twice_without_a_gradient_is_two_aliases() -> None:
    def forward(ctx: Any, x: torch.Tensor) -> Any:
        x.zero_()
        ctx.mark_dirty(x)
        ctx.mark_non_differentiable(x)
        return x, x

    first, second = function(forward).apply(torch.ones(2, 2, requires_grad=True))
    first.resize_(1)
    assert second.shape == (2, 2)


@pytest.mark.filterwarnings("ignore:Using backward")
def test_an_input_that_was_changed_without_a_gradient_is_saved_with_its_own() -> None:
    class Marked(Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> Any:
            ctx.save_for_backward(x)
            ctx.mark_dirty(x)
            ctx.mark_non_differentiable(x)
            return x, x * 2

        @staticmethod
        def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
            return ctx.saved_tensors[0] * 3

    x = torch.tensor(5.0, requires_grad=True)
    (g,) = torch.autograd.grad(Marked.apply(x)[1], x, create_graph=True)
    g.backward()
    assert g == 15 and x.grad == 3


@pytest.mark.parametrize("saves_first", [True, False])
def test_a_saved_view_that_lost_its_history_is_refused_before_backward_computes_with_it(saves_first: bool) -> None:
    class Viewed(Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor, y: torch.Tensor) -> Any:
            ctx.mark_dirty(x)
            ctx.mark_non_differentiable(x)
            ctx.save_for_backward(*((x, y) if saves_first else (y, x)))
            return x.mul_(2), x[...]

        @staticmethod
        def backward(ctx: Any, *grads: torch.Tensor) -> Any:
            computed.append(ctx.saved_tensors)
            return grads[1], grads[1]

    computed: list[Any] = []
    _, view = Viewed.apply(torch.ones(2), torch.ones(2, requires_grad=True))
    _, again = Viewed.apply(view, torch.ones(2))
    with pytest.raises(RuntimeError, match="Output 1 of Viewed is a view and its base or another view"):
        again.sum().backward()
    assert not computed
