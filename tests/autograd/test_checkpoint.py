"""Activation checkpointing: the same gradients for less memory, in every form of backward."""

import contextlib
import functools
import gc
import tracemalloc
import warnings
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight.utils.checkpoint import (
    CheckpointError,
    CheckpointPolicy,
    GraphExecGroup,
    checkpoint,
    checkpoint_sequential,
    create_selective_checkpoint_contexts,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)

HERE = __file__
again = functools.partial(checkpoint, use_reentrant=False)


def f(a, b):
    return ((a * b).sin() * a).exp()


def leaves(n=4):
    rng = np.random.default_rng(0)
    return [torch.tensor(rng.normal(size=n), requires_grad=True) for _ in range(2)]


def gradients(call, create=False):
    a, b = leaves()
    out = call(a * 1.5, b * 2).sum()
    return torch.autograd.grad(out, (a, b), create_graph=create)


def same(xs, ys):
    return all(torch.equal(x, y) for x, y in zip(xs, ys, strict=True))


def test_gradients_are_those_of_the_plain_call():
    assert same(gradients(f), gradients(lambda a, b: again(f, a, b)))


def test_reentrant_form():
    grads = []
    for call in (f, lambda a, b: checkpoint(f, a, b, use_reentrant=True)):
        a, b = leaves()
        call(a * 1.5, b * 2).sum().backward()
        grads.append((a.grad, b.grad))
    assert same(*grads)


def test_nested():
    inner = lambda a, b: again(f, a, b) * a
    plain = lambda a, b: f(a, b) * a
    twice = lambda a, b: again(lambda a, b: again(inner, a, b).cos(), a, b)
    assert same(gradients(lambda a, b: plain(a, b).cos()), gradients(twice))


@pytest.mark.parametrize("early", [True, False])
def test_second_order(early):
    results = []
    for call in (f, lambda a, b: again(f, a, b, early_stop=early)):
        a, b = leaves()
        g = torch.autograd.grad(call(a, b).sum(), (a, b), create_graph=True)
        results.append(torch.autograd.grad(sum((x * x).sum() for x in g), (a, b)))
    assert same(*results)


def test_retain_graph_runs_again_and_keeps_nothing():
    a, b = leaves()
    out = again(f, a, b).sum()
    out.backward(retain_graph=True)
    first = a.grad.clone()
    out.backward()
    assert torch.equal(a.grad, first * 2)
    with pytest.raises(RuntimeError, match="second time"):
        out.backward()


def test_saved_attributes_can_be_looked_at():
    (a, _) = leaves()
    out = again(torch.exp, a)
    assert torch.equal(out.grad_fn._saved_result, out)
    assert torch.equal(out.grad_fn._saved_result, out)


def test_keyword_arguments_trees_and_other_values():
    a, b = leaves()

    def g(pair, scale=1, tensors=None):
        return {"x": pair[0] * pair[1] * scale, "n": 3, "y": tensors[0].exp()}

    out = again(g, (a, b), scale=2, tensors=[a])
    assert out["n"] == 3
    (out["x"].sum() + out["y"].sum()).backward()
    assert torch.allclose(a.grad, 2 * b + a.exp())


def test_early_stop_and_switch():
    reached = []

    def g(a):
        y = a * a
        reached.append("end")
        return y.sum()

    a, _ = leaves()
    again(g, a).backward()
    assert reached == ["end"]
    with set_checkpoint_early_stop(False):
        again(g, a).backward()
    assert reached == ["end"] * 3
    again(g, a, early_stop=False).backward()
    assert reached == ["end"] * 5


def test_functions_that_catch_exceptions_do_not_catch_the_early_stop():
    def g(a):
        try:
            return (a * a).sum()
        except Exception:
            pytest.fail("caught")

    a, _ = leaves()
    again(g, a).backward()


@pytest.mark.parametrize("reentrant", [True, False])
def test_random_numbers_are_the_same(reentrant):
    torch.manual_seed(0)
    a = torch.ones(100, requires_grad=True)
    out = checkpoint(lambda x: torch.nn.functional.dropout(x * x, 0.5), a, use_reentrant=reentrant)
    before = torch.random.get_rng_state()
    out.sum().backward()
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.equal(out != 0, a.grad != 0)


def live_bytes(run):
    """The most bytes that `run` holds at once, the cycle collector off."""
    gc.collect()
    gc.disable()
    try:
        tracemalloc.start()
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        gc.enable()


