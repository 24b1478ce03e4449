"""Runs with targets: what lies behind the targets is neither looked at nor freed."""

import random

import pytest

import rushlight as torch
from rushlight.autograd.graph import get_gradient_edge
from rushlight.engine import reach


def ones(n=2):
    return torch.ones(n, requires_grad=True)


def test_what_lies_behind_a_target_can_still_be_differentiated():
    x = ones()
    h = x.exp()
    (g,) = torch.autograd.grad(h.sin().sum(), h)
    h.backward(g)
    assert torch.allclose(x.grad, x.exp().cos() * x.exp())


def test_a_gradient_edge_as_target_frees_nothing_behind_it():
    x = ones()
    h = x.exp()
    (g,) = torch.autograd.grad(h.sin().sum(), get_gradient_edge(h))
    h.backward(g)
    assert x.grad is not None


def test_gradients_on_disjoint_branches_of_one_graph():
    x, y = ones(), ones()
    a, b = x.exp(), y.exp()
    out = (a.sin() + b.cos()).sum()
    middle = out * 2
    (ga,) = torch.autograd.grad(middle, a, retain_graph=True)
    (gx,) = torch.autograd.grad(a, x, ga)
    (gy,) = torch.autograd.grad(b, y, torch.ones(2))
    assert torch.allclose(gx, 2 * a.cos() * a) and torch.allclose(gy, b)


def test_only_the_nodes_that_ran_are_freed():
    x, y = ones(), ones()
    a, b = x.exp(), y.exp()
    out = (a * b).sum()
    torch.autograd.grad(out, a)
    torch.autograd.grad(b.sum(), y)  # this side was not run
    torch.autograd.grad(a.sum(), x)
    with pytest.raises(RuntimeError, match="a second time"):
        torch.autograd.grad(out, a)


def test_backward_into_an_intermediate_runs_its_node_and_nothing_behind():
    x = ones()
    h = x.exp()
    b = h.sin()
    torch.autograd.backward((b * 3).sum(), inputs=[b])
    assert b.grad.tolist() == [3.0, 3.0] and b.retains_grad and x.grad is None
    with pytest.raises(RuntimeError, match="a second time"):
        b.sum().backward()
    h.sum().backward()
    assert x.grad is not None


@pytest.mark.parametrize("shape", [(2, 2), (1, 2, 2)])
def test_backward_into_a_product_whose_graph_was_freed_is_refused_and_its_gradient_alone_is_not(shape):
    x = torch.ones(shape, requires_grad=True)
    y = x @ x
    torch.autograd.grad(y.sum(), x)
    assert torch.autograd.grad(y.sum(), y)[0].sum() == x.numel()
    with pytest.raises(RuntimeError, match="second time"):
        y.sum().backward(inputs=[y])


def test_backward_into_an_intermediate_accumulates():
    x = ones()
    b = x * 2
    out = (b * 3).sum()
    for _ in range(2):
        torch.autograd.backward(out, inputs=[b], retain_graph=True)
    assert b.grad.tolist() == [6.0, 6.0]


def test_a_target_behind_another_target():
    x = ones()
    b = x.exp()
    c = b.sin()
    gc, gb, gx = torch.autograd.grad((c * c).sum(), [c, b, x])
    assert torch.allclose(gc, 2 * c) and torch.allclose(gb, 2 * c * b.cos()) and torch.allclose(gx, gb * b)


def test_an_output_that_leads_to_no_target_is_left_alone():
    x, y = ones(), ones()
    a, b = x.exp(), y.exp()
    torch.autograd.grad([a, b], [x], [torch.ones(2), torch.ones(2)])
    torch.autograd.grad(b, y, torch.ones(2))


def test_one_of_several_outputs_as_target():
    x = torch.tensor([3.0, 1.0, 2.0], requires_grad=True)
    first, second, _ = (x * 1).unbind()
    (g,) = torch.autograd.grad(first * second * 2, second, retain_graph=True)
    assert g.item() == 6.0
    g = torch.autograd.grad(first * second * 2, [first, second])
    assert [v.item() for v in g] == [2.0, 6.0]


def test_an_output_as_its_own_target():
    x = ones()
    y = x.exp()
    (g,) = torch.autograd.grad(y, y, torch.full((2,), 5.0))
    assert g.tolist() == [5.0, 5.0]
    y.sum().backward()


def test_create_graph_between_a_late_tensor_and_the_output():
    x = ones()
    h = x.exp()
    y = h.sin()
    (d,) = torch.autograd.grad(y.sum(), h, create_graph=True)
    (e,) = torch.autograd.grad(d.sum(), x)
    assert torch.allclose(e, -h.sin() * h)


