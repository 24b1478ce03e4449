"""Convolutions, pools, padding, resizing, sampling: values against plain loops, gradients against differences."""

import itertools

import numpy as np
import pytest
from tests.ops.numeric import check_gradients

import rushlight as torch
import rushlight.nn.functional as F

RNG = np.random.default_rng(0)


def draw(*shape, kind=float):
    x = RNG.standard_normal(shape)
    return x + 1j * RNG.standard_normal(shape) if kind is complex else x


def convolve_slowly(x, w, stride, padding, dilation, groups):
    """The definition, one output element at a time, in two dimensions."""
    x = np.pad(x, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    n, _, h, width = x.shape
    o, c, kh, kw = w.shape
    oh = (h - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    ow = (width - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    y = np.zeros((n, o, oh, ow), x.dtype)
    for i, f, a, b in itertools.product(range(n), range(o), range(oh), range(ow)):
        first = f // (o // groups) * c
        rows = slice(a * stride[0], a * stride[0] + dilation[0] * (kh - 1) + 1, dilation[0])
        cols = slice(b * stride[1], b * stride[1] + dilation[1] * (kw - 1) + 1, dilation[1])
        y[i, f, a, b] = (x[i, first : first + c, rows, cols] * w[f]).sum()
    return y


@pytest.mark.parametrize("stride, padding, dilation, groups", [
    ((1, 1), (0, 0), (1, 1), 1), ((2, 1), (1, 2), (1, 1), 1), ((1, 2), (2, 1), (2, 1), 2), ((1, 1), (0, 0), (1, 1), 4),
])  # fmt: skip
@pytest.mark.parametrize("kind", [float, complex])
def test_conv2d_is_its_definition(stride, padding, dilation, groups, kind):
    x, w = draw(2, 4, 7, 6, kind=kind), draw(8, 4 // groups, 3, 2, kind=kind)
    y = F.conv2d(torch.from_numpy(x), torch.from_numpy(w), None, stride, padding, dilation, groups)
    np.testing.assert_allclose(y.numpy(), convolve_slowly(x, w, stride, padding, dilation, groups), atol=1e-12)


@pytest.mark.parametrize("kind", [float, complex])
def test_gradients_of_convolutions(kind):
    x, w, b = draw(2, 2, 5, 4, kind=kind), draw(4, 1, 3, 2, kind=kind), draw(4, kind=kind)
    check_gradients(lambda x, w, b: F.conv2d(x, w, b, (2, 1), (1, 1), (1, 1), 2), x, w, b)
    w = draw(2, 3, 3, 2, kind=kind)
    check_gradients(lambda x, w: F.conv_transpose2d(x, w, None, (2, 3), 1, (1, 2)), x, w)


def test_transposed_convolution_is_the_adjoint():
    x, y, w = draw(1, 3, 8), draw(1, 5, 4), draw(5, 3, 3)
    forward = F.conv1d(torch.from_numpy(x), torch.from_numpy(w), stride=2, padding=1).numpy()
    back = F.conv_transpose1d(torch.from_numpy(y), torch.from_numpy(w), stride=2, padding=1, output_padding=1).numpy()
    assert np.isclose((forward * y).sum(), (back * x).sum())


def test_same_padding_and_one_image():
    x, w = torch.from_numpy(draw(2, 9)), torch.from_numpy(draw(3, 2, 4))
    assert F.conv1d(x, w, padding="same").shape == (3, 9)
    assert F.conv3d(torch.ones(1, 4, 4, 4), torch.ones(2, 1, 2, 2, 2)).tolist()[0][0][0][0] == 8.0


@pytest.mark.parametrize("args, message", [
    (((1, 3, 5), (2, 2, 3)), "to have 2 channels, but got 3"),
    (((1, 3, 2), (2, 3, 3)), "Kernel size can't be greater"),
    (((1, 3, 5), (2, 3, 3), None, 0), "non-positive stride"),
    (((1, 3, 5), (2, 3, 3), None, 1, -1), "negative padding"),
    (((1, 3, 5), (2, 3, 3), None, 1, 0, 1, 0), "non-positive groups"),
])  # fmt: skip
def test_errors_of_convolution(args, message):
    shapes, rest = args[:2], args[2:]
    with pytest.raises(RuntimeError, match=message):
        F.conv1d(*(torch.ones(s) for s in shapes), *rest)


def test_max_pool_values_indices_ceil_mode_and_nan():
    x = torch.tensor([[[1.0, 5.0, 2.0, 5.0, 0.0]]])
    y, at = F.max_pool1d(x, 2, stride=2, ceil_mode=True, return_indices=True)
    assert y.tolist() == [[[5.0, 5.0, 0.0]]] and at.tolist() == [[[1, 3, 4]]]
    assert F.max_pool1d(torch.tensor([[float("nan"), 1.0, 2.0]]), 3)[0, 0].isnan()
    padded = F.max_pool2d(-torch.ones(1, 1, 2, 2), 3, 1, 1)
    assert (padded == -1).all()


def test_unpooling_restores_the_maxima():
    x = torch.arange(16.0).reshape(1, 1, 4, 4)
    y, at = F.max_pool2d(x, 2, return_indices=True)
    assert F.max_unpool2d(y, at, 2)[0, 0].tolist() == [[0, 0, 0, 0], [0, 5, 0, 7], [0, 0, 0, 0], [0, 13, 0, 15]]


@pytest.mark.parametrize("fn", [
    lambda x: F.max_pool2d(x, 3, 2, 1), lambda x: F.max_pool2d(x, 2, 1, 0, 2, True),
    lambda x: F.avg_pool2d(x, 3, 2, 1), lambda x: F.avg_pool2d(x, 2, 2, 1, True, False),
    lambda x: F.adaptive_avg_pool2d(x, (3, 2)), lambda x: F.adaptive_avg_pool2d(x, 1),
    lambda x: F.adaptive_max_pool2d(x, (2, 3)), lambda x: F.lp_pool2d(x.abs() + 1, 3, 2),
    lambda x: F.unfold(x, 2, 1, 1, 2), lambda x: F.pixel_unshuffle(F.pad(x, (0, 1, 1, 0)), 2),
    lambda x: F.pad(x, (1, 2, 0, 1), mode="reflect"), lambda x: F.pad(x, (1, 2, 0, 0), mode="circular"),
    lambda x: F.pad(x, (2, 1, 1, 1), mode="replicate"), lambda x: F.pad(x, (-1, 2), value=3.0),
    lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), lambda x: F.interpolate(x, (4, 9), mode="bicubic"),
    lambda x: F.interpolate(x, (3, 3), mode="bilinear", antialias=True), lambda x: F.interpolate(x, (7, 3)),
    lambda x: F.interpolate(x, (7, 9), mode="bilinear", align_corners=True), lambda x: F.interpolate(x, 3, mode="area"),
])  # fmt: skip
def test_gradients_of_windows(fn):
    check_gradients(fn, draw(2, 1, 5, 7))


@pytest.mark.parametrize("shape", [(1, 2, 3, 3), (1, 2, 3, 3, 3)])
@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
@pytest.mark.parametrize("dtype", [torch.complex64, torch.int64, torch.bool])
def test_grids_are_sampled_of_floating_point_numbers_alone(shape, mode, dtype):
    grid = torch.zeros(1, *(2 for _ in shape[2:]), len(shape) - 2, dtype=dtype)
    with pytest.raises(NotImplementedError, match=f'"grid_sampler_{len(shape) - 2}d" not implemented for'):
        F.grid_sample(torch.zeros(shape, dtype=dtype), grid, mode, align_corners=False)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [True, False])
def test_gradients_of_grid_sample(mode, padding, align):
    x, grid = draw(1, 2, 4, 5), RNG.uniform(-1.3, 1.3, (1, 3, 2, 2))
    second = mode == "bilinear"
    if mode == "nearest":
        check_gradients(lambda x: F.grid_sample(x, torch.from_numpy(grid), mode, padding, align), x)
    else:
        check_gradients(lambda x, g: F.grid_sample(x, g, mode, padding, align), x, grid, second=second)


def test_the_identity_grid_gives_the_input_back():
    x = torch.from_numpy(draw(2, 3, 4, 5))
    theta = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], dtype=torch.float64).expand(2, 2, 3)
    for align in (True, False):
        y = F.grid_sample(x, F.affine_grid(theta, x.shape, align), align_corners=align)
        np.testing.assert_allclose(y.numpy(), x.numpy(), atol=1e-12)


