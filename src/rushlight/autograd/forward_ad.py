"""Forward-mode automatic differentiation by dual numbers.

A dual tensor is a value with a tangent, the derivative of the value along one direction. What is computed from it carries
tangents too: see `dual_level`. Levels nest, for derivatives of derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple

from rushlight.basics.state import modes, set_mode
from rushlight.engine.modes import Mode, decorate
from rushlight.tensor import ITSELF, Tensor
from rushlight.transforms.dual import DualLevel


def enter_dual_level() -> DualLevel:
    """Start a level of forward mode and return it; inside another level, one for derivatives of derivatives."""
    level = DualLevel()
    set_mode("levels", (*modes.levels, level))
    return level


def exit_dual_level(*, level: object = None) -> None:
    """End the innermost level, and drop its tangents.  Raises RuntimeError if `level` is another one, or none is active."""
    if not any(isinstance(x, DualLevel) for x in modes.levels):
        raise RuntimeError("Trying to exit a forward AD level but no level exists: call enter_dual_level() first.")
    if modes.levels[-1] is not (modes.levels[-1] if level is None else level) or not isinstance(
            modes.levels[-1], DualLevel):  # fmt: skip
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    modes.levels[-1].end()
    set_mode("levels", modes.levels[:-1])


class dual_level:
    """Forward mode is active inside; decorates functions too.

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

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return decorate(function, dual_level)


class UnpackedDualTensor(NamedTuple):
    """The parts of a dual tensor; `tangent` is None for one that has none."""

    primal: Tensor
    tangent: Any


def innermost() -> DualLevel | None:
    """The innermost level, or None."""
    return next((level for level in reversed(modes.levels) if isinstance(level, DualLevel)), None)


def check_parts(tensor: Tensor, tangent: Tensor) -> None:
    """Raise TypeError, ValueError or RuntimeError where `tangent` cannot be one of `tensor`."""
    for what, x in (("primal", tensor), ("tangent", tangent)):
        if not isinstance(x, Tensor):
            raise TypeError(f"make_dual(): Expected {what} to be a Tensor, but got: {type(x).__name__}")
        if x._array.dtype.kind in "biu":
            raise ValueError(f"Expected {what} to be floating point or complex, but got: {x.dtype}")
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(tensor.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}."
        )
    if tangent.dtype.is_complex and not tensor.dtype.is_complex:
        raise RuntimeError(f"Trying to set a forward gradient of dtype {tangent.dtype} for a tensor of dtype {tensor.dtype}: "
                           "its imaginary part would be lost. Give its real part, or make the tensor complex.")  # fmt: skip


def make_dual(tensor: Tensor, tangent: Tensor, *, level: Any = None) -> Tensor:
    """A view of `tensor` that carries `tangent`, of the same shape, at the innermost level (or `level`).

    Both are of floating-point or complex dtypes; a tangent of another one is converted to that of `tensor`.

    Raises RuntimeError outside of levels, for shapes that differ, and where either has a tangent at this level already.
    """
    at = innermost() if level is None else level
    if at is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    check_parts(tensor, tangent)
    if at.tangent_of(tensor) is not None:
        raise RuntimeError("Making a dual Tensor based on a Tensor that already has a forward gradient at the same level is "
                           "not supported: unpack_dual() it, or enter another level.")  # fmt: skip
    if at.tangent_of(tangent) is not None:
        raise RuntimeError("Setting a forward grad that itself has a forward gradient at the same level is not supported: "
                           "unpack_dual() it, or enter another level.")  # fmt: skip
    dual: Tensor = tensor.view_as(tensor)
    dual._dual_base = ITSELF
    at.give(dual, tangent if tangent._array.dtype == dual._array.dtype else tangent.to(dual.dtype))
    return dual


def unpack_dual(tensor: Tensor, *, level: Any = None) -> UnpackedDualTensor:
    """The value and the tangent of a dual tensor at the innermost level (or `level`); the tangent is None where it has none.

    Outside of levels, and while forward mode is switched off, nothing has a tangent.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"unpack_dual(): argument 'tensor' (position 1) must be Tensor, not {type(tensor).__name__}")
    at = innermost() if level is None else level
    if at is None or not modes.forward_grad:
        return UnpackedDualTensor(tensor, None)
    tangent = at.tangent_of(tensor)
    return UnpackedDualTensor(at.value(tensor), tangent)


class set_fwd_grad_enabled(Mode):
    """Forward mode on or off: as a function call from now on, as a context manager inside.

    Where it is off, results carry no tangents.
    """

    def __init__(self, mode: bool):
        super().__init__()
        self.mode = bool(mode)
        self.settings = {"forward_grad": self.mode}
        self.former = set_mode("forward_grad", self.mode)

    def __enter__(self) -> None:
        self._former.append({"forward_grad": self.former})
        set_mode("forward_grad", self.mode)

    def __call__(self, function: Any) -> Any:
        set_mode("forward_grad", self.former)  # it decorates, so it was not meant to switch now
        return super().__call__(function)

    def clone(self) -> set_fwd_grad_enabled:
        return set_fwd_grad_enabled(self.mode)


def is_fwd_grad_enabled() -> bool:
    """Whether forward mode is on in this thread."""
    return modes.forward_grad


_set_fwd_grad_enabled, _is_fwd_grad_enabled = set_fwd_grad_enabled, is_fwd_grad_enabled
