"""Pairs of values that are compared, as `assert_close` is made of them: for those who compare other things, too.

A pair is made of two values, or raises UnsupportedInputs where it is not for them; `compare` raises ErrorMeta where they
differ, which knows its place in the two trees.
"""

from __future__ import annotations

import abc
import cmath
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from rushlight.basics import dtypes
from rushlight.dispatch.named import named
from rushlight.tensor import Tensor
from rushlight.testing import closeness
from rushlight.testing.closeness import TOLERANCES, Rules
from rushlight.testing.closeness import assert_allclose as assert_allclose
from rushlight.testing.closeness import assert_close as assert_close

Identifier = str | Callable[[str], str] | None
Place = tuple[Any, ...]


def _unwrap_dtensor_for_comparison(actual: Any, expected: Any) -> tuple[Any, Any]:
    """The two as they are: there are no tensors in shards whose whole would be compared."""
    return actual, expected


class ErrorMeta(Exception):
    """An error and where it is: `to_error` makes it."""

    def __init__(self, type: type[Exception], msg: str, *, id: Place = ()) -> None:
        super().__init__("An ErrorMeta is no error to show: raise what its to_error() returns")
        self.type, self.msg, self.id = type, msg, id

    def to_error(self, msg: str | Callable[[str], str] | None = None) -> Exception:
        """The error, with another message, or one made of the message that it has."""
        if not isinstance(msg, str):
            generated = self.msg + closeness._place(self.id)
            msg = msg(generated) if callable(msg) else generated
        return self.type(msg)


class UnsupportedInputs(Exception):
    """That a pair is not for these values."""


def default_tolerances(
    *inputs: Tensor | dtypes.dtype, dtype_precisions: dict[dtypes.dtype, tuple[float, float]] | None = None
) -> tuple[float, float]:
    """The largest rtol and atol of these tensors' dtypes.  Raises TypeError for what is neither tensor nor dtype."""
    kinds = []
    for given in inputs:
        if not isinstance(given, (Tensor, dtypes.dtype)):
            raise TypeError(f"Expected a torch.Tensor or a torch.dtype, but got {type(given)} instead.")
        kinds.append(given.dtype if isinstance(given, Tensor) else given)
    known: Mapping[Any, tuple[float, float]] = dtype_precisions or TOLERANCES
    found = [known.get(kind, (0.0, 0.0)) for kind in kinds]
    return max(rtol for rtol, _ in found), max(atol for _, atol in found)


def get_tolerances(
    *inputs: Tensor | dtypes.dtype, rtol: float | None, atol: float | None, id: Place = ()
) -> tuple[float, float]:
    """Those given, or those of the dtypes.  Raises ErrorMeta where one alone is given."""
    if rtol is not None and atol is not None:
        return rtol, atol
    if rtol is None and atol is None:
        return default_tolerances(*inputs)
    missing = "rtol" if rtol is None else "atol"
    raise ErrorMeta(
        ValueError, f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}.", id=id
    )


def _called(text: str, default: str, identifier: Identifier) -> str:
    """A message with another name for what it is of."""
    name = identifier(default) if callable(identifier) else identifier
    return text if name is None else text.replace(default, name, 1)


def make_scalar_mismatch_msg(
    actual: complex, expected: complex, *, rtol: float, atol: float, identifier: Identifier = None
) -> str:
    """What there is to say of two numbers that are not close."""
    difference = abs(actual - expected)
    relative = difference / abs(expected) if expected else cmath.inf
    return _called(closeness._scalars(actual, expected, difference, relative, rtol, atol), "Scalars", identifier)


def make_tensor_mismatch_msg(
    actual: Tensor, expected: Tensor, matches: Tensor, *, rtol: float, atol: float, identifier: Identifier = None
) -> str:
    """What there is to say of two tensors that are close where `matches` is True."""
    a, e = closeness._of_one_dtype(actual, expected)
    difference = (a - e).abs()
    text = closeness.tensors_differ(difference, difference / e.abs(), matches, rtol, atol)
    return _called(text, "Tensor-likes", identifier)


