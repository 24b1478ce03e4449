"""Random programs of views and in-place changes, in both libraries: equal values, equal gradients, or both refuse."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

import rushlight
from rushlight.ops.shape.strided import overlaps as any_overlap

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity
REFUSALS = (RuntimeError, IndexError, ValueError)
LIMIT = 14  # tensors alive in a program

N = st.integers(0, 5)

# What makes views: (tensor, three small numbers) -> a tensor or a tuple of them.
VIEWS = {
    "select": lambda t, a, b, c: t.select(a % t.dim(), b % t.shape[a % t.dim()]),
    "index": lambda t, a, b, c: t[b % t.shape[0]],
    "slice": lambda t, a, b, c: t[..., b % t.shape[-1] :],
    "step": lambda t, a, b, c: t[b % 2 :: 1 + c % 2],
    "narrow": lambda t, a, b, c: t.narrow(a % t.dim(), b % t.shape[a % t.dim()], 1),
    "transpose": lambda t, a, b, c: t.transpose(a % t.dim(), b % t.dim()),
    "permute": lambda t, a, b, c: t.permute(*range(t.dim() - 1, -1, -1)),
    "flat": lambda t, a, b, c: t.view(-1),
    "view": lambda t, a, b, c: t.view(t.shape[-1], -1),
    "reshape": lambda t, a, b, c: t.reshape(-1),
    "flatten": lambda t, a, b, c: t.flatten(),
    "unsqueeze": lambda t, a, b, c: t.unsqueeze(a % (t.dim() + 1)),
    "squeeze": lambda t, a, b, c: t.squeeze(),
    "expand": lambda t, a, b, c: t.expand(2, *t.shape),
    "diagonal": lambda t, a, b, c: t.diagonal(b % 3 - 1, 0, 1),
    "unfold": lambda t, a, b, c: t.unfold(0, 1 + b % 2, 1 + c % 2),
    "as_strided": lambda t, a, b, c: t.as_strided((2, 2), (1, 2), t.storage_offset()),
    "detach": lambda t, a, b, c: t.detach(),
    "split": lambda t, a, b, c: t.split(1 + b % 2, a % t.dim()),
    "chunk": lambda t, a, b, c: t.chunk(1 + b % 2, a % t.dim()),
    "unbind": lambda t, a, b, c: t.unbind(a % t.dim()),
    "iterate": lambda t, a, b, c: tuple(t),
    "view_as": lambda t, a, b, c: t.view_as(t),
    "alias": lambda t, a, b, c: t[:],
}
# What changes a tensor: (library, tensor, another tensor, a number).
CHANGES = {
    "add_": lambda lib, t, o, k: t.add_(o),
    "add number": lambda lib, t, o, k: t.add_(k),
    "mul_": lambda lib, t, o, k: t.mul_(o),
    "mul number": lambda lib, t, o, k: t.mul_(0.5 + k / 8),
    "sub_": lambda lib, t, o, k: t.sub_(o),
    "copy_": lambda lib, t, o, k: t.copy_(o),
    "zero_": lambda lib, t, o, k: t.zero_(),
    "fill_": lambda lib, t, o, k: t.fill_(k / 4),
    "exp_": lambda lib, t, o, k: t.exp_(),
    "sigmoid_": lambda lib, t, o, k: t.sigmoid_(),
    "sin_": lambda lib, t, o, k: t.sin_(),
    "setitem": lambda lib, t, o, k: t.__setitem__(k % max(t.shape[0], 1), 0.5),
    "setitem tensor": lambda lib, t, o, k: t.__setitem__(slice(k % 2, None), o[0]),
    "masked_fill_": lambda lib, t, o, k: t.masked_fill_(t.detach() > 0.3, 0.25),
    "index_add_": lambda lib, t, o, k: t.index_add_(0, lib.tensor([0]), o[:1].clone()),
    "index_put_": lambda lib, t, o, k: t.index_put_((lib.tensor([0, 0]),), o[0], True),
    "transpose_": lambda lib, t, o, k: t.transpose_(0, k % t.dim()),
    "unsqueeze_": lambda lib, t, o, k: t.unsqueeze_(k % (t.dim() + 1)),
    "detach_": lambda lib, t, o, k: t.detach_(),
}
RESULTS = {
    "mul": lambda t, o: t * o,
    "add": lambda t, o: t + o,
    "sin": lambda t, o: t.sin(),
    "sigmoid": lambda t, o: t.sigmoid(),
    "exp": lambda t, o: (t * 0.1).exp(),
    "clone": lambda t, o: t.clone(),
    "square": lambda t, o: t * t,
    "sum": lambda t, o: t.sum(0),
    "matmul": lambda t, o: t.reshape(-1, t.shape[-1]) @ t.reshape(-1, t.shape[-1]).transpose(0, 1),
}


class Both:
    """A tensor of PyTorch and ours."""

    def __init__(self, theirs, ours):
        self.theirs, self.ours = theirs, ours


def outcome(fn):
    """(result, None) or (None, the refusal)."""
    try:
        return fn(), None
    except REFUSALS as error:
        return None, error


def overlap(a, b):
    """Whether two tensors share memory: PyTorch refuses most such operands, here they count as copies."""
    return np.may_share_memory(a.detach().numpy(), b.detach().numpy())


def overlaps(shape, stride):
    """Whether windows of a tensor overlap; expanded ones do, too, but those are refused."""
    return 0 not in stride and any_overlap(shape, stride)


class Programs(RuleBasedStateMachine):
    """Each rule does the same thing to a tensor of either library."""

    @initialize(seed=st.integers(0, 99), leaf=st.booleans(), second=st.booleans())
    def start(self, seed, leaf, second):
        rng = np.random.default_rng(seed)
        self.log, self.tensors, self.second = ["second order"] if second else [], [], second
        for requires_grad in (True, True, False):
            data = rng.uniform(-1, 1, (2, 3, 2))
            pair = Both(torch.tensor(data, requires_grad=requires_grad),
                        rushlight.tensor(data, requires_grad=requires_grad))  # fmt: skip
            self.tensors.append(pair)
        if leaf:  # else programs work on leaves, which may not be changed
            for k in range(2):
                self.keep("clone", lambda t: t * 1.5, self.tensors[k])

    def pick(self, i):
        return self.tensors[-1 - i % len(self.tensors)]

    def run(self, name, fn, *pairs):
        """Do something in both libraries: the results, or None where both refuse."""
        theirs, refused = outcome(lambda: fn(torch, *[p.theirs for p in pairs]))
        ours, error = outcome(lambda: fn(rushlight, *[p.ours for p in pairs]))
        where = [self.tensors.index(p) for p in pairs]
        self.log.append(f"{name} {where}" + (" refused" if refused else ""))
        assert (refused is None) == (error is None), f"{self.log}: PyTorch {refused!r}, here {error!r}"
        return None if refused is not None else (theirs, ours)

    def keep(self, name, fn, *pairs):
        """Run, and keep the tensors that come of it."""
        made = self.run(name, lambda lib, *args: fn(*args), *pairs)
        if made is None:
            return
        several = isinstance(made[0], tuple)
        for theirs, ours in zip(*made, strict=True) if several else [made]:
            if len(self.tensors) < LIMIT and theirs.numel():
                self.tensors.append(Both(theirs, ours))
        self.compare()

    def compare(self):
        for k, p in enumerate(self.tensors):
            what = f"{self.log}: tensor {k}"
            assert tuple(p.theirs.shape) == tuple(p.ours.shape), what
            np.testing.assert_allclose(p.ours.detach().numpy(), p.theirs.detach().numpy(), rtol=1e-9, err_msg=what)
            theirs, refused = outcome(lambda t=p.theirs: (t.requires_grad, t.is_leaf))
            ours, error = outcome(lambda t=p.ours: (t.requires_grad, t.is_leaf))
            assert (refused is None) == (error is None), f"{what}: PyTorch {refused!r}, here {error!r}"
            assert theirs == ours, f"{what}: (requires_grad, is_leaf) {theirs}, here {ours}"

    @rule(i=N, name=st.sampled_from(sorted(VIEWS)), a=N, b=N, c=N, grad=st.sampled_from([True] * 7 + [False]))
    def view(self, i, name, a, b, c, grad):
        p = self.pick(i)
        if p.theirs.dim() == 0 or p.theirs.dim() > 5:
            return
        if name in ("as_strided", "flat", "flatten", "reshape", "view") and p.theirs.stride() != p.ours.stride():
            return  # results of operators on permuted tensors may lie in memory in another order

        def fn(lib, t):
            with lib.set_grad_enabled(grad):
                return VIEWS[name](t, a, b, c)

        made = self.run(f"{name}({a}, {b}, {c}{'' if grad else ', no_grad'})", fn, p)
        if made is not None:
            for theirs, ours in zip(*made, strict=True) if isinstance(made[0], tuple) else [made]:
                if len(self.tensors) < LIMIT and theirs.numel():
                    self.tensors.append(Both(theirs, ours))
            self.compare()

    @rule(i=N, j=N, name=st.sampled_from(sorted(CHANGES)), k=N, grad=st.sampled_from([True] * 7 + [False]))
    def change(self, i, j, name, k, grad):
        p, q = self.pick(i), self.pick(j)
        if p.theirs.dim() == 0 or q.theirs.dim() == 0 or overlap(p.ours, q.ours):
            return
        if name in ("fill_", "zero_", "masked_fill_", "index_put_") and 0 in p.theirs.stride():
            return  # PyTorch fills expanded tensors, but then refuses the backward or warns
        if name in ("unsqueeze_", "transpose_") and (not grad or outcome(lambda: p.theirs.is_leaf)[0]):
            return  # the graph would go on with the former shape
        if overlaps(p.theirs.shape, p.theirs.stride()):
            return  # windows that overlap: the result depends on the order of writing

        def fn(lib, t, o):
            with lib.set_grad_enabled(grad):
                CHANGES[name](lib, t, o, k)

        self.run(f"{name} {k}{'' if grad else ' no_grad'}", fn, p, q)
        self.compare()

    @rule(i=N, j=N, name=st.sampled_from(sorted(RESULTS)))
    def result(self, i, j, name):
        self.keep(name, RESULTS[name], self.pick(i), self.pick(j))

    def teardown(self):
        if not hasattr(self, "tensors"):
            return
        usable = [p for p in self.tensors if outcome(lambda p=p: p.theirs.is_leaf)[1] is None]
        chosen = [p for p in usable if p.theirs.requires_grad]
        if not chosen:
            return
        theirs, ours = (outcome(lambda side=side, lib=lib: self.backward(lib, [getattr(p, side) for p in chosen]))[1]
                        for lib, side in ((torch, "theirs"), (rushlight, "ours")))  # fmt: skip
        if "detached in-place" in str(theirs):
            return  # here the saved memory is still good for a first-order gradient
        if theirs is None and "modified by an inplace" in str(ours) and any("no_grad" in line for line in self.log):
            return  # here what is computed from a view made in no_grad mode is checked although no gradient comes of it
        assert (theirs is None) == (ours is None), f"{self.log}: PyTorch {theirs!r}, here {ours!r}"
        if theirs is None:
            for p in chosen:
                if p.theirs.is_leaf:
                    self.compare_grad(p, f"{self.log}: gradient of tensor {self.tensors.index(p)}")

    def backward(self, lib, tensors):
        """Gradients of all leaves; in every other program of second order."""
        total = sum((t * (1 + n)).sum() for n, t in enumerate(tensors))
        if not self.second:
            total.backward()
            return
        leaves = [t for t in tensors if t.is_leaf]
        grads = [g for g in lib.autograd.grad(total, leaves, create_graph=True, allow_unused=True) if g is not None]
        norm = sum((g * g).sum() for g in grads)
        if len(grads) and norm.requires_grad:
            norm.backward()

    def compare_grad(self, p, what):
        want, got = p.theirs.grad, p.ours.grad
        if self.second:  # of second derivatives, none equals zeros
            want = torch.zeros_like(p.theirs) if want is None else want
            got = rushlight.zeros_like(p.ours) if got is None else got
        assert (want is None) == (got is None), what
        if want is not None:
            np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-8, atol=1e-12, err_msg=what)


TestPrograms = Programs.TestCase
TestPrograms.settings = settings(max_examples=300, stateful_step_count=14, deadline=None, derandomize=True,
                                 suppress_health_check=list(HealthCheck))  # fmt: skip
