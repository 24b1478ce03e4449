"""The registers of a module: its parameters, buffers and children by name, behind ordinary attributes."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from rushlight.basics.handles import Hooks, RemovableHandle
from rushlight.nn.parameter import Buffer, Parameter, UninitializedBuffer
from rushlight.overrides.questions import is_tensor_like
from rushlight.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from rushlight.nn.modules.module import Module

HOOKS = frozenset({
    "_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks",
    "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
})  # fmt: skip
HOOK_FLAGS = frozenset({"_forward_hooks_with_kwargs", "_forward_hooks_always_called",
                        "_forward_pre_hooks_with_kwargs", "_state_dict_hooks_that_keep"})  # fmt: skip

registration_hooks: dict[str, Hooks] = {"parameter": Hooks(), "buffer": Hooks(), "module": Hooks()}


def typename(value: object) -> str:
    """The name of a value's type as messages print it: `torch.FloatTensor` for tensors."""
    if isinstance(value, Tensor):
        return str(value.type())
    cls = value if isinstance(value, type) else type(value)
    return cls.__name__ if cls.__module__ in ("builtins", "") else f"{cls.__module__}.{cls.__qualname__}"


def _announce(kind: str, module: object, name: str, value: Any) -> Any:
    """Let the global registration hooks of this kind replace what is being registered."""
    for hook in tuple(registration_hooks[kind].values()):
        replaced = hook(module, name, value)
        if replaced is not None:
            value = replaced
    return value


def _check_name(module: object, kind: str, name: str, register: str) -> None:
    """Raise TypeError or KeyError where `name` cannot be registered."""
    if not isinstance(name, str):
        raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
    if "." in name:
        got = f", got: {name}" if kind == "module" else ""
        raise KeyError(f'{kind} name can\'t contain "."{got}')
    if name == "":
        raise KeyError(f'{kind} name can\'t be empty string ""')
    if hasattr(module, name) and name not in module.__dict__[register]:
        raise KeyError(f"attribute '{name}' already exists")


