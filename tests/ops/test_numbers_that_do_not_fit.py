"""Numbers that a dtype cannot hold are refused, wherever an operator takes one."""

import pytest

import rushlight as torch

F = torch.nn.functional
I8, U8, F16 = torch.int8, torch.uint8, torch.float16
MASK = torch.tensor([True, False])


def t(dtype):
    return torch.tensor([1, 2], dtype=dtype)


def assign(x, index, value):
    x[index] = value
    return x


FIRST = torch.tensor([0])
CALLS = {
    "masked_fill": lambda d, v: torch.masked_fill(t(d), MASK, v),
    "masked_fill tensor": lambda d, v: torch.masked_fill(t(d), MASK, torch.tensor(v)),
    "index_fill": lambda d, v: torch.index_fill(t(d), 0, FIRST, v),
    "scatter": lambda d, v: torch.scatter(t(d), 0, FIRST, v),
    "assignment": lambda d, v: assign(t(d), 0, v),
    "assignment by a mask": lambda d, v: assign(t(d), MASK, v),
    "assignment by indices": lambda d, v: assign(t(d), FIRST, v),
    "where": lambda d, v: torch.where(MASK, v, t(d)),
    "pad": lambda d, v: F.pad(t(d), (1, 1), value=v),
    "fill_": lambda d, v: t(d).fill_(v),
    "full": lambda d, v: torch.full((2,), v, dtype=d),
    "alpha": lambda d, v: torch.add(t(d), t(d), alpha=v),
    "alpha of index_add": lambda d, v: torch.index_add(t(d), 0, FIRST, t(d)[:1], alpha=v),
    "clamp": lambda d, v: torch.clamp(t(d), 0, v),
    "threshold": lambda d, v: F.threshold(t(d), 0, v),
    "hardtanh": lambda d, v: F.hardtanh(t(d), 0, v),
    "pow": lambda d, v: torch.pow(t(d), v),
    "addcmul": lambda d, v: torch.addcmul(t(d), t(d), t(d), value=v),
}
WIDE = {"hardtanh", "pow", "threshold", "masked_fill tensor"}  # infinity is right there, or the tensor has it


@pytest.mark.parametrize("name", CALLS)
def test_integers(name):
    for dtype, value in ((I8, 300), (I8, -129), (U8, 256)):
        if name not in ("pow", "hardtanh") or value > 0:
            with pytest.raises(RuntimeError, match=r"cannot be converted to type u?int8 without overflow"):
                CALLS[name](dtype, value)


@pytest.mark.parametrize("name", sorted(set(CALLS) - WIDE))
def test_floating_point_numbers(name):
    with pytest.raises(RuntimeError, match="cannot be converted to type float without overflow"):
        CALLS[name](torch.float32, 1e40)


@pytest.mark.parametrize("name", ["masked_fill", "index_fill", "scatter", "pad", "alpha", "alpha of index_add", "pow", "fill_", "full"])  # fmt: skip
def test_numbers_of_16_bits(name):
    with pytest.raises(RuntimeError, match="cannot be converted to type float16 without overflow"):
        CALLS[name](F16, 1e6)


@pytest.mark.parametrize("name", ["masked_fill", "assignment", "scatter", "full", "pad"])
def test_infinities_fit(name):
    assert CALLS[name](torch.float32, float("inf")).isinf().any()


def test_what_is_only_rounded_fits():
    assert torch.masked_fill(t(torch.int32), MASK, 2.5).tolist() == [2, 2]
    assert torch.masked_fill(t(torch.float32), MASK, 3 + 0j).tolist() == [3, 2]
    assert torch.index_fill(t(torch.int64), 0, FIRST, 2.5).tolist() == [2, 2]
    assert torch.masked_fill(t(U8), MASK, -1).tolist() == [255, 2]
    with pytest.raises(RuntimeError, match="without overflow"):
        torch.masked_fill(t(torch.float32), MASK, 1j)
    with pytest.raises(RuntimeError, match="without overflow"):
        assign(t(torch.int64), 0, float("nan"))


ARITHMETIC = {
    "add": lambda x, n: x + n,
    "in place": lambda x, n: x.add_(n),
    "number first": lambda x, n: n - x,
    "mul": lambda x, n: x * n,
    "div": lambda x, n: x / n,
    "eq": lambda x, n: x == n,
    "lt": lambda x, n: x < n,
    "floor_divide": lambda x, n: x // n,
    "bits": lambda x, n: x & n,
    "shift": lambda x, n: x << n,
    "power of it": lambda x, n: n**x,
    "foreach": lambda x, n: torch._foreach_mul([x], n),
}


