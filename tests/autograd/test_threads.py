"""Threads that use autograd at once do what they do one after another."""

import threading
import warnings

import numpy as np

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