class Pair(abc.ABC):
    """Two values beside each other.  id: their place; parameters that a pair does not know are kept for none."""

    def __init__(self, actual: Any, expected: Any, *, id: Place = (), **unknown_parameters: Any) -> None:
        self.actual, self.expected, self.id, self._unknown_parameters = actual, expected, id, unknown_parameters

    @staticmethod
    def _inputs_not_supported() -> NoReturn:
        raise UnsupportedInputs

    @staticmethod
    def _check_inputs_isinstance(*inputs: object, cls: type | tuple[type, ...]) -> None:
        if not all(isinstance(x, cls) for x in inputs):
            Pair._inputs_not_supported()

    def _fail(self, type: type[Exception], msg: str, *, id: Place = ()) -> NoReturn:
        raise ErrorMeta(type, msg, id=id or getattr(self, "id", ()))

    def _told(self, message: str | None) -> None:
        """Fail with a message, if there is one."""
        if message is not None:
            self._fail(AssertionError, message)

    @abc.abstractmethod
    def compare(self) -> None:
        """Raise ErrorMeta where the two differ."""

    def extra_repr(self) -> Sequence[str | tuple[str, Any]]:
        """Names of attributes, or pairs of a name and a value, that `repr` shows."""
        return []

    def __repr__(self) -> str:
        shown = ["id", "actual", "expected", *self.extra_repr()]
        lines = [f"    {n}={getattr(self, n)!r}," if isinstance(n, str) else f"    {n[0]}={n[1]!r}," for n in shown]
        return "\n".join([f"{type(self).__name__}(", *lines, ")"])


class ObjectPair(Pair):
    """Values that are compared by `==`."""

    def compare(self) -> None:
        try:
            equal = bool(self.actual == self.expected)
        except Exception as error:
            raise ErrorMeta(
                ValueError, f"{self.actual} == {self.expected} failed with:\n{error}.", id=self.id
            ) from error
        if not equal:
            self._fail(AssertionError, f"{self.actual} != {self.expected}")


class NonePair(Pair):
    """Values of which one is None."""

    def __init__(self, actual: Any, expected: Any, **other_parameters: Any) -> None:
        if not (actual is None or expected is None):
            self._inputs_not_supported()
        super().__init__(actual, expected, **other_parameters)

    def compare(self) -> None:
        self._told(closeness._compare_nones(self.actual, self.expected, _NO_RULES))


class BooleanPair(Pair):
    """Bools, NumPy's too."""

    def __init__(self, actual: Any, expected: Any, *, id: Place, **other_parameters: Any) -> None:
        actual, expected = self._process_inputs(actual, expected, id=id)
        super().__init__(actual, expected, id=id, **other_parameters)

    @property
    def _supported_types(self) -> tuple[type, ...]:
        return bool, np.bool_

    def _process_inputs(self, actual: Any, expected: Any, *, id: Place) -> tuple[bool, bool]:
        self._check_inputs_isinstance(actual, expected, cls=self._supported_types)
        return self._to_bool(actual, id=id), self._to_bool(expected, id=id)

    def _to_bool(self, bool_like: Any, *, id: Place) -> bool:
        if isinstance(bool_like, (bool, np.bool_)):
            return bool(bool_like)
        raise ErrorMeta(TypeError, f"Unknown boolean type {type(bool_like)}.", id=id)

    def compare(self) -> None:
        self._told(closeness._compare_bools(self.actual, self.expected, _NO_RULES))


class NumberPair(Pair):
    """Numbers, NumPy's too."""

    _NUMBER_TYPES = (int, float, complex)

    def __init__(
        self, actual: Any, expected: Any, *, id: Place = (), rtol: float | None = None, atol: float | None = None,
        equal_nan: bool = False, check_dtype: bool = False, **other_parameters: Any,
    ) -> None:  # fmt: skip
        actual, expected = self._process_inputs(actual, expected, id=id)
        super().__init__(actual, expected, id=id, **other_parameters)
        kinds = [closeness._NUMBERS.get(type(x), dtypes.float64) for x in (actual, expected)]
        self.rtol, self.atol = get_tolerances(*kinds, rtol=rtol, atol=atol, id=id)
        self.equal_nan, self.check_dtype = equal_nan, check_dtype

    @property
    def _supported_types(self) -> tuple[type, ...]:
        return (*self._NUMBER_TYPES, np.number)

    def _process_inputs(self, actual: Any, expected: Any, *, id: Place) -> tuple[complex, complex]:
        self._check_inputs_isinstance(actual, expected, cls=self._supported_types)
        return self._to_number(actual, id=id), self._to_number(expected, id=id)

    def _to_number(self, number_like: Any, *, id: Place) -> complex:
        if isinstance(number_like, np.number):
            return number_like.item()  # type: ignore[no-any-return]
        if isinstance(number_like, self._NUMBER_TYPES):
            return number_like
        raise ErrorMeta(TypeError, f"Unknown number type {type(number_like)}.", id=id)

    def compare(self) -> None:
        rules = Rules(self.rtol, self.atol, self.equal_nan, True, False, self.check_dtype, False, False)
        self._told(closeness._compare_numbers(self.actual, self.expected, rules))

    def extra_repr(self) -> Sequence[str]:
        return "rtol", "atol", "equal_nan", "check_dtype"


