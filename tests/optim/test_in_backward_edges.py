"""`optim.in_backward` where it is hard: moments, refusals, failures, checkpointing, what it holds, and what it frees."""

from __future__ import annotations

import gc
import threading
import tracemalloc
import warnings
import weakref

import numpy as np
import pytest

import rushlight as torch
from rushlight.basics.state import special
from rushlight.optim import optimizer as base
from rushlight.optim.fused_run import launcher
from rushlight.tensor import wrap
from rushlight.utils.checkpoint import checkpoint

OPTIM = torch.optim


def parameter(values, dtype=np.float64):
    return torch.nn.Parameter(wrap(np.array(values, dtype)))


@pytest.fixture(autouse=True)
def nothing_remains():
    yield
    gc.collect()
    launcher.orphans.clear()
    assert not launcher.entries
    special.launcher = None


# Accumulation in the moments -----------------------------------------------------------------------


def adama(p, steps, lr, betas, eps, decay, decoupled, amsgrad):
    """The algorithm of arXiv 2305.19982 in NumPy: `steps` is a list of lists of gradients."""
    m, v, top = np.zeros_like(p), np.zeros_like(p), np.zeros_like(p)
    for t, grads in enumerate(steps, 1):
        m, v = betas[0] * m, betas[1] * v
        for g in grads:
            g = g if decoupled else g + decay / len(grads) * p
            m = m + (1 - betas[0]) * g
            v = v + (1 - betas[1]) * g * g
        top = np.maximum(top, v)
        p = p * (1 - lr * decay) if decoupled else p
        square = top if amsgrad else v
        p = p - lr * (m / (1 - betas[0] ** t)) / (np.sqrt(square / (1 - betas[1] ** t)) + eps)
    return p, m, v


@pytest.mark.parametrize("kind", ["Adam", "AdamW"])
@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 1e-5)])
def test_moments_are_the_papers(kind, amsgrad, maximize, dtype, tolerance):
    rng = np.random.default_rng(0)
    start, steps = rng.standard_normal((7, 3)), rng.standard_normal((5, 4, 7, 3))
    p = parameter(start, dtype)
    o = getattr(OPTIM, kind)([p], lr=0.05, weight_decay=0.1, amsgrad=amsgrad, maximize=maximize, betas=(0.8, 0.95))
    with OPTIM.in_backward(o, accumulate=4, accumulate_into="moments") as handle:
        for grads in steps:
            for g in grads:
                assert p.grad is None
                (p * wrap((-g if maximize else g).astype(dtype))).sum().backward()
        assert handle.steps == 5 and p.grad is None
    want, m, v = adama(start, steps, 0.05, (0.8, 0.95), 1e-8, 0.1, kind == "AdamW", amsgrad)
    state = o.state[p]
    assert np.allclose(p._array, want, rtol=tolerance, atol=tolerance)
    assert np.allclose(state["exp_avg"]._array, m, atol=tolerance)
    assert np.allclose(state["exp_avg_sq"]._array, v, atol=tolerance) and state["step"].item() == 5


def test_moments_of_one_micro_batch_are_adams():
    p, q = parameter([1.0, 2.0]), parameter([1.0, 2.0])
    one, two = OPTIM.Adam([p], lr=0.1), OPTIM.Adam([q], lr=0.1)
    with OPTIM.in_backward(two, accumulate_into="moments", clip_grad_norm=1.0):
        for _ in range(3):
            (p**2).sum().backward()
            torch.nn.utils.clip_grad_norm_([p], 1.0)
            one.step()
            one.zero_grad()
            (q**2).sum().backward()
    assert p.tolist() == q.tolist()


def test_the_mean_is_adams_and_the_mean_square_is_not():
    p, q = parameter([1.0]), parameter([1.0])
    one, two = OPTIM.Adam([p], lr=0.1), OPTIM.Adam([q], lr=0.1)
    with OPTIM.in_backward(two, accumulate=2, accumulate_into="moments"):
        for g in (3.0, -1.0):
            (p * g).sum().backward()
            (q * g).sum().backward()
    one.step()
    assert np.isclose(two.state[q]["exp_avg"].item(), one.state[p]["exp_avg"].item())
    assert np.isclose(two.state[q]["exp_avg_sq"].item() / one.state[p]["exp_avg_sq"].item(), (9 + 1) / (3 - 1) ** 2)


