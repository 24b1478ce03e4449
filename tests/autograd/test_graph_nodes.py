"""Nodes seen from outside: what they saved, their hooks, their metadata, edges."""

import gc
import weakref

import pytest

import rushlight as torch
from rushlight.autograd import graph


def pair():
    return torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 4.0], requires_grad=True)


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


def test_what_a_node_of_a_custom_function_shows():
    node = Doubled.apply(torch.ones(2, requires_grad=True)).grad_fn
    assert repr(node).startswith("<torch.autograd.function.DoubledBackward object at 0x")
    assert type(node).__name__ == node.name() == "DoubledBackward"


def test_what_a_node_shows():
    a, b = pair()
    node = (a * b).grad_fn
    assert isinstance(node, graph.Node) and node.name() == "MulBackward0" and node.requires_grad
    assert repr(node).startswith("<MulBackward0 object at 0x")
    assert [(n.name(), nr) for n, nr in node.next_functions] == [("torch::autograd::AccumulateGrad", 0)] * 2
    assert node.next_functions[0][0].variable is a
    (meta,) = node._input_metadata
    assert meta.shape == (2,) and meta.dtype is torch.float32 and meta.device.type == "cpu"
    assert {"_saved_self", "_saved_other", "_raw_saved_self", "metadata", "name", "next_functions"} <= set(dir(node))
    assert (a * b).grad_fn._sequence_nr() > node._sequence_nr()
    node.metadata["mine"] = 1
    assert node.metadata == {"mine": 1}


def test_a_node_can_be_called():
    a, b = pair()
    ga, gb = (a * b).grad_fn(torch.ones(2))
    assert torch.equal(ga, b) and torch.equal(gb, a) and ga.requires_grad
    node = (a * b).grad_fn
    with torch.no_grad():
        assert not node(torch.ones(2))[0].requires_grad


def test_saved_values_by_pytorchs_names():
    a, b = pair()
    y = a * b
    assert y.grad_fn._saved_self is a and y.grad_fn._saved_other is b
    assert torch.equal(a.exp().grad_fn._saved_result, a.exp())
    assert a.pow(2).grad_fn._saved_exponent == 2 and a.sum(0).grad_fn._saved_dim in (0, (0,))
    m = torch.ones(2, 2, requires_grad=True)
    assert torch.equal((m @ m).grad_fn._saved_mat2, m)
    assert (a * torch.ones(2)).grad_fn._saved_self is None
    with pytest.raises(AttributeError, match="_saved_foo"):
        y.grad_fn._saved_foo
    y.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.grad_fn._saved_self


def test_hooks_on_one_saved_tensor():
    a, b = pair()
    y = a * b
    calls = []

    def pack(t):
        calls.append("pack")
        return t.numpy().copy()

    def unpack(n):
        calls.append("unpack")
        return torch.from_numpy(n) * 10

    y.grad_fn._raw_saved_self.register_hooks(pack, unpack)
    y.sum().backward()
    assert calls == ["pack", "unpack"]
    assert b.grad.tolist() == [10, 20] and a.grad.tolist() == [3, 4]


def test_hooks_on_a_saved_output_and_an_auxiliary_result():
    a, _ = pair()
    y = a.exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: t.numpy() * 2, torch.from_numpy)
    y.sum().backward()
    assert torch.allclose(a.grad, 2 * a.exp())


