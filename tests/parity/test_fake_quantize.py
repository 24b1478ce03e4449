"""Fake quantization: values, gradients, dtypes and refusals are PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

DTYPES = ["float32", "float64", "float16", "bfloat16"]
NAN, INF = float("nan"), float("inf")


def both(case: Any, dtype: str = "float32", points: Any = None) -> None:
    """Compare values, dtype and the gradient of `case(t, x)`."""
    found = []
    points = np.random.default_rng(0).normal(0, 5, (6, 50)) if points is None else np.asarray(points)
    for t in (rushlight, torch):
        x = t.tensor(points.tolist(), dtype=getattr(t, dtype)).requires_grad_()
        y = case(t, x)
        y.backward(t.arange(1.0, y.numel() + 1).reshape(y.shape).to(y.dtype))
        found.append([str(y.dtype), type(y.grad_fn).__name__, *(z.detach().to(t.float64).numpy() for z in (y, x.grad))])
    ours, theirs = found
    assert ours[:2] == theirs[:2]
    for a, b in zip(ours[2:], theirs[2:], strict=True):
        assert np.array_equal(a, b, equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", [0.1, 0.037, 1 / 3, 2.0])
@pytest.mark.parametrize("zero", [0, 3, -7])
def test_one_scale_for_all(dtype: str, scale: float, zero: int) -> None:
    both(lambda t, x: t.fake_quantize_per_tensor_affine(x, scale, zero, -20, 30), dtype)


@pytest.mark.parametrize("zero", [0, 3, 300, 3.6, -3.6])
@pytest.mark.parametrize("shape", [(), (1,)])
def test_scales_in_tensors(zero: float, shape: tuple[int, ...]) -> None:
    both(
        lambda t, x: t.fake_quantize_per_tensor_affine(x, t.full(shape, 0.1), t.full(shape, zero), -4, 40),
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["int32", "float32", "float16"])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_scale_for_each_channel(dtype: str, kind: str, axis: int) -> None:
    n = (6, 50)[axis]

    def case(t: Any, x: Any) -> Any:
        zeros = t.linspace(-5, 7.3, n).to(getattr(t, kind))
        return t.fake_quantize_per_channel_affine(x, t.linspace(0.05, 0.3, n), zeros, axis, -20, 30)

    both(case, dtype)


def test_what_is_no_number() -> None:
    points = [0.05, 0.15, 0.25, NAN, INF, -INF, -1.0, -0.0]
    both(lambda t, x: t.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 255), points=points)
    both(
        lambda t, x: t.fake_quantize_per_channel_affine(x, t.tensor([0.1]), t.tensor([3.0]), 0, 0, 255),
        points=[[x for x in points if x != INF]],
    )
    for t in (rushlight, torch):
        x = t.tensor([1.0, 300.0], requires_grad=True)
        t.fake_quantize_per_tensor_affine(x, 1.0, 0, 0, 255).backward(t.tensor([INF, INF]))
        assert x.grad.isinf()[0] and x.grad.isnan()[1]


def tensors(t: Any, *numbers: Any) -> list[Any]:
    return [t.tensor(n) for n in numbers]


REFUSED = {
    "order": lambda t, x: t.fake_quantize_per_tensor_affine(x, 0.1, 3, 5, 2),
    "zero point": lambda t, x: t.fake_quantize_per_tensor_affine(x, 0.1, 300, 0, 255),
    "kind of zero point": lambda t, x: t.fake_quantize_per_tensor_affine(x, 0.1, 3.5, 0, 255),
    "integers": lambda t, x: t.fake_quantize_per_tensor_affine(x.long(), 0.1, 3, 0, 255),
    "many scales": lambda t, x: t.fake_quantize_per_tensor_affine(x, *tensors(t, [0.1, 0.2], [3, 3]), 0, 255),
    "gradient of scale": lambda t, x: t.fake_quantize_per_tensor_affine(
        x, t.tensor(0.1, requires_grad=True), t.tensor(3), 0, 255
    ),
    "int64": lambda t, x: t.fake_quantize_per_channel_affine(x, *tensors(t, [0.1, 0.2], [3, 3]), 0, 0, 255),
    "axis": lambda t, x: t.fake_quantize_per_channel_affine(x, *tensors(t, [0.1, 0.2], [3.0, 3.0]), 3, 0, 255),
    "axis from the end": lambda t, x: t.fake_quantize_per_channel_affine(
        x, *tensors(t, [0.1, 0.2, 0.3], [3.0, 3.0, 3.0]), -1, 0, 255
    ),
    "sizes": lambda t, x: t.fake_quantize_per_channel_affine(x, *tensors(t, [0.1, 0.2], [3.0]), 0, 0, 255),
    "channels": lambda t, x: t.fake_quantize_per_channel_affine(x, *tensors(t, [0.1], [3.0]), 0, 0, 255),
    "scale of float64": lambda t, x: t.fake_quantize_per_channel_affine(
        x, t.tensor([0.1, 0.2]).double(), t.tensor([3.0, 3.0]), 0, 0, 255
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    kinds = []
    for t in (torch, rushlight):
        with pytest.raises((RuntimeError, TypeError, IndexError)) as caught:
            REFUSED[name](t, t.arange(6.0).reshape(2, 3))
        kinds.append(caught.type)
    assert kinds[0] is kinds[1]
