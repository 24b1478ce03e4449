"""Random nets - shared and viewed parameters, dropout, checkpoints in checkpoints - stepped inside backward and after it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rushlight as torch
from rushlight.nn import functional as F
from rushlight.nn.utils import clip_grad_norm_, clip_grad_value_
from rushlight.tensor import wrap
from rushlight.utils.checkpoint import checkpoint

N = 4
WAYS = ("plain", "transposed", "halves", "vector", "detached too", "in place", "dropout")


def layer(way, w, b, x):
    """One layer on (N, N) matrices that uses its parameters in some way."""
    if way == "plain":
        return torch.tanh(x @ w + b)
    if way == "transposed":
        return torch.sin(F.linear(x, w.t()))
    if way == "halves":
        return torch.cat([x[:, :2] @ w[:2], torch.relu(x[:, 2:] @ w[2:])])[:N] + b.view(1, N)
    if way == "vector":
        return x * b + b.sum()
    if way == "detached too":
        return torch.tanh(x @ w) * (1 + w.detach().abs().mean())
    if way == "in place":
        return (x @ w).mul_(0.5).add_(b).tanh_()
    return F.dropout(x @ w, 0.3) + b


class RandomNet:
    """program: a list of (way, which matrix, which vector, where to checkpoint and how)."""

    def __init__(self, program, seed):
        self.program = program
        rng = np.random.default_rng(seed)
        self.ws = [torch.nn.Parameter(wrap(rng.standard_normal((N, N)))) for _ in range(3)]
        self.bs = [torch.nn.Parameter(wrap(rng.standard_normal(N))) for _ in range(3)]

    @property
    def parameters(self):
        return [*self.ws, *self.bs]

    def run(self, x, program=None):
        for item in self.program if program is None else program:
            if item[0] == "checkpoint":
                reentrant, preserve, inner = item[1:]
                x = checkpoint(
                    lambda x, p=inner: self.run(x, p), x, use_reentrant=reentrant, preserve_rng_state=preserve
                )
            else:
                way, i, j = item
                x = layer(way, self.ws[i], self.bs[j], x)
        return x


def programs(depth, reentrant):
    plain = st.tuples(st.sampled_from(WAYS), st.integers(0, 2), st.integers(0, 2))
    if depth == 0:
        return st.lists(plain, min_size=1, max_size=3)
    inner = st.tuples(st.just("checkpoint"), st.just(reentrant), st.booleans(), programs(depth - 1, reentrant))
    return st.lists(plain | inner, min_size=1, max_size=4)


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")  # reentrant checkpoints in one another
@settings(max_examples=150, deadline=None)
@given(
    data=st.data(),
    reentrant=st.booleans(),
    optimizer=st.sampled_from(["SGD", "AdamW", "Rprop", "Adafactor"]),
    accumulate=st.integers(1, 2),
    backwards=st.integers(1, 2),
    norm=st.sampled_from([None, 0.1]),
    value=st.sampled_from([None, 0.05]),
    passes=st.integers(1, 2),
    seed=st.integers(0, 100),
)
def test_random_nets(data, reentrant, optimizer, accumulate, backwards, norm, value, passes, seed):
    """The same to the bit, or, where a checkpoint reads past the graph what has been stepped, refused."""
    program = data.draw(programs(2, reentrant))
    nets = [RandomNet(program, seed) for _ in "ab"]
    optimizers = [getattr(torch.optim, optimizer)(net.parameters, lr=0.01) for net in nets]
    handle = torch.optim.in_backward(
        optimizers[1],
        accumulate=accumulate,
        backwards=backwards,
        clip_grad_norm=norm,
        clip_grad_value=value,
        clip_passes=passes,
    )
    losses = []
    try:
        for net, o in zip(nets, optimizers, strict=True):
            torch.manual_seed(seed)
            rng = np.random.default_rng(seed)
            for call in range(2 * accumulate * backwards):
                x = torch.nn.Parameter(wrap(rng.standard_normal((N, N))))
                loss = net.run(x).square().mean()
                losses.append(loss.item())
                loss.backward()
                losses.append(float(x.grad.sum()) if x.grad is not None else None)
                if net is nets[0] and (call + 1) % (accumulate * backwards) == 0:
                    if value is not None:
                        clip_grad_value_(net.parameters, value)
                    if norm is not None:
                        clip_grad_norm_(net.parameters, norm)
                    o.step()
                    o.zero_grad()
            losses.append("end")
    except RuntimeError as error:
        assert "a checkpointed function runs again" in str(error) and "detached too" in str(program)
        return
    finally:
        handle.remove()
    half = len(losses) // 2
    assert losses[:half] == losses[half:]
    assert all(np.array_equal(p._array, q._array) for p, q in zip(nets[0].parameters, nets[1].parameters, strict=True))
