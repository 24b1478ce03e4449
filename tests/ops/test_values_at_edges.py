"""Operators at NaN, infinity, zeros of a size, and integers, where their neighbours' rules would give other values."""

import math

import numpy as np
import pytest

import rushlight as torch

F = torch.nn.functional
inf, nan = math.inf, math.nan


def values(t):
    return t.detach().double().numpy() if not t.dtype.is_complex else t.detach().numpy()


def same(found, want):
    np.testing.assert_allclose(values(found), want, rtol=1e-6)


# Reductions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("data", "dtype", "want"), [
    ([2, 3], torch.int32, 6), ([200, 3], torch.uint8, 88), ([100, 3], torch.int8, 44), ([2.5, 3.0], torch.int32, 6),
    ([2.5, 0.5], torch.bool, True), ([2, 3], torch.float16, 6),
])  # fmt: skip
def test_products_in_a_dtype_have_that_dtype(data, dtype, want):
    for found in (torch.prod(torch.tensor(data), dtype=dtype), torch.prod(torch.tensor(data), 0, dtype=dtype)):
        assert found.dtype == dtype
        assert found.item() == want


@pytest.mark.filterwarnings("ignore:var")
@pytest.mark.parametrize(("data", "correction", "want"), [([1.0], 1, [nan]), ([1.0], 3, [nan]), ([1.0, 2.0], 2, [inf, inf]),
                                                          ([1.0, 2.0], 3, [inf, inf])])  # fmt: skip
def test_a_variance_without_degrees_of_freedom_has_the_slope_of_a_constant_beyond_all_numbers(data, correction, want):
    x = torch.tensor(data, dtype=torch.float64)

    def f(x):
        return x.var(correction=correction)

    same(torch.func.grad(f)(x), want)
    same(torch.func.jvp(f, (x,), (torch.ones_like(x),))[1], want[0])
    same(torch.func.jacfwd(torch.func.grad(f))(x), np.zeros((len(data), len(data))))


def test_a_deviation_of_zero_has_a_tangent_of_zero():
    x = torch.ones(3, dtype=torch.float64)
    same(torch.func.jvp(torch.std, (x,), (torch.arange(3.0).double(),))[1], 0)
    same(torch.func.hessian(torch.std)(x), np.zeros((3, 3)))


def test_the_mean_of_no_complex_numbers_is_nan_in_both_parts():
    for found in (torch.zeros(0, dtype=torch.complex64).mean(), torch.zeros(0, 2, dtype=torch.complex128).mean(0)[1]):
        assert math.isnan(found.real.item()) and math.isnan(found.imag.item())


def test_a_gradient_that_is_no_number_goes_to_the_largest_elements_alone():
    x = torch.tensor([1.0, 3.0, 3.0], requires_grad=True)
    for largest in (x.max(), -(-x).min()):
        (g,) = torch.autograd.grad(largest, x, torch.tensor(nan))
        same(g, [0, nan, nan])


def test_nan_is_left_out_before_a_sum_turns_to_integers():
    assert torch.nansum(torch.tensor([2.5, nan]), dtype=torch.int32).item() == 2


def test_distances_of_order_0_of_what_is_no_number():
    x = torch.tensor([[1.0, nan], [2.0, 3.0], [inf, 3.0], [inf, 3.0]])
    same(F.pdist(x, 0), [nan, nan, nan, 1, 1, nan])
    same(torch.cdist(x, x, 0)[1], [nan, 0, 1, 1])


def test_trapezoids_of_small_integers_and_halves_do_not_overflow():
    for dtype, data in ((torch.uint8, [200, 200]), (torch.int8, [100, 100]), (torch.float16, [6e4, 6e4])):
        y = torch.tensor(data, dtype=dtype)
        for found in (torch.trapezoid(y), torch.cumulative_trapezoid(y)[0]):
            assert found.dtype == (dtype if dtype is torch.float16 else torch.float32)
            assert found.item() == data[0]


def test_trapezoids_of_large_integers_are_exact():
    low, high = -(2**31), 2**31 - 1
    y = torch.tensor([0, low, high, low, high, low, high, 0])
    assert torch.trapezoid(y).item() == -3.0 and torch.trapezoid(y).dtype == torch.float32
    assert torch.cumulative_trapezoid(y)[-1].item() == -3.0


def test_trapezoids_of_halves_at_places_of_more_bits():
    y, x = torch.ones(3, dtype=torch.bfloat16), torch.tensor([0.0, 1.0, 3.0])
    assert torch.trapezoid(y, x).dtype == torch.cumulative_trapezoid(y, x).dtype == torch.float32
    assert torch.trapezoid(y, x.half()).dtype == torch.float32
    assert torch.trapezoid(y, x.bfloat16()).dtype == torch.bfloat16
    assert torch.cumulative_trapezoid(torch.ones(0, dtype=torch.int16)).dtype == torch.float32


