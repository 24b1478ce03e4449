"""Python's numbers beside float16 and bfloat16 tensors: products, quotients, their gradients, rounded division; how wider ones become 16 bits."""

import pytest

import rushlight as torch

HALF = [torch.float16, torch.bfloat16]


def half(*values, dtype=torch.float16, grad=False):
    return torch.tensor(values, dtype=dtype, requires_grad=grad)


@pytest.mark.parametrize("number", [1e6, 1e-8, 100001, 0.3, torch.tensor(1e-8, dtype=torch.float64)])
@pytest.mark.parametrize("dtype", HALF)
def test_products_and_quotients_take_the_number_as_it_is(number, dtype):
    x = half(1000.0, -0.3, 6.0, dtype=dtype)
    wide = x.double()
    for found, want in ((x * number, wide * number), (x / number, wide / number), (number * x, wide * number),
                        (x.clone().mul_(number), wide * number), (x.clone().div_(number), wide / number)):  # fmt: skip
        assert found.dtype == dtype
        assert torch.equal(found, want.float().to(dtype))


def test_a_number_over_a_half_tensor():
    assert (1e8 / half(60000.0)).item() == half(1e8 / 60000).item()


@pytest.mark.parametrize("dtype", HALF)
def test_their_gradients_take_it_as_it_is(dtype):
    g = half(1000.0, dtype=dtype)
    for fn in (lambda x: x * 1e-8, lambda x: x / 1e8):
        x = half(1.0, dtype=dtype, grad=True)
        fn(x).backward(g)
        assert x.grad.item() == (g.float() * 1e-8).to(dtype).item() != 0


