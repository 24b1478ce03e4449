"""In which order results lie in memory: `view` works where it works in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rushlight as torch
from rushlight import memory

EXPANDED: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "rows": (lambda: torch.arange(8.0).expand(2, 8), (8, 1)),
    "columns": (lambda: torch.ones(4, 1).expand(4, 3), (3, 1)),
    "middle": (lambda: torch.ones(4, 1, 3).expand(4, 5, 3), (15, 3, 1)),
    "transposed": (lambda: torch.ones(1, 3, 4).expand(2, 3, 4).transpose(1, 2), (12, 1, 4)),
    "with gaps": (lambda: torch.ones(6, 8).t()[::2].unsqueeze(1).expand(4, 3, 6), (1, 4, 12)),
    "permuted": (lambda: torch.ones(2, 1, 3, 1).permute(3, 2, 1, 0).expand(5, 3, 4, 2), (24, 1, 3, 12)),
}


@pytest.mark.parametrize("name", EXPANDED)
def test_expanded_dimensions_stay_where_they_are(name: str) -> None:
    make, strides = EXPANDED[name]
    x = make()
    for made in (x.double(), x.half(), x.bool(), x.type_as(torch.ones(1, dtype=torch.int32)), x.clone(),
                 torch.empty_like(x), torch.zeros_like(x, dtype=torch.float64), torch.rand_like(x), x.long().exp(),
                 x >= torch.ones(x.shape[-1], dtype=torch.float64)):  # fmt: skip
        assert made.stride() == strides
    assert torch.equal(x.double(), x.contiguous().double()) and torch.equal(x.clone(), x.contiguous())


def test_a_mask_of_expanded_numbers_can_be_viewed() -> None:
    mask = torch.arange(8).view(1, 8).expand(2, 8).type_as(torch.ones(1)) >= torch.tensor([[3], [5]])
    assert mask.view(16, 1, 1).sum().item() == 8


REDUCED = ["sum", "mean", "nansum", "amax", "amin", "prod", "all", "any", "count_nonzero", "max", "min"]


@pytest.mark.parametrize("name", REDUCED)
@pytest.mark.parametrize("size", [4, 400])
def test_reductions_can_be_viewed(name: str, size: int) -> None:
    x = torch.rand(2, 3, size).permute(2, 0, 1)
    found, again = getattr(x, name)(dim=1), getattr(x.contiguous(), name)(dim=1)
    for a, b in zip(found, again, strict=True) if isinstance(found, tuple) else [(found, again)]:
        assert a.is_contiguous() and a.view(-1).shape == (3 * size,)
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"])
@pytest.mark.parametrize("size", [4, 400])
@pytest.mark.parametrize("dim", [0, 1])
def test_running_results_can_be_viewed(name: str, size: int, dim: int) -> None:
    for x in (torch.rand(3, size).t(), torch.rand(size).expand(3, size)):
        found, again = getattr(x, name)(dim), getattr(x.contiguous(), name)(dim)
        pairs = zip(found, again, strict=True) if isinstance(found, tuple) else [(found, again)]
        for a, b in pairs:
            assert a.is_contiguous() and a.view(-1).shape == (3 * size,)
            torch.testing.assert_close(a, b)


IMAGES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "conv2d": lambda x: torch.nn.functional.conv2d(x, torch.ones(6, 4, 3, 3)),
    "conv_transpose2d": lambda x: torch.nn.functional.conv_transpose2d(x, torch.ones(4, 6, 3, 3)),
    "max_pool2d": lambda x: torch.nn.functional.max_pool2d(x, 2),
    "positions": lambda x: torch.nn.functional.max_pool2d(x, 2, return_indices=True)[1],
    "avg_pool2d": lambda x: torch.nn.functional.avg_pool2d(x, 2),
    "adaptive_avg_pool2d": lambda x: torch.nn.functional.adaptive_avg_pool2d(x, 3),
    "adaptive_max_pool2d": lambda x: torch.nn.functional.adaptive_max_pool2d(x, 3),
    "batch_norm": lambda x: torch.nn.functional.batch_norm(x, None, None, training=True),
    "batch_norm_eval": lambda x: torch.nn.functional.batch_norm(x, torch.zeros(4), torch.ones(4)),
    "group_norm": lambda x: torch.nn.functional.group_norm(x, 2),
    "nearest": lambda x: torch.nn.functional.interpolate(x, scale_factor=2),
    "bilinear": lambda x: torch.nn.functional.interpolate(x, scale_factor=2, mode="bilinear"),
    "zeros around": lambda x: torch.nn.functional.pad(x, (1, 1, 1, 1)),
    "reflect": lambda x: torch.nn.functional.pad(x, (1, 1, 1, 1), mode="reflect"),
    "pixel_unshuffle": lambda x: torch.nn.functional.pixel_unshuffle(x, 2),
    "channel_shuffle": lambda x: torch.nn.functional.channel_shuffle(x, 2),
    "gelu": torch.nn.functional.gelu,
    "silu": torch.nn.functional.silu,
    "elu": torch.nn.functional.elu,
    "mish": torch.nn.functional.mish,
    "threshold": lambda x: torch.nn.functional.threshold(x, 0.1, 2),
    "lgamma": torch.lgamma,
    "erfinv": lambda x: torch.erfinv(x.tanh()),
    "nan_to_num": torch.nan_to_num,
    "glu": lambda x: torch.nn.functional.glu(x, 1),
    "lerp": lambda x: x.lerp(x + 1, 0.5),
    "flip": lambda x: x.flip(1, 2),
    "sort": lambda x: x.sort(1)[0],
    "argsort": lambda x: x.argsort(2),
    "index_fill": lambda x: x.index_fill(1, torch.tensor([0]), 1),
}


@pytest.mark.parametrize("name", IMAGES)
def test_results_of_images_with_channels_last_lie_so_too(name: str) -> None:
    x = torch.randn(2, 4, 6, 6)
    plain, moved = IMAGES[name](x), IMAGES[name](x.contiguous(memory_format=torch.channels_last))
    assert plain.is_contiguous() and moved.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(plain, moved)


@pytest.mark.parametrize("name", ["conv3d", "max_pool3d", "batch_norm", "trilinear"])
def test_results_of_volumes_with_channels_last_lie_so_too(name: str) -> None:
    f = torch.nn.functional
    run = {
        "conv3d": lambda x: f.conv3d(x, torch.ones(3, 2, 2, 2, 2)),
        "max_pool3d": lambda x: f.max_pool3d(x, 2),
        "batch_norm": lambda x: f.batch_norm(x, None, None, training=True),
        "trilinear": lambda x: f.interpolate(x, scale_factor=2, mode="trilinear"),
    }[name]
    x = torch.randn(2, 2, 4, 4, 4)
    moved = run(x.contiguous(memory_format=torch.channels_last_3d))
    assert moved.is_contiguous(memory_format=torch.channels_last_3d)
    torch.testing.assert_close(run(x), moved)


def test_weights_with_channels_last_decide_as_well() -> None:
    w = torch.randn(4, 3, 3, 3).contiguous(memory_format=torch.channels_last)
    assert torch.nn.functional.conv2d(torch.ones(2, 3, 5, 5), w).is_contiguous(memory_format=torch.channels_last)


def test_places_of_nonzero_lie_dimension_by_dimension() -> None:
    assert torch.ones(4, 5).nonzero().stride() == (1, 20) and torch.argwhere(torch.ones(3)).stride() == (1, 3)


def test_any_order_is_that_of_dimensions_where_it_is_asked_for() -> None:
    x = torch.ones(2, 3)
    assert x.is_contiguous(memory_format=torch.preserve_format) and not x.t().is_contiguous(
        memory_format=torch.preserve_format
    )


@pytest.mark.skipif(not memory.is_counted(), reason="bytes are counted where native kernels are")
@pytest.mark.parametrize("shape", [(64, 1000), (8, 20, 400), (2, 4, 20, 400)])
@pytest.mark.parametrize("order", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("name", ["square", "tanh", "sigmoid", "exp"])
def test_a_gradient_that_is_one_number_is_not_written_out_beside_what_is_made_of_it(name, order, shape) -> None:
    if order is torch.channels_last and len(shape) != 4:
        return
    leaf = torch.randn(shape).contiguous(memory_format=order).requires_grad_()
    x = leaf * 1
    loss = getattr(x, name)().mean()
    before = memory.current()
    memory.reset_peak()
    (grad,) = torch.autograd.grad(loss, x)
    assert memory.peak() - before < 1.1 * x.nbytes
    assert grad.stride() == x.stride()
    dense = leaf.detach().requires_grad_()
    getattr(dense, name)().backward(torch.full(shape, 1 / x.numel()))
    assert torch.equal(grad, dense.grad)


def grown(channels: tuple[int, int], run: Callable[[Any, Any, Any], Any]) -> tuple[int, Any]:
    """How far memory grows in the backward of a convolution of images with channels last, and the gradients; the second time, as the first may write a program."""
    few, many = channels
    for _ in range(2):
        torch.manual_seed(0)
        x = torch.randn(16, few, 32, 32).contiguous(memory_format=torch.channels_last).requires_grad_()
        w = torch.randn(many, few, 3, 3).requires_grad_()
        y = torch.nn.functional.conv2d(x * 1, w, padding=1)
        assert y.is_contiguous(memory_format=torch.channels_last)
        loss = run(x, w, y)
        before = memory.current()
        memory.reset_peak()
        loss.backward()
    return memory.peak() - before, (x.grad, w.grad)


@pytest.mark.parametrize("shared", ["hook", "retain_grad", "two ways", "a view"])
def test_gradients_that_others_hold_stay_as_they_are_behind_a_convolution(shared: str) -> None:
    other = torch.randn(16, 64, 32, 32).contiguous(memory_format=torch.channels_last)
    kept: list[Any] = []

    def run(x: Any, w: Any, y: Any) -> Any:
        if shared == "hook":
            y.register_hook(lambda g: kept.append((g, g.clone())))
        elif shared == "retain_grad":
            y.retain_grad()
            kept.append((y, None))
        elif shared == "two ways":
            leaf = (other * 0).requires_grad_()
            kept.append((leaf, None))
            y = y + leaf
        else:
            leaf = (other[:, :, 0] * 0).requires_grad_()
            kept.append((leaf, None))
            y = torch.cat([y, leaf.unsqueeze(2)], 2)[:, :, :32]
        return (y * other).sum()

    grown((8, 64), run)
    for one, want in kept:
        if want is not None:
            assert torch.equal(one, want)
        elif shared == "a view":
            assert not one.grad.any()
        else:
            assert torch.equal(one.grad, other)


def test_a_gradient_that_is_given_stays_as_it_is_behind_a_convolution() -> None:
    g = torch.randn(16, 64, 32, 32).contiguous(memory_format=torch.channels_last)
    x, w, was = torch.randn(16, 8, 32, 32), torch.randn(64, 8, 3, 3, requires_grad=True), g.clone()
    for _ in range(3):
        torch.nn.functional.conv2d(x, w, padding=1).backward(g)
        assert torch.equal(g, was)


def test_a_gradient_that_is_the_input_too_is_not_turned_where_it_lies() -> None:
    grads = []
    for order in (torch.contiguous_format, torch.channels_last):
        torch.manual_seed(0)
        x, w = torch.randn(16, 8, 32, 32).contiguous(memory_format=order), torch.randn(8, 8, 3, 3, requires_grad=True)
        for _ in range(2):
            torch.nn.functional.conv2d(x, w, padding=1).backward(x)
        grads.append(w.grad)
    assert torch.equal(*grads)