class TensorLikePair(Pair):
    """Tensors, and what `torch.as_tensor` makes one of where a subclass says so; here arrays."""

    def __init__(
        self, actual: Any, expected: Any, *, id: Place = (), allow_subclasses: bool = True, rtol: float | None = None,
        atol: float | None = None, equal_nan: bool = False, check_device: bool = True, check_dtype: bool = True,
        check_layout: bool = True, check_stride: bool = False, **other_parameters: Any,
    ):  # fmt: skip
        actual, expected = self._process_inputs(actual, expected, id=id, allow_subclasses=allow_subclasses)
        super().__init__(actual, expected, id=id, **other_parameters)
        self.rtol, self.atol = get_tolerances(actual, expected, rtol=rtol, atol=atol, id=id)
        self.equal_nan, self.check_device, self.check_dtype = equal_nan, check_device, check_dtype
        self.check_layout, self.check_stride = check_layout, check_stride

    def _process_inputs(
        self, actual: Any, expected: Any, *, id: Place, allow_subclasses: bool
    ) -> tuple[Tensor, Tensor]:
        related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
        if not related or (not allow_subclasses and type(actual) is not type(expected)):
            self._inputs_not_supported()
        return self._to_tensor(actual), self._to_tensor(expected)

    def _to_tensor(self, tensor_like: Any) -> Tensor:
        if isinstance(tensor_like, Tensor):
            return tensor_like
        try:
            return named.as_tensor(tensor_like)  # type: ignore[no-any-return]
        except Exception:
            self._inputs_not_supported()

    def _check_supported(self, tensor: Tensor, *, id: Place) -> None:
        """Raises ErrorMeta for a tensor in a layout that is not compared: there is none."""

    def compare(self) -> None:
        rules = Rules(self.rtol, self.atol, self.equal_nan, True, self.check_device, self.check_dtype, self.check_layout,
                      self.check_stride)  # fmt: skip
        self._told(closeness._compare_tensors(self.actual, self.expected, rules))

    def extra_repr(self) -> Sequence[str]:
        return "rtol", "atol", "equal_nan", "check_device", "check_dtype", "check_layout", "check_stride"


_NO_RULES = Rules(0.0, 0.0, False, True, False, False, False, False)


def originate_pairs(
    actual: Any, expected: Any, *, pair_types: Sequence[type[Pair]], sequence_types: tuple[type, ...] = (Sequence,),
    mapping_types: tuple[type, ...] = (Mapping,), id: Place = (), **options: Any,
) -> list[Pair]:  # fmt: skip
    """The pairs of the leaves of two trees, each of the first type that is for it.

    Raises ErrorMeta where the trees differ in shape, and for leaves that no type is for.
    """
    keys: Sequence[Any] | None = None
    try:
        if closeness._both(actual, expected, sequence_types) and not closeness._both(actual, expected, str):
            keys = range(closeness._common_length(actual, expected, ()))
        elif closeness._both(actual, expected, mapping_types):
            keys = closeness._common_keys(actual, expected, ())
    except AssertionError as error:
        raise ErrorMeta(AssertionError, str(error), id=id) from None
    if keys is None:
        return [_pair(actual, expected, pair_types, id, options)]
    kinds: Any = {"pair_types": pair_types, "sequence_types": sequence_types, "mapping_types": mapping_types, **options}
    return [p for key in keys for p in originate_pairs(actual[key], expected[key], id=(*id, key), **kinds)]


def _pair(actual: object, expected: object, kinds: Sequence[type[Pair]], id: Place, options: dict[str, Any]) -> Pair:
    """A pair of the first type that is for two leaves."""
    for kind in kinds:
        try:
            return kind(actual, expected, id=id, **options)
        except UnsupportedInputs:
            continue
    text = f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}."
    raise ErrorMeta(TypeError, text, id=id)


def not_close_error_metas(
    actual: Any, expected: Any, *, pair_types: Sequence[type[Pair]] = (ObjectPair,),
    sequence_types: tuple[type, ...] = (Sequence,), mapping_types: tuple[type, ...] = (Mapping,), **options: Any,
) -> list[ErrorMeta]:  # fmt: skip
    """The errors of all pairs that differ.  Raises the error where the trees cannot be laid beside each other."""
    try:
        pairs = originate_pairs(actual, expected, pair_types=pair_types, sequence_types=sequence_types,
                                mapping_types=mapping_types, **options)  # fmt: skip
    except ErrorMeta as meta:
        raise meta.to_error() from None
    found = []
    for pair in pairs:
        try:
            pair.compare()
        except ErrorMeta as meta:
            found.append(meta)
    return found