def test_misuse_of_raw_saved_tensors():
    a, b = pair()
    y = a * b
    raw = y.grad_fn._raw_saved_self
    same = lambda t: t
    with pytest.raises(TypeError, match="two functions"):
        raw.register_hooks(1, 2)
    raw.register_hooks(same, same)
    with pytest.raises(RuntimeError, match="already been set"):
        raw.register_hooks(same, same)
    with pytest.raises(RuntimeError, match="value None"):
        (a * 2).grad_fn._raw_saved_self.register_hooks(same, same)
    with pytest.raises(RuntimeError, match="cannot be modified"):
        (a * b.clone()).grad_fn._raw_saved_other.register_hooks(lambda t: t.detach().add_(0), same)
    with pytest.raises(RuntimeError, match="forbidden"):
        type(raw)()
    y.sum().backward()
    assert raw.data is None
    with pytest.raises(RuntimeError, match="second time"):
        y.grad_fn._raw_saved_other.register_hooks(same, same)
    with graph.saved_tensors_hooks(same, same):
        z = a * b
    with pytest.raises(RuntimeError, match="already been set"):
        z.grad_fn._raw_saved_self.register_hooks(same, same)


def test_order_of_all_hooks():
    a, b = pair()
    y = a * b
    order = []

    def note(what):
        return lambda *_: order.append(what)

    y.register_hook(note("tensor 1"))
    y.grad_fn.register_prehook(note("before"))
    y.register_hook(note("tensor 2"))
    y.grad_fn.register_hook(lambda inner, outer: order.append(("after", len(inner), len(outer))))
    a.register_hook(note("leaf"))
    a.register_post_accumulate_grad_hook(note("accumulated"))
    leaf = y.grad_fn.next_functions[0][0]
    leaf.register_prehook(note("before leaf"))
    leaf.register_hook(lambda inner, outer: order.append(("after leaf", len(inner), len(outer))))
    y.sum().backward()
    assert order == ["tensor 1", "tensor 2", "before", ("after", 2, 1), "leaf", "before leaf", "accumulated",
                     ("after leaf", 0, 1)]  # fmt: skip


def test_retained_gradients_are_those_after_all_hooks():
    a, b = pair()
    y = a * b
    y.register_hook(lambda g: g * 2)
    y.retain_grad()
    y.register_hook(lambda g: g * 3)
    y.sum().backward()
    assert y.grad.tolist() == [6, 6] and a.grad.tolist() == [18, 24]


@pytest.mark.parametrize("value, error, words", [
    (3, TypeError, "expected Tensor, but hook returned 'int'"),
    (torch.ones(3), RuntimeError, "has changed the size of value"),
    (torch.ones(2).double(), RuntimeError, "has changed the type of value"),
])  # fmt: skip
def test_what_tensor_hooks_may_not_return(value, error, words):
    a, b = pair()
    y = a * b
    y.register_hook(lambda g: value)
    with pytest.raises(error, match=words):
        y.sum().backward()


@pytest.mark.parametrize("value, error, words", [
    (3, TypeError, "expected tuple, but hook returned 'int'"),
    (torch.ones(2), TypeError, "expected tuple, but hook returned 'Tensor'"),
    ((torch.ones(2),) * 3, RuntimeError, r"incorrect number of values \(got 3"),
    ((torch.ones(3),), RuntimeError, "has changed the size|incorrect number"),
])  # fmt: skip
@pytest.mark.parametrize("register", ["register_hook", "register_prehook"])
def test_what_node_hooks_may_not_return(register, value, error, words):
    a, b = pair()
    y = a * b
    getattr(y.grad_fn, register)(lambda *_: value)
    with pytest.raises(error, match=words):
        y.sum().backward()


def test_node_hooks_that_replace_gradients():
    a, b = pair()
    y = a * b
    y.grad_fn.register_prehook(lambda g: (g[0] * 5,))
    y.grad_fn.register_hook(lambda inner, outer: (None, inner[1] * 2))
    y.sum().backward()
    assert a.grad is None and b.grad.tolist() == [10, 20]


def test_hooks_are_refused_where_they_would_never_run():
    a, b = pair()
    for register in ("register_hook", "register_post_accumulate_grad_hook"):
        with pytest.raises(RuntimeError, match="doesn't require gradient"):
            getattr(torch.ones(2), register)(print)
    with pytest.raises(RuntimeError, match="non-leaf"):
        (a * b).register_post_accumulate_grad_hook(print)
    a.register_post_accumulate_grad_hook(lambda p: 3)
    with pytest.raises(TypeError, match="should return None"):
        (a * b).sum().backward()