def test_fold_undoes_unfold_where_windows_do_not_overlap():
    x = torch.from_numpy(draw(2, 3, 4, 6))
    np.testing.assert_array_equal(F.fold(F.unfold(x, 2, stride=2), (4, 6), 2, stride=2).numpy(), x.numpy())


def test_pixel_shuffle_and_channel_shuffle():
    x = torch.from_numpy(draw(1, 8, 2, 3))
    np.testing.assert_array_equal(F.pixel_unshuffle(F.pixel_shuffle(x, 2), 2).numpy(), x.numpy())
    assert F.channel_shuffle(torch.arange(6.0).reshape(1, 6, 1), 2).flatten().tolist() == [0, 3, 1, 4, 2, 5]


def test_fractional_pool_repeats_with_its_samples_and_stays_inside():
    x, u = torch.from_numpy(draw(1, 2, 7, 7)), torch.rand(1, 2, 2, dtype=torch.float64)
    a, at = F.fractional_max_pool2d(x, 2, 3, return_indices=True, _random_samples=u)
    b = F.fractional_max_pool2d(x, 2, 3, _random_samples=u)
    assert torch.equal(a, b) and a.shape == (1, 2, 3, 3)
    assert torch.equal(x.flatten(2).gather(2, at.flatten(2)).view_as(a), a)


