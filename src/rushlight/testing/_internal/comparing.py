"""`assertEqual` of PyTorch's test cases: tensors, arrays, numbers and containers of them, more freely than `assert_close`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

import numpy as np

from rushlight.basics import dtypes
from rushlight.dispatch.named import named
from rushlight.tensor import Tensor
from rushlight.testing.closeness import assert_close

NUMBERS = (int, float, complex, np.number, np.bool_)
WORDS = (str, bytes)
Place = tuple[Any, ...]


def compared(x: object, y: object, place: Place, rules: dict[str, Any]) -> None:
    """Raise AssertionError where the two differ.  place: the keys that lead to them, for the message."""
    for one, other, where in pairs(x, y, place):
        try:
            alike(one, other, rules)
        except AssertionError as error:
            at = f"\n\nThe failure occurred for item {''.join(f'[{k!r}]' for k in where)}" if where else ""
            raise AssertionError(f"{error}{at}") from None


def pairs(x: Any, y: Any, place: Place) -> Iterator[tuple[Any, Any, Place]]:
    """What is to be compared: elements of sequences and mappings, else the two themselves."""
    x, y = (_listed(v) for v in (x, y))
    if isinstance(x, Mapping) and isinstance(y, Mapping):
        if set(x) != set(y):
            raise AssertionError(f"The keys of the mappings do not match:\n{list(x)}\n{list(y)}")
        for key in x:
            yield from pairs(x[key], y[key], (*place, key))
    elif sequence(x) and sequence(y):
        if len(x) != len(y):
            raise AssertionError(f"The length of the sequences mismatch: {len(x)} != {len(y)}")
        for i, (one, other) in enumerate(zip(x, y, strict=True)):
            yield from pairs(one, other, (*place, i))
    else:
        yield x, y, place


def _listed(x: Any) -> Any:
    """An array of words or objects, which no tensor can have, as a list; anything else as it is."""
    return x.tolist() if isinstance(x, np.ndarray) and x.dtype.kind in "OSU" else x


def sequence(x: object) -> bool:
    """Whether it is a sequence of things to be compared."""
    return isinstance(x, (Sequence, range)) and not isinstance(x, WORDS)


def alike(x: Any, y: Any, rules: dict[str, Any]) -> None:
    """Raise AssertionError unless two objects are equal, or close where they hold numbers."""
    tensors = [isinstance(v, (Tensor, np.ndarray)) for v in (x, y)]
    if any(tensors) and all(
        t or sequence(v) or isinstance(v, (*NUMBERS, bool)) for t, v in zip(tensors, (x, y), strict=True)
    ):
        _tensors(x, y, all(tensors), rules)
    elif isinstance(x, NUMBERS) and isinstance(y, NUMBERS) and not (isinstance(x, bool) and isinstance(y, bool)):
        _close(x, y, {**rules, "exact_dtype": False})
    elif isinstance(x, Set) and isinstance(y, Set):
        if x != y:
            raise AssertionError(f"Sets differ: {x!r} != {y!r}")
    elif type(x).__name__ == type(y).__name__ == "TypedStorage":
        alike(x.tolist(), y.tolist(), rules) if len(x) != len(y) else compared(x.tolist(), y.tolist(), (), rules)
    elif not _same(x, y):
        words = (
            "Booleans mismatch"
            if isinstance(x, bool)
            else "String comparison failed"
            if isinstance(x, str)
            else "Object comparison failed"
        )
        raise AssertionError(f"{words}: {x!r} != {y!r}")


def _same(x: object, y: object) -> bool:
    """Whether objects are equal that hold no numbers."""
    found = x == y
    return bool(found.all()) if isinstance(found, (Tensor, np.ndarray)) else bool(found)


def _tensors(x: object, y: object, both: bool, rules: dict[str, Any]) -> None:
    """Compare tensors, or one with what can be made one."""
    like = next(v for v in (x, y) if isinstance(v, (Tensor, np.ndarray)))
    x, y = (_tensor(v, like) for v in (x, y))
    if not both:
        rules = {**rules, "exact_dtype": False}
        if x.ndim != y.ndim and x.numel() == y.numel() == 1:
            x, y = x.reshape(()), y.reshape(())
    if x.is_sparse or y.is_sparse:
        if rules["exact_layout"] and x.layout is not y.layout:
            raise AssertionError(f"The values for attribute 'layout' do not match: {x.layout} != {y.layout}.")
        x, y = (v.to_dense() if v.is_sparse else v for v in (x, y))
    _close(x, y, rules)


def _tensor(value: object, like: object) -> Tensor:
    """A tensor of what may be compared with `like`."""
    if isinstance(value, Tensor):
        return value
    kind = like.dtype if isinstance(like, Tensor) and isinstance(value, Sequence) else None
    return named.as_tensor(value, dtype=kind if isinstance(kind, dtypes.dtype) else None)  # type: ignore[no-any-return]


def _close(x: Any, y: Any, rules: dict[str, Any]) -> None:
    """Raise AssertionError unless the two are close by the rules of a test case."""
    rtol, atol = rules["rtol"], rules["atol"]
    if rtol is None and atol is None:
        rtol, atol = _tolerances(x, y, rules["precision"], rules["rel_tol"])
    if isinstance(x, Tensor) and x._meta and y._meta:
        if x.shape != y.shape or (rules["exact_dtype"] and x.dtype is not y.dtype):
            raise AssertionError(f"Tensors on meta differ: {x.shape} {x.dtype} != {y.shape} {y.dtype}")
        return
    if not isinstance(x, Tensor):
        x, y = (v.item() if isinstance(v, (np.number, np.bool_)) else v for v in (x, y))
        x, y = (named.tensor(v, dtype=_widest(x, y)) for v in (x, y))
    assert_close(
        x, y, rtol=rtol or 0.0, atol=atol or 0.0, equal_nan=rules["equal_nan"], check_dtype=rules["exact_dtype"],
        check_device=rules["exact_device"], check_stride=rules["exact_stride"],
    )  # fmt: skip


def _widest(*numbers: object) -> object:
    """The dtype that Python numbers are compared in."""
    wide = {float: dtypes.float64, complex: dtypes.complex128}
    return dtypes.promote_types(*(wide.get(type(v)) or named.tensor(v).dtype for v in numbers))


_TOLERANCES = {"float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "complex64": (1.3e-6, 1e-5),
               "float64": (1e-7, 1e-7), "complex128": (1e-7, 1e-7)}  # fmt: skip


def _tolerances(x: object, y: object, precision: float, rel_tol: float) -> tuple[float, float]:
    """rtol and atol: the larger of the dtypes' and the test case's own."""
    kinds = [str(v.dtype).rpartition(".")[2] if isinstance(v, Tensor) else "float64" for v in (x, y)]
    found = [_TOLERANCES.get(kind, (0.0, 0.0)) for kind in kinds]
    if not any(isinstance(v, (float, complex, Tensor)) for v in (x, y)):
        found = [(0.0, 0.0)]
    return max(rel_tol, *(f[0] for f in found)), max(precision, *(f[1] for f in found))
