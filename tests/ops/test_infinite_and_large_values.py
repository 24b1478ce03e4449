"""Infinity, NaN and integers beyond float64 in single places: what they reach, and what they must not."""

import math

import numpy as np
import pytest

import rushlight as torch

F = torch.nn.functional
inf, nan = math.inf, math.nan
LARGEST = (1 << 64) - 1

# Integers in lists ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        ([0, LARGEST], torch.uint64),
        ([[0, 1], [2, LARGEST]], torch.uint64),
        ([0, 1 << 63, (1 << 63) - 1], torch.uint64),
        ([np.int64(3), LARGEST], torch.uint64),
        ([(1 << 62) + 1, 1.5], torch.int64),
        ([1.5, (1 << 62) + 1], torch.int64),
        ([(1 << 53) + 1, True, 0.5], torch.int64),
    ],
)
def test_large_integers_in_lists_keep_their_digits(data, dtype):
    want = [[int(x) for x in row] for row in data] if isinstance(data[0], list) else [int(x) for x in data]
    assert torch.tensor(data, dtype=dtype).tolist() == torch.as_tensor(data, dtype=dtype).tolist() == want
    assert torch.zeros(1, dtype=dtype).new_tensor(data).tolist() == want


@pytest.mark.parametrize(
    "data", [[0, LARGEST], [[0], [LARGEST]], [1, 1 << 63], [-1, 1 << 63], [True, LARGEST], [LARGEST]]
)
def test_integers_beyond_int64_have_no_dtype_of_their_own(data):
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        torch.tensor(data)
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        torch.tensor(data, dtype=torch.int64)


def test_integers_beyond_int64_beside_fractions_are_numbers():
    assert torch.tensor([0, 1.5, 1 << 63]).tolist() == [0, 1.5, 2.0**63]


@pytest.mark.parametrize("data", [-1, [-1], [3, -200], [-(1 << 63), 1]])
def test_negative_integers_are_none_of_uint64(data):
    with pytest.raises(OverflowError, match="can't convert negative int to unsigned"):
        torch.tensor(data, dtype=torch.uint64)


def test_scalars_of_uint64_wrap_around_and_bools_are_numbers_of_it():
    assert torch.scalar_tensor(-1, dtype=torch.uint64).item() == LARGEST
    assert torch.tensor([True, False], dtype=torch.uint64).tolist() == [1, 0]
    assert torch.tensor(True, dtype=torch.uint64).item() == 1


@pytest.mark.parametrize("data", [[2.0**63, 1], [1e20], [inf, 1.0], [nan]])
def test_numbers_beyond_int64_in_lists_are_refused(data):
    with pytest.raises(RuntimeError, match="value cannot be converted to type int64 without overflow"):
        torch.tensor(data, dtype=torch.int64)


def test_an_infinite_number_of_16_bits_fills_no_integers():
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        with pytest.raises(RuntimeError, match="cannot be converted to type int64 without overflow"):
            torch.zeros(2, dtype=torch.int64).masked_fill(torch.ones(2) > 0, torch.tensor(inf, dtype=dtype))


# Gradients beside infinities --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shape", [(3, 2), (3, 2, 5), (2, 2, 40, 7)])
@pytest.mark.parametrize("where", ["input", "mean"])
def test_the_input_of_an_evaluated_batch_norm_has_the_same_gradient_where_it_is_infinite(shape, dtype, where):
    x, mean, var = torch.randn(shape, dtype=dtype), torch.zeros(2, dtype=dtype), torch.full((2,), 4.0, dtype=dtype)
    (x[1, 1] if where == "input" else mean[1:]).fill_(inf)
    x, weight = x.requires_grad_(), torch.full((2,), 3.0, dtype=dtype).requires_grad_()
    F.batch_norm(x, mean, var, weight, eps=0.0).sum().backward()
    assert (x.grad == 1.5).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shape", [(4, 3), (4, 100), (3, 3, 5), (2, 40, 50)])
@pytest.mark.parametrize("value", [inf, nan, -inf])
def test_an_infinite_weight_of_a_class_that_does_not_occur_has_no_part_in_gradients(shape, dtype, value):
    classes, rows = shape[1], (shape[0], *shape[2:])
    weight = torch.ones(classes, dtype=dtype)
    weight[1] = value  # as 1 / count gives
    target = torch.zeros(rows, dtype=torch.int64)
    target[0] = classes - 1
    x = torch.randn(shape, dtype=dtype).requires_grad_()
    found, want = (torch.autograd.grad(F.cross_entropy(x, target, w), x)[0] for w in (weight, None))
    torch.testing.assert_close(found, want)
    twice = torch.autograd.grad(F.cross_entropy(x, target, weight), x, create_graph=True)[0]
    assert torch.autograd.grad(twice.square().sum(), x)[0].isfinite().all()

    def of_one(row, chosen):
        return F.cross_entropy(row[None], chosen[None], weight, reduction="sum")

    by_samples = torch.func.vmap(torch.func.grad(of_one))(x.detach(), target)
    assert by_samples.isfinite().all()


def test_an_infinite_weight_of_a_class_that_does_not_occur_in_a_layer_with_its_loss():
    x, layer = torch.randn(6, 5).requires_grad_(), torch.randn(4, 5).requires_grad_()
    target, weight = torch.tensor([0, 1, 3, 0, 1, 3]), torch.tensor([1.0, 1.0, inf, 1.0])
    found = torch.autograd.grad(F.linear_cross_entropy(x, layer, target, weight=weight), (x, layer))
    want = torch.autograd.grad(F.linear_cross_entropy(x, layer, target), (x, layer))
    torch.testing.assert_close(found, want)


