"""Python's operators on tensors, in-place forms, `out`, what is saved, and what is refused."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
import pytest
from tests.ops.declared import by_results

import rushlight as torch
from rushlight.overrides import TorchFunctionMode

BINARY = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow]
INTEGER = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]


@pytest.mark.parametrize("fn", BINARY, ids=lambda f: f.__name__)
def test_operators_on_tensors_numbers_and_arrays(fn: Any) -> None:
    a, b = np.array([3.0, 5.5]), np.array([2.0, 1.5])
    x, y = torch.from_numpy(a), torch.from_numpy(b)
    assert fn(x, y).tolist() == fn(a, b).tolist()
    assert fn(x, 2).tolist() == fn(a, 2).tolist()
    assert fn(2.5, x).tolist() == fn(2.5, a).tolist()
    assert fn(x, b).tolist() == fn(a, y).tolist() == fn(a, b).tolist()
    assert isinstance(fn(a, y), torch.Tensor)


@pytest.mark.parametrize("fn", INTEGER, ids=lambda f: f.__name__)
def test_operators_on_integers(fn: Any) -> None:
    a = np.array([6, 9])
    assert fn(torch.from_numpy(a), 2).tolist() == fn(a, 2).tolist()
    assert fn(3, torch.tensor([1, 2])).tolist() == fn(3, np.array([1, 2])).tolist()


@pytest.mark.parametrize("name", ["iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "iand", "ior",
                                  "ixor", "ilshift", "irshift"])  # fmt: skip
def test_operators_in_place(name: str) -> None:
    fn = getattr(operator, name)
    integer = name in ("iand", "ior", "ixor", "ilshift", "irshift")
    x = torch.tensor([7, 9]) if integer else torch.tensor([7.0, 9.0])
    kept, want = x, getattr(operator, name[1:] + "_" * (name in ("iand", "ior")))(x.numpy().copy(), 2)
    x = fn(x, 2)
    assert x is kept
    assert x.tolist() == want.tolist()
    assert x._version == 1


def test_unary_operators() -> None:
    x = torch.tensor([-1.5, 2.0])
    assert (-x).tolist() == [1.5, -2]
    assert abs(x).tolist() == [1.5, 2]
    assert +x is x
    assert (~torch.tensor([True, False])).tolist() == [False, True]


class Through(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def test_comparisons_give_bool_tensors() -> None:
    x = torch.tensor([1.0, 2.0])
    for fn, want in ((operator.lt, [True, False]), (operator.ge, [False, True]), (operator.eq, [False, True]),
                     (operator.ne, [True, False])):  # fmt: skip
        got = fn(x, 2)
        assert got.dtype is torch.bool
        assert got.tolist() == want
    assert (2 > x).tolist() == [True, False]
    assert not (x == "text")
    assert x != "text"
    assert x != None  # noqa: E711
    assert {x: 1}[x] == 1
    for fn in (torch.eq, torch.ne, torch.lt, torch.Tensor.eq, torch.Tensor.ne):
        with pytest.raises(TypeError):
            fn(x, None)
    with Through():
        assert x != None and not (x == None) and x != "text"  # noqa: E711


def test_other_classes_may_take_over() -> None:
    class Other:
        def __radd__(self, left: Any) -> str:
            return "radd"

        def __eq__(self, left: Any) -> Any:
            return "eq"

        __hash__ = object.__hash__

    x = torch.tensor([1.0])
    assert x + Other() == "radd"
    assert (x == Other()) == "eq"
    with pytest.raises(TypeError, match="unsupported operand"):
        x + "text"
    with pytest.raises(TypeError, match="not supported between"):
        x < "text"
    with pytest.raises(TypeError, match="unsupported operand"):
        x += [1]


# In place and out --------------------------------------------------------------------------------------------


def test_out_is_cast_resized_and_may_be_an_input() -> None:
    x = torch.tensor([1.0, 2.0])
    assert torch.add(x, 1, out=torch.empty(2, dtype=torch.float64)).tolist() == [2, 3]
    assert torch.mul(x, 3, out=x).tolist() == [3, 6]
    with pytest.warns(UserWarning, match="resized"):
        assert torch.add(x, 1, out=torch.ones(3)).tolist() == [4, 7]
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.add(x, 1, out=torch.empty(2, dtype=torch.int64))
    with pytest.raises(RuntimeError, match="out="):
        torch.mul(x.requires_grad_(), 2, out=torch.empty(2))


def test_large_updates_are_made_in_blocks_also_where_memory_overlaps() -> None:
    n = 200_000
    updates = [lambda x, y: x.add_(y, alpha=0.5), lambda x, y: x.addcmul_(y, y, value=2), lambda x, y: x.lerp_(y, 0.9)]
    for update in updates:
        a = np.random.default_rng(0).standard_normal(n + 1)
        whole, pieces = torch.from_numpy(a.copy()), torch.from_numpy(a.copy())
        update(whole[1:], whole[:-1])
        update(pieces[1:], torch.from_numpy(a[:-1].copy()))
        np.testing.assert_array_equal(whole.numpy(), pieces.numpy())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.complex64])
@pytest.mark.parametrize("shapes", [((), ()), ((3,), ()), ((), (3,)), ((3,), (3,)), ((2, 3), (3,)), ((5000,), (5000,))])
def test_sums_with_alpha(shapes: Any, dtype: Any) -> None:
    x, y = (torch.arange(math.prod(shape)).reshape(shape).remainder(7).to(dtype) + 1 for shape in shapes)
    want = x + y * 2
    for found in (
        torch.add(x, y, alpha=2),
        torch.sub(x, y, alpha=-2),
        torch.add(x, y, alpha=2, out=torch.empty_like(want)),
    ):
        assert torch.equal(found, want)
    if want.shape == x.shape:
        assert torch.equal(x.clone().add_(y, alpha=2), want) and torch.equal(x.clone().sub_(y, alpha=-2), want)
    assert torch.equal(torch.add(x, 3, alpha=2), x + 6)


def test_gradients_of_in_place_forms() -> None:
    x = torch.tensor([0.5, 1.5], requires_grad=True)
    y = ((x * 1).exp_() * 1).mul_(2).add_(x, alpha=3).clamp_(max=5).pow_(2)
    y.sum().backward()
    inner = 2 * np.exp([0.5, 1.5]) + 3 * np.array([0.5, 1.5])
    want = np.where(inner <= 5, 2 * inner * (2 * np.exp([0.5, 1.5]) + 3), 0)
    np.testing.assert_allclose(x.grad.numpy(), want, rtol=1e-6)


# What is kept ------------------------------------------------------------------------------------------------


def kept_inputs(y: Any) -> int:
    return sum(x is not None for x in y.grad_fn.saved)


def test_results_are_kept_where_they_are_enough() -> None:
    x = torch.ones(3, requires_grad=True)
    assert len(by_results()) > 8
    for name in by_results():
        y = getattr(torch, name)(x)
        assert kept_inputs(y) == 0, name
        assert y.grad_fn.outs is not None, name


def test_constants_keep_nothing() -> None:
    x = torch.ones(3, requires_grad=True)
    for y in (x + 1, -x, x.floor(), x.round(), x.sign(), x.frac(), 1 - x, x.deg2rad(), x.ceil(), x * 2, x / 3):
        kept = [s for s in y.grad_fn.saved if isinstance(s, torch.Tensor)]
        assert not kept, y.grad_fn
        assert y.grad_fn.outs is None


def test_choices_keep_a_byte_for_each_element() -> None:
    x, y = torch.ones(3, requires_grad=True), torch.zeros(3)
    for z in (x.clamp(0, 1), torch.maximum(x, y), torch.fmax(x, y), x.nan_to_num(), torch.clamp(x, y, y)):
        assert kept_inputs(z) == 0
        assert [a.itemsize for a in z.grad_fn.aux] == [1]
    z = torch.where(x > 0, x, y)
    assert [s.dtype for s in z.grad_fn.saved if s is not None] == [torch.bool]


def test_choices_keep_nothing_without_grad() -> None:
    with torch.no_grad():
        assert torch.maximum(torch.tensor([1.0]), torch.tensor([2.0])).item() == 2
        assert torch.tensor([5.0]).clamp_(0, 1).item() == 1


# Kinks -------------------------------------------------------------------------------------------------------


def grads(fn: Any, *values: Any) -> list[Any]:
    leaves = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in values]
    fn(*leaves).sum().backward()
    return [leaf.grad.tolist() for leaf in leaves]


INF, NAN = float("inf"), float("nan")


def test_gradients_at_kinks() -> None:
    assert grads(torch.abs, [0.0, -0.0, -2.0]) == [[0, 0, -1]]
    assert grads(lambda x: x.clamp(0, 1), [0.0, 1.0, NAN, 2.0]) == [[1, 1, 0, 0]]
    assert grads(torch.maximum, [1.0, NAN, 2.0], [1.0, 1.0, 3.0]) == [[0.5, 1, 0], [0.5, 1, 1]]
    assert grads(torch.minimum, [1.0, 2.0], [1.0, 3.0]) == [[0.5, 1], [0.5, 0]]
    assert grads(torch.fmax, [1.0, NAN, 1.0, NAN], [1.0, 1.0, NAN, NAN]) == [[1, 0, 1, 1], [0, 1, 0, 0]]
    assert grads(lambda x: x**0, [0.0, NAN]) == [[0, 0]]
    assert grads(torch.pow, [0.0, 0.0, 2.0], [0.0, 2.0, 0.0])[0] == [0, 0, 0]
    assert grads(lambda x: 0**x, [0.0, 3.0]) == [[0, 0]]
    assert grads(torch.sinc, [0.0]) == [[0]]
    assert grads(torch.atan2, [0.0], [0.0]) == [[0], [0]]
    assert grads(torch.xlogy, [0.0, 0.0], [0.0, 2.0])[0] == [0, pytest.approx(np.log(2))]
    assert grads(torch.copysign, [0.0, 2.0], [1.0, -1.0]) == [[0, -1], [0, 0]]
    assert grads(torch.nan_to_num, [INF, NAN, 1.0]) == [[0, 0, 1]]
    assert grads(lambda x: torch.logit(x, eps=0.1), [0.0, 0.5]) == [[0, 4]]
    assert grads(torch.special.i1, [0.0]) == grads(torch.special.i1e, [0.0]) == [[0.5]]


def test_masked_gradients_do_not_spread_infinities() -> None:
    x = torch.tensor([0.0, 4.0], requires_grad=True)
    torch.where(x > 1, x, 0.0 * x).sqrt()[1].backward()
    assert x.grad.tolist()[1] == 0.25
    y = torch.tensor([-1.0, 2.0], requires_grad=True)
    y.clamp(min=0).backward(torch.tensor([INF, 1.0]))
    assert y.grad.tolist() == [0, 1]


# Refusals ----------------------------------------------------------------------------------------------------

F, I, B, C = (torch.tensor(v) for v in ([1.0, 2.0], [1, 2], [True, False], [1j, 2]))
REFUSED: list[tuple[type[Exception], Any]] = [
    (RuntimeError, lambda: -B), (RuntimeError, lambda: +B), (RuntimeError, lambda: B - B),
    (RuntimeError, lambda: I - B), (RuntimeError, lambda: 1 - B), (RuntimeError, lambda: torch.rsub(B, I)),
    (NotImplementedError, lambda: abs(B)),
    (NotImplementedError, lambda: B // B), (NotImplementedError, lambda: torch.floor(C)),
    (NotImplementedError, lambda: C < C), (RuntimeError, lambda: torch.maximum(C, C)),
    (NotImplementedError, lambda: torch.sign(C)), (NotImplementedError, lambda: F & F),
    (NotImplementedError, lambda: F << 1), (TypeError, lambda: ~F), (NotImplementedError, lambda: torch.gcd(F, F)),
    (RuntimeError, lambda: I // 0), (RuntimeError, lambda: I % 0), (RuntimeError, lambda: torch.fmod(I, 0)),
    (RuntimeError, lambda: torch.div(I, 0, rounding_mode="trunc")), (RuntimeError, lambda: I**-1),
    (RuntimeError, lambda: torch.div(F, F, rounding_mode="up")),
    (RuntimeError, lambda: torch.add(I, I, alpha=1.5)), (RuntimeError, lambda: torch.add(F, F, alpha=True)),
    (RuntimeError, lambda: torch.sub(F, F, alpha=1j)), (RuntimeError, lambda: torch.addcdiv(I, I, I)),
    (RuntimeError, lambda: I.clone().add_(1.5)), (RuntimeError, lambda: I.clone().div_(2)),
    (RuntimeError, lambda: I.clone().sin_()), (RuntimeError, lambda: F.clone().add_(torch.ones(3, 2))),
    (RuntimeError, lambda: C.clone().abs_()), (RuntimeError, lambda: F.clone().float_power_(2)),
    (RuntimeError, lambda: torch.ones(2) + torch.ones(3)), (RuntimeError, lambda: F.expand(3, 2).add_(1)),
    (TypeError, lambda: torch.abs(1)), (TypeError, lambda: torch.maximum(F, 1)), (TypeError, lambda: torch.atan2(F, 1)),
    (TypeError, lambda: torch.eq(2, F)), (TypeError, lambda: torch.add(F, "a")), (TypeError, lambda: torch.exp(F, F)),
    (TypeError, lambda: torch.logical_and(F, 1)), (TypeError, lambda: torch.xlogy(1, 2)),
    (RuntimeError, lambda: torch.lerp(F, F.double(), 0.5)), (RuntimeError, lambda: torch.where(I, F, F)),
    (RuntimeError, lambda: torch.clamp(F)), (NotImplementedError, lambda: torch.clamp(C, 0, 1)),
    (RuntimeError, lambda: torch.isclose(F, I)), (RuntimeError, lambda: torch.allclose(F, F, rtol=-1)),
    (RuntimeError, lambda: torch.imag(F)), (RuntimeError, lambda: torch.view_as_real(F)),
    (RuntimeError, lambda: torch.view_as_complex(torch.ones(3))), (RuntimeError, lambda: torch.complex(F, I)),
    (RuntimeError, lambda: torch.heaviside(F, I)), (RuntimeError, lambda: torch.polygamma(-1, F)),
    (RuntimeError, lambda: torch.frexp(I)), (RuntimeError, lambda: torch.mvlgamma(F, 0)),
    (RuntimeError, lambda: torch.floor_divide(F.clone().requires_grad_(), 2).sum().backward()),
    (NotImplementedError, lambda: torch.igamma(F.clone().requires_grad_(), F).sum().backward()),
    (NotImplementedError, lambda: torch.special.bessel_j0(F.clone().requires_grad_()).sum().backward()),
]  # fmt: skip


@pytest.mark.parametrize("i", range(len(REFUSED)))
def test_refusals(i: int) -> None:
    error, attempt = REFUSED[i]
    with pytest.raises(error):
        attempt()


def test_errors_name_the_shapes() -> None:
    with pytest.raises(RuntimeError, match=r"size of tensor a \(2\) must match the size of tensor b \(3\).*mul\(\)"):
        torch.ones(2) * torch.ones(3)


def test_out_that_shares_a_part_of_an_input_is_refused() -> None:
    x = torch.arange(6.0)
    for call in (
        lambda: torch.add(x[:-1], 1, out=x[1:]),
        lambda: torch.mul(torch.ones(5), x[:-1], out=x[1:]),
        lambda: torch.sin(x[:-1], out=x[1:]),
        lambda: torch.sub(x[:4].view(2, 2), 1, out=x[:4].view(2, 2).t()),
        lambda: torch.clamp(x[:-1], 1, out=x[1:]),
        lambda: torch.pow(2, x[:-1], out=x[1:]),
        lambda: torch.where(x[1:] > 2, x[:-1], 0.0, out=x[1:]),
        lambda: torch.add(x[:-1], torch.ones(5), alpha=2, out=x[1:]),
        lambda: torch.div(x[:-1], 2, rounding_mode="floor", out=x[1:]),
    ):
        with pytest.raises(RuntimeError, match="unsupported operation: some elements of the input tensor"):
            call()
    assert x.tolist() == [0, 1, 2, 3, 4, 5]


def test_out_that_is_an_input_or_lies_beside_it_is_written() -> None:
    x = torch.arange(6.0)
    torch.add(x[:3], 1, out=x[:3])
    torch.mul(x[:3], 2, out=x[3:])
    torch.neg(x.view(2, 3), out=x.view(2, 3))
    assert x.tolist() == [-1, -2, -3, -2, -4, -6]
