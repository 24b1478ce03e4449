"""Sums over a million elements in float32 keep their digits, whichever way they go."""

import numpy as np
import pytest

import rushlight as torch
from rushlight.kernels.reference import norms
from rushlight.kernels.sums import add_up

F = torch.nn.functional
RNG = np.random.default_rng(0)
N = 1 << 20
X = (RNG.standard_normal(2 * N) * 3 + 5).astype(np.float32)
NORMS = {
    "layer": lambda x: F.layer_norm(x, (N,)), "group": lambda x: F.group_norm(x.reshape(2, 4, N // 4), 2).reshape(2, N),
    "instance": lambda x: F.instance_norm(x.reshape(1, 2, N)).reshape(2, N),
    "batch": lambda x: F.batch_norm(x.reshape(1, 2, N), None, None, training=True).reshape(2, N),
    "rms": lambda x: F.rms_norm(x, (N,)),
}  # fmt: skip


@pytest.mark.parametrize("name", NORMS)
def test_norms(name):
    g = torch.from_numpy(RNG.standard_normal((2, N)))
    found = []
    for dtype in (torch.float64, torch.float32):
        x = torch.from_numpy(X.reshape(2, N)).to(dtype).requires_grad_()
        y = NORMS[name](x)
        y.backward(g.to(dtype))
        found.append((y.detach().double().numpy(), x.grad.double().numpy()))
    (want, slope), (out, gradient) = found
    assert np.abs(out - want).max() < 2e-6
    assert np.abs(gradient - slope).max() < 1e-6


def test_norms_in_numpy():
    x = X.reshape(2, N)
    wide = x.astype(np.float64)
    want = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    assert np.abs(norms.layer_norm(x, None, None, 1e-5)[0] - want).max() < 2e-6
    assert np.abs(norms.group_norm(x.reshape(2, 2, N // 2), 1, None, None, 1e-5)[0].reshape(2, N) - want).max() < 2e-6
    mean, var = norms.batch_stats(x.reshape(1, 2, N))
    assert np.allclose(mean, wide.mean(1), rtol=1e-6)
    assert np.allclose(var, wide.var(1), rtol=1e-6)


@pytest.mark.parametrize(
    ("shape", "dim"), [((-1, 4), 0), ((16, -1, 16), (0, 1)), ((4, -1), 1), ((2, -1, 2), (0, 1, 2))]
)
def test_sums_and_means_over_any_dimension(shape, dim):
    x = torch.from_numpy(X).reshape(shape)
    for name in ("sum", "mean", "nansum"):
        found, want = (getattr(torch, name)(t, dim).double().numpy() for t in (x, x.double()))
        assert np.allclose(found, want, rtol=3e-6)


def test_gradients_of_what_was_broadcast():
    g = torch.from_numpy(X).reshape(-1, 4)
    want = g.double().sum(0).numpy()
    for make in (lambda b: g * 0 + b, lambda b: F.linear(torch.zeros(len(g), 1), torch.zeros(4, 1), b),
                 lambda b: F.layer_norm(g, (4,), None, b)):  # fmt: skip
        b = torch.zeros(4, requires_grad=True)
        make(b).backward(g)
        assert np.allclose(b.grad.numpy(), want, rtol=1e-6)


def test_running_sums_are_rounded_once():
    x = torch.from_numpy(X)
    for got, want in ((torch.cumsum(x, 0), np.cumsum(X.astype(np.float64))),
                      (torch.logcumsumexp(x, 0), np.logaddexp.accumulate(X.astype(np.float64)))):  # fmt: skip
        assert np.allclose(got.numpy(), want, rtol=1e-7)


def test_running_products_go_on_from_block_to_block():
    x = torch.from_numpy(1 + (X - 5).reshape(-1, 2) * np.float32(1e-4))
    assert np.allclose(torch.cumprod(x, 0).numpy(), np.cumprod(x.numpy().astype(np.float64), 0), rtol=1e-6)


def test_runs_of_complex_numbers_and_other_strides():
    x = X.reshape(-1, 4)[:5000]
    z = (x + 1j * x[::-1]).astype(np.complex64)
    assert np.allclose(add_up(z, (0,)), z.astype(np.complex128).sum(0), rtol=1e-6)
    assert np.allclose(add_up(x[::-1].T, (1,), True)[:, 0], x.astype(np.float64).sum(0), rtol=1e-6)
    assert add_up(x.astype(np.float16), (0,), dtype=np.float32).dtype == np.float32
