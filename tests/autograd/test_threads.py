"""Threads that use autograd at once do what they do one after another."""

import threading
import warnings

import numpy as np
import pytest

import rushlight as torch
from rushlight.utils.checkpoint import checkpoint

THREADS, STEPS = 8, 6


def model_of(k):
    """Another model for each thread."""
    width = 3 + k
    layers = [torch.nn.Linear(4, width), torch.nn.GELU(), torch.nn.LayerNorm(width), torch.nn.Linear(width, 2)]
    if k % 2:
        layers.insert(2, torch.nn.Linear(width, width))
    model = torch.nn.Sequential(*layers)
    rng = np.random.default_rng(k)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.tensor(rng.normal(size=tuple(p.shape)) / 2))
    return model


def loss_of(k, model, x):
    """In each thread another part of autograd is at work."""
    ways = [
        lambda: model(x).pow(2).sum(),
        lambda: checkpoint(model, x, use_reentrant=False).pow(2).sum(),
        lambda: with_hooks(model, x),
        lambda: penalised(model, x),
        lambda: mutating(model, x),
        lambda: checkpoint(model, x.requires_grad_(), use_reentrant=True).pow(2).sum(),
        lambda: transformed(model, x),
        lambda: watched(model, x),
    ]
    return ways[k % len(ways)]()


def with_hooks(model, x):
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.numpy().copy(), torch.from_numpy):
        return model(x).pow(2).sum()


def penalised(model, x):
    x = x.detach().requires_grad_()
    out = model(x).pow(2).sum()
    (g,) = torch.autograd.grad(out, x, create_graph=True)
    return out + g.pow(2).sum()


def mutating(model, x):
    y = model(x)
    return (y * y.clone().mul_(2)).sum()


def transformed(model, x):
    params = dict(model.named_parameters())
    grads = torch.func.grad(lambda p: torch.func.functional_call(model, p, (x,)).pow(2).mean())(params)
    return sum(g.pow(2).sum() for g in grads.values())


def watched(model, x):
    with torch.autograd.detect_anomaly():
        return model(x).pow(2).sum()


def train(k, results, barrier=None):
    model = model_of(k)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    x = torch.tensor(np.random.default_rng(100 + k).normal(size=(5, 4)).astype(np.float32))
    for _ in range(STEPS):
        if barrier is not None:
            barrier.wait()
        optimizer.zero_grad()
        loss_of(k, model, x).backward()
        optimizer.step()
    results[k] = [p.detach().numpy().copy() for p in model.parameters()]


def test_eight_threads_train_bit_by_bit_what_one_trains():
    alone, together = {}, {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k in range(THREADS):
            train(k, alone)
        barrier = threading.Barrier(THREADS)
        threads = [threading.Thread(target=train, args=(k, together, barrier)) for k in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert together.keys() == alone.keys()
    for k, params in alone.items():
        for ours, theirs in zip(params, together[k], strict=True):
            assert ours.tobytes() == theirs.tobytes(), k


def test_modes_belong_to_their_thread():
    seen = {}
    inside, done = threading.Barrier(2), threading.Barrier(2)

    def other():
        inside.wait()
        x = torch.ones(2, requires_grad=True)
        y = x.exp()
        seen["grad"], seen["saved"] = y.requires_grad, y.grad_fn._saved_result.tolist()
        done.wait()

    thread = threading.Thread(target=other)
    thread.start()
    with torch.no_grad(), torch.autograd.graph.saved_tensors_hooks(lambda t: 1 / 0, lambda t: t):
        inside.wait()
        done.wait()
    thread.join()
    assert seen["grad"] and seen["saved"] == torch.ones(2).exp().tolist()


def in_threads(count, work):
    threads = [threading.Thread(target=work, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.filterwarnings("ignore:.*create_graph=True")
def test_no_gradient_is_lost_where_threads_accumulate_into_one_leaf(monkeypatch, create_graph, first):
    """Each waits, in the middle of adding, until the others are there too, or long enough to know that they cannot be."""
    from rushlight.engine import accumulate

    x = torch.zeros(3, requires_grad=True)
    if not first:
        x.sum().backward()
    barrier = threading.Barrier(3)

    def meet(former):
        def wrapper(*args, **kwargs):
            try:
                barrier.wait(0.3)
            except threading.BrokenBarrierError:
                pass
            return former(*args, **kwargs)

        return wrapper

    if create_graph:
        monkeypatch.setattr(accumulate, "same_layout", meet(accumulate.same_layout))
        monkeypatch.setitem(accumulate.tensor_functions, "add", meet(accumulate.tensor_functions["add"]))
    else:
        monkeypatch.setattr(accumulate, "owned_copy", meet(accumulate.owned_copy))
        monkeypatch.setattr(accumulate, "refuse_inference", meet(accumulate.refuse_inference))
        monkeypatch.setattr(accumulate, "np", Slow(meet))
    in_threads(3, lambda k: (x * (k + 1)).sum().backward(create_graph=create_graph))
    assert x.grad.tolist() == [6.0 + (not first)] * 3
    x.grad = None


class Slow:
    """NumPy, with an addition in three steps as it is for the processor."""

    def __init__(self, meet):
        self.write = meet(np.copyto)

    def __getattr__(self, name):
        return getattr(np, name)

    def add(self, a, b, out):
        self.write(out, a + b)
