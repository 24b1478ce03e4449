"""Normalisations: values, derivatives, running statistics, what they keep, what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.ops.memory import saved_bytes
from tests.ops.numeric import check_gradients

import rushlight as torch
import rushlight.nn.functional as F

DRAW = np.random.default_rng(11)
X = DRAW.standard_normal((3, 4, 5)) + 0.3
W, B = DRAW.uniform(0.5, 1.5, 4), DRAW.standard_normal(4)
ROW_W, ROW_B = DRAW.uniform(0.5, 1.5, 5), DRAW.standard_normal(5)
EPS = 1e-5


def standardized(x: Any, axis: Any) -> Any:
    return (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + EPS)


def test_values() -> None:
    x, w, b, rw, rb = (torch.tensor(a) for a in (X, W, B, ROW_W, ROW_B))
    by_channel = W[:, None], B[:, None]
    cases = {
        "layer": (F.layer_norm(x, (5,), rw, rb), standardized(X, 2) * ROW_W + ROW_B),
        "layer two": (F.layer_norm(x, (4, 5)), standardized(X, (1, 2))),
        "rms": (F.rms_norm(x, (5,), rw, EPS), X / np.sqrt((X * X).mean(2, keepdims=True) + EPS) * ROW_W),
        "batch": (F.batch_norm(x, None, None, w, b, True), standardized(X, (0, 2)) * by_channel[0] + by_channel[1]),
        "instance": (F.instance_norm(x, weight=w, bias=b), standardized(X, 2) * by_channel[0] + by_channel[1]),
        "group": (F.group_norm(x, 2), standardized(X.reshape(3, 2, 10), 2).reshape(X.shape)),
        "normalize": (F.normalize(x), X / np.sqrt((X * X).sum(1, keepdims=True))),
        "eval": (F.batch_norm(x, w, rw[:4], b, w), (X - by_channel[0]) / np.sqrt(ROW_W[:4, None] + EPS) * by_channel[1]
                 + by_channel[0]),
    }  # fmt: skip
    for name, (got, want) in cases.items():
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-12, atol=1e-12, err_msg=name)


FUNCTIONS: dict[str, Any] = {
    "layer": lambda x, w, b: F.layer_norm(x, (5,), w, b), "layer rms": lambda x, w, b: F.rms_norm(x, (5,), w, 0.1) + b,
    "layer two": lambda x, w, b: F.layer_norm(x, (4, 5)) * w + b,
    "batch": lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
    "eval": lambda x, w, b: F.batch_norm(x, torch.tensor(B), torch.tensor(W), w, b),
    "group": lambda x, w, b: F.group_norm(x, 2, w, b), "instance": lambda x, w, b: F.instance_norm(x, weight=w, bias=b),
    "batch plain": lambda x, w, b: F.batch_norm(x, None, None, training=True),
    "local": lambda x, w, b: F.local_response_norm(x, 3, 0.5, 0.7, 1.3), "normalize": lambda x, w, b: F.normalize(x, 3.0),
}  # fmt: skip


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_derivatives(name: str) -> None:
    rows = name.startswith("layer")
    check_gradients(FUNCTIONS[name], X, ROW_W if rows else W, ROW_B if rows else B, tol=1e-5)


def test_local_response_against_a_loop() -> None:
    got = F.local_response_norm(torch.tensor(X), 4, 0.5, 0.7, 1.3).numpy()
    for c in range(4):
        window = X[:, max(0, c - 2) : c + 2]
        want = X[:, c] / (1.3 + 0.5 / 4 * (window**2).sum(1)) ** 0.7
        np.testing.assert_allclose(got[:, c], want, rtol=1e-12)


def test_running_statistics() -> None:
    mean, var = torch.zeros(4, dtype=torch.float64), torch.ones(4, dtype=torch.float64)
    version = mean._version
    F.batch_norm(torch.tensor(X), mean, var, training=True, momentum=0.3)
    np.testing.assert_allclose(mean.numpy(), 0.3 * X.mean((0, 2)), rtol=1e-12)
    np.testing.assert_allclose(var.numpy(), 0.7 + 0.3 * X.var((0, 2), ddof=1), rtol=1e-12)
    assert mean._version == version + 1
    F.instance_norm(torch.tensor(X), mean, var, momentum=1.0)
    np.testing.assert_allclose(mean.numpy(), X.mean(2).mean(0), rtol=1e-12)
    np.testing.assert_allclose(var.numpy(), X.var(2, ddof=1).mean(0), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["layer", "batch", "group", "layer rms"])
def test_sixteen_bits_are_computed_in_float32(name: str, dtype: str) -> None:
    rows = name.startswith("layer")
    half = [torch.tensor(a).to(getattr(torch, dtype)) for a in (X + 30, ROW_W if rows else W, ROW_B if rows else B)]
    whole = [t.double() for t in half]
    leaves = [t.requires_grad_() for t in half], [t.requires_grad_() for t in whole]
    outs = [FUNCTIONS[name](*given) for given in leaves]
    g = torch.tensor(DRAW.standard_normal(X.shape)).to(half[0].dtype)
    outs[0].backward(g)
    outs[1].backward(g.double())
    tol = 4e-3 if dtype == "float16" else 3e-2
    np.testing.assert_allclose(outs[0].detach().double().numpy(), outs[1].detach().numpy(), rtol=tol, atol=tol)
    for a, b in zip(*leaves, strict=True):
        np.testing.assert_allclose(
            a.grad.double().numpy(), b.grad.numpy(), rtol=tol, atol=tol * abs(b.grad.numpy()).max()
        )


def test_first_order_with_create_graph_does_not_overflow_in_half_precision() -> None:
    x = torch.tensor([[300.0, 500.0, -700.0]], dtype=torch.float16, requires_grad=True)
    g = torch.tensor([[1.0, 2.0, 3.0]], dtype=torch.float16)
    (plain,) = torch.autograd.grad(F.rms_norm(x, (3,)), x, g)
    (recorded,) = torch.autograd.grad(F.rms_norm(x, (3,)), x, g, create_graph=True)
    np.testing.assert_allclose(recorded.detach().float().numpy(), plain.float().numpy(), rtol=2e-2)
    assert plain.abs().max().item() > 0


def test_only_input_parameters_and_statistics_are_saved() -> None:
    x, w, b = torch.ones(6, 4, 8, requires_grad=True), torch.ones(4, requires_grad=True), torch.ones(4)
    r = torch.ones(8, requires_grad=True)
    rows, groups, channels = 6 * 4, 6 * 2, 4  # a mean and a deviation each, of 4 bytes
    assert saved_bytes(lambda x, w: F.layer_norm(x, (8,), w, w), x, r) <= rows * 8
    assert saved_bytes(lambda x, w: F.rms_norm(x, (8,), w), x, r) <= rows * 4
    assert saved_bytes(lambda x, w, b: F.group_norm(x, 2, w, b), x, w, b) <= groups * 8
    assert saved_bytes(lambda x, w, b: F.batch_norm(x, None, None, w, b, True), x, w, b) <= channels * 8
    assert saved_bytes(lambda x: F.local_response_norm(x, 3), x) == 0


def test_native_forms() -> None:
    x = torch.tensor(X)
    out, mean, rstd = torch.native_layer_norm(x, (5,), None, None, EPS)
    assert mean.shape == rstd.shape == (3, 4, 1)
    np.testing.assert_allclose(((x - mean) * rstd).numpy(), out.numpy(), rtol=1e-12, atol=1e-12)
    out, mean, rstd = torch.native_group_norm(x, None, None, 3, 4, 5, 2, EPS)
    assert mean.shape == rstd.shape == (3, 2)
    out, mean, rstd = torch.native_batch_norm(x, None, None, None, None, True, 0.1, EPS)
    np.testing.assert_allclose(rstd.numpy(), 1 / np.sqrt(X.var((0, 2)) + EPS), rtol=1e-12)
    assert torch.layer_norm(x, (5,)).shape == torch.batch_norm(x, None, None, None, None, True, 0.1, EPS, True).shape


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_native_statistics_are_float32_beside_parameters_of_it(dtype):
    x, own, wide = torch.randn(3, 4, 5).to(dtype), torch.ones(5, dtype=dtype), torch.ones(5)
    for weight, kind in ((None, dtype), (own, dtype), (wide, torch.float32)):
        out, *found = torch.native_layer_norm(x, (5,), weight, weight, EPS)
        of_groups, *others = torch.native_group_norm(x.mT, weight, weight, 3, 5, 4, 1, EPS)
        assert out.dtype is of_groups.dtype is dtype
        assert {each.dtype for each in (*found, *others)} == {kind}
        torch.testing.assert_close(found[0].float(), x.float().mean(-1, True), rtol=1e-2, atol=1e-2)


def test_refusals() -> None:
    x = torch.zeros(2, 4, 3)
    with pytest.raises(
        RuntimeError, match=r"layer_norm: Given normalized_shape=\[5\], expected input with shape \[\*, 5\]"
    ):
        F.layer_norm(x, (5,))
    with pytest.raises(RuntimeError, match=r"Expected weight to be of same shape.*\[2\] and normalized_shape = \[3\]"):
        F.layer_norm(x, (3,), torch.ones(2))
    with pytest.raises(RuntimeError, match=r"divisible by num_groups.*shape \[2, 4, 3\] and num_groups=3"):
        F.group_norm(x, 3)
    with pytest.raises(
        ValueError, match=r"Expected more than 1 value per channel when training, got input size torch.Size\(\[1, 4\]\)"
    ):
        F.batch_norm(torch.zeros(1, 4), None, None, training=True)
    with pytest.raises(RuntimeError, match="running_mean must be defined in evaluation mode"):
        F.batch_norm(x, None, None)
    with pytest.raises(RuntimeError, match="running_var should contain 4 elements not 3"):
        F.batch_norm(x, torch.zeros(4), torch.zeros(3))
    with pytest.raises(NotImplementedError, match=r"batch_norm.*int64"):
        F.batch_norm(x.long(), torch.zeros(4), torch.zeros(4))
    with pytest.raises(ValueError, match="more than 1 spatial element"):
        F.instance_norm(torch.zeros(2, 4, 1))
    with pytest.raises(ValueError, match="Expected 3D or higher"):
        F.local_response_norm(torch.zeros(2, 4), 3)


def test_empty_batches() -> None:
    w = torch.ones(4, requires_grad=True)
    for fn in (lambda x: F.batch_norm(x, None, None, w, training=True), lambda x: F.group_norm(x, 2, w)):
        fn(torch.zeros(0, 4, 3)).sum().backward()
        assert not w.grad.any()
    assert F.layer_norm(torch.zeros(0, 3), (3,)).shape == (0, 3)


@pytest.mark.parametrize("changed", ["mean", "var"])
def test_running_statistics_stay_where_one_of_them_is_refused(changed):
    mean, var = torch.zeros(2), torch.ones(2)
    (mean if changed == "mean" else var).requires_grad_()
    with pytest.raises(RuntimeError, match="not differentiable with respect to argument"):
        F.batch_norm(torch.arange(6.0).view(3, 2), mean, var, training=True)
    assert mean.tolist() == [0, 0]
    assert var.tolist() == [1, 1]
    assert mean._version == var._version == 0
