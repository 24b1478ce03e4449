"""torch._foreach_*: the values, classes of results and errors of PyTorch."""

from collections.abc import Callable
from typing import Any

import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

UNARY = sorted(n for n in dir(torch) if n.startswith("_foreach_") and n not in (
    "_foreach_copy_", "_foreach_mm", "_foreach_clone") and not any(w in n for w in (
    "add", "sub", "mul", "div", "pow", "maximum", "minimum", "clamp", "lerp")))  # fmt: skip
BINARY = ["add", "sub", "mul", "div", "pow", "maximum", "minimum", "clamp_min", "clamp_max"]


def lists(t: Any) -> tuple[list[Any], list[Any]]:
    return [t.tensor([0.25, 0.5]), t.tensor([[0.75]])], [t.tensor([2.0, 0.1]), t.tensor([[3.0]])]


CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    **{f"{n} {end}": lambda t, a, b, n=n, end=end: getattr(t, f"_foreach_{n}{end}")(a, b)
       for n in BINARY for end in ("", "_")},
    **{f"{n} {end} number": lambda t, a, b, n=n, end=end: getattr(t, f"_foreach_{n}{end}")(a, 0.5)
       for n in BINARY for end in ("", "_")},
    **{f"{n} {end} numbers": lambda t, a, b, n=n, end=end: getattr(t, f"_foreach_{n}{end}")(a, [0.5, 2])
       for n in BINARY for end in ("", "_")},
    **{f"{n} tensor": lambda t, a, b, n=n: getattr(t, f"_foreach_{n}")(a, t.tensor(2.0)) for n in ("add", "mul", "div")},
    "alpha": lambda t, a, b: t._foreach_add(a, b, alpha=2), "alpha in place": lambda t, a, b: t._foreach_sub_(a, b, alpha=2),
    "scalar=": lambda t, a, b: t._foreach_add(a, scalar=2), "scalars=": lambda t, a, b: t._foreach_mul(a, scalars=[1, 2]),
    "other=": lambda t, a, b: t._foreach_div(self=a, other=b), "exponent=": lambda t, a, b: t._foreach_pow(a, exponent=2),
    "number to powers": lambda t, a, b: t._foreach_pow(2.0, a), "tuple": lambda t, a, b: t._foreach_add(tuple(a), 1),
    "lerp": lambda t, a, b: t._foreach_lerp(a, b, 0.3), "lerp_": lambda t, a, b: t._foreach_lerp_(a, b, weight=0.3),
    "lerp numbers": lambda t, a, b: t._foreach_lerp(a, b, [0.3, 0.4]), "lerp tensors": lambda t, a, b: t._foreach_lerp(a, b, a),
    "weights=": lambda t, a, b: t._foreach_lerp(a, tensors1=b, weights=a),
    **{f"{n}{end}": lambda t, a, b, n=n, end=end: getattr(t, f"_foreach_{n}{end}")(a, b, a)
       for n in ("addcmul", "addcdiv") for end in ("", "_")},
    "value=": lambda t, a, b: t._foreach_addcmul(a, a, b, value=2), "value": lambda t, a, b: t._foreach_addcdiv_(a, a, b, 2),
    "values": lambda t, a, b: t._foreach_addcmul(a, a, b, [1, 2]),
    "values in a tensor": lambda t, a, b: t._foreach_addcmul(a, a, b, t.tensor([1.0, 2.0])),
    "norm": lambda t, a, b: t._foreach_norm(a), "norm 1": lambda t, a, b: t._foreach_norm(a, 1),
    "norm inf": lambda t, a, b: t._foreach_norm(a, ord=float("inf"), dtype=t.float64),
    "powsum": lambda t, a, b: t._foreach_powsum(a, 3), "copy_": lambda t, a, b: t._foreach_copy_(a, b),
    "clone": lambda t, a, b: t._foreach_clone(a), "mm": lambda t, a, b: t._foreach_mm([t.eye(2)], [t.ones(2, 2)]),
    "other lengths": lambda t, a, b: t._foreach_add(a, b[:1]), "none": lambda t, a, b: t._foreach_sqrt([]),
    "no list": lambda t, a, b: t._foreach_sqrt(3), "no tensors": lambda t, a, b: t._foreach_add([1, 2], 1),
    "string": lambda t, a, b: t._foreach_mul(a, "a"), "alpha of a number": lambda t, a, b: t._foreach_add(a, 1, alpha=2),
    "integers": lambda t, a, b: t._foreach_div([t.tensor([1, 2])], 2),
    "integers in place": lambda t, a, b: t._foreach_add_([t.tensor([1, 2])], 2.5),
    **{n: lambda t, a, b, n=n: getattr(t, n)(a) for n in UNARY},
}  # fmt: skip


def outcome(lib: Any, call: Any) -> Any:
    a, b = lists(lib)
    try:
        found = call(lib, a, b)
    except (RuntimeError, TypeError) as error:
        return type(error)
    values = [[round(v, 5) for v in x.double().flatten().tolist()] for x in found]
    return (
        type(found),
        found is a,
        values,
        [str(x.dtype).split(".")[-1] for x in found],
        [x.flatten().tolist() == y.flatten().tolist() for x, y in zip(a, lists(lib)[0])],
    )


@pytest.mark.parametrize("name", CALLS)
def test_as_pytorch(name: str) -> None:
    assert outcome(rushlight, CALLS[name]) == outcome(torch, CALLS[name])


def test_all_of_pytorchs_are_there_and_no_other() -> None:
    for name in (n for n in dir(torch) if n.startswith("_foreach_")):
        assert callable(getattr(rushlight, name)) and getattr(rushlight, name).__doc__, name
    assert not hasattr(rushlight, "_foreach_nonsense")


def test_gradients_flow_through() -> None:
    x = rushlight.tensor([1.0, 2.0], requires_grad=True)
    rushlight._foreach_mul([x], 3.0)[0].sum().backward()
    assert x.grad is not None and x.grad.tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        rushlight._foreach_mul_([x], 3.0)


@pytest.mark.parametrize("name", ["_foreach_maximum_", "_foreach_minimum_"])
def test_fractions_are_not_written_into_integers(name: str) -> None:
    for lib in (rushlight, torch):
        x = lib.arange(3)
        with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
            getattr(lib, name)([x], [lib.full((3,), 1.5)])
        assert x.tolist() == [0, 1, 2]
