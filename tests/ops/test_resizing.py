"""Resizing by a factor, where the size stays as it is or is doubled all the same."""

import pytest

import rushlight as torch

interpolate = torch.nn.functional.interpolate


def image(shape, dtype=torch.float64):
    return (torch.arange(torch.Size(shape).numel()) * 7 % 19).to(dtype).view(1, 1, *shape)


@pytest.mark.parametrize(("mode", "dims", "antialias", "dtype"), [
    ("linear", 1, False, torch.float64), ("bilinear", 2, False, torch.float32), ("bilinear", 2, False, torch.uint8),
    ("bilinear", 2, True, torch.float64), ("bilinear", 2, True, torch.uint8), ("bicubic", 2, True, torch.float64),
    ("bicubic", 2, False, torch.uint8), ("trilinear", 3, False, torch.float16), ("nearest", 2, False, torch.int64),
])  # fmt: skip
def test_a_dimension_whose_size_a_factor_leaves_stays_as_it_is(mode, dims, antialias, dtype):
    x = image((3, 5, 5)[:dims], dtype)
    same = (3,) + (6,) * (dims - 1)
    by_factor = interpolate(x, scale_factor=1.3, mode=mode, antialias=antialias)
    assert by_factor.shape[2:] == same
    along = interpolate(x, scale_factor=[1.0, 1.3, 1.3][:dims], mode=mode, antialias=antialias)
    assert torch.equal(by_factor, along)


def test_cubic_and_nearest_places_follow_the_factor():
    x = torch.tensor([1.0, 10.0, 100.0], dtype=torch.float64)
    assert interpolate(x.view(1, 1, 3), scale_factor=1.3).flatten().tolist() == [1, 1, 10]
    assert interpolate(x.view(1, 1, 3), scale_factor=1.3, mode="nearest-exact").flatten().tolist() == [1, 10, 10]
    cubic = interpolate(x.view(1, 1, 3, 1), scale_factor=[1.3, 1.0], mode="bicubic").flatten()
    assert cubic[2].item() == pytest.approx(48.18, abs=0.01)


def test_the_nearest_in_two_dimensions_is_doubled_where_the_size_is():
    x = image((3, 4))
    doubled = interpolate(x, scale_factor=[2.3, 1.1])
    assert torch.equal(doubled, x.repeat_interleave(2, 2))


@pytest.mark.parametrize("dims", [1, 3])
def test_gradients_of_the_nearest_go_where_the_values_come_from(dims):
    x = image((3,) * dims).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: interpolate(x, scale_factor=1.3), (x,))


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_antialiased_rows_of_one_column_differ(mode):
    x = image((6, 4))
    narrow = interpolate(x, size=(6, 1), mode=mode, antialias=True)
    want = interpolate(narrow.expand(1, 1, 6, 2), size=(3, 2), mode=mode, antialias=True)
    assert torch.allclose(interpolate(x, size=(3, 1), mode=mode, antialias=True), want[..., :1])


EVERY = [
    *((mode, 1, False) for mode in ("nearest", "linear", "area")),
    *((mode, 2, False) for mode in ("nearest", "nearest-exact", "bilinear", "bicubic", "area")),
    *((mode, 2, True) for mode in ("bilinear", "bicubic", "lanczos")),
    *((mode, 3, False) for mode in ("nearest", "trilinear", "area")),
]


def drawn(dims, dtype=torch.float64):
    return torch.randn(2, 3, *(4, 6, 5)[:dims], dtype=dtype)


