"""Arguments that PyTorch refuses are refused with its classes of errors, and what is beside them is taken."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.parity.refusing import raised

import rushlight

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity


def parameters(t: Any, x: Any, p: Any) -> list[Callable[[], Any]]:
    """The norms of an input (2, 3, 4) of dtype `x` with parameters of dtype `p`."""
    F, features, last = t.nn.functional, t.ones(3, dtype=p), t.ones(4, dtype=p)
    x = t.ones(2, 3, 4, dtype=x)
    return [lambda: F.batch_norm(x, None, None, features, features, training=True), lambda: F.batch_norm(x, features, features),
            lambda: F.layer_norm(x, (4,), last, last), lambda: F.group_norm(x, 1, features, features),
            lambda: F.instance_norm(x, None, None, features, features)]  # fmt: skip


DTYPES = ("float32", "float64", "float16", "bfloat16")


@pytest.mark.parametrize("x", DTYPES)
@pytest.mark.parametrize("p", DTYPES)
def test_norms_of_parameters_in_another_precision(x: str, p: str) -> None:
    found = [[raised(fn) for fn in parameters(t, getattr(t, x), getattr(t, p))] for t in (torch, rushlight)]
    assert found[0] == found[1]


FACTORIES: dict[str, Callable[..., Any]] = {
    "zeros": lambda t, **k: t.zeros(3, **k), "ones": lambda t, **k: t.ones(3, **k), "full": lambda t, **k: t.full((3,), 1, **k),
    "arange": lambda t, **k: t.arange(3, **k), "eye": lambda t, **k: t.eye(3, **k), "linspace": lambda t, **k: t.linspace(0, 1, 3, **k),
    "logspace": lambda t, **k: t.logspace(0, 1, 3, **k), "empty": lambda t, **k: t.empty(3, **k), "rand": lambda t, **k: t.rand(3, **k),
    "randn": lambda t, **k: t.randn(3, **k), "randint": lambda t, **k: t.randint(3, (3,), **k), "randperm": lambda t, **k: t.randperm(3, **k),
}  # fmt: skip


@pytest.mark.parametrize("name", FACTORIES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", None])
def test_a_dtype_beside_out(name: str, dtype: str | None) -> None:
    def run(t: Any) -> Any:
        given = {} if dtype is None else {"dtype": getattr(t, dtype)}
        return raised(lambda: FACTORIES[name](t, out=t.empty(0), **given))

    assert run(rushlight) is run(torch)


REDUCTIONS: dict[str, Callable[..., Any]] = {
    **{name: lambda t, name=name, **k: getattr(t, name)(t.ones(2, 3), 1, **k)
       for name in ("sum", "mean", "prod", "nansum", "nanmean", "cumsum", "cumprod")},
    "vector_norm": lambda t, **k: t.linalg.vector_norm(t.ones(2, 3), 2, 1, **k),
    "matrix_norm": lambda t, **k: t.linalg.matrix_norm(t.ones(2, 3), **k),
}  # fmt: skip


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64", None])
def test_a_dtype_of_sums_beside_out(name: str, dtype: str | None) -> None:
    def run(t: Any) -> Any:
        given = {} if dtype is None else {"dtype": getattr(t, dtype)}
        return raised(lambda: REDUCTIONS[name](t, out=t.empty(0), **given))

    assert run(rushlight) is run(torch)


def needs_grad(t: Any) -> Any:
    return t.ones((), requires_grad=True)


REFUSED: dict[str, Callable[[Any], Any]] = {
    "alpha that requires grad": lambda t: t.add(t.ones(2), t.ones(2), alpha=needs_grad(t)),
    "value that requires grad": lambda t: t.addcmul(t.ones(2), t.ones(2), t.ones(2), value=needs_grad(t)),
    "value of a quotient that requires grad": lambda t: t.addcdiv(t.ones(2), t.ones(2), t.ones(2), value=needs_grad(t)),
    "sizes that are fractions": lambda t: t.nn.functional.interpolate(t.ones(1, 1, 2, 2), size=(4.0, 4.0)),
    "a bool as dimension of topk": lambda t: t.topk(t.ones(2), 1, True),
    "keepdim in the place of dim": lambda t: t.sum(t.ones(2, 2), True),
    "descending in the place of dim": lambda t: t.sort(t.ones(2, 2), True),
    "flip of no dimensions": lambda t: t.ones(2).flip(),
    "floats as flat indices": lambda t: t.unravel_index(t.ones(2), (4,)),
    "places and distance": lambda t: t.cumulative_trapezoid(t.ones(3), t.ones(3), dx=1),
    "a bool as factor of floats": lambda t: t.addr(t.ones(2, 2), t.ones(2), t.ones(2), alpha=True),
    "randperm beyond bytes": lambda t: t.randperm(300, dtype=t.uint8),
    "randperm beyond half": lambda t: t.randperm(3000, dtype=t.float16),
    "randperm of bools": lambda t: t.randperm(2, dtype=t.bool),
    "randint of complex numbers": lambda t: t.randint(2, (2,), dtype=t.complex64),
    "map_ with what requires grad": lambda t: t.ones(2).map_(t.ones(2, requires_grad=True), lambda a, b: a),
    "no order of dimensions": lambda t: t.ones(1, 1).dim_order(ambiguity_check=True),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    want = raised(lambda: REFUSED[name](torch))
    assert want is not None
    assert raised(lambda: REFUSED[name](rushlight)) is want


def orders(t: Any) -> list[Any]:
    x = t.ones(2, 3, 4, 5)
    return [x.dim_order(), x.to(memory_format=t.channels_last).dim_order(ambiguity_check=True),
            x.dim_order(ambiguity_check=[t.contiguous_format, t.channels_last]), t.ones(2, 2).dim_order(ambiguity_check=True),
            len(t.randperm(256, dtype=t.uint8)), len(t.randperm(2049, dtype=t.float16))]  # fmt: skip


def test_taken() -> None:
    assert orders(rushlight) == orders(torch)


def test_bfloat16_by_dlpack_both_ways() -> None:
    theirs = torch.arange(3, dtype=torch.bfloat16)
    ours = rushlight.from_dlpack(theirs)
    assert ours.dtype is rushlight.bfloat16
    ours[0] = 7
    assert theirs.tolist() == [7, 1, 2]
    back = torch.from_dlpack(ours)
    assert back.dtype is torch.bfloat16
    assert back.data_ptr() == theirs.data_ptr()
    strided = rushlight.arange(6, dtype=rushlight.bfloat16).reshape(2, 3).t()
    assert torch.from_dlpack(strided).tolist() == strided.tolist()
    assert rushlight.from_dlpack(rushlight.utils.dlpack.to_dlpack(strided)).tolist() == strided.tolist()
    assert rushlight.asarray(rushlight.utils.dlpack.to_dlpack(rushlight.ones(2))).tolist() == [1, 1]


EXCHANGES: dict[str, Callable[[Any, Any], Any]] = {
    "lu_solve": lambda t, p: t.linalg.lu_solve(t.eye(2), p, t.eye(2)),
    "the older lu_solve": lambda t, p: t.lu_solve(t.eye(2), t.eye(2), p),
    "lu_unpack": lambda t, p: t.lu_unpack(t.eye(2), p),
}


@pytest.mark.filterwarnings("ignore:torch.lu_solve is deprecated")  # which PyTorch says once, to whoever is first
@pytest.mark.parametrize("name", EXCHANGES)
@pytest.mark.parametrize("pivots", [[5, 6], [0, 1], [1, 2]])
def test_exchanges_of_rows_that_are_not_there(name: str, pivots: list[int]) -> None:
    found = [raised(lambda t=t: EXCHANGES[name](t, t.tensor(pivots, dtype=t.int32))) for t in (torch, rushlight)]
    assert found[0] is found[1]


LAZY: dict[str, Callable[..., Any]] = {
    "sum": lambda t, p: p + 1, "function": lambda t, p: t.mul(p, 2), "layer": lambda t, p: t.nn.functional.linear(t.ones(2, 3), p),
    "view": lambda t, p: p.t(), "count": lambda t, p: p.numel(), "copy": lambda t, p: p.clone(), "item": lambda t, p: p.item(),
    "truth": lambda t, p: bool(p), "shape": lambda t, p: p.shape, "share": lambda t, p: p.share_memory_(), "dtype": lambda t, p: p.dtype,
    "kind": lambda t, p: p.is_floating_point(), "stack": lambda t, p: t.stack([p]), "init": lambda t, p: t.nn.init.ones_(p),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["UninitializedParameter", "UninitializedBuffer"])
@pytest.mark.parametrize("name", LAZY)
def test_what_has_no_shape_yet_does_not_compute(name: str, kind: str) -> None:
    found = [raised(lambda t=t: LAZY[name](t, getattr(t.nn.parameter, kind)())) for t in (torch, rushlight)]
    assert found[0] is found[1]


def test_what_does_not_compute_yet_says_so_and_does_once_it_has_a_shape() -> None:
    p = rushlight.nn.parameter.UninitializedParameter()
    with pytest.raises(ValueError, match=r"uninitialized parameter in .*linear.*LazyModule"):
        rushlight.nn.functional.linear(rushlight.ones(2, 3), p)
    p.materialize((2, 3))
    assert (p * 2).shape == (2, 3)


@pytest.mark.parametrize("call", [
    lambda t: t.nn.Linear(2, 2).to("cpu", copy=True), lambda t: t.nn.Linear(2, 2).to(t.float32, copy=True),
    lambda t: t.nn.Linear(2, 2).to(True), lambda t: t.nn.Linear(2, 2).to("cpu", t.float64, True),
    lambda t: t.nn.Linear(2, 2).to(t.float64, True), lambda t: t.cosine_similarity(t.ones(2, 2), t.ones(2, 2), eps=-1.0),
])  # fmt: skip
def test_conversions_and_settings(call: Callable[[Any], Any]) -> None:
    assert raised(lambda: call(rushlight)) is raised(lambda: call(torch))


def over_an_attribute(t: Any) -> None:
    m = t.nn.Module()
    m.a = t.ones(2)
    m.a = t.nn.Buffer(t.ones(2))


@pytest.mark.parametrize("call", [
    lambda t: t.nn.functional.embedding_bag(t.tensor([[5]]), t.ones(2, 2)), lambda t: t.nn.functional.embedding(t.tensor([[5]]), t.ones(2, 2)),
    lambda t: t.nn.functional.embedding_bag(t.tensor([[5]]), t.ones(2, 2), mode="max"),
    lambda t: t.ones(3, 2).index_add(0, t.tensor([5]), t.ones(1, 2)), lambda t: t.ones(3).index_add_(0, t.tensor([5]), t.ones(1)),
    lambda t: t.nn.functional.adaptive_max_pool2d(t.ones(1, 4, 4, dtype=t.int64), 2),
    lambda t: t.nn.functional.adaptive_max_pool1d(t.ones(1, 4, dtype=t.int32), 2),
    lambda t: t.nn.functional.fractional_max_pool2d(t.ones(2, 0, 4, 4), 2, output_size=2),
    lambda t: t.ops.aten.add.Foo, lambda t: t.ops.aten.add.Tensor, lambda t: t.ops.aten.t.default, over_an_attribute,
])  # fmt: skip
def test_what_was_taken_or_raised_another_error(call: Callable[[Any], Any]) -> None:
    assert raised(lambda: call(rushlight)) is raised(lambda: call(torch))
