"""``assert_close``: whether two trees of tensors, arrays and numbers agree, with what to know where they do not.

First the two trees are laid beside each other, then the pairs of their leaves are compared in order; the first that
differs is reported.
"""

from __future__ import annotations

import cmath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.basics import dtypes
from rushlight.basics.caller import warn
from rushlight.dispatch.named import named
from rushlight.tensor import Tensor, sparse_coo, strided, wrap

if TYPE_CHECKING:
    from rushlight.sparse.tensor import Sparse

__all__ = ["assert_allclose", "assert_close"]

# (rtol, atol); other dtypes have to be equal.
TOLERANCES = {
    dtypes.float16: (1e-3, 1e-5), dtypes.bfloat16: (1.6e-2, 1e-5), dtypes.float32: (1.3e-6, 1e-5),
    dtypes.float64: (1e-7, 1e-7), dtypes.complex64: (1.3e-6, 1e-5), dtypes.complex128: (1e-7, 1e-7),
}  # fmt: skip
_NUMBERS = {int: dtypes.int64, float: dtypes.float64, complex: dtypes.complex128}


@dataclass(frozen=True)
class Rules:
    """What counts as close, and what else has to agree."""

    rtol: float | None
    atol: float | None
    equal_nan: bool
    allow_subclasses: bool
    check_device: bool
    check_dtype: bool
    check_layout: bool
    check_stride: bool

    def tolerances(self, *kinds: Any) -> tuple[float, float]:
        """rtol and atol: those given, else the largest of the dtypes compared."""
        if self.rtol is not None and self.atol is not None:
            return self.rtol, self.atol
        defaults = [TOLERANCES.get(kind, (0.0, 0.0)) for kind in kinds]
        return max(rtol for rtol, _ in defaults), max(atol for _, atol in defaults)


