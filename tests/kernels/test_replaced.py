"""What was saved for backward and then replaced by another shape is refused: kernels read nothing outside of it."""

from collections.abc import Callable
from typing import Any

import pytest

import rushlight as torch
from rushlight.nn import functional as F

pytestmark = pytest.mark.usefixtures("path")


def replaced(forward: Callable[..., Any], at: int, shape: tuple[int, ...], *shapes: tuple[int, ...]) -> None:
    inputs = [torch.rand(s).requires_grad_() for s in shapes]
    out = forward(*inputs)
    inputs[at].data = torch.ones(shape)
    with pytest.raises((RuntimeError, ValueError)):
        out.sum().backward()


CALLS: dict[str, tuple[Any, ...]] = {
    "layer_norm": (lambda x: F.layer_norm(x, (4,)), (2, 4)),
    "rms_norm": (lambda x: F.rms_norm(x, (4,)), (2, 4)),
    "group_norm": (lambda x: F.group_norm(x, 2), (2, 4, 3)),
    "batch_norm": (lambda x: F.batch_norm(x, None, None, training=True), (2, 4, 3)),
    "conv2d": (lambda x, w: F.conv2d(x, w), (2, 4, 9, 9), (3, 4, 2, 2)),
    "grouped conv2d": (lambda x, w: F.conv2d(x, w, groups=4), (2, 4, 9, 9), (4, 1, 2, 2)),
    "conv_transpose2d": (lambda x, w: F.conv_transpose2d(x, w), (2, 4, 9, 9), (4, 3, 2, 2)),
    "attention": (lambda q, k: F.scaled_dot_product_attention(q, k, k), (2, 2, 3, 4), (2, 2, 3, 4)),
}


@pytest.mark.parametrize("larger", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_another_shape_is_refused_in_backward(name: str, larger: bool) -> None:
    forward, *shapes = CALLS[name]
    for at, shape in enumerate(shapes):
        other = (1000, *shape[1:]) if larger else (1,) * len(shape)
        replaced(forward, at, other, *shapes)


@pytest.mark.parametrize(
    "forward",
    [
        lambda x: F.dropout(x, 0.5),
        lambda x: F.max_pool2d(x, 2),
        lambda x: F.layer_norm(x, (8,)),
        lambda x: F.group_norm(x, 2),
        lambda x: F.softmax(x, -1),
    ],
)
def test_hooks_that_return_another_shape_are_refused(forward: Any) -> None:
    x = torch.rand(4, 4, 8, 8, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t[:1]):
        out = forward(x)
        with pytest.raises((RuntimeError, ValueError, IndexError)):
            out.sum().backward()


@pytest.mark.parametrize("forward", [lambda x: F.layer_norm(x, (8,)), lambda x: F.group_norm(x, 2), lambda x: F.softmax(x, -1),
                                     lambda x: F.max_pool2d(x, 2), lambda x: F.dropout(x, 0.5), lambda x: F.silu(x)])  # fmt: skip
def test_hooks_may_return_other_strides(forward: Any) -> None:
    def turned(t: Any) -> Any:
        wide = t.unsqueeze(-1).repeat(*[1] * t.dim(), 2)
        return wide[..., 0]

    found = []
    x = torch.rand(4, 4, 8, 8, requires_grad=True)
    for unpack in (turned, lambda t: t):
        torch.manual_seed(0)
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
            out = forward(x)
        found.append(torch.autograd.grad((out * out.detach()).sum(), x)[0])
    assert torch.allclose(*found)