def test_elements_among_others_of_bfloat16_with_nan():
    x = torch.tensor([3, nan, -1, 1, 2, -inf], dtype=torch.bfloat16)
    assert torch.isin(x, x).tolist() == [True, False, True, True, True, True]
    many = [
        0.0,
        1,
        -1,
        inf,
        -inf,
        nan,
        0.5,
        -0.5,
        2,
        -2.5,
        3,
        1e-3,
        700,
        -700,
        6e4,
        -6e4,
        1.5,
        2.5,
        0.25,
    ]  # will be sorted
    found = torch.isin(torch.tensor(many, dtype=torch.bfloat16), torch.tensor(many[::-1], dtype=torch.bfloat16))
    assert found.tolist() == [v == v for v in many]
    assert torch.isin(x, torch.tensor([1, 2])).tolist() == [False, False, False, True, True, False]
    assert torch.isin(x, 3).tolist() == [True, False, False, False, False, False]


def test_least_common_multiples_are_not_negative():
    least = torch.tensor([-(2**31), 2**31 - 1], dtype=torch.int32)
    assert torch.lcm(least, torch.tensor([2, 2], dtype=torch.int32)).tolist()[1] == 2


def test_unique_elements_of_bfloat16_with_nan_are_sorted():
    x = torch.tensor([3, nan, -1, 1, 2, 1], dtype=torch.bfloat16)
    found, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
    same(found, [-1, 1, 2, 3, nan])
    assert found.dtype == torch.bfloat16
    assert (inverse.tolist(), counts.tolist()) == ([3, 4, 0, 1, 2, 1], [1, 2, 1, 1, 1])


# Pairs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fn", [torch.xlogy, torch.special.xlog1py])
def test_a_number_does_not_widen_a_tensor(fn):
    x = torch.tensor([1.0, 2.0])
    assert fn(x, 2).dtype == fn(x, 2.0).dtype == fn(2, x).dtype == torch.float32


def test_gradients_of_an_angle_beside_small_integers():
    b = torch.tensor([3.0], dtype=torch.float64, requires_grad=True)
    torch.atan2(torch.tensor([100], dtype=torch.int8), b).backward()
    assert b.grad.item() == pytest.approx(-100 / 10009)


@pytest.mark.parametrize(("x", "n", "want"), [
    (1e-3, 128, 1e-3 * 2.0**128), (1e-30, 140, 1e-30 * 2.0**140), (0.0, 3000, 0), (inf, -3000, inf), (3.0, -1060, 3 * 2.0**-1060),
])  # fmt: skip
def test_ldexp_forms_no_power(x, n, want):
    for exponent in (torch.tensor([n]), torch.tensor([n], dtype=torch.int16)):
        assert torch.ldexp(torch.tensor([x], dtype=torch.float64), exponent).item() == want
    t = torch.tensor([x], dtype=torch.float64, requires_grad=True)
    (t * 1).ldexp_(torch.tensor([n])).backward()
    assert t.grad.item() == (2.0**n if n < 1024 else inf)


def test_ldexp_keeps_dtypes():
    three = torch.tensor([3])
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.complex64):
        assert torch.ldexp(torch.ones(1, dtype=dtype), three).dtype == dtype
    assert torch.ldexp(torch.tensor([1]), three).tolist() == [8.0]
    assert torch.ldexp(torch.tensor([1.0]), torch.tensor([0.5])).item() == pytest.approx(2**0.5)


@pytest.mark.parametrize("low", [torch.bfloat16, torch.float16])
def test_ldexp_of_complex_numbers_has_the_precision_of_their_parts(low):
    x, n = torch.tensor([0.5 + 0.25j]), torch.tensor([0.75], dtype=low)
    for found in (torch.ldexp(x, n), x.clone().ldexp_(n)):
        np.testing.assert_allclose(values(found), np.array([0.5 + 0.25j]) * 2**0.75, rtol=1e-6)


# Complex numbers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_log1p_keeps_the_digits_of_small_numbers(dtype):
    z = torch.tensor([1e-19 + 1e-19j, 1e-5 + 1e-5j, -2 + 1e-20j, 1j, -1 + 0j, 1e20 + 1e20j], dtype=dtype)
    want = [1e-19, 1e-5 - 2e-15 / 3, 5e-41, math.log(2) / 2, -inf, math.log(2) / 2 + math.log(1e20)]
    np.testing.assert_allclose(
        torch.log1p(z).real.double().numpy(), want, rtol=1e-5 if dtype is torch.complex64 else 1e-12
    )
    assert torch.log1p(z).dtype == dtype
    assert torch.log1p(z.clone()).log1p_().dtype == dtype


