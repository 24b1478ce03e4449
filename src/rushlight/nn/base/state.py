"""state_dict and load_state_dict."""

from __future__ import annotations

import weakref
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from rushlight.basics.caller import warn
from rushlight.basics.errors import explained
from rushlight.basics.foreign import is_theirs, kind_of
from rushlight.basics.handles import RemovableHandle, add_hook
from rushlight.engine.modes import no_grad
from rushlight.engine.swapping import swap_tensors
from rushlight.nn.base.conversion import _SETTINGS
from rushlight.nn.base.convert import Convertible
from rushlight.nn.parameter import Parameter, is_lazy
from rushlight.tensor import Tensor

if TYPE_CHECKING:
    from rushlight.nn.modules.module import Module

EXTRA_STATE = "_extra_state"


class _IncompatibleKeys(namedtuple("_IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What a state_dict lacks, and what it has too much."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"

    __str__ = __repr__


class _WithModule:
    """A hook that is called with the module it was registered for, which it does not keep alive, before its arguments."""

    def __init__(self, hook: Callable[..., Any], module: Any) -> None:
        self.hook, self.module = hook, weakref.ref(module)

    def __call__(self, *args: Any) -> Any:
        return self.hook(self.module(), *args)

    def __reduce__(self) -> tuple[Any, ...]:
        return _WithModule, (self.hook, self.module())


class Stateful(Convertible):
    """A module whose state can be taken out and put back."""

    # Out -------------------------------------------------------------------------------------------

    def get_extra_state(self) -> Any:
        """Further state for `state_dict`; override together with `set_extra_state`."""
        raise RuntimeError(
            "Reached a code path in Module.get_extra_state() that should never be called: override it in "
            f"{type(self).__name__}"
        )

    def set_extra_state(self, state: object) -> None:
        """Take what `get_extra_state` gave, from `load_state_dict`; override."""
        raise RuntimeError(
            "Reached a code path in Module.set_extra_state() that should never be called: override it in "
            f"{type(self).__name__}"
        )

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Put this module's own parameters, persistent buffers and extra state into `destination`."""
        for name, parameter in self._parameters.items():
            if parameter is not None:
                destination[prefix + name] = parameter if keep_vars else _detached(parameter)
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if keep_vars else _detached(buffer)
        if type(self).get_extra_state is not Stateful.get_extra_state:
            destination[prefix + EXTRA_STATE] = self.get_extra_state()

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """Parameters and persistent buffers of the whole tree, by dotted names.

        The tensors share the module's memory and are detached unless `keep_vars`.  `destination` takes the entries
        if given; `prefix` precedes every name.
        """
        if args:
            given = dict(zip(("destination", "prefix", "keep_vars"), args, strict=False))
            return self.state_dict(**{"destination": destination, "prefix": prefix, "keep_vars": keep_vars, **given})
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()  # the version of each module's layout
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._hooks_of("_state_dict_pre_hooks"):
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        return self._after_state_dict(destination, prefix, local_metadata)

    def _after_state_dict(self, destination: Any, prefix: str, local_metadata: dict[str, Any]) -> Any:
        kept = self.__dict__.get("_state_dict_hooks_that_keep", ())
        for number, hook in tuple(self.__dict__.get("_state_dict_hooks", {}).items()):
            result = hook(self, destination, prefix, local_metadata)
            if result is None:
                continue
            if number in kept:
                raise RuntimeError("state_dict post-hook must return None")
            destination = result
        return destination

    def _hooks_of(self, name: str) -> tuple[Any, ...]:
        """The hooks registered under `name`, without making their collection."""
        return tuple(self.__dict__[name].values()) if name in self.__dict__ else ()

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before `state_dict`."""
        return add_hook(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)` after `state_dict`; it may change the dict."""
        handle = RemovableHandle(self._state_dict_hooks, extra_dict=self._state_dict_hooks_that_keep)
        self._state_dict_hooks[handle.id] = hook
        self._state_dict_hooks_that_keep[handle.id] = True
        return handle

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """As `register_state_dict_post_hook`, but the hook may return another dict.  RuntimeError where that has it already."""
        if any(hook is known and i in self._state_dict_hooks_that_keep for i, known in self._state_dict_hooks.items()):
            raise RuntimeError("this hook was previously registered via register_state_dict_post_hook")
        return add_hook(self._state_dict_hooks, hook)

    # In --------------------------------------------------------------------------------------------

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)`
        before this module loads; it may change the dict in place."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        return add_hook(self._load_state_dict_pre_hooks, _WithModule(hook, self) if with_module else hook)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` after this module has loaded; it may change the keys in place."""
        return add_hook(self._load_state_dict_post_hooks, hook)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copy parameters and buffers from `state_dict` into this tree.

        Args:
            state_dict: tensors by dotted names, as `state_dict()` gives them.
            strict: refuse missing and unexpected names.
            assign: take the dict's tensors themselves instead of copying their values.

        Returns a named tuple (missing_keys, unexpected_keys).  Raises TypeError for what is no mapping and
        RuntimeError that lists every name that is missing, unexpected or of another shape.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        run = _Loading(assign)
        metadata = getattr(state_dict, "_metadata", None)
        copied = OrderedDict(state_dict)
        if metadata is not None:
            copied._metadata = metadata  # type: ignore[attr-defined]
        run.load(self, copied, "", metadata)
        if strict:
            run.describe_keys()
        if run.errors:
            listed = "\n\t".join(run.errors)
            words = f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{listed}"
            raise explained(RuntimeError(words), "state-dict-of-another-model")
        return _IncompatibleKeys(run.missing, run.unexpected)

    def _load_from_state_dict(
        self,
        state_dict: dict[Any, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load this module's own entries, not its children's; gather what does not fit in the three lists."""
        for hook in self._hooks_of("_load_state_dict_pre_hooks"):
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        assign = local_metadata.get("assign_to_params_buffers", False)
        own = self._persistent()
        for name, parameter in own.items():
            key = prefix + name
            if key in state_dict:
                _load_one(self, name, key, parameter, state_dict[key], assign, error_msgs)
            elif strict and parameter is not None:
                missing_keys.append(key)
        self._load_extra_state(state_dict, prefix, strict, missing_keys, unexpected_keys)
        if strict:
            unexpected_keys.extend(self._unexpected(state_dict, prefix, own))

    def _persistent(self) -> dict[str, Any]:
        """Parameters and buffers that `state_dict` has."""
        buffers = {k: v for k, v in self._buffers.items() if k not in self._non_persistent_buffers_set}
        return {k: v for k, v in {**self._parameters, **buffers}.items() if v is not None}

    def _load_extra_state(
        self, state_dict: dict[Any, Any], prefix: str, strict: bool, missing: list[str], unexpected: list[str]
    ) -> None:
        key = prefix + EXTRA_STATE
        if type(self).set_extra_state is not Stateful.set_extra_state:
            if key in state_dict:
                self.set_extra_state(state_dict[key])
            elif strict:
                missing.append(key)
        elif strict and key in state_dict:
            unexpected.append(key)

    def _unexpected(self, state_dict: dict[Any, Any], prefix: str, own: dict[str, Any]) -> list[str]:
        """Names under `prefix` that belong neither to this module nor to a child."""
        found = []
        for key in state_dict:
            if not key.startswith(prefix) or key == prefix + EXTRA_STATE:
                continue
            first, dot, _ = key[len(prefix) :].partition(".")
            if first not in (self._modules if dot else own):
                found.append(key)
        return found


class _Loading:
    """One run of load_state_dict over a tree."""

    def __init__(self, assign: bool):
        self.assign = assign
        self.missing: list[str] = []
        self.unexpected: list[str] = []
        self.errors: list[str] = []

    def load(self, module: Any, state_dict: dict[Any, Any], prefix: str, metadata: dict[Any, Any] | None) -> None:
        local = {} if metadata is None else dict(metadata.get(prefix[:-1], {}))
        if self.assign:
            local["assign_to_params_buffers"] = True
        module._load_from_state_dict(state_dict, prefix, local, True, self.missing, self.unexpected, self.errors)
        for name, child in module._modules.items():
            if child is not None:
                path = f"{prefix}{name}."
                below = OrderedDict((k, v) for k, v in state_dict.items() if k.startswith(path))
                self.load(child, below, path, metadata)
        keys = _IncompatibleKeys(self.missing, self.unexpected)
        for hook in module._hooks_of("_load_state_dict_post_hooks"):
            if hook(module, keys) is not None:
                raise AssertionError(
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new "
                    "values: change incompatible_keys in place."
                )

    def describe_keys(self) -> None:
        """Turn wrong names into messages, before those about shapes."""
        kinds = (("Missing", self.missing), ("Unexpected", self.unexpected))
        self.errors[:0] = [
            "{} key(s) in state_dict: {}. ".format(kind, ", ".join(f'"{k}"' for k in keys))
            for kind, keys in kinds
            if keys
        ]


def _detached(tensor: Tensor) -> Tensor:
    return tensor if is_lazy(tensor) else tensor.detach()


def _load_one(module: Any, name: str, key: str, parameter: Any, value: Any, assign: bool, errors: list[str]) -> None:
    """Copy one entry into its parameter or buffer, or say in `errors` why not."""
    is_tensor: bool = isinstance(value, Tensor)
    if not is_tensor:
        errors.append(
            f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from checkpoint '
            f"but received {type(value)}{f': {kind_of(value)}' if is_theirs(type(value)) else ''}"
        )
        return
    if not is_lazy(parameter):
        if parameter.ndim == 0 and value.ndim == 1 and value.numel() == 1:
            value = value[0]  # scalars were saved as one element once
        if value.shape != parameter.shape:
            errors.append(
                f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, the shape in "
                f"current model is {parameter.shape}."
            )
            return
    if is_lazy(parameter) and not is_lazy(value) and not assign:
        parameter.materialize(value.shape)
    try:
        _put(module, name, key, parameter, value, assign)
    except Exception as error:
        errors.append(
            f'While copying the parameter named "{key}", whose dimensions in the model are {parameter.shape} and '
            f"whose dimensions in the checkpoint are {value.shape}, an exception occurred : {error.args}."
        )


def _put(module: Module, name: str, key: str, parameter: Tensor, value: Tensor, assign: bool) -> None:
    """Copy a value into a parameter, or put it in its place."""
    if _SETTINGS["swap"]:
        _exchange(parameter, value, assign)
    elif not assign:
        if not is_lazy(value):
            if parameter.is_meta and not value.is_meta:
                warn(
                    f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current model, which is "
                    "a no-op: assign=True gives it the checkpoint's"
                )
            with no_grad():
                parameter.copy_(value)
    else:
        setattr(module, name, _as_parameter(parameter, value) if isinstance(parameter, Parameter) else value)


def _exchange(parameter: Any, value: Tensor, assign: bool) -> None:
    """Exchange what a parameter holds with what it makes of a value to be loaded.  Raises RuntimeError where that is one of the two."""
    with no_grad():
        new = parameter.module_load(value, assign=assign)
    if new is value or new is parameter:
        raise RuntimeError(
            "module_load returned one of self or other: detach() the result, or swap_tensors would swap it with itself"
        )
    swap_tensors(parameter, _as_parameter(parameter, new) if isinstance(parameter, Parameter) else new)


def _as_parameter(parameter: Parameter, value: Tensor) -> Tensor:
    """`value` as a parameter that requires grad where `parameter` does: itself, if it is one."""
    if isinstance(value, Parameter):
        return value.requires_grad_(parameter.requires_grad)
    return Parameter(value, requires_grad=parameter.requires_grad)
