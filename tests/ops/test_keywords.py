"""Methods take the keywords, forms and orders of arguments that PyTorch's take."""

import inspect
import warnings
from typing import Any

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

# Keywords that PyTorch's own parser does not take either, of other devices, or of functions whose names only the
# compiler knows: (method, keyword).
NOT_TAKEN = {
    ("copy_", "other"), ("resize", "memory_format"), ("resize_as", "memory_format"), ("resize_as", "the_template"),
    ("split", "separator"), ("split", "max"), ("split", "split_sizes"), ("sort", "reverse"), ("add_", "b"),
    ("addmm", "out_dtype"), ("baddbmm", "out_dtype"), ("bmm", "out_dtype"), ("mm", "out_dtype"), ("is_pinned", "device"),
}  # fmt: skip


def wanted(name: str) -> set[str]:
    """The keywords of a method by PyTorch's schemas, those with names of dimensions, `out` and generators left out."""
    found: set[str] = set()
    for schema in torch._C._jit_get_schemas_for_operator(f"aten::{name}"):
        named = "Dimname" in str(schema) or "dimname" in schema.overload_name or schema.overload_name == "names"
        if named or schema.overload_name.endswith("out") or not schema.arguments or schema.arguments[0].name != "self":
            continue
        if any(a.is_out for a in schema.arguments):
            continue
        found |= {a.name for a in schema.arguments[1:]} - {"out", "generator", "names"}
    return found


METHODS = [
    name
    for name in sorted(dir(torch.Tensor))
    if not name.startswith("_") and callable(getattr(rushlight.Tensor, name, None))
]


@pytest.mark.parametrize("name", METHODS)
def test_keywords_of_methods(name: str) -> None:
    try:
        parameters = inspect.signature(getattr(rushlight.Tensor, name)).parameters
    except ValueError:
        pytest.skip("has no signature")
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return  # what it takes is found out when it is called
    missing = {key for key in wanted(name) - set(parameters) if (name, key) not in NOT_TAKEN}
    assert not missing


def test_split_by_keyword() -> None:
    x = rushlight.arange(5.0)
    assert [p.tolist() for p in x.split(split_size=2)] == [[0, 1], [2, 3], [4]]
    assert [p.tolist() for p in x.split(split_size=[1, 4], dim=0)] == [[0], [1, 2, 3, 4]]
    assert [p.tolist() for p in rushlight.split(x, split_size_or_sections=3)] == [[0, 1, 2], [3, 4]]


SEVERAL = {"linalg.eig": 1, "linalg.eigh": 1, "linalg.slogdet": 1, "linalg.inv_ex": 1, "linalg.cholesky_ex": 1, "linalg.qr": 1,
           "linalg.svd": 1, "linalg.lu": 1, "linalg.lu_factor": 1, "linalg.lu_factor_ex": 1, "linalg.ldl_factor": 1,
           "linalg.ldl_factor_ex": 1, "slogdet": 1, "svd": 1, "qr": 1, "geqrf": 1, "linalg.lstsq": 2, "linalg.solve_ex": 2,
           "triangular_solve": 2, "lu_unpack": 0}  # fmt: skip


def named(lib: Any, name: str) -> Any:
    for part in name.split("."):
        lib = getattr(lib, part)
    return lib


@pytest.mark.filterwarnings("ignore:.*deprecated")
@pytest.mark.parametrize("name", SEVERAL)
def test_several_results_into_out(name: str) -> None:
    shapes = []
    for lib in (rushlight, torch):
        a, b = lib.tensor([[4.0, 1.0], [1.0, 3.0]]), lib.tensor([[1.0], [2.0]])
        args = lib.linalg.lu_factor(a) if name == "lu_unpack" else ((b, a) if name == "triangular_solve" else (a, b))
        args = tuple(args)[: SEVERAL[name] or 2]
        reference = named(lib, name)(*args)
        out = tuple(lib.empty(0, dtype=x.dtype) for x in reference)
        found = named(lib, name)(*args, out=out)
        assert all(x is y for x, y in zip(found, out, strict=True))
        for x, y in zip(out, reference, strict=True):
            # PyTorch's own lstsq differs in the last bits from call to call (by where its buffers begin); ours does not
            np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-7 if lib is rushlight else 1e-5)
        shapes.append([tuple(x.shape) for x in out])
    assert shapes[0] == shapes[1]
    with pytest.raises(TypeError, match="must be a tuple"):
        named(rushlight, name)(*[rushlight.tensor(x.numpy()) for x in args], out=rushlight.empty(0))


OLD = ["t.addcmul(x, 2, x, y)", "t.addcdiv(x, 2, x, y)", "x.addcmul(2, x, y)", "x.addcmul_(2, y, y)", "x.addcdiv_(2, y, y)",
       "t.addmm(2, x, 3, x, y)", "t.addmm(2, x, x, y)", "x.addmm(2, x, y)", "x.addmm(2, 3, x, y)", "x.addmm_(2, 3, y, y)",
       "t.addmv(2, x[0], 3, x, y[0])", "x.addr(2, x[0], y[0])", "t.addr(2, x, 3, x[0], y[0])", "x.clone().addr_(2, y[0], y[0])",
       "x.addbmm_(2, y[None], y[None])", "t.addbmm(2, x, 3, y[None], y[None])", "x[None].baddbmm_(2, y[None], y[None])",
       "t.baddbmm(2, x[None], 3, x[None], y[None])", "t.add(x, 2, y)", "x.add(2, y)", "x.add_(0.5, y)", "x.sub(2, y)", "x.sub_(2, y)",
       "t.sub(x, 2, y)", "x.mul_(2).add_(0.5, y)"]  # fmt: skip


@pytest.mark.parametrize("call", OLD)
def test_numbers_between_the_tensors_are_deprecated(call: str) -> None:
    results = []
    for lib in (rushlight, torch):
        scope = {"t": lib, "x": lib.tensor([[1.0, 2.0], [3.0, 4.0]]), "y": lib.tensor([[0.5, 1.0], [2.0, -1.0]])}
        if lib is torch:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                results.append(eval(call, scope).tolist())
        else:
            with pytest.warns(UserWarning, match="numbers between the tensors are deprecated"):
                results.append(eval(call, scope).tolist())
    assert results[0] == results[1]


def test_other_numbers_of_arguments_are_refused() -> None:
    x = rushlight.ones(2, 2)
    for call in (lambda: rushlight.addmm(x, x, x, x), lambda: x.addcmul(x, x, 3), lambda: x.addcdiv(1, 2, x, x),
                 lambda: x.add(x, 2), lambda: x.add_(x, x), lambda: x.add(2, x, x)):  # fmt: skip
        with pytest.raises(TypeError, match="invalid combination of arguments"):
            call()


def test_what_is_not_taken_is_refused() -> None:
    x = rushlight.ones(2)
    for call in (lambda: rushlight.add(x1=x, x2=x), lambda: rushlight.add(x, 2, x, x)):
        with pytest.raises(TypeError):
            call()
