"""Optimizers that backward fires: when they step, and that they leave nothing behind."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import rushlight as torch
from rushlight.distributed.optim import _apply_optimizer_in_backward, _get_in_backward_optimizers
from rushlight.distributed.optim import apply_optimizer_in_backward as module
from rushlight.optim.weak_params import WeakParams, WeakState
from rushlight.tensor import wrap


def parameter(values):
    return torch.nn.Parameter(wrap(np.array(values, np.float64)))


class Pair(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = parameter([1.0, 2.0]), parameter([3.0])


def test_steps_as_an_ordinary_optimizer_does():
    fused, plain = Pair(), Pair()
    _apply_optimizer_in_backward(torch.optim.Adam, fused.parameters(), {"lr": 0.1})
    optimizer = torch.optim.Adam(plain.parameters(), lr=0.1)
    for _ in range(4):
        for m in (fused, plain):
            ((m.a * m.b).sum() + (m.a**2).sum()).backward()
        optimizer.step()
        optimizer.zero_grad()
        assert fused.a.grad is None and fused.b.grad is None
        assert fused.a.tolist() == plain.a.tolist() and fused.b.tolist() == plain.b.tolist()


def test_gradients_are_freed_one_after_the_other():
    m, alive = Pair(), []
    _apply_optimizer_in_backward(torch.optim.SGD, m.parameters(), {"lr": 0.1})
    for p in m.parameters():
        p.register_post_accumulate_grad_hook(lambda _: alive.append(sum(q.grad is not None for q in m.parameters())))
    ((m.a * 2).sum() * m.b).sum().backward()
    assert len(alive) == 2 and max(alive) <= 1


def test_several_optimizers_on_one_parameter():
    """All of them step, in order, once for each backward; every later hook finds no gradient."""
    order = []

    class Noting(torch.optim.SGD):
        def step(self, closure=None):
            order.append((self.param_groups[0]["lr"], self.param_groups[0]["params"][0].grad is not None))
            return super().step(closure)

    p = parameter([1.0])
    for lr in (0.1, 0.01):
        _apply_optimizer_in_backward(Noting, [p], {"lr": lr})
    p.sum().backward()
    assert order == [(0.1, True), (0.01, True), (0.1, False), (0.01, False)]
    assert p.tolist() == [1.0 - 0.1 - 0.01]
    assert [o.param_groups[0]["lr"] for o in p._in_backward_optimizers] == [0.1, 0.01]
    assert p._optimizer_classes == [Noting, Noting] and p._optimizer_kwargs == [{"lr": 0.1}, {"lr": 0.01}]
    assert len(module.param_to_optim_hook_handle_map[p]) == 2


def test_shared_parameters_step_when_all_has_arrived():
    p = parameter([1.0, 2.0])
    _apply_optimizer_in_backward(torch.optim.SGD, [p], {"lr": 0.1})
    ((p * 2).sum() + (p * p).sum() + p.prod()).backward()
    assert np.allclose(p._array, [1 - 0.1 * (2 + 2 + 2), 2 - 0.1 * (2 + 4 + 1)])

    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = parameter([1.0])
            self.b = self.a

    tied = Tied()
    _apply_optimizer_in_backward(torch.optim.SGD, tied.parameters(), {"lr": 0.1})
    assert len(_get_in_backward_optimizers(tied)) == 1


def test_a_parameter_given_twice_has_two_optimizers():
    p = parameter([1.0])
    _apply_optimizer_in_backward(torch.optim.SGD, [p, p], {"lr": 0.1})
    p.sum().backward()
    assert np.allclose(p._array, [0.8]) and len(p._in_backward_optimizers) == 2


def test_without_hooks_nothing_steps():
    p = parameter([1.0])
    _apply_optimizer_in_backward(torch.optim.SGD, [p], {"lr": 0.1}, register_hook=False)
    p.sum().backward()
    assert p.tolist() == [1.0] and p.grad.tolist() == [1.0]
    assert len(p._in_backward_optimizers) == 1
    assert p in module.param_to_acc_grad_map and p not in module.param_to_optim_hook_handle_map


def test_handles_remove_the_hooks():
    p = parameter([1.0])
    _apply_optimizer_in_backward(torch.optim.SGD, [p], {"lr": 0.1})
    for handle in module.param_to_optim_hook_handle_map[p]:
        handle.remove()
    p.sum().backward()
    assert p.tolist() == [1.0] and p.grad is not None


def test_the_node_in_the_map_is_the_graphs():
    p = parameter([1.0])
    _apply_optimizer_in_backward(torch.optim.SGD, [p], {"lr": 0.1})
    node = module.param_to_acc_grad_map[p]
    assert node is (p * 2).grad_fn.next_functions[0][0] is module.param_to_acc_grad_map[p]
    assert node.variable is p
    assert any(key is p and value is node for key, value in module.param_to_acc_grad_map.items())
    with pytest.raises(KeyError):
        module.param_to_acc_grad_map[parameter([1.0])]


def test_the_optimizers_of_a_module():
    m = Pair()
    assert _get_in_backward_optimizers(m) == []
    _apply_optimizer_in_backward(torch.optim.SGD, [m.a], {"lr": 0.1})
    _apply_optimizer_in_backward(torch.optim.Adam, m.parameters(), {"lr": 0.2})
    found = _get_in_backward_optimizers(m)
    assert [type(o).__name__ for o in found] == ["SGD", "Adam", "Adam"]
    assert found == [*m.a._in_backward_optimizers, *m.b._in_backward_optimizers]


def test_schedulers_and_checkpoints_of_the_optimizers():
    m = Pair()
    _apply_optimizer_in_backward(torch.optim.Adam, m.parameters(), {"lr": 0.1})
    optimizers = _get_in_backward_optimizers(m)
    schedules = [torch.optim.lr_scheduler.ExponentialLR(o, 0.5) for o in optimizers]
    for _ in range(2):
        (m.a.sum() * m.b).sum().backward()
        for schedule in schedules:
            schedule.step()
    assert [o.param_groups[0]["lr"] for o in optimizers] == [0.025, 0.025]
    states = [copy.deepcopy(o.state_dict()) for o in optimizers]
    assert states[0]["param_groups"][0]["params"] == [0] and states[0]["state"][0]["step"].item() == 2

    again = Pair()
    again.load_state_dict(m.state_dict())
    _apply_optimizer_in_backward(torch.optim.Adam, again.parameters(), {"lr": 1.0})
    for o, state in zip(_get_in_backward_optimizers(again), states, strict=True):
        o.load_state_dict(state)
        assert type(o.state) is WeakState and type(o.param_groups[0]["params"]) is WeakParams
    for x in (m, again):
        (x.a.sum() * x.b).sum().backward()
    assert m.a.tolist() == again.a.tolist() and m.b.tolist() == again.b.tolist()


@pytest.mark.parametrize("params", [lambda: [wrap(np.ones(1))], lambda: [parameter([1.0]) * 2]])
def test_refused_parameters(params):
    with pytest.raises(ValueError, match="leaves and require grad"):
        _apply_optimizer_in_backward(torch.optim.SGD, params(), {"lr": 0.1})


def test_applying_under_no_grad():
    p = parameter([1.0])
    with torch.no_grad():
        _apply_optimizer_in_backward(torch.optim.SGD, [p], {"lr": 0.1})
    p.sum().backward()
    assert p.tolist() == [0.9]


@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "RMSprop", "Adagrad", "Adafactor"])
def test_nothing_lengthens_a_parameters_life(optimizer):
    """With the cycle collector off: parameters, optimizers, gradients and map entries go with the model."""
    gc.collect()
    gc.disable()
    try:
        before = len(module.param_to_acc_grad_map), len(module.param_to_optim_hook_handle_map)
        m = Pair()
        for _ in range(2):
            _apply_optimizer_in_backward(getattr(torch.optim, optimizer), m.parameters(), {"lr": 0.1})
        (m.a.sum() * m.b).sum().backward()
        assert len(module.param_to_acc_grad_map) == before[0] + 2
        optimizers = _get_in_backward_optimizers(m)
        state = next(iter(optimizers[0].state.values()), {})
        refs = [weakref.ref(x) for x in (*m.parameters(), *optimizers, *state.values())]
        refs += [weakref.ref(module.param_to_acc_grad_map[p]) for p in m.parameters()]
        kept = optimizers[0]
        del m, optimizers, state
        assert [r() for r in refs if r() is not kept and r() not in kept.state.values()] == [None] * (len(refs) - 1)
        assert list(kept.param_groups[0]["params"]) == [] and len(kept.state) == 0
        del kept
        assert all(r() is None for r in refs)
        assert (len(module.param_to_acc_grad_map), len(module.param_to_optim_hook_handle_map)) == before
    finally:
        gc.enable()


def test_copies_are_ordinary_optimizers():
    p = parameter([1.0])
    _apply_optimizer_in_backward(torch.optim.Adam, [p], {"lr": 0.1})
    p.sum().backward()
    (o,) = p._in_backward_optimizers
    for again in (copy.deepcopy(o), pickle.loads(pickle.dumps(o))):
        (q,) = again.param_groups[0]["params"]
        assert type(again.param_groups[0]["params"]) is list and q is not p
        assert again.state[q]["step"].item() == 1


def test_the_list_of_weak_parameters():
    p, q, r = parameter([1.0]), parameter([2.0]), parameter([3.0])
    params = WeakParams([p, q])
    params.append(r)
    assert len(params) == 3 and params[0] is p and params[-1] is r and q in params and parameter([1.0]) not in params
    assert params.index(r) == 2 if False else [x is y for x, y in zip(params, (p, q, r), strict=True)] == [True] * 3
    params[1] = p
    del params[0]
    del q
    assert len(params) == 2 and repr(params) == repr([p, r])
    del r
    assert len(params) == 1
