"""Converting a whole tree of modules: devices and dtypes."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, Self

from rushlight.basics.caller import warn
from rushlight.basics.devices import device
from rushlight.basics.devices import device as Device
from rushlight.basics.dtypes import dtype
from rushlight.dispatch import functions as ops
from rushlight.engine.modes import no_grad
from rushlight.engine.swapping import swap_tensors
from rushlight.nn.base.conversion import _SETTINGS
from rushlight.nn.base.tree import Tree
from rushlight.nn.parameter import Parameter, is_lazy
from rushlight.tensor import Tensor

_TO_FORMS = (
    "to() received an invalid combination of arguments - got ({got}), but expected one of:\n"
    " * (torch.device device = None, torch.dtype dtype = None, bool non_blocking = False)\n"
    " * (torch.dtype dtype, bool non_blocking = False)\n"
    " * (Tensor tensor, bool non_blocking = False)"
)


class Convertible(Tree):
    """Conversions in place: parameters stay the same objects, so optimizers keep working."""

    def _apply(self, fn: Callable[[Any], Any], recurse: bool = True) -> Self:
        """Replace the memory of every parameter, its gradient and every buffer by `fn` of it."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        with no_grad():
            for name, parameter in self._parameters.items():
                if parameter is not None:
                    self._parameters[name] = _convert(parameter, fn, f"{builtins.type(self).__name__}.{name}")
        for name, buffer in self._buffers.items():
            if is_lazy(buffer):
                _convert(buffer, fn, name)
            elif buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: object, **kwargs: object) -> Self:
        """Move and convert parameters and buffers in place; integer ones keep their dtype.

        Forms: `to(device=None, dtype=None, non_blocking=False)`, `to(dtype)`, `to(tensor)` for that tensor's device
        and dtype, `to(memory_format=...)` for 4-d and 5-d parameters and buffers.  Raises TypeError for a dtype that
        is neither floating point nor complex.
        """
        target, kind, memory_format = _parse_to(args, kwargs)
        if kind is not None and not (kind.is_floating_point or kind.is_complex):
            raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={kind}")

        if kind is not None and kind.is_complex:
            warn("Complex modules are a new feature under active development whose design may change, and some modules might not "
                 "work as expected when using complex tensors as parameters or buffers.")  # fmt: skip

        def convert(tensor: Any) -> Any:
            wanted = kind if tensor.is_floating_point() or tensor.is_complex() else None
            options = {} if memory_format is None or tensor.ndim not in (4, 5) else {"memory_format": memory_format}
            return tensor.to(target, wanted, False, **options)  # by position, as classes of tensors are given them

        return self._apply(convert)

    def _replicate_for_data_parallel(self) -> Self:
        """A copy without parameters, whose buffers and children are this module's."""
        replica = self.__new__(builtins.type(self))
        replica.__dict__.update(self.__dict__)
        replica.__dict__.update(
            _parameters={}, _buffers=dict(self._buffers), _modules=dict(self._modules), _is_replica=True
        )
        return replica

    def to_empty(self, *, device: device | str | int | None, recurse: bool = True) -> Self:
        """Move to `device` without copying: every parameter and buffer becomes uninitialised memory there."""
        return self._apply(lambda t: ops.empty_like(t, device=device), recurse=recurse)

    def type(self, dst_type: object) -> Self:
        """Convert all parameters and buffers to `dst_type`."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self) -> Self:
        """Convert floating-point parameters and buffers to float32."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self) -> Self:
        """Convert floating-point parameters and buffers to float64."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self) -> Self:
        """Convert floating-point parameters and buffers to float16."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self) -> Self:
        """Convert floating-point parameters and buffers to bfloat16."""
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def cpu(self) -> Self:
        """Move parameters and buffers to the CPU."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device: device | str | int | None = None) -> Self:
        """Move parameters and buffers to a GPU."""
        return self._apply(lambda t: t.cuda(device))

    def ipu(self, device: device | str | int | None = None) -> Self:
        """Refused: raises RuntimeError, there is no such device."""
        raise RuntimeError("Module.ipu: there is no IPU device")

    def xpu(self, device: device | str | int | None = None) -> Self:
        """Refused: raises AssertionError, there is no such device."""
        raise AssertionError("Module.xpu: there is no XPU device")

    def mtia(self, device: device | str | int | None = None) -> Self:
        """Refused: raises AssertionError, there is no such device."""
        raise AssertionError("Module.mtia: there is no MTIA device")


def _convert(parameter: Any, fn: Callable[[Any], Any], name: str) -> Any:
    """Put `fn` of the parameter, and of its gradient, in their places.  The parameter, or a new one where it cannot be the same."""
    given = parameter.data if is_lazy(parameter) else parameter  # itself: its class may say what becomes of it
    new = fn(given)
    if _SETTINGS["swap"]:
        return _swapped(parameter, new, fn, name)
    if _SETTINGS["overwrite"] or new._meta is not parameter._meta:  # a tensor without memory cannot come to have any
        return _replaced(parameter, new, fn)
    gradient, parameter.grad = parameter.grad, None
    if new is not given:
        parameter.data = new
    if gradient is not None:
        parameter.grad = _moved(gradient, fn(gradient.detach()))
    return parameter


def _moved(gradient: Any, new: Any) -> Any:
    """The gradient with the memory of `new`; a sparse one, which has no memory of its own, anew."""
    if not isinstance(gradient, Tensor):
        return new.requires_grad_(gradient.requires_grad)
    gradient.data = new
    return gradient


def _replaced(parameter: Any, new: Tensor, fn: Callable[[Any], Any]) -> Parameter:
    """A new parameter of `new`, with `fn` of the old one's gradient."""
    made, gradient = Parameter(new, parameter.requires_grad), parameter.grad
    if gradient is not None:
        made.grad = fn(gradient.detach()).requires_grad_(gradient.requires_grad)
    return made