def assert_close(
    actual: object,
    expected: object,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raises AssertionError unless |actual - expected| <= atol + rtol * |expected| for all elements.

    actual, expected: tensors, arrays, numbers or None, or sequences and mappings of these; the shapes must be equal. Infinite
    elements must be equal, and NaN differs from itself unless `equal_nan`. The default tolerances follow from the dtype:

    | dtype | rtol | atol |
    | --- | --- | --- |
    | float16 | 1e-3 | 1e-5 |
    | bfloat16 | 1.6e-2 | 1e-5 |
    | float32, complex64 | 1.3e-6 | 1e-5 |
    | float64, complex128, Python's float and complex | 1e-7 | 1e-7 |
    | others | 0 | 0 |

    msg: the message to raise with, or a function of the message that would be raised with.
    Raises ValueError where one tolerance alone is given, TypeError for inputs whose types do not go together.

    >>> import rushlight as torch
    >>> torch.testing.assert_close(torch.tensor([1.0, 2.0]) / 3, torch.tensor([0.333333, 0.666667]))
    >>> torch.testing.assert_close({"a": torch.tensor([1.0, 2.0])}, {"a": torch.tensor([1.0, 4.0])})
    Traceback (most recent call last):
        ...
    AssertionError: Tensor-likes are not close!
    <BLANKLINE>
    Mismatched elements: 1 / 2 (50.0%)
    Greatest absolute difference: 2.0 at index (1,) (up to 1e-05 allowed)
    Greatest relative difference: 0.5 at index (1,) (up to 1.3e-06 allowed)
    <BLANKLINE>
    The failure occurred for item ['a']
    """
    __tracebackhide__ = True
    if (rtol is None) != (atol is None):
        missing = "rtol" if rtol is None else "atol"
        raise ValueError(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}.")
    rules = Rules(rtol, atol, equal_nan, allow_subclasses, check_device, check_dtype, check_layout, check_stride)
    for compare, one, other, path in list(_pairs(actual, expected, rules, ())):
        found = compare(one, other, rules)
        if found is not None:
            generated = found + _place(path)
            raise AssertionError(msg(generated) if callable(msg) else generated if msg is None else msg)


# Those of assert_allclose, which are older and wider.
OLD_TOLERANCES = {
    dtypes.float16: (1e-3, 1e-3), dtypes.float32: (1e-4, 1e-5), dtypes.float64: (1e-5, 1e-8),
}  # fmt: skip


def assert_allclose(
    actual: object,
    expected: object,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """`assert_close` with the wider tolerances that it had before, for any dtypes; NaN equals itself.  Deprecated.

    actual, expected: tensors, or what `torch.tensor` makes one of. Without rtol and atol they are 1e-4 and 1e-5 for float32,
    1e-5 and 1e-8 for float64, 1e-3 and 1e-3 for float16, 0 for others, the larger of both dtypes. Raises AssertionError.
    """
    __tracebackhide__ = True
    warn("torch.testing.assert_allclose is deprecated: use torch.testing.assert_close, with check_dtype=False and "
                  "rtol and atol where you need the wider tolerances", FutureWarning)  # fmt: skip
    one, other = (x if isinstance(x, Tensor) else named.tensor(x) for x in (actual, expected))
    if rtol is None and atol is None:
        defaults = [OLD_TOLERANCES.get(x.dtype, (0.0, 0.0)) for x in (one, other)]
        rtol, atol = max(rtol for rtol, _ in defaults), max(atol for _, atol in defaults)
    assert_close(one, other, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)


def _place(path: tuple[Any, ...]) -> str:
    return f"\n\nThe failure occurred for item {''.join(f'[{key!r}]' for key in path)}" if path else ""


Compare = Callable[[Any, Any, Rules], str | None]
Pair = tuple[Compare, Any, Any, tuple[Any, ...]]


def _pairs(actual: Any, expected: Any, rules: Rules, path: tuple[Any, ...]) -> Iterator[Pair]:
    """The leaves of both trees beside each other, each pair with what compares it and its place in the trees.

    Raises AssertionError where the trees differ in shape, TypeError for leaves that cannot be compared.
    """
    if _both(actual, expected, Sequence) and not isinstance(actual, str) and not isinstance(expected, str):
        keys: Any = range(_common_length(actual, expected, path))
    elif _both(actual, expected, Mapping):
        keys = _common_keys(actual, expected, path)
    else:
        yield _comparison(actual, expected, rules, path), actual, expected, path
        return
    for key in keys:
        yield from _pairs(actual[key], expected[key], rules, (*path, key))


def _both(actual: object, expected: object, kind: type | tuple[type, ...]) -> bool:
    return isinstance(actual, kind) and isinstance(expected, kind)


def _common_length(actual: Sized, expected: Sized, path: tuple[Any, ...]) -> int:
    if len(actual) != len(expected):
        text = f"The length of the sequences mismatch: {len(actual)} != {len(expected)}"
        raise AssertionError(text + _place(path))
    return len(actual)


def _common_keys(actual: Mapping[Any, Any], expected: Mapping[Any, Any], path: tuple[Any, ...]) -> list[Any]:
    lacks, more = _in_order(set(expected) - set(actual)), _in_order(set(actual) - set(expected))
    if lacks or more:
        lines = ["The keys of the mappings do not match:"]
        lines += [f"Missing keys in the actual mapping: {lacks}"] if lacks else []
        lines += [f"Additional keys in the actual mapping: {more}"] if more else []
        raise AssertionError("\n".join(lines) + _place(path))
    return _in_order(expected)


def _in_order(keys: Iterable[Any]) -> list[Any]:
    try:
        return sorted(keys)
    except TypeError:
        return list(keys)


def _comparison(actual: object, expected: object, rules: Rules, path: tuple[Any, ...]) -> Compare:
    """What compares two leaves.  Raises TypeError where nothing does."""
    if actual is None or expected is None:
        return _compare_nones
    if _both(actual, expected, (bool, np.bool_)):
        return _compare_bools
    if _both(actual, expected, (int, float, complex, np.number)):
        return _compare_numbers
    kinds = actual.__class__, expected.__class__  # what tensors with bits say that they are
    related = isinstance(actual, kinds[1]) or isinstance(expected, kinds[0])
    same = kinds[0] is kinds[1]
    if _both(actual, expected, (Tensor, np.ndarray)) and (same or (related and rules.allow_subclasses)):
        return _compare_tensors
    raise TypeError(f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}."
                    + _place(path))  # fmt: skip


def _compare_nones(actual: object, expected: object, rules: Rules) -> str | None:
    return None if actual is expected else f"None mismatch: {actual} is not {expected}"


def _compare_bools(actual: object, expected: object, rules: Rules) -> str | None:
    return None if actual == expected else f"Booleans mismatch: {actual} is not {expected}"


def _compare_numbers(actual: complex | np.number[Any], expected: complex | np.number[Any], rules: Rules) -> str | None:
    a, e = (x.item() if isinstance(x, np.number) else x for x in (actual, expected))
    if rules.check_dtype and type(a) is not type(e):
        return f"The (d)types do not match: {type(a)} != {type(e)}."
    rtol, atol = rules.tolerances(*(_NUMBERS.get(type(x)) for x in (a, e)))
    if a == e or (rules.equal_nan and cmath.isnan(a) and cmath.isnan(e)):
        return None
    difference = abs(a - e)
    if cmath.isfinite(e) and difference <= atol + rtol * abs(e) and difference != cmath.inf:
        return None
    return _scalars(a, e, difference, difference / abs(e) if e else cmath.inf, rtol, atol)


def _scalars(actual: complex, expected: complex, absolute: float, relative: float, rtol: float, atol: float) -> str:
    word, up_to = _allowed(rtol, atol)
    return (
        f"Scalars are not {word}!\n\nExpected {expected} but got {actual}.\n"
        f"Absolute difference: {absolute}{up_to(atol)}\nRelative difference: {relative}{up_to(rtol)}"
    )


def _allowed(rtol: float, atol: float) -> tuple[str, Callable[[float], str]]:
    """Whether values shall be equal or close, and how messages say how close."""
    if rtol == atol == 0:
        return "equal", lambda tolerance: ""
    return "close", lambda tolerance: f" (up to {tolerance} allowed)"


def _compare_tensors(actual: Tensor, expected: Tensor, rules: Rules) -> str | None:
    a: Any
    e: Any
    a, e = (x.detach() if isinstance(x, Tensor) else wrap(x) for x in (actual, expected))
    checks: tuple[tuple[str, bool, Callable[[Any], Any]], ...] = (
        ("shape", True, lambda t: t.shape),
        ("layout", rules.check_layout, lambda t: t.layout),
        ("device", rules.check_device, lambda t: t.device),
        ("dtype", rules.check_dtype, lambda t: t.dtype),
        ("stride()", rules.check_stride, lambda t: t.stride()),
    )
    for name, wanted, get in checks:
        if wanted and get(a) != get(e):
            return f"The values for attribute '{name}' do not match: {get(a)} != {get(e)}."
    if a.is_meta or e.is_meta:  # there are no values
        return None
    if a.layout is not strided or e.layout is not strided:
        if a.layout is e.layout:
            return _compare_sparse(a, e, rules)
        a, e = (t if t.layout is strided else t.to_dense() for t in (a, e))
    rtol, atol = rules.tolerances(a.dtype, e.dtype)
    return _compare_values(*_of_one_dtype(a, e), rtol, atol, rules.equal_nan)


def _compare_sparse(a: Sparse, e: Sparse, rules: Rules) -> str | None:
    """Two sparse tensors of one layout: how many elements are there, where, and which."""
    kind = str(a.layout).rpartition("_")[2].upper()
    if a.layout is sparse_coo:
        a, e = a.coalesce(), e.coalesce()
    if a._nnz() != e._nnz():
        return f"The number of specified values in sparse {kind} tensors does not match: {a._nnz()} != {e._nnz()}"
    for name in a._named_places():
        found = _compare_values(getattr(a, name)(), getattr(e, name)(), 0.0, 0.0, False)
        if found is not None:
            return found.replace("Tensor-likes", f"Sparse {kind} {name}")
    found = _compare_values(
        *_of_one_dtype(a.values(), e.values()), *rules.tolerances(a.dtype, e.dtype), rules.equal_nan
    )
    return found and found.replace("Tensor-likes", f"Sparse {kind} values")


def _of_one_dtype(a: Tensor, e: Tensor) -> tuple[Any, Any]:
    """Both in their common dtype, integers and bools in int64, where differences fit."""
    kind = dtypes.promote_types(_wide_enough(a, e), _wide_enough(e, a))
    if not kind.is_floating_point and not kind.is_complex:
        kind = dtypes.int64
    return a.to(kind), e.to(kind)


def _wide_enough(x: Tensor, other: Tensor) -> dtypes.dtype:
    """The dtype, int64 in place of unsigned ones that have no common one with another; float64 where numbers are beyond it."""
    if x.dtype not in dtypes.WIDE or x.dtype is other.dtype:
        return x.dtype
    beyond = x.dtype is dtypes.uint64 and bool((x.to(dtypes.int64) < 0).any())
    return dtypes.float64 if beyond else dtypes.int64


def _compare_values(a: Tensor, e: Tensor, rtol: float, atol: float, equal_nan: bool) -> str | None:
    close = named.isclose(a, e, rtol=rtol, atol=atol, equal_nan=equal_nan)
    if bool(close.all()):
        return None
    difference = (a - e).abs()
    relative = difference / e.abs()
    if a.ndim == 0:
        return _scalars(a.item(), e.item(), difference.item(), relative.item(), rtol, atol)
    return tensors_differ(difference, relative, close, rtol, atol)


def tensors_differ(difference: Tensor, relative: Tensor, close: Tensor, rtol: float, atol: float) -> str:
    """What there is to say of tensors that are not close everywhere."""
    word, up_to = _allowed(rtol, atol)
    wrong, total = int((~close).sum()), close.numel()
    return (
        f"Tensor-likes are not {word}!\n\nMismatched elements: {wrong} / {total} ({wrong / total:.1%})\n"
        f"Greatest absolute difference: {_greatest(difference, close)}{up_to(atol)}\n"
        f"Greatest relative difference: {_greatest(relative, close)}{up_to(rtol)}"
    )


def _greatest(differences: Tensor, close: Tensor) -> str:
    """The greatest difference among the elements that are not close, and its index."""
    flat = differences.masked_fill(close, 0).flatten()
    at = int(flat.argmax())
    index = tuple(int(i) for i in np.unravel_index(at, differences.shape))
    return f"{flat[at].item()} at index {index}"