@pytest.mark.parametrize("call, kind, message", [
    (lambda: F.max_pool2d(torch.ones(1, 1, 4, 4), 2, padding=2), RuntimeError, "at most half"),
    (lambda: F.avg_pool2d(torch.ones(1, 1, 4, 4), 0), RuntimeError, "greater than zero"),
    (lambda: F.conv2d(torch.ones(1, 1, 4, 4), torch.ones(1, 1, 0, 2)), RuntimeError, "kernel size should be greater than zero"),
    (lambda: F.conv_transpose1d(torch.ones(1, 1, 4), torch.ones(1, 1, 0)), RuntimeError, "kernel size should be greater than zero"),
    (lambda: F.adaptive_avg_pool2d(torch.ones(1, 1, 4, 4), (2,)), RuntimeError, "output_size must be 2"),
    (lambda: F.pad(torch.ones(1, 1, 3), (3, 0), mode="reflect"), RuntimeError, "less than the corresponding"),
    (lambda: F.pad(torch.ones(2), (-3, 4)), RuntimeError, "length must be non-negative"),
    (lambda: F.pad(torch.ones(2), (4, -3)), RuntimeError, "length must be non-negative"),
    (lambda: F.pad(torch.ones(3), (1, 1), mode="mirror"), NotImplementedError, "Unrecognised padding mode"),
    (lambda: F.interpolate(torch.ones(1, 1, 3)), ValueError, "either size or scale_factor"),
    (lambda: F.grid_sample(torch.ones(1, 1, 3, 3), torch.ones(2, 1, 1, 2), align_corners=True), RuntimeError, "same batch size"),
    (lambda: F.unfold(torch.ones(1, 1, 2, 2), 3), RuntimeError, "at least one"),
    (lambda: F.fold(torch.ones(1, 5, 4), (3, 3), 2), RuntimeError, "divisible by the product"),
    (lambda: F.pixel_shuffle(torch.ones(1, 3, 2, 2), 2), RuntimeError, "divisible by the square"),
])  # fmt: skip
def test_errors(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


@pytest.mark.parametrize("n", [1, 2, 3])
def test_averages_of_bools_are_refused(n):
    with pytest.raises(NotImplementedError, match=r"not implemented for torch\.bool: convert the input"):
        getattr(F, f"avg_pool{n}d")(torch.ones(1, 1, *[2] * n, dtype=torch.bool), 2)
