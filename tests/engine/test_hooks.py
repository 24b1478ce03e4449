"""Hooks: which run, when, and what they may return."""

import gc
import weakref

import pytest
from tests.leaves import leaf

import rushlight as torch


def test_tensor_hook_replaces_the_gradient_and_can_be_removed():
    x = leaf(1.0)
    y = x * 3
    handle = y.register_hook(lambda g: g * 10)
    y.sum().backward()
    handle.remove()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [33.0]


def test_leaf_hook_sees_the_sum_of_all_contributions_once():
    x = leaf(1.0)
    seen = []
    x.register_hook(lambda g: seen.append(g.item()))
    (x * 2 + x * 3).backward()
    assert seen == [5.0]


def test_order_tensor_hooks_then_retained_grad_then_prehooks_then_posthooks():
    x = leaf(2.0)
    y = x * x
    seen = []
    y.retain_grad()
    y.register_hook(lambda g: g * 2)
    y.grad_fn.register_prehook(lambda gs: seen.append(("pre", gs[0].item(), y.grad.item())))
    y.grad_fn.register_hook(lambda gi, go: seen.append(("post", gi[0].item(), go[0].item())))
    y.backward()
    assert y.grad.item() == 2.0
    assert seen == [("pre", 2.0, 2.0), ("post", 4.0, 2.0)]


def test_prehook_and_posthook_replace():
    x = leaf(2.0)
    y = x * 3
    y.grad_fn.register_prehook(lambda gs: (gs[0] * 5,))
    y.grad_fn.register_hook(lambda gi, go: (gi[0] + 1, None))
    y.backward()
    assert x.grad.tolist() == [16.0]


def test_post_accumulate_hook_runs_after_accumulation_and_must_return_none():
    x = leaf(1.0)
    seen = []
    handle = x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.item()))
    (x * 4).backward()
    assert seen == [4.0]
    handle.remove()
    x.register_post_accumulate_grad_hook(lambda t: t.grad)
    with pytest.raises(RuntimeError, match="Tensor post accumulate grad hooks should return None"):
        (x * 4).backward()


def test_registration_is_refused_where_no_gradient_flows():
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        torch.ones(1).register_hook(print)
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        torch.ones(1).register_post_accumulate_grad_hook(print)
    with pytest.raises(RuntimeError, match="non-leaf"):
        (leaf(1.0) * 2).register_post_accumulate_grad_hook(print)


def test_accumulate_grad_node_is_one_object_and_its_hooks_run():
    x = leaf(1.0)
    node = x.view_as(x).grad_fn.next_functions[0][0]
    assert node is x.view_as(x).grad_fn.next_functions[0][0]
    assert node.name() == "torch::autograd::AccumulateGrad" and node.variable is x
    seen = []
    node.register_hook(lambda gi, go: seen.append(x.grad.item()))
    (x * 3).backward()
    assert seen == [3.0]


@pytest.mark.parametrize("mode", ["all", "any"])
def test_multi_grad_hook(mode):
    a, b, c = leaf(1.0), leaf(1.0), leaf(1.0)
    seen = []
    torch.autograd.graph.register_multi_grad_hook((a, b, c), seen.append, mode=mode)
    (a * 2 + b * 3).backward()
    if mode == "all":
        assert [None if g is None else g.item() for g in seen[0]] == [2.0, 3.0, None]
    assert len(seen) == 1
    (a + b + c).backward()
    assert len(seen) == 2


