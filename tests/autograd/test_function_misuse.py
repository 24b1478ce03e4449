"""What custom functions may and may not do, as in PyTorch."""

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

import rushlight as torch
from rushlight.autograd import Function
from rushlight.autograd.function import InplaceFunction, once_differentiable


def leaf():
    return torch.tensor([1.0, 2.0], requires_grad=True)


def made(forward, backward=lambda ctx, g: g, setup=None, **more):
    body = {"forward": staticmethod(forward), **more}
    if backward is not None:
        body["backward"] = staticmethod(backward)
    if setup is not None:
        body["setup_context"] = staticmethod(setup)
    return type("F", (Function,), body)


def run(function, *args):
    out = function.apply(*args)
    out = out[0] if isinstance(out, (tuple, list)) else out
    out.sum().backward()
    return [x.grad for x in args if isinstance(x, torch.Tensor) and x.is_leaf]


def double(ctx, x):
    return x * 2


@pytest.mark.parametrize("backward, error, words", [
    (lambda ctx, g: (g, g), RuntimeError, "incorrect number of gradients"),
    (lambda ctx, g: 3, RuntimeError, r"expected Variable or None \(got int\)"),
    (lambda ctx, g: torch.ones(3), RuntimeError, r"invalid gradient at index 0 - got \[3\] but expected shape compatible"),
    (lambda ctx, g: torch.complex(g, g), RuntimeError, "the argument is real"),
    (None, NotImplementedError, "You must implement either the backward or vjp"),
    (lambda ctx, g: 1 / 0, ZeroDivisionError, "division"),
])  # fmt: skip
def test_wrong_backwards(backward, error, words):
    with pytest.raises(error, match=words):
        run(made(double, backward), leaf())


def test_right_backwards():
    assert run(made(double, lambda ctx, g: (g, None, None)), leaf())[0].tolist() == [1, 1]
    assert run(made(double, lambda ctx, g: None), leaf())[0] is None
    assert run(made(double, lambda ctx, g: torch.ones(3, 2)), leaf())[0].tolist() == [3, 3]
    assert run(made(double, lambda ctx, g: g.double()), leaf())[0].dtype is torch.float32


@pytest.mark.parametrize("value", [3, torch.ones(2)])
def test_a_gradient_for_what_is_no_tensor(value):
    with pytest.raises(RuntimeError, match="position 2, but the corresponding forward input was not a Variable"):
        run(made(lambda ctx, x, k: x * k, lambda ctx, g: (g, value)), leaf(), 5)


def test_a_gradient_for_what_requires_none_is_dropped():
    run(made(lambda ctx, x, k: x * 2, lambda ctx, g: (g, g)), leaf(), torch.ones(2))


def test_backward_and_vjp():
    body = {"forward": staticmethod(double), "vjp": staticmethod(lambda ctx, g: g * 2)}
    assert run(type("F", (Function,), body), leaf())[0].tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="Implementing both 'backward' and 'vjp'"):
        run(type("F", (Function,), {**body, "backward": staticmethod(lambda ctx, g: g)}), leaf())


def test_instances_are_of_no_use():
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        instance = made(double)()
    with pytest.raises(RuntimeError, match="non-static forward"):
        instance(leaf())
    with pytest.raises(NotImplementedError, match="implement the forward function"):
        type("F", (Function,), {}).apply(leaf())
    with pytest.warns(DeprecationWarning):
        assert InplaceFunction(True).inplace


def test_outputs_of_other_kinds():
    assert made(lambda ctx, x: 3).apply(leaf()) == 3 and made(lambda ctx, x: None).apply(leaf()) is None
    out = made(lambda ctx, x: (x * 2, "a", None), lambda ctx, g, h, k: g).apply(leaf())
    assert out[0].requires_grad and out[1:] == ("a", None)
    out[0].sum().backward()


def test_keyword_arguments_and_defaults():
    assert made(lambda ctx, x, k=3: x * k, lambda ctx, g: (g, None)).apply(leaf(), k=2).tolist() == [2, 4]

    def keep(ctx, inputs, output):
        ctx.k = inputs[1]

    scale = made(lambda x, k=7: x * k, lambda ctx, g: (g * ctx.k, None), keep)
    assert run(scale, leaf())[0].tolist() == [7, 7]
    assert scale.apply(leaf(), k=2).tolist() == [2, 4]


def test_what_may_be_saved():
    def two(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_backward(x * 2)
        return x * 2

    assert run(made(two, lambda ctx, g: g * ctx.saved_tensors[0]), leaf())[0].tolist() == [2, 4]

    def number(ctx, x):
        ctx.save_for_backward(x, 3)

    with pytest.raises(TypeError, match="argument 1 is of type int"):
        made(number).apply(leaf())

    def ahead(ctx, x):
        ctx.save_for_forward(3)

    with pytest.raises(AssertionError, match="save_for_forward expects all arguments"):
        made(ahead).apply(leaf())


def square(ctx, x):
    ctx.save_for_backward(x)
    return x * x


def slope(ctx, g):
    return 2 * g * ctx.saved_tensors[0]


def test_saved_tensors_from_outside():
    x = leaf()
    out = made(square, slope).apply(x)
    assert out.grad_fn.saved_tensors[0] is x and out.grad_fn.name() == "FBackward"
    (raw,) = out.grad_fn._raw_saved_tensors
    raw.register_hooks(lambda t: t * 10, lambda t: t)
    with pytest.raises(RuntimeError, match="already been set"):
        raw.register_hooks(lambda t: t, lambda t: t)
    out.sum().backward()
    assert x.grad.tolist() == [20, 40]
    with pytest.raises(RuntimeError, match="second time"):
        out.sum().backward()
    with pytest.warns(DeprecationWarning, match="saved_variables"):
        run(made(square, lambda ctx, g: g * ctx.saved_variables[0]), leaf())


def test_a_saved_tensor_changed_in_place():
    y = leaf() * 1
    out = made(square, slope).apply(y).sum()
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"FBackward saved as a saved tensor.*changed by add_"):
        out.backward()