def test_grad_of_a_non_leaf_warns():
    a, b = pair()
    y = a * b
    with pytest.warns(UserWarning, match="not a leaf Tensor is being accessed"):
        assert y.grad is None
    y.retain_grad()
    assert y.grad is None and y.retains_grad and not a.retains_grad
    with pytest.raises(RuntimeError, match="requires_grad=False"):
        torch.ones(2).retain_grad()


def test_assigned_gradients_are_checked():
    a, _ = pair()
    for value, error, words in ((torch.ones(3), RuntimeError, r"of size '\[3\]' to a tensor of size '\[2\]'"),
                                (torch.ones(2).double(), RuntimeError, "gradient with dtype"),
                                (a, RuntimeError, "its own grad"), (3, TypeError, "Tensor or None")):  # fmt: skip
        with pytest.raises(error, match=words):
            a.grad = value


def test_detach_in_place():
    a, b = pair()
    y = a * b
    y.detach_()
    assert y.is_leaf and not y.requires_grad and y.grad_fn is None
    with pytest.raises(RuntimeError, match="Can't detach views in-place"):
        (a * b)[:1].detach_()
    with pytest.raises(RuntimeError, match="leaf variables"):
        (a * b).requires_grad = False


def test_backward_into_non_leaves_and_edges():
    a, b = pair()
    y = a * b
    z = (y * y).sum()
    z.backward(inputs=[y, a], retain_graph=True)
    assert y.grad.tolist() == [6, 16] and a.grad.tolist() == [18, 64] and b.grad is None
    z.backward(inputs=graph.get_gradient_edge(b), retain_graph=True)
    assert b.grad.tolist() == [6, 32]
    with pytest.raises(RuntimeError, match="cannot be empty"):
        z.backward(inputs=[])


def test_backward_into_non_leaves_that_retain_their_gradient():
    a, b = pair()
    y = a * b
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    for times in (1, 2):
        (y * y).sum().backward(inputs=[y], retain_graph=True)
        assert y.grad.tolist() == [60 * times, 160 * times]
    (y * y).sum().backward(inputs=[a, y])
    assert y.grad.tolist() == [180, 480] and a.grad.tolist() == [180, 640]


def test_gradients_at_and_from_edges():
    a, b = pair()
    y = a * b
    edge = graph.get_gradient_edge(y)
    assert edge._fields == ("node", "output_nr", "ownership_token") and edge.node is y.grad_fn
    at, of = torch.autograd.grad((y * y).sum(), (edge, a))
    assert at.tolist() == [6, 16] and of.tolist() == [18, 64]
    y = a * b
    edge = graph.get_gradient_edge(y)
    del y
    assert torch.autograd.grad(edge, a, torch.ones(2), retain_graph=True)[0].tolist() == [3, 4]
    torch.autograd.backward(edge, torch.ones(2))
    assert a.grad.tolist() == [3, 4]
    with pytest.raises(RuntimeError, match="does not require gradients"):
        graph.get_gradient_edge(torch.ones(2))


