"""torch._foreach_*: one operator on each tensor of a list, by the names that optimizers and averages of weights use.

They take a list (or tuple) of tensors, and for a second operand a list of as many tensors or numbers, or one number for
all. Results are tuples; the forms in place, with `_` at the end, return the list given. Each tensor is computed by the
operator itself: no list is copied into one block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rushlight.basics.dtypes import dtype
from rushlight.basics.foreign import kind_of
from rushlight.dispatch.call import check_cast
from rushlight.dispatch.declare import OPS
from rushlight.dispatch.keeping.shown import note
from rushlight.dispatch.named import linalg, named
from rushlight.ops.python import lists
from rushlight.tensor import Tensor, wrap

# Name: the keywords by which the second operand may be given.
_BINARY = {"add": ("scalar", "scalars", "other"), "sub": ("scalar", "scalars", "other"), "mul": ("scalar", "scalars", "other"),
           "div": ("scalar", "scalars", "other"), "pow": ("exponent",), "maximum": ("scalar", "scalars", "other"),
           "minimum": ("scalar", "scalars", "other"), "clamp_min": ("scalar", "scalars", "other"),
           "clamp_max": ("scalar", "scalars", "other")}  # fmt: skip
_BOUNDS = {"maximum": "clamp_min", "minimum": "clamp_max"}  # maximum of a number is clamp_min
_OVERLOADS = {"add": "Scalar List ScalarList Tensor", "mul": "Scalar List ScalarList Tensor",
              "div": "Scalar List ScalarList Tensor", "pow": "List Scalar ScalarList ScalarAndTensor",
              "addcmul": "Scalar ScalarList Tensor", "addcdiv": "Scalar ScalarList Tensor",
              "lerp": "List Scalar ScalarList", "norm": "Scalar", "powsum": "Scalar"}  # fmt: skip
_ABSENT: Any = object()


def overloads(name: str) -> list[str]:
    """The names of the overloads of `torch.ops.aten._foreach_*`."""
    short = name.removeprefix("_foreach_").removesuffix("_")
    known = _OVERLOADS.get(short, "Scalar List ScalarList" if short in _BINARY else "default").split()
    return [each for each in known if each != "ScalarAndTensor" or not name.endswith("_")]


def _listed(name: str, what: str, tensors: Sequence[Tensor] | int) -> list[Any]:
    """A list of tensors.  Raises TypeError for anything else, RuntimeError for none."""
    if not isinstance(tensors, list | tuple):
        raise TypeError(f"{name}: {what} must be a list or tuple of tensors, got {type(tensors).__name__}")
    if not tensors:
        raise RuntimeError(f"{name}: {what}: Tensor list must have at least one tensor.")
    for i, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name}: {what}: expected Tensor as element {i}, got {kind_of(tensor)}")
    return list(tensors)


def _beside(name: str, what: str, tensors: list[Any], given: object) -> list[Any]:
    """An operand for each tensor: of a list of tensors or numbers, or one for all.  Raises RuntimeError for other lengths."""
    if isinstance(given, Tensor) and given.ndim:
        raise RuntimeError(f"{name}: {what}: scalar tensor expected to be 0 dim but it has {given.ndim} dimensions: give a list of "
                           "tensors for one beside each")  # fmt: skip
    if isinstance(given, Tensor | int | float | complex):
        return [given] * len(tensors)
    if not isinstance(given, list | tuple):
        raise TypeError(f"{name}: {what} must be a number, or a list of numbers or tensors, got {type(given).__name__}")
    if len(given) != len(tensors):
        alike = "Tensor lists must have the same number of tensors" if given and isinstance(given[0], Tensor) else \
            "Tensor list must have same number of elements as scalar list"  # fmt: skip
        raise RuntimeError(f"{name}: {what}: {alike}, got {len(tensors)} and {len(given)}")
    return list(given)


def _one_keyword(name: str, first: object, keywords: dict[str, Any], allowed: Sequence[str]) -> Any:
    """An argument that goes by several names.  Raises TypeError where none or two are given, or another."""
    given = [keywords.pop(key) for key in allowed if key in keywords]
    given += [] if first is _ABSENT else [first]
    if keywords or len(given) != 1:
        raise TypeError(
            f"{name}: expected one of {', '.join(allowed)}, got {len(given)}, and of others {sorted(keywords)}"
        )
    return given[0]


def _finished(in_place: bool, tensors: Sequence[Tensor], results: list[Any]) -> Sequence[Tensor]:
    """The tuple of results, or in place the list that was given."""
    return tensors if in_place else tuple(results)


def _unary(name: str, in_place: bool) -> Callable[..., Any]:
    shown, method = f"_foreach_{name}{'_' * in_place}", name + "_" * in_place

    def each(self: Any) -> Sequence[Tensor]:
        return _finished(in_place, self, [getattr(t, method)() for t in _listed(shown, "self", self)])

    each.__doc__ = f"`{method}` of each tensor.  self: a list of (*)"
    return each


def _binary(name: str, in_place: bool) -> Callable[..., Any]:
    shown = f"_foreach_{name}{'_' * in_place}"

    def each(self: Any, other: Any = _ABSENT, *, alpha: float | None = None, **keywords: object) -> Sequence[Tensor]:
        if (
            name == "pow"
            and not in_place
            and (isinstance(self, int | float | complex) or getattr(self, "ndim", 1) == 0)
        ):
            exponents = _one_keyword(shown, other, keywords, _BINARY[name])
            return tuple(named.pow(self, t) for t in _listed(shown, "exponent", exponents))
        tensors = _listed(shown, "self", self)
        operands = _beside(shown, "other", tensors, _one_keyword(shown, other, keywords, _BINARY[name]))
        options = _alpha(shown, name, alpha, operands)
        if name == "mul" and in_place and other.__class__ is float and lists.multiply(tensors, other):
            return self
        results = []
        for tensor, operand in zip(tensors, operands, strict=True):
            method = name if isinstance(operand, Tensor) else _BOUNDS.get(name, name)
            results.append(_apply(tensor, method, in_place, operand, **options))
        if name in _BOUNDS and not isinstance(operands[0], Tensor):
            for result in results:
                note(result, scalars=operands)
        return _finished(in_place, self, results)

    each.__doc__ = f"`{name}` of each tensor and a number, or its element of a list of numbers or tensors."
    return each


def _alpha(shown: str, name: str, alpha: complex | None, operands: list[Any]) -> dict[str, Any]:
    """The keyword `alpha`, of sums of tensors alone."""
    if alpha is None:
        return {}
    if name not in ("add", "sub") or not isinstance(operands[0], Tensor):
        raise TypeError(f"{shown}: alpha goes with add and sub of tensors, not with numbers: multiply these")
    return {"alpha": alpha}


def _apply(tensor: Tensor, name: str, in_place: bool, *args: object, **options: object) -> Tensor:
    """An operator, or its form in place: its own, or a copy of the result into the tensor."""
    method = getattr(tensor, name + "_", None) if in_place else getattr(tensor, name)
    if method is not None:
        return method(*args, **options)
    found = getattr(tensor, name)(*args, **options)
    check_cast(f"_foreach_{name}_", found._array, tensor._array)
    return tensor.copy_(found)


def _lerp(in_place: bool) -> Callable[..., Any]:
    shown = f"_foreach_lerp{'_' * in_place}"

    def each(self: Any, tensors1: list[Tensor], weight: object = _ABSENT, **keywords: object) -> Sequence[Tensor]:
        """`lerp` of each tensor, its end and a weight: one number, or a list of numbers or tensors."""
        tensors = _listed(shown, "self", self)
        ends = _beside(shown, "tensors1", tensors, tensors1)
        weights = _beside(shown, "weight", tensors, _one_keyword(shown, weight, keywords, ("weight", "weights")))
        results = [_apply(t, "lerp", in_place, end, w) for t, end, w in zip(tensors, ends, weights, strict=True)]
        return _finished(in_place, self, results)

    return each


def _fused(name: str, in_place: bool) -> Callable[..., Any]:
    shown = f"_foreach_{name}{'_' * in_place}"

    def each(
        self: Any, tensor1: list[Tensor], tensor2: list[Tensor], scalars: object = _ABSENT, *, value: Any = _ABSENT
    ) -> Sequence[Tensor]:
        tensors = _listed(shown, "self", self)
        first, second = (_beside(shown, w, tensors, x) for w, x in (("tensor1", tensor1), ("tensor2", tensor2)))
        given = 1 if scalars is value is _ABSENT else scalars if value is _ABSENT else value
        factors = _beside(shown, "scalars", tensors, _unpacked(shown, given, len(tensors)))
        each_of = zip(tensors, first, second, factors, strict=True)
        return _finished(in_place, self, [_apply(t, name, in_place, a, b, value=f) for t, a, b, f in each_of])

    each.__doc__ = (
        f"`{name}` of each tensor and its two others, times one number or those of a list or of a 1-d tensor."
    )
    return each


def _unpacked(name: str, given: object, count: int) -> object:
    """The numbers of a vector of them; anything else as it is.  Raises RuntimeError for what is not one number each."""
    if not isinstance(given, Tensor):
        return given
    if given.ndim != 1:
        raise RuntimeError(f"{name}: Expected packed scalar Tensor to be of dimension 1. Got {given.ndim} instead")
    if len(given) != count:
        raise RuntimeError(
            f"{name}: Expected length of scalars to match input of length {count} but got {len(given)} instead"
        )
    return given.tolist()


def _norm(self: Any, ord: float = 2, dtype: dtype | None = None) -> tuple[Tensor, ...]:
    """The `ord`-norm of each tensor's elements.  self: a list of (*) -> a tuple of ()"""
    tensors = _listed("_foreach_norm", "self", self)
    found = lists.norms(tensors) if ord == 2 and dtype is None else None
    if found is not None:
        return tuple(wrap(np.asarray(norm)) for norm in found)
    return tuple(linalg.vector_norm(t, ord, dtype=dtype) for t in tensors)