@pytest.mark.parametrize(("mode", "dims", "antialias"), EVERY)
@pytest.mark.parametrize("factor", [0.5, 1.6])
def test_gradients_of_all_orders_and_tangents(mode, dims, antialias, factor):
    def resize(x):
        return interpolate(x, scale_factor=factor, mode=mode, antialias=antialias)

    x, v = drawn(dims)[:, :1].requires_grad_(), drawn(dims)[:, :1]
    assert torch.autograd.gradcheck(resize, (x,), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(lambda x: resize(x) ** 2, (x,))
    _, tangent = torch.func.jvp(resize, (x.detach(),), (v,))
    assert torch.equal(tangent, resize(v))


@pytest.mark.parametrize(("mode", "dims", "antialias"), EVERY)
@pytest.mark.parametrize("last", [False, True])
def test_samples_of_vmap_are_resized_as_alone(mode, dims, antialias, last):
    def resize(x):
        return interpolate(x, scale_factor=1.6, mode=mode, antialias=antialias)

    x = torch.stack([drawn(dims) for _ in range(3)])
    if last and dims == 2:
        x = x.permute(0, 1, 3, 4, 2).contiguous().permute(0, 1, 4, 2, 3)
    assert torch.equal(torch.vmap(resize)(x), torch.stack([resize(each) for each in x]))
    grads = torch.vmap(torch.func.grad(lambda x: (resize(x) ** 2).sum()))(x)
    for each, found in zip(x, grads, strict=True):
        assert torch.equal(torch.func.grad(lambda x: (resize(x) ** 2).sum())(each), found)


@pytest.mark.parametrize(("mode", "dims", "antialias"), [case for case in EVERY if case[1] > 1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_channels_that_lie_last_stay_there(mode, dims, antialias, dtype):
    def resize(x):
        return interpolate(x, scale_factor=1.6, mode=mode, antialias=antialias)

    layout = torch.channels_last if dims == 2 else torch.channels_last_3d
    x = drawn(dims, torch.float32).to(dtype)
    made = resize(x.contiguous(memory_format=layout))
    assert torch.equal(made, resize(x))
    assert made.is_contiguous(memory_format=layout) or (mode == "area" and dims == 3)


@pytest.mark.parametrize(("mode", "dims", "antialias"), EVERY)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_sixteen_bits_are_rounded_once(mode, dims, antialias, dtype):
    def both(x):
        x = x.detach().requires_grad_()
        y = interpolate(x, scale_factor=2.5, mode=mode, antialias=antialias)
        y.backward(torch.ones_like(y))
        return y.detach(), x.grad

    x = drawn(dims, torch.float32).to(dtype)
    for found, want in zip(both(x), both(x.float()), strict=True):
        assert found.dtype is dtype and torch.equal(found, want.to(dtype))


@pytest.mark.parametrize("shape", [(2, 3, 12, 17), (3, 12, 17)])
@pytest.mark.parametrize("size", [1, 4, 7, 20, (None, 5), (3, None)])
def test_adaptive_averages_are_those_of_windows(shape, size):
    x = torch.randn(shape, dtype=torch.float64)
    made = torch.nn.functional.adaptive_avg_pool2d(x, size)
    height, width = made.shape[-2:]
    for i in range(height):
        for j in range(width):
            rows = slice(i * 12 // height, -(-(i + 1) * 12 // height))
            columns = slice(j * 17 // width, -(-(j + 1) * 17 // width))
            assert torch.allclose(made[..., i, j], x[..., rows, columns].mean((-2, -1)), atol=1e-12)


@pytest.mark.parametrize(("n", "size"), [(1, 3), (2, (3, 4)), (3, (2, 4, 3))])
def test_adaptive_averages_of_equal_numbers_are_these(n, size):
    pool = getattr(torch.nn.functional, f"adaptive_avg_pool{n}d")
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        x = torch.full((2, 3, *(11, 7, 10)[:n]), 0.7, dtype=dtype)
        made = pool(x, size)
        assert torch.equal(made, torch.full_like(made, 0.7))


def test_adaptive_averages_of_large_halves_do_not_overflow():
    made = torch.nn.functional.adaptive_avg_pool2d(torch.full((1, 1, 90, 80), 3e4, dtype=torch.float16), 3)
    assert torch.equal(made, torch.full_like(made, 3e4))


def test_volumes_without_images_whose_strides_look_like_channels_last():
    x = torch.randn(3, 8, 9, 7, dtype=torch.float64)
    turned = x.contiguous(memory_format=torch.channels_last)
    pool = torch.nn.functional.adaptive_avg_pool3d
    assert torch.allclose(pool(turned, (3, 4, 2)), pool(x, (3, 4, 2)))
