"""Checkpoints, saved-tensor hooks and transformations, one inside the other, change no number."""

import functools
import itertools

import pytest

import rushlight as torch
from rushlight import func
from rushlight.autograd import graph
from rushlight.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

again = functools.partial(checkpoint, use_reentrant=False)


def f(a, w):
    return ((a @ w).tanh() @ w).sin().sum()


def matrices():
    torch.manual_seed(0)
    return torch.randn(3, 3, dtype=torch.float64), torch.randn(3, 3, dtype=torch.float64)


def packing(g):
    def wrapped(*x):
        with graph.saved_tensors_hooks(lambda t: (t.clone(), "note"), lambda pair: pair[0]):
            return g(*x)

    return wrapped


def offloading(g):
    def wrapped(*x):
        with graph.save_on_cpu():
            return g(*x)

    return wrapped


KEEP = functools.partial(create_selective_checkpoint_contexts, ["mm", "tanh"])
WRAPS = {
    "checkpoint": lambda g: functools.partial(again, g),
    "nested": lambda g: functools.partial(again, functools.partial(again, g)),
    "by value": lambda g: functools.partial(again, g, determinism_check="values"),
    "selective": lambda g: functools.partial(again, g, context_fn=KEEP),
    "packing": packing,
    "offloading": offloading,
}


def second_order(h, a, w):
    x, y = a.clone().requires_grad_(), w.clone().requires_grad_()
    grads = torch.autograd.grad(h(x, y), (x, y), create_graph=True)
    return torch.autograd.grad(sum((g * g).sum() for g in grads), (x, y))


def retained(h, a, w):
    x = a.clone().requires_grad_()
    out = h(x, w)
    out.backward(retain_graph=True)
    out.backward()
    return x.grad


USES = {
    "grad": lambda h, a, w: func.grad(h, argnums=(0, 1))(a, w),
    "hessian": lambda h, a, w: func.hessian(h)(a, w),
    "jacrev of jacrev": lambda h, a, w: func.jacrev(func.jacrev(h))(a, w),
    "vmap of grad": lambda h, a, w: func.vmap(func.grad(h), in_dims=(0, None))(torch.stack([a, a + 1]), w),
    "grad of vmap": lambda h, a, w: func.grad(
        lambda q: func.vmap(h, in_dims=(None, 0))(q, torch.stack([w, w + 1])).sum())(a),
    "jvp": lambda h, a, w: func.jvp(lambda q: h(q, w), (a,), (w,)),
    "linearize": lambda h, a, w: func.linearize(lambda q: h(q, w), a)[1](w),
    "second order": second_order,
    "retained": retained,
}  # fmt: skip


def flat(result):
    return [result] if isinstance(result, torch.Tensor) else [x for part in result for x in flat(part)]


def check(use, wrapped):
    a, w = matrices()
    for theirs, ours in zip(flat(USES[use](f, a, w)), flat(USES[use](wrapped, a, w)), strict=True):
        assert torch.allclose(theirs, ours)


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("use", USES)
def test_one(use, wrap):
    check(use, WRAPS[wrap](f))


@pytest.mark.parametrize("outer, inner", list(itertools.product(WRAPS, WRAPS)))
@pytest.mark.parametrize("use", ["grad", "grad of vmap", "second order"])
def test_two(use, outer, inner):
    check(use, WRAPS[outer](WRAPS[inner](f)))
