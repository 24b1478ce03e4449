"""Runs: what arrives where, in which order, and what is left behind."""

import gc
import threading
import weakref

import numpy as np
import pytest
from tests.leaves import leaf

import rushlight as torch
from rushlight.engine import accumulate


def test_sums_of_several_paths():
    x = leaf(1.0, 2.0)
    (x * x + x * 3).sum().backward()
    assert x.grad.tolist() == [5.0, 7.0]


def test_gradients_accumulate_across_calls_and_in_place():
    x = leaf(1.0)
    (x * 2).backward()
    first = x.grad
    (x * 3).backward()
    assert x.grad is first and first.tolist() == [5.0]


def test_second_backward_through_a_freed_graph_names_the_node_and_the_way_out():
    x = leaf(2.0)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match=r"second time.*MulBackward0.*retain_graph"):
        y.backward()


def test_retain_graph_keeps_it():
    x = leaf(2.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [8.0]


def test_gradient_argument_and_its_checks():
    x = leaf(1.0, 2.0)
    y = x * 2
    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        y.backward()
    with pytest.raises(RuntimeError, match=r"shape of torch.Size\(\[3\]\).*\[2\]"):
        y.backward(torch.ones(3, dtype=torch.float64))
    y.backward(torch.tensor([1.0, 10.0], dtype=torch.float64))
    assert x.grad.tolist() == [2.0, 20.0]


def test_outputs_outside_the_graph_are_refused():
    with pytest.raises(RuntimeError, match="does not require grad"):
        torch.ones(1).sum().backward()


def test_grad_leaves_dot_grad_alone_and_reports_unused_inputs():
    x, unused = leaf(3.0), leaf(1.0)
    y = (x * x).sum()
    (g,) = torch.autograd.grad(y, x, retain_graph=True)
    assert g.tolist() == [6.0] and x.grad is None
    with pytest.raises(RuntimeError, match="not have been used"):
        torch.autograd.grad(y, [x, unused], retain_graph=True)
    assert torch.autograd.grad(y, [x, unused], allow_unused=True, retain_graph=True)[1] is None
    assert torch.autograd.grad(y, [x, unused], materialize_grads=True)[1].tolist() == [0.0]


def test_grad_of_an_intermediate_tensor_stops_there():
    x = leaf(3.0)
    y = x * x
    z = (y * y).sum()
    gy, gx = torch.autograd.grad(z, [y, x])
    assert gy.tolist() == [18.0] and gx.tolist() == [108.0]


def test_backward_into_given_inputs_only():
    x, w = leaf(3.0), leaf(2.0)
    y = x * w
    (y * y).sum().backward(inputs=[w, y])
    assert x.grad is None and w.grad.tolist() == [36.0] and y.grad.tolist() == [12.0]


def test_higher_orders():
    x = leaf(2.0)
    y = x * x * x * x
    for expected in (32.0, 48.0, 48.0, 24.0):
        (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        assert y.tolist() == [expected]


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")
def test_create_graph_makes_dot_grad_differentiable():
    x = leaf(2.0)
    (x * x * x).sum().backward(create_graph=True)
    (x.grad * 1).sum().backward(inputs=[x])
    assert x.grad.tolist() == [12.0 + 12.0]


def test_order_is_by_decreasing_sequence_number_and_leaves_run_when_ready():
    seen = []
    a, b = leaf(1.0), leaf(1.0)
    a.register_post_accumulate_grad_hook(lambda t: seen.append("a"))
    b.register_post_accumulate_grad_hook(lambda t: seen.append("b"))
    early = a * 2
    early.register_hook(lambda g: seen.append("early"))
    late = b * 3
    late.register_hook(lambda g: seen.append("late"))
    (early + late).sum().backward()
    assert seen == ["late", "b", "early", "a"]


def test_a_gradient_is_freed_before_the_next_node_runs_when_its_hook_drops_it():
    alive, peak = [], []
    ws = [torch.ones(4, requires_grad=True) for _ in range(6)]

    def drop(w):
        alive.append(weakref.ref(w.grad))
        w.grad = None
        peak.append(sum(ref() is not None for ref in alive))

    for w in ws:
        w.register_post_accumulate_grad_hook(drop)
    y = ws[0]
    for w in ws[1:]:
        y = y * w
    y.sum().backward()
    assert peak == [0] * 6


def test_gradients_do_not_alias_each_other_or_the_caller():
    x, y = leaf(1.0, 1.0), leaf(1.0, 1.0)
    seed = torch.ones(2, dtype=torch.float64)
    (x + y).backward(seed)
    x.grad.add_(1)
    assert y.grad.tolist() == [1.0, 1.0] and seed.tolist() == [1.0, 1.0]
    z = leaf(1.0, 1.0)
    z.backward(seed)
    z.grad.mul_(5)
    assert seed.tolist() == [1.0, 1.0]


def test_a_gradient_that_is_only_the_runs_is_stolen_not_copied():
    x = torch.ones(1000, requires_grad=True)
    made = []
    (x * torch.ones(1000)).sum().backward()
    made.append(x.grad)
    assert x.grad._array.base is None


def test_gradient_has_the_strides_of_a_dense_leaf():
    x = torch.ones(3, 4).t().detach().requires_grad_()
    (x * torch.ones(4, 3)).sum().backward()
    assert x.grad.stride() == x.stride() == (1, 4)


def test_no_garbage_for_the_cycle_collector():
    x = torch.ones(3, requires_grad=True)

    def graphs():
        refs = []
        for build in (lambda: x.exp(), lambda: (x * 2).tanh() + x.sigmoid(), lambda: x.view(3, 1).expand(3, 2) * 2):
            y = build()
            node, array = weakref.ref(y.grad_fn), weakref.ref(y._array)
            refs += [node, array]
            del y
        y = x * 2
        y[0:2].mul_(3)
        return [*refs, weakref.ref(y.grad_fn), weakref.ref(y._array)]

    graphs()  # the first use of an operator writes its code, once
    gc.collect()
    gc.disable()
    try:
        refs = graphs()
        assert [r() for r in refs] == [None] * len(refs)
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_a_chain_of_100_000_operations_builds_runs_and_is_freed():
    x = torch.ones(2, requires_grad=True)
    y = x
    for _ in range(100_000):
        y = y * 1.0
    node = weakref.ref(y.grad_fn)
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    del y
    assert node() is None


def test_live_arrays_stay_flat_over_training_steps_without_the_collector():
    gc.collect()
    gc.disable()
    try:
        w = torch.ones(8, 8, requires_grad=True)
        alive = weakref.WeakSet()

        def step():
            h = (torch.ones(4, 8) @ w).tanh()
            for t in (h,):
                alive.add(t)
            h.sum().backward()
            with torch.no_grad():
                w.sub_(w.grad)
            w.grad = None
            return len(alive)

        assert [step() for _ in range(5)][-1] == 0 or len(alive) == 0
    finally:
        gc.enable()


def test_an_exception_in_backward_leaves_the_library_usable():
    x = leaf(1.0)
    y = x * 2

    def fail(g):
        raise KeyError("from the hook")

    handle = y.register_hook(fail)
    with pytest.raises(KeyError, match="from the hook"):
        y.backward()
    assert torch.is_grad_enabled()
    handle.remove()
    (x * 5).backward()
    assert x.grad.tolist() == [5.0]


def test_runs_nest():
    x = leaf(2.0)

    def inner(g):
        z = leaf(3.0)
        with torch.enable_grad():
            (z * z).sum().backward()
        return g * z.grad

    y = x * x
    y.register_hook(inner)
    y.backward()
    assert x.grad.tolist() == [24.0]


def test_threads_do_not_see_each_others_modes():
    inside, checked = threading.Event(), threading.Event()
    found = []

    def other():
        inside.wait(10)
        found.append((torch.ones(1, requires_grad=True) * 2).requires_grad)
        checked.set()

    thread = threading.Thread(target=other)
    thread.start()
    with torch.no_grad():
        inside.set()
        checked.wait(10)
        assert not (torch.ones(1, requires_grad=True) * 2).requires_grad
    thread.join()
    assert found == [True]


def test_threads_train_alone_as_they_do_together():
    def train(seed):
        rng = np.random.default_rng(seed)
        w = torch.from_numpy(rng.standard_normal((6, 6))).requires_grad_()
        for _ in range(30):
            x = torch.from_numpy(rng.standard_normal((5, 6)))
            ((x @ w).tanh() ** 2).sum().backward()
            with torch.no_grad():
                w -= 0.01 * w.grad
            w.grad = None
        return w.detach().numpy()

    alone = [train(i) for i in range(8)]
    together = [None] * 8
    threads = [threading.Thread(target=lambda i=i: together.__setitem__(i, train(i))) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for a, b in zip(alone, together):
        assert np.array_equal(a, b)


def test_a_gradient_that_another_thread_takes_away_meanwhile_begins_anew(monkeypatch):
    x = torch.ones(2, requires_grad=True)
    (x * 2).sum().backward()

    class Taken:
        """A lock that is waited for while another thread says `x.grad = None`."""

        def __enter__(self):
            x.grad = None

        def __exit__(self, *_):
            pass

    monkeypatch.setattr(accumulate, "LOCKS", (Taken(),) * 64)
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3, 3]
