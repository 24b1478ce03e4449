"""autograd.functional gives what PyTorch's gives: values, structures, place in the graph, errors."""

from typing import Any

import pytest
from tests.parity.derivatives import check

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity


def x(t: Any) -> Any:
    return t.tensor([1.0, 2.0, 3.0])


def y(t: Any) -> Any:
    return t.tensor([2.0, 0.5, 1.0])


def xr(t: Any) -> Any:
    return t.tensor([1.0, 2.0, 3.0], requires_grad=True)


def v(t: Any) -> Any:
    return t.tensor([1.0, 0.0, 2.0])


def one(t: Any) -> Any:
    return t.tensor(1.0)


def square(a: Any) -> Any:
    return a * a


def two(a: Any, b: Any) -> Any:
    return a * b, a.sum()


def cube(a: Any) -> Any:
    return (a**3).sum()


def cube2(a: Any, b: Any) -> Any:
    return (a**2 * b).sum()


JACOBIAN = {
    "one": lambda t, F: F(square, x(t)),
    "several": lambda t, F: F(two, (x(t), y(t))),
    "create graph": lambda t, F: F(square, xr(t), create_graph=True),
    "of a leaf": lambda t, F: F(square, xr(t)),
    "vectorized": lambda t, F: F(two, (x(t), y(t)), vectorize=True),
    "vectorized graph": lambda t, F: F(square, xr(t), create_graph=True, vectorize=True),
    "independent": lambda t, F: F(lambda a: t.ones(3), x(t)),
    "independent vectorized": lambda t, F: F(lambda a: t.ones(3), x(t), vectorize=True),
    "independent strict": lambda t, F: F(lambda a: t.ones(3), x(t), strict=True),
    "one independent strict": lambda t, F: F(lambda a, b: a * 2, (x(t), y(t)), strict=True),
    "linear strict graph": lambda t, F: F(lambda a: a * 2, x(t), strict=True, create_graph=True),
    "vectorized strict": lambda t, F: F(square, x(t), vectorize=True, strict=True),
    "a list": lambda t, F: F(two, [x(t), y(t)]),
    "a number": lambda t, F: F(square, 3),
    "a number inside": lambda t, F: F(square, (x(t), 3)),
    "a number out": lambda t, F: F(lambda a: 3, x(t)),
    "a number among outputs": lambda t, F: F(lambda a: (a, 3), x(t)),
    "matrix": lambda t, F: F(lambda a: a @ a, t.tensor([[1.0, 2.0], [3.0, 4.0]])),
    "forward": lambda t, F: F(square, x(t), strategy="forward-mode", vectorize=True),
    "forward not vectorized": lambda t, F: F(square, x(t), strategy="forward-mode"),
    "forward strict": lambda t, F: F(square, x(t), strict=True, strategy="forward-mode", vectorize=True),
    "forward graph": lambda t, F: F(square, xr(t), create_graph=True, strategy="forward-mode", vectorize=True),
    "strategy": lambda t, F: F(square, x(t), strategy="fwd"),
    "complex": lambda t, F: F(lambda a: a * a.conj(), t.tensor([1 + 2j, 3 - 1j])),
}
HESSIAN = {
    "one": lambda t, F: F(cube, x(t)),
    "several": lambda t, F: F(cube2, (x(t), y(t))),
    "create graph": lambda t, F: F(cube, xr(t), create_graph=True),
    "of a leaf": lambda t, F: F(cube, xr(t)),
    "vectorized": lambda t, F: F(cube2, (x(t), y(t)), vectorize=True),
    "independent": lambda t, F: F(lambda a: one(t), x(t)),
    "independent strict": lambda t, F: F(lambda a: one(t), x(t), strict=True),
    "linear": lambda t, F: F(lambda a: a.sum(), x(t)),
    "linear strict": lambda t, F: F(lambda a: a.sum(), x(t), strict=True),
    "one linear strict": lambda t, F: F(lambda a, b: (a * a).sum() + b.sum(), (x(t), y(t)), strict=True),
    "no scalar": lambda t, F: F(square, x(t)),
    "one element": lambda t, F: F(lambda a: (a * a).sum().reshape(1, 1), x(t)),
    "a tuple out": lambda t, F: F(lambda a: (cube(a),), x(t)),
    "two out": lambda t, F: F(lambda a: (cube(a), cube(a)), x(t)),
    "strategy": lambda t, F: F(cube, x(t), outer_jacobian_strategy="xx"),
    "forward not vectorized": lambda t, F: F(cube, x(t), outer_jacobian_strategy="forward-mode"),
    "a number out": lambda t, F: F(lambda a: 3, x(t)),
    "a list": lambda t, F: F(cube2, [x(t), y(t)]),
}
VJP = {
    "one": lambda t, F: F(square, x(t), v(t)),
    "no vector": lambda t, F: F(square, x(t)),
    "no vector, two": lambda t, F: F(two, (x(t), y(t))),
    "scalar": lambda t, F: F(cube, x(t)),
    "several": lambda t, F: F(two, (x(t), y(t)), (v(t), one(t))),
    "too few": lambda t, F: F(two, (x(t), y(t)), (v(t),)),
    "shape": lambda t, F: F(square, x(t), t.ones(2)),
    "strict": lambda t, F: F(lambda a: t.ones(3), x(t), v(t), strict=True),
    "one strict": lambda t, F: F(lambda a, b: a * 2, (x(t), y(t)), v(t), strict=True),
    "one independent": lambda t, F: F(lambda a, b: a * 2, (x(t), y(t)), v(t)),
    "linear strict graph": lambda t, F: F(lambda a: a * 2, x(t), v(t), create_graph=True, strict=True),
    "graph": lambda t, F: F(square, xr(t), v(t), create_graph=True),
    "a number": lambda t, F: F(square, x(t), 3),
}
JVP = {
    "one": lambda t, F: F(square, x(t), v(t)),
    "no vector": lambda t, F: F(square, x(t)),
    "no vector for one": lambda t, F: F(square, x(t)[:1]),
    "several": lambda t, F: F(two, (x(t), y(t)), (v(t), v(t))),
    "too few": lambda t, F: F(two, (x(t), y(t)), (v(t),)),
    "shape": lambda t, F: F(two, (x(t), y(t)), (v(t), t.ones(2))),
    "strict": lambda t, F: F(lambda a: t.ones(3), x(t), v(t), strict=True),
    "one strict": lambda t, F: F(lambda a: (a, t.ones(3)), x(t), v(t), strict=True),
    "independent": lambda t, F: F(lambda a: t.ones(3), x(t), v(t)),
    "graph": lambda t, F: F(square, xr(t), v(t), create_graph=True),
    "linear strict graph": lambda t, F: F(lambda a: a * 2, xr(t), v(t), create_graph=True, strict=True),
}
PRODUCT = {
    "one": lambda t, F: F(cube, x(t), v(t)),
    "several": lambda t, F: F(cube2, (x(t), y(t)), (v(t), v(t))),
    "no vector": lambda t, F: F(cube, x(t)),
    "no vector for one": lambda t, F: F(cube, x(t)[:1]),
    "no scalar": lambda t, F: F(square, x(t), v(t)),
    "two out": lambda t, F: F(lambda a: (cube(a), cube(a)), x(t), v(t)),
    "a number out": lambda t, F: F(lambda a: 3, x(t), v(t)),
    "linear strict": lambda t, F: F(lambda a: a.sum(), x(t), v(t), strict=True),
    "linear": lambda t, F: F(lambda a: a.sum(), x(t), v(t)),
    "independent": lambda t, F: F(lambda a: one(t), x(t), v(t)),
    "independent strict": lambda t, F: F(lambda a: one(t), x(t), v(t), strict=True),
    "graph": lambda t, F: F(cube, xr(t), v(t), create_graph=True),
    "one independent strict": lambda t, F: F(lambda a, b: (a**3).sum(), (x(t), y(t)), (v(t), v(t)), strict=True),
    "shape": lambda t, F: F(cube, x(t), t.ones(2)),
}
ALL = {"jacobian": JACOBIAN, "hessian": HESSIAN, "vjp": VJP, "jvp": JVP, "vhp": PRODUCT, "hvp": PRODUCT}
CASES = {f"{name}: {what}": (name, case) for name, cases in ALL.items() for what, case in cases.items()}


@pytest.mark.parametrize("name", CASES)
def test_is_as_in_pytorch(name: str) -> None:
    function, case = CASES[name]
    words = "only implemented for `vectorize=True`" if "not vectorized" in name else None
    check(lambda t: case(t, getattr(t.autograd.functional, function)), torch, words)


def test_hessian_by_columns() -> None:
    """In PyTorch the result requires grad here, although create_graph is False."""
    check(
        lambda t: t.autograd.functional.hessian(cube, x(t), vectorize=True, outer_jacobian_strategy="forward-mode"),
        torch, graph=False,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["jacobian", "hessian", "hvp"])
def test_no_grad_outside_does_not_matter(name: str) -> None:
    def case(t: Any) -> Any:
        function = getattr(t.autograd.functional, name)
        with t.no_grad():
            if name == "hvp":
                return function(cube, x(t), v(t))
            return function(square if name == "jacobian" else cube, xr(t), create_graph=True)

    check(case, torch)