def test_arguments_of_grad():
    a, b = pair()
    y = (a * 2).sum()
    grad = torch.autograd.grad
    with pytest.raises(RuntimeError, match="at index 1 appears to not have been used"):
        grad(y, (a, b), retain_graph=True)
    assert grad(y, (a, b), retain_graph=True, allow_unused=True)[1] is None
    assert grad(y, (a, b), retain_graph=True, materialize_grads=True)[1].tolist() == [0, 0]
    with pytest.raises(ValueError, match="materialize_grads=True"):
        grad(y, (a, b), materialize_grads=True, allow_unused=False)
    with pytest.raises(RuntimeError, match="scalar outputs"):
        grad(a * 2, a)
    with pytest.raises(RuntimeError, match="does not require grad"):
        grad(y, torch.ones(2))
    with pytest.raises(RuntimeError, match="does not have a grad_fn"):
        grad(torch.ones(()), a)
    with pytest.raises(RuntimeError, match="got 2 tensors and 1 gradients"):
        grad((a * 2, b), a, torch.ones(2))
    with pytest.raises(RuntimeError, match="cannot be empty"):
        grad(y, ())
    assert [g.tolist() for g in grad((y, b * 3), (a, b), (None, torch.ones(2)))] == [[2, 2], [3, 3]]
    assert grad(a * b, a, torch.eye(2), is_grads_batched=True)[0].tolist() == [[3, 0], [0, 4]]


def test_grad_variables_is_an_older_name():
    a, b = pair()
    with pytest.warns(FutureWarning, match="deprecated"):
        torch.autograd.backward(a * b, grad_variables=torch.ones(2))
    assert a.grad.tolist() == [3, 4]
    with pytest.warns(FutureWarning), pytest.raises(RuntimeError, match="both passed"):
        torch.autograd.backward(a * b, torch.ones(2), grad_variables=torch.ones(2))


def test_multi_grad_hooks():
    for mode in ("all", "any"):
        a, b = pair()
        c, d = a * b, a * b
        seen = []
        handle = graph.register_multi_grad_hook(
            (a, b, c, d), lambda g, seen=seen, mode=mode: seen.append([x is not None for x in g] if mode == "all" else 1),
            mode=mode,
        )  # fmt: skip
        c.sum().backward(retain_graph=True)
        c.sum().backward(inputs=(a,), retain_graph=True)
        d.sum().backward(retain_graph=True)
        (c + d).sum().backward(retain_graph=True)
        handle.remove()
        c.sum().backward()
        assert len(seen) == 4
        if mode == "all":
            assert seen == [
                [True, True, True, False],
                [True, False, True, False],
                [True, True, False, True],
                [True] * 4,
            ]
    with pytest.raises(ValueError, match="'all', 'any'"):
        graph.register_multi_grad_hook((a,), print, mode="x")


def test_increment_version():
    a, b = pair()
    y = a * b
    graph.increment_version(b)
    graph.increment_version([a, b])
    assert (a._version, b._version) == (1, 2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match="Iterable"):
        graph.increment_version(3)


def test_retained_gradients_follow_changes_in_place():
    a, b = pair()
    y = a * b
    y.retain_grad()
    y.mul_(2)
    (y * 5).sum().backward()
    assert y.grad.tolist() == [5, 5] and a.grad.tolist() == [30, 40]
    a, b = pair()
    y = a * b
    v = y[:1]
    v.retain_grad()
    y.retain_grad()
    y.mul_(3)
    v.sum().backward(retain_graph=True)
    assert v.grad.tolist() == [1] and y.grad.tolist() == [1, 0] and a.grad.tolist() == [9, 0]
    a, b = pair()
    y = a * b
    y.retain_grad()
    y[:1].mul_(3)
    y.sum().backward()
    assert y.grad.tolist() == [1, 1] and a.grad.tolist() == [9, 4]


def test_hooks_are_functions():
    with pytest.raises(TypeError, match="must be functions, got int and int"), graph.saved_tensors_hooks(1, 2):
        pass


def test_disabled_hooks():
    @graph.disable_saved_tensors_hooks("not here")
    def decorated():
        with graph.save_on_cpu():
            pass

    with pytest.raises(RuntimeError, match="not here"):
        decorated()
    with (
        graph.disable_saved_tensors_hooks("not here"),
        pytest.raises(RuntimeError, match="not here"),
        graph.save_on_cpu(),
    ):
        pass
    with (
        graph.save_on_cpu(),
        pytest.raises(RuntimeError, match="not here"),
        graph.disable_saved_tensors_hooks("not here"),
    ):
        pass