def test_memory_falls():
    n, depth = 1 << 16, 32
    x = torch.ones(n, requires_grad=True)

    def block(a):
        for _ in range(8):
            a = (a * 0.99).sin()
        return a

    def plain():
        a = x
        for _ in range(depth // 8):
            a = block(a)
        a.sum().backward()

    def saving():
        a = x
        for _ in range(depth // 8):
            a = again(block, a)
        a.sum().backward()

    plain(), saving()
    x.grad = None
    without, most = live_bytes(plain), live_bytes(saving)
    assert most < 0.6 * without
    size = n * 4
    assert most < (8 + 4 + 6) * size


def test_retained_graph_holds_no_recomputed_tensors():
    n = 1 << 18
    x = torch.ones(n, requires_grad=True)
    out = again(lambda a: a.exp().sin().exp().sin(), x).sum()
    out.backward(retain_graph=True)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    out.backward(retain_graph=True)
    assert tracemalloc.get_traced_memory()[0] - before < n
    tracemalloc.stop()
    out.backward(inputs=[x])


def test_a_freed_graph_frees_the_inputs():
    import weakref

    gc.collect()
    gc.disable()
    try:
        x = torch.ones(10, requires_grad=True)
        y = x * 2
        ref = weakref.ref(y)
        out = again(torch.exp, y)
        del y
        assert ref() is not None
        del out
        assert ref() is None
    finally:
        gc.enable()


# Differences between the runs ----------------------------------------------------------------------------------


class Toggle:
    def __init__(self, first, second):
        self.both, self.runs = (first, second), 0

    def __call__(self, a):
        self.runs += 1
        return self.both[min(self.runs, 2) - 1](a)


def test_another_shape_names_operator_and_line():
    a, _ = leaves()
    g = Toggle(lambda a: a[:2].sin(), lambda a: a.sin())
    with pytest.raises(CheckpointError, match="different metadata") as info:
        again(g, a).sum().backward()
    text = str(info.value)
    line = Toggle.__init__.__code__.co_firstlineno  # the functions are above this file's middle: names are enough
    assert "sin (argument 'input')" in text and HERE in text and line


def test_another_operator_of_the_same_shape():
    a, _ = leaves()
    g = Toggle(lambda a: a.sin(), lambda a: a.cos())
    with pytest.raises(CheckpointError, match="another operator") as info:
        again(g, a).sum().backward()
    assert "saved by sin" in str(info.value) and "saved by cos" in str(info.value)


def test_other_values_where_asked_for():
    a, _ = leaves()
    again(Toggle(lambda a: (a * 2).sin(), lambda a: (a * 3).sin()), a).sum().backward()
    with pytest.raises(CheckpointError, match="other values"):
        again(Toggle(lambda a: (a * 2).sin(), lambda a: (a * 3).sin()), a, determinism_check="values").sum().backward()


def test_fewer_and_more_tensors():
    a, _ = leaves()
    with pytest.raises(CheckpointError, match="different number"):
        again(Toggle(lambda a: a.sin().sin(), lambda a: a.sin()), a).sum().backward()
    with pytest.raises(CheckpointError, match="more tensors"):
        again(Toggle(lambda a: a.sin(), lambda a: a.sin().sin()), a, early_stop=False).sum().backward()


def test_debug_lists_operators():
    a, _ = leaves()
    g = Toggle(lambda a: (a * 2).sin(), lambda a: (a * 2).cos())
    with set_checkpoint_debug_enabled(True), pytest.raises(CheckpointError) as info:
        again(g, a).sum().backward()
    text = str(info.value)
    assert "You are seeing this error because you passed `debug=True` to checkpoint" in text
    assert "during the original forward" in text and "sin([4])" in text and "cos([4])" in text and HERE in text


def test_an_input_changed_in_place_is_noticed():
    a, _ = leaves()
    b = a * 2
    out = again(torch.sin, b).sum()
    b.mul_(3)
    with pytest.raises(RuntimeError, match=r"torch\.utils\.checkpoint saved as an input"):
        out.backward()


def test_errors_of_arguments():
    a, _ = leaves()
    with pytest.raises(ValueError, match="Unexpected keyword"):
        checkpoint(torch.sin, a, use_reentrant=True, what=1)
    with pytest.raises(ValueError, match="context_fn"):
        checkpoint(torch.sin, a, use_reentrant=True, debug=True)
    with pytest.raises(ValueError, match="determinism_check"):
        again(torch.sin, a, determinism_check="x")
    with pytest.warns(UserWarning, match="use_reentrant"):
        checkpoint(torch.sin, a)
    with pytest.warns(UserWarning, match="None of the inputs"):
        checkpoint(torch.sin, a.detach(), use_reentrant=True)
    out = checkpoint(torch.sin, a, use_reentrant=True).sum()
    with pytest.raises(RuntimeError, match="incompatible with"):
        torch.autograd.grad(out, a)


# Composition ---------------------------------------------------------------------------------------------------


def numpy_hooks(calls):
    def pack(t):
        calls.append(tuple(t.shape))
        return t.numpy().copy()

    return torch.autograd.graph.saved_tensors_hooks(pack, torch.from_numpy)


def test_hooks_outside_pack_the_inputs_alone():
    calls = []
    with numpy_hooks(calls):
        wrapped = gradients(lambda a, b: again(f, a, b))
    assert same(gradients(f), wrapped)
    assert len([c for c in calls if c == (4,)]) <= 6


def test_hooks_outside_pack_every_tensor_argument_leaves_too():
    a = torch.tensor([1.0, 2.0], requires_grad=True)
    plain, seen = torch.ones(3), []

    def g(x, y, number, p, key=None):
        seen.append((type(x) is torch.Tensor, x.is_leaf, x.requires_grad, x is a))
        return x.sin() * y * number * p.sum() * key[0].sum()

    def pack(t):
        packed.append((tuple(t.shape), t.requires_grad, t.is_leaf))
        return t * 2

    packed = []
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t / 4):
        y = torch.utils.checkpoint.checkpoint(g, a, a * 1, 3, plain, key=[torch.ones(1)], use_reentrant=False)
    assert packed == [((2,), True, True), ((2,), True, False), ((3,), False, True), ((1,), False, True)]
    y.sum().backward()
    x, ones = (a / 2).detach(), 3 * 3 / 4  # what they were unpacked as
    assert torch.allclose(a.grad, ones * (x.cos() * x + x.sin()))
    assert seen == [(True, True, True, True), (True, True, True, False)]


def test_a_leaf_that_hooks_copied_may_change_and_else_may_not():
    for copying in (True, False):
        a = torch.tensor([1.0, 2.0], requires_grad=True)
        hooks = (
            torch.autograd.graph.saved_tensors_hooks(torch.clone, lambda t: t) if copying else contextlib.nullcontext()
        )
        with hooks:
            y = again(torch.sin, a)
        with torch.no_grad():
            a.add_(1)
        with contextlib.nullcontext() if copying else pytest.raises(RuntimeError, match="saved as an input"):
            y.sum().backward()
            assert torch.equal(a.grad, torch.tensor([1.0, 2.0]).cos())


def test_a_leaf_that_hooks_unpacked_is_one():
    a = torch.tensor([1.0, 2.0], requires_grad=True)

    def g(x):
        if x is not a:
            with pytest.raises(RuntimeError, match="leaf Variable"):
                x.add_(1)
            with pytest.raises(RuntimeError, match="view of a leaf Variable"):
                x[:1].add_(1)
            assert x.grad is None and x.grad_fn is None
        return x.sin()

    with torch.autograd.graph.saved_tensors_hooks(torch.clone, lambda t: t):
        y = again(g, a)
    y.sum().backward()
    assert torch.equal(a.grad, torch.tensor([1.0, 2.0]).cos())


def test_an_argument_that_was_detached_in_place_is_refused_before_the_second_run():
    a, runs = torch.ones(2, requires_grad=True), []
    b = a * 2
    y = again(lambda x: (runs.append(1), x.sin())[1], b)
    b.detach_()
    with pytest.raises(RuntimeError, match="detached in-place"):
        y.sum().backward()
    assert runs == [1]


def test_no_checkpoint_where_saved_tensor_hooks_are_disabled():
    a = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
        with pytest.raises(RuntimeError, match="not here"):
            again(lambda x: x, a)
        with torch.no_grad():
            assert again(lambda x: x, a) is a
    runs = []
    y = again(lambda x: (runs.append(1), x.sin())[1], a)
    with torch.autograd.graph.disable_saved_tensors_hooks("not here"), pytest.raises(RuntimeError, match="not here"):
        y.sum().backward()
    assert runs == [1]


def test_hooks_inside_pack_again():
    calls = []

    def g(a, b):
        with numpy_hooks(calls):
            return f(a, b)

    assert same(gradients(f), gradients(lambda a, b: again(g, a, b)))
    assert len(calls) >= 10


def test_save_on_cpu_outside():
    with torch.autograd.graph.save_on_cpu():
        assert same(gradients(f), gradients(lambda a, b: again(f, a, b)))


def test_under_function_transformations():
    a = torch.tensor([[0.1, 0.2], [0.3, 0.4]], dtype=torch.float64)
    g = lambda x: (x.sin() * x).sum()
    h = lambda x: again(g, x)
    for wrap in (
        torch.func.grad,
        torch.func.hessian,
        torch.func.jacrev,
        torch.func.jacfwd,
        lambda k: torch.func.grad(lambda x: torch.func.grad(k)(x).pow(2).sum()),
        lambda k: torch.func.vmap(torch.func.grad(k)),
        lambda k: torch.func.grad(lambda x: torch.func.vmap(k)(x).sum()),
    ):
        assert torch.allclose(wrap(g)(a), wrap(h)(a))  # fmt: skip


def test_forward_mode():
    a = torch.tensor([0.1, 0.2])
    for k in (lambda x: f(x, x), lambda x: again(f, x, x)):
        _out, tangent = torch.func.jvp(k, (a,), (torch.ones(2),))
    assert torch.allclose(tangent, torch.func.jvp(lambda x: f(x, x), (a,), (torch.ones(2),))[1])


def test_a_gradient_taken_inside():
    def g(a, b):
        x = a * 2
        return torch.autograd.grad((x**3).sum(), x, create_graph=True)[0] * b

    assert same(gradients(g), gradients(lambda a, b: again(g, a, b)))


def test_modules_and_parameters():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.GELU(), torch.nn.LayerNorm(4), torch.nn.Linear(4, 2))
    x = torch.randn(5, 3)
    grads = []
    for call in (model, lambda x: again(model, x), lambda x: checkpoint_sequential(model, 2, x, use_reentrant=False)):
        model.zero_grad()
        call(x).pow(2).sum().backward()
        grads.append([p.grad for p in model.parameters()])
    assert same(grads[0], grads[1]) and same(grads[0], grads[2])