def test_logarithms_of_sums_of_complex_infinities_and_nan():
    first = torch.logcumsumexp(torch.tensor([complex(nan, 0), 1 + 1j]), 0)[0]
    assert first.real.isnan() and first.imag.isnan()
    low = torch.tensor([complex(-inf, 0)])
    assert torch.logaddexp(low, low).real.item() == -inf
    assert torch.exp2(torch.tensor([complex(inf, 1)])).imag.item() == inf


# Layers -----------------------------------------------------------------------------------------------------------


def test_grid_points_that_are_no_numbers():
    image = torch.arange(4.0).reshape(1, 1, 2, 2)
    grid = torch.tensor([nan, 0, inf, 0, -inf, 0, 0, nan]).reshape(1, 1, 4, 2).requires_grad_()
    found = F.grid_sample(image, grid, mode="nearest", align_corners=False)
    assert found.flatten().tolist() == [0, 0, 0, 0]
    found.sum().backward()
    assert grid.grad.flatten().tolist() == [0] * 8
    for mode, want in (("nearest", [0, 1, 0, 0]), ("bilinear", [1, 2, 1, 0.5])):
        found = F.grid_sample(image, grid, mode=mode, padding_mode="border", align_corners=False)
        assert found.flatten().tolist() == want


def test_pixels_outside_of_the_view_do_not_count_even_if_they_are_nan():
    image = torch.tensor([nan, 1, 2, inf]).reshape(1, 1, 2, 2)
    grid = torch.tensor([-2.0, 0, 0.5, 0.5]).reshape(1, 1, 2, 2)
    assert F.grid_sample(image, grid, align_corners=False).flatten().tolist() == [0, inf]


@pytest.mark.parametrize("mode", ["linear", "trilinear", "area"])
def test_integers_are_not_resized_by_means(mode):
    shape = {"linear": (1, 1, 8), "area": (1, 1, 8), "trilinear": (1, 1, 2, 2, 2)}[mode]
    with pytest.raises(NotImplementedError, match="interpolate"):
        F.interpolate(torch.ones(shape, dtype=torch.uint8), size=3, mode=mode)


def test_bytes_are_resized_to_bytes():
    grey = torch.full((1, 1, 4, 4), 200, dtype=torch.uint8)
    for mode in ("bilinear", "bicubic"):
        for antialias in (False, True):
            found = F.interpolate(grey, size=(3, 7), mode=mode, antialias=antialias)
            assert found.dtype == torch.uint8
            assert found.unique().tolist() == [200]


def test_halves_are_resized_with_one_rounding():
    x = torch.arange(16.0).reshape(1, 1, 4, 4)
    want = F.interpolate(x, size=3, mode="bilinear").half()
    assert torch.equal(F.interpolate(x.half(), size=3, mode="bilinear"), want)


def test_attention_without_features_takes_the_mean():
    value = torch.arange(8.0).reshape(1, 2, 4, 1)
    found = F.scaled_dot_product_attention(torch.ones(1, 2, 3, 0), torch.ones(1, 2, 4, 0), value)
    assert found[..., 0].tolist() == [[[1.5] * 3, [5.5] * 3]]


def test_ctc_loss_of_no_steps_has_no_gradient():
    scores = torch.log_softmax(torch.arange(12.0).reshape(2, 2, 3), -1).requires_grad_()
    loss = F.ctc_loss(scores, torch.tensor([[1], [2]]), torch.tensor([0, 2]), torch.tensor([1, 1]), reduction="none")
    loss.sum().backward()
    assert loss[0].item() == inf
    assert scores.grad[:, 0].tolist() == [[0] * 3] * 2
    assert scores.grad[:, 1].abs().min() > 0


@pytest.mark.parametrize(("options", "last"), [
    ({"mode": "max"}, [9, 10, 11]), ({"mode": "sum", "padding_idx": 0}, [18, 21, 24]),
    ({"mode": "mean", "padding_idx": 3}, [4.5, 5.5, 6.5]), ({"mode": "sum"}, [6, 7, 8]), ({"mode": "mean"}, [6, 7, 8]),
])  # fmt: skip
def test_where_the_last_bag_ends(options, last):
    table, indices, offsets = torch.arange(12.0).reshape(4, 3), torch.tensor([0, 1, 2, 3, 1]), torch.tensor([0, 2, 3])
    assert F.embedding_bag(indices, table, offsets, include_last_offset=True, **options)[1].tolist() == last


# Linear algebra ---------------------------------------------------------------------------------------------------