def test_several_losses_of_each_micro_batch_in_moments():
    p = parameter([1.0])
    o = OPTIM.Adam([p], lr=0.1)
    with OPTIM.in_backward(o, accumulate=2, backwards=2, accumulate_into="moments"):
        for i, g in enumerate((1.0, 2.0, 3.0, 4.0)):
            (p * g).sum().backward()
            assert (p.grad is None) == (i % 2 == 1)
    want = adama(np.ones(1), [[np.array([3.0]), np.array([7.0])]], 0.1, (0.9, 0.999), 1e-8, 0.0, False, False)
    assert np.allclose(p._array, want[0]) and np.allclose(o.state[p]["exp_avg_sq"]._array, want[2])


def test_the_middle_of_a_step_in_moments():
    p, q = parameter([1.0]), parameter([1.0])
    o = OPTIM.Adam([p, q], lr=0.1)
    handle = OPTIM.in_backward(o, accumulate=3, accumulate_into="moments")
    p.sum().backward()
    for call, message in ((o.zero_grad, "cannot be taken back"), (o.state_dict, "save between steps"),
                          (handle.remove, "complete it with")):  # fmt: skip
        with pytest.raises(RuntimeError, match=message):
            call()
    q.sum().backward()
    o.step()  # completes it
    assert p.item() < 1 and q.item() < 1 and handle.steps == 1
    p.sum().backward()
    o.load_state_dict({"state": {}, "param_groups": [{**o.param_groups[0], "params": [0, 1]}]})
    for _ in range(3):
        p.sum().backward()
    assert handle.steps == 2
    handle.remove()


@pytest.mark.parametrize("make", [lambda ps: OPTIM.SGD(ps), lambda ps: OPTIM.RAdam(ps), lambda ps: Mine(ps)])
def test_moments_need_adam(make):
    with pytest.raises(RuntimeError, match="use Adam or AdamW"):
        OPTIM.in_backward(make([parameter([1.0])]), accumulate=2, accumulate_into="moments")


class Mine(OPTIM.Adam):
    def _update(self, *args):
        return super()._update(*args)


def test_moments_cannot_be_clipped():
    o = OPTIM.Adam([parameter([1.0])])
    for options in ({"clip_grad_norm": 1.0}, {"clip_grad_value": 1.0}):
        with pytest.raises(RuntimeError, match="gradient of the whole step"):
            OPTIM.in_backward(o, accumulate=2, accumulate_into="moments", **options)


# Refusals ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"accumulate": 0}, "accumulate must be a whole number"),
        ({"backwards": 1.5}, "backwards must be a whole number"),
        ({"accumulate_into": "disk"}, "'grad' or 'moments', got 'disk'"),
        ({"clip_grad_norm": 0}, "clip_grad_norm must be positive, got 0"),
        ({"clip_grad_norm": [1.0]}, "only with clip_by='group'"),
        ({"clip_grad_value": -1.0}, "clip_grad_value must be positive"),
        ({"clip_by": "layer"}, "clip_by must be"),
        ({"clip_passes": 3}, "clip_passes must be"),
    ],
)
def test_options_that_make_no_sense(options, message):
    with pytest.raises(ValueError, match=message):
        OPTIM.in_backward(OPTIM.SGD([parameter([1.0])]), **options)


def test_optimizers_that_cannot_be_fused():
    p = parameter([1.0])
    with pytest.raises(TypeError, match="expected an optimizer of"):
        OPTIM.in_backward("SGD")
    with pytest.raises(RuntimeError, match="direction of all parameters together"):
        OPTIM.in_backward(OPTIM.LBFGS([p]))
    with pytest.raises(RuntimeError, match="create_graph=True"):
        OPTIM.in_backward(OPTIM.SGD([p], differentiable=True))
    with pytest.raises(RuntimeError, match="parameter 0 of group 0 of the SGD is not a leaf"):
        OPTIM.in_backward(sgd_of_a_result(p))

    class Closing(OPTIM.Optimizer):
        def step(self, closure):
            return closure()

    with pytest.raises(RuntimeError, match="needs a closure"):
        OPTIM.in_backward(Closing([p], {}))


def sgd_of_a_result(p):
    q = p * 2
    q.retain_grad()
    return OPTIM.SGD([q])