def test_nested_hooks_pack_inner_first():
    order = []

    def hooks(name):
        def pack(t):
            order.append(f"pack {name}")
            return t

        def unpack(t):
            order.append(f"unpack {name}")
            return t

        return graph.saved_tensors_hooks(pack, unpack)

    x = torch.ones(2, requires_grad=True)
    with hooks("outer"), hooks("inner"):
        y = x.sin()
    y.sum().backward()
    assert order == ["pack inner", "pack outer", "unpack outer", "unpack inner"]


def test_outer_hooks_get_tensors_whatever_inner_ones_return():
    seen = []

    def pack(t):
        seen.append(type(t))
        return {"half": t.numpy().astype("float16")}

    outer = graph.saved_tensors_hooks(pack, lambda d: torch.from_numpy(d["half"].astype("float32")))
    inner = graph.saved_tensors_hooks(lambda t: ("note", [t * 2, t.shape]), lambda v: v[1][0] / 2)
    opaque = graph.saved_tensors_hooks(lambda t: t.numpy().copy(), torch.from_numpy)
    for contexts in ((outer, inner), (outer, graph.save_on_cpu()), (outer, opaque), (outer, inner, graph.save_on_cpu()),
                     (graph.save_on_cpu(), graph.save_on_cpu())):  # fmt: skip
        a, b = pair()
        with contexts[0], contexts[1], contexts[-1] if len(contexts) > 2 else graph.saved_tensors_hooks(id_, id_):
            y = a * b
        assert y.grad_fn._saved_self.tolist() == [1, 2]
        y.sum().backward()
        assert a.grad.tolist() == [3, 4] and b.grad.tolist() == [1, 2]
    assert set(seen) == {torch.Tensor}


def id_(t):
    return t


def test_packed_outputs_close_no_cycle():
    gc.collect()
    gc.disable()
    try:
        x = torch.ones(2, requires_grad=True)
        with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            y = x.exp()
        ref = weakref.ref(y.grad_fn)
        del y
        assert ref() is None
    finally:
        gc.enable()


def test_names_that_change_nothing_here():
    with torch.autograd.set_multithreading_enabled(False), torch.autograd.grad_mode.enforce_grad_layout_policy():
        pass
    assert torch.autograd.set_multithreading_enabled(True)(lambda: 3)() == 3
    assert torch.autograd.grad_mode.no_grad is torch.no_grad
    graph.set_warn_on_accumulate_grad_stream_mismatch(False)
    assert not torch.is_anomaly_enabled() and torch.is_anomaly_check_nan_enabled()
    torch.set_anomaly_enabled(True)
    assert torch.is_anomaly_enabled()
    torch.set_anomaly_enabled(False)


def test_tensors_that_require_no_grad_are_passed_over_where_any_gradient_is_awaited():
    a, b, seen = torch.ones(2), torch.ones(2, requires_grad=True), []
    handle = graph.register_multi_grad_hook([a, b], lambda g: seen.append(g.tolist()), mode="any")
    (a * b).sum().backward()
    handle.remove()
    graph.register_multi_grad_hook([a], print, mode="any").remove()
    assert seen == [[1, 1]]
    with pytest.raises(AssertionError, match="tensor 1 requires no grad"):
        graph.register_multi_grad_hook([b, a], print)


@pytest.mark.parametrize("join", [torch.stack, torch.cat])
def test_a_hook_of_a_node_sees_none_where_nobody_asks_for_a_gradient(join):
    seen, x = [], torch.ones(2, requires_grad=True)
    z = x * 1
    y = join([z, x])
    y.grad_fn.register_hook(lambda grads, _: seen.append([g is None for g in grads]))
    torch.autograd.grad(y.sum(), z, retain_graph=True)
    y.sum().backward()
    assert seen == [[False, True], [False, False]]


