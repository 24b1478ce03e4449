"""Masked tensors: what operators, reductions, views and gradients give for them, and what is refused, as in PyTorch."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

import rushlight
from rushlight.masked.maskedtensor.binary import BINARY_NAMES
from rushlight.masked.maskedtensor.reductions import REDUCE_NAMES
from rushlight.masked.maskedtensor.unary import UNARY_NAMES

torch = pytest.importorskip("torch")
pytest.importorskip("torch.masked")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

# What PyTorch lists, without what wants other arguments or dtypes than are given below.
ALIKE = [name for name in UNARY_NAMES if name not in ("bitwise_not", "clamp", "clip", "pow")]
PAIRS = [name for name in BINARY_NAMES if not name.startswith("bitwise")]
REDUCTIONS = [name for name in REDUCE_NAMES if name != "norm"]
REFUSED = "relu logical_not isinf pow bitwise_not logical_and xlogy matmul norm any max median cumsum sort masked_select".split()


def data(t: Any) -> Any:
    return t.tensor([[0.1, 0.2, -0.3], [0.4, -0.5, 0.6]])


def mask(t: Any) -> Any:
    return t.tensor([[True, False, True], [False, True, True]])


def made(t: Any, grad: bool = False) -> Any:
    return t.masked.masked_tensor(data(t), mask(t), requires_grad=grad)


def told(t: Any, found: Any) -> Any:
    """What counts of a masked tensor; anything else as it is."""
    if t.masked.is_masked_tensor(found):
        counts = found.get_mask()
        return "masked", str(found.dtype), told(t, found.get_data()[counts]), counts.tolist(), found.requires_grad
    if isinstance(found, t.Tensor):
        return [round(x, 4) if x == x else "nan" for x in found.double().flatten().tolist()]
    return [told(t, x) for x in found] if isinstance(found, list | tuple) else found


def same(call: Callable[[Any], Any]) -> None:
    found = []
    for t in (rushlight, torch):
        try:
            found.append(told(t, call(t)))
        except Exception as error:
            found.append(type(error).__name__)
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ALIKE)
def test_functions_of_one_operand_keep_the_mask(name: str) -> None:
    same(lambda t: [getattr(t, name)(made(t)), getattr(made(t), name)()])
    if hasattr(torch.Tensor, f"{name}_"):
        same(lambda t: getattr(made(t), f"{name}_")())


@pytest.mark.parametrize("name", PAIRS)
def test_functions_of_two_operands_want_one_mask(name: str) -> None:
    def call(t: Any) -> Any:
        return getattr(t, name)

    same(lambda t: [call(t)(made(t), made(t)), call(t)(made(t), data(t)), call(t)(data(t), made(t))])
    same(lambda t: call(t)(made(t), 2))
    same(lambda t: call(t)(made(t), t.masked.masked_tensor(data(t), ~mask(t))))
    if hasattr(torch.Tensor, f"{name}_"):
        same(lambda t: getattr(made(t), f"{name}_")(made(t)))


@pytest.mark.parametrize("name", REFUSED)
def test_others_are_refused(name: str) -> None:
    same(
        lambda t: getattr(t, name)(
            *[made(t)] * (2 if name in ("pow", "logical_and", "xlogy", "matmul", "masked_select") else 1)
        )
    )


OPERATORS: list[Callable[[Any, Any], Any]] = [
    lambda t, m: [m + m, m - 2, 3 * m, m / data(t), data(t) + m, m == m, m > 0, m**2, m // m, m % 2, 2 / m, -m, abs(m)],
    lambda t, m: m + t.masked.masked_tensor(data(t), ~mask(t)),
    lambda t, m: t.bitwise_and(*[t.masked.masked_tensor(t.tensor([3, 5]), t.tensor([True, False]))] * 2),
]


@pytest.mark.parametrize("call", OPERATORS)
def test_operators(call: Callable[[Any, Any], Any]) -> None:
    same(lambda t: call(t, made(t)))


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_leave_elements_out(name: str) -> None:
    def operand(t: Any) -> Any:
        return t.masked.masked_tensor(data(t) > 0, mask(t)) if name == "all" else made(t)

    for how in ({}, {"dim": 0}, {"dim": 1, "keepdim": True}, {"dim": (0, 1)}, {"dim": 1, "dtype": "float64"}):

        def options(t: Any, how: dict[str, Any] = how) -> dict[str, Any]:
            return how if "dtype" not in how else {**how, "dtype": t.float64}

        same(lambda t: getattr(t, name)(operand(t), **options(t)))
        same(lambda t: getattr(operand(t), name)(**options(t)))
    same(lambda t: getattr(operand(t), name)(1))


VIEWS: list[Callable[[Any, Any], Any]] = [
    lambda t, m: [t.atleast_1d(m), t.broadcast_to(m, (2, 2, 3)), t.cat([m, m]), t.column_stack((m, m)), m.flatten(), t.hstack((m, m))],
    lambda t, m: [*t.broadcast_tensors(m, m), *t.chunk(m, 2), *t.hsplit(m, 3), *t.split(m, 1), *t.vsplit(m, 2)],
    lambda t, m: [m.narrow(1, 0, 2), m.ravel(), m.select(0, 1), t.stack((m, m)), m.t(), m.transpose(0, 1), t.vstack((m, m)), m.mT],
    lambda t, m: [m.expand(2, 2, 3), m.expand_as(t.ones(2, 2, 3)), m.reshape(3, 2), m.reshape_as(t.ones(3, 2)), m.unfold(1, 2, 1), m.view(6)],
    lambda t, m: [m[0], m[:, 1:], m[t.tensor([0, 0])], m[mask(t)], m.unsqueeze(0), *t.meshgrid(m[0], m[1], indexing="ij")],
    lambda t, m: [m.clone(), m.detach(), m.contiguous(), m.to(t.float64), m.double(), copy.deepcopy(m), t.ones_like(m)],
    lambda t, m: [t.nn.functional.unfold(m.reshape(1, 1, 2, 3), 2), t.nn.functional.softmax(m, 1), m.softmax(0), t.nn.functional.dropout(m, 0.0)],
    lambda t, m: [t.where(mask(t), m, t.masked.masked_tensor(data(t), ~mask(t))), t.where(mask(t), m, data(t))],
    lambda t, m: [m.to_tensor(7), m.get_data(), m.get_mask(), tuple(m.shape), m.dim(), m.numel(), len(m), m.is_contiguous(), m.stride(), str(m.dtype)],
    lambda t, m: [round(m.sum().item(), 4), bool(m.sum()), t.is_tensor(m), isinstance(m, t.Tensor), m.requires_grad, m.is_sparse, m.is_sparse_coo()],
    lambda t, m: m.__setitem__(0, 1.0), lambda t, m: m.tolist(), lambda t, m: m.numpy(), lambda t, m: m.gather(1, t.zeros(2, 1, dtype=t.long)),
    lambda t, m: t.masked.masked_tensor(t.tensor(1.0), t.tensor(False)).item(), lambda t, m: t.mm(m, m.t()), lambda t, m: t.equal(m, m),
]  # fmt: skip


@pytest.mark.parametrize("call", VIEWS)
def test_views_and_the_rest(call: Callable[[Any, Any], Any]) -> None:
    same(lambda t: call(t, made(t)))


WRONG: list[Callable[[Any], Any]] = [
    lambda t: t.masked.masked_tensor(data(t), mask(t)[0]), lambda t: t.masked.masked_tensor(data(t), data(t)),
    lambda t: t.masked.masked_tensor([1.0], mask(t)), lambda t: t.masked.masked_tensor(data(t), [True]),
    lambda t: t.masked.masked_tensor(made(t), mask(t)), lambda t: t.masked.masked_tensor(data(t), made(t)),
    lambda t: t.masked.masked_tensor(data(t).to(t.complex64), mask(t)), lambda t: t.masked.masked_tensor(data(t).to(t.uint8), mask(t)),
    lambda t: t.masked.as_masked_tensor(data(t), mask(t)[0]), lambda t: t.masked.as_masked_tensor(made(t), mask(t)),
    lambda t: [t.masked.masked_tensor(data(t).half(), mask(t)), t.masked.MaskedTensor(data(t).long(), mask(t)), made(t, True)],
]  # fmt: skip


@pytest.mark.parametrize("call", WRONG)
def test_what_makes_them(call: Callable[[Any], Any]) -> None:
    same(call)


@pytest.mark.parametrize("values", [
    lambda t: made(t), lambda t: made(t)[0], lambda t: made(t).sum(), lambda t: made(t).reshape(1, 2, 3), lambda t: made(t, True),
    lambda t: t.masked.masked_tensor(t.tensor([1, 2]), t.tensor([True, False])), lambda t: t.masked.masked_tensor(t.tensor(1.0), t.tensor(False)),
])  # fmt: skip
def test_they_are_printed_alike(values: Callable[[Any], Any]) -> None:
    assert repr(values(rushlight)) == repr(values(torch))
    assert f"{values(rushlight)}" == f"{values(torch)}"


GRADIENTS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda t, m: m.sum(), "mean": lambda t, m: m.mean(), "amax": lambda t, m: m.amax(), "prod": lambda t, m: m.prod(),
    "exp": lambda t, m: m.exp().sum(), "mul": lambda t, m: (m * m).sum(), "line": lambda t, m: (m * 3 + 1).sum(),
    "sqrt": lambda t, m: m.sqrt().sum(), "var": lambda t, m: m.var(), "std": lambda t, m: m.std(), "dim": lambda t, m: m.sum(1).sum(),
    "view": lambda t, m: m.view(6).sum(), "data": lambda t, m: m.get_data().sum(), "filled": lambda t, m: m.to_tensor(0).sum(),
    "where": lambda t, m: t.where(mask(t), m.exp(), t.masked.masked_tensor(t.ones(2, 3), ~mask(t))).sum(),
    "stack": lambda t, m: t.stack([m, m]).sum(), "log": lambda t, m: m.log().mean(),
}  # fmt: skip


@pytest.mark.parametrize("loss", GRADIENTS.values(), ids=GRADIENTS)
def test_gradients_are_masked_as_the_tensor(loss: Callable[[Any, Any], Any]) -> None:
    def of_a_leaf(t: Any) -> Any:
        m = made(t, True)
        loss(t, m).backward()
        return m.grad, m.is_leaf, t.autograd.grad(made(t, True).sum() if m.grad is None else loss(t, m), m)[0]

    def of_data(t: Any) -> Any:
        x = data(t).requires_grad_()
        loss(t, t.masked.as_masked_tensor(x, mask(t))).backward()
        return x.grad.to_tensor(0) if t.masked.is_masked_tensor(x.grad) else x.grad

    same(of_a_leaf)
    same(of_data)


def test_a_parameter_of_one() -> None:
    same(lambda t: t.nn.Parameter(made(t)))
    same(lambda t: made(t).requires_grad_())


@pytest.mark.parametrize("name", ["MaskedTensor", "masked_tensor", "as_masked_tensor"])
def test_what_was_given_is_copied(name: str) -> None:
    def run(t: Any) -> Any:
        given, counts = data(t), mask(t)
        m = getattr(t.masked, name)(given, counts)
        m.mul_(t.masked.masked_tensor(data(t), mask(t)))
        before = given.clone()
        given.fill_(9)
        counts.fill_(False)
        return before, m.get_data(), m.get_mask()

    same(run)


def test_the_elements_by_their_inner_name() -> None:
    def run(t: Any) -> Any:
        m = made(t, grad=True)
        inner = m._masked_data
        inner[0, 0] = 5.0
        return inner, inner.requires_grad, inner.grad_fn is None, m.get_data(), (m * 2)._masked_data

    same(run)


def test_what_only_this_package_has() -> None:
    m = made(rushlight)
    assert (2 - m).to_tensor(0).allclose(rushlight.tensor([[1.9, 0.0, 2.3], [0.0, 2.5, 1.4]]))
    assert m.permute(1, 0).get_mask().equal(mask(rushlight).t()) and [row.shape for row in m] == [(3,), (3,)]
    m[0] = m[1]
    assert m.get_mask()[0].tolist() == [False, True, True] and rushlight.zeros_like(m).sum().item() == 0
    with pytest.raises(ValueError, match="the same mask"):
        m.add_(rushlight.masked.masked_tensor(data(rushlight), mask(rushlight)))
    with pytest.raises(TypeError, match="relu: not implemented for masked tensors"):
        rushlight.relu(m)