def test_other_gradients_that_a_number_scales():
    x, g = half(1.0, grad=True), half(1000.0)
    for fn in (lambda: torch.add(half(1.0), x, alpha=1e-8), lambda: torch.lerp(half(1.0), x, 1e-8)):
        x.grad = None
        fn().backward(g)
        assert x.grad.item() == half(1e-5).item()


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("mode", ["floor", "trunc"])
def test_rounded_quotients_take_it_as_it_is(dtype, mode):
    assert torch.div(half(0.5, dtype=dtype), 0.11, rounding_mode=mode).item() == 4
    assert (half(60.0, dtype=dtype) // 0.0011).item() == pytest.approx(54545, rel=0.004)


def test_a_weight_beyond_the_dtype():
    x = half(1.0)
    assert torch.lerp(x, x, 1e5).item() == 1


def test_renorm_of_large_elements():
    x = half(6e4, -6e4, 1.0).reshape(1, 3)
    assert torch.renorm(x, 2, 0, 1.0).tolist() == [pytest.approx([0.5**0.5, -(0.5**0.5), 1.18e-5], rel=0.01)]


@pytest.mark.parametrize("rounding", ["floor", "trunc"])
def test_rounded_division_of_a_tensor_without_dimensions_keeps_its_dtype(rounding):
    x = torch.tensor(5.0, dtype=torch.float16)
    for found in (
        x // 2.0,
        torch.floor_divide(x, 2.0),
        torch.div(x, 2.0, rounding_mode=rounding),
        torch.div(x, x, rounding_mode=rounding),
    ):
        assert found.dtype == torch.float16
    assert (x // torch.tensor(2.0, dtype=torch.bfloat16)).dtype == torch.float32


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("exponent", [0.5, -0.5, 2.5, 7, 0.3, 3, -2])
def test_powers_are_those_of_float32_rounded_once(dtype, exponent):
    every = torch.arange(32768).to(torch.int16).view(dtype)  # from 0 on, and NaN
    near = 2.0 ** (-10 if dtype is torch.float16 else -7)
    held = exponent if dtype is torch.bfloat16 else torch.tensor(exponent, dtype=dtype).item()  # as the dtype has it
    torch.testing.assert_close(every**exponent, (every.float() ** held).to(dtype), rtol=near, atol=6e-8, equal_nan=True)


def test_roots_of_minus_infinity_are_those_of_pytorch():
    below = [-float("inf"), -0.0]
    half, other = (torch.tensor(below, dtype=dtype) ** 0.5 for dtype in (torch.float16, torch.bfloat16))
    assert half.tolist() == [float("inf"), 0] and not half.signbit().any()
    assert other.isnan().tolist() == [True, False] and other.signbit()[1]


@pytest.mark.parametrize("name", ["erfc", "digamma", "rsqrt", "lgamma", "i0"])
def test_truths_without_dimensions_are_computed_in_a_default_dtype_of_16_bits(name: str) -> None:
    torch.set_default_dtype(torch.float16)
    try:
        found = getattr(torch, name)(torch.tensor(True))
        assert found.dtype is torch.float16 and found.equal(getattr(torch, name)(torch.tensor([True]))[0])
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("shapes", [((), (3,), (3,)), ((), (), (3,)), ((), (3,), ()), ((3,), (), ())])
def test_what_lies_between_has_their_dtype_wherever_dimensions_are(dtype, shapes) -> None:
    start, end, weight = (torch.full(s, n, dtype=dtype) for s, n in zip(shapes, (1.0, 3.0, 0.25), strict=True))
    found = torch.lerp(start, end, weight)
    assert found.dtype is dtype and found.tolist() == [1.5] * 3
    assert torch.lerp(start, end, 0.25).dtype is dtype


SLOPES = {  # of formulas that multiply by a number which 16 bits do not hold
    "erf": torch.erf,
    "erfc": torch.erfc,
    "ndtr": torch.special.ndtr,
    "ndtri": lambda x: torch.special.ndtri(x / 4 + 0.3),
    "log_ndtr": torch.special.log_ndtr,
    "hardsigmoid": torch.nn.functional.hardsigmoid,
    "power of a number": lambda x: 2.0**x,
    "variance": lambda x: x.reshape(-1, 8).var(1),
    "soft margin": lambda x: torch.nn.functional.soft_margin_loss(x, torch.ones_like(x), reduction="none"),
}


@pytest.mark.parametrize("name", SLOPES)
@pytest.mark.parametrize("dtype", HALF)
def test_numbers_in_formulas_of_gradients_are_not_rounded(name, dtype):
    """Rounding results leaves their mean where it was; a factor of 0.1665 in the place of 1/6 moves it."""
    torch.manual_seed(0)
    values, weights = ((torch.rand(40_000) * 0.8 + 0.1).bfloat16().float() for _ in range(2))
    slopes = []
    for kind in (dtype, torch.float32):
        x = values.to(kind).requires_grad_()
        found = SLOPES[name](x)
        found.backward(weights[: found.numel()].to(kind))
        slopes.append(x.grad.double())
    near = slopes[1].abs() > 0.01
    off = (slopes[0] - slopes[1])[near] / slopes[1][near]
    assert abs(off.mean().item()) < 0.35 * torch.finfo(dtype).eps / 2


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("count", [3, 5000])
def test_what_has_more_digits_is_rounded_to_float32_first(dtype, count):
    """As PyTorch does, also where the library that knows the dtype would round once."""
    eps = torch.finfo(dtype).eps
    tie = torch.full((count,), 1 + eps / 2 + 2.0**-40, dtype=torch.float64)
    assert tie.to(dtype).tolist() == [1.0] * count
    assert torch.zeros(count, dtype=dtype).copy_(tie).tolist() == [1.0] * count
    assert torch.tensor([1 + eps / 2 + 2.0**-40], dtype=dtype).item() == 1.0
    whole = torch.full((count,), 2**40 + int(2**40 * eps / 2) + 1)
    assert whole.bfloat16().tolist() == whole.float().bfloat16().tolist()


def _written(number, dtype):
    """What every way of writing a float64 into 16 bits makes of it, by name."""
    given, zeros = torch.full((4,), number, dtype=torch.float64), torch.zeros(4, dtype=dtype)
    into = [zeros.clone() for _ in range(8)]
    into[0][...] = given
    into[1][1:] = given[:3]
    into[2][::2] = given.numpy()[:2]
    into[3].copy_(given)
    into[4] += given
    torch.add(given, 0, out=into[5])
    torch.cat([given], out=into[6])
    into[7][:] = torch.complex(given, given * 0)
    made = {"clamp": zeros.clamp(min=number), "arange": torch.arange(number, 3, 1, dtype=dtype),
            "linspace": torch.linspace(number, number, 2, dtype=dtype)}  # fmt: skip
    return {**{str(i): x.amax().item() for i, x in enumerate(into)}, **{k: x[0].item() for k, x in made.items()}}


@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.parametrize(("dtype", "digits"), [(torch.float16, 11), (torch.bfloat16, 8)])
@pytest.mark.parametrize(("beyond", "last"), [(2.0**-40, 0), (2.0**-20, 1)])
def test_every_way_into_16_bits_rounds_to_float32_first(dtype, digits, beyond, last):
    halfway = 1 + 2.0**-digits + beyond  # what is beyond float32 does not decide
    found = _written(halfway, dtype)
    assert found == dict.fromkeys(found, 1 + last * 2.0 ** (1 - digits))


def test_bfloat16_in_a_slice_of_integers_is_what_conversions_make_of_it():
    given = torch.tensor([3.7, -2.5, float("nan"), 1e20], dtype=torch.bfloat16)
    into = torch.zeros(4, dtype=torch.int64)
    into[...] = given
    assert into.tolist() == given.to(torch.int64).tolist()


def test_complex32_takes_float64_in_a_slice_as_conversions_do():
    given = torch.tensor([1 + 2.0**-11 + 2.0**-40, 70000.0], dtype=torch.float64)
    into = torch.zeros(2, dtype=torch.complex32)
    into[...] = given
    assert torch.equal(into.to(torch.complex64), given.to(torch.complex32).to(torch.complex64))


@pytest.mark.parametrize(
    ("dtype", "largest"), [(torch.float16, 65504.0), (torch.bfloat16, torch.finfo(torch.bfloat16).max)]
)
def test_numbers_that_a_dtype_only_rounds_to_its_largest(dtype, largest):
    x, above = torch.zeros(2, dtype=dtype), largest * (1 + 1e-5)
    for refused in (
        lambda: x.masked_fill(x == 0, above),
        lambda: x.clamp(max=above),
        lambda: x**above,
        lambda: x.fill_(above),
    ):
        with pytest.raises(RuntimeError, match="without overflow"):
            refused()
    with pytest.raises(RuntimeError, match="without overflow"):
        torch.full((2,), 1e6, dtype=torch.complex32)