def test_a_post_accumulate_hook_that_returns_a_tensor_is_refused_before_the_next():
    x, called = torch.ones(2, requires_grad=True), []
    x.register_post_accumulate_grad_hook(lambda p: p.grad)
    x.register_post_accumulate_grad_hook(lambda p: called.append(p))
    with pytest.raises(RuntimeError, match="should return None"):
        (x * 2).sum().backward()
    assert called == []


def test_a_hook_after_a_change_of_what_is_viewed_is_for_the_new_history():
    seen, x = [], torch.ones(2, 2, requires_grad=True)
    y = x * 1
    view = y.flatten()
    view.register_hook(lambda g: seen.append(("first", g.tolist())))
    y.mul_(2)
    view.register_hook(lambda g: seen.append(("second", g.tolist())))
    (view * 3).sum().backward()
    assert seen == [("second", [3.0] * 4)]


@pytest.mark.parametrize(("change", "shown"), [
    (lambda v, z: v.index_fill_(0, torch.tensor([0]), 0.0), [False]), (lambda v, z: v.fill_(1.0), [False]),
    (lambda v, z: v.mul_(z), [False, False]), (lambda v, z: v.add_(1), [False, True]), (lambda v, z: v.pow_(2), [False]),
    (lambda v, z: v.masked_fill_(torch.tensor([True, False]), 3.0), [False]), (lambda v, z: v.copy_(z), [False, False]),
])  # fmt: skip
def test_a_change_of_a_part_shows_the_inputs_that_the_operator_shows(change, shown):
    seen, x, z = [], torch.ones(2, 2, requires_grad=True), torch.ones(2, requires_grad=True)
    y = x * 1
    change(y[0], z)
    y.grad_fn.register_hook(lambda grads, _: seen.append([g is None for g in grads]))
    assert [node is None for node, _ in y.grad_fn.next_functions] == shown
    y.sum().backward()
    assert seen == [shown]


class _Noted(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = "the user's"
        ctx.metadata["forward"] = isinstance(ctx, torch.autograd.graph.Node)
        ctx.register_hook(lambda grad_inputs, grad_outputs: (grad_inputs[0] * 2,))
        return x * 1

    @staticmethod
    def backward(ctx, g):
        assert isinstance(ctx, torch.autograd.graph.Node)
        assert ctx.next_functions[0][0].name() == "torch::autograd::AccumulateGrad"
        assert (ctx.shape, ctx.metadata) == ("the user's", {"forward": True, "outside": 1})
        return g * ctx.factor


def test_the_context_of_a_function_has_the_hooks_edges_notes_and_attributes_of_its_node():
    x = torch.ones(1, requires_grad=True)
    node = _Noted.apply(x).grad_fn
    node.factor = 5
    node.metadata["outside"] = 1
    (g,) = torch.autograd.grad(_backward_of(node), x)
    assert g.tolist() == [10.0] and node.shape == (1,)
    del node.factor
    with pytest.raises(AttributeError, match="_NotedBackward"):
        node.factor


def _backward_of(node):
    """An edge to what a node made."""
    return torch.autograd.graph.GradientEdge(node, 0)


def test_a_function_and_its_context_are_freed_by_reference_counts():
    y = _Noted.apply(torch.ones(1, requires_grad=True))
    y.grad_fn.note = torch.ones(1)
    gone = weakref.ref(y.grad_fn), weakref.ref(y)
    gc.disable()
    try:
        del y
        assert [r() for r in gone] == [None, None]
    finally:
        gc.enable()


def test_changes_are_not_counted_where_that_is_asked_for() -> None:
    x, y = torch.ones(2), torch.ones(2)
    with torch.autograd._unsafe_preserve_version_counter((x, y)):
        x.add_(1), y.add_(1)
    with (
        torch.autograd.grad_mode._unsafe_preserve_version_counter(x),
        torch.autograd._force_original_view_tracking(True),
    ):
        x.add_(1)
    assert (x._version, y._version) == (0, 0)