def test_a_view_changed_in_place_as_target():
    base = torch.zeros(2, 2, requires_grad=True) * 1
    row = base[0]
    base.mul_(3)
    row.add_(1)
    (g,) = torch.autograd.grad((row * row).sum(), row)
    assert g.tolist() == [2.0, 2.0]
    (g,) = torch.autograd.grad((base * 2).sum(), base)
    assert g.tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_a_gradient_by_saved_tensors_inside_a_backward_leaves_the_outer_graph_alone():
    class Solve(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                loss = (x * x * grad).sum()
            return torch.autograd.grad(loss, [x])[0]

    w = torch.tensor([2.0], requires_grad=True)
    Solve.apply(w.exp().exp()).sum().backward()
    expected = torch.tensor([2.0], requires_grad=True)
    (expected.exp().exp() ** 2).sum().backward()
    assert torch.allclose(w.grad, expected.grad)


def test_reentrant_gradients_by_intermediates():
    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.x = x.detach().requires_grad_()
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            with torch.enable_grad():
                h = ctx.x.exp()
                (g,) = torch.autograd.grad((h * h).sum(), h)
                h.backward(g)
            return grad * ctx.x.grad

    x = torch.zeros(1, requires_grad=True)
    h = x.exp()
    (g,) = torch.autograd.grad(Inner.apply(h.sin()).sum(), h)
    h.sum().backward()
    assert torch.allclose(g, 2 * h.sin().mul(2).exp() * h.cos()) and x.grad is not None


def test_a_custom_function_off_the_way_is_not_run():
    class Refuses(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            raise ValueError("not on the way")

    x, y = ones(), ones()
    h = x.exp()
    out = (h * Refuses.apply(y)).sum()
    assert torch.autograd.grad(out, h)[0].tolist() == [2.0, 2.0]


def test_a_checkpoint_behind_a_target_is_not_computed_again():
    calls = []

    def block(x):
        calls.append(1)
        return x.exp().exp()

    x = ones()
    h = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
    (g,) = torch.autograd.grad(h.sin().sum(), h)
    assert len(calls) == 1
    h.backward(g)
    assert len(calls) == 2


def test_gradients_by_any_tensor_agree_with_those_of_the_whole_graph():
    chance = random.Random(0)
    for _ in range(30):
        leaves = [torch.rand(3, dtype=torch.float64, requires_grad=True) for _ in range(3)]
        made = list(leaves)
        for _ in range(25):
            a, b = chance.choice(made), chance.choice(made)
            kind = chance.randrange(4)
            if kind == 0:
                one, two = (a * b).split([1, 2])
                made += [torch.cat([two, one]), one + a]
            elif kind == 1:
                made.append((a[:1] + b[-1:]).expand(3))
            else:
                made.append(a.sin() if kind == 2 else (a * 1).mul_(b[:1]))
        targets = chance.sample(made, 3)
        out = sum(t.sum() for t in made[-6:])
        for t in made:
            if not t.is_leaf:
                t.retain_grad()
        out.backward(retain_graph=True)
        expected = [t.grad if t.grad is None else t.grad.clone() for t in targets]
        found = torch.autograd.grad(out, targets, allow_unused=True)
        for g, whole in zip(found, expected, strict=True):
            assert (g is None) == (whole is None)
            assert g is None or torch.allclose(g, whole)


def test_a_gradient_by_a_late_tensor_looks_at_no_more_in_a_longer_graph(monkeypatch):
    looked_at = []

    def younger(roots, wanted, real=reach.younger):
        found = real(roots, wanted)
        looked_at.append(len(found))
        return found

    monkeypatch.setattr(reach, "younger", younger)
    y, w = torch.ones(4, requires_grad=True), torch.ones(4, requires_grad=True)
    for _ in range(40):
        g = (y * w).sin()
        (d,) = torch.autograd.grad(g, y, torch.ones(4), create_graph=True, allow_unused=True)
        y = y + 0.001 * g + 0.0001 * d
    assert len(looked_at) == 40 and looked_at[-1] == looked_at[1] <= 4


def test_hooks_of_the_one_output_run_though_it_leads_to_no_target():
    x, z, seen = ones(), ones(), []
    out = x.exp().sum()
    out.retain_grad()
    out.register_hook(lambda g: seen.append("output"))
    out.grad_fn.register_prehook(lambda g: seen.append("node"))
    x.register_hook(lambda g: seen.append("leaf"))
    assert torch.autograd.grad(out, z, allow_unused=True, retain_graph=True) == (None,)
    assert seen == ["output"] and out.grad == 1
    assert torch.autograd.grad(x, z, torch.ones(2), allow_unused=True) == (None,)
    assert seen == ["output", "leaf"]
    torch.autograd.grad([out, x.sum()], z, allow_unused=True)  # of several, none is run
    assert seen == ["output", "leaf"]


def test_hooks_of_one_output_of_several_run_though_it_leads_to_no_target():
    x, z, seen = torch.ones(2, 2, requires_grad=True), ones(), []
    first, second = (x * 1).unbind()
    second.register_hook(seen.append)
    first.register_hook(seen.append)
    torch.autograd.grad(second, z, torch.full((2,), 3.0), allow_unused=True)
    assert len(seen) == 1 and seen[0].tolist() == [3.0, 3.0]