def test_fusing_twice():
    p, q = parameter([1.0]), parameter([1.0])
    o = OPTIM.SGD([p])
    with OPTIM.in_backward(o):
        with pytest.raises(RuntimeError, match="already"):
            OPTIM.in_backward(o)
        with pytest.raises(RuntimeError, match="cannot be stepped by both"):
            OPTIM.in_backward(OPTIM.Adam([p, q]))
        other = OPTIM.Adam([q])
        with OPTIM.in_backward(other):
            o.param_groups[0]["params"].append(q)
            with pytest.raises(RuntimeError, match="share a parameter"):
                p.sum().backward()


def test_closures_are_refused():
    p = parameter([1.0])
    o = OPTIM.SGD([p], lr=0.1)
    with OPTIM.in_backward(o):
        for call in (lambda: o.step(lambda: 1), lambda: o.step(closure=lambda: 1)):
            with pytest.raises(RuntimeError, match="a closure evaluates the model"):
                call()
        assert o.step(None) is None and o.step(closure=None) is None and p.item() == 1
    assert o.step(lambda: 5) == 5


def test_loss_scaling_is_refused():
    p = parameter([1.0])
    o = OPTIM.SGD([p], lr=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scaler = torch.amp.GradScaler("cuda")
    off = torch.amp.GradScaler("cuda", enabled=False)
    scaler.step(o)
    with OPTIM.in_backward(o):
        off.scale(p.sum()).backward()
        off.step(o)
        for call in (scaler.step, scaler.unscale_):
            with pytest.raises(RuntimeError, match="see all gradients before any parameter"):
                call(o)
    assert np.isclose(p.item(), 0.9)


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")
def test_recorded_gradients_are_refused():
    p = parameter([2.0])
    o = OPTIM.SGD([p], lr=0.1)
    with OPTIM.in_backward(o):
        with pytest.raises(RuntimeError, match="create_graph=True"):
            (p**2).sum().backward(create_graph=True)
        assert p.grad is None and p.item() == 2
        (g,) = torch.autograd.grad((p**3).sum(), p, create_graph=True)  # a penalty on the gradient
        (g**2).sum().backward()
        assert np.isclose(p.item(), 2 - 0.1 * (2 * 12 * 12))
    q = parameter([1.0])
    with OPTIM.in_backward(o):
        (q**2).sum().backward(create_graph=True)  # others are free
        q.grad = None


def test_a_graph_used_again_after_the_step():
    p, q = parameter([2.0]), parameter([3.0])
    o = OPTIM.SGD([p, q], lr=0.1)
    with OPTIM.in_backward(o):
        y = (p * q).sum()
        y.backward(retain_graph=True)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()


# Optimizers of one's own ---------------------------------------------------------------------------


class Signs(OPTIM.Optimizer):
    """Only `step`, over the groups, with state."""

    def __init__(self, params, lr=0.1):
        super().__init__(params, {"lr": lr})

    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    state = self.state[p]
                    state["count"] = state.get("count", 0) + 1
                    with torch.no_grad():
                        p.add_(p.grad.sign(), alpha=-group["lr"] / state["count"])


class Louder(OPTIM.SGD):
    """A step around that of a given class."""

    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.mul_(2)
        return super().step(closure)


class Counting(OPTIM.SGD):
    """Counts in the group."""

    def step(self, closure=None):
        self.param_groups[0]["count"] = self.param_groups[0].get("count", 0) + 1
        return super().step(closure)


@pytest.mark.parametrize("kind", [Signs, Louder])
def test_a_step_of_ones_own(kind):
    ps, qs = ([parameter([1.0, -2.0]), parameter([3.0])] for _ in "ab")
    one, two = kind(ps, lr=0.1), kind([{"params": qs[:1]}, {"params": qs[1:], "lr": 0.1}], lr=0.1)
    calls = []
    two.register_step_post_hook(lambda *args: calls.append(args))
    with OPTIM.in_backward(two, clip_grad_norm=1.5):
        for _ in range(3):
            ((ps[0] ** 2).sum() * ps[1]).sum().backward()
            torch.nn.utils.clip_grad_norm_(ps, 1.5)
            one.step()
            one.zero_grad()
            ((qs[0] ** 2).sum() * qs[1]).sum().backward()
    assert [p.tolist() for p in ps] == [q.tolist() for q in qs] and len(calls) == 3
    assert len(two.param_groups) == 2


def test_a_step_that_counts_in_its_group_is_refused():
    p = parameter([1.0])
    o = Counting([p], lr=0.1)
    with OPTIM.in_backward(o):
        with pytest.raises(RuntimeError, match="sets 'count' of a parameter group"):
            p.sum().backward()
        assert p.item() == 1 and len(o.param_groups) == 1
        o.zero_grad()


def test_hooks_around_a_step():
    p, q = parameter([1.0]), parameter([1.0])
    o, seen = OPTIM.SGD([p, q], lr=0.1), []
    handles = [
        o.register_step_pre_hook(lambda o, args, kwargs: seen.append(("pre", args == (o,), p.item(), q.item()))),
        o.register_step_post_hook(lambda o, args, kwargs: seen.append(("post", kwargs, p.item(), q.item()))),
        base.register_optimizer_step_pre_hook(lambda *_: seen.append("all pre")),
        base.register_optimizer_step_post_hook(lambda *_: seen.append("all post")),
    ]
    with OPTIM.in_backward(o, accumulate=2):
        for _ in range(2):
            (p + q).sum().backward()
            seen.append("backward")
        o.step()
    assert seen == ["backward", "all pre", ("pre", True, 1.0, 1.0), ("post", {}, 0.8, 0.8), "all post", "backward"]
    for handle in handles:
        handle.remove()
    o.register_step_pre_hook(lambda o, args, kwargs: ((o, None), {}))
    with OPTIM.in_backward(o), pytest.raises(RuntimeError, match="returned other arguments"):
        p.sum().backward()


# Failures ------------------------------------------------------------------------------------------


def test_a_backward_that_fails_says_what_was_stepped():
    p, q, r = parameter([1.0]), parameter([2.0]), parameter([3.0])
    o = OPTIM.SGD([("p", p), ("q", q), ("r", r)], lr=0.1)
    boom = [True]

    def fail(g):
        if boom[0]:
            raise ZeroDivisionError("boom")

    handle = OPTIM.in_backward(o)
    y = p * 2
    y.register_hook(fail)
    with pytest.raises(ZeroDivisionError, match="boom") as caught:
        ((y * q).sum() * r).sum().backward()
    notes = "\n".join(caught.value.__notes__)
    assert "2 of 3 parameters of SGD had been stepped: parameter 2 of group 0 ('r') of shape [1], parameter 1" in notes
    assert {id(x) for x in handle.interrupted} == {id(q), id(r)} and handle.steps == 0
    assert p.item() == 1 and q.item() != 2 and r.item() != 3 and all(x.grad is None for x in (p, q, r))
    boom[0] = False
    o.step()  # nothing is left over
    ((p * 2 * q).sum() * r).sum().backward()
    assert handle.steps == 1 and handle.interrupted == [] and p.item() != 1
    handle.remove()


def test_a_failure_in_the_middle_of_accumulation_is_not_counted():
    p = parameter([1.0])
    o = OPTIM.SGD([p], lr=0.1)
    with OPTIM.in_backward(o, accumulate=2) as handle:
        p.sum().backward()
        y = p * 2
        y.register_hook(lambda g: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            y.sum().backward()
        assert handle.backward_calls == 1
        p.sum().backward()
        assert handle.steps == 1 and np.isclose(p.item(), 0.8)


def test_a_failure_while_gradients_go_into_moments():
    p, q = parameter([1.0]), parameter([1.0])
    o = OPTIM.Adam([p, q], lr=0.1)
    with pytest.raises(ZeroDivisionError) as caught, OPTIM.in_backward(o, accumulate=2, accumulate_into="moments"):
        y = p * 2
        y.register_hook(lambda g: 1 / 0)
        (y * q).sum().backward()
    assert "1 of 2 gradients of this backward call had been added to the moments" in "\n".join(caught.value.__notes__)
    assert o._in_backward is None


def test_an_optimizer_that_nobody_holds():
    p = parameter([1.0])
    OPTIM.in_backward(OPTIM.SGD([p], lr=0.1))
    with pytest.raises(RuntimeError, match="nobody held it"):
        p.sum().backward()
    p.sum().backward()  # told once
    assert special.launcher is None and p.grad is not None
    handle = OPTIM.in_backward(OPTIM.SGD([p], lr=0.1))
    p.grad = None
    p.sum().backward()
    assert np.isclose(p.item(), 0.9)
    del handle  # it has stepped: dropped on purpose
    p.sum().backward()
    assert p.grad is not None and special.launcher is None


def test_threads():
    """Backward runs of other threads on other models are no concern; on the same one they are refused or in turn."""
    p, q = parameter([1.0]), parameter([1.0])
    o, errors = OPTIM.SGD([p], lr=0.1), []

    def other(x):
        try:
            x.sum().backward()
        except RuntimeError as error:
            errors.append(str(error))

    def hook(g):
        for x in (q, p):
            thread = threading.Thread(target=other, args=(x,))
            thread.start()
            thread.join()

    with OPTIM.in_backward(o):
        r = parameter([1.0])
        o.add_param_group({"params": [r]})
        y = p * 2
        y.register_hook(hook)
        ((y.sum()) * r).sum().backward()
    assert q.grad.tolist() == [1.0]
    assert len(errors) == 1 and "two threads" in errors[0]


# Checkpointing -------------------------------------------------------------------------------------


def test_a_checkpoint_that_reads_a_stepped_parameter():
    """Past the graph, through detach: what it computes again would not be what it was."""
    p, w = parameter([2.0]), parameter([3.0])
    o = OPTIM.SGD([p, w], lr=0.1)

    def segment(x):
        return (x * w.detach()) * p

    with OPTIM.in_backward(o):
        y = checkpoint(segment, torch.ones(1, dtype=torch.float64), use_reentrant=False)
        with pytest.raises(RuntimeError, match=r"calls mul on a parameter|calls detach on parameter 1 of group 0"):
            (y + w * 5).sum().backward()
        o.zero_grad()
        y = checkpoint(segment, torch.ones(1, dtype=torch.float64), use_reentrant=False)
        y.sum().backward()


@pytest.mark.parametrize("early", [True, False])
def test_checkpoints_in_checkpoints(early):
    layers = [[parameter(np.full((3, 3), 0.1 * i)) for i in range(1, 5)] for _ in "ab"]

    def inner(x, a, b):
        return torch.tanh(torch.tanh(x @ a) @ b)

    def outer(x, a, b, c, d):
        x = checkpoint(inner, x, a, b, use_reentrant=False)
        return checkpoint(inner, x, c, d, use_reentrant=False) + d.sum()

    results = []
    for ps, fused in zip(layers, (False, True), strict=True):
        o = OPTIM.SGD(ps, lr=0.1)
        handle = OPTIM.in_backward(o) if fused else None
        x = torch.eye(3, dtype=torch.float64)
        for _ in range(3):
            with torch.utils.checkpoint.set_checkpoint_early_stop(early):
                checkpoint(outer, x, *ps, use_reentrant=False).sum().backward()
            o.step()
            o.zero_grad()
        results.append([p.tolist() for p in ps])
        if handle is not None:
            handle.remove()
    assert results[0] == results[1]


def test_a_custom_function_that_runs_backward():
    """It says so, or else a second contribution is an error."""

    class Again(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, p):
            ctx.save_for_backward(x)
            (ctx.p,) = p
            return x * ctx.p.detach()

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                x = x.detach().requires_grad_()
                y = x * ctx.p
            torch.autograd.backward(y, g)
            return x.grad, None

    p = parameter([2.0])
    o = OPTIM.SGD([p], lr=0.1)
    x = torch.ones(1, dtype=torch.float64, requires_grad=True)
    with OPTIM.in_backward(o):
        with pytest.raises(RuntimeError, match="runs_backward = True"):
            (Again.apply(x, [p]) + p).sum().backward()
        o.zero_grad()
        p.data = torch.full((1,), 2.0, dtype=torch.float64)
        Again.runs_backward = True
        (Again.apply(x, [p]) + p).sum().backward()
        assert np.isclose(p.item(), 2 - 0.1 * (1 + 1))
    with OPTIM.in_backward(o, clip_grad_norm=0.5) as handle:
        (Again.apply(x, [p]) + p).sum().backward()
        assert np.isclose(handle.grad_norm.item(), 2.0)
        Again.runs_backward = False
        with pytest.raises(RuntimeError, match="only finds norms"):
            (Again.apply(x, [p]) + p).sum().backward()


# Memory --------------------------------------------------------------------------------------------


def test_one_gradient_at_a_time():
    torch.manual_seed(0)
    net = torch.nn.Sequential(*[torch.nn.Linear(32, 32, bias=False) for _ in range(6)])
    for options in ({}, {"clip_grad_norm": 0.1}):
        alive = []

        def note(p, alive=alive):
            alive.append(sum(q.grad is not None for q in net.parameters()))

        handles = [p.register_post_accumulate_grad_hook(note) for p in net.parameters()]
        with OPTIM.in_backward(OPTIM.Adam(net.parameters()), **options):
            net(torch.ones(2, 32)).sum().backward()
        assert max(alive) == 1 and len(alive) == 6 * (1 + len(options))
        for handle in handles:
            handle.remove()


def peak_of(options):
    """Bytes above parameters and state that steps of a deep net take, and those of all gradients and of the largest."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(*[torch.nn.Linear(256, 256, bias=False) for _ in range(8)])
    o = OPTIM.AdamW(net.parameters())
    handle = None if options is None else OPTIM.in_backward(o, **options)
    sizes = [p.nbytes for p in net.parameters()]
    for _ in range(2):
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        net(torch.ones(2, 256)).sum().backward()
        o.step()
        o.zero_grad()
        peak = tracemalloc.get_traced_memory()[1] - before
        tracemalloc.stop()
    if handle is not None:
        handle.remove()
    return peak, sum(sizes), max(sizes)


@pytest.mark.parametrize(
    "options", [{}, {"clip_grad_norm": 0.1}, {"clip_grad_value": 0.1}, {"clip_grad_norm": 0.1, "clip_by": "parameter"}]
)
def test_the_peak_is_that_of_one_gradient(options):
    plain, gradients, largest = peak_of(None)
    fused, _, _ = peak_of(options)
    assert plain > gradients and fused < 1.6 * largest  # the step's blocks, and what little forward saves


@pytest.mark.parametrize(
    "options", [{}, {"clip_grad_norm": 0.1}, {"accumulate": 2}, {"accumulate": 2, "accumulate_into": "moments"}]
)
def test_nothing_lengthens_a_life(options):
    """With the cycle collector off: model, optimizer, handle and gradients go by reference counts."""
    gc.collect()
    gc.disable()
    try:
        net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
        o = OPTIM.Adam(net.parameters())
        handle = OPTIM.in_backward(o, **options)
        for _ in range(3):
            net(torch.ones(2, 3)).sum().backward()
        refs = [weakref.ref(x) for x in (net, o, handle, o._in_backward, *net.parameters())]
        refs += [weakref.ref(v) for state in o.state.values() for v in state.values()]
        del handle
        del net
        assert refs[0]() is None and refs[4]() is not None
        del o
        assert [r() for r in refs] == [None] * len(refs)
        assert not launcher.entries and special.launcher is None
    finally:
        gc.enable()


def test_the_model_goes_where_the_optimizer_went():
    gc.collect()
    gc.disable()
    try:
        net = torch.nn.Linear(3, 3)
        handle = OPTIM.in_backward(OPTIM.SGD(net.parameters()))
        net(torch.ones(2, 3)).sum().backward()
        ref = weakref.ref(net.weight)
        del handle, net
        assert ref() is None
    finally:
        gc.enable()


def test_observers_see_steps_and_gradients():
    p, q = parameter([1.0]), parameter([1.0])
    o = OPTIM.Adam([p, q])
    with OPTIM.in_backward(o), torch.profiler.profile() as prof:
        (p * q).sum().backward()
    names = [event.key for event in prof.key_averages()]
    assert any("Optimizer.step" in name for name in names) and any("AccumulateGrad" in name for name in names)


class TwoHeads(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.trunk, self.one, self.other = (torch.nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        h = self.trunk(x)
        return self.one(h.detach()).sum() + self.trunk.bias.sum(), self.other(h.detach()).sum() + self.trunk.bias.sum()


def test_two_losses_of_one_forward_that_step_twice_are_told() -> None:
    model, x = TwoHeads(), torch.randn(3, 4)
    handle = torch.optim.in_backward(torch.optim.SGD(model.parameters(), lr=0.1))
    one, other = model(x)
    one.backward()
    with pytest.warns(
        UserWarning, match=r"1 parameters, parameter 1 of group 0 .* computed before their last step.*backwards=2"
    ):
        other.backward()
    handle.remove()


@pytest.mark.filterwarnings("error")
def test_losses_that_step_once_or_anew_are_not() -> None:
    model, x = TwoHeads(), torch.randn(3, 4)
    handle = torch.optim.in_backward(torch.optim.SGD(model.parameters(), lr=0.1))
    model(x)[0].backward()
    model(x)[1].backward()
    one, other = model.one(x).sum(), model.other(x).sum()
    one.backward()
    other.backward()
    model.trunk.bias.backward(torch.ones(4))
    model.trunk.bias.backward(torch.ones(4))
    handle.remove()
    handle = torch.optim.in_backward(torch.optim.SGD(model.parameters(), lr=0.1), backwards=2)
    one, other = model(x)
    one.backward()
    other.backward()
    handle.remove()