def test_needs_input_grad_also_without_recording():
    seen = []
    function = made(lambda ctx, x, y, k: seen.append(ctx.needs_input_grad) or x * 2, lambda ctx, g: (g, None, None))
    function.apply(leaf(), torch.ones(2), 3)
    with torch.no_grad():
        function.apply(leaf(), torch.ones(2), 3)
    assert seen == [(True, False, False)] * 2


# In place --------------------------------------------------------------------------------------------------------


def doubled(ctx, x):
    x.mul_(2)
    ctx.mark_dirty(x)
    return x


def test_a_function_in_place():
    x = leaf()
    y = x * 1
    out = made(doubled, lambda ctx, g: g * 2).apply(y)
    assert out is y and y._version == 2 and y.grad_fn.name() == "FBackward"
    out.sum().backward()
    assert x.grad.tolist() == [2, 2]
    plain = torch.ones(2)
    assert made(doubled).apply(plain) is plain and not plain.requires_grad


def test_a_function_in_place_on_a_view():
    x = leaf()
    y = x * 1
    made(doubled, lambda ctx, g: g * 2).apply(y[:1])
    y.sum().backward()
    assert x.grad.tolist() == [2, 1]


def test_in_place_misuse():
    with pytest.raises(RuntimeError, match="leaf Variable"):
        made(doubled).apply(leaf())
    with pytest.raises(RuntimeError, match="were not returned as output"):
        made(lambda ctx, x: (ctx.mark_dirty(x), x * 1)[1]).apply(leaf() * 1)
    with pytest.raises(RuntimeError, match="mark_dirty can only accept variables"):
        made(lambda ctx, x: (ctx.mark_dirty(3), x * 1)[1]).apply(leaf())
    with pytest.raises(RuntimeError, match="mark_non_differentiable only accepts"):
        made(lambda ctx, x: (ctx.mark_non_differentiable(3), x * 1)[1]).apply(leaf())
    with pytest.warns(UserWarning, match="received a tensor that was not an input"):

        def other(ctx, x):
            y = x * 2
            ctx.mark_dirty(y)
            return y

        assert made(other).apply(leaf()).requires_grad
    with pytest.raises(RuntimeError, match="multiple views"):
        made(doubled).apply((leaf() * 1).unbind()[0])


def test_returned_inputs_and_views_are_not_changed_in_place():
    y = leaf() * 1
    for forward, words in ((lambda ctx, x: x, "Output 0 of F is a view.*custom Function"),
                           (lambda ctx, x: x[:1], "Output 0 of F is a view.*custom Function"),
                           (lambda ctx, x: (x[:1], x[1:]), "multiple views")):  # fmt: skip
        out = made(forward).apply(y)
        out = out[0] if isinstance(out, tuple) else out
        assert out is not y and out._is_view()
        with pytest.raises(RuntimeError, match=words):
            out.add_(1)


# Higher order ----------------------------------------------------------------------------------------------------


def test_once_differentiable():
    function = made(square, once_differentiable(slope))
    x = leaf()
    assert run(function, x)[0].tolist() == [2, 4]
    (g,) = torch.autograd.grad((function.apply(x) ** 2).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        torch.autograd.grad(g.sum(), x)


def test_twice_differentiable():
    x = leaf()
    (g,) = torch.autograd.grad(made(square, slope).apply(x).sum(), x, create_graph=True)
    assert torch.autograd.grad(g.sum(), x)[0].tolist() == [2, 2]


def test_under_function_transformations():
    def keep(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    function = made(lambda x: x * x, slope, keep)
    x = leaf().detach()
    assert torch.func.grad(lambda a: function.apply(a).sum())(x).tolist() == [2, 4]
    assert torch.func.jacrev(torch.func.grad(lambda a: function.apply(a).sum()))(x).tolist() == [[2, 0], [0, 2]]


@pytest.mark.parametrize(
    "saving",
    [contextlib.nullcontext, lambda: torch.stores.compress("lossless", min_bytes=0), lambda: torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)],
    ids=["plain", "store", "hooks"],
)  # fmt: skip
def test_a_saved_view_without_a_history_is_refused_where_it_is_asked_for(saving: Callable[[], Any]) -> None:
    """Not where it is saved, whatever packs what is saved."""

    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            x.mul_(2)
            ctx.save_for_backward(y)
            ctx.mark_dirty(x)
            ctx.mark_non_differentiable(x)
            return x

    x = torch.tensor([1.0, 2.0]).requires_grad_()
    part = (x * 1).chunk(2)[0]
    with saving():
        found = Doubled.apply(part, part)
    assert found.tolist() == [2.0] and not found.requires_grad