def test_hook_results_are_checked():
    x = leaf(1.0)
    y = x * 1
    y.register_hook(lambda g: "no tensor")
    with pytest.raises(TypeError, match="expected Tensor"):
        y.backward()
    y = x * 1
    y.register_hook(lambda g: torch.ones(3, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="changed the size"):
        y.backward()


def test_retain_grad_of_a_tensor_that_died_is_harmless():
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    z = y * 3
    del y
    z.backward()
    assert x.grad.tolist() == [6.0]


def test_dot_grad_of_a_non_leaf_warns():
    y = leaf(1.0) * 2
    with pytest.warns(UserWarning, match="not a leaf"):
        assert y.grad is None


@pytest.mark.parametrize("mode", ["all", "any"])
def test_a_hook_of_several_tensors_closes_no_cycle(mode):
    gc.disable()
    try:
        x = torch.ones(2, requires_grad=True)
        y = x * 2
        torch.autograd.graph.register_multi_grad_hook([x, y], lambda grads: None, mode=mode)
        refs = weakref.ref(x), weakref.ref(y), weakref.ref(y.grad_fn)
        del x, y
        assert [ref() for ref in refs] == [None] * 3
    finally:
        gc.enable()


def test_retain_grad_of_a_view_that_was_not_recorded_looks_at_no_history():
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        v = x.view(2)
        x.mul_(2)
    v.retain_grad()
    assert not v.retains_grad
    v.requires_grad_(False)
    with pytest.raises(RuntimeError, match="forbidden"):
        v * 2


@pytest.mark.parametrize("stop", [lambda x: x.detach_(), lambda x: x.requires_grad_(False)])
def test_hooks_of_what_ceased_to_require_grad_still_run(stop):
    x, log = torch.ones(2, requires_grad=True), []
    node = torch.autograd.graph.get_gradient_edge(x).node
    node.register_hook(lambda inputs, outputs: log.append("node"))
    x.register_hook(lambda g: log.append(g.tolist()))
    x.register_post_accumulate_grad_hook(lambda x: log.append(x.grad))
    y = (x * 3).sum()
    stop(x)
    y.backward()
    assert log == [[3, 3], None, "node"]
    assert x.grad is None


def test_the_node_of_a_fill_has_an_input_for_a_tensor_and_none_for_a_number():
    x, i = torch.ones(2, requires_grad=True), torch.tensor([0])
    assert len(x.index_fill(0, i, 2.0).grad_fn.next_functions) == 1
    assert len(x.index_fill(0, i, torch.tensor(2.0)).grad_fn.next_functions) == 2


def test_a_view_of_what_was_detached_and_changed_shows_no_node():
    x = torch.ones(2, requires_grad=True)
    v = (x * 1).view(2)
    v._base.detach_()
    v._base.neg_()
    assert v.grad_fn is None


def test_a_view_that_was_changed_in_place_retains_the_gradient_of_what_it_is_now_alone():
    a = torch.tensor(1.0, requires_grad=True)
    base = torch.stack([a, a])
    view = base.transpose(0, 0)
    view.retain_grad()
    view.index_add_(0, torch.tensor([1, 1]), view.clone())  # computed from what the view was
    (base * base).sum().backward(retain_graph=True)
    assert view.grad is None and a.grad == 20.0
    (view * 2).sum().backward()
    assert view.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("create", [False, True])
def test_hooks_of_nodes_see_gradients_in_shape_and_dtype_of_the_inputs(create):
    """They saw them as the formula gave them, before they were summed over what had been broadcast."""
    a, b = torch.ones(3, 2, dtype=torch.float64, requires_grad=True), torch.ones(2, requires_grad=True)
    for y in (
        a + b,
        a * b,
        torch.lerp(a, b.double(), 0.3),
        torch.addmm(b.double(), a, torch.ones(2, 2, dtype=torch.float64)),
    ):
        seen = []
        y.grad_fn.register_hook(lambda grads, _, seen=seen: seen.extend(g for g in grads if g is not None))
        torch.autograd.grad(y.sum(), (a, b), create_graph=create)
        assert sorted(tuple(g.shape) for g in seen) == [(2,), (3, 2)]
        assert all(g.dtype in (torch.float32, torch.float64) for g in seen)
    seen.clear()
    y = a + b
    y.grad_fn.register_hook(lambda grads, _: seen.extend(grads))
    y.sum().backward()
    assert [g.dtype for g in seen] == [torch.float64, torch.float32]
    assert seen[1].tolist() == [3.0, 3.0]


@pytest.mark.parametrize("create", [False, True])
@pytest.mark.parametrize("complex", [False, True])
def test_a_base_that_requires_no_grad_is_given_none_where_a_part_was_changed(create, complex):
    x, base = torch.ones(3, requires_grad=True), torch.ones(3, 2, dtype=torch.complex64 if complex else None)
    part = base.conj()[:, 0] if complex else base[:, 0]
    part.copy_(x * 2)
    seen = []
    base.grad_fn.register_hook(lambda grads, _: seen.append([g if g is None else tuple(g.shape) for g in grads]))
    out = torch.view_as_real(base) if complex else base
    (g,) = torch.autograd.grad(out.sum(), x, create_graph=create)
    assert seen == [[None, (3,)]]
    assert g.tolist() == [2.0] * 3
