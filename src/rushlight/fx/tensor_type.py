"""Types of tensors by their shapes, some of which are not known: for annotations."""

from __future__ import annotations

from typing import Any

__all__ = ["Dyn", "TensorType", "is_consistent", "is_more_precise"]


class _DynType:
    """The type of what nothing is known of."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _DynType)

    def __hash__(self) -> int:
        return hash(_DynType)

    def __str__(self) -> str:
        return "Dyn"

    __repr__ = __str__


Dyn = _DynType()


class TensorType:
    """The type of a tensor of a shape: of integers, and `Dyn` where one is not known.

    >>> TensorType((1, Dyn)) == TensorType((1, Dyn)), is_consistent(TensorType((1, Dyn)), TensorType((1, 3)))
    (True, True)
    """

    def __init__(self, dim: tuple[Any, ...]) -> None:
        self.__origin__, self.__args__ = TensorType, dim

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorType) and list(self.__args__) == list(other.__args__)

    def __hash__(self) -> int:
        return hash(tuple(self.__args__))

    def __repr__(self) -> str:
        return f"TensorType[{self.__args__}]"

    @staticmethod
    def __class_getitem__(*args: Any) -> TensorType:
        return TensorType(args[0] if len(args) == 1 and isinstance(args[0], tuple) else args)


def is_consistent(t1: object, t2: object) -> bool:
    """Whether a tensor may be of both types: they are equal where both are known."""
    if t1 == t2 or Dyn in (t1, t2):
        return True
    return _of_each(t1, t2, is_consistent)


def is_more_precise(t1: object, t2: object) -> bool:
    """Whether the first type says all that the second one says."""
    return t1 == t2 or t2 == Dyn or _of_each(t1, t2, is_more_precise)


def _of_each(t1: object, t2: object, holds: Any) -> bool:
    if not isinstance(t1, TensorType) or not isinstance(t2, TensorType) or len(t1.__args__) != len(t2.__args__):
        return False
    return all(holds(a, b) for a, b in zip(t1.__args__, t2.__args__, strict=True))