def test_info_is_the_first_zero_pivot():
    A = torch.stack(
        [torch.eye(3), torch.zeros(3, 3), torch.diag(torch.tensor([1.0, 0, 1])), torch.diag(torch.tensor([1.0, 1, 0]))]
    )
    assert torch.linalg.inv_ex(A).info.tolist() == [0, 1, 2, 3]
    assert torch.linalg.solve_ex(A, torch.ones(4, 3, 1)).info.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("p", ["fro", "nuc", 1, -1, inf, -inf, None])
def test_singular_matrices_have_an_infinite_condition(p):
    A = torch.stack([torch.zeros(2, 2), torch.eye(2), torch.tensor([[1.0, 0], [0, 0]])])
    found = torch.linalg.cond(A, p).tolist()
    assert found[2] == inf
    assert found[1] == pytest.approx({"fro": 2, "nuc": 4}.get(p, 1))
    if p is not None:
        assert found[0] == inf
    assert torch.linalg.cond(torch.zeros(0, 0), p).item() == 0


@pytest.mark.parametrize(("driver", "rcond", "want", "rank"), [
    (None, 0.5, [2, 1], 2), ("gelsy", 2.0, [2, 0], 1), ("gelsd", 0.5, [2, 0], 1), ("gelsd", 2.0, [2, 1], 2),
    ("gelss", 2.0, [0, 0], 0), ("gelss", 0.4, [2, 1], 2), ("gelsd", -1.0, [2, 1], 2), ("gels", 2.0, [2, 1], None),
])  # fmt: skip
def test_what_drivers_of_least_squares_drop(driver, rcond, want, rank):
    A = torch.tensor([[2.0, 0], [0, 1]])
    found = torch.linalg.lstsq(A, torch.tensor([[4.0], [1.0]]), rcond=rcond, driver=driver)
    assert found.solution[:, 0].tolist() == pytest.approx(want, abs=1e-6)
    assert rank is None or found.rank.item() == rank


@pytest.mark.parametrize(("dtype", "step"), [(torch.float16, 1.0), (torch.bfloat16, 8.0), (torch.float32, 0.01)])
def test_gradients_of_small_distances_far_from_zero(dtype, step):
    x = torch.tensor([[1000.1, 1500.3], [1000.1 + step, 1500.3]], dtype=dtype, requires_grad=True)
    y = torch.tensor(
        [[1000.1 + 7 * step, 1500.3], [1000.1 + 3 * step, 1500.3], [1000.1 + 4 * step, 1500.3]], dtype=dtype
    )
    torch.cdist(x, y).sum().backward()
    np.testing.assert_allclose(values(x.grad), [[-3, 0], [-3, 0]], atol=1e-4)


# Derivatives of any order ---------------------------------------------------------------------------------------------