class Registry:
    """Attributes of a module: plain ones in `__dict__`, the others in `_parameters`, `_buffers` and `_modules`."""

    training: bool
    _version: int = 1
    dump_patches: bool = False
    call_super_init: bool = False
    _is_full_backward_hook: bool | None = None
    _hooked = False  # whether any hook was ever asked for: until then a call is a plain call of forward

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _non_persistent_buffers_set: set[str]
    _modules: dict[str, Any]

    def __init__(self, *args: object, **kwargs: object) -> None:
        if not self.call_super_init and (args or kwargs):
            _refuse_arguments(type(self).__name__, args, kwargs)
        own = self.__dict__
        own["training"] = True
        own["_parameters"] = {}
        own["_buffers"] = {}
        own["_non_persistent_buffers_set"] = set()
        own["_modules"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    # Registration ----------------------------------------------------------------------------------

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter, or None to reserve its name.

        Raises KeyError for a name that is empty, has a dot or is taken, TypeError for what is no Parameter and
        ValueError for one that was computed.
        """
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        _check_name(self, "parameter", name, "_parameters")
        if param is not None:
            _check_parameter(name, param)
            param = _announce("parameter", self, name, param)
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is state but no parameter, such as a running mean.

        A buffer that is not persistent is no part of the module's `state_dict`.  Raises KeyError for a name that is
        empty, has a dot or is taken, and TypeError for what is no tensor.
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        _check_name(self, "buffer", name, "_buffers")
        if tensor is not None and not is_tensor_like(tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._buffers[name] = _announce("buffer", self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module) -> None:
        """Add a child module under `name`; None reserves the name.

        Raises TypeError for what is no module and KeyError for a name that is empty, has a dot or is taken.
        """
        if module is not None and not isinstance(module, Registry):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        _check_name(self, "module", name, "_modules")
        self._modules[name] = _announce("module", self, name, module)

    def register_module(self, name: str, module: Module) -> None:
        """Alias of `add_module`."""
        self.add_module(name, module)

    # Attributes ------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        for register in ("_parameters", "_modules", "_buffers"):
            found = own.get(register)
            if found is not None and name in found:
                return found[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: object) -> None:
        own = self.__dict__
        if isinstance(value, Parameter):
            self._set_parameter(name, value)
        elif "_parameters" in own and name in own["_parameters"]:
            self._clear(name, value)  # a parameter gives way to another, or to None
        elif isinstance(value, Registry):
            self._set_module(name, value)
        elif "_modules" in own and name in own["_modules"]:
            self._clear(name, value)
        elif isinstance(value, (Buffer, UninitializedBuffer)):
            self._set_buffer(name, value)
        elif "_buffers" in own and name in own["_buffers"]:
            self._set_buffer(name, value)
        else:
            object.__setattr__(self, name, value)

    def _set_parameter(self, name: str, value: Parameter) -> None:
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameters before Module.__init__() call")
        self._forget(name, "_buffers", "_modules")
        self.register_parameter(name, value)

    def _set_module(self, name: str, value: Any) -> None:
        if "_modules" not in self.__dict__:
            raise AttributeError("cannot assign module before Module.__init__() call")
        self._forget(name, "_parameters", "_buffers")
        self._modules[name] = _announce("module", self, name, value)

    def _set_buffer(self, name: str, value: Any) -> None:
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        if value is not None and not is_tensor_like(value):
            raise TypeError(
                f"cannot assign '{typename(value)}' as buffer '{name}' (torch.nn.Buffer, torch.Tensor or None expected)"
            )
        if isinstance(value, (Buffer, UninitializedBuffer)):
            if name in self.__dict__:
                raise KeyError(f"attribute '{name}' already exists")
            self._forget(name, "_parameters", "_modules")
            kept = (
                () if value.persistent else (False,)
            )  # who overrides register_buffer may know of name and value alone
            self.register_buffer(name, value, *kept)
        else:
            self._buffers[name] = _announce("buffer", self, name, value)

    def _clear(self, name: str, value: object | None) -> None:
        """Assign None, the only plain value allowed, to a parameter or child."""
        if value is None:
            self.__dict__["_parameters" if name in self._parameters else "_modules"][name] = None
        elif name in self._parameters:
            raise TypeError(
                f"cannot assign '{typename(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)"
            )
        else:
            raise TypeError(
                f"cannot assign '{typename(value)}' as child module '{name}' (torch.nn.Module or None expected)"
            )

    def _forget(self, name: str, *registers: str) -> None:
        """Drop what else goes by `name`, which is about to be registered anew."""
        self.__dict__.pop(name, None)
        for register in registers:
            self.__dict__[register].pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def __delattr__(self, name: str) -> None:
        for register in ("_parameters", "_buffers", "_modules"):
            if name in self.__dict__.get(register, ()):
                del self.__dict__[register][name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers}
        return sorted(name for name in names if not name[0].isdigit())

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_compiled_call_impl"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        own = self.__dict__
        own.update(state)
        own.setdefault("_non_persistent_buffers_set", set())  # modules that PyTorch 1.5 pickled have none
        if any(own.get(name) for name in HOOKS if "state_dict" not in name):
            own["_hooked"] = True


class _ModuleHooks:
    """A collection of hooks that a module has once it is asked for: modules without hooks carry none.

    What a class says of other attributes does not hide it: packages override `__getattr__` without asking the one above.
    Nor does a collection that is there, as every module that PyTorch pickled has: who asks for it may add a hook.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, module: Registry | None, owner: type) -> Any:
        if module is None:
            raise AttributeError(f"type object '{owner.__name__}' has no attribute '{self.name}'")
        if self.name in HOOK_FLAGS:
            return module.__dict__.setdefault(self.name, OrderedDict())
        if "state_dict" not in self.name:
            module.__dict__["_hooked"] = True
        return module.__dict__.setdefault(self.name, Hooks())

    def __set__(self, module: Registry, value: object) -> None:
        module.__dict__[self.name] = value
        if self.name in HOOKS:
            module.__dict__["_hooked"] = True

    def __delete__(self, module: Registry) -> None:
        if self.name not in module.__dict__:
            raise AttributeError(f"'{type(module).__name__}' object has no attribute '{self.name}'")
        del module.__dict__[self.name]


for _name in HOOKS | HOOK_FLAGS:
    setattr(Registry, _name, _ModuleHooks(_name))


def _refuse_arguments(name: str, args: tuple[Any, ...], kwargs: dict[Any, Any]) -> None:
    if kwargs:
        raise TypeError(f"{name}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'")
    raise TypeError(f"{name}.__init__() takes 1 positional argument but {len(args) + 1} were given")


def _check_parameter(name: str, param: Tensor) -> None:
    if not isinstance(param, Parameter):
        raise TypeError(
            f"cannot assign '{typename(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)"
        )
    if param.grad_fn:
        raise ValueError(
            f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. To "
            f"express '{name}' as a function of another Tensor, compute the value in the forward() method."
        )


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, parameter)` whenever any module registers a parameter; it may return another one."""
    return registration_hooks["parameter"].add(hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, buffer)` whenever any module registers a buffer; it may return another one."""
    return registration_hooks["buffer"].add(hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, child)` whenever any module registers a child; it may return another one."""
    return registration_hooks["module"].add(hook)