def test_sequential_arguments():
    a, _ = leaves()
    with pytest.raises(ValueError, match="Unexpected keyword"):
        checkpoint_sequential([torch.sin], 1, a, use_reentrant=False, what=1)
    with pytest.raises(ValueError, match="segments"):
        checkpoint_sequential([torch.sin], 2, a, use_reentrant=False)
    with pytest.warns(UserWarning, match="use_reentrant"):
        checkpoint_sequential([torch.sin, torch.cos], 2, a)


def test_runs_can_share_a_recomputation():
    runs = []

    def g(a):
        runs.append(1)
        return (a.sin() * a).exp()

    a, _ = leaves()
    y = again(g, a)
    with GraphExecGroup():
        y[0].backward(retain_graph=True)
        y[1].backward()
    assert len(runs) == 2


# Selective -----------------------------------------------------------------------------------------------------


class Count:
    """How often `exp` is computed."""

    def __init__(self, policy):
        self.policy, self.seen = policy, []

    def __call__(self, ctx, op, *args, **kwargs):
        self.seen.append((ctx.is_recompute, op._opname))
        return self.policy(op)


def selected(policy, **kwargs):
    return functools.partial(create_selective_checkpoint_contexts, policy, **kwargs)


@pytest.mark.parametrize("ops", [[torch.exp], ["exp", "sin"], [torch.ops.aten.exp.default], []])
def test_selected_operators(ops):
    assert same(gradients(f), gradients(lambda a, b: again(f, a, b, context_fn=selected(ops))))