def _powsum(self: Any, ord: int = 2, dtype: object = None) -> tuple[Tensor, ...]:
    """The sum of each tensor's absolute values to the power `ord`.  self: a list of (*) -> a tuple of ()"""
    return tuple(t.abs().pow(ord).sum(dtype=dtype) for t in _listed("_foreach_powsum", "self", self))


def _max(self: Any) -> tuple[Tensor, ...]:
    """The largest element of each tensor.  self: a list of (*) -> a tuple of ()"""
    return tuple(t.max() for t in _listed("_foreach_max", "self", self))


def _mm(self: Any, mat2: list[Tensor]) -> tuple[Tensor, ...]:
    """The product of each matrix and its other.  self: a list of (N, K), mat2: of (K, M) -> a tuple of (N, M)"""
    tensors = _listed("_foreach_mm", "self", self)
    return tuple(a @ b for a, b in zip(tensors, _beside("_foreach_mm", "mat2", tensors, mat2), strict=True))


def _clone(self: Any, *, memory_format: object = None) -> tuple[Tensor, ...]:
    """A copy of each tensor.  self: a list of (*)"""
    return tuple(t.clone(memory_format=memory_format) for t in _listed("_foreach_clone", "self", self))


def _copy(self: Any, src: list[Tensor], non_blocking: bool = False) -> list[Tensor]:
    """Copy the tensors of `src` into those of `self`, which is returned.  self, src: lists of (*)"""
    tensors = _listed("_foreach_copy_", "self", self)
    for tensor, source in zip(tensors, _beside("_foreach_copy_", "src", tensors, src), strict=True):
        tensor.copy_(source)
    return self


def _zero(self: Any) -> Sequence[Tensor]:
    """Set each tensor to zeros, and return the list.  self: a list of (*)"""
    return _finished(True, self, [t.zero_() for t in _listed("_foreach_zero_", "self", self)])


def _table() -> dict[str, Callable[..., Any]]:
    """All functions by their public names."""
    made: dict[str, Callable[..., Any]] = {"norm": _norm, "powsum": _powsum, "max": _max, "mm": _mm, "clone": _clone,
                                           "copy_": _copy, "zero_": _zero}  # fmt: skip
    for in_place in (False, True):
        end = "_" * in_place
        made |= {op.name + end: _unary(op.name, in_place) for op in OPS.values() if op.foreach}
        made |= {name + end: _binary(name, in_place) for name in _BINARY}
        made |= {name + end: _fused(name, in_place) for name in ("addcmul", "addcdiv")}
        made["lerp" + end] = _lerp(in_place)
    table = {f"_foreach_{name}": fn for name, fn in made.items()}
    for name, fn in table.items():
        fn.__name__ = fn.__qualname__ = name
    return table


globals().update(_table())