@pytest.mark.parametrize("name", ARITHMETIC)
@pytest.mark.parametrize("number", [2**64, 2**70, -(2**63) - 1])
def test_python_integers_beyond_64_bits_are_refused_beside_integers(name, number):
    for dtype in (torch.int64, torch.uint8):
        with pytest.raises(OverflowError, match="int too big to convert"):
            ARITHMETIC[name](t(dtype), number)


def test_python_integers_of_64_bits_wrap_around_as_unsigned_ones_and_are_refused_beside_bools():
    assert (t(torch.int64) + 2**63).tolist() == [1 - 2**63, 2 - 2**63]
    assert (t(torch.int32) * (2**64 - 1)).tolist() == [-1, -2]
    with pytest.raises(RuntimeError, match="Promotion for uint16, uint32, uint64 types is not supported"):
        MASK + 2**63


def test_python_integers_of_any_size_are_numbers_beside_floating_point_numbers():
    assert (t(torch.float64) + 2**70).tolist() == [1 + 2.0**70, 2 + 2.0**70]
    assert (t(torch.complex128) * 2**70).tolist() == [2.0**70, 2 * 2.0**70]


x, m = torch.ones(2), torch.ones(2, 2)
OF_FLOATS = {
    "clamp": lambda v: x.clamp(0, v),
    "clamp, lower": lambda v: x.clamp(v),
    "clip": lambda v: torch.clip(x, 0, v),
    "clamp_": lambda v: x.clone().clamp_(0, v),
    "clamp_min": lambda v: x.clamp_min(v),
    "clamp_max": lambda v: x.clamp_max(v),
    "clamp with a graph": lambda v: x.clone().requires_grad_().clamp(0, v),
    "leaky_relu": lambda v: F.leaky_relu(x, v),
    "leaky_relu_": lambda v: F.leaky_relu(x.clone(), v, True),
    "elu": lambda v: F.elu(x, v),
    "celu": lambda v: F.celu(x, v),
    "softplus": lambda v: F.softplus(x, v),
    "softplus, threshold": lambda v: F.softplus(x, 1, v),
    "lerp": lambda v: torch.lerp(x, x, v),
    "lerp_": lambda v: x.clone().lerp_(x, v),
    "addmm": lambda v: torch.addmm(m, m, m, alpha=v),
    "addmm, beta": lambda v: torch.addmm(m, m, m, beta=v),
    "addmv": lambda v: torch.addmv(x, m, x, alpha=v),
    "addr": lambda v: torch.addr(m, x, x, alpha=v),
    "baddbmm": lambda v: torch.baddbmm(m[None], m[None], m[None], alpha=v),
    "logspace": lambda v: torch.logspace(0, v, 3),
    "histc": lambda v: torch.histc(x, 2, 0, v),
}


@pytest.mark.parametrize("call", OF_FLOATS.values(), ids=OF_FLOATS)
def test_numbers_that_float32_does_not_hold(call):
    with pytest.raises(RuntimeError, match="overflow"):
        call(1e39)


@pytest.mark.parametrize("name", ["clamp", "clamp_", "clamp_max", "leaky_relu"])
def test_infinity_is_no_overflow(name):
    assert torch.equal(OF_FLOATS[name](float("inf")), x)


def test_limits_are_in_16_bits_and_factors_in_float32():
    half = x.half()
    with pytest.raises(RuntimeError, match="overflow"):
        half.clamp(0, 1e6)
    assert torch.equal(half.clamp(0, 6e4), half)
    assert torch.equal(F.leaky_relu(half, 1e6), half)
    with pytest.raises(RuntimeError, match="overflow"):
        F.leaky_relu(half, 1e39)
    assert torch.equal(x.double().clamp(0, 1e300), x.double())


def test_integers_of_more_than_64_bits_beside_16_bits():
    half = x.half()
    for large in (1 << 70, -(1 << 70)):
        with pytest.raises(RuntimeError, match="overflow"):
            half.clamp(max=large)
        with pytest.raises(RuntimeError, match="overflow"):
            half.clamp_(min=large)
