"""Operators of what has no elements: no samples, no channels, no rows; and what reaches their inputs as a gradient."""

import functools

import pytest

import rushlight as torch

F = torch.nn.functional


def answered(call, *shape):
    """The shape of what a function makes of a tensor of a shape, whose gradient has to have that of the tensor."""
    x = torch.zeros(*shape, requires_grad=True)
    out = call(x)
    (gradient,) = torch.autograd.grad(out.sum(), x)
    assert gradient.shape == x.shape
    return tuple(out.shape)


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_grid_sample_of_no_samples(mode):
    def at(grid):
        return lambda x: F.grid_sample(x, torch.zeros(*grid), mode=mode, align_corners=False)

    assert answered(at((0, 2, 5, 2)), 0, 3, 4, 4) == (0, 3, 2, 5)
    assert answered(at((2, 2, 5, 2)), 2, 0, 4, 4) == (2, 0, 2, 5)
    assert answered(
        lambda grid: F.grid_sample(torch.zeros(0, 3, 4, 4), grid, mode=mode, align_corners=False), 0, 2, 5, 2
    ) == (0, 3, 2, 5)
    if mode != "bicubic":
        assert answered(at((0, 1, 2, 5, 3)), 0, 3, 4, 4, 4) == (0, 3, 1, 2, 5)


def test_instance_norm_of_no_channels():
    assert answered(F.instance_norm, 2, 0, 5) == (2, 0, 5)


def second(call, *shape):
    """The shape of a second derivative, and of a tangent."""
    x = torch.zeros(*shape)
    (back,) = torch.func.vjp(torch.func.grad(lambda y: call(y).square().sum()), x)[1](x)
    return tuple(back.shape), tuple(torch.func.jvp(call, (x,), (x,))[1].shape)


def test_second_derivatives_and_tangents():
    target = torch.zeros(0, 4, dtype=torch.long)
    assert second(F.instance_norm, 2, 0, 5) == ((2, 0, 5), (2, 0, 5))
    for smoothing in (0.0, 0.1):
        loss = functools.partial(F.cross_entropy, target=target, reduction="none", label_smoothing=smoothing)
        assert second(loss, 0, 0, 4) == ((0, 0, 4), (0, 4))


def test_cross_entropy_of_no_samples_of_no_classes():
    target = torch.zeros(0, 4, dtype=torch.long)
    assert answered(lambda x: F.cross_entropy(x, target, reduction="sum"), 0, 0, 4) == ()


def test_circular_padding_of_no_channels_and_of_nothing_that_is_not_padded():
    assert answered(lambda x: F.pad(x, (1, 2), "circular"), 2, 0, 4) == (2, 0, 7)
    assert answered(lambda x: F.pad(x, (1, 0, 0, 0), "circular"), 2, 3, 0, 4) == (2, 3, 0, 5)
    with pytest.raises(RuntimeError, match="wrapping around"):
        F.pad(torch.zeros(2, 3, 0), (1, 0), "circular")


def test_maxima_of_bags_without_any_embeddings():
    none, two = torch.zeros(0, dtype=torch.long), torch.zeros(2, dtype=torch.long)
    assert answered(lambda weight: F.embedding_bag(none, weight, two, mode="max"), 0, 3) == (2, 3)


def test_an_adaptive_loss_of_no_samples_has_a_gradient():
    layer = torch.nn.AdaptiveLogSoftmaxWithLoss(4, 10, [2, 4], div_value=2)
    loss = layer(torch.zeros(0, 4), torch.zeros(0, dtype=torch.long)).loss
    loss.backward()
    assert loss.isnan() and not layer.head.weight.grad.any()
