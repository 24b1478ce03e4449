"""Custom functions."""

import gc
import weakref

import pytest
from tests.leaves import leaf

import rushlight as torch
from rushlight.autograd import Function
from rushlight.autograd.function import once_differentiable


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x * x


class Split(Function):
    @staticmethod
    def forward(x, factor):
        return x * factor, x + factor, (x > 0)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]
        ctx.mark_non_differentiable(output[2])

    @staticmethod
    def backward(ctx, a, b, c):
        return a * ctx.factor + b, None


def test_first_and_second_order():
    x = leaf(2.0)
    y = Cube.apply(x)
    assert y.grad_fn.name() == "CubeBackward"
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    (h,) = torch.autograd.grad(g, x)
    assert g.tolist() == [12.0] and h.tolist() == [12.0]


def test_several_outputs_and_materialized_gradients():
    x = leaf(2.0)
    a, b, flag = Split.apply(x, 5.0)
    assert not flag.requires_grad and flag.dtype is torch.bool
    a.backward(retain_graph=True)
    assert x.grad.tolist() == [5.0]
    (a + b).backward()
    assert x.grad.tolist() == [11.0]


def test_unmaterialized_gradients_are_none():
    seen = []

    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, a, b):
            seen.append((a, b))
            return b * 2

    x = leaf(1.0)
    _, b = Two.apply(x)
    b.backward()
    assert seen[0][0] is None and x.grad.tolist() == [2.0]


def test_mark_dirty_rewrites_history():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf(3.0)
    y = x * 1
    z = Double.apply(y)
    assert z is y and y.tolist() == [6.0]
    z.backward()
    assert x.grad.tolist() == [2.0]
    with pytest.raises(RuntimeError, match="leaf Variable"):
        Double.apply(leaf(1.0))


def test_an_input_returned_as_is_becomes_another_tensor():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 7

    x = leaf(1.0)
    y = Same.apply(x)
    assert y is not x
    y.backward()
    assert x.grad.tolist() == [7.0]


def test_needs_input_grad_and_wrong_returns():
    class Odd(Function):
        @staticmethod
        def forward(ctx, x, y, how):
            ctx.how, ctx.needs = how, ctx.needs_input_grad
            return x + y

        @staticmethod
        def backward(ctx, g):
            assert ctx.needs == (True, False, False)
            return {"few": (g,), "text": (g, "text", None)}[ctx.how]

    x, c = leaf(1.0), torch.ones(1, dtype=torch.float64)
    with pytest.raises(RuntimeError, match=r"OddBackward.*expected 3, got 1"):
        Odd.apply(x, c, "few").backward()
    with pytest.raises(RuntimeError, match="type str"):
        Odd.apply(x, c, "text").backward()


def test_once_differentiable():
    class Sin(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            return g * ctx.saved_tensors[0].cos()

    x = leaf(1.0)
    (g,) = torch.autograd.grad(Sin.apply(x) * x, x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        g.backward()


def test_saved_outputs_make_no_cycle_and_versions_are_checked():
    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    x = leaf(1.0)
    gc.disable()
    try:
        y = Exp.apply(x)
        node = weakref.ref(y.grad_fn)
        del y
        assert node() is None
    finally:
        gc.enable()
    y = Exp.apply(x)
    z = y * 1
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        z.backward()


def test_misuse_is_explained():
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        Cube()
    with pytest.raises(NotImplementedError, match="forward"):
        Function.apply(leaf(1.0))
    with pytest.raises(RuntimeError, match="second time"):
        y = Cube.apply(leaf(1.0))
        y.backward()
        y.backward()


def test_nothing_is_recorded_without_grad():
    with torch.no_grad():
        assert not Cube.apply(leaf(1.0)).requires_grad


def test_attributes_of_ctx_may_have_any_name():
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, k):
            ctx.shape, ctx.dtype, ctx.count, ctx.edges, ctx.seq, ctx.plan, ctx.extra = x.shape, x.dtype, k, 1, 2, 3, 4
            ctx.node, ctx.nr, ctx.saved, ctx.function = 5, 6, 7, 8
            return x.reshape(-1) * k

        @staticmethod
        def backward(ctx, g):
            assert (ctx.dtype, ctx.edges, ctx.plan, ctx.node, ctx.nr) == (torch.float32, 1, 3, 5, 6)
            return g.reshape(ctx.shape) * ctx.count, None

    x = torch.ones(2, 3, requires_grad=True)
    y = Scale.apply(x, 2)
    y.sum().backward()
    assert x.grad.tolist() == [[2.0] * 3] * 2 and y.grad_fn.ctx.count == 2
    with pytest.raises(AttributeError):
        y.grad_fn.nothing


class Exp(torch.autograd.Function):
    """Saves its result for backward and for jvp."""

    @staticmethod
    def forward(x):
        return x.exp(), x.sin()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*output)
        ctx.save_for_forward(*output, *inputs)

    @staticmethod
    def backward(ctx, g, _):
        return g * ctx.saved_tensors[0]

    @staticmethod
    def jvp(ctx, t):
        return t * ctx.saved_tensors[0], t * ctx.saved_tensors[2].cos()


@pytest.mark.parametrize("dual", [False, True])
def test_saved_results_close_no_cycle(dual):
    gc.collect()
    gc.disable()
    try:
        with torch.autograd.forward_ad.dual_level():
            x = torch.ones(2, requires_grad=True)
            y, z = Exp.apply(torch.autograd.forward_ad.make_dual(x, torch.ones(2)) if dual else x)
            assert dual == (torch.autograd.forward_ad.unpack_dual(z).tangent is not None)
        seen = [weakref.ref(t) for t in (y, z, y.grad_fn)]
        del y, z
        assert [ref() for ref in seen] == [None] * 3
    finally:
        gc.enable()


def test_arguments_by_keyword_alone_do_not_get_lost():
    class Scaled(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, *, by=1):
            return x * by

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, g):
            return g

    class Older(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, *, by):
            return x * by

    x = torch.ones(2)
    assert Scaled.apply(x).tolist() == [1, 1]
    assert Older.apply(x, by=3).tolist() == [3, 3]
    for function in (Scaled, Older):
        with pytest.raises(NotImplementedError, match=r"kwarg-only Tensor args.*got by"):
            torch.func.vmap(lambda x: function.apply(x, by=torch.tensor(2)))(x)  # noqa: B023
    with pytest.raises(NotImplementedError, match=r"kwarg-only Tensor args.*got by"):
        Scaled.apply(x, by=2)