def derivatives(fn, x, order):
    """The derivatives of fn at x, element by element, up to that order."""
    x, found = torch.tensor(x, dtype=torch.float64, requires_grad=True), []
    y = fn(x)
    for _ in range(order):
        (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        found.append(y.tolist())
    return found


def test_derivatives_of_sinc_near_zero_are_those_of_its_series():
    at = [0.0, 1e-30, -1e-9, 1e-4]
    found = derivatives(torch.sinc, at, 4)
    second = -(math.pi**2) / 3
    np.testing.assert_allclose(found[0], [second * x for x in at], rtol=1e-6)
    np.testing.assert_allclose(found[1], [second] * 4, rtol=1e-6)
    np.testing.assert_allclose(found[2], [math.pi**4 / 5 * x for x in at], rtol=1e-6)
    np.testing.assert_allclose(found[3], [math.pi**4 / 5] * 4, rtol=1e-6)


@pytest.mark.parametrize("x", [0.4, -1.7, 2.3, 11.0])
def test_derivatives_of_sinc_agree_with_finite_differences(x):
    fn, step = torch.sinc, 1e-5
    here, above, below = (derivatives(fn, [x + d], 4) for d in (0, step, -step))
    for order in range(3):
        slope = (above[order][0] - below[order][0]) / (2 * step)
        assert here[order + 1][0] == pytest.approx(slope, rel=1e-6, abs=1e-6)


def test_derivatives_of_erfcx_do_not_cancel_far_out():
    x = np.array([30.0, 1e4, 1e30])
    found = derivatives(torch.special.erfcx, x, 3)
    for order, times in ((1, -1), (2, 2), (3, -6)):  # erfcx is about 1 / (x sqrt(pi)) there
        want = times / (math.sqrt(math.pi) * x ** (order + 1))
        np.testing.assert_allclose(found[order - 1], want, rtol=1e-2)


@pytest.mark.parametrize("x", [-3.0, -0.5, 0.0, 1.5, 1.9999, 2.0001, 5.0])
def test_derivatives_of_erfcx_agree_with_their_differential_equation(x):
    value = torch.special.erfcx(torch.tensor(x, dtype=torch.float64)).item()
    first, second, third = (found[0] for found in derivatives(torch.special.erfcx, [x], 3))
    assert first == pytest.approx(2 * x * value - 2 / math.sqrt(math.pi), rel=1e-12, abs=1e-13)
    assert second == pytest.approx(2 * x * first + 2 * value, rel=1e-11, abs=1e-12)
    assert third == pytest.approx(2 * x * second + 4 * first, rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("scaled", [False, True])
def test_derivatives_of_bessel_functions_do_not_cancel_near_zero(scaled):
    x = np.array([1e-30, -1e-20, 1e-10, -1e-6])
    zeroth, first = (torch.special.i0e, torch.special.i1e) if scaled else (torch.i0, torch.special.i1)
    found = derivatives(first, x, 3)
    want = (
        [np.full(4, 0.5), -np.sign(x), np.full(4, 1.875)] if scaled else [np.full(4, 0.5), 0.375 * x, np.full(4, 0.375)]
    )
    for order in range(3):
        np.testing.assert_allclose(found[order], want[order], rtol=1e-5)
    np.testing.assert_allclose(derivatives(zeroth, x, 3)[2], -2.5 * np.sign(x) if scaled else 0.375 * x, rtol=1e-5)


@pytest.mark.parametrize("x", [-20.0, -8.001, -3.0, 0.5, 7.999, 8.001, 30.0])
def test_derivatives_of_bessel_functions_agree_with_their_differential_equation(x):
    value = torch.special.i1(torch.tensor(x, dtype=torch.float64)).item()
    first, second, third = (found[0] for found in derivatives(torch.special.i1, [x], 3))
    assert second == pytest.approx((1 + 1 / x**2) * value - first / x, rel=1e-11)
    assert third == pytest.approx((1 + 2 / x**2) * first - 2 / x**3 * value - second / x, rel=1e-11)
    scaled = torch.special.i1e(torch.tensor(x, dtype=torch.float64)).item()
    plain = math.exp(-abs(x))
    one, two, _ = (found[0] for found in derivatives(torch.special.i1e, [x], 3))
    assert one == pytest.approx(first * plain - np.sign(x) * scaled, rel=1e-9, abs=1e-15)
    assert two == pytest.approx(second * plain - 2 * np.sign(x) * first * plain + scaled, rel=1e-8, abs=1e-14)


def test_the_tangent_of_a_power_is_zero_where_its_gradient_is():
    zero, ones = torch.tensor([0j]), torch.tensor([1 + 0j])

    def tangent(fn):
        return torch.func.jvp(fn, (zero,), (ones,))[1].tolist()

    assert tangent(lambda x: torch.float_power(x, torch.tensor([0.0]))) == [0]
    assert tangent(lambda x: x ** torch.tensor([0j])) == [0]
    assert torch.func.jvp(lambda y: zero**y, (torch.tensor([0.0]),), (torch.tensor([1.0]),))[1].tolist() == [0]
    x, y = torch.tensor([1 + 2j]), torch.tensor([0.5 - 1j])
    found = torch.func.jvp(torch.pow, (x, y), (ones, 2j * ones))[1]
    torch.testing.assert_close(found, y * x ** (y - 1) + 2j * x**y * x.log())


# Integers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32])
@pytest.mark.parametrize("fn", [torch.nn.functional.cosine_similarity, torch.hypot, torch.atan2, torch.dist])
def test_slopes_beside_small_integers_do_not_wrap_around(fn, dtype):
    whole = torch.tensor([[200, 250, 100]])
    found = []
    for other in (whole.to(dtype), whole.double()):
        x = torch.tensor([[0.5, 2.0, 3.0]], dtype=torch.float64, requires_grad=True)
        (slope,) = torch.autograd.grad(fn(x, other).sum(), x, create_graph=True)
        found.append((slope, *torch.autograd.grad(slope.square().sum(), x)))
    for one, exact in zip(*found, strict=True):
        np.testing.assert_allclose(one.detach(), exact.detach(), rtol=1e-5)


def test_logits_of_bytes_are_refused_as_in_pytorch():
    target = torch.tensor([0.5, 0.25], requires_grad=True)
    with pytest.raises(NotImplementedError, match="'Byte'"):
        torch.nn.functional.binary_cross_entropy_with_logits(torch.tensor([200, 100], dtype=torch.uint8), target)


def test_gradients_of_prelu_are_of_the_side_on_which_its_input_is():
    x = torch.tensor([[1.0], [-1.0], [math.nan]], dtype=torch.float64, requires_grad=True)
    for weight in (0.5, math.inf, math.nan):
        w = torch.tensor([weight], dtype=torch.float64, requires_grad=True)
        slopes = torch.autograd.grad(torch.nn.functional.prelu(x, w).sum(), x)[0].ravel().tolist()
        np.testing.assert_equal(slopes, [1.0, weight, weight])
    above = torch.tensor([[1.0], [2.0]], dtype=torch.float64)
    (of_weight,) = torch.autograd.grad(torch.nn.functional.prelu(above, w), w, torch.full((2, 1), math.inf).double())
    assert of_weight.tolist() == [0.0]
    number = torch.tensor(-2.0, requires_grad=True)
    weight = torch.tensor(0.25, requires_grad=True)
    assert torch.autograd.grad(torch.nn.functional.prelu(number, weight), [number, weight]) == (0.25, -2.0)


@pytest.mark.parametrize(("low", "high", "want"), [(-1, 3, [3, 3, 3]), (3, -1, [3, 5, 100]), (None, -1, [0, 5, 100]),
                                                   (-1, None, [255, 255, 255])])  # fmt: skip
def test_bounds_beyond_bytes_wrap_around_in_place_as_well(low, high, want):
    x = torch.tensor([0, 5, 100], dtype=torch.uint8)
    assert x.clamp(low, high).tolist() == want
    assert x.clone().clamp_(low, high).tolist() == want


def test_a_bound_that_no_byte_has_is_refused_in_place_as_well():
    for name in ("clamp", "clamp_"):
        with pytest.raises(RuntimeError, match="cannot be converted to type uint8 without overflow"):
            getattr(torch.tensor([0, 5], dtype=torch.uint8), name)(max=300)


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod"])
def test_no_integers_are_divided_by_zero(name):
    none, zero = torch.zeros(0, dtype=torch.int32), torch.tensor([0], dtype=torch.int32)
    assert getattr(torch, name)(none, zero).shape == (0,)
    assert getattr(none.clone(), f"{name}_")(zero).shape == (0,)
    assert getattr(torch, name)(torch.zeros(0, 2, dtype=torch.int64), torch.tensor([0, 2])).shape == (0, 2)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        getattr(torch, name)(zero, zero)


def test_the_pole_of_zeta_is_where_its_exponent_is_one():
    found = torch.special.zeta(
        torch.tensor([1.0, 1.0, nan, 2.0, 0.5, 2.0]), torch.tensor([nan, -2.5, 1.0, nan, 1.0, inf])
    )
    same(found, [inf, inf, nan, nan, nan, 0])
    same(
        torch.special.zeta(torch.tensor([nan, 2.0, 0.5, 1.5]), torch.tensor([-1.0, -2.0, -1.0, -0.5])),
        [inf, inf, nan, nan],
    )
    assert torch.func.grad(torch.digamma)(torch.tensor(inf)).item() == 0


def test_the_tangent_of_a_quotient_is_infinite_where_one_of_its_parts_is():
    x = torch.tensor([2.0, inf, 1.0, 3.0], dtype=torch.float64)
    y = torch.tensor([0.0, 2.0, inf, 2.0], dtype=torch.float64)
    one = torch.ones_like(x)
    same(torch.func.jvp(torch.div, (x, y), (one, one))[1], [-inf, -inf, 0, -0.25])
    same(torch.func.jvp(lambda x: x / y, (x,), (one,))[1], [inf, 0.5, 0, 0.5])
    same(torch.func.jvp(lambda y: x / y, (y,), (one,))[1], [-inf, -inf, 0, -0.75])
    same(torch.func.jvp(lambda y: torch.func.jvp(lambda y: x / y, (y,), (one,))[1], (y,), (one,))[1][3:], [0.75])


@pytest.mark.parametrize("low", [torch.bfloat16, torch.float16, torch.int32])
@pytest.mark.parametrize("fn", [torch.xlogy, torch.special.xlog1py, lambda x, y: torch.pow(y, x), torch.atan2])
def test_slopes_of_one_operand_have_the_precision_of_the_result(fn, low):
    x, y = torch.tensor([0.75, 3.0], dtype=torch.float64), torch.tensor([3, 7], dtype=low)
    found, want = (torch.func.grad(lambda x, y: fn(x, y).sum())(x, b) for b in (y, y.double()))
    np.testing.assert_allclose(values(found), values(want), rtol=1e-14)


@pytest.mark.filterwarnings("ignore:reduction")
@pytest.mark.parametrize("log_target", [False, True])
def test_slopes_of_a_divergence_have_the_precision_of_the_result(log_target):
    x, y = torch.tensor([0.75, 3.0], dtype=torch.float64), torch.tensor([0.3, 0.7], dtype=torch.bfloat16)
    found, want = (torch.func.grad(F.kl_div)(x, b, log_target=log_target) for b in (y, y.double()))
    np.testing.assert_allclose(values(found), values(want), rtol=1e-14)


def test_the_tangent_of_a_sign_is_zero_at_zero():
    x, t = torch.tensor([0j, 3 + 4j]), torch.tensor([1 + 1j, 1 + 0j])
    found = torch.func.jvp(torch.sgn, (x,), (t,))[1]
    np.testing.assert_allclose(values(found), [0, 0.128 - 0.096j], rtol=1e-5)


def test_the_slope_of_xlog1py_by_bytes():
    x, y = torch.tensor([0.0, 2.0]), torch.tensor([1, 200], dtype=torch.uint8)
    same(torch.func.grad(lambda x: torch.special.xlog1py(x, y).sum())(x), np.log1p([1, 200]))


def test_the_slope_of_an_absolute_error_that_is_no_number_is_zero_as_that_of_abs():
    for reduction, share in (("mean", 0.5), ("sum", 1.0), ("none", 1.0)):
        x = torch.tensor([nan, 3.0], requires_grad=True)
        for create_graph in (False, True):
            (found,) = torch.autograd.grad(
                F.l1_loss(x, torch.zeros(2), reduction=reduction).sum(), x, create_graph=create_graph
            )
            assert found.tolist() == [0.0, share]


@pytest.mark.parametrize("fn", [torch.xlogy, torch.special.xlog1py])
def test_second_slopes_of_products_with_logarithms_stay_in_float16(fn):
    x, y = torch.tensor([2.0], dtype=torch.float16), torch.tensor([200.0], dtype=torch.float16, requires_grad=True)
    (slope,) = torch.autograd.grad(fn(x, y), y, torch.tensor([400.0], dtype=torch.float16), create_graph=True)
    (found,) = torch.autograd.grad(slope, y, torch.tensor([400.0], dtype=torch.float16))
    assert found.item() == pytest.approx(-2 * 400 * 400 / 200**2, rel=2e-2)


@pytest.mark.parametrize("fn", [torch.xlogy, torch.special.xlog1py])
def test_second_slopes_of_products_with_logarithms_are_divided_before_they_are_summed(fn):
    x = torch.ones(10, 1, dtype=torch.float16, requires_grad=True)
    y = torch.full((1, 3), 4.0, dtype=torch.float16, requires_grad=True)
    (slope,) = torch.autograd.grad(fn(x, y), x, torch.full((10, 3), 150.0, dtype=torch.float16), create_graph=True)
    (found,) = torch.autograd.grad(slope, y, torch.full((10, 1), 150.0, dtype=torch.float16))
    assert found.isfinite().all()  # the sum of the products alone is beyond float16


def test_angles_of_running_sums_are_about_the_last_of_equal_size():
    found = torch.logcumsumexp(torch.tensor([0, 4j], dtype=torch.complex128), 0)[1]
    assert found.imag.item() == pytest.approx(4 + np.angle(1 + np.exp(-4j)))
    assert torch.logcumsumexp(torch.tensor([4j, 0], dtype=torch.complex128), 0)[1].imag.item() == pytest.approx(
        found.imag.item() - 2 * np.pi
    )


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_sums_of_two_integers_are_exact_under_a_trapezoid(dtype):
    y = torch.tensor([-(2**31), 2**31 - 1, 2 - 2**31], dtype=dtype)
    assert torch.trapezoid(y).item() == 0
    assert torch.cumulative_trapezoid(y).tolist() == [-0.5, 0]


@pytest.mark.parametrize(("padding", "z", "slope"), [
    ("reflection", 2.5, 0), ("reflection", 2.4, -0.375), ("border", 0.5, 0), ("border", 0.4, 0.375), ("border", -0.5, 0),
])  # fmt: skip
def test_a_grid_point_on_the_border_itself_has_no_slope(padding, z, slope):
    volume = torch.tensor([0.125, 0.5], dtype=torch.float64).reshape(1, 1, 2, 1, 1)
    point = torch.tensor([0.0, 0.0, z], dtype=torch.float64).reshape(1, 1, 1, 1, 3).requires_grad_()
    F.grid_sample(volume, point, padding_mode=padding, align_corners=False).sum().backward()
    assert point.grad[..., 2].item() == pytest.approx(slope)


@pytest.mark.parametrize(("slope", "at_zero"), [(1.0, 0.0), (np.inf, np.nan), (np.nan, np.nan)])
@pytest.mark.parametrize("create", [False, True])
def test_a_norm_at_zero_hides_no_gradient_that_is_no_number(slope, at_zero, create):
    x = torch.tensor([[0.0, 0.0], [3.0, 4.0]], dtype=torch.float64).requires_grad_()
    norm = torch.linalg.vector_norm(x, dim=1)
    (found,) = torch.autograd.grad(norm, x, torch.tensor([slope, 5.0], dtype=torch.float64), create_graph=create)
    np.testing.assert_array_equal(found.detach().numpy(), [[at_zero, at_zero], [3.0, 4.0]])


@pytest.mark.parametrize("exponent", [2, 255])
def test_the_slope_of_zeta_by_a_small_integer_is_that_by_a_number(exponent):
    slopes = []
    for x in (torch.tensor(exponent, dtype=torch.uint8), torch.tensor(float(exponent), dtype=torch.float64), exponent):
        q = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
        slopes.append(torch.autograd.grad(torch.special.zeta(x, q).sum(), q)[0])
    for each in slopes[1:]:
        np.testing.assert_array_equal(slopes[0].numpy(), each.numpy())
    assert slopes[0][0] == pytest.approx(-exponent, rel=0.3 if exponent == 2 else 1e-12)


@pytest.mark.parametrize(("dtype", "far"), [(torch.float64, 1e30), (torch.float32, 20.0), (torch.float16, 6.0)])
def test_slopes_of_log_ndtr_far_from_0_are_0(dtype, far):
    x = torch.tensor([far, float("inf"), 1.0], dtype=dtype, requires_grad=True)
    y, slopes = torch.special.log_ndtr(x), []
    for _ in range(3):
        (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        slopes.append(y.detach().float().numpy())
    assert all((each[:2] == 0).all() and each[2] != 0 for each in slopes), slopes
    nan = torch.tensor([float("nan")], dtype=dtype, requires_grad=True)
    assert torch.autograd.grad(torch.special.log_ndtr(nan), nan)[0].isnan().all()


def test_the_second_derivative_of_half_a_norm_stays_within_float16():
    found = []
    for dtype in (torch.float16, torch.float64):
        x = torch.linspace(-8, 9, 24, dtype=dtype).requires_grad_()
        (g,) = torch.autograd.grad(torch.norm(x, 0.5), x, create_graph=True)
        found.append(torch.autograd.grad((g * torch.arange(1.0, 25.0, dtype=dtype)).sum(), x)[0].double().numpy())
    np.testing.assert_allclose(found[0], found[1], rtol=0.05, atol=0.05 * float(np.abs(found[1]).max()))


# Constants --------------------------------------------------------------------------------------------------------

DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(8, 257), (3, 100_003)])
@pytest.mark.parametrize("value", [0.1, -7.3, 1e3])
def test_a_constant_has_no_variance_though_its_mean_is_rounded(dtype, shape, value):
    x = torch.full(shape, value, dtype=dtype)
    for found in (x.var(1), x.std(1), x.var(), torch.var_mean(x, 1)[0], torch.std_mean(x.t(), 0)[0]):
        same(found, 0)
    beside = x.clone()
    beside[0, ::2] = 2 * value
    assert (beside.var(1) != 0).tolist() == [True, *[False] * (len(x) - 1)]


def test_deviations_beside_a_large_mean_have_exact_slopes():
    x = np.full(231, np.float32(1e6 + 0.7))
    x[5] = np.nextafter(x[5], np.float32(2e6))
    t, exact = torch.tensor(x).requires_grad_(), torch.tensor(x.astype(np.float64)).requires_grad_()
    for given in (t, exact):
        given.std().backward()
    np.testing.assert_allclose(t.grad.numpy(), exact.grad.numpy(), rtol=1e-5)
    constant = torch.full((3, 7, 11), 1e6 + 0.7).requires_grad_()
    constant.var(1).sum().backward()
    same(constant.grad, 0)
    same(torch.full((5,), 1e20).var(), 0)  # and no warning of an overflow


def test_a_constant_has_a_deviation_without_slope():
    x = torch.full((4, 257), 0.1).requires_grad_()
    x.std(1).sum().backward()
    same(x.grad, 0)


# `out=` -----------------------------------------------------------------------------------------------------------


def test_out_of_another_size_lies_in_memory_as_the_result_would():
    x = torch.arange(6.0).reshape(2, 3)
    for f in (
        lambda **to: torch.exp(x.t(), **to),
        lambda **to: torch.add(x.t(), 1, **to),
        lambda **to: torch.mm(x.t(), x, **to),
    ):
        out = torch.empty(0)
        assert f(out=out) is out and out.stride() == f().stride() and out.equal(f())


@pytest.mark.parametrize("make", [
    lambda out: torch.ones(3, out=out), lambda out: torch.linspace(0, 1, 3, out=out), lambda out: torch.randn(3, out=out),
])  # fmt: skip
def test_what_is_made_from_sizes_resizes_out_without_a_warning(make):
    assert make(torch.ones(2)).shape == (3,)  # warnings are errors here


def test_slice_scatter_with_out():
    x, out = torch.ones(4, 3), torch.empty(0)
    assert torch.slice_scatter(x, torch.zeros(2, 3), 0, 1, 3, out=out) is out
    same(out.sum(1), [3, 0, 0, 3])
