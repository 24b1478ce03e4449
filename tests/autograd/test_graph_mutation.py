"""Saved tensors may change inside allow_mutation_on_saved_tensors."""

import pytest

import rushlight as torch
from rushlight.autograd.graph import allow_mutation_on_saved_tensors, saved_tensors_hooks


def leaf(n=4):
    return torch.ones(n, dtype=torch.float64, requires_grad=True)


def grad_of(change, use=lambda b: (b**2).sum()):
    """The gradient of `use` of a copy of ones, the copy changed afterwards, and how many copies were made."""
    with allow_mutation_on_saved_tensors() as context:
        a = leaf()
        b = a.clone()
        out = use(b)
        change(b)
        copies = len(context.cloned)
        out.backward()
        assert not context.cloned or len(context.cloned) < copies
    return a.grad.tolist(), copies


def test_the_example_of_the_reference():
    with allow_mutation_on_saved_tensors():
        a = torch.ones(2, 3, requires_grad=True)
        b = a.clone()
        out = (b**2).sum()
        b.sin_()
        out.sum().backward()
    assert torch.equal(a.grad, torch.full((2, 3), 2.0))
    assert torch.allclose(b, torch.full((2, 3), 0.8415), atol=1e-4)


@pytest.mark.parametrize("change", [
    lambda b: b.sin_(), lambda b: b.zero_(), lambda b: b.fill_(3), lambda b: b.copy_(torch.zeros(4)),
    lambda b: b.data.zero_(), lambda b: b.data[1:].mul_(2), lambda b: b.detach().zero_(), lambda b: b.__setitem__(1, 5.0), lambda b: b.__setitem__([0, 2], 5.0), lambda b: b[1:].mul_(2),
    lambda b: b.view(2, 2).t().add_(1), lambda b: b.masked_fill_(b > 0, 2), lambda b: b.index_add_(0, torch.tensor([0]),
                                                                                             torch.ones(1).double()),
])  # fmt: skip
def test_every_kind_of_change(change):
    assert grad_of(change) == ([2, 2, 2, 2], 1)


def test_out_arguments():
    with allow_mutation_on_saved_tensors():
        a, b = leaf(), torch.full((4,), 2.0, dtype=torch.float64)
        out = (a * b).sum()
        torch.add(b, b, out=b)
        out.backward()
    assert a.grad.tolist() == [2] * 4 and b.tolist() == [4] * 4


def test_changes_under_no_grad():
    def change(b):
        with torch.no_grad():
            b.mul_(7)

    assert grad_of(change) == ([2, 2, 2, 2], 1)


def test_a_tensor_saved_twice_is_copied_once():
    assert grad_of(lambda b: b.mul_(3), lambda b: (b**2).sum() + (b**3).sum()) == ([5, 5, 5, 5], 1)


def test_nothing_is_copied_without_a_change():
    assert grad_of(lambda b: None) == ([2, 2, 2, 2], 0)


def test_saved_outputs_and_custom_functions():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    assert grad_of(lambda b: b.mul_(3), lambda b: Square.apply(b).sum())[0] == [2, 2, 2, 2]
    with allow_mutation_on_saved_tensors():
        a = leaf()
        y = a.exp()
        out = y.sum()
        y.mul_(3)
        out.backward()
    assert torch.allclose(a.grad, a.detach().exp())


def test_several_versions():
    with allow_mutation_on_saved_tensors() as context:
        a = leaf()
        b = a.clone()
        first = (b**2).sum()
        b.mul_(3)
        second = (b**2).sum()
        b.mul_(3)
        assert len(context.cloned) == 2
        (first + second).backward()
        assert len(context.cloned) == 0
    assert a.grad.tolist() == [20] * 4


def test_views_of_one_memory():
    with allow_mutation_on_saved_tensors():
        a = leaf()
        b = a.clone()
        v = b[:2]
        out = (v**2).sum()
        b.mul_(3)
        v.add_(1)
        other = (b**3).sum()
        b[0] = 7
        (out + other).backward()
    assert a.grad.tolist() == [146, 146, 81, 81]


def test_second_order_and_retained_graphs():
    with allow_mutation_on_saved_tensors():
        a = leaf()
        b = a.clone()
        out = (b**3).sum()
        b.mul_(3)
        out.backward(retain_graph=True)
        out.backward(retain_graph=True)
        assert a.grad.tolist() == [6] * 4
        (g,) = torch.autograd.grad(out, a, create_graph=True)
        assert torch.autograd.grad(g.sum(), a)[0].tolist() == [6] * 4


def test_hooks_inside_and_outside():
    same = saved_tensors_hooks(lambda t: t, lambda t: t)

    def use(b):
        with saved_tensors_hooks(lambda t: t, lambda t: t):
            return (b**3).sum()

    assert grad_of(lambda b: b.mul_(3), use)[0] == [3] * 4
    with same:
        assert grad_of(lambda b: b.mul_(3))[0] == [2] * 4


def test_misuse():
    with allow_mutation_on_saved_tensors():
        with pytest.raises(RuntimeError, match="cannot be nested"), allow_mutation_on_saved_tensors():
            pass
        with pytest.raises(RuntimeError, match="leaf Variable"):
            leaf().mul_(2)
        a = leaf()
        out = (a.clone() ** 2).sum()
    with pytest.raises(AssertionError, match="outside of the 'allow_mutation"):
        out.backward()
    a = leaf()
    b = a.clone()
    out = (b**2).sum()
    with allow_mutation_on_saved_tensors():
        b.mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            out.backward()


def test_a_change_by_no_operator_is_refused():
    with allow_mutation_on_saved_tensors():
        a, w = leaf(), torch.nn.Parameter(torch.ones(4, dtype=torch.float64))
        out = (a * w * w).sum()
        w.grad = torch.ones(4, dtype=torch.float64)
        torch.optim.Adam([w]).step()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            out.backward()


def test_state_is_restored_after_errors():
    with pytest.raises(ValueError), allow_mutation_on_saved_tensors() as context:
        b = leaf().clone()
        out = (b**2).sum()
        raise ValueError
    assert not context.original and out is not None
    with allow_mutation_on_saved_tensors():
        pass


def test_where_hooks_are_switched_off_changes_cannot_be_allowed():
    with torch.autograd.graph.disable_saved_tensors_hooks("not here"), pytest.raises(RuntimeError, match="not here"):
        torch.autograd.graph.allow_mutation_on_saved_tensors().__enter__()
