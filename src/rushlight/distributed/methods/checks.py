"""What methods of a group are given: lists of tensors that have to fit each other.  Raises RuntimeError, as PyTorch's do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.tensor import Tensor

__all__ = ["alike", "empty", "flat", "gathers", "listed", "outputs", "root", "single", "special"]


def listed(given: Any) -> list[Tensor]:
    """The tensors of a list, or one that comes alone."""
    return [given] if isinstance(given, Tensor) else list(given)


def flat(given: Any) -> list[Tensor]:
    """The tensors of a list, which may lie in one of one."""
    some = list(given)
    return list(some[0]) if len(some) == 1 and not isinstance(some[0], Tensor) else some


def alike(name: str, tensors: Sequence[Tensor], like: Tensor | None = None) -> list[Tensor]:
    """Tensors of one dtype, layout and shape, of which there is at least one.  like: that of the others, the first if None"""
    if not tensors:
        raise RuntimeError(f"{name}: requires non-empty tensor list")
    first = tensors[0] if like is None else like
    for i, tensor in enumerate(tensors):
        if tensor.layout is not first.layout:
            raise RuntimeError(
                f"{name}: invalid tensor layout at index {i}: expected {first.layout}, got {tensor.layout}"
            )
        if tensor.dtype is not first.dtype:
            raise RuntimeError(f"{name}: invalid tensor type at index {i}: expected {first.dtype}, got {tensor.dtype}")
        if tensor.shape != first.shape:
            raise RuntimeError(
                f"{name}: invalid tensor size at index {i}: expected {tuple(first.shape)}, got {tuple(tensor.shape)}"
            )
    return list(tensors)


def root(name: str, rank: int, size: int) -> int:
    """The number of the process that has, or gets, what is special."""
    if not 0 <= rank < size:
        raise RuntimeError(f"{name}: invalid root rank: {rank}: the group has {size} processes")
    return rank


def special(name: str, number: int, count: int) -> int:
    """Which of the tensors of a process that is."""
    if not 0 <= number < count:
        raise RuntimeError(f"{name}: invalid root tensor: {number}: {count} tensors are given")
    return number


def single(name: str, given: Any, what: str = "") -> Tensor:
    """What is given alone, or in a list of one.  what: "input" or "output" """
    tensors = listed(given)
    if len(tensors) != 1:
        raise RuntimeError(
            f"{name}: requires a single-element {f'{what} ' if what else ''}tensor list, got {len(tensors)}"
        )
    return tensors[0]


def empty(name: str, given: Any, what: str) -> None:
    """Nothing, on processes that need none."""
    if given:
        raise RuntimeError(f"{name}: requires empty {what} on non-root processes")


def boxed(given: Any) -> list[Any]:
    """Lists of tensors, one of which may come alone."""
    some = list(given)
    return [some] if some and isinstance(some[0], Tensor) else some


def gathers(name: str, given: Any, what: str, size: int, like: Tensor) -> list[Tensor]:
    """A tensor for each process, as they come or in a list of one list."""
    some = boxed(given)
    if len(some) != 1:
        raise RuntimeError(
            f"{name}: requires a single-element {what} list containing a list with {size} tensors, got {len(some)}"
        )
    if len(some[0]) != size:
        raise RuntimeError(
            f"{name}: Incorrect {what} list size {len(some[0])}: it should be {size}, one for each process of the group"
        )
    return alike(name, some[0], like)


def outputs(name: str, given: Any, inputs: Sequence[Tensor], size: int) -> list[Tensor]:
    """Where what all processes have is written: for each input a list with `size` tensors for each."""
    if not inputs:
        raise RuntimeError(f"{name}: requires non-empty input tensor list")
    some = boxed(given)
    if len(some) != len(inputs):
        raise RuntimeError(
            f"{name}: requires input/output tensor lists to have the same length, got {len(inputs)} and {len(some)}"
        )
    for i, one in enumerate(some):
        if len(one) != size * len(inputs):
            raise RuntimeError(
                f"{name}: invalid output tensor list at index {i}: expected length {size * len(inputs)}, got {len(one)}"
            )
    return alike(name, [t for one in some for t in one], alike(name, inputs)[0])