def test_policy_function_and_what_is_kept():
    ran = []

    class Slow(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g

    def g(a, b):
        y = a.exp()
        ran.append(y)
        return y.sin() * b

    policy = Count(
        lambda op: CheckpointPolicy.MUST_SAVE if op.name() == "aten::exp" else CheckpointPolicy.PREFER_RECOMPUTE
    )
    assert same(gradients(g), gradients(lambda a, b: again(g, a, b, context_fn=selected(policy))))
    assert {name for _, name in policy.seen} >= {"exp", "sin"}
    kept, recomputed = ran[-2], ran[-1]
    assert kept.data_ptr() == recomputed.data_ptr()


def test_matrix_products_of_layers_are_kept_by_name():
    model = torch.nn.Linear(3, 2)
    x = torch.ones(4, 3)
    found = []

    def g(a):
        y = model(a)
        found.append(y)
        return y.sin()

    again(g, x, context_fn=selected([torch.ops.aten.mm.default])).sum().backward()
    assert found[0].data_ptr() == found[1].data_ptr()
    with pytest.raises(AttributeError, match="aten"):
        torch.ops.aten.nonesuch


def test_kept_random_results():
    a = torch.ones(64, requires_grad=True)

    def g(x):
        y = torch.nn.functional.dropout(x, 0.5)
        return torch.nn.functional.dropout(y * x, 0.5)

    torch.manual_seed(0)
    again(g, a, context_fn=selected(lambda *_: CheckpointPolicy.MUST_SAVE)).sum().backward()
    kept, a.grad = a.grad, None
    torch.manual_seed(0)
    g(a).sum().backward()
    assert torch.equal(kept, a.grad)


def test_kept_results_and_several_runs():
    a, b = leaves()
    out = again(f, a, b, context_fn=selected([torch.exp])).sum()
    out.backward(retain_graph=True)
    first = a.grad.clone()
    out.backward()
    assert torch.allclose(a.grad, 2 * first)


def test_changed_kept_results_are_noticed():
    a, _ = leaves()
    made = []

    def g(x):
        y = x.exp()
        if not made:
            made.append(y)
        return y.sin()

    for allowed in (False, True):
        made.clear()
        out = again(g, a, context_fn=selected([torch.exp], allow_cache_entry_mutation=allowed)).sum()
        with torch.no_grad():
            made[0].add_(0)
        if allowed:
            out.backward()
        else:
            with pytest.raises(RuntimeError, match="mutated"):
                out.backward()


def test_selective_arguments():
    with pytest.raises(ValueError, match="op_list"):
        create_selective_checkpoint_contexts([3])
    with pytest.raises(TypeError, match="function or a list"):
        create_selective_checkpoint_contexts(3)


def test_no_warnings():
    a, _ = leaves()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again(torch.sin, a).sum().backward()


class KeepsItsResult(torch.autograd.Function):
    """Saves what it made, and something after that."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        made = x * 2
        ctx.save_for_backward(made, x)
        return made

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        made, x = ctx.saved_tensors
        return g * 2 + 0 * made * x


def test_a_second_run_that_ends_in_a_custom_function_is_gone_without_the_collector() -> None:
    """It ends while the function saves: its result led to its node, and that to what was to be saved."""
    x = torch.ones(100_000, requires_grad=True)
    gc.collect()
    gc.disable()
    try:
        sizes = []
        for _ in range(3):
            checkpoint(KeepsItsResult.apply, x, use_reentrant=False).sum().backward()
            x.grad = None
            sizes.append(torch.memory.current())
    finally:
        gc.enable()
    assert sizes[0] == sizes[1] == sizes[2]


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers_are_computed_again_once(kind: str) -> None:
    model = getattr(torch.nn, kind)(4, 8, 2)
    calls = []

    def forward(x: Any) -> Any:
        calls.append(1)
        return model(x)[0]

    checkpoint(forward, torch.ones(5, 3, 4), use_reentrant=False).sum().backward()
    assert len(calls) == 2


@pytest.mark.parametrize("reentrant", [False, True])
def test_batches_and_statistics_are_counted_alike(reentrant):
    """As PyTorch does, twice: also where batch norm is the last to save, and the second run ends within it."""
    torch.manual_seed(0)
    norm, other = torch.nn.BatchNorm1d(3), torch.nn.BatchNorm1d(3)
    x = torch.randn(8, 3, requires_grad=True)
    checkpoint(norm, x, use_reentrant=reentrant).square().sum().backward()
    for _ in range(2):
        other(x.detach())
    assert norm.num_batches_tracked == 2
    torch.testing.assert_close(norm.running_mean, other.running_mean)
    torch.testing.assert_close(norm.running_var, other.running_var)


@pytest.mark.parametrize(("reentrant", "times"), [(False, 1), (True, 2)])
def test_statistics_of_an_instance_norm_stay_where_the_second_run_ends_in_it(reentrant, times):
    """As in PyTorch, which moves them after it is computed, and counts no batches of it."""
    torch.manual_seed(0)
    norm, other = (torch.nn.InstanceNorm1d(3, track_running_stats=True) for _ in range(2))
    x = torch.randn(2, 3, 5, requires_grad=True)
    checkpoint(norm, x, use_reentrant=reentrant).square().sum().backward()
    for _ in range(times):
        other(x.detach())
    torch.testing.assert_close(norm.running_mean, other.running_mean)
    torch.testing.assert_close(norm.running_var, other.running_var)


@pytest.mark.parametrize(
    "change",
    [
        lambda h: h.mul_(h[0]),
        lambda h: h.t().mul_(h.t()),
        lambda h: (h * h, h.mul_(2))[0],
        lambda h: (h.sigmoid_(), h.mul_(2))[1].sin(),
    ],
)
def test_what_a_second_run_saves_and_changes_is_refused_as_without_it(change):
    """PyTorch takes the changed numbers there, in silence."""
    for run in (lambda f, x: f(x), lambda f, x: checkpoint(f, x, use_reentrant=False)):
        x = torch.rand(3, 3, requires_grad=True)
        loss = run(lambda x: change(x.sin()).sin(), x).sum()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()
