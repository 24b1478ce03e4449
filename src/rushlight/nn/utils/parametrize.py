"""Parametrizations: a parameter computed, at every access, by a module from other parameters."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Sequence
from typing import Any

from rushlight.engine.modes import no_grad
from rushlight.nn.modules.container import ModuleDict, ModuleList
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.tensor import Tensor

__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations",
    "transfer_parametrizations_and_params", "type_before_parametrizations",
]  # fmt: skip

_depth = 0
_cache: dict[tuple[int, str], Any] = {}


@contextlib.contextmanager
def cached() -> Iterator[None]:
    """Within it every parametrized tensor is computed once, at its first access."""
    global _depth
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if not _depth:
            _cache.clear()


def _register(module: ParametrizationList, name: str, tensor: Tensor) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _put(destination: Tensor, source: Tensor) -> None:
    """Let `destination` use the memory of `source`."""
    if source is not destination:
        destination.data = source.data if isinstance(source, Tensor) else source


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, in order, and the tensor(s) they start from: `original`, or original0, ...

    Args:
        modules: the parametrizations.
        original: the tensor as it was.
        unsafe: skip the checks that shapes and dtypes are kept.
    """

    original: Any
    unsafe: bool

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        before, new = original.data, original
        with no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    with contextlib.suppress(NotImplementedError):
                        new = module.right_inverse(new)
        self.is_tensor = isinstance(new, Tensor)
        if not self.is_tensor and not isinstance(new, Sequence):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got "
                f"{type(new).__name__}"
            )
        self.ntensors = 1 if self.is_tensor else len(new)
        self._adopt(original, new)
        if not unsafe:
            try:
                check_like(self(), before)
            except Exception:
                _put(original, before)
                raise

    def _adopt(self, original: Tensor, new: Any) -> None:
        """Register what the parametrizations start from."""
        if self.is_tensor:
            if original.dtype != new.dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {original.dtype}\nright_inverse(original).dtype: {new.dtype}"
                )
            with no_grad():
                _put(original, new)
            _register(self, "original", original)
            return
        for i, tensor in enumerate(new):
            if not isinstance(tensor, Tensor):
                raise ValueError(
                    f"'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got element {i} "
                    f"of the sequence with type {type(tensor).__name__}."
                )
            held: Any = tensor
            if isinstance(original, Parameter):
                held = Parameter(tensor, original.requires_grad and tensor.dtype.is_floating_point)
            held.requires_grad_(original.requires_grad)
            _register(self, f"original{i}", held)

    def _originals(self) -> list[Any]:
        return [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value: Tensor) -> None:
        """Set the originals so that the computed tensor becomes `value`."""
        new: Any = value
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse: the tensor cannot "
                        "be assigned"
                    )
                new = module.right_inverse(new)
            for held, tensor in zip(self._originals(), self._inverted(new), strict=True):
                _put(held, tensor)

    def _inverted(self, new: object) -> Sequence[Any]:
        """What `right_inverse` returned as one tensor for each original.  Raises ValueError where it is not that."""
        if self.is_tensor:
            if not isinstance(new, Tensor):
                raise ValueError(f"`right_inverse` should return a tensor. Got {type(new).__name__}")
            new = [new]
        elif not isinstance(new, Sequence) or len(new) != self.ntensors:
            got = len(new) if isinstance(new, Sequence) else type(new).__name__
            raise ValueError(f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got {got}.")
        for i, (held, tensor) in enumerate(zip(self._originals(), new, strict=True)):
            which = "original" if self.is_tensor else f"original{i}"
            if not isinstance(tensor, Tensor):
                raise ValueError(f"`right_inverse` must return a sequence of tensors. Got element {i} of type "
                                 f"{type(tensor).__name__}")  # fmt: skip
            if tensor.dtype != held.dtype:
                raise ValueError(f"The tensor returned by `right_inverse` has dtype {tensor.dtype} while `{which}` has "
                                 f"dtype {held.dtype}")  # fmt: skip
        return new

    def forward(self) -> Tensor:
        """Compute the tensor."""
        modules = list(self)
        value = modules[0](*self._originals())
        for module in modules[1:]:
            value = module(value)
        return value


def check_like(computed: Tensor, before: Tensor, names: tuple[str, str] = ("unparametrized ", "parametrized ")) -> None:
    """Raise ValueError where the computed tensor does not look like `before`; `names` is what the two are called."""
    if not isinstance(computed, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(computed).__name__}.")
    for what in ("dtype", "shape"):
        if getattr(computed, what) != getattr(before, what):
            raise ValueError(
                f"Registering a parametrization may not change the {what} of the tensor, unless the `unsafe` flag is "
                f"enabled.\n{names[0]}{what}: {getattr(before, what)}\n{names[1]}{what}: {getattr(computed, what)}"
            )


def _property(name: str) -> property:
    def compute(self: Any) -> Tensor:
        if not _depth:
            return self.parametrizations[name]()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = self.parametrizations[name]()
        return _cache[key]

    def assign(self: Any, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(compute, assign)


def _inject_new_class(module: Module) -> None:
    """Give `module` a class of its own, to which properties can be added."""
    former = type(module)

    def refuse(self: Any) -> Any:
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(): save that instead"
        )

    def deep(self: object, memo: dict[int, Any]) -> Any:
        known = memo.get(id(self))
        if known is None:
            known = memo[id(self)] = self.__new__(type(self))
            known.__dict__ = copy.deepcopy(self.__dict__, memo)
        return known

    body: dict[str, Any] = {"__getstate__": refuse, "__module__": former.__module__}
    if not hasattr(former, "__deepcopy__"):
        body["__deepcopy__"] = deep
    module.__class__ = type(f"Parametrized{former.__name__}", (former,), body)


def register_parametrization(module: Module, tensor_name: str, parametrization: Any, *, unsafe: bool = False) -> Any:
    """Compute the parameter or buffer `tensor_name` of `module` by `parametrization` from now on.

    The original is kept in `module.parametrizations[tensor_name].original`; a second registration computes from the
    first one's result.  If the parametrization has `right_inverse`, the original is set by it.  Raises ValueError where
    shape or dtype change (unless `unsafe`) or the tensor does not exist.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        _extend(module, tensor_name, parametrization, unsafe)
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        listed = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _inject_new_class(module)
            module.parametrizations = ModuleDict()
        setattr(module.__class__, tensor_name, _property(tensor_name))
        module.parametrizations[tensor_name] = listed
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    return module


def _extend(module: Module, name: str, parametrization: Any, unsafe: bool) -> None:
    """Put one more parametrization after those of `name`, whose originals stay as they are."""
    listed = module.parametrizations[name]
    if not unsafe:
        value = getattr(module, name)
        with no_grad():
            computed = parametrization(value)
        check_like(computed, value, (f"module.{name}.", f"parametrization(module.{name})."))
        check_inverse(parametrization, computed, name)
    listed.append(parametrization)
    listed.unsafe |= unsafe


def check_inverse(parametrization: object, computed: Tensor, name: str) -> None:
    """Raise ValueError where `right_inverse`, if there is one, gives something else than a tensor like the given one."""
    if not hasattr(parametrization, "right_inverse"):
        return
    with no_grad():
        try:
            found = parametrization.right_inverse(computed)
        except NotImplementedError:
            return
    if not isinstance(found, Tensor):
        raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(found).__name__}")
    for what in ("dtype", "shape"):
        if getattr(found, what) != getattr(computed, what):
            raise ValueError(
                f"The tensor returned by parametrization.right_inverse must have the same {what} as module.{name}, "
                f"unless the `unsafe` flag is enabled.\nmodule.{name}.{what}: {getattr(computed, what)}\nreturned {what}: "
                f"{getattr(found, what)}"
            )


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether `module` has parametrizations, or one of `tensor_name`."""
    parametrizations = module._modules.get("parametrizations")
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Stop computing `tensor_name`: keep its present value or, with `leave_parametrized=False`, the original.

    Raises ValueError where there is no parametrization, or where the original is several tensors.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    listed = module.parametrizations[tensor_name]
    if listed.is_tensor:
        original = listed.original
        if leave_parametrized:
            with no_grad():
                _put(original, getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value.detach()) if value.requires_grad else value.detach()
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    delattr(module.__class__, tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = module.__class__.__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class of `module` without its parametrizations."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module: Any, to_module: Any, tensor_name: str | None = None) -> Any:
    """Give the parametrizations of one module, or of one of its tensors, with their originals, to another module."""
    if not is_parametrized(from_module):
        return to_module
    names = [tensor_name] if tensor_name is not None else list(from_module.parametrizations)
    for name in names:
        if not hasattr(to_module, name):
            setattr(to_module, name, copy.deepcopy(getattr(from_module, name)))
        for parametrization in from_module.parametrizations[name]:
            register_parametrization(to_module, name, parametrization)
        source, target = from_module.parametrizations[name], to_module.parametrizations[name]
        for held in ("original",) if source.is_tensor else tuple(f"original{i}" for i in range(source.ntensors)):
            setattr(target, held, getattr(source, held))
    return to_module
