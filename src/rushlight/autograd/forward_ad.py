"""Forward-mode automatic differentiation by dual numbers."""

from __future__ import annotations

from types import TracebackType
from typing import Any, NamedTuple

from rushlight.ops.dual import DualLevel
from rushlight.state import modes, set_mode
from rushlight.tensor import Tensor


def enter_dual_level() -> DualLevel:
    """Start a level of forward mode and return it."""
    level = DualLevel()
    set_mode("levels", (*modes.levels, level))
    return level


def exit_dual_level(*, level: Any = None) -> None:
    """End the innermost level.  Raises RuntimeError if `level` is another one, or none is active."""
    if not modes.levels or (level is not None and modes.levels[-1] is not level):
        raise RuntimeError("Trying to exit a forward AD level that was not the last one that was created.")
    set_mode("levels", modes.levels[:-1])


class dual_level:
    """Forward mode is active inside.

    >>> import rushlight as torch
    >>> import rushlight.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     x = fwAD.make_dual(torch.tensor([1.0]), torch.tensor([1.0]))
    ...     fwAD.unpack_dual(x * x * x).tangent
    tensor([3.])
    """

    def __enter__(self) -> DualLevel:
        self.level = enter_dual_level()
        return self.level

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        exit_dual_level(level=self.level)


class UnpackedDualTensor(NamedTuple):
    """The parts of a dual tensor; `tangent` is None for one that has none."""

    primal: Tensor
    tangent: Any


def current(level: Any) -> DualLevel:
    """The level given, or the innermost."""
    if level is None and not modes.levels:
        raise RuntimeError("Trying to create a dual Tensor for forward AD but no level exists, make sure to "
                           "enter_dual_level() first.")  # fmt: skip
    return modes.levels[-1] if level is None else level  # type: ignore[no-any-return]


def make_dual(tensor: Tensor, tangent: Tensor, *, level: Any = None) -> Tensor:
    """A tensor of the same values that carries `tangent`, of the same shape and dtype."""
    if tensor.shape != tangent.shape:
        raise RuntimeError(f"Expected tangent to have the shape of its primal, {list(tensor.shape)}, got "
                           f"{list(tangent.shape)}")  # fmt: skip
    if tensor.dtype.is_complex != tangent.dtype.is_complex:
        raise RuntimeError(f"Expected tangent to be of the dtype of its primal, {tensor.dtype}, got {tangent.dtype}")
    at = current(level)
    dual = tensor.view_as(tensor)
    dual._tangents = {**(dual._tangents or {}), at: tangent}
    return dual  # type: ignore[no-any-return]


def unpack_dual(tensor: Tensor, *, level: Any = None) -> UnpackedDualTensor:
    """The value and the tangent of a dual tensor at the innermost level."""
    if level is None and not modes.levels:
        return UnpackedDualTensor(tensor, None)
    at = current(level)
    return UnpackedDualTensor(at.value(tensor), (tensor._tangents or {}).get(at))
