"""What hooks for saved tensors are given, and in which order."""

import gc
import weakref

import pytest

import rushlight as torch
from rushlight.autograd.graph import saved_tensors_hooks


def packed_by(build) -> list[torch.Tensor]:
    """What pack hooks are given while `build` runs, in order."""
    seen: list[torch.Tensor] = []
    with saved_tensors_hooks(lambda t: seen.append(t) or t, lambda t: t):
        build()
    return seen


def test_an_input_comes_as_itself() -> None:
    layer = torch.nn.Linear(2, 2)
    x = torch.ones(1, 2, requires_grad=True)
    seen = packed_by(lambda: layer(x))
    assert any(t is layer.weight for t in seen) and isinstance(layer.weight, torch.nn.Parameter)
    y = x * 2
    assert any(t is y and t.grad_fn is not None for t in packed_by(lambda: y * x))


def test_in_the_order_in_which_formulas_ask() -> None:
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True) * 2
    first, second = packed_by(lambda: a * b)
    assert first is b and second is a  # the gradient of a needs b


def test_nothing_is_recorded_in_a_pack_hook() -> None:
    x = torch.ones(2, requires_grad=True)
    made = []
    with saved_tensors_hooks(lambda t: made.append(t * 2) or made[-1], lambda t: t / 2):
        y = x * x
    assert all(not t.requires_grad for t in made)
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_a_result_comes_outside_of_its_graph_so_that_nothing_closes_a_cycle() -> None:
    x = torch.ones(2, requires_grad=True)
    gc.collect()
    gc.disable()
    try:
        with saved_tensors_hooks(lambda t: t, lambda t: t):
            y = x.exp()
        node = weakref.ref(y.grad_fn)
        del y
        assert node() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("operator", "argument", "function"),
    [("mul", "other", lambda x: x * x), ("exp", "out", torch.exp), ("mm", "mat2", lambda x: x @ x)],
)
@pytest.mark.parametrize(
    ("wrong", "shown"),
    [(lambda t: t.detach()[:1], r"shape \[1, 2\]"), (lambda t: t.detach().double(), r"dtype torch\.float64"),
     (lambda t: t.detach().half(), r"dtype torch\.float16")],
)  # fmt: skip
def test_an_unpack_hook_that_gives_something_else_is_told_what_was_packed(operator, argument, function, wrong, shown):
    x = torch.ones(2, 2, requires_grad=True)
    with saved_tensors_hooks(lambda t: t, wrong):
        y = function(x)
    pattern = rf"unpack_hook for '{argument}', which {operator} saved has .*{shown}.*packed has shape \[2, 2\] and dtype torch\.float32"
    with pytest.raises(RuntimeError, match=pattern):
        y.sum().backward()


def test_hooks_give_back_the_very_tensor_that_does_not_require_grad():
    seen = []

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x * w

        @staticmethod
        def backward(ctx, g):
            seen[:] = ctx.saved_tensors
            return g * seen[1], None

    x, w = torch.ones(2, requires_grad=True), torch.ones(2)
    with saved_tensors_hooks(lambda t: t, lambda t: t):
        y, z = Product.apply(x, w), x * w
    y.sum().backward()
    assert seen[0] is not x and seen[0].requires_grad
    assert seen[1] is w
    assert z.grad_fn._saved_other is w
    torch.utils.checkpoint.checkpoint(lambda x: Product.apply(x, w), x, use_reentrant=False).sum().backward()
    assert seen[1] is w


def test_an_operand_on_the_memory_that_changes_is_packed_as_it_was():
    x = torch.tensor([3.0], requires_grad=True)
    with saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        y = x * 1
        y[...] *= y
    y.backward(torch.ones(1))
    assert x.grad.tolist() == [6]  # of the square: the view and its base were 3 when they were multiplied


def test_a_pack_hook_that_raises_leaves_the_tensor_unchanged():
    def refuse(t):
        raise ValueError("full")

    x = torch.ones(2, requires_grad=True) * 2
    with saved_tensors_hooks(refuse, lambda t: t), pytest.raises(ValueError, match="full"):
        x.mul_(torch.tensor([3.0, 4.0]))
    assert x.tolist() == [2, 2]


def test_auxiliary_results_of_operators_in_place_are_packed_when_they_are_there():
    x = torch.tensor([-1.0, 3.0], requires_grad=True)
    packed = []
    with saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        y = (x * 1).clamp_(0)
    y.sum().backward()
    assert x.grad.tolist() == [0, 1]


@pytest.mark.parametrize("change", [
    lambda x: x.clamp_(0.5), lambda x: x.clamp_(max=1.5), lambda x: x.clamp_(torch.tensor(0.5)), lambda x: x.cumprod_(0),
    lambda x: x.renorm_(2, 0, 1.0), lambda x: x.nan_to_num_(), lambda x: x.sigmoid_(),
])  # fmt: skip
def test_what_an_operator_in_place_notes_beside_its_result_is_packed(change):
    def gradient():
        leaf = torch.tensor([[0.25, 1.0], [2.0, 3.0]], requires_grad=True)
        change(leaf * 1).sum().backward()
        return leaf.grad.tolist()

    with saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        found = gradient()
    assert found == gradient()


@pytest.mark.parametrize(("change", "alike"), [
    (lambda x, y: x.addcmul_(y, x), lambda x, y: x + y * x),
    (lambda x, y: x.addcmul_(x, y), lambda x, y: x + x * y),
    (lambda x, y: x.addcdiv_(y, x), lambda x, y: x + y / x),
])  # fmt: skip
def test_a_tensor_that_is_changed_by_itself_hangs_in_no_cycle(change, alike):
    leaf = torch.tensor([2.0, 3.0], requires_grad=True)
    x, y = leaf * 3, leaf * 1
    kept = weakref.ref(y)
    change(x, y)
    (found,) = torch.autograd.grad(x.sum(), leaf)
    gc.disable()
    try:
        del x, y
        assert kept() is None
    finally:
        gc.enable()
    (want,) = torch.autograd.grad(alike(leaf * 3, leaf * 1).sum(), leaf)
    assert found.tolist() == pytest.approx(want.tolist())