def test_infinite_weights_count_where_labels_are_smoothed():
    x, weight = torch.randn(2, 3).requires_grad_(), torch.tensor([1.0, inf, 1.0])
    F.cross_entropy(x, torch.tensor([0, 2]), weight, reduction="sum", label_smoothing=0.1).backward()
    assert not x.grad.isfinite().any()


@pytest.mark.parametrize("z", [1e-30j, 3e-25 + 4e-25j, 1e30 + 0j, 3e25 - 4e25j, 3e38 + 3e38j])
def test_angles_of_numbers_whose_squares_are_beyond_their_dtype_have_slopes(z):
    x = torch.tensor([z], dtype=torch.complex64).requires_grad_()
    torch.angle(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), [1j * z / abs(z) / abs(z)], rtol=1e-5)


def test_scattered_extremes_that_are_nan_have_no_slope():
    for reduce in ("amax", "amin"):
        x, src = torch.tensor([1.0, 2.0]).requires_grad_(), torch.tensor([nan, 3.0]).requires_grad_()
        x.scatter_reduce(0, torch.tensor([0, 0]), src, reduce).sum().backward()
        np.testing.assert_equal((x.grad.tolist(), src.grad.tolist()), ([nan, 1], [nan, nan]))


def test_an_infinite_variance_is_an_infinite_loss():
    x, var = torch.zeros(2), torch.tensor([inf, 1e-9]).requires_grad_()
    loss = F.gaussian_nll_loss(x, x, var, reduction="none")
    loss.sum().backward()
    assert loss.tolist() == [inf, pytest.approx(0.5 * math.log(1e-6))] and var.grad.isfinite().all()


# Which of several NaN ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_all_pools_take_the_last_of_several_nan(dtype):
    x = torch.ones(1, 4, 4, dtype=dtype)
    x[0, 0, 1], x[0, 1, 0], x[0, 2, 3] = nan, nan, nan
    want = [[[4, 3 + 4 * 0], [8, 11]]]
    want[0][0][1] = 2  # the first of equal numbers
    for found in (
        F.adaptive_max_pool2d(x, 2, return_indices=True)[1],
        F.max_pool2d(x, 2, return_indices=True)[1],
        F.fractional_max_pool2d(
            x, 2, output_size=2, return_indices=True, _random_samples=torch.zeros(1, 1, 2, dtype=dtype)
        )[1],
    ):
        assert found.tolist() == want
    rows = torch.full((1, 4), nan, dtype=dtype)
    assert F.adaptive_max_pool1d(rows, 2, return_indices=True)[1].tolist() == [[1, 3]]
    assert F.adaptive_max_pool1d(rows, 3, return_indices=True)[1].tolist() == [[1, 2, 3]]


# What `out=` and views accept -------------------------------------------------------------------------------------


def test_out_accepts_no_operands_that_are_refused_without_it():
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match="with a bool tensor is not supported"):
        torch.sub(x, True, out=torch.ones(2))
    for f in (lambda: torch.atan2(x, 0, out=torch.ones(2)), lambda: torch.ones(2).atan2_(0)):
        with pytest.raises(TypeError, match="must be Tensor, not int"):
            f()


def test_view_copy_copies_what_cannot_be_viewed():
    x = torch.arange(6.0).reshape(2, 3).t().requires_grad_()
    assert torch.view_copy(x, (6,)).tolist() == [0, 3, 1, 4, 2, 5]
    torch.view_copy(x, (2, 3)).sum().backward()
    assert (x.grad == 1).all() and torch.view_copy(x.detach(), torch.int32).shape == (3, 2)


# What all logits of a row have in common ---------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [1e3, 1e5, 1e6, -1e6, 1e30])
@pytest.mark.parametrize("shape", [(4, 5), (3, 40), (2, 3, 5), (70, 7)])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_what_logits_have_in_common_is_no_part_of_a_loss(offset, shape, smoothing):
    rng = np.random.default_rng(0)
    x = torch.tensor(rng.standard_normal(shape).astype("f") + np.float32(offset))
    target = torch.tensor(rng.integers(0, shape[1], (shape[0], *shape[2:])))
    found, wanted = x.clone().requires_grad_(), (x.double() - offset).requires_grad_()
    losses = [F.cross_entropy(y, target, label_smoothing=smoothing) for y in (found, wanted)]
    for loss in losses:
        loss.backward()
    assert torch.allclose(losses[0].double(), losses[1], rtol=1e-6, atol=1e-6)
    assert torch.allclose(found.grad.double(), wanted.grad, rtol=1e-5, atol=1e-7)


def test_logits_that_are_the_largest_numbers_are_alike():
    x = torch.full((1, 3), 3e38, requires_grad=True)
    loss = F.cross_entropy(x, torch.tensor([0]))
    loss.backward()
    assert loss.item() == pytest.approx(math.log(3))
    assert x.grad.tolist() == [pytest.approx([-2 / 3, 1 / 3, 1 / 3])]


@pytest.mark.parametrize("rows", [3, 600])
def test_the_same_of_logits_that_are_not_made(rows):
    rng = np.random.default_rng(0)
    x = torch.tensor(rng.standard_normal((rows, 8)).astype("f"))
    w, b = torch.tensor(rng.standard_normal((6, 8)).astype("f")), torch.full((6,), 2.0**17)
    target = torch.tensor(rng.integers(0, 6, rows))
    found, wanted = x.clone().requires_grad_(), (x @ w.T + b).double().requires_grad_()
    F.linear_cross_entropy(found, w, target, linear_bias=b).backward()
    F.cross_entropy(wanted, target).backward()
    assert torch.allclose(found.grad.double(), wanted.grad @ w.double(), rtol=1e-4, atol=1e-6)