def _swapped(parameter: Any, new: Tensor, fn: Callable[[Any], Any], name: str) -> Any:
    """The parameter, exchanged with one of `new`, and its gradient with `fn` of it.  Raises RuntimeError where they cannot be."""
    gradient, parameter.grad = parameter.grad, None
    try:
        swap_tensors(parameter, Parameter(new, parameter.requires_grad))
        if gradient is not None:
            swap_tensors(gradient, fn(gradient).requires_grad_(gradient.requires_grad))
    except Exception as error:
        parameter.grad = gradient
        raise RuntimeError(f"_apply(): Couldn't swap {name}: {error}") from error
    parameter.grad = gradient
    return parameter


def _parse_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Device, dtype and memory format from the forms of `Module.to`."""
    given = dict(kwargs)
    target, kind = given.pop("device", None), given.pop("dtype", None)
    memory_format, tensor = given.pop("memory_format", None), given.pop("tensor", None)
    given.pop("non_blocking", None)
    if given.pop("copy", None) is not None:
        raise RuntimeError(".to() does not accept copy argument: a module is converted in place")
    rest = list(args)
    if rest and isinstance(rest[0], Tensor):
        tensor = rest.pop(0)
    elif rest and isinstance(rest[0], dtype):
        kind = rest.pop(0)
    elif rest and (rest[0] is None or (isinstance(rest[0], (str, int, Device)) and not isinstance(rest[0], bool))):
        target = rest.pop(0)
        if rest and (rest[0] is None or isinstance(rest[0], dtype)):
            kind = rest.pop(0)
    if given or len(rest) > 2 or (rest and len(rest) == len(args)) or not all(isinstance(flag, bool) for flag in rest):
        got = [builtins.type(a).__name__ for a in args] + [f"{k}={builtins.type(v).__name__}" for k, v in given.items()]
        raise TypeError(_TO_FORMS.format(got=", ".join(got)))
    if tensor is not None:
        return tensor.device, tensor.dtype, memory_format
    return None if target is None else Device(target), kind, memory_format
