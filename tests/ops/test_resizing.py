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
